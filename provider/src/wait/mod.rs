// SPDX-License-Identifier: BSD-2-Clause
//! Waits of threads and operations. Endpoints are known here only as [`pollable::Pollable`].
//!
//! ```text
//! set  device_thread     endpoints that a queue, a counter or the thread of a domain polls
//! triggers               operations that wait for a counter
//! pollable  count        interfaces of endpoints and counters
//! idle  callers          empty polls, and the other calling threads
//! pollers                number of threads that poll
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
