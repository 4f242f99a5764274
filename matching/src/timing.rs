// SPDX-License-Identifier: BSD-2-Clause
//! Timing model: charges the cost that matching would have on a slower or faster device, while the
//! program runs. The caller lets the charged time pass ([`Pace`]).
//!
//! ```text
//! an operation of the device: a post, an arrival, a peek
//!   T =  table                             each search of a table
//!     +  up + host + entry(n) + down       each search on the host that traverses n elements
//!     +  spill                             each element that goes to the host
//!     +  promote                           each element that moves from the host into the table
//! ```
//! Up and down are the transfers from the table to the host and back; they cost nothing without a
//! table.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::sums::add;

/// Costs in picoseconds (the parameters are in nanoseconds).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// A search of the table (`FI_TCAM_TABLE_NS`).
    pub table: u64,
    /// Transfer of a search from the table to the host (`FI_TCAM_UP_NS`).
    pub up: u64,
    /// A search on the host (`FI_TCAM_HOST_NS`).
    pub host: u64,
    /// The elements that a search on the host traverses (`FI_TCAM_HOST_ENTRY_NS`).
    pub entry: EntryCost,
    /// Transfer of the result of a search from the host to the table (`FI_TCAM_DOWN_NS`).
    pub down: u64,
    /// An element that goes to the host (`FI_TCAM_SPILL_NS`).
    pub spill: u64,
    /// A promotion, from the host into the table (`FI_TCAM_PROMOTE_NS`).
    pub promote: u64,
}

/// Cost of the elements that a search on the host traverses. `c@n` is the average cost c per
/// element of a search of n elements. A longer search leaves the nearer caches, so each element
/// costs more.
///
/// ```text
/// total      2.7@64,4.5@1024,5.1@8192
///   |                          . '       beyond the last point: 5.1 ns each
///   |                    . '  8192 x 5.1
///   |             . '   between the points: linear
///   |  .--'  1024 x 4.5
///   |.'  64 x 2.7
///   +------------------------ n
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EntryCost {
    /// `(elements, picoseconds for all of them)`, in ascending order. The first `used` points are
    /// in use.
    points: [(u64, u64); Self::MOST],
    used: usize,
    /// Picoseconds per element beyond the last point.
    last: u64,
}

/// A text that is not an [`EntryCost`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a cost of entries; allowed is {}", EntryCost::ALLOWED)]
pub struct BadEntryCost;

impl EntryCost {
    /// Maximum number of points.
    const MOST: usize = 4;
    /// Largest cost per element in nanoseconds.
    const LARGEST: f64 = 1e9;
    /// Largest number of elements of a point.
    const LONGEST: u64 = 1 << 32;

    /// Description of the allowed values.
    pub const ALLOWED: &str = "a number from 0 to 1000000000, or up to 4 of NUMBER@ENTRIES with \
         ascending entries, separated by commas, of which none makes a longer search cheaper, \
         such as 2.7@64,4.5@1024,5.1@8192";

    /// Creates a cost of this many picoseconds for each element, in searches of any length.
    #[must_use]
    pub const fn flat(picoseconds: u64) -> Self {
        Self { points: [(0, 0); Self::MOST], used: 0, last: picoseconds }
    }

    /// Picoseconds for a search of `entries` elements.
    #[must_use]
    pub fn of(&self, entries: u64) -> u64 {
        let mut before = (0, 0);
        for &(at, ps) in &self.points[..self.used] {
            if entries <= at {
                let part = u128::from(ps - before.1) * u128::from(entries - before.0)
                    / u128::from(at - before.0);
                return before.1 + part as u64;
            }
            before = (at, ps);
        }
        entries.saturating_mul(self.last)
    }
}

impl FromStr for EntryCost {
    type Err = BadEntryCost;

    fn from_str(text: &str) -> Result<Self, BadEntryCost> {
        let cost = |text: &str| {
            let ns: f64 = text.parse().map_err(|_| BadEntryCost)?;
            let allowed = (0.0..=Self::LARGEST).contains(&ns);
            allowed.then(|| (ns * 1000.0).round() as u64).ok_or(BadEntryCost)
        };
        if !text.contains('@') {
            return cost(text).map(Self::flat);
        }
        let mut made = Self::default();
        let mut before = (0, 0);
        for point in text.split(',') {
            let (each, entries) = point.split_once('@').ok_or(BadEntryCost)?;
            let (each, at) = (cost(each)?, entries.parse().map_err(|_| BadEntryCost)?);
            let ps = each.saturating_mul(at);
            let place = made.points.get_mut(made.used).ok_or(BadEntryCost)?;
            if at <= before.0 || at > Self::LONGEST || ps < before.1 {
                return Err(BadEntryCost);
            }
            before = (at, ps);
            *place = before;
            made.used += 1;
            made.last = each;
        }
        Ok(made)
    }
}

/// Lets modelled time pass.
pub trait Pace: fmt::Debug + Send + Sync {
    /// Waits until this many picoseconds have passed. In a replay, it may return at once.
    fn spend(&self, picoseconds: u64);
}

