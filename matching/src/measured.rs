// SPDX-License-Identifier: BSD-2-Clause
//! Measured time: how long searches, insertions and removals take, in the table and on
//! the host. What the time is, the caller says ([`Clock`]).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::sums::add;

/// Tells the time.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Nanoseconds since a moment of its own choice.
    fn now(&self) -> u64;
}

/// A clock that knows how long looking at it takes.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    clock: Arc<dyn Clock>,
    /// Nanoseconds between two looks with nothing between them.
    look: u64,
}

impl Watch {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> Self {
        // The quickest of some: other processes have the core, too.
        let looks = (0..64).map(|_| {
            let start = clock.now();
            clock.now() - start
        });
        let look = looks.min().unwrap_or(0);
        Self { clock, look }
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// Nanoseconds of what was done between two looks.
    pub(crate) fn between(&self, start: u64, end: u64) -> u64 {
        end.saturating_sub(start).saturating_sub(self.look)
    }
}

/// How often something was done, and how long it took in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// How often.
    pub count: u64,
    /// Nanoseconds.
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

/// One of the table and one of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ByPlace {
    /// In the table.
    pub table: Spent,
    /// On the host.
    pub host: Spent,
}

/// What a queue's operations took as measured; zero where nobody measured. A promotion
/// is a removal from the host and an insertion into the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MeasuredTime {
    /// Searches, peeks counted.
    pub search: ByPlace,
    /// Insertions.
    pub insert: ByPlace,
    /// Removals.
    pub remove: ByPlace,
    /// Those of the insertions on the host that made dedicated queues: the overhead of
    /// table 2 of the COL+PNP paper.
    pub dedicate: Spent,
}

impl MeasuredTime {
    /// All of it in nanoseconds.
    #[must_use]
    pub fn ns(&self) -> u64 {
        let parts = [self.search, self.insert, self.remove];
        let ns = parts.iter().flat_map(|part| [part.table.ns, part.host.ns]);
        ns.fold(0, u64::saturating_add)
    }

    /// How long insertions on the host took for each unit of time that searches there
    /// took, and how long those that made dedicated queues; none without searches.
    #[must_use]
    pub fn overhead(&self) -> Option<(f64, f64)> {
        let search = self.search.host.ns;
        let ratio = |spent: Spent| spent.ns as f64 / search as f64;
        (search > 0).then(|| (ratio(self.insert.host), ratio(self.dedicate)))
    }

    /// Adds what another queue took.
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
