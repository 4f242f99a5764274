// SPDX-License-Identifier: BSD-2-Clause
//! Parameters of the provider that a command sets.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fmt, fs};

use clap::Args;
use nic::params::config::{self, Config, ConfigError};
use nic::params::{PREFIX, Params};

use crate::error::Error;
use crate::hint;
use crate::options::TableSizes;

/// Parameters of a run that have no effect on a replay, with the reason.
const OF_RUNS: &[(&[&str], &str)] = &[
    (&["report"], "`tcam replay` keeps the reports of a replay: --report DIR"),
    (
        &["trace", "trace_max", "trace_sends", "trace_sites"],
        "a replay is not recorded; `tcam run` has --trace DIR and --max MIB",
    ),
    (
        &["times"],
        "nothing is measured in a replay: --timing has costs of searches; `tcam run --set \
         times=on` measures",
    ),
    (
        &["flow_timeout", "exhausted"],
        "a replay holds no message back and fails no receive; `tcam run --set` does",
    ),
    (&["arrival"], "a replay has the order of the recording; set it for a run"),
    (
        &["config"],
        "the values of a recording come before those of the machine; set here what is to be another",
    ),
    (
        &[
            "mr",
            "eager_size",
            "kernel_copy",
            "net",
            "net_eager_size",
            "net_timeout",
            "net_seal",
            "poll",
            "job_key",
            "net_open",
            "summary",
            "check",
            "idle",
        ],
        "has no effect on matching, and a replay does nothing else; set it for a run",
    ),
];

fn callers(text: &str) -> Result<u32, &'static str> {
    let callers = text.parse().ok().filter(|callers| (1..=16).contains(callers));
    callers.ok_or(
        "--sites takes no value, or a number of callers from 1 to 16; the directory follows another \
         option: `tcam run --sites --trace DIR -- COMMAND` or `tcam answer --sites --out DIR -- COMMAND`",
    )
}

/// Option of commands that record.
#[derive(Clone, Copy, Debug, Default, Args)]
pub(crate) struct SiteOption {
    /// Also records the lines of the program that post receives, for `tcam show --by site`, with
    /// libtcam-sites.so in LD_PRELOAD. With N, up to N callers, for programs that wrap MPI. The
    /// lines that send messages need --set trace_sends=on.
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1",
        allow_negative_numbers = true, value_parser = callers)]
    sites: Option<u32>,
}

impl SiteOption {
    pub(crate) fn is_given(self) -> bool {
        self.sites.is_some()
    }

    /// Sets the parameter of the provider. Fails if the user sets it, too.
    pub(crate) fn set(self, settings: &mut Settings) -> Result<(), Error> {
        if let Some(callers) = self.sites {
            settings.refuse(&[("trace_sites", "--sites N")])?;
            settings.set("trace_sites", &callers);
        }
        Ok(())
    }
}

/// Checks every line of a file of clusters.
fn check_clusters(path: &Path) -> Result<(), Error> {
    let mut file = host::regular::open(path).map_err(Error::io(path))?;
    let checked = nic::clusters::check(&mut file).map(drop);
    checked.map_err(|error| Error::Clusters { path: path.to_owned(), error })
}

/// Reads a file of settings and checks every line.
pub(crate) fn config(path: &Path) -> Result<Config, Error> {
    let file = host::regular::open(path).map_err(ConfigError::from);
    let read = file.and_then(|mut file| Config::read(&mut file));
    read.map_err(|error| Error::Config { path: path.to_owned(), error })
}

/// Returns the absolute path of a file, because ranks may have another working directory. Fails if
/// the file does not exist.
fn absolute(name: &str) -> Result<String, Error> {
    let path = fs::canonicalize(name).map_err(Error::io(name))?;
    path.to_str().map(str::to_owned).ok_or_else(|| Error::file(&path, "the path must be UTF-8"))
}

/// Returns the value of a parameter in the environment.
fn of_environment(name: &str) -> Option<String> {
    let value = std::env::var_os(format!("{PREFIX}{}", name.to_uppercase()))?;
    Some(value.to_string_lossy().into_owned())
}

