// SPDX-License-Identifier: BSD-2-Clause
//! Pools: shares, threads that compete for entries, members that die at any point, and overwritten
//! words.

use std::thread;

use proptest::prelude::*;

use super::*;

const ALL: Share = Share { reserved: 0, max: MAX_ENTRIES };

fn held(member: &LocalMember) -> u32 {
    let word = member.pool.ledger.words.member(member.number).load(Ordering::Relaxed);
    word as u32 - 1
}

#[test]
fn a_state_fits_its_word() {
    let state =
        PoolState { taken: 65_536, promised: 65_535, member: 1023, after: 65_537, version: 7 };
    assert_eq!(PoolState::unpack(state.pack()), state);
    assert_eq!(PoolState::unpack(0).pack(), 0);
}

#[test]
fn more_than_half_of_a_pool_counts_as_half_taken() {
    for entries in [4, 5] {
        let pool = LocalPool::new(entries);
        let member = pool.join(ALL).unwrap();
        let half: Vec<_> =
            (0..4).map(|_| (member.take().unwrap(), member.is_half_taken()).1).collect();
        assert_eq!(half, [false, false, true, true]);
    }
}

#[test]
fn reserves_are_kept_and_shares_are_limited() {
    let pool = LocalPool::new(10);
    let greedy = pool.join(Share { reserved: 0, max: 8 }).unwrap();
    let modest = pool.join(Share { reserved: 3, max: 4 }).unwrap();
    for _ in 0..7 {
        assert_eq!(greedy.take(), Ok(()));
    }
    assert_eq!(greedy.take(), Err(Refusal::Empty), "three are reserved");
    for _ in 0..3 {
        assert_eq!(modest.take(), Ok(()));
    }
    assert_eq!(modest.take(), Err(Refusal::Empty));
    greedy.give_back();
    assert_eq!(modest.take(), Ok(()), "more than its reserve");
    assert_eq!(modest.take(), Err(Refusal::Share));
    modest.give_back();
    assert_eq!(greedy.take(), Ok(()));
    assert_eq!(pool.taken(), 10);
    drop(modest);
    assert_eq!(pool.taken(), 7);
    assert_eq!(greedy.take(), Ok(()));
    assert_eq!(greedy.take(), Err(Refusal::Share));
    drop(greedy);
    assert_eq!((pool.taken(), pool.ledger.read().unwrap().1.promised), (0, 0));
}

#[test]
fn a_reserve_taken_by_others_before_is_there_once_they_give_back() {
    let pool = LocalPool::new(4);
    let early = pool.join(ALL).unwrap();
    while early.take().is_ok() {}
    let late = pool.join(Share { reserved: 2, max: 2 }).unwrap();
    assert_eq!(late.take(), Err(Refusal::Empty));
    early.give_back();
    assert_eq!(early.take(), Err(Refusal::Empty), "promised");
    assert_eq!((late.take(), late.take()), (Ok(()), Err(Refusal::Empty)));
    early.give_back();
    assert_eq!(late.take(), Ok(()));
    assert_eq!(pool.taken(), 4);
    let overbooked = Overbooked { reserved: 3 };
    assert_eq!(pool.join(Share { reserved: 3, max: 3 }).unwrap_err(), overbooked);
}

#[test]
fn threads_never_hold_more_than_there_is() {
    let pool = LocalPool::new(50);
    let members: Vec<_> =
        (0..4).map(|n| pool.join(Share { reserved: n, max: 30 }).unwrap()).collect();
    thread::scope(|scope| {
        for (seed, member) in members.iter().enumerate() {
            scope.spawn(move || {
                let (mut mine, mut random) = (0, seed as u64 + 1);
                for _ in 0..if cfg!(miri) { 200 } else { 20_000 } {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    if random >> 62 < 2 && mine > 0 {
                        member.give_back();
                        mine -= 1;
                    } else if member.take().is_ok() {
                        mine += 1;
                    }
                    assert!(mine <= 30);
                }
                assert_eq!(held(member), mine);
            });
        }
    });
    assert!(pool.taken() <= 50);
    assert_eq!(pool.taken(), members.iter().map(held).sum());
}

/// Takes an entry as a member that is killed right after its change, before it writes its word.
fn die_after_taking(pool: &LocalPool, number: u16) {
    let ledger = &pool.ledger;
    let (seen, state) = ledger.read().unwrap();
    ledger.finish(seen, state).unwrap();
    let after = ledger.words.member(number).load(Ordering::Relaxed) as u32 + 1;
    let next = PoolState { taken: state.taken + 1, member: number, after, version: 1, ..state };
    ledger.words.state.store(next.pack(), Ordering::Relaxed);
}

#[test]
fn the_next_member_writes_down_the_last_change_of_a_dead_one() {
    let pool = LocalPool::new(9);
    let (dead, other) = (pool.join(ALL).unwrap(), pool.join(ALL).unwrap());
    assert_eq!((dead.take(), other.take()), (Ok(()), Ok(())));
    die_after_taking(&pool, dead.number);
    assert_eq!((held(&dead), pool.taken()), (1, 3));
    assert_eq!(other.take(), Ok(()));
    assert_eq!((held(&dead), pool.taken()), (2, 4));
    die_after_taking(&pool, dead.number);
    pool.ledger.leave(dead.number, ALL).unwrap();
    assert_eq!(pool.taken(), 2, "the remaining entries are the other's");
    pool.ledger.leave(dead.number, ALL).unwrap();
    assert_eq!(pool.taken(), 2, "once");
}

#[test]
fn a_state_that_comes_back_loses_no_change_of_the_living() {
    let pool = LocalPool::new(9);
    let (ledger, one) = (&pool.ledger, pool.join(ALL).unwrap());
    let other = pool.join(ALL).unwrap();
    assert_eq!(one.take(), Ok(()));
    // Another member has read this state and is stopped before it changes it.
    let seen = ledger.read().unwrap();
    for _ in 0..(1 << VERSION_BITS) / 2 - 1 {
        one.give_back();
        assert_eq!(one.take(), Ok(()));
    }
    one.give_back();
    // The state recurs, and its number of entries is not in the member's word yet.
    ledger.words.state.store(seen.0, Ordering::Relaxed);
    assert_eq!(held(&one), 0);
    let PoolState { taken, version, .. } = seen.1;
    let next = PoolState {
        taken: taken + 1,
        member: other.number,
        after: 2,
        version: version.wrapping_add(1),
        ..seen.1
    };
    assert!(ledger.words.state.replace(seen.0, next.pack()));
    ledger.write_down(other.number, next.after).unwrap();
    ledger.write_down(one.number, seen.1.after).unwrap();
    one.give_back();
    assert_eq!((held(&one), held(&other), pool.taken()), (0, 1, 1));
}

proptest! {
    #[test]
    fn any_words_are_tolerated(words in prop::collection::vec(any::<u64>(), 3), member in 0..2_u16) {
        let pool = LocalPool::new(100);
        pool.ledger.words.state.store(words[0], Ordering::Relaxed);
        for (word, value) in pool.ledger.words.members.iter().zip(&words[1..]) {
            word.store(*value, Ordering::Relaxed);
        }
        let share = Share { reserved: 5, max: 10 };
        for _ in 0..3 {
            let _ = pool.ledger.take(member, share);
            let _ = pool.ledger.give_back(member, share);
            let _ = pool.ledger.join(member, share);
            let _ = pool.ledger.leave(member, share);
        }
    }
}
