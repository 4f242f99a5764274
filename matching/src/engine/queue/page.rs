// SPDX-License-Identifier: BSD-2-Clause
//! Pages: the fingerprints of 64 elements, and a bitmap of the places in use. A place *agrees* with
//! a fingerprint if the two do not differ in a part that both compare (`fingerprint.rs`).

use ternary_cam::{Compare, Scanner};

use super::fingerprint::Fingerprint;

/// The fingerprints of a page are contiguous, so that adding or finding one uses a single base
/// address.
///
/// ```text
///             place 0    1    2  ...  63
/// tags        [  u16  |  u16 | u16 ... u16 ]   2 cache lines
/// sources     [  u16  |  u16 | u16 ... u16 ]   2 cache lines
/// any_tag     [  u64  ]   bitmaps
/// any_source  [  u64  ]
/// live        [  u64  ]
/// start       [  u32  ]
/// ```
///
/// Removing an element changes only the bitmap: a fingerprint that was just overwritten could not
/// be loaded as part of a vector before the store completes.
#[derive(Clone)]
#[repr(C, align(64))]
pub(super) struct FingerprintPage {
    tags: [u16; Self::LEN],
    sources: [u16; Self::LEN],
    /// Elements whose tag is not compared.
    any_tag: u64,
    /// Elements whose source is not compared.
    any_source: u64,
    /// Places with an element.
    pub(super) live: u64,
    /// Number of the page's first place.
    start: u32,
}

/// Number of pages that are compared before the first hit among them is located. A loop that ended
/// at the page with the hit would end at a different page in each search, and the processor would
/// mispredict its end.
const GROUP: usize = 4;

/// No place.
pub(super) const NO_PLACE: u32 = u32::MAX;

/// In the first page in which any place agrees, all places that agree are unused. A further search
/// must decide whether there is a match.
pub(super) const UNDECIDED: u32 = u32::MAX - 1;

impl FingerprintPage {
    /// Places per page.
    pub(super) const LEN: usize = Scanner::PAGE;

    /// Creates a page without elements.
    pub(super) const fn new(start: u32) -> Self {
        Self {
            tags: [0; Self::LEN],
            sources: [0; Self::LEN],
            any_tag: 0,
            any_source: 0,
            live: 0,
            start,
        }
    }

    #[inline(always)]
    pub(super) fn set(&mut self, lane: usize, fingerprint: Fingerprint) {
        self.tags[lane] = fingerprint.tag;
        self.sources[lane] = fingerprint.source;
        let bit = 1 << lane;
        // Most pages never contained a wildcard.
        if self.any_tag | self.any_source | fingerprint.any_tag | fingerprint.any_source != 0 {
            self.any_tag = self.any_tag & !bit | fingerprint.any_tag & bit;
            self.any_source = self.any_source & !bit | fingerprint.any_source & bit;
        }
        self.live |= bit;
    }

    pub(super) fn fingerprint(&self, lane: usize) -> Fingerprint {
        let all = |bitmap: u64| (bitmap >> lane & 1).wrapping_neg();
        Fingerprint {
            tag: self.tags[lane],
            source: self.sources[lane],
            any_tag: all(self.any_tag),
            any_source: all(self.any_source),
        }
    }

    /// Bitmap of the places, used or not, whose fingerprint agrees.
    #[inline(always)]
    pub(super) fn agree(&self, compare: impl Compare, fingerprint: Fingerprint) -> u64 {
        let tags = compare.page(&self.tags, fingerprint.tag);
        let sources = compare.page(&self.sources, fingerprint.source);
        self.merge(tags, sources, fingerprint)
    }

    /// Bitmap of the places of a step, used or not, whose fingerprint agrees. A step is a part of a
    /// page ([`Scanner::STEP`] places). The bitmap may also contain places outside the step.
    #[inline(always)]
    pub(super) fn agree_in_step(
        &self,
        step: usize,
        compare: impl Compare,
        fingerprint: Fingerprint,
    ) -> u64 {
        let step = step % (Self::LEN / Scanner::STEP);
        let first = step * Scanner::STEP;
        let tags = compare.step(&self.tags.as_chunks().0[step], fingerprint.tag) << first;
        let sources = compare.step(&self.sources.as_chunks().0[step], fingerprint.source) << first;
        self.merge(tags, sources, fingerprint)
    }

    /// Bitmap of the places of elements with wildcards whose fingerprint agrees.
    #[inline(always)]
    pub(super) fn agree_with_wildcards(
        &self,
        compare: impl Compare,
        fingerprint: Fingerprint,
    ) -> u64 {
        self.agree(compare, fingerprint) & (self.any_tag | self.any_source) & self.live
    }

    /// Returns true if the tags alone show that no fingerprint agrees.
    #[inline(always)]
    fn lacks_tag(&self, compare: impl Compare, fingerprint: Fingerprint) -> bool {
        compare.page(&self.tags, fingerprint.tag) | self.any_tag | fingerprint.any_tag == 0
    }

    #[inline(always)]
    fn merge(&self, tags: u64, sources: u64, fingerprint: Fingerprint) -> u64 {
        (tags | self.any_tag | fingerprint.any_tag)
            & (sources | self.any_source | fingerprint.any_source)
    }

    /// The first place of the bitmap `hits` that is in use, or [`NO_PLACE`].
    ///
    /// Usually the first hit is in use. A branch tests this, so that the processor can proceed
    /// before it knows the value of `live` that the last removal stored.
    #[inline(always)]
    pub(super) fn first(&self, hits: u64) -> u32 {
        if hits == 0 {
            return NO_PLACE;
        }
        let mut lane = hits.trailing_zeros();
        if self.live >> lane & 1 == 0 {
            let hits = hits & self.live;
            if hits == 0 {
                return NO_PLACE;
            }
            lane = hits.trailing_zeros();
        }
        lane
    }

    /// The place of the first element that agrees in several pages; [`NO_PLACE`] if no element
    /// agrees, and [`UNDECIDED`] if this search cannot find the first one.
    ///
    /// No address is computed from the number of pages. The last removal may have changed this
    /// number, and the search would wait for the new value.
    #[inline(always)]
    pub(super) fn first_of(pages: &[Self], compare: impl Compare, fingerprint: Fingerprint) -> u32 {
        let mut rest = pages;
        loop {
            while rest.len() > GROUP && rest[0].lacks_tag(compare, fingerprint) {
                rest = &rest[1..];
            }
            let Some(mut found) = rest.first() else { return NO_PLACE };
            let mut hits = found.agree(compare, fingerprint);
            for page in rest.iter().take(GROUP).skip(1) {
                let of_page = page.agree(compare, fingerprint);
                (found, hits) = if hits == 0 { (page, of_page) } else { (found, hits) };
            }
            if hits != 0 {
                let lane = found.first(hits);
                return if lane == NO_PLACE { UNDECIDED } else { found.start + lane };
            }
            if rest.len() <= GROUP {
                return NO_PLACE;
            }
            rest = &rest[GROUP..];
        }
    }
}
