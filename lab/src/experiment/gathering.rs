// SPDX-License-Identifier: BSD-2-Clause
//! Adds up the reports of an experiment as they are read. It keeps the counts of each rank, and the
//! lengths over time of few ranks.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use nic::lengths::Lengths;
use nic::report::Report;

use super::rank::{Queue, Rank};
use crate::results::head::Head;
use crate::results::reports::{self, Endpoint};
use crate::results::summary::{Adding, NO_LIBFABRIC, Summary};

/// Number of ranks that a picture shows next to the one whose queue became longest.
pub(super) const OTHERS: usize = 7;
/// Number of ranks with lengths above which lengths that no picture shows are dropped.
const MANY: usize = 64;

/// Selects the data that are kept in addition to the counts of each rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The lengths that pictures show.
    #[default]
    Shown,
    /// The lengths of all ranks.
    Lengths,
    /// The lengths that pictures show, and the sources that added elements.
    Added,
}

/// The sources that added elements to the queues of an endpoint.
#[derive(Debug)]
pub(crate) struct Added {
    pub(crate) rank: Option<u32>,
    /// Number of all elements, and of those of each source.
    pub(crate) queues: [(u64, Vec<(u32, u64)>); 2],
}

/// Identifies a rank: true if the rank is unknown, its number or else that of its process, and the
/// host of that process.
type Who = (bool, u32, Arc<str>);

/// Adds reports up.
#[derive(Debug, Default)]
pub(super) struct Gathering {
    keep: Keep,
    adding: Adding,
    /// Ranks in the order in which they were read.
    ranks: Vec<Rank>,
    index: BTreeMap<Who, usize>,
    with_lengths: BTreeSet<Who>,
    added: Vec<Added>,
    /// The file of each endpoint's report; empty for a report from a draft or a trace.
    seen: BTreeMap<Endpoint, PathBuf>,
    differ: bool,
}

