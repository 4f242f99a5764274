// SPDX-License-Identifier: BSD-2-Clause
//! The numbers of a queue, by the names that they have in every file.

use matching::QueueCounters;

use super::columns::{Cell, ColumnType, NamedValues, REAL, WHOLE};

/// A number of a queue that is no counter: its name, the type of its column, and a function that
/// returns its value.
type Number = (&'static str, ColumnType, fn(&QueueCounters) -> Cell<'static>);

const NUMBERS: [Number; 6] = [
    ("hit_entries", WHOLE, |of| of.search_depth.hit_entries.into()),
    ("miss_entries", WHOLE, |of| of.search_depth.miss_entries.into()),
    ("host_traversed", WHOLE, |of| of.traversals.entries.into()),
    ("host_in_a_list", WHOLE, |of| of.traversals.in_a_list.into()),
    ("modelled_ns", REAL, |of| (of.modelled.seconds() * 1e9).into()),
    ("measured_ns", WHOLE, |of| of.measured.ns().into()),
];

/// Returns the names of all counters and numbers of a queue, with the types of their columns.
pub(crate) fn columns() -> impl Iterator<Item = (&'static str, ColumnType)> {
    let counters = QueueCounters::COUNTERS.iter().map(|counter| (counter.name, WHOLE));
    counters.chain(NUMBERS.map(|(name, column, _)| (name, column)))
}

/// Returns the values of all counters and numbers of a queue, in the order of [`columns`].
pub(crate) fn values(of: &QueueCounters) -> impl Iterator<Item = Cell<'static>> {
    let counters = QueueCounters::COUNTERS.iter().map(|counter| (counter.get)(of).into());
    counters.chain(NUMBERS.map(|(.., get)| get(of)))
}

/// Puts the counters and numbers of a queue into a record. `queue` (`prq` or `umq`) precedes their
/// names. The entries of the table are left out, because a record begins with the sizes.
pub(crate) fn put(record: &mut NamedValues, queue: &str, of: &QueueCounters) {
    for ((name, _), value) in columns().zip(values(of)).filter(|((name, _), _)| *name != "entries")
    {
        record.put(format!("{queue}_{name}"), value);
    }
}
