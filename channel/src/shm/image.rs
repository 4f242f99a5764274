// SPDX-License-Identifier: BSD-2-Clause
//! The image of a process: its number alone does not name the memory that an endpoint is in. A
//! process that calls `exec` keeps its number and has other data at the same addresses, and the
//! number of a dead one becomes another's.
//!
//! ```text
//! memory of the process    WORD: 64 random bits
//! header of its segments   number | address of WORD | the bits
//! ```
//!
//! Who copies out of a process's memory reads its word with the same call, which is of one image
//! from its first byte to its last, and has nothing if the word is another.

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use ffi::Errno;
use parking_lot::Mutex;
use rustix::rand::{GetRandomFlags, getrandom};

/// See the module.
static WORD: AtomicU64 = AtomicU64::new(0);
/// Whose word it is: a child that was forked has its parent's until it opens an endpoint.
static OWNER: Mutex<Option<u32>> = Mutex::new(None);

/// See the module. Addresses of others are what they say: only the kernel goes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    /// Number of the process.
    pub(super) pid: u32,
    /// Where its word is.
    pub(super) at: u64,
    pub(super) word: u64,
}

impl Image {
    /// That of this process.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub(crate) fn own() -> Result<Self, Errno> {
        let pid = std::process::id();
        let mut owner = OWNER.lock();
        // The first stays: segments tell it already.
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
    fn the_word_of_a_process_stays() {
        let own = Image::own().unwrap();
        assert_eq!(Image::own(), Ok(own));
        assert_eq!(WORD.load(Ordering::Relaxed), own.word);
    }
}
