// SPDX-License-Identifier: BSD-2-Clause
//! Blocks of the provider below: those that are being sent, and those that messages came into.

use std::collections::VecDeque;

use ffi::{
    Buffer, Errno,
    client::{self, Client, Event},
};

use super::{contact::Contact, contacts::Contacts, frame::HEAD};

/// Blocks to send from.
pub(super) const STAGING: usize = 128;

/// What a provider below gets of blocks.
pub(super) struct Share {
    /// Blocks to receive into, and bytes of each.
    pub(super) receives: (usize, usize),
    /// Blocks that are being sent to one peer at most: others go on while a few peers take nothing.
    a_peer: u32,
}

/// Of one whose blocks the kernel fills: a block holds one long part and little more, since blocks that
/// are used again soon stay in the cache. A message that finds no block waits in the socket.
const KERNEL: Share = Share { receives: (6, 272 * 1024), a_peer: 16 };
/// Of others. `sockets` of libfabric 1.17 loses messages that find no block.
const OTHERS: Share = Share { receives: (4, 512 * 1024), a_peer: 8 };

impl Share {
    pub(super) fn of(provider: &str) -> &'static Self {
        if client::is_kernel(provider) { &KERNEL } else { &OTHERS }
    }
}

/// Where a message is that came.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parcel {
    pub(super) block: usize,
    pub(super) at: usize,
    pub(super) len: usize,
}

/// To whom a block goes, and the operation whose memory goes with it, if some does. The number may be
/// another's by the time it has gone: the token that this one's frames carry tells them apart.
#[derive(Clone, Copy, Debug, Default)]
struct Sending {
    number: u16,
    token_here: u32,
    lent_by: Option<u64>,
}

/// A block to receive into.
///
/// A provider that says that a block is full means that no other message begins in it. One that came
/// over another connection may have begun before, and still be written: the block is free once
/// messages have come that leave no room for one between them.
#[derive(Debug, Default)]
struct Receive {
    /// Messages in it that were not handled.
    parcels: u32,
    /// No other message begins in it.
    is_full: bool,
    /// Where those that came begin and end.
    came: Vec<(usize, usize)>,
}

impl Receive {
    fn is_free(&mut self) -> bool {
        self.is_full && self.parcels == 0 && self.is_covered()
    }

    /// Whether nothing is missing before the last message. What is shorter than any message is none:
    /// some providers align them.
    fn is_covered(&mut self) -> bool {
        self.came.sort_unstable();
        let mut end = 0;
        self.came.iter().all(|&(from, to)| from < std::mem::replace(&mut end, to) + HEAD)
    }
}

/// See the module.
#[derive(Debug)]
pub(super) struct Traffic {
    pub(super) below: Client,
    /// By block that is being sent.
    sending: [Sending; STAGING],
    came: VecDeque<Parcel>,
    receives: Vec<Receive>,
    /// Most blocks under way to a peer.
    a_peer: u32,
}

impl Traffic {
    pub(super) fn new(below: Client) -> Self {
        let receives = (0..below.receives().blocks()).map(|_| Receive::default()).collect();
        let a_peer = Share::of(below.provider()).a_peer;
        Self {
            below,
            sending: [Sending::default(); STAGING],
            came: VecDeque::new(),
            receives,
            a_peer,
        }
    }

