// SPDX-License-Identifier: BSD-2-Clause
//! What happens when a table is full.

use strum::{Display, EnumString, VariantArray, VariantNames};

/// What happens when the table is full (`FI_TCAM_OVERFLOW`), because NICs differ.
#[derive(Display, EnumString, VariantArray, VariantNames)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownOverflow, parse_err_fn = unknown)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The element goes to the host; the oldest host element is promoted when a
    /// slot frees.
    #[default]
    Spill,
    /// The table holds a bounded prefix: nothing enters it while the host holds
    /// any element, and nothing is promoted (ConnectX).
    Prefix,
    /// Once an element finds it full, everything new goes to the host for good (CXI's hybrid
    /// mode); what is in the table stays there until it is matched, or goes along ([`Leave::takes_along`]).
    Sticky,
    /// Who brings an element is held back until a slot frees (CXI's hardware mode):
    /// a receive is not posted ([`crate::Offload::has_room`]), the sender of a message waits
    /// ([`crate::Offload::holds_back`]). What is inserted all the same spills.
    FlowControl,
}

impl Overflow {
    /// Every model.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Their names.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Whether what waits on the host enters the table when a slot frees.
    pub(crate) const fn promotes(self) -> bool {
        matches!(self, Self::Spill | Self::FlowControl)
    }
}

/// How a queue leaves its table for good ([`Overflow::Sticky`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leave {
    /// What is in the table goes to the host first, as CXI onloads unexpected headers.
    pub takes_along: bool,
    /// With more elements than this in the queue, before the table is full
    /// (`FI_TCAM_PREEMPTIVE=posted-recv,unexpected-msg`).
    pub above: Option<usize>,
    /// With more than half of the pool's entries taken (`FI_TCAM_PREEMPTIVE=pool`).
    pub half_pool: bool,
}

/// Not the name of an [`Overflow`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no overflow model: there are {all}", all = Overflow::NAMES.join(", "))]
pub struct UnknownOverflow(String);

fn unknown(name: &str) -> UnknownOverflow {
    UnknownOverflow(name.to_owned())
}
