// SPDX-License-Identifier: BSD-2-Clause
//! `fi_av(3)`: the mapping between `fi_addr_t` and peer numbers.
//!
//! A `fi_addr_t` is an index, for `FI_AV_MAP` too. Lookups take no lock in either direction,
//! because every message needs a lookup. The exception is the first lookup of an address that
//! another process has inserted into a shared vector.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use channel::address::{pack, unpack};
use ffi::{
    Errno, Result, flags,
    object::{Bound, Object},
    ops::{
        self,
        av::Insert,
        eq::{ErrorEvent, Event},
    },
    sys,
};
use host::{owner, shared_av::SharedAddresses};
use parking_lot::Mutex;

use crate::{
    address,
    domain::{Domain, OfDomain},
    eq::EventQueue,
    peer_numbers::GrowingArray,
    rx_contexts::RxContexts,
    wait::set::WaitSet,
};

/// An address vector.
#[derive(Debug)]
pub(crate) struct AddressVector {
    domain: Arc<Domain>,
    kind: u32,
    events: bool,
    /// Peer number + 1 by `fi_addr_t`; 0 if the index is empty.
    entries: GrowingArray,
    rx_contexts: RxContexts,
    /// `fi_addr_t` + 1 by peer number; 0 if the peer is not in the vector.
    by_peer: GrowingArray,
    /// Whether completions contain the application's ids of peers.
    has_user_ids: AtomicBool,
    /// Whether completions of peers without an id contain `FI_ADDR_NOTAVAIL` instead of a
    /// `fi_addr_t`. This is so if `FI_AV_USER_ID` was a flag of the vector, and not of an
    /// insertion.
    only_user_ids: bool,
    /// The application's id + 1, by peer number; 0 without an id.
    user_ids: GrowingArray,
    /// The addresses, if processes share them. `entries` and `by_peer` then contain the addresses
    /// that this process has already looked up.
    shared: Option<SharedTable>,
    /// Number of indices that were ever used, if the vector is not shared.
    used: AtomicU64,
    indices: Mutex<Indices>,
    eq: Mutex<Option<Arc<EventQueue>>>,
    /// Endpoints that take their number of processes from the number of addresses.
    pub(crate) endpoints: WaitSet,
}

/// State that is used only when addresses are inserted or removed.
#[derive(Debug, Default)]
struct Indices {
    /// Indices whose addresses this process removed. The lowest is used next.
    free: BTreeSet<u64>,
    /// Further indices of peers that were inserted more than once; one index is in `by_peer`.
    more: HashMap<u32, BTreeSet<u64>>,
}

#[derive(Debug)]
struct SharedTable {
    addresses: SharedAddresses,
    /// Addresses as they were when `entries` was set, by `fi_addr_t`.
    seen: GrowingArray,
    /// Value of [`SharedAddresses::changes`] when all addresses were last searched for a peer.
    searched: AtomicU64,
}

impl AddressVector {
    pub(crate) fn open(domain: &Arc<Domain>, attr: &ops::av::AvAttr, default: u32) -> Result<Self> {
        let allowed = flags::EVENT | flags::READ | flags::SYMMETRIC | flags::AV_USER_ID;
        ffi::object::check_flags(attr.flags, allowed)?;
        let kinds = [sys::FI_AV_UNSPEC, sys::FI_AV_MAP, sys::FI_AV_TABLE];
        if !kinds.contains(&attr.kind) {
            return Err(Errno::EINVAL);
        }
        let read_only = attr.flags & flags::READ != 0;
        let shared = match &attr.name {
            Some(name) => Some(SharedAddresses::open(name, attr.count, read_only)?),
            None if read_only => return Err(Errno::EINVAL),
            None => None,
        };
        let asked = if attr.kind == sys::FI_AV_UNSPEC { default } else { attr.kind };
        Ok(Self {
            domain: Arc::clone(domain),
            kind: if asked == sys::FI_AV_UNSPEC { sys::FI_AV_TABLE } else { asked },
            events: attr.flags & flags::EVENT != 0,
            has_user_ids: AtomicBool::new(attr.flags & flags::AV_USER_ID != 0),
            only_user_ids: attr.flags & flags::AV_USER_ID != 0,
            user_ids: GrowingArray::default(),
            shared: shared.map(|addresses| SharedTable {
                addresses,
                seen: GrowingArray::default(),
                searched: AtomicU64::new(0),
            }),
            entries: GrowingArray::default(),
            rx_contexts: RxContexts::new(attr.rx_ctx_bits)?,
            by_peer: GrowingArray::default(),
            used: AtomicU64::new(0),
            indices: Mutex::default(),
            eq: Mutex::default(),
            endpoints: WaitSet::new(domain.locked),
        })
    }

