// SPDX-License-Identifier: BSD-2-Clause
//! The counters of a queue for each kind of traffic: collective and point-to-point.

use serde::{Deserialize, Serialize};

use super::block::BlockReasons;
use crate::sums::add;

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

/// Counters of a queue for one kind of traffic. Elements and searches with a wildcard in the bits
/// that determine the kind count as point-to-point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindCounters {
    /// Elements added to the queue.
    pub inserts: u64,
    /// Counted searches.
    pub searches: u64,
    /// Searches answered by the table.
    pub table_matches: u64,
    /// Searches answered by the host engine.
    pub host_matches: u64,
    /// Number of searches that found nothing.
    pub misses: u64,
    /// Reasons for spills, each counted at its spill.
    pub block_reasons: BlockReasons,
}

impl KindCounters {
    pub(super) fn merge(&mut self, other: &Self) {
        add(&mut self.inserts, other.inserts);
        add(&mut self.searches, other.searches);
        add(&mut self.table_matches, other.table_matches);
        add(&mut self.host_matches, other.host_matches);
        add(&mut self.misses, other.misses);
        self.block_reasons.merge(&other.block_reasons);
    }
}
