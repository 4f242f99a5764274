// SPDX-License-Identifier: BSD-2-Clause
//! Fingerprints: 32 bits for what is matched, such that whatever matches agrees in
//! the bits that neither ignores.
//!
//! ```text
//! 31..20        19..0
//! source (12) | tag and communicator (20)
//! ```
//!
//! Both fields are hashes, and a pattern that ignores a part of what is hashed ignores
//! the field: one from any source is told apart by its tag, one with any tag by its
//! source. What the layout has besides (protocol bits, which every receive ignores) is
//! left out.

use crate::{Key, Source, traffic::Fields};

const TAG_BITS: u32 = 20;
const TAG: u32 = (1 << TAG_BITS) - 1;
const SOURCE: u32 = !TAG;

/// Fingerprint of a pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Print {
    pub(super) value: u32,
    /// Bits that are not compared.
    pub(super) ignore: u32,
}

impl Print {
    #[inline(always)]
    pub(super) fn new(fields: &Fields, key: &Key) -> Self {
        let told_by = fields.tag_and_communicator();
        // Multiples of the golden ratio lie far apart in their highest bits.
        let tag = (key.bits & told_by).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut print = Self { value: (tag >> (u64::BITS - TAG_BITS)) as u32, ignore: 0 };
        if key.ignore & told_by != 0 {
            print.ignore = TAG;
        }
        match fields.source(key) {
            Source::ANY => print.ignore |= SOURCE,
            source => {
                let source = source.get().unwrap_or_default();
                print.value |= source.wrapping_mul(0x9e37_79b9) & SOURCE;
            }
        }
        print
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
            for layout in TagLayout::ALL {
                let fields = layout.fields();
                let own = Key { bits, ignore: ignores.0, source: sources.0 };
                let (a, b) = (Print::new(&fields, &own), Print::new(&fields, &key));
                prop_assert_eq!((a.value ^ b.value) & !(a.ignore | b.ignore), 0);
            }
        }
    }
}
