// SPDX-License-Identifier: BSD-2-Clause
//! Measured time: how long searches, insertions and removals take, in the table and on the host.
//! The caller provides the [`Clock`].

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::sums::add;

/// A clock.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Nanoseconds since a fixed moment of the clock's choice.
    fn now(&self) -> u64;
}

/// A clock with the time that reading it takes.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    clock: Arc<dyn Clock>,
    /// Nanoseconds between two reads with nothing in between.
    read_ns: u64,
}

impl Watch {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        // The minimum of several reads, because other processes may use the core meanwhile.
        let reads = (0..64).map(|_| {
            let start = clock.now();
            clock.now() - start
        });
        let read_ns = reads.min().unwrap_or(0);
        Self { clock, read_ns }
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Nanoseconds of the work between two reads, without the time of reading the clock.
    pub(crate) fn between(&self, start: u64, end: u64) -> u64 {
        end.saturating_sub(start).saturating_sub(self.read_ns)
    }
}

/// Number of executions of an operation, and their total time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Number of executions.
    pub count: u64,
    /// Total time in nanoseconds.
    pub ns: u64,
}

impl Spent {
    pub(crate) fn add(&mut self, ns: u64) {
        self.count += 1;
        self.ns += ns;
    }

    fn merge(&mut self, other: Self) {
        add(&mut self.count, other.count);
        add(&mut self.ns, other.ns);
    }
}

/// A value for the table and one for the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByPlace {
    /// In the table.
    pub table: Spent,
    /// On the host.
    pub host: Spent,
}

/// Measured time of a queue's operations; zero if nothing was measured. A promotion is a removal
/// from the host and an insertion into the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MeasuredTime {
    /// Searches, including peeks.
    pub search: ByPlace,
    /// Insertions.
    pub insert: ByPlace,
    /// Removals.
    pub remove: ByPlace,
    /// The insertions on the host that made dedicated queues: the overhead in table 2 of the
    /// COL+PNP paper.
    pub dedicate: Spent,
}

impl MeasuredTime {
    /// Total time in nanoseconds.
    #[must_use]
    pub fn ns(&self) -> u64 {
        let parts = [self.search, self.insert, self.remove];
        let ns = parts.iter().flat_map(|part| [part.table.ns, part.host.ns]);
        ns.fold(0, u64::saturating_add)
    }

    /// Time of all insertions on the host, and time of those that made dedicated queues, each
    /// divided by the time of searches on the host. `None` if that time is 0.
    #[must_use]
    pub fn overhead(&self) -> Option<(f64, f64)> {
        let search = self.search.host.ns;
        let ratio = |spent: Spent| spent.ns as f64 / search as f64;
        (search > 0).then(|| (ratio(self.insert.host), ratio(self.dedicate)))
    }

    /// Adds the times of another queue.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.search, other.search),
            (&mut self.insert, other.insert),
            (&mut self.remove, other.remove),
        ] {
            mine.table.merge(theirs.table);
            mine.host.merge(theirs.host);
        }
        self.dedicate.merge(other.dedicate);
    }
}
