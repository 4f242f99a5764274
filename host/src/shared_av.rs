// SPDX-License-Identifier: BSD-2-Clause
//! A named address vector: addresses that processes of a user share (`fi_av(3)`).
//!
//! ```text
//! 0    header: magic number | used | changes
//! 64   the fi_addr_t of each address: its index, or FI_ADDR_NOTAVAIL
//!      the addresses, packed; 0 for a removed one
//! ```
//!
//! As with segments, the process that made the file holds a lock on the file, and removes it at the
//! end. The capacity is fixed, because applications hold a pointer into the mapped file.
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{
    fs::File,
    io,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::{
    directory::{self, Directory, allocate},
    names::namespace,
    owner::remove_if_dead,
};
use memmap2::{MmapOptions, MmapRaw};
use rustix::io::Errno;

/// Prefix of the names of vectors.
const NAME_PREFIX: &str = "av.";

/// "tcam-av" and the version of this layout.
const MAGIC: u64 = u64::from_be_bytes(*b"tcam-av\x02");
const USED: usize = 8;
const CHANGES: usize = 16;
const HEADER: usize = 64;
/// Bytes of an entry: the `fi_addr_t` and the address.
const ENTRY: usize = 16;
/// Minimum capacity in addresses.
const MIN_CAPACITY: usize = 1024;
/// Maximum capacity in addresses.
const MAX_CAPACITY: usize = 1 << 24;
/// Maximum length of a name in bytes.
const MAX_NAME: usize = 128;

/// A mapped vector.
#[derive(Debug)]
pub struct SharedAddresses {
    map: MmapRaw,
    capacity: usize,
    writable: bool,
    /// In the process that made the file: the locked file, its name and the process id. Otherwise
    /// `None`.
    made: Option<(File, String, u32)>,
}

impl SharedAddresses {
    /// Opens the vector with this name. If it does not exist and `read_only` is false, it is made
    /// with room for `count` addresses, but at least 1,024 and at most 16,777,216.
    ///
    /// # Errors
    /// `EINVAL` for an invalid name, `ENOENT` if it does not exist and is opened read-only,
    /// `EPROTO` if it is damaged, `ENOSPC` if `/dev/shm` is full.
    pub fn open(name: &str, count: usize, read_only: bool) -> io::Result<Self> {
        if name.is_empty() || name.len() > MAX_NAME || name.contains('/') {
            tracing::info!(
                "{name:?} is not a valid name for an address vector: it needs 1 to {MAX_NAME} \
                 bytes, and no slash"
            );
            return Err(Errno::INVAL.into());
        }
        let name = format!("{NAME_PREFIX}{}.{name}", namespace());
        loop {
            match Directory::open().and_then(|directory| {
                _ = remove_if_dead(&directory, &name);
                Self::open_existing(&directory, &name, read_only)
            }) {
                Err(error) if error.kind() == io::ErrorKind::NotFound && !read_only => {}
                opened => return opened,
            }
            match Self::make(name.clone(), count.clamp(MIN_CAPACITY, MAX_CAPACITY)) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return made,
            }
        }
    }

    fn make(name: String, capacity: usize) -> io::Result<Self> {
        let file = directory::create_locked(&name)?;
        let length = HEADER + capacity * ENTRY;
        let map = allocate(&file, length, "shared address vector")
            .and_then(|()| MmapOptions::new().len(length).map_raw(&file))
            .inspect_err(|_| remove(&name))?;
        let made = Some((file, name, std::process::id()));
        let addresses = Self { map, capacity, writable: true, made };
        for index in 0..capacity {
            addresses.word(HEADER + index * 8).store(u64::MAX, Ordering::Relaxed);
        }
        addresses.word(0).store(MAGIC, Ordering::Release);
        Ok(addresses)
    }

    fn open_existing(directory: &Directory, name: &str, read_only: bool) -> io::Result<Self> {
        let file = directory.file(name)?;
        // The maker may still be initialising the file.
        for _ in 0..1000 {
            let length = file.metadata()?.len() as usize;
            if length > HEADER {
                let capacity = (length - HEADER) / ENTRY;
                let mut options = MmapOptions::new();
                options.len(HEADER + capacity * ENTRY);
                let map = if read_only {
                    options.map_raw_read_only(&file)
                } else {
                    options.map_raw(&file)
                }?;
                let addresses = Self { map, capacity, writable: !read_only, made: None };
                let is_complete = addresses.word(0).load(Ordering::Acquire) == MAGIC;
                // The maker may have enlarged the file after its length was read.
                if is_complete && file.metadata()?.len() as usize == length {
                    return Ok(addresses);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        tracing::warn!("the address vector {name} is damaged or of another version of tcam");
        Err(Errno::PROTO.into())
    }

    /// Returns true if addresses may be inserted and removed here.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Returns the number of indices that [`Self::claim`] has returned, in all processes.
    pub fn used(&self) -> usize {
        (self.word(USED).load(Ordering::Acquire) as usize).min(self.capacity)
    }

    /// Returns the number of changes of addresses since the file was made.
    pub fn changes(&self) -> u64 {
        self.word(CHANGES).load(Ordering::Acquire)
    }

    /// Returns an index that no call has returned before; `None` if the vector is full. The vector
    /// must be writable.
    pub fn claim(&self) -> Option<usize> {
        let next = |used: u64| (used < self.capacity as u64).then_some(used + 1);
        let used = self.word(USED).fetch_update(Ordering::AcqRel, Ordering::Acquire, next);
        used.ok().map(|used| used as usize)
    }

    /// Returns the address at an index, or 0 if the index has no address.
    pub fn get(&self, index: usize) -> u64 {
        if index < self.capacity { self.address(index).load(Ordering::Acquire) } else { 0 }
    }

    /// Sets the address at a claimed index; 0 removes it. Does nothing if the vector is not
    /// writable, or has no such index.
    pub fn set(&self, index: usize, address: u64) {
        if index < self.capacity && self.writable {
            self.address(index).store(address, Ordering::Release);
            let number = if address == 0 { u64::MAX } else { index as u64 };
            self.word(HEADER + index * 8).store(number, Ordering::Release);
            self.word(CHANGES).fetch_add(1, Ordering::Release);
        }
    }

    /// Returns the address of the `fi_addr_t` array for the application (`map_addr`).
    pub fn map_addr(&self) -> usize {
        self.map.as_ptr() as usize + HEADER
    }

    fn address(&self, index: usize) -> &AtomicU64 {
        self.word(HEADER + (self.capacity + index) * 8)
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= HEADER + self.capacity * ENTRY);
        // SAFETY: aligned and within the mapping, which lives as long as self. A read-only mapping
        // is only loaded from: `set` and the callers of `claim` check.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }
}

impl Drop for SharedAddresses {
    fn drop(&mut self) {
        if let Some((_, name, pid)) = &self.made
            && *pid == std::process::id()
        {
            remove(name);
        }
    }
}

fn remove(name: &str) {
    if let Ok(directory) = Directory::open() {
        let _ = directory.remove(name);
    }
}

/// Removes the vectors whose makers are dead.
pub fn clean_up() {
    let Ok(directory) = Directory::open() else { return };
    for name in directory.names(NAME_PREFIX).into_iter().flatten() {
        let _ = remove_if_dead(&directory, &name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(opened: io::Result<SharedAddresses>) -> Option<Errno> {
        Errno::from_io_error(&opened.unwrap_err())
    }

    #[test]
    fn readers_see_inserted_addresses_and_the_maker_removes_the_file() {
        let name = format!("test-{}", std::process::id());
        assert_eq!(refusal(SharedAddresses::open(&name, 0, true)), Some(Errno::NOENT));
        let made = SharedAddresses::open(&name, 3, false).unwrap();
        let other = SharedAddresses::open(&name, 0, false).unwrap();
        let reader = SharedAddresses::open(&name, 0, true).unwrap();
        assert_eq!((made.claim(), other.claim(), reader.used()), (Some(0), Some(1), 2));
        other.set(1, 7);
        assert_eq!(
            (made.get(1), reader.get(1), reader.get(0), reader.get(MIN_CAPACITY)),
            (7, 7, 0, 0)
        );
        while made.claim().is_some() {}
        assert_eq!(reader.used(), MIN_CAPACITY);
        drop(made);
        assert_eq!(refusal(SharedAddresses::open(&name, 0, true)), Some(Errno::NOENT));
        assert_eq!(reader.get(1), 7, "still mapped");
    }

    #[test]
    fn invalid_names_and_damaged_files_are_refused() {
        for name in ["", "a/b", &"x".repeat(MAX_NAME + 1)] {
            assert_eq!(refusal(SharedAddresses::open(name, 0, false)), Some(Errno::INVAL));
        }
        let name = format!("damaged-{}", std::process::id());
        let made = SharedAddresses::open(&name, 0, false).unwrap();
        made.word(0).store(1, Ordering::Relaxed);
        assert_eq!(refusal(SharedAddresses::open(&name, 0, true)), Some(Errno::PROTO));
    }
}
