// SPDX-License-Identifier: BSD-2-Clause
//! What has come over the network.
#![allow(unsafe_code, reason = "memory that the provider below writes into")]

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use ffi::client::Area;

use super::{
    contact::Contact,
    end::{Net, State},
    frame::{HEAD, Head},
    traffic::Parcel,
};
use crate::{
    bytes::SharedBytes,
    shm::ring::Slot,
    wire::{FAR, Header},
};

/// Polls that find nothing between looks at connections, where nobody is being met.
const LOOK: u32 = 64;

#[derive(Clone, Copy, Debug)]
struct Current {
    parcel: Parcel,
    number: u16,
    head: Head,
    header: Option<Header>,
}

/// What a message turned out to be.
enum Opened {
    Known(Current),
    /// Its sender has yet to say who it is.
    Early,
    /// Of nobody who is known.
    Odd,
}

/// See the module.
#[derive(Debug)]
pub struct Inbox {
    net: Arc<Net>,
    area: Arc<Area>,
    current: Option<Current>,
    released: u64,
    /// Polls that found nothing.
    empty: u32,
}

impl Inbox {
    pub(crate) fn new(net: &Arc<Net>) -> Self {
        let area = Arc::clone(net.state.lock().traffic.below.receives());
        Self { net: Arc::clone(net), area, current: None, released: 0, empty: 0 }
    }

    /// Makes progress, and whether nothing has come.
    pub(crate) fn is_empty(&mut self) -> bool {
        if self.current.is_some() {
            return false;
        }
        let State { contacts, traffic } = &mut *self.net.state.lock();
        if traffic.has_some() {
            return false;
        }
        traffic.read(contacts);
        if traffic.has_some() {
            self.empty = 0;
            return false;
        }
        self.empty = self.empty.wrapping_add(1);
        if contacts.greets() || self.empty.is_multiple_of(LOOK) {
            contacts.tend(&mut traffic.below);
        }
        true
    }

    pub(crate) fn peek(&mut self) -> Option<Slot> {
        while self.current.is_none() {
            let parcel = self.net.state.lock().traffic.next()?;
            match self.open(parcel) {
                Opened::Known(current) => self.current = Some(current),
                Opened::Early => {
                    self.net.state.lock().traffic.put_back(parcel);
                    return None;
                }
                Opened::Odd => {
                    say_odd();
                    self.net.state.lock().traffic.done(parcel);
                }
            }
        }
        self.current.as_ref().map(|current| Slot { header: current.header })
    }

    /// What a message is.
    fn open(&self, parcel: Parcel) -> Opened {
        let start = self.area.part(parcel.block, parcel.at, parcel.len);
        let Some(start) = start.filter(|_| parcel.len >= HEAD) else { return Opened::Odd };
        // SAFETY: so many bytes of a block, which stay as they are until the parcel is done.
        let bytes = unsafe { start.cast::<[u8; HEAD]>().read() };
        let head = Head::of_bytes(&bytes);
        let number = (head.words[0] >> 16) as u16;
        let State { contacts, traffic } = &mut *self.net.state.lock();
        let is_known = |contact: &Contact| contact.is_from(head.token) && contact.who.is_some();
        if !contacts.get(number.into()).is_some_and(is_known) {
            contacts.tend(&mut traffic.below);
            match contacts.get(number.into()) {
                Some(contact) if is_known(contact) => {}
                Some(contact) if contact.is_from(head.token) && contact.greets() => {
                    return Opened::Early;
                }
                _ => return Opened::Odd,
            }
        }
        if !contacts.is_next(number, head.before) {
            return Opened::Odd;
        }
        let header = Header::read(head.words)
            .map(|header| Header { peer: FAR + u32::from(number), ..header });
        Opened::Known(Current { parcel, number, head, header })
    }

    pub(crate) fn payload(&self) -> SharedBytes<'_> {
        let bytes = self.current.as_ref().and_then(|current| {
            let Parcel { block, at, len } = current.parcel;
            let start = self.area.part(block, at + HEAD, len - HEAD)?;
            // SAFETY: bytes of the area, which is there as long as the inbox; the block is not given
            // back before the slot is released.
            Some(unsafe { SharedBytes::new(start.cast_mut(), len - HEAD) })
        });
        bytes.unwrap_or_else(|| SharedBytes::from(&[][..]))
    }

    pub(crate) fn check(&self) -> Option<u32> {
        let current = self.current.as_ref()?;
        let sum = Head::sum_of(&current.head.words, &self.payload().keep());
        (sum == current.head.sum).then_some(current.head.check)
    }

    pub(crate) fn release(&mut self) {
        if let Some(current) = self.current.take() {
            let State { contacts, traffic } = &mut *self.net.state.lock();
            traffic.done(current.parcel);
            contacts.saw(current.number);
            self.released += 1;
        }
    }

    pub(crate) fn position(&self) -> u64 {
        self.released
    }

    /// Behind all that has come.
    pub(crate) fn end(&mut self) -> u64 {
        self.released + u64::from(!self.is_empty())
    }
}

/// Says, once, that somebody sends who is not known.
#[cold]
fn say_odd() {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        tracing::warn!("a message over the network of nobody who is known");
    }
}
