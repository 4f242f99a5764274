// SPDX-License-Identifier: BSD-2-Clause
//! The streams of operations, with their expected results. A pair is the insert of an entry and the
//! search that takes the entry.

use crate::matcher::Matcher;
use ternary_cam::{Entry, Key, Source};

/// Lowest bit of the context id in the match bits.
const CONTEXT: u32 = 32;
/// Match bits of the tag: those below the context id.
const TAG: u64 = (1 << CONTEXT) - 1;
/// Protocol bits, which every receive of MPICH and Open MPI ignores.
const BASE: u64 = 0xf << 60;
/// Tag bit that only standing entries have. No pair takes these entries.
const STANDING: u64 = 1 << 24;
/// Pairs per round of the streams with standing entries.
const TAIL_PAIRS: usize = 64;

/// The operations of a round on the entries and keys of a [`Stream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Insert every entry, then take an entry with every key.
    Batch,
    /// With the standing entries in place: insert one entry and take it, and so on.
    Tail,
    /// With the standing entries in place: search every key (without a match).
    Miss,
}

/// A stream: its pairs and their expected results.
pub(crate) struct Stream {
    pub(crate) name: &'static str,
    pub(crate) shape: Shape,
    /// True if the keys, not the entries, may have wildcards.
    pub(crate) unexpected: bool,
    /// Standing entries, which are never taken.
    pub(crate) standing: Vec<Entry>,
    /// Entries of the pairs, in insertion order.
    pub(crate) entries: Vec<Entry>,
    /// Keys of the pairs, in the order of the searches, each with the token that it must find.
    pub(crate) keys: Vec<(Key, Option<u32>)>,
}

/// Wildcards of an entry (for posted receives) or of a key (for unexpected messages).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wild {
    None,
    AnySource,
    AnyTag,
    Both,
}

/// Orders in which a batch is taken.
#[derive(Clone, Copy)]
enum Order {
    Fifo,
    Reverse,
    Random,
}

pub(crate) const NAMES: &[&str] = &[
    "reverse",
    "random",
    "fifo",
    "standing-tail",
    "base-bits",
    "any-source-100%",
    "wild-10%+10%",
    "wild-mixed-4",
    "standing-wild-tail",
    "sources-1024",
    "same-key",
    "miss",
    "miss-wild",
    "umq-exact",
    "umq-any-source",
    "umq-any-tag",
    "umq-any-both",
    "umq-wild-10%+10%",
    "umq-mixed-4",
    "ignore-all-differ",
];

/// Returns the stream of this name with `depth` entries.
pub(crate) fn make(name: &'static str, depth: usize) -> Stream {
    use Order::{Fifo, Random, Reverse};
    use Wild::{AnySource, AnyTag, Both};
    let none = |_| Wild::None;
    let tenths = |i: usize| match i % 10 {
        3 => AnySource,
        7 => AnyTag,
        _ => Wild::None,
    };
    let quarters = |i: usize| [Wild::None, AnySource, AnyTag, Both][i % 4];
    match name {
        "reverse" => posted(name, depth, none, Reverse),
        "random" => posted(name, depth, none, Random),
        "fifo" => posted(name, depth, none, Fifo),
        "base-bits" => {
            let ignore = |i: usize| Entry { ignore: BASE, ..exact(i as u64, 1, i) };
            batch(name, false, (0..depth).map(ignore).collect(), Reverse, message)
        }
        "any-source-100%" => posted(name, depth, |_| AnySource, Reverse),
        "wild-10%+10%" => posted(name, depth, tenths, Random),
        "wild-mixed-4" => posted(name, depth, quarters, Random),
        "standing-tail" => tail(name, depth, none),
        "standing-wild-tail" => tail(name, depth, quarters),
        "sources-1024" => {
            let exact = |i: usize| exact((i / 1024) as u64, (i % 1024) as u32, i);
            batch(name, false, (0..depth).map(exact).collect(), Random, |e| key(e, Wild::None))
        }
        "same-key" => {
            let entries = (0..depth).map(|i| exact(5, 1, i)).collect();
            batch(name, false, entries, Fifo, |e| key(e, Wild::None))
        }
        "miss" => miss(name, depth, none),
        "miss-wild" => miss(name, depth, quarters),
        "umq-exact" => unexpected(name, depth, none, Random),
        "umq-any-source" => unexpected(name, depth, |_| AnySource, Reverse),
        "umq-any-tag" => unexpected(name, depth, |_| AnyTag, Random),
        "umq-any-both" => unexpected(name, depth, |_| Both, Random),
        "umq-wild-10%+10%" => unexpected(name, depth, tenths, Random),
        "umq-mixed-4" => unexpected(name, depth, quarters, Random),
        "ignore-all-differ" => {
            let differ = |i: usize| Entry { ignore: (i as u64 + 1) & TAG, ..exact(0, 1, i) };
            let entries =
                (0..depth).map(|i| Entry { bits: (i as u64) << CONTEXT, ..differ(i) }).collect();
            batch(name, false, entries, Random, |e| Key {
                bits: e.bits,
                ignore: 0,
                source: e.source,
            })
        }
        _ => unreachable!("{name} is in NAMES only"),
    }
}

