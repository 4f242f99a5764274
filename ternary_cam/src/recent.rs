// SPDX-License-Identifier: BSD-2-Clause
//! The most recent entries, up to [`CAPACITY`], which are in no index yet.
//!
//! A short queue stays here: inserting, comparing and removing use one word of slot numbers and the
//! slots themselves, but no hash. It also avoids vector loads of data that was just stored, because
//! the store buffer cannot forward such data. Vector engines with such loads take 14 to 23 ns at
//! depths 1 to 4.
//!
//! ```text
//! ids   63       48 47       32 31       16 15        0
//!      [  (zero)   |   slot c  |   slot b  |   slot a  ]      48 bits in use
//!                     youngest                oldest
//! ```

/// Number of slot numbers that fit into a word.
pub(crate) const CAPACITY: u32 = 4;

/// Bits of a slot number.
const WIDTH: u32 = u16::BITS;

/// The lowest bit of each slot number of a word.
const EACH: u64 = 0x0001_0001_0001_0001;

/// The most recent entries; see the module.
#[derive(Clone, Copy, Default)]
pub(crate) struct RecentEntries {
    ids: u64,
    /// Bits in use.
    used: u32,
}

impl RecentEntries {
    #[inline]
    pub(crate) const fn is_full(self) -> bool {
        self.used == WIDTH * CAPACITY
    }

    /// Adds the youngest entry. There must be room.
    #[inline]
    pub(crate) const fn push(&mut self, id: u16) {
        self.ids |= (id as u64) << self.used;
        self.used += WIDTH;
    }

    /// Removes an entry, which must be present. The younger entries close the gap.
    #[inline]
    pub(crate) const fn remove(&mut self, id: u16) {
        self.used -= WIDTH;
        // Short queues often remove the youngest or the oldest entry.
        if (self.ids >> self.used) as u16 == id {
            self.ids &= !(u64::MAX << self.used);
            return;
        }
        if self.ids as u16 == id {
            self.ids >>= WIDTH;
            return;
        }
        let place = self.place(id);
        let older = !(u64::MAX << place);
        self.ids = self.ids & older | (self.ids >> WIDTH) & !older;
    }

    /// Returns the number of recent entries that are older than this one, which must be present.
    #[inline]
    pub(crate) const fn rank(self, id: u16) -> u32 {
        self.place(id) / WIDTH
    }

    /// Returns the position of the lowest bit of this slot number, which must be present. The XOR
    /// makes the 16 bits of this number zero. If one is subtracted from each group of 16 bits, this
    /// group is the lowest that borrows.
    #[inline]
    const fn place(self, id: u16) -> u32 {
        let zero_where_equal = self.ids ^ (id as u64).wrapping_mul(EACH);
        let borrows =
            zero_where_equal.wrapping_sub(EACH) & !zero_where_equal & (EACH << (WIDTH - 1));
        debug_assert!(borrows != 0 && borrows.trailing_zeros() < WIDTH * CAPACITY);
        borrows.trailing_zeros() + 1 - WIDTH
    }

    /// Returns the four slots, oldest first. All four places must be in use.
    #[inline(always)]
    pub(crate) fn all(self) -> [u16; CAPACITY as usize] {
        std::array::from_fn(|rank| (self.ids >> (WIDTH * rank as u32)) as u16)
    }

    /// Returns all slots, oldest first.
    #[inline]
    pub(crate) fn iter(self) -> impl Iterator<Item = u16> {
        let mut ids = self.ids;
        (0..self.used / WIDTH).map(move |_| {
            let id = ids as u16;
            ids >>= WIDTH;
            id
        })
    }
}

#[cfg(test)]
mod tests {
    use super::RecentEntries;

    #[test]
    fn age_order_survives_any_removal() {
        for gone in 0..4_u16 {
            let mut recent = RecentEntries::default();
            // Slot 0 must not count as an empty place.
            for id in [7, 0, u16::MAX, 3] {
                assert!(!recent.is_full());
                recent.push(id);
            }
            assert!(recent.is_full());
            let mut expected = vec![7, 0, u16::MAX, 3];
            recent.remove(expected.remove(usize::from(gone)));
            assert!(recent.iter().eq(expected.iter().copied()));
            recent.push(9);
            expected.push(9);
            assert!(recent.iter().eq(expected.iter().copied()));
            assert_eq!(recent.rank(9), 3);
        }
    }
}