    /// Makes progress.
    pub(super) fn read(&mut self, contacts: &mut Contacts) {
        let Self { below, sending, came, receives, .. } = self;
        // To whom it went, if that one is still known.
        let mut ended = |block: usize, contacts: &mut Contacts| {
            let Sending { number, token_here, lent_by } = std::mem::take(&mut sending[block]);
            let contact = contacts.get_mut(number).filter(|it| it.is_from(token_here))?;
            contact.under_way -= 1;
            contact.lent -= u32::from(lent_by.is_some());
            Some(number)
        };
        let mut goes_on = true;
        while goes_on {
            goes_on = below.read(|event| match event {
                Event::Sent(block) => _ = ended(block, contacts),
                Event::Lost(block, errno) => {
                    if let Some(number) = ended(block, contacts) {
                        contacts.lost(number, errno);
                    }
                }
                Event::Came { block, at, len } => {
                    receives[block].parcels += 1;
                    receives[block].came.push((at, at + len));
                    came.push_back(Parcel { block, at, len });
                }
                Event::Full(block) => receives[block].is_full = true,
                Event::Failed(errno) => tracing::warn!("the network below: {errno}"),
            });
        }
        for block in 0..self.receives.len() {
            self.post_again(block);
        }
    }

    /// The next message that came.
    pub(super) fn next(&mut self) -> Option<Parcel> {
        self.came.pop_front()
    }

    /// A message is to be the next once more.
    pub(super) fn put_back(&mut self, parcel: Parcel) {
        self.came.push_front(parcel);
    }

    pub(super) fn has_some(&self) -> bool {
        !self.came.is_empty()
    }

    /// A message was handled.
    pub(super) fn done(&mut self, parcel: Parcel) {
        self.receives[parcel.block].parcels -= 1;
        self.post_again(parcel.block);
    }

    fn post_again(&mut self, block: usize) {
        let receive = &mut self.receives[block];
        if receive.is_free() && self.below.post(block).is_ok() {
            receive.is_full = false;
            receive.came.clear();
        }
    }

    /// Whether memory of an operation has yet to be sent.
    pub(super) fn is_lent(&self, number: u16, op: u64) -> bool {
        self.sending.iter().any(|it| it.lent_by == Some(op) && it.number == number)
    }

    /// Whether a block may go to a peer.
    pub(super) fn has_room(&self, contact: Option<&Contact>) -> bool {
        self.below.has_staging() && contact.is_none_or(|contact| contact.under_way < self.a_peer)
    }

    /// Sends what is filled in, and what is behind it of an operation; whether there was room.
    pub(super) fn send(
        &mut self,
        contacts: &mut Contacts,
        number: u16,
        fill: impl FnOnce(&mut [u8]) -> usize,
        behind: Option<(&Buffer, u64)>,
    ) -> bool {
        // Who sends until there is room may do nothing else.
        if !self.has_room(contacts.get(number.into())) {
            self.read(contacts);
            if !self.has_room(contacts.get(number.into())) {
                return false;
            }
        }
        let Some(contact) = contacts.get_mut(number) else { return true };
        match self.below.send(contact.to, fill, behind.map(|(buffer, _)| buffer)) {
            Ok(block) => {
                contact.under_way += 1;
                contact.lent += u32::from(behind.is_some());
                contact.sent += 1;
                let (token_here, lent_by) = (contact.token_here, behind.map(|(_, op)| op));
                self.sending[block] = Sending { number, token_here, lent_by };
                true
            }
            Err(Errno::EAGAIN) => {
                self.read(contacts);
                false
            }
            Err(errno) => {
                contacts.lost(number, errno);
                true
            }
        }
    }

    /// The same of bytes that are copied at once.
    pub(super) fn inject(&mut self, contacts: &mut Contacts, number: u16, bytes: &[u8]) -> bool {
        let Some(contact) = contacts.get_mut(number) else { return true };
        match self.below.inject(contact.to, bytes) {
            Ok(()) => {
                contact.sent += 1;
                true
            }
            Err(Errno::EAGAIN) => {
                self.read(contacts);
                false
            }
            Err(errno) => {
                contacts.lost(number, errno);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_free_once_all_have_come_that_began_in_it() {
        let mut block = Receive { is_full: true, ..Receive::default() };
        block.came = vec![(300, 400), (0, 100)];
        assert!(!block.is_free());
        // Aligned to 8 bytes.
        block.came.push((104, 297));
        assert!(block.is_free());
        block.came.push((400 + HEAD, 600));
        assert!(!block.is_free());
    }
}
