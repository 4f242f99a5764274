// SPDX-License-Identifier: BSD-2-Clause
//! What happens when a table is full.

/// What happens when the table is full (`FI_TCAM_OVERFLOW`), because NICs differ.
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
    pub const ALL: [Self; 4] = [Self::Spill, Self::Prefix, Self::Sticky, Self::FlowControl];

    /// Name, as in `FI_TCAM_OVERFLOW`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spill => "spill",
            Self::Prefix => "prefix",
            Self::Sticky => "sticky",
            Self::FlowControl => "flow-control",
        }
    }

    /// Whether what waits on the host enters the table when a slot frees.
    pub(crate) const fn promotes(self) -> bool {
        matches!(self, Self::Spill | Self::FlowControl)
    }
}

impl std::fmt::Display for Overflow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
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
#[error("`{0}` is no overflow model: there are {all}", all = Overflow::ALL.map(Overflow::name).join(", "))]
pub struct UnknownOverflow(String);

impl std::str::FromStr for Overflow {
    type Err = UnknownOverflow;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|overflow| overflow.name() == name);
        found.ok_or_else(|| UnknownOverflow(name.to_owned()))
    }
}
