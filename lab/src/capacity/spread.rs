// SPDX-License-Identifier: BSD-2-Clause
//! The variation of a number from run to run.

use std::fmt;

use serde::Serialize;

use crate::text::numbers::whole;

/// The variation of a number from run to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) min: u64,
    pub(crate) median: f64,
    pub(crate) max: u64,
    /// Number of runs.
    pub(crate) runs: usize,
}

impl Spread {
    pub(crate) fn of(values: &[u64]) -> Self {
        let (Some(&min), Some(&max)) = (values.iter().min(), values.iter().max()) else {
            return Self::default();
        };
        let median = median(values.iter().map(|&value| value as f64));
        Self { min, median, max, runs: values.len() }
    }

    pub(super) fn width(&self) -> u64 {
        self.max - self.min
    }
}

impl fmt::Display for Spread {
    /// Writes `18`, or `14 to 18 (median 14)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.width() {
            0 => f.write_str(&whole(self.max)),
            _ => {
                let (min, max) = (whole(self.min), whole(self.max));
                write!(f, "{min} to {max} (median {})", whole(self.median.round() as u64))
            }
        }
    }
}

/// Returns the middle value, or the mean of the two middle values.
pub(super) fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<_> = values.collect();
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    f64::midpoint(values[last / 2], values[last.div_ceil(2)])
}
