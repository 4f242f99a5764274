// SPDX-License-Identifier: BSD-2-Clause
//! `fi_control(3)`: commands with their arguments.

use std::ffi::c_int;

use crate::{memory::Output, sys};

/// A control command with its argument.
#[derive(Debug)]
pub enum Control<'a> {
    /// `FI_ENABLE`.
    Enable,
    /// `FI_GETOPSFLAG`: the argument contains `FI_TRANSMIT` or `FI_RECV`, and is replaced by the
    /// flags.
    GetOpsFlag(&'a mut u64),
    /// `FI_SETOPSFLAG`.
    SetOpsFlag(u64),
    /// `FI_GETWAIT`: the place for the file descriptor of an object with `FI_WAIT_FD`.
    GetWait(&'a mut c_int),
    /// `FI_GETWAITOBJ`: the place for the wait object.
    GetWaitObj(&'a mut u32),
    /// `FI_GET_RAW_MR`: the places for a region's base address, its key and the length of the key.
    GetRawKey(&'a mut u64, Output, &'a mut usize),
    /// `FI_MAP_RAW_MR`: base address and key from a peer, and the place for the mapped key.
    MapRawKey(u64, &'a [u8], &'a mut u64),
    /// `FI_UNMAP_KEY`.
    UnmapKey(u64),
    /// `FI_REFRESH` of a region whose memory has changed.
    Refresh,
    /// `FI_QUEUE_WORK`.
    QueueWork(RawWork),
    /// `FI_CANCEL_WORK`.
    CancelWork(RawWork),
    /// `FI_FLUSH_WORK`.
    FlushWork,
    /// Any other command.
    Other(c_int),
}

/// Names deferred work: the address of its `struct fi_deferred_work`, which is never dereferenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkName(pub usize);

/// A `struct fi_deferred_work` as C passes it.
#[derive(Debug)]
pub struct RawWork(*const sys::fi_deferred_work);

impl RawWork {
    /// # Safety
    /// `raw` is null or points to such a structure, which is valid as long as the result.
    pub(crate) unsafe fn new(raw: *const sys::fi_deferred_work) -> Self {
        Self(raw)
    }

    /// Returns the name of the work.
    #[must_use]
    pub fn name(&self) -> WorkName {
        WorkName(self.0 as usize)
    }

    pub(crate) fn raw(&self) -> *const sys::fi_deferred_work {
        self.0
    }
}
