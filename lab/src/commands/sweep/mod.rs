// SPDX-License-Identifier: BSD-2-Clause
//! `tcam sweep`: the capacity curve, from one run or one replay for each table size.

pub(crate) mod arguments;
mod failure;
pub(crate) mod of_program;
pub(crate) mod of_traces;
mod show;
