// SPDX-License-Identifier: BSD-2-Clause
//! The counters of a queue, by the names that they have in every file.

use matching::{KindCounters, QueueCounters};

use super::columns::{Cell, ColumnType, NamedValues, REAL, WHOLE};

/// A counter: its name, the type of its column, and a function that returns its value.
pub(crate) type Counter<T> = (&'static str, ColumnType, fn(&T) -> Cell<'static>);

/// Counters of a queue.
pub(crate) const QUEUE: [Counter<QueueCounters>; 21] = [
    ("entries", WHOLE, |of| of.entries.into()),
    ("inserts", WHOLE, |of| of.inserts.into()),
    ("searches", WHOLE, |of| of.searches.into()),
    ("table_matches", WHOLE, |of| of.table_matches.into()),
    ("host_matches", WHOLE, |of| of.host_matches.into()),
    ("misses", WHOLE, |of| of.misses.into()),
    ("spills", WHOLE, |of| of.spills.into()),
    ("promotions", WHOLE, |of| of.promotions.into()),
    ("onloads", WHOLE, |of| of.onloads.into()),
    ("held_back", WHOLE, |of| of.held_back.into()),
    ("table_cancels", WHOLE, |of| of.table_cancels.into()),
    ("host_cancels", WHOLE, |of| of.host_cancels.into()),
    ("table_high_water", WHOLE, |of| of.table_high_water.into()),
    ("host_high_water", WHOLE, |of| of.host_high_water.into()),
    ("high_water", WHOLE, |of| of.high_water.into()),
    ("hit_entries", WHOLE, |of| of.search_depth.hit_entries.into()),
    ("miss_entries", WHOLE, |of| of.search_depth.miss_entries.into()),
    ("host_traversed", WHOLE, |of| of.traversals.entries.into()),
    ("host_in_a_list", WHOLE, |of| of.traversals.in_a_list.into()),
    ("modelled_ns", REAL, |of| (of.modelled.seconds() * 1e9).into()),
    ("measured_ns", WHOLE, |of| of.measured.ns().into()),
];

/// Counters of a queue for one kind of traffic, without the block reasons.
pub(crate) const KIND: [Counter<KindCounters>; 5] = [
    ("inserts", WHOLE, |of| of.inserts.into()),
    ("searches", WHOLE, |of| of.searches.into()),
    ("table_matches", WHOLE, |of| of.table_matches.into()),
    ("host_matches", WHOLE, |of| of.host_matches.into()),
    ("misses", WHOLE, |of| of.misses.into()),
];

/// Puts the named counters of a queue into a record. `queue` (`prq` or `umq`) precedes their names.
/// Each name must be in [`QUEUE`].
pub(crate) fn put(record: &mut NamedValues, queue: &str, of: &QueueCounters, names: &[&str]) {
    for name in names {
        let counter = QUEUE.iter().find(|(counter, ..)| counter == name);
        let (_, _, get) = counter.expect("the counter is in the table");
        record.put(format!("{queue}_{name}"), get(of));
    }
}
