// SPDX-License-Identifier: BSD-2-Clause
//! The list of senders of an endpoint, in its segment. A slot names its sender by a number in this
//! list.
//!
//! ```text
//! sender      enters its identity at the first free number
//! owner       reads the identity when the first slot with the number comes; frees the number after
//!             the sender has closed or died and all its slots were handled
//! ```
//!
//! So while the ring contains a slot with a number, the number does not pass to another endpoint.
//! The list has a number for each port, so living endpoints cannot fill it.
//!
//! If the file system can reserve memory, only the first page exists from the start. A sender that
//! needs another page reserves it first, so that a full `/dev/shm` is an error and not a `SIGBUS`.
//! The owner reads those pages as a file: a damaged slot may name any number, and an access through
//! the mapping would allocate the page.
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    sync::atomic::{AtomicU64, Ordering},
};

use ffi::Errno;
use host::live::{PAGE, PEERS};
use rustix::{
    fs::{FallocateFlags, fallocate},
    io::retry_on_intr,
};

use super::{
    protocol::{self, SenderList},
    segment::{SENDERS, SENDERS_END, SENDERS_NEXT, Segment},
};
use crate::identity::Identity;

/// Number of senders in a page of the list.
pub(crate) const SENDERS_PER_PAGE: usize = PAGE / 8;

impl SenderList for Segment {
    type Word = AtomicU64;
    const NUMBERS: u64 = PEERS as u64;

    fn next(&self) -> &AtomicU64 {
        self.word(SENDERS_NEXT)
    }

    fn end(&self) -> &AtomicU64 {
        self.word(SENDERS_END)
    }

    fn entry(&self, number: u64) -> &AtomicU64 {
        self.word(SENDERS + number as usize % PEERS * 8)
    }
}

impl Segment {
    /// Enters the endpoint `who` into the list in this segment, which a peer owns. `file` is its
    /// file. Returns the number of the endpoint in the list.
    ///
    /// # Errors
    /// `ENOSPC` if `/dev/shm` is full, `EPROTO` if the list is full, which living endpoints cannot
    /// cause.
    pub(crate) fn enter(&self, file: &File, who: Identity) -> Result<u16, Errno> {
        let number = protocol::enter(self, who.word(), |number| reserve(file, number))?;
        number.map(|number| number as u16).ok_or_else(|| {
            tracing::warn!("cannot send to port {}: its list of senders is full", self.port());
            Errno::EPROTO
        })
    }

    /// Returns the sender with a number, in the list of this process's endpoint. `None` if the
    /// number is free or cannot be read.
    pub(crate) fn sender(&self, number: u16) -> Option<Identity> {
        if usize::from(number) < SENDERS_PER_PAGE {
            // This page always exists. The mapping also works if the program has closed all its
            // descriptors.
            return Identity::of_word(self.entry(number.into()).load(Ordering::Acquire));
        }
        let mut word = [0; 8];
        let at = SENDERS + usize::from(number) * 8;
        self.file()?.read_exact_at(&mut word, at as u64).ok()?;
        Identity::of_word(u64::from_ne_bytes(word))
    }

    /// Returns the senders in a page of the list of this process's endpoint, and their numbers.
    /// Page numbers wrap around. If the page cannot be read, the result is empty.
    pub(crate) fn senders_in(&self, page: usize) -> Vec<(u32, Identity)> {
        let mut words = [0; PAGE];
        let at = SENDERS + page % self.list_pages() * PAGE;
        if self.file().is_none_or(|file| file.read_exact_at(&mut words, at as u64).is_err()) {
            return Vec::new();
        }
        let first = (at - SENDERS) / 8;
        let words = words.as_chunks().0.iter().map(|word| u64::from_ne_bytes(*word));
        let entries = (first..).zip(words);
        let who = |(number, word)| Some((number as u32, Identity::of_word(word)?));
        entries.filter_map(who).collect()
    }

    /// Returns the number of pages of the list that have had numbers in use, at least 1.
    pub(crate) fn list_pages(&self) -> usize {
        let end = self.end().load(Ordering::Acquire).min(PEERS as u64) as usize;
        end.div_ceil(SENDERS_PER_PAGE).max(1)
    }

    /// Frees the number of the sender `who`, which has closed or died. All its slots must have been
    /// handled.
    pub(crate) fn strike(&self, number: u16, who: Identity) {
        protocol::strike(self, number.into(), who.word());
    }
}

/// Reserves the memory of the entry with this number, before the entry is accessed.
fn reserve(file: &File, number: u64) -> Result<(), Errno> {
    if number < SENDERS_PER_PAGE as u64 {
        return Ok(());
    }
    let at = SENDERS as u64 + number * 8 / PAGE as u64 * PAGE as u64;
    let given = retry_on_intr(|| fallocate(file, FallocateFlags::KEEP_SIZE, at, PAGE as u64));
    match given {
        // Where the file system cannot reserve memory, the owner has written to all pages.
        Ok(()) | Err(rustix::io::Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    fn segment(port: u16) -> Segment {
        Segment::create(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap()
    }

    #[test]
    fn numbers_are_given_back_and_the_lowest_is_next() {
        let own = segment(151);
        let (peer, file) = Segment::open(151).unwrap();
        let who: Vec<_> = (1..=5).map(|port| Identity::new(port, 0).unwrap()).collect();
        let enter = |who: Identity| peer.enter(&file, who).unwrap();
        assert_eq!(who[..4].iter().map(|&who| enter(who)).collect::<Vec<_>>(), [0, 1, 2, 3]);
        own.strike(1, who[2]);
        assert_eq!(own.sender(1), Some(who[1]), "another's number");
        own.strike(1, who[1]);
        assert_eq!(own.sender(1), None);
        assert_eq!(enter(who[4]), 1);
        assert_eq!(
            (own.sender(1), own.sender(4), own.sender(u16::MAX)),
            (Some(who[4]), None, None)
        );
        let listed = own.senders_in(0);
        assert_eq!(listed, [(0, who[0]), (1, who[4]), (2, who[2]), (3, who[3])]);
    }

    #[test]
    fn the_list_grows_to_as_many_as_there_are_ports_and_no_further() {
        let own = segment(152);
        let (peer, file) = Segment::open(152).unwrap();
        for number in 0..PEERS {
            let who = Identity::of_word(number as u64 + 1).unwrap();
            assert_eq!(usize::from(peer.enter(&file, who).unwrap()), number);
        }
        let one_more = Identity::new(9, 0).unwrap();
        assert_eq!(peer.enter(&file, one_more), Err(Errno::EPROTO));
        own.strike(40_000, Identity::of_word(40_001).unwrap());
        assert_eq!(peer.enter(&file, one_more), Ok(40_000));
        assert_eq!(own.list_pages(), PEERS / SENDERS_PER_PAGE);
        assert_eq!(own.senders_in(1)[0].0 as usize, SENDERS_PER_PAGE);
    }
}
