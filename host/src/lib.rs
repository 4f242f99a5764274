// SPDX-License-Identifier: BSD-2-Clause
//! What the processes of a user share on one host: the files of tcam and who owns them.
//!
//! - [`directory`]: one private directory a user in `/dev/shm`, in which every file of tcam lies.
//! - [`children`]: descriptors that no forked child keeps.
//! - [`owner`]: whether the owner of a file lives, and how the files of the dead go.
//! - [`regular`]: files that users name.
//!
//! The provider makes these files, the lab reads and removes them: both find them here.
#![deny(unsafe_code)]

pub mod children;
pub mod directory;
pub mod owner;
pub mod regular;
