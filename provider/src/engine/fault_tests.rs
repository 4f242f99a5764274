// SPDX-License-Identifier: BSD-2-Clause
//! Tests of operations between two endpoints over the loopback transport, with a fault in each
//! phase, and of a read with an incomplete answer.

use std::{collections::BTreeSet, sync::Arc};

use channel::{
    contract::Settings,
    testing::{
        self, Writer,
        loopback::{Fault, Phase},
    },
    wire::{Flags, Header, Kind},
};
use ffi::Errno;

use super::pairs::*;

/// The faults that are injected in a phase.
fn faults(phase: Phase) -> &'static [Fault] {
    match phase {
        Phase::Open => &[],
        Phase::Send(_) => &[Fault::Die, Fault::Full, Fault::NoBuffer, Fault::Damage],
        Phase::Copy => &[Fault::Die, Fault::Refuse, Fault::Fail(Errno::EIO)],
    }
}

#[test]
fn a_fault_in_any_phase_ends_in_an_error_or_in_the_right_bytes() {
    let mut seen = Vec::new();
    for (copies, what) in [false, true].into_iter().flat_map(|it| ALL.map(|what| (it, what))) {
        for &len in lengths(what).iter().filter(|&&len| len <= 300_000) {
            let operation = Planned { what, len, copies, fault: None };
            for (at, phases) in operation.run().into_iter().enumerate() {
                let last = |phase| phases.iter().filter(|it| **it == phase).count() as u32 - 1;
                for &phase in &phases {
                    for &fault in faults(phase) {
                        let first = !seen.contains(&(operation.clone(), at, phase, fault));
                        if first {
                            seen.push((operation.clone(), at, phase, fault));
                            for after in [0, last(phase)] {
                                let fault = Some((at, phase, after, fault));
                                Planned { fault, ..operation.clone() }.run();
                            }
                        }
                    }
                }
            }
        }
    }
    // Not expected: `Buffered`, which only shared memory sends, and `Failed`, which only a fault
    // causes.
    let phases: BTreeSet<String> = seen.iter().map(|(_, _, at, _)| format!("{at:?}")).collect();
    let sends =
        ["Answer", "Atomic", "Chunk", "Done", "Inline", "Pull", "Read", "Rendezvous", "Write"];
    let expected = sends.iter().map(|kind| format!("Send({kind})")).chain(["Copy".into()]);
    assert_eq!(phases, expected.collect());
}

/// An operation, and the fault that is injected into it: the index of the end, the phase, the
/// number of successes of this phase before the fault, and the kind of the fault.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Planned {
    what: TestOp,
    len: usize,
    copies: bool,
    fault: Option<(usize, Phase, u32, Fault)>,
}

impl Planned {
    /// Runs the operation. Returns the phases that each end went through.
    fn run(&self) -> [Vec<Phase>; 2] {
        let fault = self.fault.map(|(.., fault)| fault);
        let settings = Settings { checks: fault == Some(Fault::Damage), copies: self.copies };
        let net = Arc::default();
        let mut nodes = connected_pair(Some(&net), 321, settings);
        let ends = nodes.each_ref().map(|node| Arc::clone(node.end.as_ref().unwrap()));
        if let Some((at, phase, after, fault)) = self.fault {
            ends[at].inject(phase, after, fault);
        }
        ends.iter().for_each(|end| drop(end.phases()));
        let [one, other] = &mut nodes;
        let operation = Operation::prepare(self.what, self.len, other);
        starts(&operation, one, other);
        let mut steps = 0;
        while !self.is_over(&operation, one, other) {
            assert!(steps < STEPS, "the operation does not end: {self:?}");
            other.step();
            one.step();
            steps += 1;
        }
        // Lets the last answers arrive.
        for _ in 0..4 {
            other.step();
            one.step();
        }
        let phases = ends.each_ref().map(|end| end.phases());
        assert!(ends.iter().all(|end| end.has_failed()), "the fault was not reached: {self:?}");
        self.check(&operation, one, other);
        phases
    }

    fn is_over(&self, operation: &Operation, one: &TestNode, other: &TestNode) -> bool {
        let received = !operation.is_received() || other.has_reported(AT_OTHER).is_some();
        let is_damaged = [one, other].iter().any(|node| node.has_failed_with(Errno::ECRC));
        let is_dead = one.is_dead() || other.is_dead();
        received && one.has_reported(AT_ONE).is_some() || is_dead || is_damaged
    }

    fn check(&self, operation: &Operation, one: &mut TestNode, other: &mut TestNode) {
        let [at_one, at_other] = [one.has_reported(AT_ONE), other.has_reported(AT_OTHER)];
        match self.fault.map(|(.., fault)| fault) {
            None | Some(Fault::Full | Fault::NoBuffer | Fault::Refuse) => {
                assert_eq!(at_one, Some(Ok(())), "{self:?}");
                operation.check(self);
            }
            Some(Fault::Die) if one.is_dead() => {
                testing::die(&one.own);
                survive(other, AT_OTHER, operation, self);
            }
            Some(Fault::Die) => {
                testing::die(&other.own);
                survive(one, AT_ONE, operation, self);
            }
            Some(Fault::Damage) => {
                let noticed = [one, other].iter().any(|node| node.has_failed_with(Errno::ECRC));
                assert!(noticed, "the damage was not noticed: {self:?}");
            }
            Some(Fault::Fail(_)) => {
                assert!(matches!(at_one, Some(Err(_))), "{self:?}");
                assert!(!operation.is_received() || matches!(at_other, Some(Err(_))), "{self:?}");
            }
        }
    }
}

#[test]
fn a_peer_that_cannot_be_opened_now_is_opened_later() {
    let net = Arc::default();
    let [mut one, mut other] = pair(Some(&net), 331, SETTINGS[0]);
    let operation = Operation::prepare(TestOp::Send, 100, &mut other);
    one.end.as_ref().unwrap().inject(Phase::Open, 0, Fault::Fail(Errno::new(libc::EMFILE)));
    assert_eq!(operation.start(&mut one), Err(Errno::EAGAIN));
    other.end.as_ref().unwrap().inject(Phase::Open, 0, Fault::Fail(Errno::new(libc::EMFILE)));
    operation.start(&mut one).unwrap();
    other.step();
    assert_eq!(other.has_reported(AT_OTHER), None, "its slot waits");
    other.step();
    assert_eq!(other.has_reported(AT_OTHER), Some(Ok(())));
    operation.check(&"met later");
}

#[test]
fn a_read_fails_if_its_answer_has_not_all_its_bytes() {
    let [mut one, mut other] = connected_pair(None, 355, SETTINGS[0]);
    let operation = Operation::prepare(TestOp::Read, 300, &mut other);
    operation.start(&mut one).unwrap();
    let (kind, flags, op) = (Kind::Answer, Flags::empty(), one.engine.tx.ops.number_at(0));
    let answer = Header { kind, flags, peer: 0, count: 0, bits: 0, data: 0, len: 300, op };
    assert!(Writer::new(&one.own).push(&other.own, &answer));
    one.step();
    assert_eq!(one.has_reported(AT_ONE), Some(Err(Errno::EPROTO)));
}
