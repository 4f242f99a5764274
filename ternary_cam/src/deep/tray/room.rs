// SPDX-License-Identifier: BSD-2-Clause
//! The size of the tray.

use crate::kernel::LANES;
use crate::nursery::CAPACITY;

/// Number of positions: the bits of a word.
pub(super) const POSITIONS: usize = LANES;

/// Entries that are added at once: those of a nursery.
pub(super) const GROUP: usize = CAPACITY as usize;