fn exact(bits: u64, source: u32, token: usize) -> Entry {
    Entry { bits, ignore: 0, source: Source::new(source), token: token as u32 }
}

/// Returns a posted receive that only its own message matches. Tags differ; an any-tag receive has
/// a source that no other receive names, and a receive with both wildcards has a separate context.
fn receive(i: usize, wild: Wild) -> Entry {
    let (tag, of) = (i as u64, i as u32);
    match wild {
        Wild::None => exact(tag, 1, i),
        Wild::AnySource => Entry { source: Source::ANY, ..exact(tag, 1, i) },
        Wild::AnyTag => Entry { ignore: TAG, ..exact(0, 16 + of, i) },
        Wild::Both => {
            Entry { ignore: TAG, source: Source::ANY, ..exact((i as u64 + 1) << CONTEXT, 1, i) }
        }
    }
}

/// Returns the message for a receive made by [`receive`].
fn message(entry: &Entry) -> Key {
    let tag = u64::from(entry.token);
    Key {
        bits: entry.bits | (tag & entry.ignore),
        ignore: 0,
        source: Source::new(entry.source.get().unwrap_or(1)),
    }
}

/// Returns the key with these wildcards that takes an unexpected message.
fn key(entry: &Entry, wild: Wild) -> Key {
    let any_source = matches!(wild, Wild::AnySource | Wild::Both);
    let any_tag = matches!(wild, Wild::AnyTag | Wild::Both);
    Key {
        bits: if any_tag { entry.bits & !TAG } else { entry.bits },
        ignore: if any_tag { TAG } else { 0 },
        source: if any_source { Source::ANY } else { entry.source },
    }
}

fn posted(name: &'static str, depth: usize, wild: impl Fn(usize) -> Wild, order: Order) -> Stream {
    batch(name, false, (0..depth).map(|i| receive(i, wild(i))).collect(), order, message)
}

/// Makes a stream of messages from 64 sources. Messages that are taken with any tag come from 64
/// other sources, and messages that are taken with both wildcards are in a separate context.
fn unexpected(
    name: &'static str,
    depth: usize,
    wild: impl Fn(usize) -> Wild,
    order: Order,
) -> Stream {
    let message = |i: usize| match wild(i) {
        Wild::None | Wild::AnySource => exact(i as u64, 1 + (i % 64) as u32, i),
        Wild::AnyTag => exact(i as u64, 65 + (i % 64) as u32, i),
        Wild::Both => exact(1 << CONTEXT | i as u64, 1 + (i % 64) as u32, i),
    };
    let entries = (0..depth).map(message).collect();
    batch(name, true, entries, order, |e| key(e, wild(e.token as usize)))
}

