// SPDX-License-Identifier: BSD-2-Clause
//! Decodes the match bits of MPI libraries: communicator, tag, source, and whether a message is
//! collective or point-to-point.
//!
//! A *pattern* is a [`Key`]: match bits, ignore bits and source of a receive, message or search.
//!
//! ```text
//!                        63                                              0
//! mpich                  | 8 | prot5 @51 | context20 @31 | tag31 @0      |
//! mpich-source-in-tag    | 1 | prot5 @58 | context16 @42 | source23 @19 | tag19 @0 |
//! intel-mpi              | 4 | source20 @40 | context20 @20 | tag20 @0  |
//! openmpi                | cid30 @34 | prot2 @32 | tag32 @0              |
//! openmpi-tag-1          | cid12 @52 | source18 @34 | prot2 @32 | tag32 @0 |
//! openmpi-tag-2          | cid24 @40 | source18 @22 | prot2 @20 | tag20 @0 |
//! ```
//!
//! MPICH and Intel MPI: a message is collective if bit 0 of the context id is set. Blocking
//! operations have fixed tags; nonblocking ones count up from 287 in each communicator. Open MPI: a
//! message is collective if the tag is negative. Blocking operations have fixed tags; nonblocking
//! ones count down from -27 (version 4.1) or -33 (version 5.0). The tags from -27 to -32 of version
//! 5.0 are taken for nonblocking as well.
//!
//! The bits are a hint: with a wrong layout, an engine is slower but still finds the oldest match.

mod fields;
mod kind;
mod operations;

use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

use crate::{Key, Source};
use fields::Field;
pub(crate) use fields::{FieldWildcards, Fields};
pub use kind::{CollectiveId, Traffic};
use operations::operation_name;

/// The layout of the MPI's match bits (`FI_TCAM_TAG_LAYOUT`).
#[derive(Display, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownLayout, parse_err_fn = unknown)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagLayout {
    /// MPICH with completion-queue data: the source is not in the bits.
    Mpich,
    /// MPICH without completion-queue data.
    MpichSourceInTag,
    /// Intel MPI 2021.
    IntelMpi,
    /// Open MPI, `ofi_tag_full`, which it uses if completion-queue data is available.
    #[strum(serialize = "openmpi")]
    OpenMpi,
    /// Open MPI, `ofi_tag_1`.
    #[strum(serialize = "openmpi-tag-1")]
    OpenMpiTag1,
    /// Open MPI, `ofi_tag_2`.
    #[strum(serialize = "openmpi-tag-2")]
    OpenMpiTag2,
    /// Unknown: everything is point-to-point.
    #[default]
    Opaque,
}

/// The match bits of a receive or message, decoded for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DecodedBits {
    /// Number of the communicator, 0 for `MPI_COMM_WORLD`; `None` if the layout does not contain it
    /// or the pattern leaves it open.
    pub communicator: Option<u32>,
    /// The tag; `None` for any tag, or if the layout does not contain it.
    pub tag: Option<i64>,
    /// Rank of the sender, if the layout contains it; `None` for any source.
    pub source: Option<u32>,
    /// The collective operation, if the message belongs to one.
    pub operation: Option<&'static str>,
}

impl TagLayout {
    /// Every layout.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Names of all layouts.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Name, as in `FI_TCAM_TAG_LAYOUT`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns true if all messages that a pattern can match are collective, as counters define it.
    #[must_use]
    pub fn is_collective(self, key: &Key) -> bool {
        Classifier::new(self).is_collective(key.bits, key.ignore)
    }

    /// Returns true if a pattern leaves the source open. If the layout contains the source, the
    /// ignore bits decide, and otherwise the source of the key.
    #[must_use]
    pub fn is_any_source(self, key: &Key) -> bool {
        self.fields().source(key) == Source::ANY
    }

