// SPDX-License-Identifier: BSD-2-Clause
//! Algorithms of papers that tcam does not use, for the program `papers-bench`.
#![forbid(unsafe_code)]

pub mod tail_queues;
