// SPDX-License-Identifier: BSD-2-Clause
//! Sums of counts that others wrote, which may be anything: none of them wraps around.

/// Adds to a sum.
pub(crate) fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// The sum of some.
pub(crate) fn sum(values: &[u64]) -> i128 {
    values.iter().map(|&value| i128::from(value)).sum()
}
