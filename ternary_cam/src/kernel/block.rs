// SPDX-License-Identifier: BSD-2-Clause
//! Memory layout of entries for the kernels.

use super::lanes::LANES;
use crate::entry::Source;

/// 64 entries, one array per field, so that one vector load reads a field of several entries.
///
/// ```text
///          entry 0   1   2  ...  63
/// bits    [  u64 | u64 | u64 ... u64 ]   8 cache lines
/// ignore  [  u64 | u64 | u64 ... u64 ]   8 cache lines
/// peer    [  u32 | u32 | u32 ... u32 ]   4 cache lines
/// ```
/// A peer is a source with all its bits inverted, so that [`Source::ANY`] is zero. In the AVX-512
/// kernel, one test for zero then covers equal sources and any source in the entry or the key.
#[derive(Clone)]
#[repr(C, align(64))]
pub(crate) struct Block {
    pub(crate) bits: [u64; LANES],
    pub(crate) ignore: [u64; LANES],
    pub(crate) peer: [u32; LANES],
}

impl Block {
    pub(crate) const EMPTY: Self =
        Self { bits: [0; LANES], ignore: [0; LANES], peer: [!Source::ANY.0; LANES] };

    #[inline]
    pub(crate) fn set(&mut self, lane: usize, bits: u64, ignore: u64, source: u32) {
        (self.bits[lane], self.ignore[lane], self.peer[lane]) = (bits, ignore, !source);
    }

    #[inline]
    pub(crate) fn get(&self, lane: usize) -> (u64, u64, u32) {
        (self.bits[lane], self.ignore[lane], !self.peer[lane])
    }
}

/// A short queue: a block, the slots of its entries, and a bitmap of the live ones.
#[repr(C, align(64))]
pub(crate) struct ShortQueue {
    pub(crate) block: Block,
    pub(crate) ids: [u16; LANES],
    /// Bit `i` is set if entry `i` is live.
    pub(crate) live: u64,
}

impl ShortQueue {
    pub(crate) const EMPTY: Self = Self { block: Block::EMPTY, ids: [0; LANES], live: 0 };
}
