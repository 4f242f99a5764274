// SPDX-License-Identifier: BSD-2-Clause
//! The names by which the hash tables of `hash` and `newmadeleine` find a pattern. A pattern is the
//! match bits, ignore bits and source of an element or a search. Its class is the set of fields
//! that it leaves open, and its name consists of the other fields.
//!
//! ```text
//! class           name
//! (source, tag)   communicator, source, tag
//! (source, *)     communicator, source         a receive of any tag
//! (*, tag)        communicator, tag            a receive from any source
//! (*, *)          communicator                 a receive from any source and of any tag
//! ```
//!
//! Two patterns of one class that match each other have the same name. Patterns with the same name
//! need not match: they may differ in other bits, such as those of an MPI's protocol.

use crate::{Key, traffic::FieldWildcards, traffic::Fields};

/// Number of classes.
pub(super) const CLASSES: usize = 4;

/// The fields that a pattern leaves open: bit 0 the tag, bit 1 the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OpenFields(usize);

impl OpenFields {
    /// The class of patterns that leave no field open.
    pub(super) const EXACT: Self = Self(0);
    /// Every class.
    pub(super) const ALL: [Self; CLASSES] = [Self(0), Self(1), Self(2), Self(3)];

    pub(super) const fn index(self) -> usize {
        self.0
    }

    const fn any_tag(self) -> bool {
        self.0 & 1 != 0
    }

    const fn any_source(self) -> bool {
        self.0 & 2 != 0
    }
}

/// The name of a pattern in a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    bits: u64,
    source: u32,
}

impl Name {
    /// The hash of the name. Two multiplications suffice: if a peer chooses names that collide, a
    /// search is about as slow as in `list`.
    #[inline]
    pub(super) const fn hash(self) -> u32 {
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (self.bits ^ (self.source as u64) << 32).wrapping_mul(ODD);
        let mixed = (mixed ^ mixed >> 32 ^ self.source as u64).wrapping_mul(ODD);
        (mixed >> 32) as u32
    }
}

/// Determines classes and names from the match bits of a layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names(FieldWildcards);

impl Names {
    pub(super) const fn new(fields: &Fields) -> Self {
        Self(fields.wildcards())
    }

    /// The class of a pattern; `None` if it leaves a part of a field open, which no MPI receive
    /// does.
    #[inline]
    pub(super) const fn class(&self, key: &Key) -> Option<OpenFields> {
        let FieldWildcards { identity_bits, any_tag, any_source } = self.0;
        let tag = match key.ignore & identity_bits {
            0 => 0,
            ignored if ignored == any_tag => 1,
            _ => return None,
        };
        let source = match key.ignore & any_source {
            0 if any_source == 0 => key.source.get().is_none(),
            0 => false,
            ignored if ignored == any_source => true,
            _ => return None,
        };
        Some(OpenFields(tag | (source as usize) << 1))
    }

    /// The name of a pattern in `class`, which must leave open at least the fields that the pattern
    /// leaves open.
    #[inline]
    pub(super) fn name(&self, class: OpenFields, key: &Key) -> Name {
        let FieldWildcards { identity_bits, any_tag, any_source } = self.0;
        let tag = if class.any_tag() { any_tag } else { 0 };
        let source = if class.any_source() { 0 } else { any_source };
        let peer = if class.any_source() || any_source != 0 { None } else { key.source.get() };
        Name { bits: key.bits & (identity_bits & !tag | source), source: peer.unwrap_or(u32::MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, TagLayout};

    fn key(bits: u64, ignore: u64, source: Source) -> Key {
        Key { bits, ignore, source }
    }

    #[test]
    fn receives_of_every_mpi_have_a_class() {
        let any = Source::ANY;
        let one = Source::new(1);
        // Protocol bits, tag, and source in the match bits.
        for (layout, protocol, tag, source) in [
            (TagLayout::Mpich, 0xc0 << 48, 0x7fff_ffff, 0),
            (TagLayout::MpichSourceInTag, 0x3 << 62, 0x7_ffff, 0x7f_ffff << 19),
            (TagLayout::OpenMpi, 1 << 32, 0x7fff_ffff, 0),
            (TagLayout::OpenMpiTag1, 1 << 32, 0x7fff_ffff, 0x3_ffff << 34),
        ] {
            let names = Names::new(&layout.fields());
            let peer = if source == 0 { any } else { one };
            for (class, ignore, from) in [
                (0, protocol, one),
                (1, protocol | tag, one),
                (2, protocol | source, peer),
                (3, protocol | tag | source, peer),
            ] {
                assert_eq!(names.class(&key(7, ignore, from)), Some(OpenFields(class)), "{layout}");
            }
            assert_eq!(names.class(&key(7, 1, one)), None, "{layout}: half a tag");
        }
        let opaque = Names::new(&TagLayout::Opaque.fields());
        assert_eq!(opaque.class(&key(7, u64::MAX, one)), Some(OpenFields(1)));
        assert_eq!(opaque.class(&key(7, 0xff, one)), None);
    }

    #[test]
    fn matching_patterns_have_the_same_name_in_the_class_of_the_receive() {
        let names = Names::new(&TagLayout::OpenMpiTag1.fields());
        let (tag, source) = (0x7fff_ffff_u64, 0x3_ffff_u64 << 34);
        let arrival = key(3 << 52 | 9 << 34 | 1 << 32 | 5, 0, Source::new(2));
        for ignore in [0, tag, source, tag | source] {
            let receive = key(3 << 52 | 9 << 34 | 5, 1 << 32 | ignore, Source::ANY);
            let class = names.class(&receive).unwrap();
            assert_eq!(names.name(class, &arrival), names.name(class, &receive));
            let other = key(4 << 52 | 9 << 34 | 5, 0, Source::new(2));
            assert_ne!(names.name(class, &other), names.name(class, &receive), "communicator");
        }
    }

    #[test]
    fn names_spread_over_buckets() {
        let names = |source_step: u32, communicator: u64| {
            let grid = (0..64_u32).flat_map(|source| (0..64).map(move |tag| (source, tag)));
            grid.map(move |(source, tag)| Name {
                bits: communicator << 32 | tag,
                source: source * source_step,
            })
        };
        for (step, communicator) in [(1, 0), (1, 1), (64, 3), (1 << 16, 0xffff)] {
            let mut hashes: Vec<_> = names(step, communicator).map(Name::hash).collect();
            // A random hash has at most about 15 of the 4,096 names in one of 1,024 buckets.
            let mut buckets = vec![0; 1024];
            hashes.iter().for_each(|hash| buckets[*hash as usize % 1024] += 1);
            assert!(buckets.iter().all(|&names| names <= 24), "{:?}", buckets.iter().max());
            hashes.sort_unstable();
            hashes.dedup();
            assert!(hashes.len() > 4090, "{}", hashes.len());
        }
    }
}
