// SPDX-License-Identifier: BSD-2-Clause
//! Storage of the engines: queues of elements, and the list of all elements.
//!
//! The queues and the list are in age order, because elements are inserted in age order. A search
//! takes the first match of each queue that may hold a match, and the oldest of these matches wins.
//! Where a search of the list is faster, it takes the first match of the list instead.
//!
//! The youngest elements may have no queue yet; they are only in the list of all elements.

mod age_array;
mod contract;
mod counting_view;
mod exact;
mod fingerprint;
mod linked;
mod packed;
mod page;
mod storage;

pub use contract::Queues;
pub(super) use contract::{Best, Lookup};
pub(super) use counting_view::CountingView;
pub use linked::Linked;
pub use packed::Packed;
pub use storage::{HostStorage, UnknownStorage};

#[cfg(test)]
mod contract_tests;
