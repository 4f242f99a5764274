// SPDX-License-Identifier: BSD-2-Clause
//! The memory of a memory region. Each access of a peer gets a part of it.

use super::buffer::{Buffer, Segment};
use crate::errno::Result;

/// Registered memory (`fi_mr(3)`). Peers see one range of addresses, even if it has several
/// segments.
#[derive(Clone, Debug)]
pub struct RegionMemory {
    segments: Vec<Segment>,
    len: usize,
}

impl RegionMemory {
    /// # Safety
    /// `iov` holds `count` entries whose memory stays valid until the region is closed.
    pub(crate) unsafe fn new(iov: *const libc::iovec, count: usize) -> Result<Self> {
        // SAFETY: the caller vouches for the entries.
        let buffer = unsafe { Buffer::ranges(iov, count) }?;
        Ok(Self { segments: buffer.segments().to_vec(), len: buffer.len() })
    }

    /// Returns the address of the first byte.
    #[must_use]
    pub fn addr(&self) -> usize {
        self.segments.first().map_or(0, |segment| segment.addr)
    }

    /// Returns `len` bytes from `offset` on; `None` if they are not all inside.
    #[must_use]
    pub fn part(&self, offset: usize, len: usize) -> Option<Buffer> {
        if offset.checked_add(len)? > self.len {
            return None;
        }
        Some(Buffer::of(&self.segments, self.len).part(offset, len))
    }
}

impl From<&'static mut [u8]> for RegionMemory {
    fn from(memory: &'static mut [u8]) -> Self {
        let segment = Segment { addr: memory.as_mut_ptr() as usize, len: memory.len() };
        Self { segments: vec![segment], len: memory.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_gives_no_byte_beyond_its_end() {
        let mut bytes = [0_u8; 8];
        let iov = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: 8 };
        // SAFETY: the array outlives the window.
        let window = unsafe { RegionMemory::new(&raw const iov, 1) }.unwrap();
        assert_eq!(window.part(6, 2).unwrap().addr(), bytes.as_ptr() as usize + 6);
        assert!(window.part(8, 0).is_some());
        assert!(window.part(7, 2).is_none() && window.part(usize::MAX, 2).is_none());
    }
}
