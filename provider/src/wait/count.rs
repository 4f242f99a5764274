// SPDX-License-Identifier: BSD-2-Clause
//! What others than its own calls do with a counter (`fi_cntr(3)`).

use std::fmt::Debug;

/// A counter, to who counts and to who waits for it.
pub(crate) trait Count: Debug + Send + Sync {
    /// The count, without progress.
    fn value(&self) -> u64;

    /// The failures, without progress.
    fn failures(&self) -> u64;

    /// Counts an operation.
    fn count(&self, failed: bool);

    /// Adds to the count, and leaves what waits for it to who looks next.
    fn raise(&self, value: u64);

    /// Sets the count, and leaves what waits for it to who looks next.
    fn put(&self, value: u64);
}
