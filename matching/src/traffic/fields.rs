// SPDX-License-Identifier: BSD-2-Clause
//! The fields of match bits.

use super::kind::{CollectiveId, Traffic};
use crate::{Key, Source};

/// A field of the match bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Field {
    shift: u32,
    pub(super) mask: u64,
}

impl Field {
    pub(super) const fn new(shift: u32, width: u32) -> Self {
        Self { shift, mask: (u64::MAX >> (u64::BITS - width)) << shift }
    }

    pub(super) const fn extract(self, bits: u64) -> u32 {
        ((bits & self.mask) >> self.shift) as u32
    }
}

/// The fields of the match bits in a layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    /// The bit that marks collective messages; 0 for an opaque layout.
    pub(super) collective: u64,
    pub(super) communicator: Field,
    pub(super) tag: Field,
    /// The bits of communicator and tag. Other bits do not distinguish elements of one source.
    pub(crate) identity_bits: u64,
    pub(super) source: Option<Field>,
    /// Whether collective tags are negative.
    pub(super) negative: bool,
    /// First tag, without its sign, of nonblocking operations.
    pub(super) nonblocking: u32,
}

/// Parts of the match bits that a receive may ignore, as [`Fields::wildcards`] returns them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldWildcards {
    /// The bits of communicator and tag; all bits if the layout is unknown.
    pub(crate) identity_bits: u64,
    /// The bits that an any-tag receive ignores.
    pub(crate) any_tag: u64,
    /// The bits of the source; 0 if the match bits do not contain it.
    pub(crate) any_source: u64,
}

/// First nonblocking tag of MPICH, after those of hcoll, which end at 286.
const MPICH_NONBLOCKING: u32 = 287;

/// First nonblocking tag of Open MPI 4.1, without its sign.
const OPEN_MPI_NONBLOCKING: u32 = 27;

impl Fields {
    pub(super) const fn mpich(communicator: Field, tag: Field, source: Option<Field>) -> Self {
        Self {
            collective: 1 << communicator.shift,
            communicator,
            tag,
            identity_bits: communicator.mask | tag.mask,
            source,
            negative: false,
            nonblocking: MPICH_NONBLOCKING,
        }
    }

    pub(super) const fn open_mpi(communicator: Field, tag: Field, source: Option<Field>) -> Self {
        Self {
            collective: 1 << tag.mask.ilog2(),
            negative: true,
            nonblocking: OPEN_MPI_NONBLOCKING,
            ..Self::mpich(communicator, tag, source)
        }
    }

    pub(super) const fn kind(&self, bits: u64) -> Traffic {
        if bits & self.collective == 0 {
            return Traffic::PointToPoint;
        }
        let tag = self.unsigned_tag(bits);
        Traffic::Collective(CollectiveId {
            communicator: self.communicator.extract(bits),
            operation: if tag >= self.nonblocking { CollectiveId::NONBLOCKING } else { tag },
        })
    }

    /// The tag without its sign. Each call of a nonblocking operation has a different tag.
    pub(crate) const fn unsigned_tag(&self, bits: u64) -> u32 {
        let tag = self.tag.extract(bits);
        if self.negative { tag.wrapping_neg() & self.tag.extract(u64::MAX) } else { tag }
    }

    /// The bits by which an MPI distinguishes messages, and those that any-tag and any-source
    /// receives ignore, as far as the layout is known.
    pub(crate) const fn wildcards(&self) -> FieldWildcards {
        let any_source = match self.source {
            Some(field) => field.mask,
            None => 0,
        };
        let sign = if self.negative { self.collective } else { 0 };
        let (identity_bits, any_tag) = match self.collective {
            0 => (u64::MAX, u64::MAX),
            _ => (self.identity_bits, self.tag.mask & !sign),
        };
        FieldWildcards { identity_bits, any_tag, any_source }
    }

    /// The kind of all messages that `key` can match; `None` if it can match several kinds. Two
    /// patterns that match each other and have a kind have the same kind.
    pub(crate) const fn kind_of_all(&self, key: &Key) -> Option<Traffic> {
        if key.ignore & self.collective != 0 {
            return None;
        }
        let kind = self.kind(key.bits);
        match kind {
            Traffic::Collective(_) if key.ignore & self.identity_bits != 0 => None,
            _ => Some(kind),
        }
    }

    /// The source by which engines split their queues: the rank in the bits if the layout contains
    /// it, else the peer.
    pub(crate) const fn source(&self, key: &Key) -> Source {
        match self.source {
            None => key.source,
            Some(field) if key.ignore & field.mask != 0 => Source::ANY,
            Some(field) => Source::new(field.extract(key.bits)),
        }
    }
}
