// SPDX-License-Identifier: BSD-2-Clause
//! Algorithms that only papers have, for the program `papers-bench`.
#![forbid(unsafe_code)]

pub mod tail_queues;
