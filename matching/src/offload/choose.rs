// SPDX-License-Identifier: BSD-2-Clause
//! The host engine `auto`: chooses one of the other engines by the traffic, and chooses again when
//! the traffic changes. No paper describes this engine.
//!
//! ```text
//! each element that goes to the host:        count it, the queue length, its wildcards and source
//! each search on the host:                   count it, and its wildcards
//! every window of elements:                  best = the engine that suits the window
//!     best is the engine in use          ->  forget the candidate
//!     best was the same in the last few
//!     windows (their number: patience)   ->  make it, insert all elements, oldest first
//!
//! elements on the host, on average           packed                  linked
//! few                                        list                    list
//! more, no wildcards                         hash                    rank-array if sources have
//!                                                                    few each, else hash
//! more, with wildcards                       list                    rank-array if sources have
//!                                                                    few each, else newmadeleine
//! more, most from any source                 list                    list
//! many, with wildcards                       list if unexpected,     newmadeleine
//!                                            else rank-array
//! many posted, most from any source          newmadeleine            newmadeleine
//! ```
//!
//! With linked storage, the row *more, most from any source* also applies if most searches have a
//! wildcard. In this case, `rank-array` is not chosen.
//!
//! `Chooser::best` has the limits of *few*, *more* and *many*, which are fractions of theta
//! (`FI_TCAM_THETA`). A window has theta elements, or up to 16 theta if few searches reach the
//! host. Each move doubles the number of windows that must agree on the next move, so that a
//! program that alternates between two phases does not move all the time. Wildcards are the
//! exception. With `hash`, a search with a wildcard uses the list of all elements, and every search
//! visits the elements with wildcards. So after a window with wildcards, `hash` is left at once,
//! and it is not chosen again for [`MEMORY`] windows.
//!
//! Rejected: clocks. The choice would depend on the load of the machine, and a replay would choose
//! differently from the run.

use std::cell::Cell;

use crate::choice::Choice;
use crate::engine::{EngineConfig, HostEngine, HostStorage, Role};
use crate::traffic::{FieldWildcards, Fields};
use crate::{Element, Key, Source};

/// Maximum number of choices that are recorded.
const MOST_CHOICES: usize = 64;
/// Maximum number of windows that must agree before a move.
const LONGEST_PATIENCE: u32 = 256;
/// Ignore wildcards that are rarer than 1 in this many elements or searches.
const RARE: u64 = 1024;
/// Windows without wildcards after which the traffic counts as free of wildcards.
const MEMORY: u32 = 32;
/// Number of windows with too few searches after which an engine is chosen all the same.
const UNSEARCHED: u64 = 16;
/// Elements per source up to which a queue per source is as fast as a hash table.
const FEW: u64 = 5;

/// The counts of a window.
#[derive(Clone, Debug, Default)]
struct Window {
    elements: u64,
    /// Sum of the queue lengths on the host at each element's arrival.
    lengths: u64,
    /// Elements with a wildcard.
    wild: u64,
    /// Elements without a source.
    any_source: u64,
    /// Sources of the elements, by the lowest bits of their numbers.
    sources: SourceMask,
    searches: Cell<u64>,
    wild_searches: Cell<u64>,
}

/// A set of sources, with one bit for all numbers that are equal modulo 4096.
#[derive(Clone, Debug, Default)]
struct SourceMask([[u64; 8]; 8]);

impl SourceMask {
    #[inline]
    fn note(&mut self, source: u32) {
        self.0.as_flattened_mut()[source as usize / 64 % 64] |= 1 << (source % 64);
    }

    fn count(&self) -> u64 {
        self.0.as_flattened().iter().map(|word| u64::from(word.count_ones())).sum()
    }
}

/// The state of `auto`; see the module.
pub(super) struct Chooser {
    fields: Fields,
    /// A pattern that ignores any of these match bits has a wildcard.
    wildcard_bits: u64,
    /// The match bits contain the source.
    source_in_bits: bool,
    config: EngineConfig,
    engine: HostEngine,
    window: Window,
    /// Number of elements at which the window ends.
    window_end: u64,
    /// Windows since the last wildcards, at most [`MEMORY`].
    windows_without_wildcards: u32,
    /// The best engine of the last windows, and the number of these windows.
    candidate: Option<(HostEngine, u32)>,
    /// Windows that must agree before the next move.
    patience: u32,
    elements: u64,
    choices: Vec<Choice>,
}

