// SPDX-License-Identifier: BSD-2-Clause
//! Memory regions: the memory of a domain that peers may read and write, and the checks of a peer's
//! request before it accesses any memory.
//!
//! ```text
//! for each part of a request:
//!     a region has the key                    else FI_ENOKEY
//!     the region is enabled, serves this
//!     endpoint, and allows the access         else FI_EACCES
//!     the part is inside of the region        else FI_EFAULT
//! ```

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use ffi::{
    Buffer, Errno, Result, flags,
    memory::{IOV_LIMIT, RegionMemory},
    ops::{
        ep::rma::{RemotePart, RemoteParts},
        mr::MrAttr,
    },
    serial::Serial,
    sys,
};
use parking_lot::Mutex;

use crate::wait::pollable::{Count, count};

/// Access bits that `fi_mr_reg` accepts. The communication library LCI also sets classes of
/// operations, such as `FI_MSG`, which allow nothing by themselves; libfabric's tcp, shm and
/// sockets providers accept them too.
const ACCESS: u64 = flags::SEND
    | flags::RECV
    | flags::READ
    | flags::WRITE
    | flags::REMOTE_READ
    | flags::REMOTE_WRITE
    | flags::MSG
    | flags::TAGGED
    | flags::RMA
    | flags::ATOMIC
    | flags::COLLECTIVE;

/// Whether an operation of a peer counts as a read, as a write, or as both (`fi_cntr(3)`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accesses {
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

impl Accesses {
    /// Counts an operation. It counts once, even if one counter is bound for both reads and writes.
    pub(crate) fn count<C: Count + ?Sized>(self, read: Option<&Arc<C>>, write: Option<&Arc<C>>) {
        let read = read.filter(|_| self.reads);
        let write = write.filter(|_| self.writes);
        let is_counted = |counter: &&Arc<C>| read.is_some_and(|read| Arc::ptr_eq(read, counter));
        count(read, false);
        count(write.filter(|counter| !is_counted(counter)), false);
    }
}

/// The regions of a domain.
#[derive(Debug)]
pub(crate) struct Regions {
    table: Serial<HashMap<u64, Arc<Registered>>>,
    /// The next key that the provider chooses.
    next: AtomicU64,
    /// Whether any region ever had a counter.
    counting: AtomicBool,
    /// Whether peers name memory by its virtual address (`FI_MR_VIRT_ADDR`), and not by its offset
    /// in the region.
    virtual_addresses: bool,
    /// Whether the provider chooses keys (`FI_MR_PROV_KEY`).
    own_keys: bool,
    /// Whether regions belong to an endpoint and must be enabled (`FI_MR_ENDPOINT`).
    of_endpoints: bool,
}

/// A region, as requests find it.
#[derive(Debug)]
pub(crate) struct Registered {
    window: RegionMemory,
    /// Address of the first byte for peers.
    base: u64,
    access: u64,
    enabled: AtomicBool,
    /// Address under which peers list the endpoint that the region is bound to, packed; 0 if the
    /// region is not bound, and serves all endpoints of the domain.
    endpoint: AtomicU64,
    counters: Mutex<Counters>,
}

/// Counters of accesses by peers.
#[derive(Debug, Default)]
struct Counters {
    read: Option<Arc<dyn Count>>,
    write: Option<Arc<dyn Count>>,
}

/// The local memory that a request may use.
#[derive(Debug, Default)]
pub(crate) struct Target {
    buffers: [Buffer; IOV_LIMIT],
    count: usize,
}

impl Target {
    /// Returns the memory, part by part.
    pub(crate) fn buffers(&self) -> &[Buffer] {
        &self.buffers[..self.count]
    }

    /// Returns the memory, part by part, each part with its offset in the data.
    pub(crate) fn placed(&self) -> impl Iterator<Item = (usize, &Buffer)> {
        self.buffers().iter().scan(0, |at, buffer| {
            let start = *at;
            *at += buffer.len();
            Some((start, buffer))
        })
    }
}

impl Regions {
    pub(crate) fn new(mode: u32, locked: bool) -> Self {
        let has = |bits: u32| mode & bits != 0;
        Self {
            table: Serial::new(HashMap::new(), locked),
            next: AtomicU64::new(1),
            counting: AtomicBool::new(false),
            virtual_addresses: has(sys::FI_MR_BASIC | sys::FI_MR_VIRT_ADDR),
            own_keys: has(sys::FI_MR_BASIC | sys::FI_MR_PROV_KEY),
            of_endpoints: has(sys::FI_MR_ENDPOINT),
        }
    }

