// SPDX-License-Identifier: BSD-2-Clause
//! Traces on the disk, and their replays.

pub(crate) mod counted;
pub(crate) mod files;
pub(crate) mod node;
pub(crate) mod play;
pub(crate) mod player;
pub(crate) mod repeats;
pub(crate) mod take;
pub(crate) mod together;
pub(crate) mod trace;
