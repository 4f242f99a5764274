// SPDX-License-Identifier: BSD-2-Clause
//! Saturating sums, because counts from files of others may be anything.

/// Adds to a sum.
pub(crate) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// The exact sum of some values.
pub(crate) fn sum(values: &[u64]) -> i128 {
    values.iter().map(|&value| i128::from(value)).sum()
}
