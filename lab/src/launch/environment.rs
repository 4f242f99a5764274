// SPDX-License-Identifier: BSD-2-Clause
//! Makes the environment variables that let an MPI load tcam, and finds the provider library for
//! them.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use nic::params::PREFIX;
use rustix::rand::{GetRandomFlags, getrandom};

use super::launcher::{self, Mpi};
use crate::error::Error;
use crate::file;
use crate::results::{output_directory, reports};
use crate::settings::Settings;

/// Variables that make MPICH use libfabric, also between ranks of one host.
const MPICH: &[(&str, &str)] = &[("MPIR_CVAR_CH4_NETMOD", "ofi"), ("MPIR_CVAR_NOLOCAL", "1")];
/// Variables that make Open MPI leave matching to libfabric, and use tcam. Debian's parameter file
/// excludes libfabric by default.
const OPEN_MPI: &[(&str, &str)] = &[
    ("OMPI_MCA_pml", "cm"),
    ("OMPI_MCA_mtl", "ofi"),
    ("OMPI_MCA_mtl_ofi_provider_include", "tcam"),
    ("OMPI_MCA_btl_ofi_provider_include", "tcam"),
];
/// Variable that keeps Open MPI from opening a second endpoint for one-sided operations. The report
/// of that endpoint would be empty in most programs. Set unless the user has set the variable.
const ONE_ENDPOINT: &[(&str, &str)] = &[("OMPI_MCA_btl", "^ofi")];
/// Variables with which a site excludes providers. They are removed, because [`OPEN_MPI`] includes
/// tcam, and Open MPI does not start if providers are both excluded and included.
const EXCLUDES: &[&str] = &[
    "OMPI_MCA_mtl_ofi_provider_exclude",
    "OMPI_MCA_btl_ofi_provider_exclude",
    "OMPI_MCA_opal_common_ofi_provider_exclude",
];
/// Variables that make Intel MPI use libfabric and tcam.
const INTEL: &[(&str, &str)] = &[("I_MPI_FABRICS", "ofi"), ("I_MPI_OFI_PROVIDER", "tcam")];
/// Variables that make Open MPI allow more ranks than cores, which is the normal case here. Set
/// unless the user has set them. Without `slot` PRRTE puts all ranks on the first of several hosts.
const OVERSUBSCRIBE: &[(&str, &str)] = &[
    ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ("PRTE_MCA_rmaps_default_mapping_policy", "slot:oversubscribe"),
];
/// Variable with a list, separated by semicolons, of the variables that Open MPI sends to ranks on
/// other hosts. By default Open MPI sends only its own variables.
const HANDED_ON: &str = "OMPI_MCA_mca_base_env_list";
/// Variables without which Open MPI's launchers refuse to run for root.
const ROOT: &[(&str, &str)] =
    &[("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")];

/// Variable with the libraries that the dynamic linker loads first.
const PRELOAD: &str = "LD_PRELOAD";

/// Variable with the secret that all processes of a job share.
const KEY: &str = "FI_TCAM_JOB_KEY";

fn random_key() -> Result<String, Error> {
    let mut key = [0_u8; 16];
    getrandom(&mut key, GetRandomFlags::empty())
        .map_err(|error| Error::io(Path::new("getrandom"))(error.into()))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(key)))
}

/// Returns the variables for an MPI. If the MPI is unknown, returns those of all MPIs, because each
/// MPI reads only its own variables.
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

/// The environment that a command needs to run over tcam.
#[derive(Debug)]
pub(crate) struct Environment {
    variables: Vec<(String, OsString)>,
    /// The value of [`HANDED_ON`]; `None` if the MPI is known and not Open MPI.
    handed_on: Option<String>,
}

