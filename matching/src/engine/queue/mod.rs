// SPDX-License-Identifier: BSD-2-Clause
//! Storage of the engines: queues of elements, and the list of all elements.
//!
//! Each is in age order, because elements are inserted in age order. A search takes the first match
//! of each queue that may hold one, and the oldest of these wins.
//!
//! The youngest elements may have no queue yet; they are only in the list of all.

mod contract;
mod exact;
mod line;
mod linked;
mod packed;
mod page;
mod print;
mod storage;
mod walked;

pub use contract::Queues;
pub(super) use contract::{Best, Lookup};
pub use linked::Linked;
pub use packed::Packed;
pub use storage::{HostStorage, UnknownStorage};
pub(super) use walked::Walked;