    /// Returns the peer of a `fi_addr_t`; `None` if its index is empty, or if it names a context
    /// other than 0.
    #[inline]
    pub(crate) fn peer(&self, address: u64) -> Option<u32> {
        if let Some(shared) = &self.shared {
            return self.shared_peer(shared, address);
        }
        if address >= self.used.load(Ordering::Acquire) {
            return None;
        }
        (self.entries.get(address as usize) as u32).checked_sub(1)
    }

    /// Returns the peer of a `fi_addr_t` that names a context of a scalable endpoint; `None` for
    /// any other `fi_addr_t`.
    #[cold]
    pub(crate) fn peer_of_context(&self, address: u64) -> Option<u32> {
        self.rx_contexts.peer(address, &self.domain.peers, |index| self.peer(index))
    }

    /// Returns the peer that a receive names by a `fi_addr_t`, in which a context is ignored;
    /// `None` if the index is empty.
    #[inline]
    pub(crate) fn source(&self, address: u64) -> Option<u32> {
        self.peer(address).or_else(|| self.source_of_context(address))
    }

    #[cold]
    fn source_of_context(&self, address: u64) -> Option<u32> {
        self.peer(self.rx_contexts.index(address))
    }

    /// Returns the peer of a shared address, which another process may have changed; `None` if the
    /// index is empty.
    fn shared_peer(&self, shared: &SharedTable, address: u64) -> Option<u32> {
        let index = usize::try_from(address).ok()?;
        let word = shared.addresses.get(index);
        if word == 0 {
            return None;
        }
        if shared.seen.get(index) != word {
            let mut indices = self.indices.lock();
            // Another thread may have entered the peer meanwhile.
            if shared.seen.get(index) != word {
                let peer = self.domain.peers.number(unpack(word));
                self.enter(&mut indices, index as u64, peer);
                shared.seen.set(index, word);
            }
        }
        (self.entries.get(index) as u32).checked_sub(1)
    }

    /// Returns the source that completions report for a peer: its user id, its `fi_addr_t`, or
    /// `FI_ADDR_NOTAVAIL`.
    #[inline]
    pub(crate) fn address_of(&self, peer: u32) -> u64 {
        if self.has_user_ids.load(Ordering::Relaxed) {
            match self.user_ids.get(peer as usize).checked_sub(1) {
                None if !self.only_user_ids => {}
                id => return id.unwrap_or(flags::ADDR_UNSPEC),
            }
        }
        match self.by_peer.get(peer as usize).checked_sub(1) {
            Some(address) => address,
            None => self.look_for(peer),
        }
    }

    /// Searches the shared addresses for a peer that another process may have inserted. Returns its
    /// `fi_addr_t`, or `FI_ADDR_NOTAVAIL`.
    #[cold]
    fn look_for(&self, peer: u32) -> u64 {
        if let Some(shared) = &self.shared {
            let changes = shared.addresses.changes();
            if shared.searched.load(Ordering::Acquire) != changes {
                for address in 0..shared.addresses.used() {
                    self.shared_peer(shared, address as u64);
                }
                shared.searched.store(changes, Ordering::Release);
            }
        }
        self.by_peer.get(peer as usize).checked_sub(1).unwrap_or(flags::ADDR_UNSPEC)
    }

    /// Returns the number of addresses in the vector. In a shared vector, it includes removed ones.
    pub(crate) fn count(&self) -> u32 {
        if let Some(shared) = &self.shared {
            return u32::try_from(shared.addresses.used()).unwrap_or(u32::MAX);
        }
        let free = self.indices.lock().free.len() as u64;
        u32::try_from(self.used.load(Ordering::Relaxed) - free).unwrap_or(u32::MAX)
    }

    /// Inserts an address. Returns its `fi_addr_t`; `None` if the bytes are not a `sockaddr_in`, or
    /// if a shared vector is full.
    pub(crate) fn insert_one(&self, bytes: &[u8]) -> Option<u64> {
        let address = address::from_bytes(bytes)?;
        let mut indices = self.indices.lock();
        let free = indices.free.pop_first();
        if let Some(shared) = &self.shared {
            drop(indices);
            let index = free.map(|index| index as usize);
            let index = index.or_else(|| shared.addresses.claim()).or_else(|| {
                tracing::warn!(
                    "the shared address vector is full: its count in fi_av_open was too small"
                );
                None
            })?;
            shared.addresses.set(index, pack(address));
            let peer = self.domain.peers.number(address);
            self.domain.peers.learn_secret(peer, address::secret_of(bytes));
            return self.shared_peer(shared, index as u64).map(|_| index as u64);
        }
        let peer = self.domain.peers.number(address);
        self.domain.peers.learn_secret(peer, address::secret_of(bytes));
        let index = free.unwrap_or_else(|| self.used.load(Ordering::Relaxed));
        self.enter(&mut indices, index, peer);
        self.used.fetch_max(index + 1, Ordering::AcqRel);
        Some(index)
    }

