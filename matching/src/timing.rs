// SPDX-License-Identifier: BSD-2-Clause
//! Timing model: what the searches and promotions of a slower or faster device would cost,
//! charged while the program runs. How time passes is the caller's business ([`Pace`]).

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::counters::add;

/// Costs in picoseconds: a thousandth of what the parameters are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// A search of the table (`FI_TCAM_TABLE_NS`).
    pub table: u64,
    /// A search on the host (`FI_TCAM_HOST_NS`).
    pub host: u64,
    /// An entry that a linear search on the host compares (`FI_TCAM_HOST_ENTRY_NS`).
    pub host_entry: u64,
    /// A promotion, from the host into the table (`FI_TCAM_PROMOTE_NS`).
    pub promote: u64,
}

/// Lets time pass.
pub trait Pace: fmt::Debug + Send + Sync {
    /// Comes back when so many picoseconds are over.
    fn spend(&self, picoseconds: u64);
}

/// A timing model that is on.
#[derive(Clone, Debug)]
pub struct Timing {
    /// What is charged.
    pub costs: Costs,
    /// Who charges it.
    pub pace: Arc<dyn Pace>,
}

/// What the timing model charged to a queue, apart from measured time; zero where
/// it is off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ModelledTime {
    /// Searches of the table, peeks counted.
    pub table_searches: u64,
    /// Picoseconds charged for them.
    pub table_ps: u64,
    /// Searches on the host.
    pub host_searches: u64,
    /// Entries that linear searches on the host would have compared; not counted
    /// where they cost nothing.
    pub host_entries: u64,
    /// Picoseconds charged for both.
    pub host_ps: u64,
    /// Picoseconds charged for promotions.
    pub promote_ps: u64,
}

impl ModelledTime {
    /// All that was charged, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        (self.table_ps as f64 + self.host_ps as f64 + self.promote_ps as f64) * 1e-12
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        add(&mut self.table_searches, other.table_searches);
        add(&mut self.table_ps, other.table_ps);
        add(&mut self.host_searches, other.host_searches);
        add(&mut self.host_entries, other.host_entries);
        add(&mut self.host_ps, other.host_ps);
        add(&mut self.promote_ps, other.promote_ps);
    }

    /// Charges a promotion.
    pub(crate) fn charge_promotion(&mut self, timing: &Timing) {
        add(&mut self.promote_ps, timing.costs.promote);
        timing.pace.spend(timing.costs.promote);
    }

    /// Charges a search of the table, if there is one, and one on the host that
    /// compares so many entries, if there is one.
    pub(crate) fn charge(&mut self, timing: &Timing, table: bool, host: Option<u64>) {
        let Costs { table: of_table, host: of_host, host_entry, .. } = timing.costs;
        let table_ps = if table { of_table } else { 0 };
        let host_ps =
            host.map_or(0, |entries| of_host.saturating_add(entries.saturating_mul(host_entry)));
        self.table_searches += u64::from(table);
        add(&mut self.table_ps, table_ps);
        self.host_searches += u64::from(host.is_some());
        self.host_entries += host.unwrap_or(0);
        add(&mut self.host_ps, host_ps);
        timing.pace.spend(table_ps.saturating_add(host_ps));
    }
}
