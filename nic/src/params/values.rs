// SPDX-License-Identifier: BSD-2-Clause
//! The description of a parameter and of its allowed values.

use matching::timing::EntryCost;

use crate::polling::Polling;

/// The allowed values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// A whole number in this range, both ends included.
    Number(u64, u64),
    /// A number in this range, both ends included, with or without decimals.
    Decimal(u32, u32),
    /// A cost per entry: [`EntryCost`].
    EntryCost,
    /// A polling policy: [`Polling`].
    Polling,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Several of these words, separated by commas, or `none`.
    Set(&'static [&'static str]),
    /// Any text.
    Text,
    /// A path in which `%r`, `%p` and `%h` are replaced.
    Pattern,
}

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Name without the prefix, in lower case as libfabric defines it: `prq_entries`.
    pub name: &'static str,
    /// Allowed values.
    pub values: Values,
    /// Value if the parameter is not set.
    pub default: &'static str,
    /// Text for `fi_info -e` and the man page, which add the allowed values and the default.
    pub help: &'static str,
}

/// The empty [`Values::Set`].
pub(super) const NONE: &str = "none";

impl Values {
    /// Describes the allowed values.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Number(low, high) => format!("a whole number from {low} to {high}"),
            Self::Decimal(low, high) => format!("a number from {low} to {high}"),
            Self::EntryCost => EntryCost::ALLOWED.to_owned(),
            Self::Polling => Polling::ALLOWED.to_owned(),
            Self::Words(words) => words.join(", "),
            Self::Set(words) => format!("{NONE}, or one or more of {}", words.join(",")),
            Self::Text => "any text".to_owned(),
            Self::Pattern => {
                "a path with %r (rank), %p (process id), %h (host), %% for %".to_owned()
            }
        }
    }

    pub(super) fn allows(&self, value: &str) -> bool {
        match self {
            Self::Number(low, high) => {
                let is_in = |number| (*low..=*high).contains(&number);
                !value.starts_with('+') && value.parse::<u64>().is_ok_and(is_in)
            }
            Self::Decimal(low, high) => value
                .parse::<f64>()
                .is_ok_and(|number| (f64::from(*low)..=f64::from(*high)).contains(&number)),
            Self::EntryCost => value.parse::<EntryCost>().is_ok(),
            Self::Polling => value.parse::<Polling>().is_ok(),
            Self::Words(words) => words.contains(&value),
            Self::Set(words) => value == NONE || value.split(',').all(|word| words.contains(&word)),
            Self::Text => true,
            Self::Pattern => {
                let mut rest = value;
                while let Some((_, behind)) = rest.split_once('%') {
                    match behind.strip_prefix(['r', 'p', 'h', '%']) {
                        Some(behind) => rest = behind,
                        None => return false,
                    }
                }
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_values_has_its_limits() {
        let cases: [(Values, &[&str], &[&str]); 5] = [
            (Values::Number(2, 5), &["2", "5", "03"], &["1", "6", "+3", "3.0", "", "x"]),
            (Values::Decimal(1, 2), &["1", "2", "1.5"], &["0.99", "2.01", "NaN", ""]),
            (Values::Words(&["on", "off"]), &["on", "off"], &["On", "on,off", ""]),
            (
                Values::Set(&["a", "b"]),
                &["none", "a", "b,a", "a,a"],
                &["none,a", "a,", "a,c", "", "c"],
            ),
            (Values::Text, &["", "any thing"], &[]),
        ];
        for (values, allowed, refused) in cases {
            for value in allowed {
                assert!(values.allows(value), "{value}: {}", values.describe());
            }
            for value in refused {
                assert!(!values.allows(value), "{value}: {}", values.describe());
            }
        }
    }
}
