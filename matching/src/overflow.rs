// SPDX-License-Identifier: BSD-2-Clause
//! Overflow models: the behaviour of a full table.

use strum::{Display, EnumString, VariantArray, VariantNames};

/// The behaviour of a full table (`FI_TCAM_OVERFLOW`), which differs among NICs.
#[derive(Display, EnumString, VariantArray, VariantNames)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownOverflow, parse_err_fn = unknown)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// The element goes to the host. When an entry becomes free, the oldest host element is
    /// promoted.
    #[default]
    Spill,
    /// The table holds the oldest elements (ConnectX). While the host holds an element, no new
    /// element enters the table, and an entry that becomes free stays empty. Only
    /// [`crate::Offload::force`] moves elements from the host into the table.
    Prefix,
    /// After an element has found the table full, every new element goes to the host for good
    /// (CXI's hybrid mode). Elements in the table stay there until they match, or move to the host
    /// as well ([`Leave::takes_along`]).
    Sticky,
    /// The poster or sender of an element is held back until an entry becomes free (CXI's hardware
    /// mode): a receive is not posted ([`crate::Offload::check_room`]), and the sender of a message
    /// waits ([`crate::Offload::holds_back`]). An element that is inserted all the same spills.
    FlowControl,
}

impl Overflow {
    /// Every model.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Names of all models.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Returns true if an entry that becomes free goes to an element that waits on the host.
    pub(crate) const fn promotes(self) -> bool {
        matches!(self, Self::Spill | Self::FlowControl)
    }
}

/// When and how a queue leaves its table for good ([`Overflow::Sticky`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leave {
    /// When the queue leaves its table and no element is on the host, the elements of the table
    /// move to the host, as CXI onloads unexpected headers.
    pub takes_along: bool,
    /// Leave when an element is added to a queue of at least this many elements, even if the table
    /// is not full (`FI_TCAM_PREEMPTIVE=posted-recv,unexpected-msg`).
    pub above: Option<usize>,
    /// Leave when an element is added while more than half of the pool's entries are taken
    /// (`FI_TCAM_PREEMPTIVE=pool`).
    pub half_pool: bool,
}

/// A text that is not the name of an [`Overflow`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an overflow model: expected one of {all}", all = Overflow::NAMES.join(", "))]
pub struct UnknownOverflow(String);

fn unknown(name: &str) -> UnknownOverflow {
    UnknownOverflow(name.to_owned())
}
