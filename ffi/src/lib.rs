// SPDX-License-Identifier: BSD-2-Clause
//! The ABI of libfabric for providers written in Rust. No other crate handles pointers of
//! libfabric.
//!
//! A provider implements the safe traits of [`provider`] and [`ops`], and [`export_provider!`]
//! exports it. This crate checks, copies or wraps everything that C passes: [`info`] (hints and
//! answers), [`memory`] (message buffers), [`atomic`] (operations on them), [`object`] (ownership
//! of objects that C points to). No panic unwinds into C ([`guard`]). [`host`], [`mpi`] and [`sites`]
//! look up the libfabric, the MPI and the recorder of call sites of the process.

pub mod atomic;
mod control;
pub mod errno;
pub mod flags;
pub mod guard;
pub mod host;
pub mod info;
mod log;
pub mod memory;
pub mod mpi;
pub mod object;
pub mod ops;
pub mod provider;
pub mod serial;
pub mod sites;
pub mod sys;
pub mod thread;

pub use errno::{Errno, Result};
pub use memory::{Buffer, OpContext};
