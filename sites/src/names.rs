// SPDX-License-Identifier: BSD-2-Clause
//! The names that have trampolines.

use std::ffi::CStr;

/// Returns the number of the function that has a name of this number.
pub(crate) const fn function_of(slot: usize) -> usize {
    slot / (NAMES.len() / FUNCTIONS.len())
}

include!(concat!(env!("OUT_DIR"), "/names.rs"));