impl Environment {
    /// Makes the environment for an MPI, a library and these settings. Each rank writes its report
    /// to the directory `place`. Fails if the provider or libfabric would misread the name of
    /// `place` or of the library's directory.
    pub(crate) fn new(
        mpi: Option<Mpi>,
        library: &Library,
        settings: &Settings,
        place: &Path,
    ) -> Result<Self, Error> {
        output_directory::check_name(place)?;
        if library.directory.as_os_str().as_encoded_bytes().contains(&b':') {
            fail!(
                "{}: libfabric takes a `:` for the end of a directory: put the provider elsewhere",
                library.directory.display()
            );
        }
        let root = rustix::process::geteuid().is_root();
        let mut variables = vec![
            ("FI_PROVIDER_PATH".to_owned(), library.directory.clone().into_os_string()),
            ("FI_PROVIDER".to_owned(), "tcam".into()),
            (format!("{PREFIX}REPORT"), place.join(reports::PATTERN).into_os_string()),
        ];
        if settings.get("job_key").is_none() && std::env::var_os(KEY).is_none() {
            variables.push((KEY.to_owned(), random_key()?.into()));
        }
        for (name, value) in for_mpi(mpi, root) {
            variables.push((name.to_owned(), value.into()));
        }
        if settings.get("trace_sites").is_some_and(|callers| callers != "0") {
            variables
                .push((PRELOAD.to_owned(), library.preloaded(mpi, std::env::var_os(PRELOAD))?));
        }
        for (name, value) in settings.all() {
            variables.push((format!("{PREFIX}{}", name.to_uppercase()), value.into()));
        }
        // Ranks may have another working directory, so these paths of the user's environment become
        // absolute.
        for name in ["config", "clusters"].into_iter().filter(|name| settings.get(name).is_none()) {
            let variable = format!("{PREFIX}{}", name.to_uppercase());
            if let Some(value) = std::env::var_os(&variable).filter(|value| !value.is_empty()) {
                let path = std::path::absolute(&value).map_err(Error::io(Path::new(&value)))?;
                variables.push((variable, path.into_os_string()));
            }
        }
        let is_open_mpi = matches!(mpi, Some(Mpi::Open(_)) | None);
        let handed_on = is_open_mpi.then(|| handed_on(&variables));
        Ok(Self { variables, handed_on })
    }

    /// Returns a command with this environment.
    pub(crate) fn command(&self, words: &[OsString]) -> Command {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        for name in EXCLUDES {
            command.env_remove(name);
        }
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        // Open MPI 4 refuses `-x` together with this variable. If the command has `-x`, the
        // variable is not set, and the user must name all variables with `-x`.
        if let Some(names) = &self.handed_on
            && !launcher::has_option(words, "-x")
        {
            command.env(HANDED_ON, names);
        }
        command
    }
}

/// Returns the user's value of [`HANDED_ON`], followed by the names of all `FI_` variables of
/// `ours` and of the environment, and [`PRELOAD`] if it is one of `ours`.
fn handed_on(ours: &[(String, OsString)]) -> String {
    let of_user = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    let all = ours.iter().map(|(name, _)| name.clone()).chain(of_user);
    let is_preloaded = ours.iter().any(|(name, _)| name == PRELOAD);
    let is_needed = |name: &str| name.starts_with("FI_") || is_preloaded && name == PRELOAD;
    let names: BTreeSet<_> = all.filter(|name| is_needed(name)).collect();
    let given = std::env::var(HANDED_ON).into_iter().filter(|given| !given.is_empty());
    given.chain(names).collect::<Vec<_>>().join(";")
}

/// Names of the library: the first when it is installed, the second when cargo builds it. libfabric
/// opens every file in the directories of FI_PROVIDER_PATH whose name ends in `fi.so`.
const NAMES: [&str; 2] = ["libtcam-fi.so", "libtcam_fi.so"];

/// Names of the library that notes call sites, as in [`NAMES`].
const SITES: [&str; 2] = ["libtcam-sites.so", "libtcam_sites.so"];
/// Names of its part for the functions with large counts.
const LARGE: [&str; 2] = ["libtcam-sites-large.so", "libtcam_sites_large.so"];

