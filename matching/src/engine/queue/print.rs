// SPDX-License-Identifier: BSD-2-Clause
//! Fingerprints: 16 bits for the tag and communicator of what is matched and 16 for its
//! source, such that whatever matches agrees in those that neither ignores.
//!
//! A pattern that ignores a part of what the first is a hash of ignores all of it: one from
//! any source is told apart by its tag, one with any tag by its source. What the
//! layout has besides (protocol bits, which every receive ignores) is left out.

use crate::{Key, Source, traffic::Fields};

/// Fingerprint of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) tag: u16,
    pub(super) source: u16,
    /// All bits or none: it is not compared.
    pub(super) any_tag: u64,
    pub(super) any_source: u64,
}

impl Print {
    #[inline(always)]
    pub(super) fn new(fields: &Fields, key: &Key) -> Self {
        let told_by = fields.tag_and_communicator();
        // Multiples of the golden ratio lie far apart in their highest bits.
        let tag = (key.bits & told_by).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let source = fields.source(key);
        Self {
            tag: (tag >> (u64::BITS - u16::BITS)) as u16,
            // Sources are numbered from zero: the lowest bits tell most of them apart.
            source: source.get().unwrap_or(u32::MAX) as u16,
            any_tag: u64::from(key.ignore & told_by != 0).wrapping_neg(),
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
            for &layout in TagLayout::ALL {
                let fields = layout.fields();
                let own = Key { bits, ignore: ignores.0, source: sources.0 };
                let (a, b) = (Print::new(&fields, &own), Print::new(&fields, &key));
                prop_assert!(a.tag == b.tag || a.any_tag | b.any_tag == u64::MAX);
                prop_assert!(a.source == b.source || a.any_source | b.any_source == u64::MAX);
            }
        }
    }
}
