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
    input::Frame,
    traffic::Parcel,
};
use crate::{
    bytes::SharedBytes,
    shm::ring::Slot,
    wire::{FAR, Header, Kind},
};

/// Polls that find nothing between looks at connections, where nobody is being met.
const LOOK: u32 = 64;

/// Where a message lies.
#[derive(Clone, Debug)]
enum Place {
    /// In a block of the provider below.
    Block(Parcel),
    /// In the buffer of a connection, unless it is in the memory of the application already.
    Connection(usize, Option<(Arc<Vec<u8>>, usize, usize)>),
}

#[derive(Clone, Debug)]
struct Current {
    place: Place,
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
    /// The blocks of the provider below.
    area: Option<Arc<Area>>,
    current: Option<Current>,
    released: u64,
    /// Polls that found nothing.
    empty: u32,
}

impl Inbox {
    pub(crate) fn new(net: &Arc<Net>) -> Self {
        let state = net.state.lock();
        let area = state.traffic.as_ref().map(|traffic| Arc::clone(traffic.below.receives()));
        drop(state);
        Self { net: Arc::clone(net), area, current: None, released: 0, empty: 0 }
    }

    /// Makes progress, and whether nothing has come.
    pub(crate) fn is_empty(&mut self) -> bool {
        if self.current.is_some() {
            return false;
        }
        if !self.net.is_ours() {
            return true;
        }
        let mut state = self.net.state.lock();
        if state.has_some() {
            return false;
        }
        let State { contacts, traffic: Some(traffic) } = &mut *state else {
            state.progress();
            return !state.has_some();
        };
        traffic.read(contacts);
        if traffic.has_some() {
            self.empty = 0;
            return false;
        }
        self.empty = self.empty.wrapping_add(1);
        if contacts.greets() || self.empty.is_multiple_of(LOOK) {
            contacts.tend(Some(&mut traffic.below));
        }
        true
    }

    pub(crate) fn peek(&mut self) -> Option<Slot> {
        if self.current.is_none() && self.net.is_ours() {
            self.current =
                if self.area.is_some() { self.next_below() } else { self.next_connected() };
        }
        self.current.as_ref().map(|current| Slot { header: current.header })
    }

    /// The next message that came over a connection.
    fn next_connected(&self) -> Option<Current> {
        let (connection, number, frame) = self.net.state.lock().contacts.take()?;
        let Frame { head, payload } = frame;
        let header = Header::read(head.words).map(|header| {
            let kind = if payload.is_none() { Kind::Landed } else { header.kind };
            Header { kind, peer: FAR + u32::from(number), ..header }
        });
        let place = Place::Connection(connection, payload);
        Some(Current { place, number, head, header })
    }

    /// The next message that came over the provider below.
    fn next_below(&self) -> Option<Current> {
        loop {
            let parcel = self.net.state.lock().traffic.as_mut()?.next()?;
            let opened = self.open(parcel);
            let traffic = &mut self.net.state.lock().traffic;
            let Some(traffic) = traffic else { return None };
            match opened {
                Opened::Known(current) => return Some(current),
                Opened::Early => {
                    traffic.put_back(parcel);
                    return None;
                }
                Opened::Odd => {
                    say_odd();
                    traffic.done(parcel);
                }
            }
        }
    }

    /// What a message is.
    fn open(&self, parcel: Parcel) -> Opened {
        let area = self.area.as_ref();
        let start = area.and_then(|area| area.part(parcel.block, parcel.at, parcel.len));
        let Some(start) = start.filter(|_| parcel.len >= HEAD) else { return Opened::Odd };
        // SAFETY: so many bytes of a block, which stay as they are until the parcel is done.
        let bytes = unsafe { start.cast::<[u8; HEAD]>().read() };
        let head = Head::of_bytes(&bytes);
        let number = (head.words[0] >> 16) as u16;
        let State { contacts, traffic: Some(traffic) } = &mut *self.net.state.lock() else {
            return Opened::Odd;
        };
        let is_known = |contact: &Contact| contact.is_from(head.token) && contact.who.is_some();
        if !contacts.get(number.into()).is_some_and(is_known) {
            contacts.tend(Some(&mut traffic.below));
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
        Opened::Known(Current { place: Place::Block(parcel), number, head, header })
    }

    pub(crate) fn payload(&self) -> SharedBytes<'_> {
        let bytes = self.current.as_ref().and_then(|current| match &current.place {
            Place::Block(Parcel { block, at, len }) => {
                let start = self.area.as_ref()?.part(*block, at + HEAD, len - HEAD)?;
                // SAFETY: bytes of the area, which is there as long as the inbox; the block is not
                // given back before the slot is released.
                Some(unsafe { SharedBytes::new(start.cast_mut(), len - HEAD) })
            }
            Place::Connection(_, Some((bytes, at, len))) => {
                bytes.get(*at..at + len).map(SharedBytes::from)
            }
            Place::Connection(_, None) => None,
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
            match current.place {
                Place::Block(parcel) => traffic.iter_mut().for_each(|it| it.done(parcel)),
                Place::Connection(connection, payload) => {
                    drop(payload);
                    contacts.connections.done(connection);
                }
            }
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