/// The provider library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Library {
    /// The file of the library.
    pub(crate) file: PathBuf,
    /// Its directory, the value of FI_PROVIDER_PATH.
    pub(crate) directory: PathBuf,
}

impl Library {
    fn in_directory(directory: &Path) -> Option<Self> {
        let directory = directory.canonicalize().ok()?;
        let file = NAMES.iter().map(|name| directory.join(name)).find(|file| file.is_file())?;
        Some(Self { file, directory })
    }

    /// Returns the value of [`PRELOAD`] with the libraries that note call sites, before those of the
    /// user, so that they have the calls of the program and not those of a tool. They are beside the
    /// provider. Open MPI has no functions with large counts. If the MPI is unknown, it may have
    /// none.
    fn preloaded(&self, mpi: Option<Mpi>, of_user: Option<OsString>) -> Result<OsString, Error> {
        let has_large = matches!(mpi, Some(Mpi::Mpich | Mpi::Intel));
        let mut value = OsString::new();
        for names in [SITES].into_iter().chain(has_large.then_some(LARGE)) {
            let places = names.map(|name| self.directory.join(name));
            let Some(file) = places.into_iter().find(|file| file.is_file()) else {
                fail!("--sites: {}: no {} there", self.directory.display(), names[0]);
            };
            if file.as_os_str().as_encoded_bytes().iter().any(|byte| b": ".contains(byte)) {
                fail!(
                    "--sites: {}: {PRELOAD} takes a space or `:` for the end of a name: put the \
                     provider elsewhere",
                    file.display()
                );
            }
            if !value.is_empty() {
                value.push(":");
            }
            value.push(file);
        }
        if let Some(of_user) = of_user.filter(|of_user| !of_user.is_empty()) {
            value.push(":");
            value.push(of_user);
        }
        Ok(value)
    }

    /// Finds the library as [`Library::find`] does, and checks that it is an ELF file with the
    /// entry point of a provider.
    pub(crate) fn find_whole(given: Option<&Path>) -> Result<Self, Error> {
        let library = Self::find(given)?;
        let bytes =
            host::regular::read(&library.file, file::LONGEST).map_err(Error::io(&library.file))?;
        let holds = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
        match bytes.starts_with(b"\x7fELF") && holds(b"fi_prov_ini") {
            true => Ok(library),
            false => Err(message!(
                "{0}: no provider of libfabric (no shared object with fi_prov_ini in it); `tcam \
                 doctor --provider {0}` checks the rest",
                library.file.display()
            )),
        }
    }

    /// Finds the library in the given directory, or in the directory of the given file. Without a
    /// path, searches the directory of this program, `../lib/libfabric` from there, and
    /// FI_PROVIDER_PATH.
    pub(crate) fn find(given: Option<&Path>) -> Result<Self, Error> {
        if let Some(path) = given {
            let directory = if path.is_dir() { Some(path) } else { path.parent() };
            return directory
                .filter(|_| path.exists())
                .and_then(|directory| {
                    let directory =
                        if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
                    Self::in_directory(directory)
                })
                .ok_or_else(|| message!("{}: no libtcam-fi.so there", path.display()));
        }
        let places = places();
        places.iter().find_map(|place| Self::in_directory(place)).ok_or_else(|| {
            let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
            message!(
                "the provider libtcam-fi.so was not found ({}); build it with `cargo build \
                 --release -p tcam-provider`, or give its place with --provider",
                places.join(", ")
            )
        })
    }
}

