// SPDX-License-Identifier: BSD-2-Clause
//! Compares arrays that share pages with lists of their elements.

use proptest::prelude::*;
use ternary_cam::{Kernel, Search};

use super::super::page::UNDECIDED;
use super::*;

const ARRAYS: usize = 3;

/// Arrays that share places. For each array, the places and items of its elements, oldest first.
struct Harness {
    places: Places<u32>,
    arrays: [AgeArray; ARRAYS],
    expected: [Vec<(u32, u32)>; ARRAYS],
    next_item: u32,
}

/// The fingerprint of an item: one of a few.
fn print_of(item: u32) -> Fingerprint {
    let any_source = u64::from(item % 50 == 7).wrapping_neg();
    Fingerprint { tag: (item % 5) as u16, source: (item % 2) as u16, any_tag: 0, any_source }
}

fn agree(item: u32, key: Fingerprint) -> bool {
    let own = print_of(item);
    own.tag == key.tag && (own.source == key.source || own.any_source != 0)
}

/// Finds the first place in the way that suits the region of the array.
struct FirstOfArray<'s> {
    array: &'s AgeArray,
    places: &'s Places<u32>,
    key: Fingerprint,
}

impl Search for FirstOfArray<'_> {
    type Found = (u32, Option<u32>);

    #[inline(always)]
    fn run(self, compare: impl Compare) -> Self::Found {
        let Self { array, places, key } = self;
        let first = if array.is_short() {
            array.first_of_region::<true, _>(compare, key, places)
        } else if array.is_long() {
            array.first_of_pages(compare, key, places)
        } else {
            array.first_of_region::<false, _>(compare, key, places)
        };
        // Every other place is refused.
        let accept = |at: u32| places.item(at).copied().filter(|item| item % 4 != 1);
        (first, array.first_accepted(compare, key, places, accept))
    }
}

impl Harness {
    fn new() -> Self {
        Self {
            places: Places::new(u32::MAX),
            arrays: Default::default(),
            expected: Default::default(),
            next_item: 0,
        }
    }

    fn push(&mut self, of: usize) {
        if self.arrays[of].is_at_end() {
            self.close_up(of);
        }
        let item = self.next_item;
        self.next_item += 1;
        let at = self.arrays[of].push(print_of(item), item, &mut self.places);
        // The holes after the youngest element are used again, if they are in the page of the tail.
        let after = self.expected[of].last().map_or(self.arrays[of].start, |last| last.0 + 1);
        assert!(
            at == after || at > after && (after / PAGE < at / PAGE || at.is_multiple_of(PAGE)),
            "{at}"
        );
        self.expected[of].push((at, item));
    }

    fn close_up(&mut self, of: usize) {
        let Self { places, arrays, expected, .. } = self;
        let (array, expected) = (&mut arrays[of], &mut expected[of]);
        let length = array.end - array.start;
        let mut rank = 0;
        array.close_up(SMALLEST, places, |item, from, to| {
            assert_eq!((from, item), expected[rank]);
            expected[rank].0 = to;
            rank += 1;
        });
        assert_eq!(rank, expected.len());
        // A region of which more than a half is in use becomes twice as long.
        let doubles = length > 0 && expected.len() as u32 > length / 2;
        let expected_length = if doubles { 2 * length } else { length.max(SMALLEST) };
        assert_eq!(array.end - array.start, expected_length);
        let places = (array.start..).take(rank);
        assert!(expected.iter().map(|&(at, _)| at).eq(places));
    }

    fn remove(&mut self, of: usize, rank: usize) {
        let (at, _) = self.expected[of].remove(rank);
        let remaining = self.arrays[of].remove(at, at < PAGE, &mut self.places);
        let own = &self.expected[of];
        let page = |other: &(u32, u32)| other.0 / PAGE == at / PAGE;
        match remaining {
            Remaining::Empty => assert!(own.is_empty()),
            Remaining::SamePage => {
                assert!(!own.is_empty() && self.expected.iter().flatten().any(page));
            }
            Remaining::EmptyPage => {
                assert!(!own.is_empty() && !self.expected.iter().flatten().any(page));
                let (oldest, len) = (own[0].0, own.len() as u32);
                let array = &mut self.arrays[of];
                let is_sparse = array.note_empty_page(&self.places);
                assert_eq!(array.head / PAGE, oldest / PAGE);
                assert!(array.head == array.start || array.head.is_multiple_of(PAGE));
                let span = array.tail - array.head;
                assert_eq!(is_sparse, span > PAGE && span > 8 * len);
                if is_sparse {
                    self.close_up(of);
                }
            }
        }
    }

