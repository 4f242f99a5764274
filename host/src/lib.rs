// SPDX-License-Identifier: BSD-2-Clause
//! What the processes of a user share on one host, and who owns it. No message passes here.
//!
//! - [`directory`]: one private directory a user in `/dev/shm`, in which every file of tcam lies.
//! - [`names`], [`publish`]: the names of these files, and how a whole file gets one.
//! - [`owner`], [`endpoint`]: whether the owner of a file lives, and how the files of the dead go.
//! - [`census`], [`cores`]: how many endpoints there are, and how many of them want the processors
//!   that we may run on.
//! - [`node_pool`]: the pool of table entries that endpoints share (`FI_TCAM_POOL=node`).
//! - [`shared_av`]: the addresses of a named vector.
//! - [`tape`], [`draft`]: the files of a trace (`FI_TCAM_TRACE`) and of a report while its endpoint is
//!   open.
//! - [`children`]: descriptors that no forked child keeps; [`signals`]: threads that get no signals.
//! - [`regular`]: files that users name.
//!
//! The provider makes these files, the lab reads and removes them: both find them here.
#![deny(unsafe_code)]

pub mod census;
pub mod children;
pub mod cores;
pub mod directory;
pub mod draft;
pub mod endpoint;
pub mod memory;
pub mod names;
pub mod node_pool;
pub mod owner;
pub mod publish;
pub mod regular;
pub mod shared_av;
pub mod signals;
pub mod tape;
