// SPDX-License-Identifier: BSD-2-Clause
//! A packed queue: an array of fingerprints in age order. The only gaps are holes left by removals.
//!
//! ```text
//!                start                            tail            end
//! fingerprints  [  -  |    a    |   -   |    b   |   unused ...   ]
//! items         [  -  |    A    |   -   |    B   |                ]
//! live             0       1        0        1       0                bitmap
//! ```
//!
//! All arrays of [`Places`] share pages of 64 ([`FingerprintPage`]). Each array has a region of 8,
//! 16, 32, ... places, allocated with its first element; a region starts at a multiple of its
//! length, or of 64. An array closes up when its tail reaches the end of its region. If the region
//! is more than half full, the array moves to a region twice as long, and the old region becomes
//! free. A long array also closes up when only an eighth of its places are in use. Both add a
//! constant number of moves per insertion or removal.

use ternary_cam::{Compare, Scanner};

use super::{
    fingerprint::Fingerprint,
    page::{FingerprintPage, NO_PLACE},
};

/// Places in the smallest region.
pub(super) const SMALLEST: u32 = 8;

/// Places per page. Smaller regions share a page.
pub(super) const PAGE: u32 = FingerprintPage::LEN as u32;

/// An array closes up when its span exceeds this multiple of its elements.
const SPARSE: u32 = 8;

/// A queue, in half a cache line. Places are counted from the start of the pages.
///
/// Tail and length are not adjacent. Otherwise the compiler would increment both at once as a
/// vector, which waits for values that a removal just stored one by one.
#[derive(Clone, Copy, Default)]
#[repr(C, align(32))]
pub(super) struct AgeArray {
    /// Place of the next element, after all others.
    pub(super) tail: u32,
    start: u32,
    end: u32,
    /// Start of searches: the start of the region, or the first page with an element.
    head: u32,
    pub(super) len: u32,
}

/// The pages of fingerprints, and an item for each place: the element, or the place of the element
/// in the array of all elements.
pub(super) struct Places<T> {
    pages: Vec<FingerprintPage>,
    items: Vec<T>,
    /// The item of a place that was never used.
    vacant: T,
    /// Free regions, by the number of doublings of `SMALLEST`.
    unused: Vec<Vec<u32>>,
}

/// Number of the page that contains a place.
#[inline]
const fn page_of(at: u32) -> usize {
    (at / PAGE) as usize
}

/// The elements that remain after a removal.
pub(super) enum Remaining {
    /// No element.
    Empty,
    /// There are other elements, some in the same page.
    SamePage,
    /// There are other elements, but only in other pages. So there may be too many holes.
    EmptyPage,
}

impl AgeArray {
    #[inline]
    pub(super) const fn is_at_end(&self) -> bool {
        self.tail == self.end
    }

    /// Returns true if the region ends after this place.
    #[inline]
    pub(super) const fn ends_after(&self, at: u64) -> bool {
        at < self.end as u64
    }

    /// Returns true if the region is longer than a page.
    #[inline]
    pub(super) const fn is_long(&self) -> bool {
        self.end - self.start > PAGE
    }

    /// Number of places that a search covers.
    #[inline]
    pub(super) const fn span(&self) -> u32 {
        self.tail - self.head
    }

    /// Adds the youngest element and returns its place. There must be room.
    #[inline(always)]
    pub(super) fn push<T: Copy>(
        &mut self,
        fingerprint: Fingerprint,
        item: T,
        places: &mut Places<T>,
    ) -> u32 {
        if self.tail > self.start && !places.is_live(self.tail - 1) {
            self.draw_back(places);
        }
        let (page, place) = places.at_mut(self.tail).expect("there is room");
        *place = item;
        self.push_to(page, fingerprint)
    }

    /// Like [`push`](Self::push), for a known page and an item that is already stored.
    #[inline(always)]
    pub(super) fn push_to(&mut self, page: &mut FingerprintPage, fingerprint: Fingerprint) -> u32 {
        let at = self.tail;
        page.set((at % PAGE) as usize, fingerprint);
        self.tail += 1;
        self.len += 1;
        at
    }

    /// Reclaims the holes after the youngest element, within the page of the tail.
    #[cold]
    fn draw_back<T>(&mut self, places: &Places<T>) {
        let lane = self.tail % PAGE;
        let before = places.pages[page_of(self.tail)].live & ((1 << lane) - 1);
        let holes = lane - (u64::BITS - before.leading_zeros());
        self.tail -= holes.min(self.tail - self.start);
    }

    /// Reclaims the hole of the youngest element.
    #[inline(always)]
    pub(super) const fn draw_back_by_one(&mut self) {
        self.tail -= 1;
    }

