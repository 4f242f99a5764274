// SPDX-License-Identifier: BSD-2-Clause
//! The overflow area of a segment, for short messages that arrive while the receiver computes and
//! its ring is full. A NIC would accept them and add them to the UMQ.
//!
//! ```text
//! owner    maps the area if it counts, and announces that it accepts overflow
//! sender   maps the area when it finds the ring of the peer full or handed over; reserves the
//!          memory of a chunk before it claims the first slot there
//! ```
//!
//! The area is a hole at the end of the file. Memory is reserved chunk by chunk and kept, so an
//! endpoint takes as much memory as its longest backlog needed. A chunk has as many slots as the
//! ring. If `/dev/shm` is full, the ring is not handed over, or senders wait for room. The owner
//! accesses only slots that were claimed, because even reading a hole allocates its memory.
//!
//! A process that locks all memory that it maps (`mlockall`) would allocate the whole area by
//! mapping it. It therefore accepts no overflow, and does not use that of its peers.
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{
    fs::File,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use memmap2::{MmapOptions, MmapRaw};
use rustix::{
    fs::{FallocateFlags, fallocate},
    io::retry_on_intr,
};

use crate::wire::SLOT;

/// Slots of a chunk.
const CHUNK: u64 = 1024;
/// Slots of the area.
pub(crate) const SLOTS: u64 = 65_536;
/// Bytes of a chunk.
pub(super) const CHUNK_BYTES: usize = CHUNK as usize * SLOT;
/// Bytes of the area.
pub(super) const LENGTH: usize = SLOTS as usize * SLOT;
const _: () = assert!(SLOTS / CHUNK == u64::BITS as u64, "a chunk has a bit of a word");

/// Returns the chunk of the slot with an index, which is taken modulo [`SLOTS`].
pub(super) fn chunk_of(index: u64) -> usize {
    (index % SLOTS / CHUNK) as usize
}

/// The overflow area of a peer, as a sender maps it.
#[derive(Debug, Default)]
pub(super) struct Overflow {
    map: OnceLock<MmapRaw>,
    /// A bit for each chunk whose memory this process has reserved.
    reserved: AtomicU64,
}

impl Overflow {
    /// Returns the first byte of the slot with an index; `None` unless [`Self::reserve`] has
    /// returned true for the index.
    pub(super) fn slot(&self, index: u64) -> Option<*mut u8> {
        let map = self.map.get().filter(|_| self.is_reserved(index))?;
        // SAFETY: within the mapping for every index.
        Some(unsafe { map.as_mut_ptr().add((index % SLOTS) as usize * SLOT) })
    }

    fn is_reserved(&self, index: u64) -> bool {
        self.reserved.load(Ordering::Acquire) & 1 << chunk_of(index) != 0
    }

    /// Reserves the memory of the slot with an index. `file` opens the file of the segment, in
    /// which the area is at the offset `at`. Returns false if there is no such slot, or if
    /// something is short.
    pub(super) fn reserve(&self, index: u64, at: usize, file: impl Fn() -> Option<File>) -> bool {
        if index >= SLOTS {
            return false;
        }
        self.is_reserved(index) || self.try_reserve(chunk_of(index), at, file).is_some()
    }

    fn try_reserve(&self, chunk: usize, at: usize, file: impl Fn() -> Option<File>) -> Option<()> {
        let file = file()?;
        if self.map.get().is_none() {
            if locks_memory() {
                return None;
            }
            let map = MmapOptions::new().offset(at as u64).len(LENGTH).map_raw(&file).ok()?;
            // Another thread may have mapped the area meanwhile.
            let _ = self.map.set(map);
        }
        let first = (at + chunk * CHUNK_BYTES) as u64;
        let bytes = CHUNK_BYTES as u64;
        retry_on_intr(|| fallocate(&file, FallocateFlags::KEEP_SIZE, first, bytes)).ok()?;
        self.reserved.fetch_or(1 << chunk, Ordering::Release);
        Some(())
    }
}

/// Returns whether this process locks memory, and perhaps all memory that it maps.
pub(super) fn locks_memory() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
    locked.is_some_and(|size| size.trim() != "0 kB")
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    #[test]
    fn slots_without_memory_are_not_used() {
        let overflow = Overflow::default();
        let file = File::from(memfd_create("overflow", MemfdFlags::CLOEXEC).unwrap());
        rustix::fs::ftruncate(&file, LENGTH as u64).unwrap();
        let opened = || file.try_clone().ok();
        assert!(!overflow.reserve(0, 0, || None), "the file cannot be opened");
        assert!(!overflow.reserve(SLOTS, 0, opened) && overflow.slot(0).is_none());
        assert!(overflow.reserve(CHUNK, 0, opened));
        assert!(overflow.slot(CHUNK).is_some() && overflow.slot(2 * CHUNK - 1).is_some());
        assert!(overflow.slot(0).is_none() && overflow.slot(2 * CHUNK).is_none());
    }
}
