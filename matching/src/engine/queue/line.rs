// SPDX-License-Identifier: BSD-2-Clause
//! A packed queue: fingerprints in age order, without gaps but for the holes that
//! removals leave.
//!
//! ```text
//!            start                            tail            end
//! words     [  -  |    a    |   -   |    b   |   unused ...   ]
//! ignores   [     |         |       |        |                ]   unless all are the same
//! slots     [     |  slot a |       | slot b |                ]
//! live         0       1        0        1       0                bitmap
//! ```
//!
//! All lines share four arrays, of which each has a region of 8, 16, 32, ... places,
//! which starts at a multiple of its length, or of 64; the first comes with the first
//! element. A line whose tail reaches its end closes up; if it is more than half full
//! it moves to a region twice as long and leaves its own to the next line that needs
//! one. It also closes up when an eighth is left of a long one. Both cost an insertion
//! or a removal a constant number of moves.

use ternary_cam::Scanner;

use super::print::Print;

/// Places in the smallest region.
const SMALLEST: u32 = Scanner::HALF as u32;

/// Places in a word of the bitmap. Smaller regions share one.
const WORD: u32 = u64::BITS;

/// A line closes up when it spans so many times its elements.
const SPARSE: u32 = 8;

/// A queue, in half a cache line. Places count from the begin of the arrays.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
pub(super) struct Line {
    start: u32,
    end: u32,
    /// Where searches begin: the start, or the first word of the bitmap with an
    /// element.
    head: u32,
    /// One behind the place of the youngest, or more.
    pub(super) tail: u32,
    pub(super) len: u32,
    /// Bits that all its elements ignore, if they ignore the same.
    ignore: u32,
    /// They do not.
    mixed: bool,
}

/// The arrays.
#[derive(Default)]
pub(super) struct Places {
    words: Vec<u32>,
    ignores: Vec<u32>,
    slots: Vec<u32>,
    live: Vec<u64>,
    /// Regions no line has, by how often `SMALLEST` is doubled.
    unused: Vec<Vec<u32>>,
}

/// Index of the word of the bitmap with a place, and its bit.
#[inline]
const fn bit(at: u32) -> (usize, u64) {
    ((at / WORD) as usize, 1 << (at % WORD))
}

impl Line {
    #[inline]
    pub(super) const fn is_at_end(&self) -> bool {
        self.tail == self.end
    }

    /// Places that a search passes.
    #[inline]
    pub(super) const fn span(&self) -> u32 {
        self.tail - self.head
    }

    /// Adds the youngest and returns its place. There must be room.
    #[inline(always)]
    pub(super) fn push(&mut self, print: Print, slot: u32, places: &mut Places) -> u32 {
        let at = self.tail;
        if self.len == 0 {
            (self.ignore, self.mixed) = (print.ignore, false);
        } else if self.mixed | (self.ignore != print.ignore) {
            self.mix(print.ignore, places);
        }
        places.words[at as usize] = print.value;
        places.slots[at as usize] = slot;
        let (word, bit) = bit(at);
        places.live[word] |= bit;
        self.tail += 1;
        self.len += 1;
        at
    }

    /// Sets the ignore bits of the place at the tail, and of those before it if the
    /// first that differs comes.
    #[inline(never)]
    fn mix(&mut self, ignore: u32, places: &mut Places) {
        if !self.mixed {
            self.mixed = true;
            places.ignores[self.start as usize..self.tail as usize].fill(self.ignore);
        }
        places.ignores[self.tail as usize] = ignore;
    }

    #[inline]
    pub(super) fn print(&self, at: u32, places: &Places) -> Print {
        let ignore = if self.mixed { places.ignores[at as usize] } else { self.ignore };
        Print { value: places.words[at as usize], ignore }
    }

    /// Leaves a hole, and says whether there are now too many.
    #[inline(always)]
    pub(super) fn remove(&mut self, at: u32, places: &mut Places) -> bool {
        let (word, bit) = bit(at);
        let left = places.live[word] & !bit;
        places.live[word] = left;
        self.len -= 1;
        if self.len == 0 {
            (self.head, self.tail) = (self.start, self.start);
            return false;
        }
        self.tail -= u32::from(at + 1 == self.tail);
        left == 0 && self.note_empty_word(places)
    }

    /// A word of the bitmap became empty: of a long line, as this one has elements.
    #[cold]
    fn note_empty_word(&mut self, places: &Places) -> bool {
        while places.live[(self.head / WORD) as usize] == 0 {
            self.head += WORD;
        }
        self.span() > WORD && self.span() > SPARSE * self.len
    }

    /// Moves the elements together, into a longer region if they fill more than half
    /// of this one, and reports of each `(slot, old place, new place)`.
    #[cold]
    pub(super) fn close_up(&mut self, places: &mut Places, mut moved: impl FnMut(u32, u32, u32)) {
        let old = *self;
        let length = old.end - old.start;
        if old.len > length / 2 || length == 0 {
            (self.start, self.end) = places.take(SMALLEST.max(2 * length));
        }
        (self.head, self.tail, self.len) = (self.start, self.start, 0);
        let mut next = old.next(old.start, places);
        while let Some(from) = next {
            let (word, bit) = bit(from);
            places.live[word] &= !bit;
            let (print, slot) = (old.print(from, places), places.slot(from));
            let to = self.push(print, slot, places);
            moved(slot, from, to);
            next = old.next(from + 1, places);
        }
        if self.start != old.start && length != 0 {
            places.give_back(old.start, length);
        }
    }

