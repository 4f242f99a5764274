// SPDX-License-Identifier: BSD-2-Clause
//! Types of parameters. A value is parsed from a text that the parameter's
//! [`Values`](super::Values) allow.

use std::convert::Infallible;
use std::num::ParseFloatError;
use std::str::FromStr;

use strum::{EnumString, VariantNames};

/// A switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString)]
pub enum Switch {
    /// `off` or `no`.
    #[strum(serialize = "off", serialize = "no")]
    Off,
    /// `on`, `yes`, or `auto`. The value `auto` takes effect only where that is possible
    /// (`FI_TCAM_KERNEL_COPY`).
    #[strum(serialize = "on", serialize = "yes", serialize = "auto")]
    On,
}

impl Switch {
    /// Returns true if the switch is on.
    #[must_use]
    pub fn is_on(self) -> bool {
        self == Self::On
    }
}

/// Handling of a posted receive that finds no free entry within `FI_TCAM_FLOW_TIMEOUT`
/// (`FI_TCAM_EXHAUSTED`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Exhausted {
    /// The receive goes to the host engine.
    Spill,
    /// The receive fails with `FI_ENOSPC`.
    Fail,
    /// The unexpected messages of the endpoint move to the host, and the receive takes an entry.
    /// Without such messages it fails immediately.
    Onload,
}

/// Requirements for memory registration (`FI_TCAM_MR`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum MrMode {
    /// No requirement: offsets as addresses, and keys of the application.
    Scalable,
    /// Virtual addresses, allocated memory, and keys of the provider.
    Basic,
    /// Allocated memory, in regions that are bound to an endpoint and enabled.
    Endpoint,
}

/// Owner of the table entries (`FI_TCAM_POOL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum PoolOwner {
    /// Each endpoint has separate entries.
    Endpoint,
    /// All endpoints of this user on this host share a pool.
    Node,
}

/// Transport to peers of other hosts (`FI_TCAM_NET`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Net {
    /// TCP if the launcher says that the job has more than one host, else none.
    Auto,
    /// No transport.
    Off,
    /// A TCP connection to each peer.
    Tcp,
}

/// The moment at which a message arrives at the device (`FI_TCAM_ARRIVAL`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum Arrival {
    /// As [`Self::Nic`] while counts are taken, and otherwise as [`Self::Poll`].
    Auto,
    /// Before each operation on the device that follows the message, as at a NIC.
    Nic,
    /// At the next poll of the program.
    Poll,
}

/// Behaviour of a poll that finds nothing (`FI_TCAM_IDLE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum IdlePolicy {
    /// Yields the core if there are more polling threads than cores, or if other threads use the
    /// core.
    Auto,
    /// Never yields the core.
    Spin,
    /// Always yields the core.
    Yield,
}

/// A value, or `auto`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Auto<T> {
    /// The provider chooses the value.
    Auto,
    /// This value.
    Set(T),
}

impl<T: FromStr> FromStr for Auto<T> {
    type Err = T::Err;

    fn from_str(text: &str) -> Result<Self, T::Err> {
        if text == "auto" { Ok(Self::Auto) } else { text.parse().map(Self::Set) }
    }
}

/// A set of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words(String);

impl Words {
    /// Returns true if the set contains a word.
    #[must_use]
    pub fn has(&self, word: &str) -> bool {
        self.0.split(',').any(|one| one == word)
    }

    /// Returns true if the set has no word.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0 == super::values::NONE
    }
}

impl FromStr for Words {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(Self(text.to_owned()))
    }
}

/// A decimal in thousandths, such as picoseconds for a value in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thousandths(pub u64);

impl FromStr for Thousandths {
    type Err = ParseFloatError;

    fn from_str(text: &str) -> Result<Self, ParseFloatError> {
        let value: f64 = text.parse()?;
        Ok(Self((value * 1000.0).round() as u64))
    }
}
