// SPDX-License-Identifier: BSD-2-Clause
//! The operation tables of libfabric, one file for each object: a safe trait that the provider
//! implements, and the entry points that C calls. A table has an entry for every call. The entry of
//! a call that this crate does not support returns `-FI_ENOSYS`. Only `tostr` of `fi_ops` is a null
//! pointer.

pub mod av;
pub mod cntr;
pub mod cq;
pub mod domain;
pub(crate) mod entry;
pub mod ep;
pub mod eq;
pub mod fabric;
pub(crate) mod fid;
pub mod mr;
pub mod poll;
pub mod profile;
pub mod work;

use crate::sys;
pub(crate) use entry::{answer, answer_bytes, array, entry_points, operation_table, table, text};

/// Wait objects (`enum fi_wait_obj`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WaitObj {
    /// `FI_WAIT_NONE`: the application only polls.
    #[default]
    None,
    /// `FI_WAIT_UNSPEC`: the provider chooses how to sleep.
    Unspec,
    /// `FI_WAIT_YIELD`: waiting calls yield the core.
    Yield,
    /// `FI_WAIT_FD`: a file descriptor, which `FI_GETWAIT` returns.
    Fd,
    /// Any other wait object.
    Other(u32),
}

impl WaitObj {
    pub(crate) fn read(raw: u32) -> Self {
        match raw {
            sys::FI_WAIT_NONE => Self::None,
            sys::FI_WAIT_UNSPEC => Self::Unspec,
            sys::FI_WAIT_YIELD => Self::Yield,
            sys::FI_WAIT_FD => Self::Fd,
            other => Self::Other(other),
        }
    }

    /// Returns the value of `enum fi_wait_obj`.
    #[must_use]
    pub fn raw(self) -> u32 {
        match self {
            Self::None => sys::FI_WAIT_NONE,
            Self::Unspec => sys::FI_WAIT_UNSPEC,
            Self::Yield => sys::FI_WAIT_YIELD,
            Self::Fd => sys::FI_WAIT_FD,
            Self::Other(raw) => raw,
        }
    }
}