impl Chooser {
    pub(super) fn new(config: &EngineConfig) -> Self {
        let fields = config.layout.fields();
        let FieldWildcards { identity_bits, any_source, .. } = fields.wildcards();
        Self {
            fields,
            wildcard_bits: identity_bits | any_source,
            source_in_bits: any_source != 0,
            config: EngineConfig { theta: config.theta.max(1), ..*config },
            engine: HostEngine::List,
            window: Window::default(),
            window_end: u64::from(config.theta.max(1)),
            windows_without_wildcards: MEMORY,
            candidate: None,
            patience: 1,
            elements: 0,
            choices: Vec::new(),
        }
    }

    #[inline]
    fn is_wild(&self, ignore: u64, source: Source) -> bool {
        ignore & self.wildcard_bits != 0 || !self.source_in_bits && source == Source::ANY
    }

    /// Counts a search on the host.
    #[inline]
    pub(super) fn note_search(&self, key: &Key) {
        let Window { searches, wild_searches, .. } = &self.window;
        searches.set(searches.get() + 1);
        if self.is_wild(key.ignore, key.source) {
            wild_searches.set(wild_searches.get() + 1);
        }
    }

    /// Counts an element that goes to the host, which holds `length` elements. Returns the engine
    /// to move to, or `None` to keep the current one.
    #[inline]
    pub(super) fn note_element(&mut self, element: &Element, length: usize) -> Option<HostEngine> {
        let Element { bits, ignore, source, .. } = *element;
        let wild = self.is_wild(ignore, source);
        let source = match self.source_in_bits {
            false => source,
            true => self.fields.source(&Key { bits, ignore, source }),
        };
        let window = &mut self.window;
        window.elements += 1;
        window.lengths += length as u64;
        window.wild += u64::from(wild);
        match source.get() {
            Some(source) => window.sources.note(source),
            None => window.any_source += 1,
        }
        if window.elements < self.window_end { None } else { self.end_window() }
    }

    #[cold]
    fn end_window(&mut self) -> Option<HostEngine> {
        let Window { elements, ref searches, .. } = self.window;
        let theta = u64::from(self.config.theta);
        // With few searches, neither their kind nor the usual queue length is known.
        if searches.get() * 4 < elements && elements < UNSEARCHED * theta {
            self.window_end = elements + theta;
            return None;
        }
        self.window_end = theta;
        let window = std::mem::take(&mut self.window);
        self.elements += window.elements;
        self.windows_without_wildcards = if window.has_wildcards() {
            0
        } else {
            (self.windows_without_wildcards + 1).min(MEMORY)
        };
        let best = self.best(&window);
        if best == self.engine {
            self.candidate = None;
            return None;
        }
        let windows = match self.candidate {
            Some((engine, windows)) if engine == best => windows + 1,
            _ => 1,
        };
        self.candidate = Some((best, windows));
        let at_once = self.engine == HostEngine::Hash && self.windows_without_wildcards == 0;
        if windows < self.patience && !at_once {
            return None;
        }
        self.candidate = None;
        self.patience = (2 * self.patience).min(LONGEST_PATIENCE);
        self.engine = best;
        if self.choices.len() < MOST_CHOICES {
            let engine = best.name().to_owned();
            self.choices.push(Choice { engine, after: self.elements - 1, why: window.describe() });
        }
        Some(best)
    }

    /// The engine that suits a window.
    fn best(&self, window: &Window) -> HostEngine {
        let EngineConfig { storage, role, theta, .. } = self.config;
        let (length, theta) = (window.length(), u64::from(theta));
        let wild = self.windows_without_wildcards < MEMORY;
        let from_any = 2 * window.any_source > window.elements;
        let any = 2 * window.wild_searches.get() > window.searches.get();
        let few_each = length <= FEW * window.sources.count();
        match storage {
            HostStorage::Packed if length <= theta / 2 => HostEngine::List,
            HostStorage::Packed if !wild => HostEngine::Hash,
            HostStorage::Packed if role == Role::Unexpected => HostEngine::List,
            HostStorage::Packed if length <= 3 * theta / 2 => HostEngine::List,
            HostStorage::Packed if from_any => HostEngine::NewMadeleine,
            HostStorage::Packed => HostEngine::RankArray,
            HostStorage::Linked if length <= theta / 128 => HostEngine::List,
            HostStorage::Linked if (from_any || any) && length <= theta / 16 => HostEngine::List,
            HostStorage::Linked if !wild && few_each => HostEngine::RankArray,
            HostStorage::Linked if !wild => HostEngine::Hash,
            HostStorage::Linked if few_each && !any && length <= theta / 4 => HostEngine::RankArray,
            HostStorage::Linked => HostEngine::NewMadeleine,
        }
    }

