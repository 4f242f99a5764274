// SPDX-License-Identifier: BSD-2-Clause
//! A test that runs random phases of operations on a table and on a naive list, and compares the
//! results. The structures of the table depend on operations long before, so some faults need
//! several phases to show.

use std::time::{Duration, Instant};

use crate::common::{Tested, kernels};
use ternary_cam::{Entry, Handle, Kernel, Key, Source};

/// Minimum number of tables. If `TCAM_SOAK_SECONDS` is set, the test continues with further tables
/// for this time.
const TABLES: u64 = if cfg!(miri) { 1 } else { 2000 };
/// Number of phases of each table.
const PHASES: usize = if cfg!(miri) { 4 } else { 40 };

/// Ignore bits of entries and keys.
const IGNORED: [u64; 9] = [0, 0xff, 0xf0, 0xf, 3, 0xff00, 0xffff, 0xf << 60, u64::MAX];

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % bound
    }

    fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// The entries that searches look for.
#[derive(Clone, Copy)]
enum Wanted {
    Any,
    /// One of this number of oldest entries.
    Oldest(usize),
    /// One of this number of youngest entries.
    Youngest(usize),
}

/// A mix of operations for some time; shares in percent.
struct Phase {
    /// Maximum number of entries; at this number, the table begins to shrink.
    most: usize,
    /// True if inserts and removals are mixed at random. Otherwise the table fills up to `most`
    /// entries, and then becomes empty.
    in_turn: bool,
    steps: usize,
    tags: usize,
    /// The lowest bit of the tag. In a table with few slots, the highest match bits do not affect
    /// the bucket.
    shift: u32,
    sources: usize,
    /// Ignore bits of the entries that `wild_entries` does not select.
    base: u64,
    /// Percentage of entries whose ignore bits are from `ignored`, and whose source may be any.
    wild_entries: usize,
    ignored: [u64; 2],
    /// Percentage of any-source keys.
    any_source: usize,
    /// Percentage of keys whose ignore bits are from `ignored_by_keys`.
    wild_keys: usize,
    ignored_by_keys: [u64; 3],
    /// Number of values of `ignored_by_keys` in use.
    kinds: usize,
    /// Percentage of keys that are drawn without looking at the entries, and may find nothing.
    misses: usize,
    /// Percentage of steps that begin with an additional search.
    looks: usize,
    wanted: Wanted,
    /// Percentage of removals that choose an entry at random and remove it by its handle, without a
    /// search.
    cancelled: usize,
}

impl Phase {
    fn draw(random: &mut Random, capacity: usize) -> Self {
        let sizes = [1, capacity.min(12), capacity.min(20), capacity / 2, capacity];
        Self {
            most: random.of(&sizes).max(1),
            in_turn: random.percent(60),
            steps: random.of(if cfg!(miri) { &[30, 60] } else { &[50, 300, 1500] }),
            tags: random.of(&[1, 2, 7, 300, 5000]),
            shift: random.of(&[0, 0, 0, 32, 58]),
            sources: random.of(&[1, 2, 9, 500]),
            base: random.of(&[0, 0, 0, 0xf << 60]),
            wild_entries: random.of(&[0, 0, 0, 1, 10, 50, 100]),
            ignored: [random.of(&IGNORED), random.of(&IGNORED)],
            any_source: random.of(&[0, 3, 50, 97, 100]),
            wild_keys: random.of(&[0, 5, 50, 100]),
            ignored_by_keys: [random.of(&IGNORED), random.of(&IGNORED), random.of(&IGNORED)],
            kinds: random.of(&[1, 2, 3]),
            misses: random.of(&[0, 10, 60]),
            looks: random.of(&[0, 20, 80]),
            wanted: random.of(&[Wanted::Any, Wanted::Any, Wanted::Oldest(3), Wanted::Youngest(6)]),
            cancelled: random.of(&[0, 0, 5, 50]),
        }
    }

    fn entry(&self, random: &mut Random, token: u32) -> Entry {
        let wild = random.percent(self.wild_entries);
        let any = wild && random.percent(50);
        let source = Source::new(random.below(self.sources) as u32);
        Entry {
            bits: (random.below(self.tags) as u64) << self.shift | (random.below(2) as u64) << 60,
            ignore: if wild { random.of(&self.ignored) } else { self.base },
            source: if any { Source::ANY } else { source },
            token,
        }
    }

