// SPDX-License-Identifier: BSD-2-Clause
//! PNP: queues of point-to-point elements, one for each partner and one for all other sources
//! (section 4.2 of Ghazimirsaeed, Grant, Afsahi 2019).
//!
//! ```text
//! insert(e):
//!   if e.source is a partner: its queue
//!   else: the shared queue of the last level, or base if there is no level
//!   if that shared queue has reached theta elements:
//!     partners = sources with more elements in it than the average source
//!     a new level: a queue for each of them, and a shared one for the others
//!
//! search(source):
//!   base; the shared queues of levels 0 to p, where p is the level at which the
//!   source became a partner (of all levels if it is no partner); its own queue
//! ```
//!
//! The search visits the elements of a source in age order, so the first match is the oldest.
//!
//! Details that the paper leaves open:
//! - *Elements of a source*: those in the shared queue when it reaches θ. They are counted only
//!   then, so insertions pay nothing for the count.
//! - *No source above the average*: no level is made. The next attempt follows when as many more
//!   elements have been added to the shared queue as it holds now (at least θ).
//! - *The cap*: k_P·sqrt(n) queues, including the shared ones of the levels. The sources with the
//!   most elements come first.
//! - *Any-source receives* have a separate queue, which every search for point-to-point elements
//!   visits; ages decide (`col_pnp`).

use super::{
    peers::Map,
    queue::{Best, Lookup, Queues},
};
use crate::Element;

/// A source with a dedicated queue.
struct Partner {
    queue: usize,
    /// Level at which the source became a partner.
    level: usize,
}

/// The point-to-point queues; see the module.
pub(super) struct Pnp {
    /// Length of a shared queue that starts a new level.
    theta: usize,
    partners: Map<u32, Partner>,
    /// Base, then the shared queue of each level.
    shared: Vec<usize>,
    /// Insertions into the last shared queue until partners are selected.
    patience: usize,
    dedicated: usize,
    /// Scratch memory for counting.
    counts: Map<u32, usize>,
}

impl Pnp {
    pub(super) fn new(theta: usize, queues: &mut impl Queues) -> Self {
        Self {
            theta,
            partners: Map::default(),
            shared: vec![queues.make(1)],
            patience: theta,
            dedicated: 0,
            counts: Map::default(),
        }
    }

    /// Returns the queue for a new element of `source`. Starts a new level first if the shared
    /// queue is long enough. `cap` is the maximum number of dedicated queues, and `source_of`
    /// returns the source of an element.
    pub(super) fn place(
        &mut self,
        source: u32,
        cap: usize,
        source_of: impl Fn(&Element) -> u32,
        queues: &mut impl Queues,
    ) -> usize {
        if let Some(partner) = self.partners.get(&source) {
            return partner.queue;
        }
        if self.patience == 0 && queues.len_of(self.last_shared()) >= self.theta {
            self.extract_partners(cap, source_of, queues);
            if let Some(partner) = self.partners.get(&source) {
                return partner.queue;
            }
        }
        self.patience = self.patience.saturating_sub(1);
        self.last_shared()
    }

    /// Number of queues made, without base.
    pub(super) fn dedicated(&self) -> usize {
        self.dedicated
    }

    /// Number of queues by level.
    pub(super) fn levels(&self) -> Vec<u64> {
        let mut levels = vec![1; self.shared.len() - 1];
        for partner in self.partners.values() {
            levels[partner.level] += 1;
        }
        levels
    }

