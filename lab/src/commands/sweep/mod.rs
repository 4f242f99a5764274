// SPDX-License-Identifier: BSD-2-Clause
//! `tcam sweep`: what a program needs, one run a table size, or its traces one replay.

pub(crate) mod arguments;
mod failure;
pub(crate) mod of_program;
pub(crate) mod of_traces;
mod show;