    /// Removes an element and leaves a hole. If `in_first`, the caller knows that the place is in
    /// the first page. The processor then knows the address of the page before `at`, and the next
    /// search can read the page earlier.
    #[inline(always)]
    pub(super) fn remove<T>(
        &mut self,
        at: u32,
        in_first: bool,
        places: &mut Places<T>,
    ) -> Remaining {
        let page = if in_first { &mut places.pages[0] } else { &mut places.pages[page_of(at)] };
        let left = page.live & !(1 << (at % PAGE));
        page.live = left;
        self.len -= 1;
        if self.len == 0 {
            (self.head, self.tail) = (self.start, self.start);
            return Remaining::Empty;
        }
        if left == 0 { Remaining::EmptyPage } else { Remaining::SamePage }
    }

    /// Advances the head past empty pages. The array is long and has elements. Returns true if the
    /// array has so many holes that it must close up.
    #[cold]
    pub(super) fn note_empty_page<T>(&mut self, places: &Places<T>) -> bool {
        while places.pages[page_of(self.head)].live == 0 {
            self.head += PAGE;
        }
        self.span() > PAGE && self.span() > SPARSE * self.len
    }

    /// Moves the elements together. If they fill more than half of this region, moves them to a
    /// region twice as long, of at least `least` places. Calls `moved` with each item, its old
    /// place and its new place.
    #[cold]
    pub(super) fn close_up<T: Copy>(
        &mut self,
        least: u32,
        places: &mut Places<T>,
        mut moved: impl FnMut(T, u32, u32),
    ) {
        let old = *self;
        let length = old.end - old.start;
        if old.len > length / 2 || length == 0 {
            if length < PAGE || !places.extend_to(old.end, length) {
                (self.start, self.end) = places.take(least.max(2 * length));
            } else {
                self.end += length;
            }
        }
        (self.head, self.tail, self.len) = (self.start, self.start, 0);
        let mut next = old.next(old.start, places);
        while let Some(from) = next {
            places.pages[page_of(from)].live &= !(1 << (from % PAGE));
            let (fingerprint, item) = (places.fingerprint(from), places.items[from as usize]);
            let to = self.push(fingerprint, item, places);
            moved(item, from, to);
            next = old.next(from + 1, places);
        }
        if self.start != old.start && length != 0 {
            places.give_back(old.start, length);
        }
    }

    /// Returns true if the region is not longer than a step.
    #[inline]
    pub(super) const fn is_short(&self) -> bool {
        self.end - self.start <= Scanner::STEP as u32
    }

    /// The place of the only element.
    #[inline(always)]
    pub(super) fn only<T>(&self, places: &Places<T>) -> u32 {
        let live = places.pages[page_of(self.head)].live >> (self.head % PAGE);
        self.head + live.trailing_zeros()
    }

    /// The place of the oldest element that agrees with `fingerprint`, or [`NO_PLACE`]. The array
    /// must be the only array in `places` and span at most a step.
    #[inline(always)]
    pub(super) fn first_of_step<T>(
        &self,
        compare: impl Compare,
        fingerprint: Fingerprint,
        places: &Places<T>,
    ) -> u32 {
        let Some(page) = places.pages.first() else { return NO_PLACE };
        if self.len <= 1 {
            // The words of the only element may have been stored too recently to be loaded as part
            // of a vector.
            return if self.len == 0 { NO_PLACE } else { page.live.trailing_zeros() };
        }
        page.first(page.agree_in_step(0, compare, fingerprint))
    }

    /// [`first_of_step`](Self::first_of_step) for an array that spans at most a page.
    #[inline(always)]
    pub(super) fn first_of_page<T>(
        &self,
        compare: impl Compare,
        fingerprint: Fingerprint,
        places: &Places<T>,
    ) -> u32 {
        places.pages.first().map_or(NO_PLACE, |page| page.first(page.agree(compare, fingerprint)))
    }

    /// Like [`first_of_page`](Self::first_of_page), for an array that may share its page. With
    /// `STEP`, the region must lie within a step.
    #[inline(always)]
    pub(super) fn first_of_region<const STEP: bool, T>(
        &self,
        compare: impl Compare,
        fingerprint: Fingerprint,
        places: &Places<T>,
    ) -> u32 {
        let (page, at) = (&places.pages[page_of(self.start)], self.start % PAGE);
        let hits = if STEP {
            page.agree_in_step(at as usize / Scanner::STEP, compare, fingerprint)
        } else {
            page.agree(compare, fingerprint)
        };
        let length = self.end - self.start;
        let lane = page.first(hits & (u64::MAX >> (PAGE - length) << at));
        if lane == NO_PLACE { NO_PLACE } else { self.start - at + lane }
    }

    /// Like [`first_of_page`](Self::first_of_page), for an array of several pages that it does not
    /// share. May also return [`UNDECIDED`](super::page::UNDECIDED).
    #[inline(always)]
    pub(super) fn first_of_pages<T>(
        &self,
        compare: impl Compare,
        fingerprint: Fingerprint,
        places: &Places<T>,
    ) -> u32 {
        let pages = &places.pages[page_of(self.head)..page_of(self.tail + PAGE - 1)];
        FingerprintPage::first_of(pages, compare, fingerprint)
    }

