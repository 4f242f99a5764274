// SPDX-License-Identifier: BSD-2-Clause
//! The exec id of a process. A process id does not identify the memory that an endpoint is in. A
//! process that calls `exec` keeps its process id and has other data at the same addresses. The
//! process id of a dead process is reused.
//!
//! ```text
//! memory of the process    WORD: 64 random bits
//! header of its segments   process id | address of WORD | the bits
//! ```
//!
//! A process that copies from another process's memory reads WORD with the same system call, which
//! sees one program from its first byte to its last. If WORD differs, the copy is discarded.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use ffi::Errno;
use parking_lot::Mutex;
use rustix::rand::{GetRandomFlags, getrandom};

/// See the module.
static WORD: AtomicU64 = AtomicU64::new(0);
/// The process that WORD belongs to. A forked child has that of its parent until it opens an
/// endpoint.
static OWNER: Mutex<Option<u32>> = Mutex::new(None);

/// See the module. Addresses from other processes are not verified: only the kernel accesses them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecId {
    /// Process id.
    pub(super) pid: u32,
    /// Address of its word.
    pub(super) at: u64,
    pub(super) word: u64,
}

impl ExecId {
    /// The exec id of this process.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub(crate) fn own() -> Result<Self, Errno> {
        let pid = std::process::id();
        let mut owner = OWNER.lock();
        // The first word is kept, because segments contain it already.
        if *owner != Some(pid) {
            let mut bytes = [0_u8; 8];
            let random = getrandom(&mut bytes, GetRandomFlags::empty()).map_err(io::Error::from)?;
            if random < bytes.len() {
                return Err(Errno::EIO);
            }
            WORD.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
            *owner = Some(pid);
        }
        let at = (&raw const WORD).addr() as u64;
        Ok(Self { pid, at, word: WORD.load(Ordering::Relaxed) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_process_does_not_change() {
        let own = ExecId::own().unwrap();
        assert_eq!(ExecId::own(), Ok(own));
        assert_eq!(WORD.load(Ordering::Relaxed), own.word);
    }
}
