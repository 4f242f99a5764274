// SPDX-License-Identifier: BSD-2-Clause
//! Starts a program over tcam, waits for it, and ends it.

pub(crate) mod bundled;
pub(crate) mod ending;
pub(crate) mod endpoints;
pub(crate) mod environment;
pub(crate) mod launcher;
pub(crate) mod leftovers;
pub(crate) mod library;
pub(crate) mod plan;
pub(crate) mod process_tree;
pub(crate) mod room;
pub(crate) mod signals;
pub(crate) mod software;
