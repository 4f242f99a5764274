// SPDX-License-Identifier: BSD-2-Clause
//! `auto`: the engine behind a table is chosen by what comes, and again when that changes. It is
//! in no paper.
//!
//! ```text
//! each element that goes to the host:        count it, how many are there, and its wildcards
//! each search on the host:                   count it, and its wildcards
//! every window of elements:                  best = what suits the window
//!     best is the engine that is there   ->  forget the other
//!     best was best for some windows     ->  make it, insert all elements, oldest first
//!
//! short, on average                          list
//! long, without wildcards                    hash
//! long, with wildcards                       packed: rank-array where most name their source,
//!                                                    else list
//!                                            linked: newmadeleine
//! ```
//!
//! A window has theta elements. Each move doubles the windows that the next one must wait for, so
//! that a program between two phases does not move all the time.
//!
//! Rejected: clocks. What is chosen would depend on what else the machine does, and a replay would
//! choose otherwise than the run.

use std::cell::Cell;

use super::{Location, Offload};
use crate::choice::Choice;
use crate::engine::{Engine, EngineConfig, HostEngine, Queue};
use crate::traffic::{Fields, Wildcards};
use crate::{Element, Key, Source};

/// Choices that are told.
const TOLD: usize = 64;
/// A choice waits for so many windows at most.
const LONGEST_PATIENCE: u32 = 256;
/// One wildcard in so many elements and searches is none.
const RARE: u64 = 1024;

/// What a window has.
#[derive(Clone, Debug, Default)]
struct Window {
    elements: u64,
    /// Elements that were on the host when each came, summed up.
    lengths: u64,
    /// Elements with a wildcard, and those from any source.
    wild: u64,
    any_source: u64,
    searches: Cell<u64>,
    wild_searches: Cell<u64>,
}

/// See the module.
pub(super) struct Chooser {
    /// Bits by which an exact pattern is known; none of them is ignored.
    named_by: u64,
    fields: Fields,
    queue: Queue,
    theta: u64,
    engine: HostEngine,
    window: Window,
    /// What the last windows would rather have, and how many they were.
    rather: Option<(HostEngine, u32)>,
    /// Windows that must agree before the next move.
    patience: u32,
    elements: u64,
    choices: Vec<Choice>,
}

impl Chooser {
    pub(super) fn new(config: &EngineConfig) -> Self {
        let fields = config.layout.fields();
        let Wildcards { told_by, any_source, .. } = fields.wildcards();
        Self {
            named_by: told_by | any_source,
            fields,
            queue: config.queue,
            theta: u64::from(config.theta.max(1)),
            engine: HostEngine::List,
            window: Window::default(),
            rather: None,
            patience: 1,
            elements: 0,
            choices: Vec::new(),
        }
    }

    fn is_wild(&self, key: &Key) -> bool {
        key.ignore & self.named_by != 0 || self.fields.source(key) == Source::ANY
    }

    /// Notes a search on the host.
    pub(super) fn note_search(&self, key: &Key) {
        let Window { searches, wild_searches, .. } = &self.window;
        searches.set(searches.get() + 1);
        wild_searches.set(wild_searches.get() + u64::from(self.is_wild(key)));
    }

    /// Notes an element that comes to the host, where there are so many; what to move to.
    fn note_element(&mut self, element: &Element, length: usize) -> Option<HostEngine> {
        let Element { bits, ignore, source, .. } = *element;
        let key = Key { bits, ignore, source };
        let wild = self.is_wild(&key);
        self.elements += 1;
        self.window.elements += 1;
        self.window.lengths += length as u64;
        self.window.wild += u64::from(wild);
        self.window.any_source += u64::from(self.fields.source(&key) == Source::ANY);
        if self.window.elements < self.theta { None } else { self.look_again() }
    }

    #[cold]
    fn look_again(&mut self) -> Option<HostEngine> {
        let window = std::mem::take(&mut self.window);
        let best = self.best(&window);
        if best == self.engine {
            self.rather = None;
            return None;
        }
        let windows = match self.rather {
            Some((rather, windows)) if rather == best => windows + 1,
            _ => 1,
        };
        self.rather = Some((best, windows));
        if windows < self.patience {
            return None;
        }
        self.rather = None;
        self.patience = (2 * self.patience).min(LONGEST_PATIENCE);
        self.engine = best;
        if self.choices.len() < TOLD {
            let engine = best.name().to_owned();
            self.choices.push(Choice { engine, after: self.elements - 1, why: window.tell() });
        }
        Some(best)
    }