    /// The first result of `accept`, called with the places of the elements that agree with
    /// `fingerprint`, oldest first.
    #[inline(always)]
    pub(super) fn first_accepted<T, F>(
        &self,
        compare: impl Compare,
        fingerprint: Fingerprint,
        places: &Places<T>,
        accept: impl Fn(u32) -> Option<F>,
    ) -> Option<F> {
        let mut next = self.next(self.head, places);
        while let Some(at) = next {
            let page = &places.pages[page_of(at)];
            let mut hits = page.agree(compare, fingerprint) & page.live & u64::MAX << (at % PAGE);
            while hits != 0 {
                let place = at / PAGE * PAGE + hits.trailing_zeros();
                if place >= self.tail {
                    break;
                }
                let found = accept(place);
                if found.is_some() {
                    return found;
                }
                hits &= hits - 1;
            }
            next = self.next((at / PAGE + 1) * PAGE, places);
        }
        None
    }

    /// The first place from `at` on with an element.
    #[inline]
    pub(super) fn next<T>(&self, at: u32, places: &Places<T>) -> Option<u32> {
        let mut at = at.max(self.head);
        while at < self.tail {
            let live = places.pages[page_of(at)].live >> (at % PAGE);
            if live != 0 {
                // The element may be of another array that shares the page.
                return Some(at + live.trailing_zeros()).filter(|&at| at < self.tail);
            }
            at = (at / PAGE + 1) * PAGE;
        }
        None
    }

    /// Items of the elements, oldest first.
    pub(super) fn iter<T: Copy>(self, places: &Places<T>) -> impl Iterator<Item = T> + '_ {
        let taken = std::iter::successors(self.next(self.start, places), move |&at| {
            self.next(at + 1, places)
        });
        taken.map(|at| places.items[at as usize])
    }

    /// Number of elements up to and including the one at `at`.
    pub(super) fn rank<T>(&self, at: u32, places: &Places<T>) -> usize {
        let pages = &places.pages[page_of(self.head)..=page_of(at)];
        let all: u32 = pages.iter().map(|page| page.live.count_ones()).sum();
        let before = pages[0].live & ((1 << (self.head % PAGE)) - 1);
        let behind = pages[pages.len() - 1].live & (u64::MAX << (at % PAGE)) << 1;
        (all - before.count_ones() - behind.count_ones()) as usize
    }
}

impl<T: Copy> Places<T> {
    /// Creates an empty set of places.
    pub(super) const fn new(vacant: T) -> Self {
        Self { pages: Vec::new(), items: Vec::new(), vacant, unused: Vec::new() }
    }

    /// The item of a place; `None` for [`NO_PLACE`] and [`UNDECIDED`](super::page::UNDECIDED).
    #[inline(always)]
    pub(super) fn item(&self, at: u32) -> Option<&T> {
        self.items.get(at as usize)
    }

    /// The page and the item of a place; `None` if the place does not exist.
    #[inline(always)]
    pub(super) fn at_mut(&mut self, at: u32) -> Option<(&mut FingerprintPage, &mut T)> {
        Some((self.pages.get_mut(page_of(at))?, self.items.get_mut(at as usize)?))
    }

    /// A page by its number.
    #[inline]
    pub(super) fn page(&self, number: u32) -> &FingerprintPage {
        &self.pages[number as usize]
    }

    #[inline]
    pub(super) fn fingerprint(&self, at: u32) -> Fingerprint {
        self.pages[page_of(at)].fingerprint((at % PAGE) as usize)
    }

    /// Changes the item of a place.
    pub(super) fn set(&mut self, at: u32, item: T) {
        self.items[at as usize] = item;
    }

    /// Returns true if a place has an element.
    pub(super) fn is_live(&self, at: u32) -> bool {
        self.pages[page_of(at)].live >> (at % PAGE) & 1 == 1
    }

    /// Number of places.
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Allocates a region of `length` places without elements. Returns its start and end.
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
        let start = u32::try_from(self.items.len()).expect("fewer than 2^32 places");
        let end = start.checked_add(length).expect("fewer than 2^32 places");
        self.pages.extend((start..end).step_by(FingerprintPage::LEN).map(FingerprintPage::new));
        self.items.resize(end as usize, self.vacant);
        start
    }

    /// Extends the region that ends at `end` by `more` places if it is the last one. Returns false,
    /// and changes nothing, if it is not.
    fn extend_to(&mut self, end: u32, more: u32) -> bool {
        let last = end as usize == self.items.len();
        if last {
            self.extend(more);
        }
        last
    }

    fn give_back(&mut self, start: u32, length: u32) {
        let class = class(length);
        if class >= self.unused.len() {
            self.unused.resize(class + 1, Vec::new());
        }
        self.unused[class].push(start);
    }
}

/// Number of doublings of `SMALLEST`.
const fn class(length: u32) -> usize {
    (length / SMALLEST).trailing_zeros() as usize
}

#[cfg(test)]
#[path = "age_array_tests.rs"]
mod tests;
