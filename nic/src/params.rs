// SPDX-License-Identifier: BSD-2-Clause
//! The `FI_TCAM_*` parameters: one table of names, values, defaults and help, read by the provider
//! (`fi_param_define`, `fi_getinfo`) and by the lab.

pub mod config;
mod list;
mod values;

pub use list::PARAMS;
pub use values::{Param, Values};

use std::collections::BTreeMap;

use matching::timing::EntryCost;

use crate::{models, polling::Polling, timings};

/// Prefix of every parameter in the environment.
pub const PREFIX: &str = "FI_TCAM_";

/// Parameters that reports and traces do not record: paths of files, whose contents are recorded,
/// and the secret.
const UNTOLD: [&str; 4] = ["report", "trace", "config", "job_key"];

/// Former names and those of today, without the prefix.
pub const RENAMED: [(&str, &str); 1] = [("QUEUE", "HOST_STORAGE")];

/// A parameter that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// The value is not allowed.
    #[error("{PREFIX}{name}={value}: allowed is {allowed}")]
    Value {
        /// Name in upper case, without the prefix.
        name: String,
        /// The value found.
        value: String,
        /// Description of the allowed values.
        allowed: String,
    },
    /// No parameter has this name.
    #[error("{PREFIX}{name} is no parameter of tcam; {hint}")]
    Name {
        /// Name in upper case, without the prefix.
        name: String,
        /// The name that it has now, or every name there is.
        hint: String,
    },
}

/// The parameters in force: the value of every parameter, set or default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    values: BTreeMap<&'static str, String>,
}

impl Param {
    /// The error for a value that is not allowed.
    fn refuses(&self, value: &str) -> ParamError {
        ParamError::Value {
            name: self.name.to_uppercase(),
            value: value.to_owned(),
            allowed: self.values.describe(),
        }
    }
}

