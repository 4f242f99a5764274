// SPDX-License-Identifier: BSD-2-Clause
//! Memory that a provider below sends from and receives into.

use std::{
    alloc::{Layout, alloc_zeroed, dealloc},
    ptr::NonNull,
};

use crate::errno::{Errno, Result};

/// Bytes to which an area is aligned, and a multiple of which it has.
const PAGE: usize = 4096;

/// Blocks of one length.
#[derive(Debug)]
pub struct Area {
    start: NonNull<u8>,
    layout: Layout,
    block: usize,
    blocks: usize,
}

// SAFETY: raw memory; whoever reads or writes it says why nobody else does.
unsafe impl Send for Area {}
// SAFETY: as above.
unsafe impl Sync for Area {}

impl Area {
    /// So many blocks of so many bytes.
    ///
    /// # Errors
    /// `ENOMEM`.
    pub(super) fn new(blocks: usize, block: usize) -> Result<Self> {
        let block = block.next_multiple_of(64);
        let len = blocks.checked_mul(block).ok_or(Errno::ENOMEM)?.max(1);
        let layout = Layout::from_size_align(len.next_multiple_of(PAGE), PAGE);
        let layout = layout.map_err(|_| Errno::ENOMEM)?;
        // SAFETY: the layout has at least one byte.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or(Errno::ENOMEM)?;
        Ok(Self { start, layout, block, blocks })
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_len(&self) -> usize {
        self.block
    }

    /// How many blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// All of it.
    pub(super) fn whole(&self) -> (*mut u8, usize) {
        (self.start.as_ptr(), self.layout.size())
    }

    /// Where a block begins.
    ///
    /// # Panics
    /// There is no such block.
    pub(super) fn block(&self, block: usize) -> *mut u8 {
        assert!(block < self.blocks, "no such block");
        // SAFETY: within the area.
        unsafe { self.start.as_ptr().add(block * self.block) }
    }

    /// Where bytes of a block begin; none if they are not in it.
    #[must_use]
    pub fn part(&self, block: usize, at: usize, len: usize) -> Option<*const u8> {
        let is_inside = block < self.blocks && at.checked_add(len)? <= self.block;
        // SAFETY: within the block.
        is_inside.then(|| unsafe { self.block(block).add(at).cast_const() })
    }

    /// Where in a block an address is.
    pub(super) fn offset_in(&self, block: usize, address: *const u8) -> Option<usize> {
        let offset = address.addr().checked_sub(self.block(block).addr())?;
        (offset <= self.block).then_some(offset)
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and nobody has it any more.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_in_their_block() {
        let area = Area::new(3, 100).unwrap();
        assert_eq!((area.block_len(), area.blocks()), (128, 3));
        let second = area.block(1);
        assert_eq!(area.part(1, 0, 128), Some(second.cast_const()));
        assert_eq!(area.part(1, 8, 120).map(<*const u8>::addr), Some(second.addr() + 8));
        for (block, at, len) in [(3, 0, 0), (1, 1, 128), (1, usize::MAX, 2)] {
            assert_eq!(area.part(block, at, len), None);
        }
        assert_eq!(area.offset_in(1, second.wrapping_add(7)), Some(7));
        assert_eq!(area.offset_in(2, second), None);
    }
}
