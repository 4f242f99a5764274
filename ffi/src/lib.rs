// SPDX-License-Identifier: BSD-2-Clause
//! The ABI of libfabric for providers written in Rust, and the only crate that
//! knows C.
//!
//! A provider implements the safe traits of [`provider`] and [`ops`] and is
//! exported by [`export_provider!`]. Everything C passes is checked, copied or
//! wrapped here: [`info`] (hints and answers), [`memory`] (message buffers),
//! [`atomic`] (operations on them),
//! [`object`] (who owns what C points to). No panic crosses C ([`guard`]). [`host`] and [`mpi`] are
//! what is found of the process around us.

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
pub mod sys;
pub mod thread;

pub use errno::{Errno, Result};
pub use memory::{Buffer, Context};
