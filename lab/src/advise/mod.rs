// SPDX-License-Identifier: BSD-2-Clause
//! Which host engine, storage and table size a recorded program should have.
//!
//! ```text
//! program (counts of every engine) ---> advice ---> words, JSON
//! contender, stream, cost, features        ^
//!                                        models <--- train, validate <--- set
//! ```
//! After *Hint-driven matching*, section V: a profiler, micro-benchmarks, and classifiers that tell
//! which engine suits an application.

pub(crate) mod advice;
pub(crate) mod case;
pub(crate) mod classifier;
pub(crate) mod contender;
pub(crate) mod cost;
pub(crate) mod features;
pub(crate) mod math;
pub(crate) mod models;
pub(crate) mod program;
pub(crate) mod set;
pub(crate) mod stream;
pub(crate) mod told;
pub(crate) mod train;
pub(crate) mod validate;
pub(crate) mod words;
