// SPDX-License-Identifier: BSD-2-Clause
//! The names that have trampolines.

use std::ffi::CStr;

/// Returns the number of the function that has a name of this number.
pub(crate) const fn function_of(slot: usize) -> usize {
    slot / (NAMES.len() / FUNCTIONS.len())
}

/// Returns true for the name by which a tool calls a function that it replaces: `PMPI_Irecv`.
pub(crate) fn is_of_profiling(slot: usize) -> bool {
    NAMES.get(slot).is_some_and(|name| matches!(name.to_bytes().first(), Some(b'P' | b'p')))
}

include!(concat!(env!("OUT_DIR"), "/names.rs"));
