// SPDX-License-Identifier: BSD-2-Clause
//! The counters of one queue, from which reports are made: the posted receive queue (PRQ) or the
//! unexpected message queue (UMQ).

mod block;
mod define;
mod histogram;
mod kinds;
mod searches;

use serde::{Deserialize, Serialize};

pub use block::{Block, BlockReasons};
pub use define::NamedCounter;
pub use histogram::{BUCKETS, Histogram};
pub use kinds::{ByKind, KindCounters};
pub use searches::{SearchDepth, Traversals};

use crate::counter_struct;
use crate::measured::MeasuredTime;
use crate::sums::sum;
use crate::timing::ModelledTime;

counter_struct! {
    /// Counters of one queue. Elements are posted receives (PRQ) or unexpected messages (UMQ);
    /// searches are made by arrivals (PRQ) or posts (UMQ).
    ///
    /// Invariants ([`QueueCounters::check`]):
    ///
    /// ```text
    /// searches = table_matches + host_matches + misses
    /// inserts  = spills + inserted in the table
    /// spills + onloads - promotions - (host_matches - host_kept) - host_cancels = host_occupancy
    /// inserts - spills - onloads + promotions - (table_matches - table_kept) - table_cancels
    ///                                                               = table_occupancy
    /// block reasons = spills
    /// dedicated queues = sum of the dedicated queues of all levels
    /// measured insertions, removals = counted insertions, removals (if anything was measured)
    /// collective + point-to-point = all, of inserts, searches, matches, misses and reasons
    /// ```
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct QueueCounters {
        /// Capacity of the table.
        most entries "entries of the table",
        /// Elements added to the queue.
        sum inserts "elements added",
        /// Counted searches.
        sum searches "searches",
        /// Searches answered by the table.
        sum table_matches "matched in the table",
        /// Searches answered by the host engine.
        sum host_matches "matched on the host",
        /// Number of searches that found nothing.
        sum misses "searches that found nothing",
        /// Table matches that left the element in place (multi-receive buffers).
        sum table_kept "matched in the table and kept",
        /// Host matches that left the element in place.
        sum host_kept "matched on the host and kept",
        /// Elements that went to the host when they were added; `block_reasons` has the reasons.
        sum spills "spilled to the host",
        /// Elements moved from the host to a table entry that became free.
        sum promotions "promoted from there",
        /// Elements moved from the table to the host when the context left its tables (`sticky`).
        sum onloads "moved to the host",
        /// Elements whose poster or sender was held back (`flow-control`).
        sum held_back "held back",
        /// Elements cancelled or dropped while in the table.
        sum table_cancels "cancelled in the table",
        /// Elements cancelled or dropped while on the host.
        sum host_cancels "cancelled on the host",
        /// Elements in the table now.
        sum table_occupancy "left in the table",
        /// Elements on the host now.
        sum host_occupancy "left on the host",
        /// Maximum number of elements in the table at once.
        most table_high_water "high-water mark, table",
        /// Maximum number of elements on the host at once.
        most host_high_water "high-water mark, host",
        /// Maximum number of elements in table and host together: the table size at which no
        /// element would have spilled.
        most high_water "high-water mark",
        /// Queues the host engine made for collective operations.
        most dedicated_collective "host queues, collective",
        /// Queues the host engine made for point-to-point partners.
        most dedicated_point_to_point "host queues, others",
        /// Elements on the host whose source no cluster names (`kmeans`).
        sum unclustered "in no cluster",
        ..
        /// Dedicated queues of both kinds by level, first level first.
        pub dedicated_levels: ByKind<Vec<u64>>,
        /// Sources that added elements to the queue, with their numbers of elements. Any-source
        /// elements are not attributed to a source. Empty in a sum, or if not requested.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        pub added: Vec<(u32, u64)>,
        /// Reasons for spills, each counted at its spill.
        pub block_reasons: BlockReasons,
        /// Counters by kind of traffic.
        pub kinds: ByKind<KindCounters>,
        /// Time charged by the timing model.
        pub modelled: ModelledTime,
        /// Measured time of operations; zero if not requested.
        pub measured: MeasuredTime,
        /// Search depths; empty if not requested.
        pub search_depth: SearchDepth,
        /// Traversals on the host; empty if not requested.
        pub traversals: Traversals,
    }
}