    fn key(&self, random: &mut Random, entries: &[(Handle, Entry)]) -> Key {
        let ignored = self.ignored_by_keys[random.below(self.kinds)];
        let ignore = if random.percent(self.wild_keys) { ignored } else { 0 };
        let any = random.percent(self.any_source);
        let (bits, source) = if entries.is_empty() || random.percent(self.misses) {
            let source = random.below(2 * self.sources) as u32;
            ((random.below(2 * self.tags) as u64) << self.shift, Source::new(source))
        } else {
            let len = entries.len();
            let rank = match self.wanted {
                Wanted::Any => random.below(len),
                Wanted::Oldest(few) => random.below(len.min(few)),
                Wanted::Youngest(few) => len - 1 - random.below(len.min(few)),
            };
            let Entry { bits, ignore, source, .. } = entries[rank].1;
            let named = source.get().unwrap_or(random.below(self.sources) as u32);
            (bits ^ (random.below(1 << 16) as u64 & ignore), Source::new(named))
        };
        Key { bits, ignore, source: if any { Source::ANY } else { source } }
    }
}

/// A table, and the list that it must agree with.
struct Both<T> {
    table: T,
    naive: Vec<(Handle, Entry)>,
}

impl<T: Tested> Both<T> {
    /// Searches the table and the list, and compares the results. Returns the rank of the match in
    /// age order from 0; `None` if no entry matches.
    fn find(&self, key: &Key, why: &str) -> Option<usize> {
        let rank = self.naive.iter().position(|(_, entry)| entry.matches(key));
        let found = self.table.first_match(key).map(|hit| (hit.handle, hit.token));
        let expected = rank.map(|rank| (self.naive[rank].0, self.naive[rank].1.token));
        assert_eq!(found, expected, "{why}, {key:?}");
        rank
    }

    fn remove(&mut self, rank: usize) {
        let (handle, entry) = self.naive.remove(rank);
        assert_eq!(self.table.remove(handle), Some(entry));
        assert_eq!(self.table.remove(handle), None);
    }

    fn run(&mut self, phase: &Phase, random: &mut Random, token: &mut u32, why: &str) {
        let mut grows = true;
        for _ in 0..phase.steps {
            let len = self.naive.len();
            if len >= phase.most {
                grows = false;
            } else if phase.in_turn {
                grows = random.percent(50) || len <= phase.most / 4;
            } else if len == 0 {
                grows = true;
            }
            if random.percent(phase.looks) {
                self.find(&phase.key(random, &self.naive), why);
            }
            if grows {
                *token += 1;
                let entry = phase.entry(random, *token);
                self.naive.push((self.table.insert(entry).unwrap(), entry));
            } else if random.percent(phase.cancelled) {
                self.remove(random.below(len));
            } else if let Some(rank) = self.find(&phase.key(random, &self.naive), why) {
                self.remove(rank);
            }
        }
        assert!(self.table.iter().eq(self.naive.iter().copied()), "{why}");
        if let Some(&(handle, _)) = self.naive.last() {
            assert_eq!(self.table.depth(handle), self.naive.len(), "{why}");
        }
    }
}

pub(crate) fn phases_change_at_random<T: Tested>() {
    let seconds =
        std::env::var("TCAM_SOAK_SECONDS").map_or(0, |text| text.parse().expect("seconds"));
    let (start, soak) = (Instant::now(), Duration::from_secs(seconds));
    let kernels: Vec<Kernel> = kernels().collect();
    let mut seed = 0;
    while seed < TABLES || start.elapsed() < soak {
        seed += 1;
        let random = &mut Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let capacity = random.of(&[9, 40, 80, 150, 400, 1000]);
        let table = T::new(capacity, random.of(&kernels)).unwrap();
        let mut both = Both { table, naive: Vec::new() };
        let mut token = 0;
        for number in 0..PHASES {
            let phase = Phase::draw(random, capacity);
            both.run(&phase, random, &mut token, &format!("table {seed}, phase {number}"));
        }
    }
    eprintln!("{seed} tables in {:?}", start.elapsed());
}
