// SPDX-License-Identifier: BSD-2-Clause
//! The `FI_TCAM_*` parameters: one table of names, values, defaults and help, read by the provider
//! (`fi_param_define`, `fi_getinfo`) and by the command `tcam`.

pub mod config;
mod list;
pub mod types;
mod values;

pub use list::{PARAMS, Params};
pub use values::{Param, Values};

use std::collections::BTreeMap;

use matching::HostEngine;

use self::types::Arrival;
use crate::{models, timings};

/// Prefix of every parameter in the environment.
pub const PREFIX: &str = "FI_TCAM_";

/// Parameters that reports and traces do not record: the paths of output and of the settings file,
/// and the secret. The values that the settings file sets are recorded.
const UNRECORDED: [&str; 4] = ["report", "trace", "config", "job_key"];

/// Pairs of a former name and the current name of a parameter, without the prefix.
const RENAMED: [(&str, &str); 1] = [("QUEUE", "HOST_STORAGE")];

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
    #[error("{name} is no parameter of tcam; {hint}")]
    Name {
        /// Name with the prefix, as found.
        name: String,
        /// Question with the current name, or a list of all names.
        hint: String,
    },
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
    /// Returns true if the operations on devices are counted or recorded.
    #[must_use]
    pub fn takes_counts(&self) -> bool {
        !self.report.is_empty() || self.summary.is_on() || !self.trace.is_empty()
    }

    /// Returns true if a message arrives at the device before each later operation, and not only
    /// when the program polls.
    #[must_use]
    pub fn has_arrival_of_nic(&self) -> bool {
        match self.arrival {
            Arrival::Auto => self.takes_counts(),
            Arrival::Nic => true,
            Arrival::Poll => false,
        }
    }

    /// Reads each parameter with `lookup` (lower-case name, no prefix). If `lookup` returns `None`,
    /// the value is the one that the device or the timing preset sets, or the default.
    ///
    /// # Errors
    /// The first value that is not allowed, with the allowed range.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, ParamError> {
        let mut texts = BTreeMap::new();
        let device = models::named(&lookup("device").unwrap_or_default());
        let timing = lookup("timing").unwrap_or_default();
        let timing = timings::TIMINGS.iter().find(|preset| preset.name == timing);
        for param in PARAMS {
            let sets = [device.map(|of| of.sets), timing.map(|of| of.sets)].into_iter().flatten();
            let mut values = sets.filter_map(|sets| models::value(sets, param.name));
            let preset = values.next().unwrap_or(param.default);
            texts.insert(param.name, lookup(param.name).unwrap_or_else(|| preset.to_owned()));
        }
        let params = Self::parse(texts)?;
        params.check_together()?;
        Ok(params)
    }

    /// Checks the parameters whose allowed values depend on others.
    fn check_together(&self) -> Result<(), ParamError> {
        let refuse = |name: &str, allowed: String| {
            let value = self.text(&name.to_lowercase()).to_owned();
            Err(ParamError::Value { name: name.to_owned(), value, allowed })
        };
        if self.host_engine == HostEngine::Kmeans && self.clusters.is_empty() {
            return refuse(
                "CLUSTERS",
                format!("a file that `tcam cluster` wrote, which {PREFIX}HOST_ENGINE=kmeans needs"),
            );
        }
        let Self { pool_entries, pool_engines, pool_max, .. } = self;
        let of_engine = pool_entries / pool_engines;
        if of_engine == 0 {
            return refuse("POOL_ENGINES", format!("at most {PREFIX}POOL_ENTRIES={pool_entries}"));
        }
        for (name, entries) in
            [("POOL_RESERVED", self.pool_reserved), ("POOL_BUFFERS", self.pool_buffers)]
        {
            if entries > of_engine.min(*pool_max) {
                return refuse(
                    name,
                    format!(
                        "at most {PREFIX}POOL_MAX={pool_max} of {PREFIX}POOL_ENTRIES={pool_entries} \
                         divided by {PREFIX}POOL_ENGINES={pool_engines}"
                    ),
                );
            }
        }
        Ok(())
    }

    /// Refuses names that begin with `FI_TCAM_`, in upper or lower case, but are not exactly the
    /// name of a parameter. A misspelt name would silently run another experiment.
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
                return Err(Self::unknown(name));
            }
        }
        Ok(())
    }

    /// The error for an unknown name, with the prefix.
    fn unknown(name: String) -> ParamError {
        let known = PARAMS.iter().map(|param| format!("{PREFIX}{}", param.name.to_uppercase()));
        let known: Vec<_> = known.collect();
        let renamed = RENAMED.iter().find(|(old, _)| name.strip_prefix(PREFIX) == Some(*old));
        let hint = match renamed {
            Some((_, new)) => format!("did you mean {PREFIX}{new}?"),
            None => match known.iter().find(|known| known.eq_ignore_ascii_case(&name)) {
                Some(upper) => format!("did you mean {upper}?"),
                None => format!("there are {}", known.join(", ")),
            },
        };
        ParamError::Name { name, hint }
    }

    /// The text of a parameter, by its lower-case name.
    ///
    /// # Panics
    /// If there is no such parameter, which is a programming error.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        &self.texts[name]
    }

    /// Names and values for reports and traces. Leaves out the paths of output and of the settings
    /// file, and the secret, which do not affect an experiment. The moment of arrival is the one in
    /// force, `nic` or `poll`.
    #[must_use]
    pub fn recorded(&self) -> BTreeMap<String, String> {
        let values = self.texts.iter().filter(|(name, _)| !UNRECORDED.contains(name));
        let mut all: BTreeMap<_, _> =
            values.map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let arrival = if self.has_arrival_of_nic() { "nic" } else { "poll" };
        all.insert("arrival".to_owned(), arrival.to_owned());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::types::Thousandths;
    use super::*;
    use matching::Overflow;

    fn lookup<'a>(set: &'a [(&str, &str)]) -> impl Fn(&str) -> Option<String> + 'a {
        |name| set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
    }

    #[test]
    fn messages_arrive_as_at_a_nic_if_anything_is_counted() {
        let of = |set| Params::from_lookup(lookup(set)).unwrap();
        for (set, counts, arrival) in [
            (&[][..], false, "poll"),
            (&[("report", "there")], true, "nic"),
            (&[("trace", "there")], true, "nic"),
            (&[("summary", "on")], true, "nic"),
            (&[("report", "there"), ("arrival", "poll")], true, "poll"),
            (&[("arrival", "nic")], false, "nic"),
        ] {
            let params = of(set);
            assert_eq!(params.takes_counts(), counts, "{set:?}");
            assert_eq!(params.has_arrival_of_nic(), arrival == "nic", "{set:?}");
            let recorded = params.recorded();
            assert_eq!(recorded["arrival"], arrival, "{set:?}");
            assert_eq!(recorded["prq_entries"], "4096");
            assert!(!recorded.contains_key("report"));
        }
    }

    #[test]
    fn the_help_explains_each_engine_and_storage() {
        for param in PARAMS.iter().filter(|param| param.name.starts_with("host_")) {
            let Values::Words(values) = param.values else { continue };
            for value in values {
                assert!(param.help.contains(&format!("{value}: ")), "{}: {value}", param.name);
            }
        }
    }

    #[test]
    fn defaults_are_allowed() {
        let params = Params::from_lookup(lookup(&[])).unwrap();
        assert_eq!(params.prq_entries, 4096);
        assert_eq!(params.overflow, Overflow::Spill);
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
        assert_eq!(params("35").unwrap().table_ns, Thousandths(35_000));
        assert_eq!(params("0.25").unwrap().table_ns, Thousandths(250));
        for wrong in ["-1", "NaN", "inf", "1e10", ""] {
            let error = params(wrong).unwrap_err().to_string();
            assert!(error.contains("a number from 0 to 1000000000"), "{error}");
        }
    }

    #[test]
    fn sets_and_shares_are_checked() {
        let params = |name, value| Params::from_lookup(lookup(&[(name, value)]));
        let both = params("refuse", "any-source,non-contiguous").unwrap();
        assert!(both.refuse.has("any-source") && both.refuse.has("non-contiguous"));
        assert!(!params("refuse", "none").unwrap().refuse.has("any-source"));
        assert_eq!(
            params("refuse", "any-source,any").unwrap_err().to_string(),
            "FI_TCAM_REFUSE=any-source,any: allowed is none, or one or more of \
             any-source,any-tag,non-contiguous"
        );
        let error = params("pool_reserved", "5000").unwrap_err().to_string();
        assert!(error.contains("at most FI_TCAM_POOL_MAX=65536 of FI_TCAM_POOL_ENTRIES=4096"));
    }

    #[test]
    fn parameters_that_depend_on_each_other_are_checked_to_the_last_value() {
        let check = |set: &[(&str, &str)]| {
            Params::from_lookup(lookup(set)).map(drop).map_err(|error| error.to_string())
        };
        let pool = |engines, reserved, max| {
            check(&[
                ("pool_entries", "100"),
                ("pool_engines", engines),
                ("pool_reserved", reserved),
                ("pool_max", max),
            ])
        };
        assert_eq!(pool("4", "25", "50"), Ok(()));
        assert!(pool("4", "26", "50").unwrap_err().starts_with("FI_TCAM_POOL_RESERVED=26: "));
        assert_eq!(pool("1", "50", "50"), Ok(()));
        assert!(pool("1", "51", "50").unwrap_err().starts_with("FI_TCAM_POOL_RESERVED=51: "));
        let buffers = |entries| check(&[("pool_entries", "100"), ("pool_buffers", entries)]);
        assert_eq!(buffers("100"), Ok(()));
        assert!(buffers("101").unwrap_err().starts_with("FI_TCAM_POOL_BUFFERS=101: "));
        let few = |entries| check(&[("pool_entries", entries), ("pool_engines", "4")]);
        assert_eq!(few("4"), Ok(()));
        assert_eq!(
            few("3").unwrap_err(),
            "FI_TCAM_POOL_ENGINES=4: allowed is at most FI_TCAM_POOL_ENTRIES=3"
        );
        assert!(check(&[("host_engine", "kmeans")]).unwrap_err().starts_with("FI_TCAM_CLUSTERS="));
        assert_eq!(check(&[("host_engine", "kmeans"), ("clusters", "there")]), Ok(()));
        assert_eq!(check(&[("host_engine", "list")]), Ok(()));
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
            let error = check(odd).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{odd} is no parameter of tcam; ")), "{error}");
        }
        let error = check("fi_tcam_poll").unwrap_err().to_string();
        assert!(error.ends_with("; did you mean FI_TCAM_POLL?"), "{error}");
        for (name, odd) in [("net", ""), ("net", "tcam"), ("net", "a b"), ("net_timeout", "+5")] {
            assert!(Params::from_lookup(lookup(&[(name, odd)])).is_err(), "{name}={odd}");
        }
    }
}
