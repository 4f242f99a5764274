// SPDX-License-Identifier: BSD-2-Clause
//! Starts a program over tcam, waits for it, and ends it.

pub(crate) mod bundled;
pub(crate) mod endpoints;
pub(crate) mod environment;
pub(crate) mod launcher;
pub(crate) mod leftovers;
pub(crate) mod plan;
pub(crate) mod signals;
