// SPDX-License-Identifier: BSD-2-Clause
//! A packed queue: fingerprints in age order, without gaps but for the holes that
//! removals leave.
//!
//! ```text
//!            start                            tail            end
//! words     [  -  |    a    |   -   |    b   |   unused ...   ]
//! ignores   [     |         |       |        |                ]   bits not compared
//! names     [     |  slot a |       | slot b |                ]
//! live         0       1        0        1       0                bitmap
//! ```
//!
//! All lines share pages of 64 places ([`Page`]). Each has a region of 8, 16, 32, ...
//! places, which starts at a multiple of its length, or of 64; the first comes with the
//! first element. A line whose tail reaches its end closes up; if it is more than half
//! full it moves to a region twice as long and leaves its own to the next line that needs
//! one. It also closes up when an eighth is left of a long one. Both cost an insertion
//! or a removal a constant number of moves.

use ternary_cam::{Page, Scanner};

use super::print::Print;

/// Places in the smallest region.
const SMALLEST: u32 = Scanner::HALF as u32;

/// Places in a page. Smaller regions share one.
const PAGE: u32 = Page::LEN as u32;

/// A line closes up when it spans so many times its elements.
const SPARSE: u32 = 8;

/// A queue, in half a cache line. Places count from the begin of the pages.
#[derive(Clone, Copy, Default)]
#[repr(align(32))]
pub(super) struct Line {
    start: u32,
    end: u32,
    /// Where searches begin: the start, or the first page with an element.
    head: u32,
    /// One behind the place of the youngest, or more.
    pub(super) tail: u32,
    pub(super) len: u32,
    /// Bits that any of its elements ignores, and bits that one does not.
    ignored: u32,
    compared: u32,
}

/// The pages.
#[derive(Default)]
pub(super) struct Places {
    pages: Vec<Page>,
    /// Regions no line has, by how often `SMALLEST` is doubled.
    unused: Vec<Vec<u32>>,
}

/// Number of the page with a place.
#[inline]
const fn page_of(at: u32) -> usize {
    (at / PAGE) as usize
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
        let (page, lane) = (&mut places.pages[page_of(at)], (at % PAGE) as usize);
        page.words[lane] = print.value;
        page.ignores[lane] = print.ignore;
        page.names[lane] = slot;
        page.live |= 1 << lane;
        self.ignored |= print.ignore;
        self.compared |= !print.ignore;
        self.tail += 1;
        self.len += 1;
        at
    }

    #[inline]
    pub(super) fn print(at: u32, places: &Places) -> Print {
        let (page, lane) = (&places.pages[page_of(at)], (at % PAGE) as usize);
        Print { value: page.words[lane], ignore: page.ignores[lane] }
    }

    /// Leaves a hole, and says whether there are now too many.
    #[inline(always)]
    pub(super) fn remove(&mut self, at: u32, places: &mut Places) -> bool {
        let page = &mut places.pages[page_of(at)];
        let left = page.live & !(1 << (at % PAGE));
        page.live = left;
        self.len -= 1;
        if self.len == 0 {
            (self.head, self.tail) = (self.start, self.start);
            (self.ignored, self.compared) = (0, 0);
            return false;
        }
        self.tail -= u32::from(at + 1 == self.tail);
        left == 0 && self.note_empty_page(places)
    }

    /// A page became empty: of a long line, as this one has elements.
    #[cold]
    fn note_empty_page(&mut self, places: &Places) -> bool {
        while places.pages[page_of(self.head)].live == 0 {
            self.head += PAGE;
        }
        self.span() > PAGE && self.span() > SPARSE * self.len
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
        (self.ignored, self.compared) = (0, 0);
        let mut next = old.next(old.start, places);
        while let Some(from) = next {
            places.pages[page_of(from)].live &= !(1 << (from % PAGE));
            let (print, slot) = (Self::print(from, places), places.slot(from));
            let to = self.push(print, slot, places);
            moved(slot, from, to);
            next = old.next(from + 1, places);
        }
        if self.start != old.start && length != 0 {
            places.give_back(old.start, length);
        }
    }

    /// What `accept` finds in the slot of the oldest element that agrees with `print` and
    /// where it finds something.
    #[inline(always)]
    pub(super) fn first<T>(
        &self,
        scanner: Scanner,
        Print { value, ignore }: Print,
        places: &Places,
        accept: impl Fn(u32) -> Option<T>,
    ) -> Option<T> {
        let length = self.end - self.start;
        if length > PAGE {
            return self.first_of_many(scanner, Print { value, ignore }, places, accept);
        }
        if self.len == 0 {
            return None;
        }
        let (page, at) = (&places.pages[page_of(self.start)], self.start % PAGE);
        if self.len == 1 {
            // Its word may be too new to be read as a part of a vector.
            let lane = at + (page.live >> at).trailing_zeros();
            return accept(page.names[(lane % PAGE) as usize]);
        }
        if length <= Scanner::STEP as u32 {
            let few = (at as usize, length as usize);
            return Scanner::first_of_few(page, few, value, ignore, accept);
        }
        let mask = u64::MAX >> (PAGE - length) << at;
        scanner.first_of_page(page, mask, value, ignore, accept)
    }

    /// [`Line::first`] in pages that are all its own.
    #[inline(never)]
    fn first_of_many<T>(
        &self,
        scanner: Scanner,
        Print { value, ignore }: Print,
        places: &Places,
        accept: impl Fn(u32) -> Option<T>,
    ) -> Option<T> {
        let pages = &places.pages[page_of(self.head)..page_of(self.tail + PAGE - 1)];
        if self.ignored & self.compared != 0 {
            scanner.first_ternary(pages, value, ignore, accept)
        } else {
            scanner.first(pages, value, ignore | self.ignored, accept)
        }
    }

    /// The first place from `at` on that has an element.
    #[inline]
    pub(super) fn next(&self, at: u32, places: &Places) -> Option<u32> {
        let mut at = at.max(self.head);
        while at < self.tail {
            let live = places.pages[page_of(at)].live >> (at % PAGE);
            if live != 0 {
                // It may be that of a line that shares the page.
                return Some(at + live.trailing_zeros()).filter(|&at| at < self.tail);
            }
            at = (at / PAGE + 1) * PAGE;
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
        let pages = &places.pages[page_of(self.head)..=page_of(at)];
        let all: u32 = pages.iter().map(|page| page.live.count_ones()).sum();
        let before = pages[0].live & ((1 << (self.head % PAGE)) - 1);
        let behind = pages[pages.len() - 1].live & (u64::MAX << (at % PAGE)) << 1;
        (all - before.count_ones() - behind.count_ones()) as usize
    }
}

impl Places {
    #[inline]
    pub(super) fn slot(&self, at: u32) -> u32 {
        self.pages[page_of(at)].names[(at % PAGE) as usize]
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.pages.len()
    }

    /// A region of so many places, all holes: where it starts and ends.
    fn take(&mut self, length: u32) -> (u32, u32) {
        let unused = self.unused.get_mut(class(length)).and_then(Vec::pop);
        let start = match unused {
            Some(start) => start,
            None if length < PAGE => {
                let (start, _) = self.take(2 * length);
                self.give_back(start + length, length);
                start
            }
            None => self.extend(length),
        };
        (start, start + length)
    }

    fn extend(&mut self, length: u32) -> u32 {
        let first = self.pages.len();
        self.pages.resize(first + page_of(length), Page::EMPTY);
        u32::try_from(first * Page::LEN).expect("fewer than 2^32 places")
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
