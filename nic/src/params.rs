// SPDX-License-Identifier: BSD-2-Clause
//! The `FI_TCAM_*` parameters: one table of names, values, defaults and help,
//! read by the provider (`fi_param_define`, `fi_getinfo`) and by the lab.

use std::collections::BTreeMap;

use matching::timing::EntryCost;

use crate::{models, timings};

/// Prefix of every parameter in the environment.
pub const PREFIX: &str = "FI_TCAM_";

/// Parameters that say where something is written.
const PLACES: [&str; 2] = ["report", "trace"];

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// A whole number from the first to the second, both included.
    Number(u64, u64),
    /// A number from the first to the second, both included, with or without decimals.
    Decimal(u32, u32),
    /// What entries cost: [`EntryCost`].
    EntryCost,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Several of these words, separated by commas, or `none`.
    Set(&'static [&'static str]),
    /// Any text.
    Text,
    /// A path in which `%r`, `%p` and `%h` are filled in.
    Pattern,
}

/// One parameter.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Name without the prefix, in lower case as libfabric defines it: `prq_entries`.
    pub name: &'static str,
    /// Allowed values.
    pub values: Values,
    /// Value when the parameter is not set.
    pub default: &'static str,
    /// One sentence for `fi_info -e` and the man page.
    pub help: &'static str,
}