impl Gathering {
    pub(super) fn new(keep: Keep) -> Self {
        Self { keep, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    pub(super) fn has(&self, endpoint: &Endpoint) -> bool {
        self.seen.contains_key(endpoint)
    }

    pub(super) fn has_job(&self, job: Option<u64>) -> bool {
        job.is_some() && self.adding.heads().iter().any(|head| head.origin.job == job)
    }

    /// Adds a report once, even if a directory and a file in it are both named.
    pub(super) fn add(&mut self, path: &Path, mut report: Report) {
        match self.seen.entry(reports::endpoint(&report)) {
            Entry::Vacant(entry) => _ = entry.insert(path.to_owned()),
            Entry::Occupied(first) => {
                if reports::read_one(first.get()).is_ok_and(|first| first == report) {
                    return;
                }
                if !self.differ {
                    eprintln!(
                        "Process {} has two reports of one endpoint, which differ: of a run and \
                         its replay?",
                        report.pid
                    );
                }
                self.differ = true;
            }
        }
        self.adding.add(&report);
        let [prq, umq] = [&mut report.tagged.prq, &mut report.tagged.umq].map(|queue| {
            queue.choices.clear();
            (queue.inserts, std::mem::take(&mut queue.added))
        });
        if self.keep == Keep::Added {
            self.added.push(Added { rank: report.rank, queues: [prq, umq] });
        }
        let head = self.adding.heads().last().expect("a head was added");
        let (who, start_ns) = (who(head), start_of(head));
        let lengths = std::mem::take(&mut report.tagged.lengths);
        let need = report.tagged.prq.high_water.max(report.tagged.umq.high_water);
        let at = *self.index.entry(who.clone()).or_insert(self.ranks.len());
        match self.ranks.get_mut(at) {
            // A clone has no spare capacity, which saves much memory with many ranks.
            None => {
                let tagged = report.tagged.clone();
                self.ranks.push(Rank { number: 0, tagged, lengths, start_ns });
            }
            Some(rank) => {
                if rank.lengths.every == 0 || need > rank.need() {
                    (rank.lengths, rank.start_ns) = (lengths, start_ns);
                }
                rank.tagged.merge(&report.tagged);
            }
        }
        if self.keep != Keep::Lengths && !self.ranks[at].lengths.us.is_empty() {
            self.with_lengths.insert(who);
            if self.with_lengths.len() > MANY {
                self.drop_lengths();
            }
        }
    }

    /// Drops the lengths of ranks that no picture shows.
    fn drop_lengths(&mut self) {
        let mut shown = BTreeSet::new();
        for queue in Queue::BOTH {
            let mut all: Vec<_> = self.with_lengths.iter().collect();
            let rank = |who| &self.ranks[self.index[who]];
            all.sort_by_key(|who| std::cmp::Reverse(queue.of(&rank(who).tagged).high_water));
            shown.extend(all.into_iter().take(1 + OTHERS).cloned());
        }
        for who in self.with_lengths.difference(&shown) {
            self.ranks[self.index[who]].lengths = Lengths::default();
        }
        self.with_lengths = shown;
    }

    /// Sorts by rank. Reports are read in the order of their names.
    pub(super) fn sort(&mut self) {
        self.adding.sort();
    }

    /// Returns the sum, or `None` if no report was added.
    pub(super) fn sum(mut self) -> Option<Gathered> {
        self.drop_lengths();
        let (mut sum, heads) = self.adding.sum()?;
        if self.differ {
            sum.ranks.note_mixed();
        }
        let known = heads.iter().filter_map(|head| head.rank).max();
        let mut next = known.map_or(0, |most| most + 1);
        let mut ranks = self.ranks;
        let mut unknown = BTreeMap::new();
        for ((is_unknown, number, host), at) in self.index {
            ranks[at].number = number;
            if is_unknown {
                ranks[at].number = next;
                unknown.insert((number, host), next);
                next += 1;
            }
        }
        ranks.sort_unstable_by_key(|rank| rank.number);
        let number =
            |head: &Head| head.rank.unwrap_or_else(|| unknown[&(head.pid, Arc::clone(&head.host))]);
        let numbers = heads.iter().map(number).collect();
        Some(Gathered { sum, heads, numbers, ranks, added: self.added })
    }
}

/// Returns the time at which an endpoint was opened, in nanoseconds since 1970, if its report
/// contains it. Generated endpoints begin at 0.
pub(super) fn start_of(head: &Head) -> Option<u64> {
    Some(head.start_ns).filter(|&start| start > 0 || &*head.libfabric == NO_LIBFABRIC)
}

/// The sum of the reports, and the data that are kept of each.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) sum: Summary,
    pub(super) heads: Vec<Head>,
    /// Number of the rank of each head.
    pub(super) numbers: Vec<u32>,
    pub(super) ranks: Vec<Rank>,
    pub(super) added: Vec<Added>,
}

fn who(head: &Head) -> Who {
    match head.rank {
        Some(rank) => (false, rank, "".into()),
        None => (true, head.pid, Arc::clone(&head.host)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::reports::tests::sample;

    #[test]
    fn lengths_are_kept_of_the_ranks_that_pictures_show() {
        let gathered = |keep| {
            let mut gathering = Gathering::new(keep);
            for rank in 0..200 {
                let mut report = sample(rank, 8, u64::from(1 + rank * 7 % 100));
                report.tagged.lengths = Lengths { every: 1, us: vec![0], ..Lengths::default() };
                gathering.add(Path::new(""), report);
            }
            gathering.sum().unwrap()
        };
        let most = |of: &Rank| of.tagged.prq.high_water;
        let with = |keep| {
            let mut ranks = gathered(keep).ranks;
            ranks.retain(|rank| !rank.lengths.us.is_empty());
            ranks.iter().map(most).collect::<Vec<_>>()
        };
        assert_eq!(with(Keep::Lengths).len(), 200);
        let mut shown = with(Keep::Shown);
        shown.sort_unstable();
        assert!(shown.len() <= 2 * (1 + OTHERS), "{shown:?}");
        assert!(shown.ends_with(&[97, 97, 98, 98, 99, 99, 100, 100]), "{shown:?}");
    }
}
