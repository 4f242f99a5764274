// SPDX-License-Identifier: BSD-2-Clause
//! Fingerprints: 32 bits for what is matched, such that whatever matches agrees in
//! the bits that neither ignores.
//!
//! ```text
//! 31     30..19        18..12              11..0
//! live | source (12) | communicator (7) | tag (12)
//! ```
//!
//! Each field is folded: exclusive or of the values, union of the ignore bits. So a
//! pattern that ignores a part of the tag is still told apart by the rest of it, and
//! one from any source by its tag. What the layout has besides (protocol bits, which
//! every receive ignores) is left out. The live bit is never ignored: a word of
//! zeros agrees with nothing.

use crate::{Key, Source, traffic::Fields};

/// Set in each fingerprint.
const LIVE: u32 = 1 << 31;
const SOURCE: u32 = 0xfff << SOURCE_AT;
const SOURCE_AT: u32 = 19;
const COMMUNICATOR_AT: u32 = 12;

/// Fingerprint of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) value: u32,
    /// Bits that are not compared.
    pub(super) ignore: u32,
}

impl Print {
    #[inline]
    pub(super) fn new(fields: &Fields, key: &Key) -> Self {
        let (tag, communicator) = fields.tag_and_communicator(key.bits);
        let value = LIVE
            | (tag ^ tag >> 12 ^ tag >> 24) & 0xfff
            | fold_communicator(communicator, |a, b| a ^ b) << COMMUNICATOR_AT;
        let mut ignore = 0;
        if key.ignore != 0 {
            let (tag, communicator) = fields.tag_and_communicator(key.ignore);
            ignore = (tag | tag >> 12 | tag >> 24) & 0xfff
                | fold_communicator(communicator, |a, b| a | b) << COMMUNICATOR_AT;
        }
        match fields.source(key) {
            Source::ANY => Self { value, ignore: ignore | SOURCE },
            source => {
                let source = source.get().unwrap_or_default();
                let source = (source ^ source >> 12 ^ source >> 24) & 0xfff;
                Self { value: value | source << SOURCE_AT, ignore }
            }
        }
    }
}

#[inline]
fn fold_communicator(bits: u32, join: impl Fn(u32, u32) -> u32) -> u32 {
    (1..5).fold(bits, |all, part| join(all, bits >> (7 * part))) & 0x7f
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Element, TagLayout};
    use proptest::prelude::*;

    fn ignore() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), any::<u64>(), Just(u64::MAX), (0..64_u32).prop_map(|bit| 1 << bit)]
    }

    fn source() -> impl Strategy<Value = Source> {
        prop_oneof![(0..u32::MAX).prop_map(Source::new), Just(Source::ANY)]
    }

    proptest! {
        #[test]
        fn what_matches_agrees(
            bits in any::<u64>(), noise in any::<u64>(), ignores in (ignore(), ignore()),
            sources in (source(), source()),
        ) {
            // The key differs from the element at most where one of them ignores.
            let other = bits ^ noise & (ignores.0 | ignores.1);
            let of = match sources {
                (Source::ANY, _) | (_, Source::ANY) => sources.1,
                _ => sources.0,
            };
            let element = Element { bits, ignore: ignores.0, source: sources.0, token: 0 };
            let key = Key { bits: other, ignore: ignores.1, source: of };
            prop_assert!(element.matches(&key));
            for layout in TagLayout::ALL {
                let fields = layout.fields();
                let own = Key { bits, ignore: ignores.0, source: sources.0 };
                let (a, b) = (Print::new(&fields, &own), Print::new(&fields, &key));
                prop_assert_eq!((a.value ^ b.value) & !(a.ignore | b.ignore), 0);
                prop_assert_eq!((a.value & LIVE, a.ignore & LIVE), (LIVE, 0));
            }
        }
    }
}
