// SPDX-License-Identifier: BSD-2-Clause
//! Generates the receives and messages of single ranks of an application, for any number of ranks.
//! The lengths of the queues follow those that papers report.

pub(crate) mod pattern;
pub(crate) mod stream;
