// SPDX-License-Identifier: BSD-2-Clause
//! Defines the channels that `tcam tune` compares, and the settings for a threshold between two
//! channels. A channel is a way in which the provider sends a message, such as the kernel copy.

use std::ops::RangeInclusive;

use serde::Serialize;

use super::curves::{Crossing, Measure};
use crate::text::whole;

/// Longest message that fits a slot of the ring, in bytes. It is sent there whatever the settings.
const IN_A_SLOT: usize = 208;
/// Longest message that an MPI may inject, in bytes. It is sent at once whatever the settings.
const INJECTED: usize = 4096;

/// A channel, and the settings that force it.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) name: &'static str,
    /// Describes how a message is sent, for the middle of a sentence.
    how: &'static str,
    pub(super) forced: &'static [(&'static str, &'static str)],
}

/// Two channels with a threshold between them.
#[derive(Debug)]
pub(super) struct Pair {
    /// The channel for short messages, and the one for long messages.
    pub(super) channels: [Channel; 2],
    /// Name of the parameter that sets the longest message for the first channel.
    pub(super) parameter: &'static str,
    /// Largest value of the parameter.
    most: usize,
    /// Message sizes in bytes at which the settings make a difference.
    pub(super) differ: RangeInclusive<usize>,
    /// Setting that turns the second channel off.
    off: Option<(&'static str, &'static str)>,
}

/// The channels between processes of one host.
pub(super) const ONE_HOST: Pair = Pair {
    channels: [
        Channel {
            name: "shared buffers",
            how: "through shared buffers",
            forced: &[("kernel_copy", "off"), ("eager_size", "16384")],
        },
        Channel {
            name: "kernel copy",
            how: "by kernel copy",
            forced: &[("kernel_copy", "auto"), ("eager_size", "0")],
        },
    ],
    parameter: "eager_size",
    most: 16_384,
    differ: IN_A_SLOT + 1..=usize::MAX,
    off: Some(KERNEL_COPY_OFF),
};

/// The channels between hosts.
pub(super) const NETWORK: Pair = Pair {
    channels: [
        Channel {
            name: "network at once",
            how: "over the network at once",
            forced: &[("net_eager_size", "65536")],
        },
        Channel {
            name: "network asked for",
            how: "over the network when asked for",
            forced: &[("net_eager_size", "0")],
        },
    ],
    parameter: "net_eager_size",
    most: 65_536,
    differ: INJECTED + 1..=65_536,
    off: None,
};

/// Setting that turns kernel copy off. It is also written if the kernel does not permit the copy,
/// because each attempt would then fail.
pub(super) const KERNEL_COPY_OFF: (&str, &str) = ("kernel_copy", "off");

/// Every parameter that tune sets.
pub(super) const PARAMETERS: [&str; 3] = ["eager_size", "kernel_copy", "net_eager_size"];

/// The threshold that one measure gives.
#[derive(Debug, Serialize)]
pub(super) struct Threshold {
    pub(super) measure: Measure,
    pub(super) crossing: Crossing,
    /// Settings for this threshold; empty if the defaults are kept.
    pub(super) settings: Vec<(&'static str, String)>,
}

impl Pair {
    /// Returns the settings for a crossing.
    pub(super) fn threshold(&self, measure: Measure, crossing: Crossing) -> Threshold {
        let settings = match crossing {
            Crossing::At { after, .. } => {
                let longest = after.unwrap_or(0).min(self.most);
                vec![(self.parameter, longest.to_string())]
            }
            Crossing::Never => {
                let off = self.off.map(|(name, value)| (name, value.to_owned()));
                off.into_iter().chain([(self.parameter, self.most.to_string())]).collect()
            }
            Crossing::Alternates | Crossing::Same | Crossing::Unknown => Vec::new(),
        };
        Threshold { measure, crossing, settings }
    }

    /// Returns the threshold as a sentence.
    pub(super) fn sentence(&self, threshold: &Threshold) -> String {
        let [short, long] = &self.channels;
        let set: Vec<_> =
            threshold.settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
        let (set, kept) = (set.join(", "), format!("the default of {} is kept", self.parameter));
        let found = match threshold.crossing {
            Crossing::At { after, from } => {
                let most = match after.is_some_and(|after| after > self.most) {
                    true => ", the most that it may be",
                    false => "",
                };
                format!("better {} from {} bytes on: {set}{most}", long.how, whole(from as u64))
            }
            Crossing::Never => format!("better {} wherever they differ: {set}", short.how),
            Crossing::Alternates => {
                format!("each is better at some sizes, neither stays so: {kept}")
            }
            Crossing::Same => format!("the difference is within the spread: {kept}"),
            Crossing::Unknown => format!("no size was measured of both: {kept}"),
        };
        format!("by {}: {found}", threshold.measure.name())
    }
}

#[cfg(test)]
mod tests {
    use nic::params::{PARAMS, Params, Values};

    use super::*;

    fn sentence(pair: &Pair, crossing: Crossing) -> String {
        pair.sentence(&pair.threshold(Measure::Latency, crossing))
    }

    #[test]
    fn settings_are_within_the_limits_of_parameters() {
        for pair in [&ONE_HOST, &NETWORK] {
            let param = PARAMS.iter().find(|param| param.name == pair.parameter).unwrap();
            assert_eq!(param.values, Values::Number(0, pair.most as u64));
            for channel in &pair.channels {
                let value = |name: &str| channel.forced.iter().find(|(key, _)| *key == name);
                let set = |name: &str| value(name).map(|(_, value)| (*value).to_owned());
                Params::from_lookup(set).unwrap();
                assert!(channel.forced.iter().all(|(name, _)| PARAMETERS.contains(name)));
            }
        }
    }

    #[test]
    fn sentences_have_the_settings_and_the_reason() {
        let at = |after, from| Crossing::At { after, from };
        for (crossing, expected) in [
            (
                at(Some(4096), 6144),
                "by latency: better by kernel copy from 6,144 bytes on: eager_size = 4096",
            ),
            (
                at(Some(32768), 65536),
                "by latency: better by kernel copy from 65,536 bytes on: eager_size = 16384, the most \
                 that it may be",
            ),
            (at(None, 256), "by latency: better by kernel copy from 256 bytes on: eager_size = 0"),
            (
                Crossing::Never,
                "by latency: better through shared buffers wherever they differ: kernel_copy = off, eager_size = 16384",
            ),
        ] {
            assert_eq!(sentence(&ONE_HOST, crossing), expected);
        }
        for kept in [Crossing::Same, Crossing::Alternates, Crossing::Unknown] {
            assert!(sentence(&NETWORK, kept).ends_with("the default of net_eager_size is kept"));
        }
        assert!(sentence(&NETWORK, Crossing::Never).ends_with("differ: net_eager_size = 65536"));
    }
}
