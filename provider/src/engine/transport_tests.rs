// SPDX-License-Identifier: BSD-2-Clause
//! Tests of operations between two endpoints over each transport, with all lengths, and with the
//! death of one endpoint after each step.

use std::{fmt::Debug, sync::Arc};

use channel::{contract::Settings, testing::loopback::Loopback};

use super::pairs::*;

#[test]
fn operations_of_all_lengths_bring_their_bytes() {
    for (net, settings) in transports().iter().flat_map(|net| SETTINGS.map(|it| (net, it))) {
        for what in ALL {
            let [mut one, mut other] = connected_pair(net.as_ref(), 301, settings);
            for &len in lengths(what) {
                let case = (net.is_some(), settings, what, len);
                let operation = Operation::prepare(what, len, &mut other);
                starts(&operation, &mut one, &mut other);
                let is_done = |one: &TestNode, other: &TestNode| {
                    let received =
                        !operation.is_received() || other.has_reported(AT_OTHER).is_some();
                    received && one.has_reported(AT_ONE).is_some()
                };
                let mut steps = 0;
                while !is_done(&one, &other) {
                    assert!(steps < STEPS, "the operation does not end: {case:?}");
                    other.step();
                    one.step();
                    steps += 1;
                }
                assert_eq!(one.has_reported(AT_ONE), Some(Ok(())), "{case:?}");
                operation.check(&case);
                for node in [&mut one, &mut other] {
                    node.step();
                    assert!(node.is_at_rest(), "{case:?}");
                    assert!(node.reported.iter().all(std::result::Result::is_ok));
                    node.reported.clear();
                }
                // The next operation registers another region.
                other.engine.domain.regions.remove(KEY);
            }
        }
    }
}

#[test]
fn a_death_after_any_step_ends_all_operations_at_the_dead_peer() {
    for (net, settings) in transports().iter().flat_map(|net| SETTINGS.map(|it| (net, it))) {
        for what in ALL {
            for &len in lengths(what).iter().filter(|&&len| len <= 300_000 && len != 207) {
                for other_dies in [false, true] {
                    for steps in 0.. {
                        let case = (net.is_some(), settings, what, len, other_dies, steps);
                        if !dies_after(steps, net.as_ref(), settings, what, len, other_dies, &case)
                        {
                            break;
                        }
                    }
                }
            }
        }
    }
}

/// Returns whether the operation was still in progress when one end died.
fn dies_after(
    steps: usize,
    net: Option<&Arc<Loopback>>,
    settings: Settings,
    what: TestOp,
    len: usize,
    other_dies: bool,
    case: &dyn Debug,
) -> bool {
    let [mut one, mut other] = connected_pair(net, 311, settings);
    let operation = Operation::prepare(what, len, &mut other);
    starts(&operation, &mut one, &mut other);
    for step in 0..steps {
        if step % 2 == 0 { other.step() } else { one.step() }
    }
    one.step();
    let is_over = one.has_reported(AT_ONE).is_some()
        && (!operation.is_received() || other.has_reported(AT_OTHER).is_some());
    let (dead, survivor, context) =
        if other_dies { (other, &mut one, AT_ONE) } else { (one, &mut other, AT_OTHER) };
    dead.die();
    survive(survivor, context, &operation, case);
    !is_over
}