    /// What suits a window.
    fn best(&self, window: &Window) -> HostEngine {
        let long = match self.queue {
            Queue::Packed => self.theta / 2,
            Queue::Linked => self.theta / 16,
        };
        if window.length() <= long {
            return HostEngine::List;
        }
        match (window.has_wildcards(), self.queue) {
            (false, _) => HostEngine::Hash,
            (true, Queue::Linked) => HostEngine::NewMadeleine,
            (true, Queue::Packed) if 2 * window.any_source < window.elements => {
                HostEngine::RankArray
            }
            (true, Queue::Packed) => HostEngine::List,
        }
    }

    pub(super) fn choices(&self) -> &[Choice] {
        &self.choices
    }
}

impl Window {
    /// Elements on the host, on average.
    fn length(&self) -> u64 {
        self.lengths / self.elements.max(1)
    }

    fn has_wildcards(&self) -> bool {
        self.wild * RARE > self.elements || self.wild_searches.get() * RARE > self.searches.get()
    }

    fn tell(&self) -> String {
        let Self { elements, wild, searches, wild_searches, .. } = self;
        let (searches, wild_searches) = (searches.get(), wild_searches.get());
        let length = self.length();
        format!(
            "{length} elements on the host on average; a wildcard in {wild} of {elements} elements \
             and {wild_searches} of {searches} searches"
        )
    }
}

impl Offload {
    /// Before an element goes to the host: moves what is there to another engine, if one suits
    /// what comes better.
    #[cold]
    pub(super) fn reconsider(&mut self, element: &Element) {
        let length = self.on_host();
        let Some(chooser) = &mut self.chooser else { return };
        if let Some(engine) = chooser.note_element(element, length) {
            self.move_to(engine);
        }
    }

    fn move_to(&mut self, engine: HostEngine) {
        let mut host = self.plan.make(engine).expect("the kernel was there before");
        let all: Vec<_> = self.host.iter().collect();
        for (token, age) in all {
            let Location::Host { handle, .. } = &mut self.locations[token as usize] else {
                unreachable!("the host's elements are on the host");
            };
            *handle = host.insert(self.host.element(*handle), age);
        }
        self.host = host;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{OffloadConfig, QueueCounters, TagLayout};

    /// θ for a short test.
    const THETA: u32 = 64;

    fn queue(queue: Queue) -> Offload {
        let layout = TagLayout::Mpich;
        let engine_config = EngineConfig { queue, layout, theta: THETA, ..Default::default() };
        let engine = HostEngine::Auto;
        Offload::new(&OffloadConfig { entries: 0, engine, engine_config, ..Default::default() })
            .unwrap()
    }

    fn element(token: u32, source: Source) -> Element {
        Element { bits: u64::from(token), ignore: 0, source, token }
    }

    /// So many elements at once, then searches that take them, the youngest first.
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
        for storage in Queue::ALL {
            let mut queue = queue(storage);
            play(&mut queue, 2, Source::new(1), 200);
            assert_eq!(engines(&queue.counters()), [""; 0], "short ones stay in the list");
            play(&mut queue, 10 * THETA, Source::new(1), 2);
            let counters = queue.counters();
            assert_eq!(engines(&counters), ["hash"], "{storage}");
            let first = &counters.choices[0];
            assert!(first.after >= 400 && first.why.contains("a wildcard in 0 of 64"), "{first:?}");
            play(&mut queue, 2, Source::new(1), 200);
            assert_eq!(engines(&queue.counters()), ["hash", "list"]);
            queue.counters().check().unwrap();
        }
    }

    #[test]
    fn wildcards_end_the_hash_table() {
        let mut queue = queue(Queue::Linked);
        play(&mut queue, 10 * THETA, Source::new(1), 1);
        play(&mut queue, 10 * THETA, Source::ANY, 1);
        assert_eq!(engines(&queue.counters()), ["hash", "newmadeleine"]);
    }

    #[test]
    fn each_move_waits_longer() {
        let mut queue = queue(Queue::Packed);
        for _ in 0..50 {
            play(&mut queue, 4 * THETA, Source::new(1), 1);
            play(&mut queue, 2, Source::new(1), 2 * THETA);
        }
        let moves = queue.counters().choices.len();
        assert!((2..10).contains(&moves), "{moves} moves in 100 phases");
    }
}
