// SPDX-License-Identifier: BSD-2-Clause
//! Resources that the processes of a user share on one host, and their owners. No messages pass
//! through here.
//!
//! - [`directory`]: one private directory per user in `/dev/shm`, which contains all shared files.
//! - [`names`]: the names of these files.
//! - [`owner`]: how a complete file gets its name, whether its owner is alive, and the removal of
//!   files of dead owners.
//! - [`live`]: the first page of a segment, from which `tcam show --live` reads counters.
//! - [`poller_count`], [`cores`]: how many threads poll endpoints on the processors that we may run
//!   on.
//! - [`node_pool`]: the pool of table entries that endpoints share (`FI_TCAM_POOL=node`).
//! - [`shared_av`]: the addresses of a named address vector.
//! - [`trace_file`], [`draft`]: trace files (`FI_TCAM_TRACE`), and reports of endpoints that are still
//!   open.
//! - [`clock`]: the clock of recorded times.
//! - [`children`]: descriptors that no forked child keeps; [`signals`]: threads that receive no
//!   signals.
//! - [`modules`]: the files that are mapped into this process, for call sites.
//! - [`regular`]: reading of files that users name.
//!
//! The provider makes these files, except the claims of `tcam run`. The lab reads them, and removes
//! those that dead processes left.
#![deny(unsafe_code)]

pub mod children;
pub mod clock;
pub mod cores;
pub mod directory;
pub mod draft;
pub mod live;
pub mod modules;
pub mod names;
pub mod node_pool;
pub mod owner;
pub mod poller_count;
pub mod regular;
pub mod shared_av;
pub mod signals;
pub mod trace_file;
