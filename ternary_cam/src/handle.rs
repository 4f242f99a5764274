// SPDX-License-Identifier: BSD-2-Clause
//! What tables answer: handles, hits, and why they refuse.

use crate::kernel::Kernel;

/// Largest capacity of a table, in entries.
pub(crate) const MAX_CAPACITY: usize = 65_536;

/// Names an entry from its insertion to its removal. A handle of an entry that
/// was removed names nothing, even after its place was taken by another. Given to another
/// table it may name any entry there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    pub(crate) slot: u16,
    pub(crate) serial: u64,
}

/// What a search found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The entry.
    pub handle: Handle,
    /// Its token.
    pub token: u32,
}

/// The table has no free entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table is full")]
pub struct Full;

/// Why a table cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// More than 65,536 entries.
    #[error("a table of {0} entries: the largest has 65536")]
    Capacity(usize),
    /// This processor lacks the instructions.
    #[error("this processor does not support the kernel {0}")]
    Kernel(Kernel),
}