    /// Puts a peer at an index, in both directions.
    fn enter(&self, indices: &mut Indices, index: u64, peer: u32) {
        // Another process may have replaced the peer at this index.
        self.leave(indices, index);
        let address = self.domain.peers.address(peer);
        // The application got the address from an endpoint, so an endpoint of another host counts
        // as seen. It is checked later. An endpoint of this host counts as seen only if it exists
        // now.
        if !address::is_local(*address.ip()) || owner::has_segment(address.port()) {
            self.domain.peers.saw_open(peer);
        }
        self.entries.set(index as usize, u64::from(peer) + 1);
        if self.by_peer.get(peer as usize) == 0 {
            self.by_peer.set(peer as usize, index + 1);
        } else {
            indices.more.entry(peer).or_default().insert(index);
        }
    }

    /// Empties an index, if it has a peer. If that was the peer's last index, removes its user id.
    fn leave(&self, indices: &mut Indices, index: u64) {
        let Some(peer) = (self.entries.get(index as usize) as u32).checked_sub(1) else { return };
        self.entries.set(index as usize, 0);
        self.rx_contexts.forget(index);
        let mut more = indices.more.remove(&peer).unwrap_or_default();
        if self.by_peer.get(peer as usize) == index + 1 {
            let other = more.pop_first();
            self.by_peer.set(peer as usize, other.map_or(0, |other| other + 1));
            if other.is_none() {
                self.user_ids.set(peer as usize, 0);
            }
        } else {
            more.remove(&index);
        }
        if !more.is_empty() {
            indices.more.insert(peer, more);
        }
    }

    fn is_read_only(&self) -> bool {
        self.shared.as_ref().is_some_and(|shared| !shared.addresses.is_writable())
    }
}

impl Object for AddressVector {
    type Raw = sys::fid_av;

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

impl OfDomain for AddressVector {
    fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }
}

impl ops::av::AddressVector for AddressVector {
    const ADDRESS_LEN: usize = address::LEN;

    fn kind(&self) -> u32 {
        self.kind
    }

    fn map_addr(&self) -> Option<usize> {
        self.shared.as_ref().map(|shared| shared.addresses.map_addr())
    }

    fn set_user_id(&self, address: u64, id: u64, id_flags: u64) -> Result<()> {
        ffi::object::check_flags(id_flags, 0)?;
        if !self.has_user_ids.load(Ordering::Relaxed) {
            return Err(Errno::EINVAL);
        }
        let peer = self.source(address).ok_or(Errno::EINVAL)?;
        self.user_ids.set(peer as usize, id.wrapping_add(1));
        Ok(())
    }

    fn insert(&self, call: Insert<'_>) -> Result<usize> {
        ffi::object::check_flags(call.flags, flags::MORE | flags::SYNC_ERR | flags::AV_USER_ID)?;
        if self.is_read_only() {
            return Err(Errno::EACCES);
        }
        let named = call.flags & flags::AV_USER_ID != 0;
        if named && call.to.is_none() {
            return Err(Errno::EINVAL);
        }
        let eq = self.eq.lock().clone().or_else(|| self.domain.eq());
        if self.events && eq.is_none() {
            return Err(Errno::ENOEQ);
        }
        let Insert { mut to, mut errors, .. } = call;
        let mut inserted = 0;
        for (index, bytes) in call.addresses.chunks_exact(address::LEN).enumerate() {
            let address = self.insert_one(bytes);
            if let (true, Some(to), Some(address)) = (named, &to, address) {
                self.has_user_ids.store(true, Ordering::Relaxed);
                self.set_user_id(address, to[index], 0)?;
            }
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
            // A full vector was logged already.
            if address::from_bytes(bytes).is_none() {
                tracing::warn!("fi_av_insert: address {index} is not a sockaddr_in");
            }
            if let (true, Some(eq)) = (self.events, &eq) {
                eq.push_error(ErrorEvent {
                    fid: call.av,
                    context: call.context,
                    data: index as u64,
                    errno: Errno::EINVAL,
                });
            }
        }
        self.domain.endpoints.check_names();
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
        if self.is_read_only() {
            return Err(Errno::EACCES);
        }
        for &address in addresses {
            let address = self.rx_contexts.index(address);
            self.peer(address).ok_or(Errno::EINVAL)?;
            let mut indices = self.indices.lock();
            self.leave(&mut indices, address);
            if let Some(shared) = &self.shared {
                shared.addresses.set(address as usize, 0);
                shared.seen.set(address as usize, 0);
            }
            indices.free.insert(address);
        }
        Ok(())
    }

    fn lookup(&self, address: u64) -> Result<Vec<u8>> {
        let peer = self.source(address).ok_or(Errno::EINVAL)?;
        let peers = &self.domain.peers;
        Ok(address::to_name(peers.address(peer), peers.secret(peer)).to_vec())
    }

    fn format(&self, bytes: &[u8]) -> String {
        address::from_bytes(bytes).map_or_else(
            || "no sockaddr_in".to_owned(),
            |address| format!("fi_sockaddr_in://{address}"),
        )
    }
}
