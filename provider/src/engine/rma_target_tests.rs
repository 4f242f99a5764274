// SPDX-License-Identifier: BSD-2-Clause
//! Tests that requests of peers for local memory are served or refused according to the endpoint's
//! capabilities.

use ffi::{
    Buffer, Errno, flags,
    ops::ep::{
        OpFlags,
        rma::{RemoteParts, Rma},
    },
};

use crate::{attr, engine::pairs::*};

#[test]
fn requests_without_the_capability_are_refused() {
    let cases = [
        (flags::MSG, [false; 3]),
        (flags::RMA, [true, true, false]),
        (flags::RMA | flags::REMOTE_READ, [false, true, false]),
        (flags::RMA | flags::REMOTE_WRITE, [true, false, false]),
        (flags::RMA | flags::READ | flags::WRITE, [false; 3]),
        (flags::ATOMIC, [false, false, true]),
        (flags::ATOMIC | flags::REMOTE_READ, [false; 3]),
        (0, [true; 3]),
    ];
    for (caps, allowed) in cases {
        for (what, allowed) in [TestOp::Write, TestOp::Read, TestOp::Fetch].into_iter().zip(allowed)
        {
            let [mut one, mut other] = connected_pair(None, 341, SETTINGS[0]);
            other.engine.target.caps = attr::capabilities(caps);
            let operation = Operation::prepare(what, 8, &mut other);
            operation.start(&mut one).unwrap();
            other.step();
            one.step();
            let expected = if allowed { Ok(()) } else { Err(Errno::EACCES) };
            assert_eq!(one.has_reported(AT_ONE), Some(expected), "{what:?} {caps:#x}");
        }
    }
}

/// `fi_writemsg` refuses such an operation, so only a hostile peer sends it.
#[test]
fn a_write_of_no_parts_is_refused_and_not_reported() {
    let [mut one, mut other] = connected_pair(None, 341, SETTINGS[0]);
    let write = Rma {
        write: true,
        remote: RemoteParts::new([]).unwrap(),
        buffer: Buffer::default(),
        peer: 0,
        data: Some(4711),
        context: AT_ONE,
        flags: OpFlags::Default,
    };
    one.engine.rma(&write).unwrap();
    other.step();
    one.step();
    assert_eq!(one.has_reported(AT_ONE), Some(Err(Errno::EPROTO)));
    assert!(other.reported.is_empty(), "{:?}", other.reported);
}
