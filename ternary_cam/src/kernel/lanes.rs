// SPDX-License-Identifier: BSD-2-Clause
//! Numbers of entries that kernels compare.

/// Entries per block: the bits of one bitmap word.
pub(crate) const LANES: usize = u64::BITS as usize;

/// Entries that a kernel compares at once.
pub(crate) const STEP: usize = u16::BITS as usize;