counter_struct! {
    /// A few counters that are cheap to read. The first page of a segment has them in this order
    /// (`host/src/live.rs`).
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Tallies {
        /// Entries of the table.
        most entries "entries of the table",
        /// Searches answered by the table.
        sum table_matches "matched in the table",
        /// Searches answered by the host engine.
        sum host_matches "matched on the host",
        /// Elements that went to the host when they were added.
        sum spills "spilled to the host",
        /// Elements moved from the host to the table.
        sum promotions "promoted from there",
        /// Elements in the table.
        sum table_occupancy "in the table",
        /// Elements on the host.
        sum host_occupancy "on the host",
        /// Maximum number of elements in table and host together.
        most high_water "high-water mark",
    }
}

impl QueueCounters {
    /// Checks that the counts add up (invariant 4 in docs/ARCHITECTURE.md).
    ///
    /// # Errors
    /// The first violated equation, with its values.
    pub fn check(&self) -> Result<(), String> {
        let equations = [
            (
                "searches = table_matches + host_matches + misses",
                i128::from(self.searches),
                sum(&[self.table_matches, self.host_matches, self.misses]),
            ),
            (
                "spills + onloads - promotions - (host_matches - host_kept) - host_cancels = host_occupancy",
                sum(&[self.spills, self.onloads])
                    - sum(&[self.promotions, self.host_matches, self.host_cancels])
                    + i128::from(self.host_kept),
                i128::from(self.host_occupancy),
            ),
            (
                "inserts - spills - onloads + promotions - (table_matches - table_kept) - table_cancels = table_occupancy",
                sum(&[self.inserts, self.promotions, self.table_kept])
                    - sum(&[self.spills, self.onloads, self.table_matches, self.table_cancels]),
                i128::from(self.table_occupancy),
            ),
            ("block reasons = spills", self.block_reasons.total(), i128::from(self.spills)),
        ];
        for (name, left, right) in equations {
            if left != right {
                return Err(format!("{name} does not hold: {left} against {right}"));
            }
        }
        for (name, levels, all) in [
            ("collective", &self.dedicated_levels.collective, self.dedicated_collective),
            (
                "point-to-point",
                &self.dedicated_levels.point_to_point,
                self.dedicated_point_to_point,
            ),
        ] {
            // Engines with a queue for each source have no levels.
            if !levels.is_empty() && sum(levels) != i128::from(all) {
                return Err(format!(
                    "{name}: levels with {levels:?} queues do not add up to {all} dedicated queues"
                ));
            }
        }
        let SearchDepth { hit, miss, .. } = &self.search_depth;
        let buckets = hit.counts.len().max(miss.counts.len());
        if buckets > BUCKETS {
            return Err(format!("a search depth has {buckets} of {BUCKETS} buckets"));
        }
        let Traversals { hit, miss, found, not_found, .. } = &self.traversals;
        let buckets = hit.counts.len().max(miss.counts.len());
        if buckets > BUCKETS {
            return Err(format!("traversals have {buckets} of {BUCKETS} buckets"));
        }
        for (profile, histogram) in [(found, hit), (not_found, miss)] {
            profile.check(histogram.total()).map_err(|why| format!("traversals: {why}"))?;
        }
        let counted = hit.total() > 0 || miss.total() > 0;
        // Traversals may not be requested. They also count peeks, which `host_matches` does not.
        if counted && hit.total() < self.host_matches {
            return Err(format!(
                "traversals of {} searches with a match are counted, but the host had {} matches",
                hit.total(),
                self.host_matches
            ));
        }
        // An element that moves between table and host may go to the host more than once.
        if i128::from(self.unclustered) > sum(&[self.spills, self.onloads]) {
            return Err(format!(
                "{} elements in no cluster are more than went to the host",
                self.unclustered
            ));
        }
        let added: i128 = self.added.iter().map(|(_, added)| i128::from(*added)).sum();
        if added > i128::from(self.inserts) {
            return Err(format!(
                "{added} elements are counted by source, but only {} were inserted",
                self.inserts
            ));
        }
        self.check_measured()?;
        self.check_kinds()
    }

