// SPDX-License-Identifier: BSD-2-Clause
//! For how many entries there is room in the tray.

use crate::kernel::LANES;
use crate::nursery::CAPACITY;

/// Positions: bits of a word.
pub(super) const POSITIONS: usize = LANES;

/// Entries that come at once: those of a nursery.
pub(super) const GROUP: usize = CAPACITY as usize;
