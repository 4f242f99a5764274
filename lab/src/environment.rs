// SPDX-License-Identifier: BSD-2-Clause
//! The environment that makes an MPI load tcam.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use nic::params::{PREFIX, Params};

use crate::error::Error;
use crate::launcher::Mpi;
use crate::library::Library;
use crate::reports;

/// MPICH: libfabric also between ranks of one host.
const MPICH: &[(&str, &str)] = &[("MPIR_CVAR_CH4_NETMOD", "ofi"), ("MPIR_CVAR_NOLOCAL", "1")];
/// Open MPI: matching left to libfabric; Debian's parameter file excludes it.
const OPEN_MPI: &[(&str, &str)] = &[
    ("OMPI_MCA_pml", "cm"),
    ("OMPI_MCA_mtl", "ofi"),
    ("OMPI_MCA_mtl_ofi_provider_include", "tcam"),
    ("OMPI_MCA_btl_ofi_provider_include", "tcam"),
];
/// Open MPI opens a second endpoint for one-sided operations, whose report would be empty
/// in most programs; set unless the user did.
const ONE_ENDPOINT: &[(&str, &str)] = &[("OMPI_MCA_btl", "^ofi")];
/// Intel MPI, with a libfabric that is not its own if it has none.
const INTEL: &[(&str, &str)] = &[("I_MPI_FABRICS", "ofi"), ("I_MPI_OFI_PROVIDER", "tcam")];
/// More ranks than cores are the normal case here; set unless the user did.
const OVERSUBSCRIBE: &[(&str, &str)] = &[
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"),
];
/// Open MPI's launchers refuse to run for root without these.
const ROOT: &[(&str, &str)] =
    &[("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

/// Variables for an MPI; for all of them if it is not known which it is, since
/// each reads only its own.
fn for_mpi(mpi: Option<Mpi>, root: bool) -> Vec<(&'static str, &'static str)> {
    let mut set = Vec::new();
    if matches!(mpi, Some(Mpi::Mpich) | None) {
        set.extend(MPICH);
    }
    if matches!(mpi, Some(Mpi::Open(_)) | None) {
        set.extend(OPEN_MPI);
        let unless_set = [OVERSUBSCRIBE, ONE_ENDPOINT].concat();
        set.extend(unless_set.into_iter().filter(|(name, _)| std::env::var_os(name).is_none()));
        if root {
            set.extend(ROOT);
        }
    }
    if matches!(mpi, Some(Mpi::Intel) | None) {
        set.extend(INTEL);
    }
    set
}

/// Parameters of the provider, by name without prefix in lower case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings(BTreeMap<String, String>);

impl Settings {
    /// Reads `NAME=VALUE` words; a name may carry its `FI_TCAM_` prefix.
    pub(crate) fn parse(words: &[String]) -> Result<Self, Error> {
        let mut settings = Self::default();
        for word in words {
            let (name, value) = word.split_once('=').ok_or(Error::Setting(word.clone()))?;
            let bare = name.strip_prefix(PREFIX).unwrap_or(name).to_lowercase();
            if bare == "report" {
                return Err(Error::OwnOption { name: bare, option: "--report DIR" });
            }
            Params::check_names([format!("{PREFIX}{}", bare.to_uppercase())])?;
            settings.0.insert(bare, value.to_owned());
        }
        Ok(settings)
    }

    /// The value of a parameter that is set here.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Sets all that others set.
    pub(crate) fn merge(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// Sets one parameter.
    pub(crate) fn set(&mut self, name: &str, value: &impl ToString) {
        self.0.insert(name.to_owned(), value.to_string());
    }

    /// What the provider will find: these settings over the environment's.
    /// Everything is checked as the provider would, before anything starts.
    pub(crate) fn check(&self) -> Result<Params, Error> {
        Params::check_names(std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()))?;
        Ok(Params::from_lookup(|name| {
            self.0.get(name).cloned().or_else(|| {
                let value = std::env::var_os(format!("{PREFIX}{}", name.to_uppercase()))?;
                Some(value.to_string_lossy().into_owned())
            })
        })?)
    }
}

/// Parameters in the environment that a replay has no use for, recordings having their own:
/// said, since a run would have taken them.
pub(crate) fn note_unused() {
    let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let unused: Vec<_> = names.filter(|name| name.starts_with(PREFIX)).collect();
    if !unused.is_empty() {
        eprintln!("{}: not used, a recording has its own; --set does", unused.join(", "));
    }
}

/// Everything a command needs to run over tcam.
#[derive(Debug)]
pub(crate) struct Environment {
    variables: Vec<(String, OsString)>,
}

impl Environment {
    /// The environment for one MPI, one library and these settings; each rank
    /// writes its report to `place`.
    pub(crate) fn new(
        mpi: Option<Mpi>,
        library: &Library,
        settings: &Settings,
        place: &Path,
    ) -> Result<Self, Error> {
        if place.to_string_lossy().contains('%') {
            return Err(Error::Percent { path: place.to_owned() });
        }
        let root = rustix::process::geteuid().is_root();
        let mut variables = vec![
            ("FI_PROVIDER_PATH".to_owned(), library.directory.clone().into_os_string()),
            ("FI_PROVIDER".to_owned(), "tcam".into()),
            (format!("{PREFIX}REPORT"), place.join(reports::PATTERN).into_os_string()),
        ];
        for (name, value) in for_mpi(mpi, root) {
            variables.push((name.to_owned(), value.into()));
        }
        for (name, value) in &settings.0 {
            variables.push((format!("{PREFIX}{}", name.to_uppercase()), value.into()));
        }
        Ok(Self { variables })
    }

    /// A command with this environment.
    pub(crate) fn command(&self, words: &[OsString]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mpi_gets_its_own_variables() {
        let names = |mpi, root| -> Vec<_> {
            for_mpi(mpi, root).into_iter().map(|(name, _)| name).collect()
        };
        assert_eq!(names(Some(Mpi::Mpich), true), ["MPIR_CVAR_CH4_NETMOD", "MPIR_CVAR_NOLOCAL"]);
        assert!(names(Some(Mpi::Open(4)), true).contains(&"OMPI_ALLOW_RUN_AS_ROOT"));
        assert!(!names(Some(Mpi::Open(5)), false).contains(&"OMPI_ALLOW_RUN_AS_ROOT"));
        assert!(names(Some(Mpi::Intel), true).iter().all(|name| name.starts_with("I_MPI_")));
        let all = names(None, true);
        assert!(all.contains(&"MPIR_CVAR_NOLOCAL") && all.contains(&"OMPI_MCA_pml"));
    }

    #[test]
    fn settings_are_checked_by_name_and_value() {
        let parse = |word: &str| Settings::parse(&[word.to_owned()]);
        assert_eq!(parse("kernel=scalar").unwrap().check().unwrap().text("kernel"), "scalar");
        assert_eq!(parse("FI_TCAM_IDLE=spin").unwrap().check().unwrap().text("idle"), "spin");
        assert!(parse("kernel").is_err());
        assert!(parse("kernels=scalar").unwrap_err().to_string().contains("FI_TCAM_KERNELS"));
        assert!(parse("report=x").unwrap_err().to_string().contains("--report DIR"));
        let wrong = parse("prq_entries=many").unwrap().check().unwrap_err();
        assert!(wrong.to_string().starts_with("FI_TCAM_PRQ_ENTRIES=many"), "{wrong}");
    }
}
