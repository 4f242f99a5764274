// SPDX-License-Identifier: BSD-2-Clause
//! Tests of the pool with loom: two members take and return entries while a third member dies. The
//! numbers of entries must add up in every interleaving with up to three preemptions.

use loom::{
    model::Builder,
    sync::{Arc, atomic::AtomicU64 as Number},
    thread,
};

use super::*;

const ENTRIES: u32 = 2;
const SHARE: Share = Share { reserved: 0, max: ENTRIES };

impl Word for Number {
    fn get(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    fn replace(&self, current: u64, new: u64) -> bool {
        self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

struct Three {
    state: Number,
    members: [Number; 3],
}

impl PoolWords for Three {
    type Word = Number;

    fn state(&self) -> &Number {
        &self.state
    }

    fn member(&self, number: u16) -> &Number {
        &self.members[usize::from(number) % 3]
    }
}

impl Ledger<Three> {
    fn held(&self, number: u16) -> u32 {
        (self.words.member(number).get() as u32).saturating_sub(1)
    }

    /// Takes an entry for a member that dies before it writes the change to its word. If another
    /// member changes the state first, this member dies without a change.
    fn take_and_die(&self, number: u16) {
        let (seen, state) = self.read().unwrap();
        self.finish(seen, state).unwrap();
        let after = self.words.member(number).get() as u32 + 1;
        let version = state.version.wrapping_add(1);
        let next = PoolState { taken: state.taken + 1, member: number, after, version, ..state };
        if next.taken <= self.entries {
            self.words.state().replace(seen, next.pack());
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "every interleaving takes hours there")]
fn accounts_add_up_wherever_a_member_dies() {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(|| {
        let number = || Number::new(0);
        let words = Three { state: number(), members: [number(), number(), number()] };
        let ledger = Arc::new(Ledger::new(words, ENTRIES));
        (0..3).for_each(|member| ledger.join(member, SHARE).unwrap());
        let dead = {
            let ledger = Arc::clone(&ledger);
            thread::spawn(move || ledger.take_and_die(2))
        };
        let other = {
            let ledger = Arc::clone(&ledger);
            thread::spawn(move || {
                if ledger.take(1, SHARE).is_ok() {
                    ledger.give_back(1, SHARE).unwrap();
                }
            })
        };
        let taken = u32::from(ledger.take(0, SHARE).is_ok());
        other.join().unwrap();
        dead.join().unwrap();
        // A member that is alive returns the entries of the dead one.
        ledger.leave(2, SHARE).unwrap();
        assert_eq!((ledger.held(0), ledger.held(1), ledger.held(2)), (taken, 0, 0));
        assert_eq!(ledger.taken(), Ok(taken));
    });
}
