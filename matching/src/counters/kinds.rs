// SPDX-License-Identifier: BSD-2-Clause
//! The counters of a queue for each kind of traffic: collective and point-to-point.

use serde::{Deserialize, Serialize};

use super::block::BlockReasons;
use crate::counter_struct;

/// A value for each kind of traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByKind<T> {
    /// The value for collective operations.
    pub collective: T,
    /// The value for everything else.
    pub point_to_point: T,
}

impl<T> ByKind<T> {
    /// The value for collective operations or for everything else.
    #[inline]
    pub fn of_mut(&mut self, collective: bool) -> &mut T {
        if collective { &mut self.collective } else { &mut self.point_to_point }
    }

    /// The values with the names of their kinds.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &T)> {
        [("collective", &self.collective), ("point-to-point", &self.point_to_point)].into_iter()
    }
}

counter_struct! {
    /// Counters of a queue for one kind of traffic. Elements and searches with a wildcard in the
    /// bits that determine the kind count as point-to-point.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct KindCounters {
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
        ..
        /// Reasons for spills, each counted at its spill.
        pub block_reasons: BlockReasons,
    }
}

impl KindCounters {
    pub(super) fn merge(&mut self, other: &Self) {
        self.merge_counters(other);
        self.block_reasons.merge_counters(&other.block_reasons);
    }
}
