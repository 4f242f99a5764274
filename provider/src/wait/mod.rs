// SPDX-License-Identifier: BSD-2-Clause
//! Who waits for what, and how. Endpoints are known here only as [`pollable::Pollable`].
//!
//! ```text
//! set  device_thread     endpoints that a queue, a counter or the thread of a domain looks after
//! triggers               operations that wait for a counter
//! pollable  count        what these see of an endpoint and of a counter
//! idle  callers          what a poll does that finds nothing, and who else calls
//! pollers                how many threads poll
//! deadline
//! ```

pub(crate) mod callers;
pub(crate) mod count;
pub(crate) mod deadline;
pub(crate) mod device_thread;
pub(crate) mod idle;
pub(crate) mod pollable;
pub(crate) mod pollers;
pub(crate) mod set;
pub(crate) mod triggers;
