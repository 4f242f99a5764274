// SPDX-License-Identifier: BSD-2-Clause
//! Results of tables: handles, hits and errors.

use crate::kernel::Kernel;

/// Largest capacity of a table, in entries.
pub(crate) const MAX_CAPACITY: usize = 65_536;

/// Identifies an entry from its insertion to its removal. The handle of a removed entry identifies
/// nothing, even after its place was reused. With another table, it may identify any entry there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Handle {
    pub(crate) slot: u16,
    pub(crate) serial: u64,
}

/// The result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The handle of the entry.
    pub handle: Handle,
    /// The token of the entry.
    pub token: u32,
}

/// The table has no free entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the table is full")]
pub struct Full;

/// Why a table cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The capacity, which this variant contains, exceeds 65,536 entries.
    #[error("a table cannot have {0} entries: the maximum is 65536")]
    Capacity(usize),
    /// This processor lacks the instructions of the kernel.
    #[error("this processor does not support the kernel {0}")]
    Kernel(Kernel),
}