/// Every parameter of the provider.
pub const PARAMS: &[Param] = &[
    Param {
        name: "device",
        values: Values::Words(&models::NAMES),
        default: "generic",
        help: "Device whose table sizes, pool, overflow and refusals are taken where a parameter is \
               not set; generic sets nothing.",
    },
    Param {
        name: "prq_entries",
        values: Values::Number(0, 65_536),
        default: "4096",
        help: "Entries of the table of posted receives; 0 matches every receive on the host.",
    },
    Param {
        name: "umq_entries",
        values: Values::Number(0, 65_536),
        default: "4096",
        help: "Entries of the table of unexpected messages; 0 keeps every message on the host.",
    },
    Param {
        name: "overflow",
        values: Values::Words(&["spill", "prefix", "sticky", "flow-control"]),
        default: "spill",
        help: "What happens when a table is full: spill to the host engine, the oldest element there \
               is promoted when an entry frees; prefix: nothing enters the table while the host \
               holds any; sticky: everything new of both queues goes to the host for good, and the \
               unexpected messages that are in the table, too; flow-control: posts and senders are \
               held back until an entry frees.",
    },
    Param {
        name: "preemptive",
        values: Values::Set(&["pool", "posted-recv", "unexpected-msg"]),
        default: NONE,
        help: "When an endpoint leaves its tables before they are full (overflow=sticky): with more \
               than half of the pool taken, or with more than rx_size receives posted or messages \
               unexpected.",
    },
    Param {
        name: "rx_size",
        values: Values::Number(1, 65_536),
        default: "1024",
        help: "Receives or unexpected messages above which preemptive leaves the tables.",
    },
    Param {
        name: "flow_timeout",
        values: Values::Number(0, 3_600_000),
        default: "10",
        help: "Milliseconds that posted receives are held back (FI_EAGAIN) when no entry frees \
               (overflow=flow-control).",
    },
    Param {
        name: "exhausted",
        values: Values::Words(&["spill", "fail"]),
        default: "spill",
        help: "What becomes of a posted receive after flow_timeout: spill to the host engine until \
               an entry is free again, or fail with FI_ENOSPC as on a NIC that has none.",
    },
    Param {
        name: "mr",
        values: Values::Words(&["scalable", "basic", "endpoint"]),
        default: "scalable",
        help: "How memory is registered: with offsets and the application's keys, with virtual \
               addresses and keys of the provider (as on verbs NICs), or bound to an endpoint \
               and enabled (as on Slingshot).",
    },
    Param {
        name: "refuse",
        values: Values::Set(&["any-source", "any-tag", "non-contiguous"]),
        default: NONE,
        help: "Receives that the device does not take: they stay on the host.",
    },
    Param {
        name: "refuse_below",
        values: Values::Number(0, 1_073_741_824),
        default: "0",
        help: "Receives with a buffer of fewer bytes are not offered to the device (TM_THRESH of UCX).",
    },
    Param {
        name: "force_above",
        values: Values::Number(0, 1_073_741_824),
        default: "0",
        help: "A receive with a buffer of more bytes has all that waits before it offered to the \
               device, short ones as well (TM_FORCE_THRESH of UCX); 0 does without.",
    },
    Param {
        name: "pool",
        values: Values::Words(&["endpoint", "node"]),
        default: "endpoint",
        help: "Whose the entries of the tables are: each endpoint's own, or drawn from a pool that \
               all endpoints of this user on this host share.",
    },
    Param {
        name: "pool_entries",
        values: Values::Number(1, 65_536),
        default: "4096",
        help: "Entries of the pool; endpoints with the same number share one.",
    },
    Param {
        name: "pool_engines",
        values: Values::Number(1, 16),
        default: "1",
        help: "Engines among which the entries of the pool are divided; endpoints are given to them \
               in turn, and draw from their own only.",
    },
    Param {
        name: "pool_reserved",
        values: Values::Number(0, 65_536),
        default: "0",
        help: "Entries of the pool that an endpoint has for itself.",
    },
    Param {
        name: "pool_max",
        values: Values::Number(1, 65_536),
        default: "65536",
        help: "Most entries of the pool that an endpoint may hold.",
    },
    Param {
        name: "host_engine",
        values: Values::Words(&[
            "list",
            "rank-array",
            "col-list",
            "list-pnp",
            "col-pnp",
            "kmeans",
            "hash",
            "newmadeleine",
            "auto",
        ]),
        default: "col-pnp",
        help: "Software engine that matches what does not fit the table: one list (MPICH), a list \
               a source (Open MPI), queues for collective operations (COL), for partners (PNP) or \
               both, a queue for each cluster of sources, a hash table of receives without \
               wildcards, one for each combination of wildcards, or auto, which chooses by what comes.",
    },
    Param {
        name: "clusters",
        values: Values::Text,
        default: "",
        help: "File of clusters, written by tcam cluster, for host_engine=kmeans.",
    },
    Param {
        name: "assert",
        values: Values::Set(&["no-any-source", "no-any-tag"]),
        default: NONE,
        help: "What the program promises, as no MPI tells its hints to libfabric: receives that \
               break a promise are matched all the same, and counted.",
    },
    Param {
        name: "queue",
        values: Values::Words(&["packed", "linked"]),
        default: "packed",
        help: "Queues of the host engine: packed, arrays searched by the compare kernel; or \
               linked, lists as in the papers.",
    },
    Param {
        name: "tag_layout",
        values: Values::Words(&[
            "auto",
            "mpich",
            "mpich-source-in-tag",
            "intel-mpi",
            "openmpi",
            "openmpi-tag-1",
            "openmpi-tag-2",
            "opaque",
        ]),
        default: "auto",
        help: "How match bits tell collective from point-to-point messages; auto asks which MPI is \
               loaded, opaque takes everything for point-to-point.",
    },
    Param {
        name: "theta",
        values: Values::Number(1, 65_536),
        default: "512",
        help: "Elements in a shared queue at which PNP gives the busiest sources their own; up \
               to so many are searched as one list. 100 is best for linked queues.",
    },
    Param {
        name: "k_col",
        values: Values::Number(0, 1024),
        default: "8",
        help: "COL makes at most k_col * sqrt(n) queues for n processes.",
    },
    Param {
        name: "k_pnp",
        values: Values::Number(0, 1024),
        default: "8",
        help: "PNP makes at most k_pnp * sqrt(n) queues for n processes.",
    },
    Param {
        name: "nprocs",
        values: Values::Number(0, 16_777_216),
        default: "0",
        help: "Processes n of k_col and k_pnp; 0 takes the number of addresses in the address vector.",
    },
    Param {
        name: "table",
        values: Values::Words(&["index", "cam"]),
        default: "index",
        help: "How tables find their entries: index, by a hash of what is compared; or cam, every \
               entry compared as a NIC does it. Both find and count the same.",
    },
    Param {
        name: "kernel",
        values: Values::Words(&["auto", "avx512", "avx2", "scalar"]),
        default: "auto",
        help: "Compare kernel of the table and of packed queues; auto takes the best one this \
               processor has.",
    },
    Param {
        name: "timing",
        values: Values::Words(&timings::NAMES),
        default: "none",
        help: "Timing model: costs from a published or measured source, where they are not set \
               themselves as table_ns, up_ns, host_ns, host_entry_ns, down_ns, spill_ns and \
               promote_ns (docs/devices.md).",
    },
    Param {
        name: "table_ns",
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each search of a table.",
    },
    Param {
        name: "up_ns",
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each search that goes on from the table to the \
               host, for the way.",
    },
    Param {
        name: "host_ns",
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each search on the host.",
    },
    Param {
        name: "host_entry_ns",
        values: Values::EntryCost,
        default: "0",
        help: "Timing model: nanoseconds charged for each entry that a search on the host traverses; \
               with NUMBER@ENTRIES,... each on average of a search of so many.",
    },
    Param {
        name: "down_ns",
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for the way of the host's answer back to the table.",
    },
    Param {
        name: "spill_ns",
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each element that goes to the host.",
    },
    Param {
        name: "promote_ns",
        values: Values::Decimal(0, 1_000_000_000),
        default: "0",
        help: "Timing model: nanoseconds charged for each element that moves from the host into the \
               table.",
    },
    Param {
        name: "times",
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "Whether searches, insertions and removals are measured, in the table and on the host; \
               looking at the clock takes longer than most of them.",
    },
    Param {
        name: "report",
        values: Values::Pattern,
        default: "",
        help: "Path pattern of the report written when an endpoint closes or the process exits: \
               %r is the rank, %p the process id, %h the host name. `.json` and `.txt` are written.",
    },
    Param {
        name: "trace",
        values: Values::Text,
        default: "",
        help: "Directory where what is asked of the device is recorded, a file for each matching \
               context, for tcam replay.",
    },
    Param {
        name: "trace_max",
        values: Values::Number(1, 1_048_576),
        default: "1024",
        help: "Largest file of a trace in MiB; the recording ends there.",
    },
    Param {
        name: "trace_sends",
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "Whether traces have the messages that are sent, too, and the processor time of the \
               threads that do the operations: what a model of a network needs to time them anew.",
    },
    Param {
        name: "eager_size",
        values: Values::Number(0, 16_384),
        default: "4096",
        help: "Largest message in bytes that always goes through shared buffers; up to four times \
               as long ones do while that is quicker than to copy them from process to process.",
    },
    Param {
        name: "kernel_copy",
        values: Values::Words(&["auto", "off"]),
        default: "auto",
        help: "Copy of long messages by the kernel (process_vm_readv); auto falls back to copies \
               through shared buffers where the kernel refuses, off always does.",
    },
    Param {
        name: "check",
        values: Values::Words(&["off", "on"]),
        default: "off",
        help: "Whether what travels between processes carries checksums (CRC32C) that its receiver \
               verifies: wrong bytes are then an error (FI_ECRC), at the price of reading every \
               message once more at both ends.",
    },
    Param {
        name: "idle",
        values: Values::Words(&["auto", "spin", "yield"]),
        default: "auto",
        help: "What a poll that finds nothing does: auto gives the core away soon when the threads \
               that poll endpoints outnumber the cores that they may run on.",
    },
];