impl Params {
    /// Reads each parameter with `lookup` (lower-case name, no prefix). If `lookup` returns `None`,
    /// the value is the one that the device or the timing preset sets, or the default.
    ///
    /// # Errors
    /// The first value that is not allowed, with the allowed range.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ParamError> {
        let mut values = BTreeMap::new();
        let device = lookup("device").unwrap_or_default();
        let timing = lookup("timing").unwrap_or_default();
        for param in PARAMS {
            let preset = models::preset(&device, param.name)
                .or_else(|| timings::preset(&timing, param.name))
                .unwrap_or(param.default);
            let value = lookup(param.name).unwrap_or_else(|| preset.to_owned());
            if !param.values.allows(&value) {
                return Err(param.refuses(&value));
            }
            values.insert(param.name, value);
        }
        let params = Self { values };
        if params.text("host_engine") == "kmeans" && params.text("clusters").is_empty() {
            return Err(ParamError::Value {
                name: "CLUSTERS".to_owned(),
                value: String::new(),
                allowed: format!(
                    "a file that `tcam cluster` wrote, which {PREFIX}HOST_ENGINE=kmeans needs"
                ),
            });
        }
        let of_engine = params.number("pool_entries") / params.number("pool_engines");
        if of_engine == 0 {
            return Err(ParamError::Value {
                name: "POOL_ENGINES".to_owned(),
                value: params.text("pool_engines").to_owned(),
                allowed: format!("at most {PREFIX}POOL_ENTRIES={}", params.text("pool_entries")),
            });
        }
        let max = params.number("pool_max").min(of_engine);
        if params.number("pool_reserved") > max {
            return Err(ParamError::Value {
                name: "POOL_RESERVED".to_owned(),
                value: params.text("pool_reserved").to_owned(),
                allowed: format!(
                    "at most {PREFIX}POOL_MAX={} of {PREFIX}POOL_ENTRIES={} divided by \
                     {PREFIX}POOL_ENGINES={}",
                    params.text("pool_max"),
                    params.text("pool_entries"),
                    params.text("pool_engines")
                ),
            });
        }
        Ok(params)
    }

    /// Refuses names with the `FI_TCAM_` prefix that are not parameters: a misspelt name would
    /// silently run another experiment.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn check_names(names: impl IntoIterator<Item = String>) -> Result<(), ParamError> {
        for name in names {
            let head = name.get(..PREFIX.len()).filter(|head| head.eq_ignore_ascii_case(PREFIX));
            let Some(bare) = head.map(|head| &name[head.len()..]) else { continue };
            // Names that are not in upper case, such as `FI_TCAM_Poll`, are never read.
            let is_read = name == name.to_uppercase();
            if !is_read || !PARAMS.iter().any(|param| param.name.eq_ignore_ascii_case(bare)) {
                return Err(Self::unknown(bare.to_owned()));
            }
        }
        Ok(())
    }

    /// The error for an unknown name (upper case, without the prefix).
    fn unknown(name: String) -> ParamError {
        let hint = match RENAMED.iter().find(|(old, _)| *old == name) {
            Some((_, new)) => format!("did you mean {PREFIX}{new}?"),
            None => {
                let known = PARAMS.iter().map(|param| param.name.to_uppercase());
                let known: Vec<_> = known.map(|name| format!("{PREFIX}{name}")).collect();
                format!("there are {}", known.join(", "))
            }
        };
        ParamError::Name { name, hint }
    }

    /// The value of a parameter, by its lower-case name.
    ///
    /// # Panics
    /// If there is no such parameter, which is a programming error.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        &self.values[name]
    }

    /// The value of a [`Values::Number`] parameter.
    ///
    /// # Panics
    /// If the parameter is not a number, which is a programming error.
    #[must_use]
    pub fn number(&self, name: &str) -> usize {
        self.text(name).parse().expect("checked when the parameters were read")
    }

    /// The value of a [`Values::Decimal`] parameter in thousandths, such as picoseconds for a value
    /// in nanoseconds.
    ///
    /// # Panics
    /// If the parameter is not a number, which is a programming error.
    #[must_use]
    pub fn thousandths(&self, name: &str) -> u64 {
        let value: f64 = self.text(name).parse().expect("checked when the parameters were read");
        (value * 1000.0).round() as u64
    }

    /// The value of a [`Values::EntryCost`] parameter.
    ///
    /// # Panics
    /// If the parameter is not an entry cost, which is a programming error.
    #[must_use]
    pub fn entry_cost(&self, name: &str) -> EntryCost {
        self.text(name).parse().expect("checked when the parameters were read")
    }

    /// How often the network is polled.
    ///
    /// # Panics
    /// Never: the value was checked when the parameters were read.
    #[must_use]
    pub fn polling(&self) -> Polling {
        self.text("poll").parse().expect("checked when the parameters were read")
    }

    /// Returns true if a [`Values::Set`] parameter contains a word.
    #[must_use]
    pub fn has(&self, name: &str, word: &str) -> bool {
        self.text(name).split(',').any(|one| one == word)
    }

    /// Names and values for reports and traces, without the paths and the secret, which do not
    /// affect an experiment.
    #[must_use]
    pub fn recorded(&self) -> BTreeMap<String, String> {
        let values = self.values.iter().filter(|(name, _)| !UNTOLD.contains(name));
        values.map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup<'a>(set: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn defaults_are_allowed() {
        let params = Params::from_lookup(lookup(&[])).unwrap();
        assert_eq!(params.number("prq_entries"), 4096);
        assert_eq!(params.text("overflow"), "spill");
    }

    #[test]
    fn a_wrong_value_is_named_with_its_range() {
        for wrong in ["65537", "-1", "many", ""] {
            let error = Params::from_lookup(lookup(&[("prq_entries", wrong)])).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("FI_TCAM_PRQ_ENTRIES={wrong}: allowed is a whole number from 0 to 65536")
            );
        }
        let error = Params::from_lookup(lookup(&[("kernel", "sse9")])).unwrap_err();
        assert_eq!(error.to_string(), "FI_TCAM_KERNEL=sse9: allowed is auto, avx512, avx2, scalar");
    }

    #[test]
    fn decimals_are_numbers() {
        let params = |value| Params::from_lookup(lookup(&[("table_ns", value)]));
        assert_eq!(params("35").unwrap().thousandths("table_ns"), 35_000);
        assert_eq!(params("0.25").unwrap().thousandths("table_ns"), 250);
        for wrong in ["-1", "NaN", "inf", "1e10", ""] {
            let error = params(wrong).unwrap_err().to_string();
            assert!(error.contains("a number from 0 to 1000000000"), "{error}");
        }
    }

    #[test]
    fn sets_and_shares_are_checked() {
        let params = |name, value| Params::from_lookup(lookup(&[(name, value)]));
        let both = params("refuse", "any-source,non-contiguous").unwrap();
        assert!(both.has("refuse", "any-source") && both.has("refuse", "non-contiguous"));
        assert!(!params("refuse", "none").unwrap().has("refuse", "any-source"));
        assert_eq!(
            params("refuse", "any-source,any").unwrap_err().to_string(),
            "FI_TCAM_REFUSE=any-source,any: allowed is none, or one or more of \
             any-source,any-tag,non-contiguous"
        );
        let error = params("pool_reserved", "5000").unwrap_err().to_string();
        assert!(error.contains("at most FI_TCAM_POOL_MAX=65536 of FI_TCAM_POOL_ENTRIES=4096"));
    }

    #[test]
    fn unknown_placeholders_in_a_pattern_are_refused() {
        let params = |value| Params::from_lookup(lookup(&[("report", value)]));
        for right in ["", "one", "%h/%r.%p", "50%%/%r", "%%%r%%"] {
            assert!(params(right).is_ok(), "{right}");
        }
        for wrong in ["%", "%z", "%%%", "%r%R"] {
            let error = params(wrong).unwrap_err().to_string();
            assert!(error.contains(wrong) && error.contains("%r (rank)"), "{error}");
        }
    }

    #[test]
    fn an_unknown_name_is_refused() {
        let names = ["PATH", "FI_TCAM_PRQ_ENTRIES"].map(str::to_owned);
        assert_eq!(Params::check_names(names), Ok(()));
        let error = Params::check_names(["FI_TCAM_PRQ_ENTRY".to_owned()]).unwrap_err();
        assert!(error.to_string().starts_with("FI_TCAM_PRQ_ENTRY is no parameter of tcam"));
        let error = Params::check_names(["FI_TCAM_QUEUE".to_owned()]).unwrap_err();
        assert!(error.to_string().ends_with("; did you mean FI_TCAM_HOST_STORAGE?"), "{error}");
    }

    #[test]
    fn names_that_are_never_read_are_refused() {
        let check = |name: &str| Params::check_names([name.to_owned()]);
        check("FI_TCAM_POLL").unwrap();
        check("FI_LOG_LEVEL").unwrap();
        for odd in ["FI_TCAM_Poll", "fi_tcam_poll", "FI_TCAM_", "Fi_Tcam_NET"] {
            assert!(check(odd).is_err(), "{odd}");
        }
        for (name, odd) in [("net", ""), ("net", "tcam"), ("net", "a b"), ("net_timeout", "+5")] {
            assert!(Params::from_lookup(lookup(&[(name, odd)])).is_err(), "{name}={odd}");
        }
    }
}
