// SPDX-License-Identifier: BSD-2-Clause
//! Traces on the disk, and how they are played.

pub(crate) mod files;
pub(crate) mod node;
pub(crate) mod play;
pub(crate) mod repeats;
pub(crate) mod spread;
pub(crate) mod unreported;
