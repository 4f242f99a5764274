// SPDX-License-Identifier: BSD-2-Clause
//! The counts of a rank, and its two queues.

use nic::lengths::Lengths;
use nic::report::ContextCounters;

/// One rank and its tagged messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rank {
    /// Number from the launcher; otherwise a number that no other rank has.
    pub(crate) number: u32,
    pub(crate) tagged: ContextCounters,
    /// Lengths of its queues. With several endpoints, those of the endpoint whose queues became
    /// longest.
    pub(crate) lengths: Lengths,
    /// Time when that endpoint was opened, in nanoseconds since 1970.
    pub(crate) start_ns: u64,
    /// Sum of the high-water marks of both queues of all its endpoints.
    pub(crate) marks: u64,
}

impl Rank {
    /// Returns the largest number of elements of either queue at once.
    pub(crate) fn need(&self) -> u64 {
        self.tagged.prq.high_water.max(self.tagged.umq.high_water)
    }

    /// Returns the number of entries that the searches of both queues compared.
    pub(crate) fn compared(&self) -> u64 {
        QueueKind::BOTH.iter().fold(0, |sum, queue| sum.saturating_add(queue.compared(self)))
    }
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QueueKind {
    Prq,
    Umq,
}

impl QueueKind {
    pub(crate) const BOTH: [Self; 2] = [Self::Prq, Self::Umq];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Prq => "PRQ",
            Self::Umq => "UMQ",
        }
    }

    pub(crate) fn long_name(self) -> &'static str {
        match self {
            Self::Prq => "posted receives (PRQ)",
            Self::Umq => "unexpected messages (UMQ)",
        }
    }

    pub(crate) fn of(self, counters: &ContextCounters) -> &matching::QueueCounters {
        match self {
            Self::Prq => &counters.prq,
            Self::Umq => &counters.umq,
        }
    }

    /// Returns the lengths of this queue over time: in the table, and on the host.
    pub(crate) fn lengths(self, lengths: &Lengths) -> [&[u64]; 2] {
        match self {
            Self::Prq => [&lengths.prq_table, &lengths.prq_host],
            Self::Umq => [&lengths.umq_table, &lengths.umq_host],
        }
    }

    /// Returns the number of elements that the searches of a rank in this queue traversed on the
    /// host.
    pub(crate) fn traversed(self, rank: &Rank) -> u64 {
        self.of(&rank.tagged).traversals.entries
    }

    /// Returns the number of entries that the searches of a rank in this queue compared.
    pub(crate) fn compared(self, rank: &Rank) -> u64 {
        let depth = &self.of(&rank.tagged).search_depth;
        depth.hit_entries.saturating_add(depth.miss_entries)
    }
}