    /// Returns true if a pattern leaves the tag or the communicator open, or a part of them. If the
    /// layout is unknown, any ignored bit counts.
    #[must_use]
    pub fn is_any_tag(self, key: &Key) -> bool {
        let identity_bits =
            if self == Self::Opaque { u64::MAX } else { self.fields().identity_bits };
        key.ignore & identity_bits != 0
    }

    /// The kind of traffic that a message with these match bits belongs to.
    #[must_use]
    pub fn kind(self, bits: u64) -> Traffic {
        self.fields().kind(bits)
    }

    /// Decodes a pattern for people. All fields are `None` if the layout is [`TagLayout::Opaque`].
    #[must_use]
    pub fn decode(self, key: &Key) -> DecodedBits {
        let fields = self.fields();
        if self == Self::Opaque {
            return DecodedBits { communicator: None, tag: None, source: None, operation: None };
        }
        // An any-tag receive of Open MPI does not ignore the sign of the tag, so that it matches
        // only tags of the application.
        let open = |field: Field| {
            let sign = if fields.negative { fields.collective } else { 0 };
            (key.ignore | sign) & field.mask == field.mask
        };
        let communicator = fields.communicator.extract(key.bits);
        // MPICH has a separate context, with bit 0 set, for the collective operations of a
        // communicator.
        let communicator = if fields.negative { communicator } else { communicator & !1 };
        let tag = fields.tag.extract(key.bits);
        let unused = (u64::from(u32::MAX) ^ fields.tag.extract(u64::MAX) as u64).count_ones();
        // The tag may have fewer bits than an int: this extends its sign.
        let tag = match fields.negative {
            true => i64::from((tag << unused).cast_signed() >> unused),
            false => i64::from(tag),
        };
        let operation = match fields.kind_of_all(key) {
            Some(Traffic::Collective(CollectiveId { operation, .. })) => {
                Some(operation_name(fields.negative, operation))
            }
            _ => None,
        };
        DecodedBits {
            communicator: (!open(fields.communicator)).then_some(communicator),
            tag: (!open(fields.tag)).then_some(tag),
            source: fields
                .source
                .filter(|field| !open(*field))
                .map(|field| field.extract(key.bits)),
            operation,
        }
    }

    pub(crate) fn fields(self) -> Fields {
        let field = Field::new;
        match self {
            Self::Mpich => Fields::mpich(field(31, 20), field(0, 31), None),
            Self::MpichSourceInTag => {
                Fields::mpich(field(42, 16), field(0, 19), Some(field(19, 23)))
            }
            Self::IntelMpi => Fields::mpich(field(20, 20), field(0, 20), Some(field(40, 20))),
            Self::OpenMpi => Fields::open_mpi(field(34, 30), field(0, 32), None),
            Self::OpenMpiTag1 => Fields::open_mpi(field(52, 12), field(0, 32), Some(field(34, 18))),
            Self::OpenMpiTag2 => Fields::open_mpi(field(40, 24), field(0, 20), Some(field(22, 18))),
            Self::Opaque => {
                Fields { collective: 0, ..Fields::mpich(field(32, 32), field(0, 32), None) }
            }
        }
    }
}

/// Distinguishes collective from point-to-point traffic in three instructions. The counters use
/// this.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Classifier {
    collective: u64,
}

impl Classifier {
    pub(crate) fn new(layout: TagLayout) -> Self {
        Self { collective: layout.fields().collective }
    }

    /// Returns true if all messages that a pattern with these bits can match are collective.
    #[inline]
    pub(crate) const fn is_collective(self, bits: u64, ignore: u64) -> bool {
        bits & !ignore & self.collective != 0
    }
}

/// A text that is not the name of a [`TagLayout`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tag layout: expected one of {all}", all = TagLayout::NAMES.join(", "))]
pub struct UnknownLayout(String);

fn unknown(name: &str) -> UnknownLayout {
    UnknownLayout(name.to_owned())
}

#[cfg(test)]
#[path = "traffic_tests.rs"]
mod captured;

#[cfg(test)]
mod tests {
    use super::*;

