// SPDX-License-Identifier: BSD-2-Clause
//! Identities of endpoints and of processes. The identity of an endpoint is its port and its
//! *incarnation*, a number that distinguishes the endpoints that hold this port one after another.
//!
//! ```text
//! bits 63..48   port
//! bits 47..40   context: index in a scalable endpoint; 0 for all other endpoints
//! bits 39..0    incarnation, random, not 0
//! ```
//!
//! The identity is one word, so that one atomic operation enters it into a list of senders. Two
//! endpoints that hold a port in turn have the same incarnation with a probability of 10^-12. The
//! contexts of a scalable endpoint have consecutive ports, so that the identity of a context
//! determines the port of context 0.
//!
//! The identity of a process is its *exec id*. A process id does not identify the memory of an
//! endpoint: a process that calls `exec` keeps its process id and has other data at the same
//! addresses, and the process id of a dead process is reused.
//!
//! ```text
//! memory of the process    WORD: 64 random bits
//! header of its segments   process id | address of WORD | value of WORD
//! ```
//!
//! A process that reads a message from another process's memory reads WORD with the same system
//! call. One call reads the memory of one program, even if the process calls `exec` meanwhile. If
//! WORD differs, the copy is discarded. Other copies check WORD first, in a separate system call
//! (`shm/cma.rs`).

use std::{
    io,
    sync::atomic::{AtomicU64, Ordering},
};

use ffi::Errno;
use parking_lot::Mutex;
use rustix::rand::{GetRandomFlags, getrandom};

const CONTEXT_SHIFT: u32 = 40;
const INCARNATION_MASK: u64 = (1 << CONTEXT_SHIFT) - 1;

/// Fills an array with random bytes.
///
/// # Errors
/// The kernel has no random numbers.
pub fn random<const N: usize>() -> Result<[u8; N], Errno> {
    let mut bytes = [0; N];
    let count = getrandom(&mut bytes, GetRandomFlags::empty()).map_err(io::Error::from)?;
    if count < N { Err(Errno::EIO) } else { Ok(bytes) }
}

/// The identity of an endpoint; see the module. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity(u64);

impl Identity {
    /// Creates the identity of an endpoint at a port, or of a context of a scalable endpoint.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub fn new(port: u16, context: u8) -> Result<Self, Errno> {
        let incarnation = (u64::from_ne_bytes(random()?) & INCARNATION_MASK).max(1);
        Ok(Self(u64::from(port) << 48 | u64::from(context) << CONTEXT_SHIFT | incarnation))
    }

    /// Returns the identity in a word; `None` if its incarnation is 0.
    pub fn of_word(word: u64) -> Option<Self> {
        (word & INCARNATION_MASK != 0).then_some(Self(word))
    }

    /// Returns the identity as one word.
    #[must_use]
    pub fn word(self) -> u64 {
        self.0
    }

    /// Returns the port.
    #[must_use]
    pub fn port(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Returns the index of the context in its scalable endpoint; 0 for any other endpoint.
    #[must_use]
    pub fn context(self) -> u8 {
        (self.0 >> CONTEXT_SHIFT) as u8
    }

    /// Returns the port in the address of the endpoint: the port of its context 0.
    #[must_use]
    pub fn endpoint_port(self) -> u16 {
        self.port().wrapping_sub(self.context().into())
    }

    /// Returns the number that names the endpoint's ring in the intents of senders
    /// (`shm/ring.rs`). The port distinguishes living endpoints. A part of the incarnation
    /// distinguishes an endpoint from earlier ones at its port.
    pub fn ring(self) -> u32 {
        u32::from(self.port()) << 16 | u32::from(self.0 as u16)
    }
}

/// See the module.
static WORD: AtomicU64 = AtomicU64::new(0);
/// Process id of the process that set WORD. A forked child has the WORD of its parent until it
/// opens an endpoint.
static OWNER: Mutex<Option<u32>> = Mutex::new(None);

/// The identity of a process. An address in the exec id of another process is not verified: only
/// the kernel accesses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExecId {
    /// Process id.
    pub(crate) pid: u32,
    /// Address of WORD in the process.
    pub(crate) address: u64,
    /// Value of WORD.
    pub(crate) word: u64,
}

impl ExecId {
    /// Returns the exec id of this process.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub(crate) fn own() -> Result<Self, Errno> {
        let pid = std::process::id();
        let mut owner = OWNER.lock();
        // The first word is kept, because segments contain it already.
        if *owner != Some(pid) {
            WORD.store(u64::from_ne_bytes(random()?), Ordering::Relaxed);
            *owner = Some(pid);
        }
        let address = (&raw const WORD).addr() as u64;
        Ok(Self { pid, address, word: WORD.load(Ordering::Relaxed) })
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

    #[test]
    fn an_endpoint_differs_from_earlier_ones_at_its_port() {
        let [first, second] = [Identity::new(7, 0).unwrap(), Identity::new(7, 0).unwrap()];
        assert_ne!(first, second);
        assert_eq!((first.port(), first.ring() >> 16), (7, 7));
        assert_eq!(Identity::of_word(first.word()), Some(first));
        assert_eq!(Identity::of_word(7 << 48), None);
        assert_eq!((first.context(), first.endpoint_port()), (0, 7));
    }

    #[test]
    fn a_context_determines_the_port_of_its_endpoint() {
        let context = Identity::new(4711, 255).unwrap();
        assert_eq!((context.port(), context.context()), (4711, 255));
        assert_eq!(context.endpoint_port(), 4456);
        assert_eq!(Identity::of_word(context.word()), Some(context));
        assert_eq!(Identity::of_word(7 << 48 | 3 << CONTEXT_SHIFT), None);
    }
}
