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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ternary_cam::{Kernel, Search};

    use super::*;

    const LEN: usize = FingerprintPage::LEN;
    const STEP: usize = Scanner::STEP;

    /// A fingerprint with one of a few values, and sometimes a wildcard.
    fn fingerprint() -> impl Strategy<Value = Fingerprint> {
        let wild = || prop_oneof![8 => Just(0), 1 => Just(u64::MAX)];
        (0..3_u16, 0..3_u16, wild(), wild()).prop_map(|(tag, source, any_tag, any_source)| {
            Fingerprint { tag, source, any_tag, any_source }
        })
    }

    /// Places in the order in which they are set, each with its fingerprint, and whether the place
    /// is still in use.
    type Places = Vec<(usize, Fingerprint, bool)>;

    fn places(up_to: usize) -> impl Strategy<Value = Places> {
        let place = (0..LEN, fingerprint(), prop::bool::weighted(0.7));
        prop::collection::vec(place, 0..up_to)
    }

    fn page(number: usize, places: &Places) -> FingerprintPage {
        let mut page = FingerprintPage::new((number * LEN) as u32);
        for &(lane, fingerprint, in_use) in places {
            page.set(lane, fingerprint);
            page.live &= !(u64::from(!in_use) << lane);
        }
        page
    }

    /// The places of a page as they are in the end.
    fn last(places: &Places) -> [Option<(Fingerprint, bool)>; LEN] {
        let mut last = [None; LEN];
        for &(lane, fingerprint, in_use) in places {
            last[lane] = Some((fingerprint, in_use));
        }
        last
    }

    fn agree(own: Fingerprint, key: Fingerprint) -> bool {
        (own.tag == key.tag || own.any_tag | key.any_tag != 0)
            && (own.source == key.source || own.any_source | key.any_source != 0)
    }

    fn bitmap(of: impl Fn(usize) -> bool) -> u64 {
        (0..LEN).map(|lane| u64::from(of(lane)) << lane).sum()
    }

    struct AgreeingPlaces<'s> {
        page: &'s FingerprintPage,
        key: Fingerprint,
    }

    impl Search for AgreeingPlaces<'_> {
        /// Places in the page and, for each step, places in the step; places of wildcards; the tags
        /// show that no place agrees.
        type Found = (u64, [u64; LEN / STEP], u64, bool);

        #[inline(always)]
        fn run(self, compare: impl Compare) -> Self::Found {
            let Self { page, key } = self;
            (
                page.agree(compare, key),
                std::array::from_fn(|step| page.agree_in_step(step, compare, key)),
                page.agree_with_wildcards(compare, key),
                page.lacks_tag(compare, key),
            )
        }
    }

    struct FirstPlace<'s> {
        pages: &'s [FingerprintPage],
        key: Fingerprint,
    }

    impl Search for FirstPlace<'_> {
        type Found = u32;

        #[inline(always)]
        fn run(self, compare: impl Compare) -> u32 {
            FingerprintPage::first_of(self.pages, compare, self.key)
        }
    }

    fn scanners() -> impl Iterator<Item = Scanner> {
        Kernel::available().map(|kernel| Scanner::new(kernel).unwrap())
    }

    proptest! {
        #[test]
        fn places_agree_as_their_fingerprints_do(
            places in places(80),
            key in fingerprint(),
            hits in any::<u64>(),
        ) {
            let (page, last) = (page(0, &places), last(&places));
            for (lane, place) in last.iter().enumerate() {
                if let Some((fingerprint, _)) = place {
                    prop_assert_eq!(page.fingerprint(lane), *fingerprint);
                }
            }
            let in_use = bitmap(|lane| last[lane].is_some_and(|(_, in_use)| in_use));
            prop_assert_eq!(page.live, in_use);
            // Places that were never set may or may not agree.
            let set = bitmap(|lane| last[lane].is_some());
            let expected = bitmap(|lane| last[lane].is_some_and(|(own, _)| agree(own, key)));
            let is_wild = |own: Fingerprint| own.any_tag | own.any_source != 0;
            let wild = bitmap(|lane| last[lane].is_some_and(|(own, _)| is_wild(own)));
            for scanner in scanners() {
                let found = scanner.run(AgreeingPlaces { page: &page, key });
                let (all, steps, with_wildcards, lacks_tag) = found;
                prop_assert_eq!(all & set, expected);
                for (step, found) in steps.into_iter().enumerate() {
                    let places = ((1 << STEP) - 1) << (step * STEP);
                    prop_assert_eq!(found & set & places, expected & places);
                }
                prop_assert_eq!(with_wildcards, expected & in_use & wild);
                let tag = |own: Fingerprint| agree(Fingerprint { source: key.source, ..own }, key);
                let some = last.iter().flatten().any(|&(own, _)| tag(own));
                // Places that were never set have the tag 0.
                let unset = set != u64::MAX && (key.tag == 0 || key.any_tag != 0);
                prop_assert_eq!(lacks_tag, !some && !unset);
            }
            let first = (hits & in_use != 0).then(|| (hits & in_use).trailing_zeros());
            prop_assert_eq!(page.first(hits), first.unwrap_or(NO_PLACE));
        }

        #[test]
        fn the_first_place_of_several_pages_is_found_unless_holes_agree(
            all in prop::collection::vec(places(12), 0..12),
            key in fingerprint(),
        ) {
            let pages: Vec<_> =
                all.iter().enumerate().map(|(number, places)| page(number, places)).collect();
            let mut expected = NO_PLACE;
            for (number, page) in pages.iter().enumerate() {
                let agrees = bitmap(|lane| agree(page.fingerprint(lane), key));
                if agrees != 0 {
                    let first = (agrees & page.live).trailing_zeros();
                    let place = (number * LEN) as u32 + first;
                    expected = if first == u64::BITS { UNDECIDED } else { place };
                    break;
                }
            }
            for scanner in scanners() {
                prop_assert_eq!(scanner.run(FirstPlace { pages: &pages, key }), expected);
            }
        }
    }
}
