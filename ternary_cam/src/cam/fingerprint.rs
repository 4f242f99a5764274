// SPDX-License-Identifier: BSD-2-Clause
//! Computes fingerprints: 16 bits that represent the 96 bits of match bits and source. If an entry
//! and a key match, their fingerprints agree in the bits that both compare.
//!
//! Bits 0 to 14 of the fingerprint are each the XOR of some match bits; bits 11 to 15 also contain
//! a hash of the source. A bit is compared only if everything that it contains is compared. Match
//! bits that MPIs ignore together are combined, so that a wildcard excludes few bits of the
//! fingerprint.
//!
//! ```text
//! match bits    63 .. 48   47 .. 32    31 .. 19    18 .. 0
//!                              |                      |
//!                              v                      v
//! fingerprint        15     14 .. 11               10 .. 0
//!                    ^         ^
//!                    +---------+---- a hash of the source
//! ```
//! In all MPIs, bits 0 to 18 belong to the tag. Bits 32 to 47 belong to the communicator or, if the
//! match bits contain it, to the source. Protocol bits that all receives ignore are elsewhere,
//! except bit 32 of Open MPI. So an any-tag receive is distinguished by source and communicator,
//! and an any-source receive by its tag.

use crate::entry::Source;
use crate::wildcards::GOLDEN_RATIO;

/// Match bits that contain a tag.
const TAG: u64 = (1 << 19) - 1;
/// Number of bits of the fingerprint for the tag.
const TAG_BITS: u32 = 11;
/// Bits of the fingerprint for the tag.
const OF_TAG: u64 = (1 << TAG_BITS) - 1;
/// Number of bits of the fingerprint for the source.
const SOURCE_BITS: u32 = u16::BITS - TAG_BITS;

/// Returns the fingerprint of match bits and a source.
#[inline(always)]
pub(super) const fn of(bits: u64, source: Source) -> u16 {
    let tag = bits & TAG;
    let mut rest = bits >> 32 & 0xffff;
    rest ^= rest >> 8;
    rest ^= rest >> 4;
    let hash = (source.0 as u64).wrapping_mul(GOLDEN_RATIO) >> (u64::BITS - SOURCE_BITS);
    ((tag ^ tag >> TAG_BITS) & OF_TAG | (rest & 0xf ^ hash) << TAG_BITS) as u16
}

/// Returns the bits of a fingerprint that are compared if these match bits are ignored. If `source`
/// is [`Source::ANY`], the source is ignored as well.
#[inline(always)]
pub(super) const fn care(ignore: u64, source: Source) -> u16 {
    let of_source = if source.is_any() { OF_TAG as u16 } else { u16::MAX };
    if ignore == 0 {
        return of_source;
    }
    let tag = ignore & TAG;
    let mut rest = ignore >> 32 & 0xffff;
    rest |= rest >> 8;
    rest |= rest >> 4;
    let ignored = (tag | tag >> TAG_BITS) & OF_TAG | (rest & 0xf) << TAG_BITS;
    of_source & !(ignored as u16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{Entry, Key};
    use proptest::prelude::*;

    fn ignore() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0), any::<u64>(), Just(u64::MAX), (0..64_u32).prop_map(|bit| 1 << bit)]
    }

    fn source() -> impl Strategy<Value = Source> {
        prop_oneof![(0..u32::MAX).prop_map(Source), Just(Source::ANY)]
    }

    proptest! {
        #[test]
        fn matching_patterns_agree(
            bits in any::<u64>(), noise in any::<u64>(), ignores in (ignore(), ignore()),
            sources in (source(), source()),
        ) {
            let other = bits ^ noise & (ignores.0 | ignores.1);
            let of_key = if sources.0.is_any() { sources.1 } else { sources.0 };
            for source in [of_key, Source::ANY] {
                let entry = Entry { bits, ignore: ignores.0, source: sources.0, token: 0 };
                let key = Key { bits: other, ignore: ignores.1, source };
                prop_assert!(entry.matches(&key));
                let care = care(ignores.0, sources.0) & care(ignores.1, source);
                prop_assert_eq!((of(bits, sources.0) ^ of(other, source)) & care, 0);
            }
        }
    }

    #[test]
    fn wildcards_of_an_mpi_leave_something_to_compare() {
        let named = Source(3);
        assert_eq!(care(0, named), u16::MAX);
        assert_eq!(care(0, Source::ANY), 0x07ff, "any source is distinguished by the tag");
        assert_eq!(care(0x7fff_ffff, named), 0xf800, "any tag by source and communicator");
        assert_eq!(care(0xf << 60, named), u16::MAX, "the protocol of one costs nothing");
        assert_eq!(care(1 << 32, named), 0xf7ff, "that of another costs a bit");
    }
}
