// SPDX-License-Identifier: BSD-2-Clause
//! Collective and point-to-point traffic apart.

use serde::{Deserialize, Serialize};

use super::block::BlockReasons;
use crate::sums::add;

/// One of each kind of traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ByKind<T> {
    /// Of collective operations.
    pub collective: T,
    /// Of everything else.
    pub point_to_point: T,
}

impl<T> ByKind<T> {
    /// The one of collective operations, or the other.
    #[inline]
    pub fn of_mut(&mut self, collective: bool) -> &mut T {
        if collective { &mut self.collective } else { &mut self.point_to_point }
    }

    /// Kinds with their names.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &T)> {
        [("collective", &self.collective), ("point-to-point", &self.point_to_point)].into_iter()
    }
}

/// What a queue did for one kind of traffic. Elements and searches with a
/// wildcard in place of what tells the kind count as point-to-point.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KindCounters {
    /// Elements added to the queue.
    pub inserts: u64,
    /// Counted searches.
    pub searches: u64,
    /// Searches answered by the table.
    pub table_matches: u64,
    /// Searches answered by the host engine.
    pub host_matches: u64,
    /// Searches that found nothing.
    pub misses: u64,
    /// Why elements went to the host, counted when they did.
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