/// Parameters of the provider, by name without prefix in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Reads the `NAME=VALUE` words of `--set`; a name may have its `FI_TCAM_` prefix. Refuses
    /// `report`, for which commands have an option.
    pub(crate) fn parse(words: &[String]) -> Result<Self, Error> {
        let settings = Self::words("--set", words)?;
        settings.refuse(&[("report", "--report DIR")])?;
        Ok(settings)
    }

    /// Reads the `NAME=VALUE` words of an option of a replay. Refuses parameters that have no
    /// effect on a replay.
    pub(crate) fn for_replay(option: &'static str, words: &[String]) -> Result<Self, Error> {
        let settings = Self::words(option, words)?;
        for (names, why) in OF_RUNS {
            if let Some(name) = names.iter().find(|name| settings.get(name).is_some()) {
                fail!("{option} {name}: {why}");
            }
        }
        Ok(settings)
    }

    fn words(option: &'static str, words: &[String]) -> Result<Self, Error> {
        let mut settings = Self::default();
        for word in words {
            let (name, value) = word.split_once('=').ok_or_else(|| {
                let hint = hint::of_setting(word);
                message!("{option} {word}: NAME=VALUE is expected, {hint}")
            })?;
            let bare = name.strip_prefix(PREFIX).unwrap_or(name).to_lowercase();
            Params::check_names([format!("{PREFIX}{}", bare.to_uppercase())])?;
            let value = match bare.as_str() {
                "clusters" => {
                    check_clusters(Path::new(value))?;
                    absolute(value)?
                }
                config::NAME => {
                    config(Path::new(value))?;
                    absolute(value)?
                }
                "trace" if !value.is_empty() => {
                    let path = std::path::absolute(value).map_err(Error::io(Path::new(value)))?;
                    let text = path.to_str().map(str::to_owned);
                    text.ok_or_else(|| Error::file(&path, "the path must be UTF-8"))?
                }
                _ => value.to_owned(),
            };
            if let Some(first) = settings.0.insert(bare.clone(), value.clone()) {
                fail!("{option} {bare}={first} and {bare}={value}: give one of them");
            }
        }
        Ok(settings)
    }

    /// Sets a parameter from an option such as `--timing`, if it is given. Refuses it if `--set`
    /// sets the parameter too.
    pub(crate) fn give(
        &mut self,
        name: &'static str,
        option: &'static str,
        value: Option<&impl ToString>,
    ) -> Result<(), Error> {
        let Some(value) = value else { return Ok(()) };
        if self.get(name).is_some() {
            fail!("{option} and --set {name}: give one of them");
        }
        self.set(name, value);
        Ok(())
    }

    /// Sets the sizes of both tables from `--prq` and `--umq`.
    pub(crate) fn give_sizes(&mut self, tables: TableSizes) -> Result<(), Error> {
        self.give("prq_entries", "--prq", tables.prq.as_ref())?;
        self.give("umq_entries", "--umq", tables.umq.as_ref())
    }

    /// Returns true if nothing is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the value of a parameter that is set here.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Adds the parameters of `others`, which have priority.
    pub(crate) fn merge(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Returns a copy of these settings with the settings in `set`, which have priority.
    pub(crate) fn with<const N: usize>(&self, set: [(&str, &dyn fmt::Display); N]) -> Self {
        let mut settings = self.clone();
        set.iter().for_each(|(name, value)| settings.set(name, value));
        settings
    }

    /// Sets one parameter.
    pub(crate) fn set(&mut self, name: &str, value: &impl ToString) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    /// Returns the parameters that the provider will find. These settings have priority over the
    /// environment, and both over the file of settings that they name. Everything is checked as the
    /// provider checks it, before anything starts.
    pub(crate) fn check(&self) -> Result<Params, Error> {
        Params::check_names(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
        let set = |name: &str| self.0.get(name).cloned().or_else(|| of_environment(name));
        let file = match set(config::NAME) {
            Some(name) => config(Path::new(&name))?,
            None => Config::default(),
        };
        Ok(Params::from_lookup(|name| set(name).or_else(|| file.get(name).map(str::to_owned)))?)
    }

    /// Returns every parameter that is set here, with its value.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Refuses parameters in `--set` of a command that has options for them. `own` contains the
    /// parameters, each with its option.
    pub(crate) fn refuse(&self, own: &[(&str, &'static str)]) -> Result<(), Error> {
        match own.iter().find(|(name, _)| self.get(name).is_some()) {
            Some((name, option)) => fail!("--set {name}: use {option}"),
            None => Ok(()),
        }
    }

    /// Refuses table sizes in `--set` of a sweep, which varies them.
    pub(crate) fn refuse_sizes(&self) -> Result<(), Error> {
        self.refuse(&[("prq_entries", "--prq LIST"), ("umq_entries", "--umq LIST")])
    }
}

/// Prints the parameters in the environment, which a replay does not use. A run would use them, but
/// a replay takes its parameters from the recording.
pub(crate) fn note_unused() {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unused: Vec<_> = names.filter(|name| name.starts_with(PREFIX)).collect();
    if !unused.is_empty() {
        eprintln!(
            "{}: not used, because a recording contains its parameters; --set changes them",
            unused.join(", ")
        );
    }
}

/// If FI_TCAM_REPORT is set, prints that it is not used, with the option that gives the directory
/// of the reports.
pub(crate) fn note_report(option: &str) {
    let name = format!("{PREFIX}REPORT");
    if std::env::var_os(&name).is_some() {
        eprintln!("{name}: not used; {option} gives the directory of the reports");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked_by_name_and_value() {
        let parse = |word: &str| Settings::parse(&[word.to_owned()]);
        assert_eq!(parse("kernel=scalar").unwrap().check().unwrap().text("kernel"), "scalar");
        assert_eq!(parse("FI_TCAM_IDLE=spin").unwrap().check().unwrap().text("idle"), "spin");
        let error = parse("kernel").unwrap_err().to_string();
        assert_eq!(error, "--set kernel: NAME=VALUE is expected, such as kernel=scalar");
        assert!(parse("kernels=scalar").unwrap_err().to_string().contains("FI_TCAM_KERNELS"));
        assert!(parse("report=x").unwrap_err().to_string().contains("--report DIR"));
        assert!(parse("trace=x").is_ok());
        let wrong = parse("prq_entries=many").unwrap().check().unwrap_err();
        assert!(wrong.to_string().starts_with("FI_TCAM_PRQ_ENTRIES=many"), "{wrong}");
    }

    #[test]
    fn a_parameter_that_is_set_twice_is_refused() {
        let words = ["overflow=spill", "FI_TCAM_OVERFLOW=prefix"].map(str::to_owned);
        for error in [Settings::parse(&words), Settings::for_replay("--set", &words)] {
            let expected = "--set overflow=spill and overflow=prefix: give one of them";
            assert_eq!(error.unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn parameters_without_effect_on_a_replay_are_refused() {
        let parse = |word: &str| Settings::for_replay("--with", &[word.to_owned()]);
        assert_eq!(parse("overflow=prefix").unwrap().get("overflow"), Some("prefix"));
        for (word, part) in [
            ("trace=x", "--with trace: a replay is not recorded; `tcam run`"),
            ("FI_TCAM_TIMES=on", "--with times: nothing is measured in a replay: --timing"),
            ("kernel_copy=off", "--with kernel_copy: has no effect on matching"),
            ("report=x", "`tcam replay` keeps the reports of a replay: --report DIR"),
            ("net_eager_size=0", "--with net_eager_size: has no effect on matching"),
            ("foo", "--with foo: NAME=VALUE is expected"),
        ] {
            let error = parse(word).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
        for (names, _) in OF_RUNS {
            Params::check_names(
                names.iter().map(|name| format!("{PREFIX}{}", name.to_uppercase())),
            )
            .unwrap();
        }
    }

    #[test]
    fn settings_have_priority_over_a_file_of_settings() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tcam.conf");
        let word = format!("config={}", path.display());
        let parse = |more: &str| Settings::parse(&[word.clone(), more.to_owned()]);
        let error = parse("idle=auto").unwrap_err().to_string();
        assert!(error.contains("FI_TCAM_CONFIG=") && error.contains("No such file"), "{error}");
        fs::write(&path, "device = connectx\nidle = spin\nprq_entries = 7\n").unwrap();
        let settings = parse("idle=yield").unwrap();
        let params = settings.check().unwrap();
        let values = ["idle", "prq_entries", "umq_entries"].map(|name| params.text(name));
        assert_eq!(values, ["yield", "7", "0"], "the device has no table of unexpected messages");
        assert!(!params.recorded().contains_key("config"));
        fs::write(&path, "\nkernels = scalar\n").unwrap();
        let error = settings.check().unwrap_err().to_string();
        assert!(
            error.ends_with(
                "line 2: FI_TCAM_KERNELS is no parameter of tcam; did you mean FI_TCAM_KERNEL?"
            ),
            "{error}"
        );
        let error = Settings::for_replay("--set", &[word]).unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
        fs::write(&path, "idle = spin").unwrap();
        let word = format!("config={}", path.display());
        let error = Settings::for_replay("--set", &[word]).unwrap_err().to_string();
        assert!(error.contains("the values of a recording"), "{error}");
    }

    #[test]
    fn a_parameter_with_an_option_is_not_set_twice() {
        let mut settings = Settings::parse(&["timing=none".to_owned()]).unwrap();
        settings.give_sizes(TableSizes { prq: Some(7), umq: None }).unwrap();
        settings.give("timing", "--timing", None::<&String>).unwrap();
        let error = settings.give("timing", "--timing", Some(&"cpu-list")).unwrap_err();
        assert_eq!(error.to_string(), "--timing and --set timing: give one of them");
        assert_eq!((settings.get("prq_entries"), settings.get("umq_entries")), (Some("7"), None));
        let error = settings.give_sizes(TableSizes { prq: Some(8), umq: None }).unwrap_err();
        assert_eq!(error.to_string(), "--prq and --set prq_entries: give one of them");
    }
}
