// SPDX-License-Identifier: BSD-2-Clause
//! Fingerprints: 16 bits for the tag and communicator of a pattern and 16 for its source. A pattern
//! is the match bits, ignore bits and source of an element or a search. If two patterns match,
//! their fingerprints agree in each part that neither ignores.
//!
//! If a pattern ignores any bit of tag or communicator, its fingerprint ignores the whole tag part.
//! So an any-source pattern is distinguished by its tag, and an any-tag pattern by its source.
//! A fingerprint does not contain the protocol bits of the layout, which every receive ignores.

use crate::{Key, Source, traffic::Fields};

/// Fingerprint of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fingerprint {
    pub(super) tag: u16,
    pub(super) source: u16,
    /// All bits set if the part is not compared, else 0.
    pub(super) any_tag: u64,
    pub(super) any_source: u64,
}

impl Fingerprint {
    #[inline(always)]
    pub(super) fn new(fields: &Fields, key: &Key) -> Self {
        let identity_bits = fields.identity_bits;
        // Multiples of the golden ratio differ most in their highest bits.
        let tag = (key.bits & identity_bits).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let source = fields.source(key);
        Self {
            tag: (tag >> (u64::BITS - u16::BITS)) as u16,
            // Sources are numbered from zero: the lowest bits distinguish most of them.
            source: source.get().unwrap_or(u32::MAX) as u16,
            any_tag: u64::from(key.ignore & identity_bits != 0).wrapping_neg(),
            any_source: u64::from(source == Source::ANY).wrapping_neg(),
        }
    }
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
        fn matching_patterns_agree(
            bits in any::<u64>(), noise in any::<u64>(), ignores in (ignore(), ignore()),
            sources in (source(), source()),
        ) {
            // The key differs from the element only in bits that one of them ignores.
            let other = bits ^ noise & (ignores.0 | ignores.1);
            let of = match sources {
                (Source::ANY, _) | (_, Source::ANY) => sources.1,
                _ => sources.0,
            };
            let element = Element { bits, ignore: ignores.0, source: sources.0, token: 0 };
            let key = Key { bits: other, ignore: ignores.1, source: of };
            prop_assert!(element.matches(&key));
            for &layout in TagLayout::ALL {
                let fields = layout.fields();
                let own = Key { bits, ignore: ignores.0, source: sources.0 };
                let (a, b) = (Fingerprint::new(&fields, &own), Fingerprint::new(&fields, &key));
                prop_assert!(a.tag == b.tag || a.any_tag | b.any_tag == u64::MAX);
                prop_assert!(a.source == b.source || a.any_source | b.any_source == u64::MAX);
            }
        }
    }
}
