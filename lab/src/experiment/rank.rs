// SPDX-License-Identifier: BSD-2-Clause
//! What a rank counted, and its two queues.

use matching::SearchDepth;
use nic::lengths::Lengths;
use nic::report::ContextCounters;

/// One rank and its tagged messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rank {
    /// As the launcher told it; otherwise a number that no other has.
    pub(crate) number: u32,
    pub(crate) tagged: ContextCounters,
    /// Lengths of its queues; with several endpoints, those of the one whose queues
    /// became longest.
    pub(crate) lengths: Lengths,
    /// When that was opened, nanoseconds since 1970, if it is known.
    pub(crate) start_ns: Option<u64>,
}

impl Rank {
    /// Most elements of either queue at once.
    pub(crate) fn need(&self) -> u64 {
        self.tagged.prq.high_water.max(self.tagged.umq.high_water)
    }

    /// Entries that its searches compared.
    pub(crate) fn compared(&self) -> u64 {
        Queue::BOTH.iter().map(|queue| queue.compared(self)).sum()
    }

    /// The same where it was counted: a search that finds something compares that.
    pub(crate) fn counted_compared(&self) -> Option<u64> {
        let depths = Queue::BOTH.map(|queue| &queue.of(&self.tagged).search_depth);
        let counted = |depth: &&SearchDepth| depth.hit.total() == 0 || depth.hit_entries > 0;
        depths.iter().all(counted).then(|| self.compared())
    }
}

/// One of the two queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Queue {
    Prq,
    Umq,
}

impl Queue {
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

    /// Lengths over time: in the table, and on the host.
    pub(crate) fn lengths(self, lengths: &Lengths) -> [&[u64]; 2] {
        match self {
            Self::Prq => [&lengths.prq_table, &lengths.prq_host],
            Self::Umq => [&lengths.umq_table, &lengths.umq_host],
        }
    }

    /// Elements that the searches of a rank traversed on the host.
    pub(crate) fn traversed(self, rank: &Rank) -> u64 {
        self.of(&rank.tagged).traversals.entries
    }

    /// Entries that the searches of a rank compared.
    pub(crate) fn compared(self, rank: &Rank) -> u64 {
        let depth = &self.of(&rank.tagged).search_depth;
        depth.hit_entries + depth.miss_entries
    }
}