    fn check_regions(&self, most: usize) {
        let regions = self.arrays.iter().map(|array| (array.start, array.end));
        let mut regions: Vec<_> = regions.filter(|(start, end)| start < end).collect();
        regions.sort_unstable();
        assert!(regions.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{regions:?}");
        for (start, end) in regions {
            let length = end - start;
            assert!(length.is_power_of_two() && length >= SMALLEST);
            assert!(start.is_multiple_of(length.min(PAGE)) && end as usize <= self.places.len());
        }
        // Regions that are given back are used again. An array needs regions of fewer than 8 times
        // its elements in all: 4 times for its region, and as much for those that it left.
        assert!(self.places.len() <= 8 * most.max(PAGE as usize), "{}", self.places.len());
        let live: u32 = self.places.pages.iter().map(|page| page.live.count_ones()).sum();
        assert_eq!(live as usize, self.expected.iter().map(Vec::len).sum::<usize>());
    }

    fn check(&self, scanner: Scanner) {
        for (array, expected) in self.arrays.iter().zip(&self.expected) {
            let Self { places, .. } = self;
            assert_eq!(array.len as usize, expected.len());
            assert!(array.iter(places).eq(expected.iter().map(|&(_, item)| item)));
            assert!(array.span() as usize >= expected.len());
            assert_eq!(array.next(0, places), expected.first().map(|&(at, _)| at));
            for (rank, &(at, item)) in expected.iter().enumerate() {
                assert!(places.is_live(at) && array.ends_after(at.into()));
                assert_eq!(
                    (places.item(at), places.fingerprint(at)),
                    (Some(&item), print_of(item))
                );
                assert_eq!(array.rank(at, places), rank + 1);
                assert_eq!(array.next(at, places), Some(at));
                assert_eq!(array.next(at + 1, places), expected.get(rank + 1).map(|&(at, _)| at));
            }
            if let [(at, _)] = expected[..] {
                assert_eq!(array.only(places), at);
            }
            assert!(!array.ends_after(array.end.into()));
            let length = array.end - array.start;
            if length == 0 {
                continue;
            }
            assert_eq!((array.is_short(), array.is_long()), (length <= 16, length > PAGE));
            for key in (0..10).map(|item| Fingerprint { any_source: 0, ..print_of(item) }) {
                let (first, accepted) = scanner.run(FirstOfArray { array, places, key });
                let agrees = |&&(_, item): &&(u32, u32)| agree(item, key);
                let found = expected.iter().find(agrees).map_or(NO_PLACE, |&(at, _)| at);
                // Among several pages, a hole that agrees leaves the search undecided.
                assert!(first == found || array.is_long() && first == UNDECIDED);
                let mut items = expected.iter().filter(agrees).map(|&(_, item)| item);
                assert_eq!(accepted, items.find(|item| item % 4 != 1));
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Push(usize, usize),
    /// Removes elements: array, number, and which.
    Remove(usize, usize, Which),
}

#[derive(Clone, Copy, Debug)]
enum Which {
    Oldest,
    Youngest,
    Any(usize),
}

fn op() -> impl Strategy<Value = Op> {
    let which = prop_oneof![
        Just(Which::Oldest),
        Just(Which::Youngest),
        any::<usize>().prop_map(Which::Any)
    ];
    let number = || prop_oneof![6 => 1..9_usize, 2 => 8..70_usize, 1 => 100..300_usize];
    prop_oneof![
        (0..ARRAYS, number()).prop_map(|(of, number)| Op::Push(of, number)),
        (0..ARRAYS, number(), which).prop_map(|(of, number, which)| Op::Remove(of, number, which)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 200 }))]

    #[test]
    fn arrays_that_share_pages_behave_like_lists(ops in prop::collection::vec(op(), 0..40)) {
        let mut harness = Harness::new();
        let mut longest = [0; ARRAYS];
        for (op, kernel) in ops.iter().zip(Kernel::available().collect::<Vec<_>>().iter().cycle()) {
            match *op {
                Op::Push(of, number) => (0..number).for_each(|_| harness.push(of)),
                Op::Remove(of, number, which) => for step in 0..number {
                    let len = harness.expected[of].len();
                    let rank = match which {
                        _ if len == 0 => break,
                        Which::Oldest => 0,
                        Which::Youngest => len - 1,
                        Which::Any(start) => start.wrapping_add(step * 37) % len,
                    };
                    harness.remove(of, rank);
                },
            }
            for (longest, expected) in longest.iter_mut().zip(&harness.expected) {
                *longest = expected.len().max(*longest);
            }
            harness.check_regions(longest.iter().map(|longest| longest.next_power_of_two()).sum());
            harness.check(Scanner::new(*kernel).unwrap());
        }
    }
}

#[test]
fn the_last_array_grows_in_place() {
    let mut harness = Harness::new();
    (0..100).for_each(|_| harness.push(0));
    let start = harness.arrays[0].start;
    (0..400).for_each(|_| harness.push(0));
    assert_eq!((harness.arrays[0].start, harness.arrays[0].end), (start, start + 512));
    // A long array is behind it now, so it moves.
    (0..200).for_each(|_| harness.push(1));
    (0..20).for_each(|_| harness.push(0));
    assert_ne!(harness.arrays[0].start, start);
    harness.check(Scanner::new(Kernel::best()).unwrap());
}