    pub(super) fn choices(&self) -> &[Choice] {
        &self.choices
    }
}

impl Window {
    /// Average number of elements on the host.
    fn length(&self) -> u64 {
        self.lengths / self.elements.max(1)
    }

    fn has_wildcards(&self) -> bool {
        self.wild * RARE > self.elements || self.wild_searches.get() * RARE > self.searches.get()
    }

    fn describe(&self) -> String {
        let Self { elements, wild, searches, wild_searches, .. } = self;
        let (searches, wild_searches) = (searches.get(), wild_searches.get());
        let (length, sources) = (self.length(), self.sources.count());
        format!(
            "{length} elements on the host on average, of {sources} sources; a wildcard in {wild} \
             of {elements} elements and {wild_searches} of {searches} searches"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Offload, OffloadConfig, QueueCounters, TagLayout};

    /// A small θ keeps the test short.
    const THETA: u32 = 64;

    fn queue(storage: HostStorage) -> Offload {
        let layout = TagLayout::Mpich;
        let engine_config = EngineConfig { storage, layout, theta: THETA, ..Default::default() };
        let engine = HostEngine::Auto;
        Offload::new(&OffloadConfig { entries: 0, engine, engine_config, ..Default::default() })
            .unwrap()
    }

    fn element(token: u32, source: Source) -> Element {
        Element { bits: u64::from(token), ignore: 0, source, token }
    }

    /// Inserts `elements` elements and takes them by searches, youngest first; all this `times`
    /// times.
    fn play(queue: &mut Offload, elements: u32, source: Source, times: u32) {
        for _ in 0..times {
            for token in 0..elements {
                queue.insert(element(token, source));
            }
            for token in (0..elements).rev() {
                let key = Key { bits: u64::from(token), ignore: 0, source: Source::new(1) };
                assert_eq!(queue.search(&key).unwrap().token, token);
                assert!(queue.remove_matched(token));
            }
        }
    }

    fn engines(counters: &QueueCounters) -> Vec<&str> {
        counters.choices.iter().map(|choice| choice.engine.as_str()).collect()
    }

    #[test]
    fn long_queues_move_to_the_hash_table_and_short_ones_back() {
        for &storage in HostStorage::ALL {
            let mut queue = queue(storage);
            play(&mut queue, 2, Source::new(1), 200);
            assert_eq!(engines(&queue.counters()), [""; 0], "short ones stay in the list");
            play(&mut queue, 10 * THETA, Source::new(1), 2);
            let counters = queue.counters();
            assert_eq!(engines(&counters), ["hash"], "{storage}");
            let first = &counters.choices[0];
            assert!(first.after >= 400 && first.why.contains("a wildcard in 0 of "), "{first:?}");
            play(&mut queue, 2, Source::new(1), 200);
            assert_eq!(engines(&queue.counters()), ["hash", "list"]);
            queue.counters().check().unwrap();
        }
    }

    #[test]
    fn wildcards_end_the_hash_table() {
        let mut queue = queue(HostStorage::Linked);
        play(&mut queue, 10 * THETA, Source::new(1), 3);
        play(&mut queue, 10 * THETA, Source::ANY, 1);
        assert_eq!(engines(&queue.counters()), ["hash", "newmadeleine"]);
    }

    /// A receive that is held back searches the queue at each retry. A recording contains only the
    /// first attempt.
    #[test]
    fn looks_that_are_no_operation_do_not_count() {
        let mut queue = queue(HostStorage::Linked);
        queue.insert(element(1, Source::new(1)));
        let any = Key { bits: 7, ignore: u64::MAX, source: Source::ANY };
        assert!(queue.find(&any).is_some());
        let searches = |queue: &Offload| queue.chooser.as_ref().unwrap().window.searches.get();
        assert_eq!(searches(&queue), 0);
        queue.search(&any);
        assert_eq!(searches(&queue), 1);
    }

    #[test]
    fn each_move_waits_longer() {
        let mut queue = queue(HostStorage::Packed);
        for _ in 0..50 {
            play(&mut queue, 4 * THETA, Source::new(1), 1);
            play(&mut queue, 2, Source::new(1), 2 * THETA);
        }
        let moves = queue.counters().choices.len();
        assert!((2..10).contains(&moves), "{moves} moves in 100 phases");
    }
}
