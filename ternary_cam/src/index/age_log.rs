// SPDX-License-Identifier: BSD-2-Clause
//! The age-ordered array of the scan: slot numbers in insertion order. An entry at a lower position
//! is older.
//!
//! ```text
//! position   0     1     2     3     4    ...
//! ids      [ a  |  -  |  b  |  c  |  -  |  unused ...  ]
//! live       1     0     1     1     0     0               bitmap
//!            oldest            youngest   ^ tail
//! ```
//!
//! A new entry takes the position at the tail; a removal leaves a hole, which costs one bit. The
//! words before the head have no entry. When the tail reaches the end, the entries close up towards
//! the front, and the end is set to `SPARE` times as many positions as there are entries. The
//! arrays grow to the end and never shrink, so a short queue takes a few cache lines. On average an
//! insert costs at most `1 / (SPARE - 1)` moves. There is no age counter, which could wrap.

use crate::bits::Bits;
use crate::kernel::{self, Available};

/// Positions per entry.
const SPARE: usize = 4;

/// Positions per word of the bitmap.
const WORD: usize = u64::BITS as usize;

/// The log; see the module.
#[derive(Default)]
pub(crate) struct AgeLog {
    ids: Vec<u16>,
    live: Vec<u64>,
    /// Index of a word of the bitmap; all words before it are zero.
    head: usize,
    /// Position of the next entry.
    tail: usize,
    /// When the tail reaches this position, a multiple of [`WORD`], the entries close up.
    end: usize,
}

impl AgeLog {
    /// Returns true if [`AgeLog::close_up`] must be called before the next push.
    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.tail == self.end
    }

    /// Adds the youngest entry and returns its position.
    #[inline]
    pub(crate) fn push(&mut self, id: u16) -> u32 {
        let position = self.tail;
        self.ids[position] = id;
        self.live[position / WORD] |= 1 << (position % WORD);
        self.tail += 1;
        position as u32
    }

    /// Removes the entry at a live position, which becomes a hole.
    #[inline]
    pub(crate) fn remove(&mut self, position: u32) {
        let position = position as usize;
        let word = &mut self.live[position / WORD];
        *word &= !(1 << (position % WORD));
        if *word == 0 && position / WORD == self.head {
            self.advance();
        }
    }

    /// Moves the head to the first word that is not zero, at most to the word of the tail.
    #[inline(never)]
    fn advance(&mut self) {
        let after = &self.live[self.head..self.tail / WORD];
        self.head += after.iter().take_while(|&&word| word == 0).count();
    }

    /// Removes all entries.
    pub(crate) fn clear(&mut self) {
        self.live[..self.tail.div_ceil(WORD)].fill(0);
        (self.head, self.tail) = (0, 0);
    }

    /// Moves the entries together at the front, oldest first. Calls `moved` with `(id, old
    /// position, new position)` of each.
    pub(crate) fn close_up(&mut self, mut moved: impl FnMut(u16, usize, usize)) {
        let mut to = 0;
        for word in self.head..self.tail.div_ceil(WORD) {
            for bit in Bits(std::mem::take(&mut self.live[word])) {
                let from = word * WORD + bit;
                let id = self.ids[from];
                self.ids[to] = id;
                moved(id, from, to);
                to += 1;
            }
        }
        (self.head, self.tail) = (0, to);
        self.end = (SPARE * to).next_multiple_of(WORD).max(WORD);
        if self.end > self.ids.len() {
            self.ids.resize(self.end, 0);
            self.live.resize(self.end / WORD, 0);
        }
        self.live[..to / WORD].fill(u64::MAX);
        if to % WORD != 0 {
            self.live[to / WORD] = (1 << (to % WORD)) - 1;
        }
    }

    /// Returns the number of entries at or before a live position.
    pub(crate) fn rank(&self, kernel: Available, position: u32) -> usize {
        let (word, bit) = (position as usize / WORD, position as usize % WORD);
        let here = self.live[word] << (WORD - 1 - bit);
        kernel::count_ones(kernel, &self.live[self.head..word]) + here.count_ones() as usize
    }

    /// Returns the position of the head, a multiple of 64, and the bitmap of the live positions
    /// from there on.
    pub(crate) fn live(&self) -> (usize, &[u64]) {
        (self.head * WORD, &self.live[self.head..self.tail.div_ceil(WORD)])
    }

    /// Returns the slot number at a live position.
    #[inline]
    pub(crate) fn id(&self, position: usize) -> u16 {
        self.ids[position]
    }
}

#[cfg(test)]
mod tests {
    use super::{AgeLog, WORD};
    use crate::bits::Bits;
    use crate::kernel::{Available, Kernel};

    fn ids(log: &AgeLog) -> impl Iterator<Item = u16> {
        let (first, live) = log.live();
        let words = live.iter().enumerate();
        words.flat_map(move |(word, &live)| {
            Bits(live).map(move |bit| log.id(first + word * WORD + bit))
        })
    }

    /// Runs the tail to the end many times, with every number of entries that stay. The order and
    /// the reported positions must be correct.
    #[test]
    fn positions_are_reused_without_losing_the_order() {
        let (step, most) = if cfg!(miri) { (40, 100) } else { (1, 1000) };
        let scalar = Available::new(Kernel::Scalar).unwrap();
        for stay in (0..=80_u16).step_by(step) {
            let mut log = AgeLog::default();
            let mut position = vec![0; 1 << 16];
            let mut expected = Vec::new();
            for id in 0..most {
                if log.is_at_end() {
                    log.close_up(|id, from, to| {
                        assert_eq!(position[usize::from(id)], from);
                        position[usize::from(id)] = to;
                    });
                }
                position[usize::from(id)] = log.push(id) as usize;
                expected.push(id);
                if id % 3 == 0 && expected.len() > usize::from(stay) || expected.len() == 81 {
                    let gone = expected.remove(usize::from(id) % expected.len());
                    log.remove(position[usize::from(gone)] as u32);
                }
                assert!(ids(&log).eq(expected.iter().copied()));
                let rank = |&id: &u16| log.rank(scalar, position[usize::from(id)] as u32);
                assert!(expected.iter().map(rank).eq(1..=expected.len()));
            }
        }
    }
}
