// SPDX-License-Identifier: BSD-2-Clause
//! Starts a program over tcam, waits for it, and ends it.

pub(crate) mod bundled;
pub(crate) mod endpoints;
pub(crate) mod environment;
pub(crate) mod launcher;
pub(crate) mod leftovers;
pub(crate) mod mpi_library;
pub(crate) mod plan;
pub(crate) mod signals;

pub(crate) use self::endpoints::{Id, Job, RunningEndpoint};
pub(crate) use self::environment::{Environment, Library};
pub(crate) use self::launcher::{Mpi, Unfit};
pub(crate) use self::leftovers::Leftovers;
pub(crate) use self::plan::Plan;
pub(crate) use self::signals::{Ended, Signals};