    /// All queues, including base.
    pub(super) fn queues(&self) -> impl Iterator<Item = usize> + Clone + '_ {
        let own = self.partners.values().map(|partner| partner.queue);
        self.shared.iter().copied().chain(own)
    }

    fn last_shared(&self) -> usize {
        *self.shared.last().expect("the base queue always exists")
    }

    /// Starts a level, if any source qualifies as a partner.
    #[cold]
    fn extract_partners(
        &mut self,
        cap: usize,
        source_of: impl Fn(&Element) -> u32,
        queues: &mut impl Queues,
    ) {
        let last = self.last_shared();
        let total = queues.len_of(last);
        self.patience = total;
        // One queue of the level is the shared one.
        let room = cap.saturating_sub(self.dedicated + 1);
        if room == 0 {
            return;
        }
        self.counts.clear();
        for element in queues.elements(last) {
            *self.counts.entry(source_of(element)).or_default() += 1;
        }
        let sources = self.counts.len();
        let above = self.counts.iter().filter(|&(_, &count)| count * sources > total);
        let mut partners: Vec<_> = above.map(|(&source, &count)| (count, source)).collect();
        partners.sort_unstable_by_key(|&(count, source)| (std::cmp::Reverse(count), source));
        partners.truncate(room);
        if partners.is_empty() {
            return;
        }
        self.patience = self.theta;
        let level = self.shared.len() - 1;
        let first = queues.make(partners.len() + 1);
        self.dedicated += partners.len() + 1;
        self.shared.push(first);
        for (index, (_, source)) in partners.into_iter().enumerate() {
            self.partners.insert(source, Partner { queue: first + 1 + index, level });
        }
    }

    /// The older of `best` and the oldest match among the elements of `source`.
    pub(super) fn older_match<Q: Lookup>(
        &self,
        source: u32,
        queues: &Q,
        probe: &Q::Probe<'_>,
        best: Best,
    ) -> Best {
        let partner = self.partners.get(&source);
        // Base and the shared queues of the levels up to the partner's level.
        let shared = partner.map_or(self.shared.len(), |partner| partner.level + 2);
        let own = partner.map(|partner| partner.queue);
        for queue in self.shared[..shared].iter().copied().chain(own) {
            let found = queues.older_match(queue, probe, best);
            if found != best {
                return found;
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Source, engine::Linked};

    struct Harness {
        queues: Linked,
        pnp: Pnp,
        age: u64,
    }

    impl Harness {
        fn new(theta: usize) -> Self {
            let mut queues = Linked::default();
            let pnp = Pnp::new(theta, &mut queues);
            Self { queues, pnp, age: 0 }
        }

        fn insert(&mut self, cap: usize, sources: &[u32]) {
            for &source in sources {
                let of = |element: &Element| element.source.get().unwrap();
                let queue = self.pnp.place(source, cap, of, &mut self.queues);
                let bits = self.age;
                let element = Element { bits, ignore: 0, source: Source::new(source), token: 0 };
                self.queues.insert(queue, element, self.age);
                self.age += 1;
            }
        }

        fn partners(&self) -> Vec<(u32, usize)> {
            let partners = self.pnp.partners.iter();
            let mut partners: Vec<_> = partners.map(|(&source, p)| (source, p.level)).collect();
            partners.sort_unstable();
            partners
        }

        /// Checks that every element is found, by searches for its source only.
        fn check(&self, sources: &[u32]) {
            for (age, &source) in sources.iter().enumerate() {
                for other in 0..5 {
                    let source_key = Source::new(other);
                    let key = Key { bits: age as u64, ignore: 0, source: source_key };
                    let found = self.pnp.older_match(other, &self.queues, &&key, Best::NONE);
                    let found = self.queues.hit(found);
                    let expected = (other == source).then_some(age as u64);
                    assert_eq!(found.map(|hit| hit.age), expected);
                }
            }
        }
    }

    #[test]
    fn sources_above_the_average_become_partners_at_theta() {
        let mut harness = Harness::new(8);
        let mut sources = vec![0, 0, 0, 0, 1, 2, 3, 0];
        harness.insert(99, &sources);
        assert_eq!((harness.partners(), harness.pnp.dedicated), (vec![], 0), "not yet");
        harness.insert(99, &[0]);
        sources.push(0);
        assert_eq!((harness.partners(), harness.pnp.dedicated), (vec![(0, 0)], 2));
        assert_eq!(harness.queues.len_of(harness.pnp.partners[&0].queue), 1);
        harness.check(&sources);
    }

    #[test]
    fn the_shared_queue_of_a_level_starts_the_next_level() {
        let mut harness = Harness::new(4);
        let sources = [0, 0, 0, 1, 0, 1, 2, 1, 3, 1, 2, 3, 1, 0];
        harness.insert(99, &sources);
        assert_eq!((harness.partners(), harness.pnp.dedicated), (vec![(0, 0), (1, 1)], 4));
        harness.check(&sources);
    }

    #[test]
    fn there_are_never_more_queues_than_the_cap() {
        for (cap, partners, dedicated) in
            [(0, vec![], 0), (1, vec![], 0), (2, vec![(0, 0)], 2), (3, vec![(0, 0), (1, 0)], 3)]
        {
            let mut harness = Harness::new(8);
            let sources = [0, 0, 0, 0, 1, 1, 1, 2, 3, 2, 3, 0, 1, 0, 2, 3, 2, 2, 3, 3, 3];
            harness.insert(cap, &sources);
            assert_eq!((harness.partners(), harness.pnp.dedicated), (partners, dedicated));
            harness.check(&sources);
        }
    }

    #[test]
    fn equal_sources_make_no_level() {
        let mut harness = Harness::new(4);
        let sources = [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3];
        harness.insert(99, &sources);
        assert_eq!((harness.partners(), harness.pnp.dedicated), (vec![], 0));
        harness.check(&sources);
    }
}
