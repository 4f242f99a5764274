// SPDX-License-Identifier: BSD-2-Clause
//! `fi_av(3)`: which `fi_addr_t` stands for which peer, and back.
//!
//! A `fi_addr_t` is an index in both types of vector. Reading takes no lock:
//! the data path looks up both directions.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use ffi::{
    Errno, Result, flags,
    object::{Bindable, Bound, Object},
    ops::{
        self,
        av::Insert,
        eq::{ErrorEvent, Event},
    },
    sys,
};
use parking_lot::Mutex;

use crate::{address, domain::Domain, drivers::Drivers, eq::EventQueue, peers::Words};

/// An address vector.
#[derive(Debug)]
pub(crate) struct AddressVector {
    domain: Arc<Domain>,
    kind: u32,
    events: bool,
    /// Peer number + 1 by `fi_addr_t`; 0 where there is none.
    entries: Words,
    /// `fi_addr_t` + 1 by peer number.
    by_peer: Words,
    /// Indices given out so far.
    used: AtomicU64,
    free: Mutex<Vec<u64>>,
    eq: Mutex<Option<Arc<EventQueue>>>,
    /// The endpoints that are told how many addresses there are.
    pub(crate) endpoints: Drivers,
}

impl AddressVector {
    pub(crate) fn open(domain: &Arc<Domain>, attr: &ops::av::Attr, default: u32) -> Result<Self> {
        if attr.named || attr.rx_ctx_bits != 0 {
            tracing::info!("shared address vectors and receive contexts are not supported");
            return Err(Errno::ENOSYS);
        }
        let asked = if attr.kind == sys::FI_AV_UNSPEC { default } else { attr.kind };
        Ok(Self {
            domain: Arc::clone(domain),
            kind: if asked == sys::FI_AV_UNSPEC { sys::FI_AV_TABLE } else { asked },
            events: attr.flags & flags::EVENT != 0,
            entries: Words::new(),
            by_peer: Words::new(),
            used: AtomicU64::new(0),
            free: Mutex::default(),
            eq: Mutex::default(),
            endpoints: Drivers::new(domain.locked),
        })
    }

    /// The peer an address stands for.
    #[inline]
    pub(crate) fn peer(&self, address: u64) -> Option<u32> {
        if address >= self.used.load(Ordering::Acquire) {
            return None;
        }
        (self.entries.get(address as usize) as u32).checked_sub(1)
    }

    /// The address that stands for a peer, or `FI_ADDR_NOTAVAIL`.
    #[inline]
    pub(crate) fn address_of(&self, peer: u32) -> u64 {
        self.by_peer.get(peer as usize).checked_sub(1).unwrap_or(flags::ADDR_UNSPEC)
    }

    /// Addresses in the vector.
    pub(crate) fn count(&self) -> u32 {
        let free = self.free.lock().len() as u64;
        u32::try_from(self.used.load(Ordering::Relaxed) - free).unwrap_or(u32::MAX)
    }

    fn insert_one(&self, bytes: &[u8]) -> Option<u64> {
        let peer = self.domain.peers.number(address::from_bytes(bytes)?);
        let mut free = self.free.lock();
        let index = free.pop().unwrap_or_else(|| self.used.load(Ordering::Relaxed));
        self.entries.set(index as usize, u64::from(peer) + 1);
        if self.by_peer.get(peer as usize) == 0 {
            self.by_peer.set(peer as usize, index + 1);
        }
        self.used.fetch_max(index + 1, Ordering::AcqRel);
        Some(index)
    }
}

impl Object for AddressVector {
    fn bind(&self, other: &Bound, bind_flags: u64) -> Result<()> {
        if bind_flags != 0 {
            return Err(Errno::EBADFLAGS);
        }
        *self.eq.lock() = Some(other.get::<EventQueue>()?);
        Ok(())
    }

    fn close(&self) -> Result<()> {
        self.eq.lock().take();
        Ok(())
    }
}

impl Bindable for AddressVector {
    type Raw = sys::fid_av;
}

impl ops::av::AddressVector for AddressVector {
    const ADDRESS_LEN: usize = address::LEN;

    fn kind(&self) -> u32 {
        self.kind
    }

    fn insert(&self, call: Insert<'_>) -> Result<usize> {
        ffi::object::only(call.flags, flags::MORE | flags::SYNC_ERR)?;
        let eq = self.eq.lock().clone().or_else(|| self.domain.eq());
        if self.events && eq.is_none() {
            return Err(Errno::ENOEQ);
        }
        let Insert { mut to, mut errors, .. } = call;
        let mut inserted = 0;
        for (index, bytes) in call.addresses.chunks_exact(address::LEN).enumerate() {
            let address = self.insert_one(bytes);
            if let Some(to) = &mut to {
                to[index] = address.unwrap_or(flags::ADDR_UNSPEC);
            }
            if let Some(errors) = &mut errors {
                errors[index] = if address.is_some() { 0 } else { Errno::EINVAL.get() };
            }
            if address.is_some() {
                inserted += 1;
                continue;
            }
            tracing::warn!("address {index} of an insert is no sockaddr_in");
            if let (true, Some(eq)) = (self.events, &eq) {
                eq.push_error(ErrorEvent {
                    fid: call.av,
                    context: call.context,
                    data: index as u64,
                    errno: Errno::EINVAL,
                });
            }
        }
        self.endpoints.set_processes(|| self.count());
        if let (true, Some(eq)) = (self.events, eq) {
            eq.push(Event::av_complete(call.av, call.context, inserted));
            return Ok(0);
        }
        Ok(inserted)
    }

    fn resolve(&self, node: Option<&str>, service: Option<&str>) -> Result<Vec<u8>> {
        let address = address::resolve(node, service, false).map_err(|_| Errno::EINVAL)?;
        Ok(address::to_bytes(address).to_vec())
    }

    fn remove(&self, addresses: &[u64]) -> Result<()> {
        for &address in addresses {
            let peer = self.peer(address).ok_or(Errno::EINVAL)?;
            let mut free = self.free.lock();
            self.entries.set(address as usize, 0);
            if self.address_of(peer) == address {
                // The same endpoint may have been inserted twice.
                let other = (0..self.used.load(Ordering::Relaxed))
                    .find(|&other| self.peer(other) == Some(peer));
                self.by_peer.set(peer as usize, other.map_or(0, |other| other + 1));
            }
            free.push(address);
        }
        Ok(())
    }

    fn lookup(&self, address: u64) -> Result<Vec<u8>> {
        let peer = self.peer(address).ok_or(Errno::EINVAL)?;
        Ok(address::to_bytes(self.domain.peers.address(peer)).to_vec())
    }

    fn format(&self, bytes: &[u8]) -> String {
        address::from_bytes(bytes).map_or_else(
            || "no sockaddr_in".to_owned(),
            |address| format!("fi_sockaddr_in://{address}"),
        )
    }
}
