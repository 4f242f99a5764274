// SPDX-License-Identifier: BSD-2-Clause
//! Sums that cannot overflow, because counts read from a file may have any value.

/// Adds `more` to `sum`. If the result would overflow, `sum` becomes `u64::MAX`.
pub(crate) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// The exact sum of some values.
pub(crate) fn sum(values: &[u64]) -> i128 {
    values.iter().map(|&value| i128::from(value)).sum()
}