    /// Checks that operations were measured either never or each time.
    fn check_measured(&self) -> Result<(), String> {
        let MeasuredTime { search, insert, remove, dedicate } = self.measured;
        if self.measured == MeasuredTime::default() {
            return Ok(());
        }
        let host_removals = sum(&[self.promotions, self.host_matches, self.host_cancels])
            - i128::from(self.host_kept);
        let table_removals = sum(&[self.table_matches, self.table_cancels, self.onloads])
            - i128::from(self.table_kept);
        let table_inserts = sum(&[self.inserts, self.promotions]) - i128::from(self.spills);
        for (name, measured, counted) in [
            ("insertions in the table", insert.table, table_inserts),
            ("insertions on the host", insert.host, sum(&[self.spills, self.onloads])),
            ("removals from the table", remove.table, table_removals),
            ("removals from the host", remove.host, host_removals),
        ] {
            if i128::from(measured.count) != counted {
                return Err(format!("{} of {counted} {name} were measured", measured.count));
            }
        }
        // Peeks are measured but not counted.
        let table_searches = if self.entries > 0 { self.searches } else { 0 };
        if search.table.count < table_searches
            || search.host.count < self.host_matches
            || dedicate.count > insert.host.count
        {
            return Err(format!(
                "{} of {table_searches} searches of the table and {} of at least {} on the host \
                 were measured, and {} of {} insertions there made queues",
                search.table.count,
                search.host.count,
                self.host_matches,
                dedicate.count,
                insert.host.count
            ));
        }
        Ok(())
    }

    /// Checks that the two kinds of traffic add up to the totals.
    fn check_kinds(&self) -> Result<(), String> {
        let KindCounters { inserts, searches, table_matches, host_matches, misses, block_reasons } =
            self.of_both_kinds();
        if (inserts, searches, table_matches, host_matches, misses)
            != (self.inserts, self.searches, self.table_matches, self.host_matches, self.misses)
        {
            return Err(format!(
                "collective + point-to-point = all does not hold: {inserts} against {} inserts, \
                 {searches} against {} searches, {table_matches} + {host_matches} against {} + {} \
                 matches, {misses} against {} misses",
                self.inserts, self.searches, self.table_matches, self.host_matches, self.misses
            ));
        }
        if block_reasons != self.block_reasons {
            return Err(format!(
                "block reasons: collective + point-to-point = all does not hold: \
                 {block_reasons:?} against {:?}",
                self.block_reasons
            ));
        }
        Ok(())
    }

    /// Sets the totals to the sums over both kinds, because the hot path counts by kind only.
    pub(crate) fn with_sums_of_kinds(self) -> Self {
        let KindCounters { inserts, searches, table_matches, host_matches, misses, block_reasons } =
            self.of_both_kinds();
        Self { inserts, searches, table_matches, host_matches, misses, block_reasons, ..self }
    }

    /// The sum of the counters of both kinds.
    fn of_both_kinds(&self) -> KindCounters {
        let mut sum = self.kinds.collective.clone();
        sum.merge(&self.kinds.point_to_point);
        sum
    }

    /// Adds the counters of another queue. Events and occupancies are summed; of capacities,
    /// high-water marks and numbers of dedicated queues the maximum is kept. The sum has no
    /// `added`.
    pub fn merge(&mut self, other: &Self) {
        let levels = &mut self.dedicated_levels;
        if other.dedicated_collective > self.dedicated_collective {
            levels.collective.clone_from(&other.dedicated_levels.collective);
        }
        if other.dedicated_point_to_point > self.dedicated_point_to_point {
            levels.point_to_point.clone_from(&other.dedicated_levels.point_to_point);
        }
        self.merge_counters(other);
        self.added = Vec::new();
        self.block_reasons.merge_counters(&other.block_reasons);
        self.kinds.collective.merge(&other.kinds.collective);
        self.kinds.point_to_point.merge(&other.kinds.point_to_point);
        self.modelled.merge(&other.modelled);
        self.measured.merge(&other.measured);
        self.search_depth.merge(&other.search_depth);
        self.traversals.merge(&other.traversals);
    }
}
