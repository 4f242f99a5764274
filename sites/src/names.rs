// SPDX-License-Identifier: BSD-2-Clause
//! The names that have trampolines.

use std::ffi::CStr;

include!(concat!(env!("OUT_DIR"), "/names.rs"));