    const NONBLOCKING: u32 = CollectiveId::NONBLOCKING;

    fn collective(communicator: u32, operation: u32) -> Traffic {
        Traffic::Collective(CollectiveId { communicator, operation })
    }

    #[test]
    fn mpich() {
        // MPI_COMM_WORLD: context id 0 for messages, 1 for collectives.
        let kind = |bits| TagLayout::Mpich.kind(bits);
        assert_eq!(kind(0x0000_0000_0000_0063), Traffic::PointToPoint);
        assert_eq!(kind(0x0000_0000_8000_0002), collective(1, 2), "broadcast");
        assert_eq!(kind(0x0000_0000_8000_000e), collective(1, 14), "allreduce");
        assert_eq!(kind(0x0000_0000_8000_011f), collective(1, NONBLOCKING), "first nonblocking");
        // A duplicate has context id 8; bits 1 and 2 denote subcommunicators.
        assert_eq!(kind(0x0000_0004_0000_0007), Traffic::PointToPoint);
        assert_eq!(kind(0x0000_0004_8000_0007), collective(9, 7), "allgather");
        // Protocol bits (synchronous, rendezvous) have no effect.
        assert_eq!(kind(0x00c0_0000_8000_000e), collective(1, 14));
    }

    #[test]
    fn mpich_source_in_tag_and_intel_mpi() {
        let kind = |bits| TagLayout::MpichSourceInTag.kind(bits);
        assert_eq!(kind(5 << 19 | 7), Traffic::PointToPoint);
        assert_eq!(kind(1 << 42 | 5 << 19 | 3), collective(1, 3), "gather from rank 5");
        let kind = |bits| TagLayout::IntelMpi.kind(bits);
        assert_eq!(kind(5 << 40 | 7), Traffic::PointToPoint);
        assert_eq!(kind(5 << 40 | 1 << 20 | 14), collective(1, 14));
    }

    #[test]
    fn open_mpi() {
        let tag = |tag: i32| u64::from(tag.cast_unsigned());
        let kind = |bits| TagLayout::OpenMpi.kind(bits);
        assert_eq!(kind(3 << 34 | tag(7)), Traffic::PointToPoint);
        assert_eq!(kind(3 << 34 | tag(-12)), collective(3, 12), "allreduce");
        assert_eq!(kind(3 << 34 | 1 << 32 | tag(-19)), collective(3, 19), "synchronous");
        assert_eq!(kind(3 << 34 | tag(-27)), collective(3, NONBLOCKING));
        let kind = |bits| TagLayout::OpenMpiTag1.kind(bits);
        assert_eq!(kind(3 << 52 | 9 << 34 | tag(7)), Traffic::PointToPoint);
        assert_eq!(kind(3 << 52 | 9 << 34 | tag(-17)), collective(3, 17));
        let kind = |bits| TagLayout::OpenMpiTag2.kind(bits);
        assert_eq!(kind(3 << 40 | 9 << 22 | 7), Traffic::PointToPoint);
        assert_eq!(kind(3 << 40 | 9 << 22 | tag(-17) & 0xf_ffff), collective(3, 17));
    }

    #[test]
    fn opaque_bits_are_all_point_to_point() {
        for bits in [0, 1 << 31, u64::MAX] {
            assert_eq!(TagLayout::Opaque.kind(bits), Traffic::PointToPoint);
        }
    }