    pub(crate) fn register(&self, attr: &MrAttr) -> Result<(u64, Arc<Registered>)> {
        ffi::object::check_flags(attr.access, ACCESS)?;
        // A region counts accesses whenever a counter is bound to it, with or without FI_RMA_EVENT.
        ffi::object::check_flags(attr.flags, flags::RMA_EVENT)?;
        let first = if self.virtual_addresses { attr.window.addr() as u64 } else { 0 };
        let registered = Arc::new(Registered {
            window: attr.window.clone(),
            base: first.checked_add(attr.offset).ok_or(Errno::EINVAL)?,
            access: attr.access,
            enabled: AtomicBool::new(!self.of_endpoints),
            endpoint: AtomicU64::new(0),
            counters: Mutex::default(),
        });
        let mut table = self.table.lock();
        let key = if self.own_keys {
            self.next.fetch_add(1, Ordering::Relaxed)
        } else {
            attr.requested_key
        };
        if table.contains_key(&key) {
            tracing::info!("a memory region with key {key:#x} is open already");
            return Err(Errno::ENOKEY);
        }
        table.insert(key, Arc::clone(&registered));
        Ok((key, registered))
    }

    /// Removes a region. A thread that found it before may still use it.
    pub(crate) fn remove(&self, key: u64) {
        self.table.lock().remove(&key);
    }

    /// Counts reads of a region, writes, or both on a counter from now on.
    pub(crate) fn bind_counter(
        &self,
        region: &Registered,
        counter: &Arc<dyn Count>,
        of_reads: bool,
        of_writes: bool,
    ) {
        let mut counters = region.counters.lock();
        if of_reads {
            counters.read = Some(Arc::clone(counter));
        }
        if of_writes {
            counters.write = Some(Arc::clone(counter));
        }
        drop(counters);
        self.counting.store(true, Ordering::Relaxed);
    }

    /// Enables a region.
    ///
    /// # Errors
    /// `EINVAL` if regions belong to endpoints (`FI_MR_ENDPOINT`) and `region` is not bound yet.
    pub(crate) fn enable(&self, region: &Registered) -> Result<()> {
        if self.of_endpoints && region.endpoint.load(Ordering::Acquire) == 0 {
            return Err(Errno::EINVAL);
        }
        region.enabled.store(true, Ordering::Release);
        Ok(())
    }

    /// Returns the memory that a request to an endpoint names, if the access is allowed.
    ///
    /// # Errors
    /// `ENOKEY`, `EACCES` or `EFAULT`, as the module describes them.
    #[inline]
    pub(crate) fn resolve(
        &self,
        parts: &RemoteParts,
        access: u64,
        endpoint: u64,
    ) -> Result<Target> {
        let table = self.table.lock();
        let mut target = Target::default();
        for part in parts.as_slice() {
            let region = table.get(&part.key).ok_or(Errno::ENOKEY)?;
            target.buffers[target.count] = region.part(part, access, endpoint)?;
            target.count += 1;
        }
        Ok(target)
    }

    /// Counts an access that has completed, if a region of it has counters.
    #[inline]
    pub(crate) fn count(&self, parts: &RemoteParts, accesses: Accesses) {
        if self.counting.load(Ordering::Relaxed) {
            self.count_each(parts, accesses);
        }
    }

    #[cold]
    fn count_each(&self, parts: &RemoteParts, accesses: Accesses) {
        let table = self.table.lock();
        let parts = parts.as_slice();
        for (index, part) in parts.iter().enumerate() {
            // An operation counts once, however many parts of a region it names.
            if parts[..index].iter().any(|earlier| earlier.key == part.key) {
                continue;
            }
            let Some(region) = table.get(&part.key) else { continue };
            let Counters { read, write } = &*region.counters.lock();
            accesses.count(read.as_ref(), write.as_ref());
        }
    }
}

impl Registered {
    /// Returns the address of the first byte for peers.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Binds the region to an endpoint, under the address by which peers list it.
    ///
    /// # Errors
    /// `EINVAL` if it is already bound.
    pub(crate) fn bind_endpoint(&self, endpoint: u64) -> Result<()> {
        let free = self.endpoint.compare_exchange(0, endpoint, Ordering::AcqRel, Ordering::Acquire);
        free.map(|_| ()).map_err(|_| Errno::EINVAL)
    }

