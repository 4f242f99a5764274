// SPDX-License-Identifier: BSD-2-Clause
//! How many entries kernels compare.

/// Entries in a block: the bits of one bitmap word.
pub(crate) const LANES: usize = u64::BITS as usize;

/// Entries a kernel compares at once.
pub(crate) const STEP: usize = u16::BITS as usize;