fn batch(
    name: &'static str,
    unexpected: bool,
    entries: Vec<Entry>,
    order: Order,
    key: impl Fn(&Entry) -> Key,
) -> Stream {
    let mut taken = entries.clone();
    match order {
        Order::Fifo => {}
        Order::Reverse => taken.reverse(),
        Order::Random => shuffle(&mut taken),
    }
    let mut left = Naive(entries.clone());
    let keys = taken
        .iter()
        .map(|entry| {
            let key = key(entry);
            let token = left.take(&key);
            assert!(token.is_some(), "{name}: every key has its entry");
            (key, token)
        })
        .collect();
    Stream { name, shape: Shape::Batch, unexpected, standing: Vec::new(), entries, keys }
}

/// Returns `depth` standing receives that match no key of the pairs: receives without ignore bits
/// have tags above those of the pairs.
fn standing(depth: usize, wild: impl Fn(usize) -> Wild) -> Vec<Entry> {
    let other_tag = |entry: Entry| match entry.ignore {
        0 => Entry { bits: entry.bits | STANDING, ..entry },
        _ => entry,
    };
    (0..depth).map(|i| other_tag(receive(i, wild(i)))).collect()
}

fn tail(name: &'static str, depth: usize, wild: impl Fn(usize) -> Wild) -> Stream {
    let entries: Vec<_> = (0..TAIL_PAIRS).map(|i| exact(i as u64, 1, depth + i)).collect();
    let keys = entries.iter().map(|e| (key(e, Wild::None), Some(e.token))).collect();
    let standing = standing(depth, wild);
    Stream { name, shape: Shape::Tail, unexpected: false, standing, entries, keys }
}

fn miss(name: &'static str, depth: usize, wild: impl Fn(usize) -> Wild) -> Stream {
    let keys = (0..TAIL_PAIRS).map(|i| (key(&exact(i as u64, 1, 0), Wild::None), None)).collect();
    let standing = standing(depth, wild);
    Stream { name, shape: Shape::Miss, unexpected: false, standing, entries: Vec::new(), keys }
}

/// A list, correct by inspection, that supplies the expected results.
struct Naive(Vec<Entry>);

impl Naive {
    fn take(&mut self, key: &Key) -> Option<u32> {
        let rank = self.0.iter().position(|entry| entry.matches(key))?;
        Some(self.0.remove(rank).token)
    }
}

/// Shuffles entries (Fisher-Yates) with a fixed seed, so that the order is the same in every run
/// and for every competitor.
fn shuffle(entries: &mut [Entry]) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for i in (1..entries.len()).rev() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        entries.swap(i, (state % (i as u64 + 1)) as usize);
    }
}

impl Stream {
    /// Returns the number of pairs (or searches) in one round.
    pub(crate) fn pairs(&self) -> usize {
        self.keys.len()
    }

    /// Puts the standing entries in place.
    pub(crate) fn prepare(&self, matcher: &mut impl Matcher) {
        for &entry in &self.standing {
            matcher.insert(entry);
        }
    }

    /// Runs one round; checks every result.
    #[inline(never)]
    pub(crate) fn round(&self, matcher: &mut impl Matcher) {
        match self.shape {
            Shape::Batch => {
                for &entry in &self.entries {
                    matcher.insert(entry);
                }
                for (key, token) in &self.keys {
                    assert_eq!(matcher.take(key), *token, "{}", self.name);
                }
            }
            Shape::Tail => {
                for (&entry, (key, token)) in self.entries.iter().zip(&self.keys) {
                    matcher.insert(entry);
                    assert_eq!(matcher.take(key), *token, "{}", self.name);
                }
            }
            Shape::Miss => {
                for (key, token) in &self.keys {
                    assert_eq!(matcher.find(key), *token, "{}", self.name);
                }
            }
        }
    }
}