/// An enabled timing model.
#[derive(Clone, Debug)]
pub struct Timing {
    /// The costs to charge.
    pub costs: Costs,
    /// Lets the charged time pass.
    pub pace: Arc<dyn Pace>,
}

/// Time that the timing model charged to a queue, separate from measured time; zero if the model is
/// off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelledTime {
    /// Searches of the table, including peeks.
    pub table_searches: u64,
    /// Picoseconds charged for searches of the table.
    pub table_ps: u64,
    /// Searches on the host.
    pub host_searches: u64,
    /// Elements that searches on the host traversed.
    pub host_entries: u64,
    /// Picoseconds charged for searches on the host and the elements that they traversed.
    pub host_ps: u64,
    /// Picoseconds charged for transfers to the host and back.
    pub way_ps: u64,
    /// Picoseconds charged for elements that went to the host.
    pub spill_ps: u64,
    /// Picoseconds charged for promotions.
    pub promote_ps: u64,
}

impl ModelledTime {
    /// All charges in picoseconds.
    #[must_use]
    pub fn picoseconds(&self) -> u64 {
        self.table_ps.saturating_add(self.overflow_ps())
    }

    /// All charges except those for searches of the table, in picoseconds.
    #[must_use]
    pub fn overflow_ps(&self) -> u64 {
        [self.host_ps, self.way_ps, self.spill_ps, self.promote_ps]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// All charges in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.picoseconds() as f64 * 1e-12
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        add(&mut self.table_searches, other.table_searches);
        add(&mut self.table_ps, other.table_ps);
        add(&mut self.host_searches, other.host_searches);
        add(&mut self.host_entries, other.host_entries);
        add(&mut self.host_ps, other.host_ps);
        add(&mut self.way_ps, other.way_ps);
        add(&mut self.spill_ps, other.spill_ps);
        add(&mut self.promote_ps, other.promote_ps);
    }

    /// Charges an element that went to the host.
    pub(crate) fn charge_spill(&mut self, timing: &Timing) {
        add(&mut self.spill_ps, timing.costs.spill);
        timing.pace.spend(timing.costs.spill);
    }

    /// Charges a promotion.
    pub(crate) fn charge_promotion(&mut self, timing: &Timing) {
        add(&mut self.promote_ps, timing.costs.promote);
        timing.pace.spend(timing.costs.promote);
    }

    /// Charges a search of the table if `table` is true, and a search on the host that traversed
    /// `host` elements unless `host` is `None`.
    pub(crate) fn charge(&mut self, timing: &Timing, table: bool, host: Option<u64>) {
        let costs = &timing.costs;
        let table_ps = if table { costs.table } else { 0 };
        self.table_searches += u64::from(table);
        add(&mut self.table_ps, table_ps);
        let mut spent = table_ps;
        if let Some(entries) = host {
            let host_ps = costs.host.saturating_add(costs.entry.of(entries));
            let way_ps = if table { costs.up.saturating_add(costs.down) } else { 0 };
            self.host_searches += 1;
            add(&mut self.host_entries, entries);
            add(&mut self.host_ps, host_ps);
            add(&mut self.way_ps, way_ps);
            spent = spent.saturating_add(host_ps).saturating_add(way_ps);
        }
        timing.pace.spend(spent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_costs_more_in_a_longer_search() {
        let cost: EntryCost = "2.7@64,4.5@1024,5.1@8192".parse().unwrap();
        let exact = [(0, 0), (1, 2_700), (64, 172_800), (1024, 4_608_000), (8192, 41_779_200)];
        for (entries, ps) in exact {
            assert_eq!(cost.of(entries), ps, "{entries}");
        }
        assert_eq!(cost.of(544), (172_800 + 4_608_000) / 2);
        assert_eq!(cost.of(16_384), 16_384 * 5_100);
        let mut last = 0;
        for entries in 0..20_000 {
            assert!(cost.of(entries) >= last, "{entries}");
            last = cost.of(entries);
        }
    }

    #[test]
    fn one_number_is_for_all() {
        let cost: EntryCost = "5.1".parse().unwrap();
        assert_eq!(cost, EntryCost::flat(5_100));
        assert_eq!((cost.of(1), cost.of(1000)), (5_100, 5_100_000));
        assert_eq!(EntryCost::flat(u64::MAX).of(u64::MAX), u64::MAX);
    }

    #[test]
    fn costs_that_make_no_sense_are_refused() {
        for text in [
            "",
            "x",
            "-1",
            "1e10",
            "nan",
            "5,6",
            "5@",
            "@5",
            "5@0",
            "5@9,6",
            "5@9,6@9",
            "5@9,6@8",
            "9@10,1@20",
            "1@1,1@2,1@3,1@4,1@5",
            "1@1.5",
            "1@99999999999",
        ] {
            assert_eq!(text.parse::<EntryCost>(), Err(BadEntryCost), "{text}");
        }
    }
}
