// SPDX-License-Identifier: BSD-2-Clause
//! A packed queue: fingerprints in age order, without gaps but for the holes that
//! removals leave.
//!
//! ```text
//!             start      head                    tail           end
//! words     [   0    |    a    |   0    |   b   |   0   |  ...  ]     0: a hole
//! ignores   [        |         |        |       |       |       ]     of each word
//! slots     [        |  slot a |        | slot b|       |       ]
//! ```
//!
//! All lines share three arrays, of which each has a region of 8, 16, 32, ... places;
//! the first comes with the first element. A line whose tail reaches its end closes
//! up; if it is more than half full it moves to a region twice as long and leaves its
//! own to the next line that needs one. It also closes up when an eighth is left of a
//! long one. Both cost an insertion or a removal a constant number of moves.
//!
//! The words beyond the tail are holes, so a search may read on to the next multiple
//! of its step.

use ternary_cam::Scanner;

use super::print::Print;

/// Places in the smallest region.
const SMALLEST: u32 = Scanner::FEW as u32;

/// A line that spans no more is not closed up for its holes.
const SHORT_SPAN: u32 = 64;

/// A line closes up when it spans so many times its elements.
const SPARSE: u32 = 8;

/// A queue. Places count from the begin of the arrays.
#[derive(Clone, Copy, Default)]
pub(super) struct Line {
    start: u32,
    end: u32,
    /// Place of the oldest element, if there is one.
    pub(super) head: u32,
    /// One behind the place of the youngest.
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
    /// Regions no line has, by how often `SMALLEST` is doubled.
    unused: Vec<Vec<u32>>,
}

impl Line {
    pub(super) fn is_at_end(&self) -> bool {
        self.tail == self.end
    }

    /// Whether it has too many holes.
    #[inline]
    pub(super) fn is_sparse(&self) -> bool {
        let span = self.tail - self.head;
        span > SHORT_SPAN && span > SPARSE * self.len
    }

    /// Adds the youngest and returns its place. There must be room.
    #[inline]
    pub(super) fn push(&mut self, print: Print, slot: u32, places: &mut Places) -> u32 {
        let at = self.tail as usize;
        places.words[at] = print.value;
        places.ignores[at] = print.ignore;
        places.slots[at] = slot;
        self.tail += 1;
        self.note_ignore(print.ignore);
        self.len += 1;
        at as u32
    }

    #[inline]
    fn note_ignore(&mut self, ignore: u32) {
        if self.len == 0 {
            (self.ignore, self.mixed) = (ignore, false);
        } else if self.ignore != ignore {
            self.mixed = true;
        }
    }

    /// Leaves a hole.
    #[inline]
    pub(super) fn remove(&mut self, at: u32, places: &mut Places) {
        places.words[at as usize] = 0;
        self.len -= 1;
        if self.len == 0 {
            (self.head, self.tail) = (self.start, self.start);
        } else if at == self.head {
            while places.words[self.head as usize] == 0 {
                self.head += 1;
            }
        } else if at + 1 == self.tail {
            while places.words[self.tail as usize - 1] == 0 {
                self.tail -= 1;
            }
        }
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
        for from in old.head..old.tail {
            let at = from as usize;
            let value = std::mem::take(&mut places.words[at]);
            if value != 0 {
                let print = Print { value, ignore: places.ignores[at] };
                let slot = places.slots[at];
                let to = self.push(print, slot, places);
                moved(slot, from, to);
            }
        }
        if self.start != old.start && length != 0 {
            places.give_back(old.start, length);
        }
    }

    /// Slot of the oldest element that agrees with `print` and that `accept` takes.
    #[inline]
    pub(super) fn first(
        &self,
        scanner: Scanner,
        print: Print,
        places: &Places,
        mut accept: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let (from, to) = self.searched();
        let (words, slots) = (&places.words[from..to], &places.slots[from..to]);
        let accept = |at: usize| accept(slots[at]);
        let found = if self.mixed {
            let ignores = &places.ignores[from..to];
            scanner.first_ternary((words, ignores), print.value, print.ignore, accept)
        } else {
            scanner.first(words, print.value, print.ignore | self.ignore, accept)
        };
        found.map(|at| slots[at])
    }

    /// The places from head to tail and those beside them that fill a step.
    #[inline]
    fn searched(&self) -> (usize, usize) {
        let step = (self.end - self.start).min(Scanner::STEP as u32);
        let from = self.head - (self.head - self.start) % step;
        let to = self.start + (self.tail - self.start).next_multiple_of(step);
        (from as usize, to as usize)
    }

    /// Places and slots of its elements from `at` on, oldest first.
    pub(super) fn iter(self, at: u32, places: &Places) -> impl Iterator<Item = (u32, u32)> + '_ {
        let taken = (at.max(self.head)..self.tail).filter(|&at| places.words[at as usize] != 0);
        taken.map(|at| (at, places.slots[at as usize]))
    }

    /// How many elements there are up to the one at `at`.
    pub(super) fn rank(&self, at: u32, places: &Places) -> usize {
        let words = &places.words[self.head as usize..=at as usize];
        words.iter().filter(|&&word| word != 0).count()
    }

    pub(super) fn print(&self, at: u32, places: &Places) -> Print {
        Print { value: places.words[at as usize], ignore: places.ignores[at as usize] }
    }
}

impl Places {
    /// A region of so many places, all holes: where it starts and ends.
    fn take(&mut self, length: u32) -> (u32, u32) {
        let class = (length / SMALLEST).trailing_zeros() as usize;
        let unused = self.unused.get_mut(class).and_then(Vec::pop);
        let start = unused.unwrap_or_else(|| {
            let start = u32::try_from(self.words.len()).expect("fewer than 2^32 places");
            let all = start as usize + length as usize;
            self.words.resize(all, 0);
            self.ignores.resize(all, 0);
            self.slots.resize(all, 0);
            start
        });
        (start, start + length)
    }

    fn give_back(&mut self, start: u32, length: u32) {
        let class = (length / SMALLEST).trailing_zeros() as usize;
        if class >= self.unused.len() {
            self.unused.resize(class + 1, Vec::new());
        }
        self.unused[class].push(start);
    }
}