/// The empty [`Values::Set`].
const NONE: &str = "none";

/// A parameter that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParamError {
    /// The value is not allowed.
    #[error("{PREFIX}{name}={value}: allowed is {allowed}")]
    Value {
        /// Name, upper case, without the prefix.
        name: String,
        /// The value found.
        value: String,
        /// The allowed values, for people.
        allowed: String,
    },
    /// There is no parameter of this name.
    #[error("{PREFIX}{name} is no parameter of tcam; there are {known}")]
    Name {
        /// Name, upper case, without the prefix.
        name: String,
        /// Every known name with its prefix.
        known: String,
    },
}

impl Values {
    /// The allowed values, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Number(low, high) => format!("a whole number from {low} to {high}"),
            Self::Decimal(low, high) => format!("a number from {low} to {high}"),
            Self::EntryCost => EntryCost::ALLOWED.to_owned(),
            Self::Words(words) => words.join(", "),
            Self::Set(words) => format!("{NONE}, or one or more of {}", words.join(",")),
            Self::Text => "any text".to_owned(),
            Self::Pattern => {
                "a path with %r (rank), %p (process id), %h (host), %% for %".to_owned()
            }
        }
    }

    fn allows(&self, value: &str) -> bool {
        match self {
            Self::Number(low, high) => {
                value.parse::<u64>().is_ok_and(|number| (*low..=*high).contains(&number))
            }
            Self::Decimal(low, high) => value
                .parse::<f64>()
                .is_ok_and(|number| (f64::from(*low)..=f64::from(*high)).contains(&number)),
            Self::EntryCost => value.parse::<EntryCost>().is_ok(),
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

/// The parameters in force: every name with the value set or its default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Params {
    values: BTreeMap<&'static str, String>,
}

impl Params {
    /// Takes what `lookup` answers for each name (lower case, no prefix) and,
    /// where it answers nothing, what the device sets, or the default.
    ///
    /// # Errors
    /// The first value that is not allowed, named with the allowed range.
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
                return Err(ParamError::Value {
                    name: param.name.to_uppercase(),
                    value,
                    allowed: param.values.describe(),
                });
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

    /// Refuses names with our prefix that are no parameters: a misspelt name
    /// would silently run another experiment.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn check_names(names: impl IntoIterator<Item = String>) -> Result<(), ParamError> {
        for name in names {
            let Some(bare) = name.strip_prefix(PREFIX) else { continue };
            if !PARAMS.iter().any(|param| param.name.eq_ignore_ascii_case(bare)) {
                let known: Vec<_> = PARAMS
                    .iter()
                    .map(|param| format!("{PREFIX}{}", param.name.to_uppercase()))
                    .collect();
                return Err(ParamError::Name { name: bare.to_owned(), known: known.join(", ") });
            }
        }
        Ok(())
    }

    /// The value of a parameter, by its lower-case name.
    ///
    /// # Panics
    /// If there is no such parameter: a mistake in this program.
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        &self.values[name]
    }

    /// The value of a [`Values::Number`] parameter.
    ///
    /// # Panics
    /// If the parameter is no number: a mistake in this program.
    #[must_use]
    pub fn number(&self, name: &str) -> usize {
        self.text(name).parse().expect("checked when the parameters were read")
    }

    /// The value of a [`Values::Decimal`] parameter in thousandths: picoseconds of
    /// nanoseconds.
    ///
    /// # Panics
    /// If the parameter is no number: a mistake in this program.
    #[must_use]
    pub fn thousandths(&self, name: &str) -> u64 {
        let value: f64 = self.text(name).parse().expect("checked when the parameters were read");
        (value * 1000.0).round() as u64
    }

    /// The value of a [`Values::EntryCost`] parameter.
    ///
    /// # Panics
    /// If the parameter is none: a mistake in this program.
    #[must_use]
    pub fn entry_cost(&self, name: &str) -> EntryCost {
        self.text(name).parse().expect("checked when the parameters were read")
    }

    /// Whether a [`Values::Set`] parameter has a word.
    #[must_use]
    pub fn has(&self, name: &str, word: &str) -> bool {
        self.text(name).split(',').any(|one| one == word)
    }

    /// Names and values, for reports and traces; but for where these are written, which is
    /// of no experiment.
    #[must_use]
    pub fn recorded(&self) -> BTreeMap<String, String> {
        let values = self.values.iter().filter(|(name, _)| !PLACES.contains(name));
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
    #[cfg_attr(miri, ignore = "compares texts, for minutes there")]
    fn the_man_page_has_every_parameter_with_its_values_and_no_other() {
        let page = include_str!("../../docs/fi_tcam.7").replace('\\', "");
        for word in page.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')) {
            let bare = word.strip_prefix(PREFIX).unwrap_or_default().to_lowercase();
            assert!(bare.is_empty() || PARAMS.iter().any(|param| param.name == bare), "{word}");
        }
        for param in PARAMS {
            let name = format!("{PREFIX}{}", param.name.to_uppercase());
            let heads = |text: &&str| {
                let head = text.lines().next().unwrap_or_default();
                head.split([' ', ',', '"']).any(|word| word == name)
            };
            let text = page.split(".TP\n.I").find(heads).expect(&name);
            let values: Vec<String> = match param.values {
                Values::Number(low, high) => vec![low.to_string(), high.to_string()],
                Values::Decimal(low, high) => vec![low.to_string(), high.to_string()],
                Values::EntryCost => vec!["0".to_owned(), "2.7@64,4.5@1024,5.1@8192".to_owned()],
                Values::Words(words) | Values::Set(words) => {
                    words.iter().map(|&word| word.to_owned()).collect()
                }
                Values::Text => Vec::new(),
                Values::Pattern => ["%r", "%p", "%h", "%%"].map(str::to_owned).into(),
            };
            for value in values.iter().map(String::as_str).chain([param.default]) {
                assert!(text.contains(value), "{name}: {value}");
            }
        }
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
    fn what_a_pattern_does_not_have_is_refused() {
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
    }
}
