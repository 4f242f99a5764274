// SPDX-License-Identifier: BSD-2-Clause
//! Checks of libfabric and of the MPI, by running their own programs.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Command;

use nic::params::PREFIX;

use super::finding::Finding;
use super::program::{alone, program};
use crate::launch::launcher;
use crate::launch::library::Library;
use crate::launch::software::{self, Device};

/// Returns the lines that a program prints, or none if it cannot be run.
fn lines_of(command: &mut Command) -> Option<Vec<String>> {
    let output = command.output().ok()?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Some(text.lines().map(str::to_owned).collect())
}

/// Checks that libfabric's fi_info lists the provider, if fi_info is installed.
pub(super) fn fi_info(library: &Library) -> Vec<Finding> {
    let Some(lines) = lines_of(Command::new("fi_info").arg("--version")) else {
        return vec![Finding::note(
            "libfabric: there is no fi_info to ask",
            "MPIs that bring their own libfabric do not need it; Debian has it in libfabric-bin",
        )];
    };
    let version = |name: &str| {
        lines.iter().find_map(|line| line.strip_prefix(name)).unwrap_or("?").trim().to_owned()
    };
    let version = version("libfabric:");
    let mut listing = Command::new("fi_info");
    listing.args(["-p", "tcam"]).env("FI_PROVIDER_PATH", &library.directory);
    // Other checks report variables of tcam.
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            listing.env_remove(name);
        }
    }
    let listing = lines_of(listing.env_remove("FI_PROVIDER")).unwrap_or_default();
    if listing.iter().any(|line| line.trim() == "provider: tcam") {
        return vec![Finding::good(format!("libfabric {version} (fi_info) lists the provider"))];
    }
    let said = listing.last().map_or("", |line| line.as_str());
    vec![Finding::bad(
        format!("libfabric {version} (fi_info) does not list the provider: {said}"),
        format!(
            "see why: FI_PROVIDER_PATH={} FI_LOG_LEVEL=info fi_info -p tcam",
            library.directory.display()
        ),
    )]
}

/// Checks the MPI of a command: its launcher, and the libfabric that it can use.
pub(super) fn mpi(command: &[OsString]) -> Vec<Finding> {
    let Some(first) = command.first() else {
        return vec![Finding::note(
            "MPI: no command given, so none was checked",
            "tcam doctor -- mpiexec -n 2 ./app",
        )];
    };
    if let Err(error) = launcher::find(first) {
        return vec![not_started(first, &error)];
    }
    let Some(launcher) = launcher::in_command(command) else {
        // The command begins with `srun`, or is a program that is run alone.
        return vec![alone(command).unwrap_or_else(|| {
            Finding::note(
                format!("MPI: `{}` is no launcher I know", first.to_string_lossy()),
                "give the whole command, mpiexec included; to run it, choose with `tcam run --mpi`",
            )
        })];
    };
    let path = match launcher::find(launcher) {
        Ok(path) => path,
        Err(error) => return vec![not_started(launcher, &error)],
    };
    let text = launcher::version_text(path.as_os_str()).unwrap_or_default();
    let shown = path.display();
    let Some(mpi) = launcher::recognise(&text) else {
        return vec![Finding::note(
            format!("MPI: {shown} is of an MPI I do not know"),
            "choose the nearest with `tcam run --mpi`",
        )];
    };
    let mut findings = vec![Finding::good(format!("MPI: {shown} is {mpi}"))];
    findings.extend(program(command, mpi));
    findings.extend(software::device(&path, mpi).map(finding));
    findings.extend(bundled(&path));
    findings
}

/// Makes a finding of the answer of the MPI's own tools.
fn finding(device: Device) -> Finding {
    match device {
        Device::Ready { what } => Finding::good(what),
        Device::Unfit { what, advice } => Finding::bad(what, advice),
    }
}

/// The finding for a word that should be a program and cannot be started.
fn not_started(program: &OsStr, error: &io::Error) -> Finding {
    let shown = program.to_string_lossy();
    if error.kind() == io::ErrorKind::NotFound {
        return Finding::bad(
            format!("MPI: there is no program `{shown}`"),
            "install it, give its full path, or put its directory into PATH",
        );
    }
    Finding::bad(format!("MPI: `{shown}` cannot be started: {error}"), "make it executable")
}

/// Finds the libfabric that an MPI contains, below its prefix.
fn bundled(launcher: &Path) -> Option<Finding> {
    let prefix = launcher.canonicalize().ok()?.parent()?.parent()?.to_owned();
    // A system directory has the system's libfabric, which fi_info showed.
    if prefix == Path::new("/usr") || prefix == Path::new("/usr/local") {
        return None;
    }
    let places = ["lib/mpich", "lib/openmpi", "lib", "libfabric/lib", "opt/mpi/libfabric/lib"];
    let file =
        places.iter().map(|place| prefix.join(place).join("libfabric.so.1")).find(|f| f.is_file());
    Some(match file {
        Some(file) => Finding::good(format!("MPI: brings its own libfabric, {}", file.display())),
        None => Finding::note(
            "MPI: brings no libfabric of its own",
            "it takes the system's, or that of LD_LIBRARY_PATH (Intel MPI: I_MPI_OFI_LIBRARY)",
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn a_program_that_cannot_be_started_is_bad_and_an_unknown_launcher_is_not() {
        for (command, verdict, what) in [
            ("no-such-directory/mpiexec", Verdict::Bad, "no program `no-such-directory/mpiexec`"),
            ("no-such-program ./app", Verdict::Bad, "no program `no-such-program`"),
            ("no-such-program mpiexec ./app", Verdict::Bad, "no program `no-such-program`"),
            ("sh no-such-directory/mpiexec", Verdict::Bad, "no-such-directory/mpiexec`"),
            ("/ ./app", Verdict::Bad, "`/` cannot be started: Permission denied"),
            ("sh ./app", Verdict::Note, "`sh` is no launcher I know"),
        ] {
            let words: Vec<_> = command.split(' ').map(OsString::from).collect();
            let findings = mpi(&words);
            assert_eq!(findings[0].verdict, verdict, "{command}");
            assert!(findings[0].what.contains(what), "{}", findings[0].what);
        }
    }
}