    /// Returns whether the region is bound to this endpoint.
    pub(crate) fn is_of(&self, endpoint: u64) -> bool {
        self.endpoint.load(Ordering::Acquire) == endpoint
    }

    /// Stops counting accesses.
    pub(crate) fn forget_counters(&self) {
        *self.counters.lock() = Counters::default();
    }

    #[inline]
    fn part(&self, part: &RemotePart, access: u64, endpoint: u64) -> Result<Buffer> {
        let bound = self.endpoint.load(Ordering::Acquire);
        if !self.enabled.load(Ordering::Acquire)
            || access & !self.access != 0
            || bound != 0 && bound != endpoint
        {
            return Err(Errno::EACCES);
        }
        let offset = part.addr.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        let len = usize::try_from(part.len).ok();
        offset.zip(len).and_then(|(at, len)| self.window.part(at, len)).ok_or(Errno::EFAULT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: u64 = flags::REMOTE_READ | flags::REMOTE_WRITE;

    fn attr(window: RegionMemory, access: u64, requested_key: u64) -> MrAttr {
        MrAttr { window, access, offset: 0, requested_key, flags: 0 }
    }

    fn one(addr: u64, len: u64, key: u64) -> RemoteParts {
        RemoteParts::new([RemotePart { addr, len, key }]).unwrap()
    }

    #[test]
    fn keys_rights_and_ranges_are_checked() {
        let regions = Regions::new(0, true);
        let memory = RegionMemory::from(&mut *vec![0; 64].leak());
        regions.register(&attr(memory.clone(), flags::REMOTE_READ, 7)).unwrap();
        assert_eq!(regions.register(&attr(memory, BOTH, 7)).unwrap_err(), Errno::ENOKEY);
        let resolve = |parts, access| regions.resolve(&parts, access, 1).map(|_| ());
        assert_eq!(resolve(one(0, 64, 7), flags::REMOTE_READ), Ok(()));
        assert_eq!(resolve(one(0, 64, 8), flags::REMOTE_READ), Err(Errno::ENOKEY));
        assert_eq!(resolve(one(0, 64, 7), flags::REMOTE_WRITE), Err(Errno::EACCES));
        assert_eq!(resolve(one(1, 64, 7), flags::REMOTE_READ), Err(Errno::EFAULT));
        assert_eq!(resolve(one(u64::MAX, 2, 7), flags::REMOTE_READ), Err(Errno::EFAULT));
    }

    #[test]
    fn virtual_addresses_and_keys_of_our_own() {
        let regions = Regions::new(sys::FI_MR_VIRT_ADDR | sys::FI_MR_PROV_KEY, true);
        let memory = RegionMemory::from(&mut *vec![0; 16].leak());
        let start = memory.addr() as u64;
        let (first, _) = regions.register(&attr(memory.clone(), BOTH, 9)).unwrap();
        let (second, _) = regions.register(&attr(memory, BOTH, 9)).unwrap();
        assert_ne!(first, second);
        assert!(regions.resolve(&one(start + 8, 8, second), BOTH, 1).is_ok());
        assert!(regions.resolve(&one(start - 1, 1, second), BOTH, 1).is_err());
        assert!(regions.resolve(&one(0, 1, second), BOTH, 1).is_err());
    }

    #[test]
    fn a_region_of_an_endpoint_serves_no_other_and_not_before_it_is_enabled() {
        let regions = Regions::new(sys::FI_MR_ENDPOINT, true);
        let memory = RegionMemory::from(&mut *vec![0; 16].leak());
        let (key, region) = regions.register(&attr(memory, BOTH, 1)).unwrap();
        assert_eq!(regions.resolve(&one(0, 1, key), BOTH, 5).unwrap_err(), Errno::EACCES);
        regions.enable(&region).unwrap_err();
        region.bind_endpoint(5).unwrap();
        regions.enable(&region).unwrap();
        assert!(regions.resolve(&one(0, 1, key), BOTH, 5).is_ok());
        assert_eq!(regions.resolve(&one(0, 1, key), BOTH, 6).unwrap_err(), Errno::EACCES);
    }
}
