// SPDX-License-Identifier: BSD-2-Clause
//! CMA guard: the segment whose owner's memory an endpoint copies from or to right now. Once
//! `fi_close` has returned, earlier requests must not access the memory of the application.
//!
//! ```text
//! copying endpoint                  closing endpoint
//! cma word = the peer's segment        state = closed, or first = the next age
//! ---------- fence ----------       ---------- fence ----------
//! copies if the state is open       waits while cma word is its segment
//! and the operation is not void
//! cma word = 0
//! ```

use std::sync::atomic::{Ordering, fence};

use super::segment::Segment;

/// Permission to copy from and to memory of a peer, until it is dropped.
#[derive(Debug)]
pub(crate) struct CmaGuard<'a>(&'a Segment);

impl Segment {
    /// Announces a copy from or to memory of a peer's process, for the peer's operation `op`.
    /// Returns `None` if the peer, or the context of the operation, has closed.
    pub(crate) fn guard_cma(&self, peer: &Self, op: u64) -> Option<CmaGuard<'_>> {
        self.cma_word().store(peer.inode(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let guard = CmaGuard(self);
        (peer.is_open() && !peer.is_void(op)).then_some(guard)
    }

    /// Returns whether this endpoint, a peer, copies from or to memory of `closed`.
    pub(crate) fn reaches(&self, closed: &Self) -> bool {
        fence(Ordering::SeqCst);
        self.cma_word().load(Ordering::Acquire) == closed.inode()
    }
}

impl Drop for CmaGuard<'_> {
    fn drop(&mut self) {
        self.0.cma_word().store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::number;
    use std::net::{Ipv4Addr, SocketAddrV4};

    #[test]
    fn memory_of_a_closed_endpoint_is_not_copied() {
        let make = |port| Segment::create(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap();
        let (own, other) = (make(60), make(61));
        let peer = Segment::open(61).unwrap().0;
        let seen = Segment::open(60).unwrap().0;
        assert!(!seen.reaches(&other));
        let of_age = |age| number(age, 3);
        drop(own.guard_cma(&peer, of_age(6)).unwrap());
        other.void_before(7);
        assert!(own.guard_cma(&peer, of_age(6)).is_none());
        let guard = own.guard_cma(&peer, of_age(7)).unwrap();
        assert!(seen.reaches(&other) && !seen.reaches(&own));
        other.close();
        assert!(seen.reaches(&other));
        drop(guard);
        assert!(!seen.reaches(&other) && own.guard_cma(&peer, of_age(7)).is_none());
        assert!(!seen.reaches(&other));
    }
}
