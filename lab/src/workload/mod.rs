// SPDX-License-Identifier: BSD-2-Clause
//! Generates the receives and messages of single ranks, for any number of ranks, from the queue
//! lengths that papers report.

pub(crate) mod pattern;
pub(crate) mod stream;