/// Returns the directories to search: that of this program, where cargo also puts the library;
/// `../lib/libfabric` from there, where `make install` puts it; and FI_PROVIDER_PATH.
fn places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    if let Some(directory) = program.ok().as_deref().and_then(Path::parent) {
        places.push(directory.to_owned());
        if let Some(prefix) = directory.parent() {
            places.push(prefix.join("lib/libfabric"));
        }
    }
    if let Some(list) = std::env::var_os("FI_PROVIDER_PATH") {
        places.extend(std::env::split_paths(&list));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_by_file_and_by_directory() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("libtcam-fi.so");
        assert!(Library::find(Some(directory.path())).is_err());
        assert!(Library::find(Some(&file)).is_err());
        std::fs::write(&file, "").unwrap();
        let by_file = Library::find(Some(&file)).unwrap();
        assert_eq!(by_file, Library::find(Some(directory.path())).unwrap());
        assert_eq!(by_file.file, file.canonicalize().unwrap());
        for (content, good) in [("", false), ("\x7fELF", false), ("\x7fELF fi_prov_ini", true)] {
            std::fs::write(&file, content).unwrap();
            assert_eq!(Library::find_whole(Some(&file)).is_ok(), good, "{content}");
        }
    }

    #[test]
    fn libraries_that_the_user_preloads_stay() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().to_owned();
        let library = Library { file: place.join("libtcam-fi.so"), directory: place.clone() };
        let preloaded = |mpi, of_user: Option<&str>| {
            library.preloaded(mpi, of_user.map(OsString::from)).map_err(|error| error.to_string())
        };
        assert!(preloaded(None, None).is_err());
        let file = place.join("libtcam-sites.so").display().to_string();
        std::fs::write(&file, "").unwrap();
        for mpi in [None, Some(Mpi::Open(5))] {
            assert_eq!(preloaded(mpi, None).unwrap(), *file);
            assert_eq!(preloaded(mpi, Some("")).unwrap(), *file);
            assert_eq!(preloaded(mpi, Some("a.so b.so")).unwrap(), *format!("{file}:a.so b.so"));
        }
        assert!(preloaded(Some(Mpi::Mpich), None).unwrap_err().contains("libtcam-sites-large.so"));
        let large = place.join("libtcam_sites_large.so").display().to_string();
        std::fs::write(&large, "").unwrap();
        let all = format!("{file}:{large}:a.so");
        assert_eq!(preloaded(Some(Mpi::Intel), Some("a.so")).unwrap(), *all);
        let ours = [(PRELOAD.to_owned(), OsString::new())];
        assert!(handed_on(&ours).split(';').any(|name| name == PRELOAD));
        assert!(!handed_on(&[]).contains(PRELOAD));
        let spaced = place.join("a b");
        std::fs::create_dir(&spaced).unwrap();
        std::fs::write(spaced.join("libtcam_sites.so"), "").unwrap();
        let library = Library { file: spaced.join("libtcam-fi.so"), directory: spaced };
        assert!(
            library.preloaded(None, None).unwrap_err().to_string().contains("put the provider")
        );
    }

    #[test]
    fn variables_of_libfabric_go_to_other_hosts() {
        let ours = ["FI_TCAM_PRQ_ENTRIES", "FI_PROVIDER", "OMPI_MCA_pml"];
        let ours = ours.map(|name| (name.to_owned(), OsString::new()));
        let names = handed_on(&ours);
        let names: Vec<_> = names.split(';').collect();
        assert!(names.contains(&"FI_PROVIDER") && names.contains(&"FI_TCAM_PRQ_ENTRIES"));
        assert!(!names.contains(&"OMPI_MCA_pml"), "Open MPI hands these on by itself");
    }

    #[test]
    fn each_run_has_a_different_key() {
        let library = Library { directory: "/p".into(), file: "/p/libtcam-fi.so".into() };
        let key = |settings: &Settings| {
            let place = Path::new("/reports");
            let made = Environment::new(Some(Mpi::Mpich), &library, settings, place).unwrap();
            let of = |(name, value): &(String, OsString)| (name == KEY).then(|| value.clone());
            made.variables.iter().filter_map(of).collect::<Vec<_>>()
        };
        let (first, second) = (key(&Settings::default()), key(&Settings::default()));
        assert!(first.len() == 1 && first[0].len() == 32 && first != second);
        let given = Settings::parse(&["job_key=mine".to_owned()]).unwrap();
        assert_eq!(key(&given), ["mine"]);
    }

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
}
