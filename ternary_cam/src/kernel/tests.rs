// SPDX-License-Identifier: BSD-2-Clause
//! Tests that compare the result of every kernel with the definition of a match, entry by entry.

use super::{Available, Block, Kernel, LANES, ShortQueue, first, first_in_queue};
use crate::entry::{Entry, Key, Source};
use proptest::prelude::*;

/// Runs `check` with every kernel, and prints which ones this processor lacks.
fn for_each_kernel(mut check: impl FnMut(Available)) {
    for kernel in Kernel::ALL {
        match Available::new(kernel) {
            Some(available) => check(available),
            None => eprintln!("SKIPPED: this processor has no {kernel}"),
        }
    }
}

/// Returns the naive result: the index of the first live entry for which [`Entry::matches`] holds.
fn naive(blocks: &[Block], live: &[u64], key: &Key) -> Option<usize> {
    (0..blocks.len() * LANES).find(|&index| {
        let (block, lane) = (&blocks[index / LANES], index % LANES);
        let (bits, ignore, source) = block.get(lane);
        let entry = Entry { bits, ignore, source: Source(source), token: 0 };
        live[index / LANES] >> lane & 1 == 1 && entry.matches(key)
    })
}

#[test]
fn names_are_read_back() {
    for kernel in Kernel::ALL {
        assert_eq!(kernel.to_string().parse(), Ok(kernel));
    }
    assert_eq!(
        "sse9".parse::<Kernel>().unwrap_err().to_string(),
        "`sse9` is not a kernel: expected one of avx512, avx2, scalar"
    );
}

/// Tests every number of live entries from zero to two blocks and one entry: without a match, and
/// with the first match at every place. All entries after the first match also match.
#[test]
fn finds_the_first_of_every_length_and_place() {
    let key = Key { bits: 5, ignore: 0, source: Source::new(2) };
    for_each_kernel(|kernel| {
        for length in (0..=2 * LANES + 1).step_by(if cfg!(miri) { 43 } else { 1 }) {
            let mut blocks = vec![Block::EMPTY; 3];
            for index in 0..length {
                let (block, lane) = (&mut blocks[index / LANES], index % LANES);
                block.set(lane, 9, 0, 2);
            }
            let live: Vec<u64> = (0..3)
                .map(|block| match length.saturating_sub(block * LANES) {
                    0 => 0,
                    rest @ 1..LANES => (1 << rest) - 1,
                    _ => u64::MAX,
                })
                .collect();
            assert_eq!(first(kernel, &blocks, &live, &key), None, "{kernel:?} {length}");
            for place in (0..length).rev() {
                blocks[place / LANES].bits[place % LANES] = 5;
                assert_eq!(first(kernel, &blocks, &live, &key), Some(place), "{kernel:?} {length}");
            }
        }
    });
}

#[test]
fn dead_entries_never_match() {
    for_each_kernel(|kernel| {
        let blocks = vec![Block::EMPTY; 2];
        let key = Key { bits: 0, ignore: u64::MAX, source: Source::ANY };
        assert_eq!(first(kernel, &blocks, &[0, 0], &key), None);
        assert_eq!(first(kernel, &blocks, &[0, 1 << 63], &key), Some(127));
    });
}

fn word() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        Just(u64::MAX),
        0..4_u64,
        (0..64_u32).prop_map(|bit| 1 << bit),
        any::<u64>()
    ]
}

fn source() -> impl Strategy<Value = u32> {
    prop_oneof![0..3_u32, Just(u32::MAX), Just(1 << 31)]
}

proptest! {
    #[test]
    fn agrees_with_the_definition(
        entries in prop::collection::vec((word(), word(), source()), 0..2 * LANES),
        live in any::<[u64; 2]>(),
        bits in word(), ignore in word(), from in source(),
    ) {
        let mut blocks = vec![Block::EMPTY; 2];
        for (index, &(bits, ignore, source)) in entries.iter().enumerate() {
            let (block, lane) = (&mut blocks[index / LANES], index % LANES);
            block.set(lane, bits, ignore, source);
        }
        let key = Key { bits, ignore, source: Source(from) };
        let expected = naive(&blocks, &live, &key);
        for_each_kernel(|kernel| {
            assert_eq!(first(kernel, &blocks, &live, &key), expected, "{kernel:?}");
        });
        // The vector kernels compare few live entries one by one.
        let few = live[0] & live[1] & live[0].rotate_left(1) & live[1].rotate_left(7);
        for live in [live[0], few] {
            let expected = naive(&blocks, &[live, 0], &key).map(|lane| 100 + lane as u16);
            let ids = std::array::from_fn(|lane| 100 + lane as u16);
            let queue = ShortQueue { block: blocks[0].clone(), ids, live };
            for_each_kernel(|kernel| {
                let found = first_in_queue(kernel, &queue, (bits, ignore, from), |id| id);
                assert_eq!(found, expected, "{kernel:?}");
            });
        }
    }
}