    /// Slot of the oldest element that agrees with `print` and that `accept` takes.
    #[inline(always)]
    pub(super) fn first(
        &self,
        scanner: Scanner,
        print: Print,
        places: &Places,
        mut accept: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        if self.end - self.start > Scanner::STEP as u32 {
            return self.first_of_many(scanner, print, places, accept);
        }
        if self.len == 0 {
            return None;
        }
        let all = self.start as usize..self.end as usize;
        let live = places.live[(self.start / WORD) as usize] >> (self.start % WORD);
        if self.len == 1 {
            // Its word may be too new to be read as a part of a vector.
            let slot = places.slots[all.start + live.trailing_zeros() as usize];
            return accept(slot).then_some(slot);
        }
        let (words, slots) = (&places.words[all.clone()], &places.slots[all.clone()]);
        let accept = |at: usize| accept(slots[at]);
        let found = if self.mixed {
            let words = (words, &places.ignores[all]);
            Scanner::first_ternary_of_few(words, live, print.value, print.ignore, accept)
        } else {
            let ignore = print.ignore | self.ignore;
            Scanner::first_of_few(words, live, print.value, ignore, accept)
        };
        found.map(|at| slots[at])
    }

    /// [`Line::first`] with the kernel.
    #[inline(never)]
    fn first_of_many(
        &self,
        scanner: Scanner,
        print: Print,
        places: &Places,
        mut accept: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let steps = self.span().div_ceil(Scanner::STEP as u32);
        let all = self.head as usize..(self.head + steps * Scanner::STEP as u32) as usize;
        let live = &places.live[all.start / WORD as usize..all.end.div_ceil(WORD as usize)];
        // The head of a short line may be in the middle of a word.
        let short = [live.first().copied().unwrap_or_default() >> (self.head % WORD)];
        let live = if self.end - self.start < WORD { &short } else { live };
        let (words, slots) = (&places.words[all.clone()], &places.slots[all.clone()]);
        let accept = |at: usize| accept(slots[at]);
        let found = if self.mixed {
            let words = (words, &places.ignores[all]);
            scanner.first_ternary(words, live, print.value, print.ignore, accept)
        } else {
            scanner.first(words, live, print.value, print.ignore | self.ignore, accept)
        };
        found.map(|at| slots[at])
    }

    /// The first place from `at` on that has an element.
    #[inline]
    pub(super) fn next(&self, at: u32, places: &Places) -> Option<u32> {
        let mut at = at.max(self.head);
        while at < self.tail {
            let live = places.live[(at / WORD) as usize] >> (at % WORD);
            if live != 0 {
                // It may be that of a line that shares the word.
                return Some(at + live.trailing_zeros()).filter(|&at| at < self.tail);
            }
            at = (at / WORD + 1) * WORD;
        }
        None
    }

    /// Slots of its elements, oldest first.
    pub(super) fn iter(self, places: &Places) -> impl Iterator<Item = u32> + '_ {
        let taken = std::iter::successors(self.next(self.start, places), move |&at| {
            self.next(at + 1, places)
        });
        taken.map(|at| places.slot(at))
    }

    /// How many elements there are up to the one at `at`.
    pub(super) fn rank(&self, at: u32, places: &Places) -> usize {
        let (first, last) = ((self.head / WORD) as usize, (at / WORD) as usize);
        let all: u32 = places.live[first..=last].iter().map(|word| word.count_ones()).sum();
        let (before, _) = bit(self.head);
        let before = places.live[before] & ((1 << (self.head % WORD)) - 1);
        let behind = places.live[last] & (u64::MAX << (at % WORD)) << 1;
        (all - before.count_ones() - behind.count_ones()) as usize
    }
}

impl Places {
    #[inline]
    pub(super) fn slot(&self, at: u32) -> u32 {
        self.slots[at as usize]
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// A region of so many places, all holes: where it starts and ends.
    fn take(&mut self, length: u32) -> (u32, u32) {
        let unused = self.unused.get_mut(class(length)).and_then(Vec::pop);
        let start = match unused {
            Some(start) => start,
            None if length < WORD => {
                let (start, _) = self.take(2 * length);
                self.give_back(start + length, length);
                start
            }
            None => self.extend(length),
        };
        (start, start + length)
    }

    fn extend(&mut self, length: u32) -> u32 {
        let start = self.words.len();
        let all = start + length as usize;
        self.words.resize(all, 0);
        self.ignores.resize(all, 0);
        self.slots.resize(all, 0);
        self.live.resize(all / WORD as usize, 0);
        u32::try_from(start).expect("fewer than 2^32 places")
    }

    fn give_back(&mut self, start: u32, length: u32) {
        let class = class(length);
        if class >= self.unused.len() {
            self.unused.resize(class + 1, Vec::new());
        }
        self.unused[class].push(start);
    }
}

/// How often `SMALLEST` is doubled.
const fn class(length: u32) -> usize {
    (length / SMALLEST).trailing_zeros() as usize
}
