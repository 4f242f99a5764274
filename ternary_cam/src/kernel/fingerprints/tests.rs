// SPDX-License-Identifier: BSD-2-Clause
//! Tests that compare the result of every kernel with the definition, fingerprint by fingerprint.

use super::super::instructions::Kernel;
use super::*;
use proptest::prelude::*;

const PAGES: usize = 2 * GROUP + 1;

fn word() -> impl Strategy<Value = u16> {
    prop_oneof![Just(0), Just(u16::MAX), 0..4_u16, (0..16_u32).prop_map(|bit| 1 << bit)]
}

/// Returns every place passed to `accept`, in the order of the calls.
fn all(
    kernel: Available,
    fingerprints: &Fingerprints,
    pages: Range<usize>,
    sought: MaskedFingerprint,
) -> Vec<usize> {
    let asked = std::cell::RefCell::new(Vec::new());
    let found = first_accepted(kernel, fingerprints, pages, sought, |place| {
        asked.borrow_mut().push(place);
        false
    });
    assert!(found.is_none());
    asked.into_inner()
}

/// Checks the results of every kernel against the definition.
fn check(fingerprints: &Fingerprints, pages: Range<usize>, sought: MaskedFingerprint) {
    let expected: Vec<_> = (pages.start * LANES..pages.end * LANES)
        .filter(|&place| {
            let (page, lane) = (place / LANES, place % LANES);
            let page = &fingerprints.pages[page];
            let care = if fingerprints.mixed { page.cares[lane] } else { fingerprints.care };
            page.live >> lane & 1 == 1
                && (page.fingerprints[lane] ^ sought.fingerprint) & care & sought.care == 0
        })
        .collect();
    for kernel in Kernel::ALL {
        let Some(available) = Available::new(kernel) else {
            eprintln!("SKIPPED: this processor has no {kernel}");
            continue;
        };
        assert_eq!(all(available, fingerprints, pages.clone(), sought), expected, "{kernel}");
        let first = first_accepted(available, fingerprints, pages.clone(), sought, |_| true);
        assert_eq!(first, expected.first().copied(), "{kernel}");
    }
}

/// Puts the only match at each place, and runs searches that begin or end at several pages.
#[test]
fn finds_the_only_one_at_every_place() {
    let sought = MaskedFingerprint { fingerprint: 5, care: u16::MAX };
    for care in [[u16::MAX; 2], [u16::MAX, 0xff]] {
        for place in (0..PAGES * LANES).step_by(if cfg!(miri) { 43 } else { 1 }) {
            let mut fingerprints = Fingerprints::new(PAGES);
            for other in 0..PAGES * LANES {
                let fingerprint = if other == place { 5 } else { 9 };
                let sought = MaskedFingerprint { fingerprint, care: care[other % 2] };
                fingerprints.set(other, 0, sought, other == 0);
            }
            for first in [0, 1, place / LANES] {
                check(&fingerprints, first..PAGES, sought);
            }
            check(&fingerprints, 0..place / LANES, sought);
            check(&fingerprints, 0..place / LANES + 1, sought);
        }
    }
}

proptest! {
    #[test]
    fn every_kernel_agrees_with_the_definition(
        words in prop::collection::vec((word(), word(), any::<bool>()), 1..PAGES * LANES),
        care_of_all in prop::option::of(word()),
        fingerprint in word(), care in word(), first in 0..PAGES,
    ) {
        let mut fingerprints = Fingerprints::new(PAGES);
        for (place, &(fingerprint, care, live)) in words.iter().enumerate() {
            let care = care_of_all.unwrap_or(care);
            fingerprints.set(place, 0, MaskedFingerprint { fingerprint, care }, place == 0);
            fingerprints.pages[place / LANES].live &= !(u64::from(!live) << (place % LANES));
        }
        check(&fingerprints, first..PAGES, MaskedFingerprint { fingerprint, care });
    }
}
