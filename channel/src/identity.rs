// SPDX-License-Identifier: BSD-2-Clause
//! Who an endpoint is: its port, and which of all that ever had this port.
//!
//! ```text
//! bits 63..48   port
//! bits 47..40   context: which of a scalable endpoint's it is; 0 for all other endpoints
//! bits 39..0    incarnation, random, not 0
//! ```
//!
//! One word, so that it is entered into a list of senders with one store. Two endpoints in turn
//! at one port have the same incarnation once in 10^12 times. The contexts of a scalable endpoint
//! have consecutive ports, so that a context's identity tells the port of the first one.

use std::io;

use ffi::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

const CONTEXT: u32 = 40;
const INCARNATION: u64 = (1 << CONTEXT) - 1;

/// See the module. Never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Identity(u64);

impl Identity {
    /// A new endpoint at a port, or a context of a scalable endpoint.
    ///
    /// # Errors
    /// The kernel has no random numbers.
    pub fn new(port: u16, context: u8) -> Result<Self, Errno> {
        let mut bytes = [0_u8; 8];
        let random = getrandom(&mut bytes, GetRandomFlags::empty()).map_err(io::Error::from)?;
        if random < bytes.len() {
            return Err(Errno::EIO);
        }
        let incarnation = (u64::from_ne_bytes(bytes) & INCARNATION).max(1);
        Ok(Self(u64::from(port) << 48 | u64::from(context) << CONTEXT | incarnation))
    }

    /// The one that a word tells, if it tells one.
    pub fn of_word(word: u64) -> Option<Self> {
        (word & INCARNATION != 0).then_some(Self(word))
    }

    /// It, as one word.
    #[must_use]
    pub fn word(self) -> u64 {
        self.0
    }

    /// Its port.
    #[must_use]
    pub fn port(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// Which context of a scalable endpoint it is; 0 is the first one, or any other endpoint.
    #[must_use]
    pub fn context(self) -> u8 {
        (self.0 >> CONTEXT) as u8
    }

    /// The port that the address of its endpoint has, of which it may be a later context.
    #[must_use]
    pub fn endpoint_port(self) -> u16 {
        self.port().wrapping_sub(self.context().into())
    }

    /// Tells the rings of endpoints apart that senders claim positions of: all there are by
    /// their ports, and an endpoint from those before it by a part of the incarnation.
    pub fn ring(self) -> u32 {
        u32::from(self.port()) << 16 | u32::from(self.0 as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_told_from_those_before_it() {
        let [first, second] = [Identity::new(7, 0).unwrap(), Identity::new(7, 0).unwrap()];
        assert_ne!(first, second);
        assert_eq!((first.port(), first.ring() >> 16), (7, 7));
        assert_eq!(Identity::of_word(first.word()), Some(first));
        assert_eq!(Identity::of_word(7 << 48), None);
        assert_eq!((first.context(), first.endpoint_port()), (0, 7));
    }

    #[test]
    fn a_context_tells_its_endpoint() {
        let context = Identity::new(4711, 255).unwrap();
        assert_eq!((context.port(), context.context()), (4711, 255));
        assert_eq!(context.endpoint_port(), 4456);
        assert_eq!(Identity::of_word(context.word()), Some(context));
        assert_eq!(Identity::of_word(7 << 48 | 3 << CONTEXT), None);
    }
}
