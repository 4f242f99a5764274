// SPDX-License-Identifier: BSD-2-Clause
//! Converts a receive of the application to one of the device.

use ffi::{
    Errno, Result, flags,
    ops::ep::{OpFlags, Recv},
};
use matching::{Key, Source};
use nic::message::{MultiRecv, Receive};

use crate::{attr, device::carried::RecvOp};

/// `FI_TRANSMIT_COMPLETE` allows a receive to be reported before all threads can see its bytes.
const RECV_FLAGS: u64 = attr::RX_OP_FLAGS | flags::TRANSMIT_COMPLETE | flags::MORE | flags::RECV;

/// Smallest rest of a multi-receive buffer, unless the application sets another.
pub(crate) const MIN_MULTI_RECV: usize = 64;

/// Settings that a receive takes from the object it is posted to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecvDefaults {
    pub(crate) op_flags: u64,
    pub(crate) min_multi_recv: usize,
    /// Deferred work that the receive is; see [`crate::engine::Engine::work`].
    pub(crate) work: u32,
    pub(crate) tagged_multi: bool,
}

/// The receive in the form for the device.
#[inline(always)]
pub(crate) fn receive_of(
    op: &Recv,
    defaults: RecvDefaults,
    source: Source,
) -> Result<Receive<RecvOp>> {
    let op_flags = match op.flags {
        OpFlags::Given(given) => {
            ffi::object::only(given, RECV_FLAGS)?;
            given
        }
        OpFlags::Default => defaults.op_flags,
        OpFlags::Inject => return Err(Errno::EINVAL),
    };
    let tagged = op.tag.is_some();
    let wanted = op_flags & flags::MULTI_RECV != 0;
    let multi = wanted && (!tagged || defaults.tagged_multi);
    if wanted && !multi && op.flags != OpFlags::Default {
        return Err(Errno::EBADFLAGS);
    }
    let (bits, ignore) = op.tag.unwrap_or((0, 0));
    let len = op.buffer.len() as u64;
    Ok(Receive {
        key: Key { bits, ignore, source },
        len,
        multi: multi.then_some(MultiRecv { len, used: 0, min: defaults.min_multi_recv as u64 }),
        non_contiguous: op.buffer.is_scattered(),
        data: RecvOp {
            buffer: op.buffer.clone(),
            context: op.context,
            report: op_flags & flags::COMPLETION != 0,
            multi,
            work: defaults.work,
        },
    })
}
