// SPDX-License-Identifier: BSD-2-Clause
//! The fingerprints of the entries of a [`Cam`](crate::Cam): 16 bits of each entry
//! (`cam/fingerprint.rs`). The AVX-512 kernel compares 32 of them per instruction.
//!
//! An entry with the fingerprint `f`, of which it compares the bits `cares`, may match a key with
//! the fingerprint `sought`, of which the key compares the bits `care`, if
//!
//! ```text
//! (f ^ sought) & cares & care == 0
//! ```
//! Of 256 entries, one can match only if the minimum of this expression over these entries is 0.
//! While all entries compare the same bits, `cares` is not loaded, which halves the data.

mod avx2;
mod avx512;
mod page;

use std::ops::Range;

use super::instructions::Available;
#[cfg(target_arch = "x86_64")]
use super::instructions::Kernel;
use super::lanes::LANES;
pub(crate) use page::MaskedFingerprint;
use page::{GROUP, Page, first_accepted_with};

/// The fingerprints of all entries, in age order.
pub(crate) struct Fingerprints {
    pub(crate) pages: Box<[Page]>,
    /// The bits of a fingerprint that every entry compares, unless `mixed`.
    care: u16,
    /// True if entries compare different bits. The pages then contain the bits of each entry.
    mixed: bool,
}

impl Fingerprints {
    /// Creates this many pages without entries.
    pub(crate) fn new(pages: usize) -> Self {
        Self { pages: vec![Page::EMPTY; pages].into(), care: 0, mixed: false }
    }

    /// Stores an entry at a place; `first` is true if there is no other entry.
    #[inline(always)]
    pub(crate) fn set(
        &mut self,
        place: usize,
        id: u16,
        MaskedFingerprint { fingerprint, care }: MaskedFingerprint,
        first: bool,
    ) {
        if first {
            (self.care, self.mixed) = (care, false);
        } else if care != self.care || self.mixed {
            self.mix(place, care);
        }
        let (page, lane) = (&mut self.pages[place / LANES], place % LANES);
        (page.fingerprints[lane], page.ids[lane]) = (fingerprint, id);
        page.live |= 1 << lane;
    }

    /// Stores the compared bits of an entry. If the entry is the first with other bits, also stores
    /// the compared bits of all entries before it.
    #[inline(never)]
    fn mix(&mut self, place: usize, care: u16) {
        if !std::mem::replace(&mut self.mixed, true) {
            let before = &mut self.pages[..=place / LANES];
            before.iter_mut().for_each(|page| page.cares = [self.care; LANES]);
        }
        self.pages[place / LANES].cares[place % LANES] = care;
    }

    /// Moves the entry at the place `from` to the place `to`, which is not higher. Returns the slot
    /// of the entry. The caller has cleared the live bit of `from`.
    pub(crate) fn move_down(&mut self, from: usize, to: usize) -> u16 {
        let (old, lane) = (&self.pages[from / LANES], from % LANES);
        let care = if self.mixed { old.cares[lane] } else { self.care };
        let (fingerprint, id) = (old.fingerprints[lane], old.ids[lane]);
        self.set(to, id, MaskedFingerprint { fingerprint, care }, false);
        id
    }
}

/// Returns the lowest place in these pages that has an entry, whose fingerprint may match, and that
/// `accept` accepts. Returns `None` if there is no such place.
#[inline(always)]
pub(crate) fn first_accepted(
    kernel: Available,
    fingerprints: &Fingerprints,
    pages: Range<usize>,
    sought: MaskedFingerprint,
    accept: impl Fn(usize) -> bool,
) -> Option<usize> {
    if fingerprints.mixed {
        first_of::<true>(kernel, fingerprints, pages, sought, accept)
    } else {
        let sought = MaskedFingerprint { care: sought.care & fingerprints.care, ..sought };
        first_of::<false>(kernel, fingerprints, pages, sought, accept)
    }
}

#[inline(always)]
fn first_of<const MIXED: bool>(
    kernel: Available,
    fingerprints: &Fingerprints,
    pages: Range<usize>,
    sought: MaskedFingerprint,
    accept: impl Fn(usize) -> bool,
) -> Option<usize> {
    let pages = (&fingerprints.pages[..pages.end], pages.start);
    match kernel.get() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the processor supports what is `Available`.
        Kernel::Avx512 => unsafe { avx512::first_accepted::<MIXED>(pages, sought, accept) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Kernel::Avx2 => unsafe { avx2::first_accepted::<MIXED>(pages, sought, accept) },
        _ => scalar::<MIXED>(pages, sought, accept),
    }
}

/// The kernel of [`first_accepted`] for every processor. The other kernels are tested against it.
#[inline(never)]
fn scalar<const MIXED: bool>(
    pages: (&[Page], usize),
    MaskedFingerprint { fingerprint, care }: MaskedFingerprint,
    accept: impl Fn(usize) -> bool,
) -> Option<usize> {
    let differ = |page: &Page, lane: usize| {
        (page.fingerprints[lane] ^ fingerprint)
            & care
            & if MIXED { page.cares[lane] } else { u16::MAX }
    };
    let least =
        |page: &Page| (0..LANES).fold(u16::MAX, |least, lane| least.min(differ(page, lane)));
    let any = |group: &[Page; GROUP]| group.iter().any(|page| least(page) == 0);
    let which = |page: &Page| {
        (0..LANES).fold(0, |hits, lane| hits | u64::from(differ(page, lane) == 0) << lane)
    };
    first_accepted_with(pages, any, which, accept)
}

#[cfg(test)]
mod tests;