    #[test]
    fn ignore_bits_hide_what_they_cover() {
        let all = |layout: TagLayout, bits, ignore| {
            layout.fields().kind_of_all(&Key { bits, ignore, source: Source::ANY })
        };
        // The ignore bits of MPICH and Open MPI receives: directed, and with any tag.
        for ignore in [0x00c0_0000_0000_0000, 0x00c0_0000_7fff_ffff] {
            assert_eq!(all(TagLayout::Mpich, 7, ignore), Some(Traffic::PointToPoint));
        }
        for ignore in [1 << 32, 1 << 32 | 0x7fff_ffff] {
            assert_eq!(all(TagLayout::OpenMpi, 7, ignore), Some(Traffic::PointToPoint));
        }
        let broadcast = 0x8000_0002;
        assert_eq!(all(TagLayout::Mpich, broadcast, 0x00c0_0000_0000_0000), Some(collective(1, 2)));
        assert_eq!(all(TagLayout::Mpich, broadcast, 0x7fff_ffff), None, "which operation?");
        assert_eq!(all(TagLayout::Mpich, 7, 1 << 31), None, "collective?");
        assert_eq!(all(TagLayout::Opaque, 7, u64::MAX), Some(Traffic::PointToPoint));
    }

    #[test]
    fn the_source_is_taken_from_the_bits_if_they_contain_it() {
        let source = |layout: TagLayout, ignore| {
            let key = Key { bits: 5 << 19, ignore, source: Source::new(9) };
            layout.fields().source(&key)
        };
        assert_eq!(source(TagLayout::Mpich, 0), Source::new(9));
        assert_eq!(source(TagLayout::MpichSourceInTag, 0), Source::new(5));
        assert_eq!(source(TagLayout::MpichSourceInTag, 1 << 19), Source::ANY);
    }

    #[test]
    fn communicator_tag_and_operation_are_decoded() {
        let decode = |layout: TagLayout, bits, ignore| {
            layout.decode(&Key { bits, ignore, source: Source::ANY })
        };
        let decoded = decode(TagLayout::Mpich, 8 << 31 | 7, 0x00c0_0000_0000_0000);
        assert_eq!(
            (decoded.communicator, decoded.tag, decoded.operation),
            (Some(8), Some(7), None)
        );
        let decoded = decode(TagLayout::Mpich, 9 << 31 | 14, 0);
        assert_eq!((decoded.communicator, decoded.operation), (Some(8), Some("allreduce")));
        let decoded = decode(TagLayout::Mpich, 9 << 31 | 1, 0);
        assert_eq!(decoded.operation, Some("barrier"));
        let decoded = decode(TagLayout::Mpich, 1 << 31 | 400, 0);
        assert_eq!(decoded.operation, Some("nonblocking collective"));
        assert_eq!(decode(TagLayout::Mpich, 7, 0x7fff_ffff).tag, None);
        assert_eq!(decode(TagLayout::OpenMpi, 3 << 34, 1 << 32 | 0x7fff_ffff).tag, None);
        let decoded = decode(TagLayout::IntelMpi, 5 << 40 | 2 << 20 | 9, 0);
        assert_eq!(
            (decoded.communicator, decoded.tag, decoded.source),
            (Some(2), Some(9), Some(5))
        );
        let tag = |tag: i32| u64::from(tag.cast_unsigned());
        let decoded = decode(TagLayout::OpenMpi, 3 << 34 | tag(-16), 0);
        assert_eq!((decoded.communicator, decoded.tag), (Some(3), Some(-16)));
        assert_eq!(decoded.operation, Some("barrier"));
        assert_eq!(decode(TagLayout::OpenMpi, 3 << 34 | tag(9), 0).operation, None);
        let decoded = decode(TagLayout::OpenMpiTag2, 3 << 40 | 9 << 22 | tag(-17) & 0xf_ffff, 0);
        assert_eq!((decoded.tag, decoded.source), (Some(-17), Some(9)));
        assert_eq!(decoded.operation, Some("bcast"));
        let nothing = DecodedBits { communicator: None, tag: None, source: None, operation: None };
        assert_eq!(decode(TagLayout::Opaque, u64::MAX, 0), nothing);
    }

    #[test]
    fn names_are_parsed() {
        for &layout in TagLayout::ALL {
            assert_eq!(layout.name().parse(), Ok(layout));
        }
        let error = "mpi".parse::<TagLayout>().unwrap_err().to_string();
        assert!(error.starts_with("`mpi` is not a tag layout: expected one of mpich, "), "{error}");
    }
}
