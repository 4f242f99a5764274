// SPDX-License-Identifier: BSD-2-Clause
//! A counter (`fi_cntr(3)`), as other objects use it.

use std::{fmt::Debug, sync::Arc};

/// A counter, for objects that count on it or wait for it.
pub(crate) trait Count: Debug + Send + Sync {
    /// The count, without progress.
    fn value(&self) -> u64;

    /// The failures, without progress.
    fn failures(&self) -> u64;

    /// Counts an operation.
    fn count(&self, failed: bool);

    /// Adds to the count. Operations that wait for it are found at the next check.
    fn raise(&self, value: u64);

    /// Sets the count. Operations that wait for it are found at the next check.
    fn put(&self, value: u64);
}

/// Counts an operation, if there is a counter for it.
#[inline]
pub(crate) fn count<C: Count + ?Sized>(counter: Option<&Arc<C>>, failed: bool) {
    if let Some(counter) = counter {
        counter.count(failed);
    }
}
