// SPDX-License-Identifier: BSD-2-Clause
//! Checks the MPI of a command: its launcher, the program, and the libfabric that the MPI can use.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use host::regular;

use super::findings::{Findings, Subject};
use crate::file::LONGEST;
use crate::launch::{Mpi, Unfit, launcher, mpi_library};

/// A program that is linked to an MPI library.
pub(super) struct Linked {
    /// Index of the program among the words that were searched.
    pub(super) at: usize,
    path: PathBuf,
    /// Name of the MPI.
    pub(super) library: &'static str,
}

/// Finds the first of these words that is a program linked to an MPI library.
pub(super) fn linked(words: &[OsString]) -> Option<Linked> {
    words.iter().enumerate().find_map(|(at, word)| {
        let path = launcher::find(word).ok()?;
        let library = mpi_library::of_program(&regular::read(&path, LONGEST).ok()?)?;
        Some(Linked { at, path, library })
    })
}

/// Checks the MPI of a command: its launcher, its program, and the libfabric that the MPI can use.
pub(super) fn mpi(subject: &Subject<'_>, findings: &mut Findings) {
    let command = subject.command;
    let Some(first) = command.first() else {
        return findings.note(
            "MPI: no command given, so none was checked",
            "tcam doctor -- mpiexec -n 2 ./app",
        );
    };
    if let Err(error) = launcher::find(first) {
        return not_started(first, &error, findings);
    }
    let Some(launcher) = launcher::in_command(command) else {
        // The command begins with `srun`, or is a program that is run alone.
        return match linked(command) {
            Some(Linked { path, library, .. }) => {
                findings.good(format!("MPI: {} is linked to {library}", path.display()));
            }
            None => findings.note(
                format!("MPI: `{}` is no launcher that tcam knows", first.to_string_lossy()),
                "give the whole command, mpiexec included; to run it, choose with `tcam run --mpi`",
            ),
        };
    };
    let path = match launcher::find(launcher) {
        Ok(path) => path,
        Err(error) => return not_started(launcher, &error, findings),
    };
    let text = launcher::version_text(path.as_os_str()).unwrap_or_default();
    let shown = path.display();
    let Some(mpi) = launcher::recognise(&text) else {
        return findings.note(
            format!("MPI: {shown} is of an MPI that tcam does not know"),
            "choose the nearest with `tcam run --mpi`",
        );
    };
    findings.good(format!("MPI: {shown} is {mpi}"));
    program(command, launcher, mpi, findings);
    if let Some(option) = launcher::invalid_ranks(command) {
        findings.bad(
            format!("MPI: `{option}` gives no number of ranks"),
            "give a number from 1, as in `-n 4`",
        );
    }
    options(command, launcher, findings);
    match launcher::device(&path, mpi) {
        Some(Ok(what)) => findings.good(what),
        Some(Err(Unfit { what, advice })) => findings.bad(what, advice),
        None => {}
    }
    bundled(&path, findings);
}

/// Checks the options of a launcher. Some options choose another communication layer or provider,
/// and `tcam run` does not overrule them.
fn options(command: &[OsString], launcher: &OsStr, findings: &mut Findings) {
    let behind = command.iter().position(|word| word == launcher).map_or(0, |at| at + 1);
    let words = &command[behind..];
    let words = &words[..linked(words).map_or(words.len(), |linked| linked.at)];
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    for at in 0..words.len() {
        let word = |after: usize| words.get(at + after).map_or("", |word| word.as_ref());
        let len = match (word(0).trim_start_matches('-'), word(1), word(2)) {
            ("mca" | "pmixmca", "pml", layer) if layer != "cm" => 3,
            ("mca", "mtl", layer) if layer != "ofi" => 3,
            ("env" | "genv", "FI_PROVIDER", provider) if provider != "tcam" => 3,
            ("x", set, _) if set.starts_with("FI_PROVIDER=") && !set.ends_with("=tcam") => 2,
            _ => continue,
        };
        let option = words[at..(at + len).min(words.len())].join(" ");
        findings.bad(
            format!("MPI: `{option}` keeps the program from tcam"),
            "leave this option out: `tcam run` sets what chooses tcam",
        );
    }
}

/// Adds the finding for a word that should be a program and cannot be started.
fn not_started(program: &OsStr, error: &io::Error, findings: &mut Findings) {
    let shown = program.to_string_lossy();
    if error.kind() == io::ErrorKind::NotFound {
        return findings.bad(
            format!("MPI: there is no program `{shown}`"),
            "install it, give its full path, or put its directory into PATH",
        );
    }
    findings.bad(format!("MPI: `{shown}` cannot be started: {error}"), "make it executable");
}

/// Checks that the program after a launcher of this MPI exists, and is linked to this MPI.
fn program(command: &[OsString], launcher: &OsStr, mpi: Mpi, findings: &mut Findings) {
    let behind = command.iter().position(|word| word == launcher).map_or(0, |at| at + 1);
    let words = &command[behind..];
    // If no word is linked to an MPI, the program is the first word that can be run. This may be an
    // argument of an option: `node` is a program on some hosts.
    let first = || words.iter().find_map(|word| launcher::find(word).ok());
    let Some(path) = linked(words).map(|linked| linked.path).or_else(first) else {
        let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        return findings.bad(
            format!("MPI: no program that can be run in `{}`", shown.join(" ")),
            "give its path, and make it executable",
        );
    };
    if let Ok(content) = regular::read(&path, LONGEST) {
        judge(&path, &content, mpi, findings);
    }
}

fn judge(path: &Path, content: &[u8], mpi: Mpi, findings: &mut Findings) {
    let shown = path.display();
    let Some(of) = mpi_library::of_program(content) else {
        return findings.note(
            format!("MPI: {shown} is not linked to an MPI library itself"),
            "this is right if it loads MPI at run time (a script, Python); otherwise it is no MPI \
             program",
        );
    };
    if mpi_library::fits(of, mpi) {
        return findings.good(format!("MPI: {shown} is linked to {of}"));
    }
    findings.bad(
        format!("MPI: {shown} is linked to {of}, and the launcher is of {mpi}"),
        "start it with the launcher of the MPI that it was compiled with",
    );
}

/// Reports the libfabric that an MPI contains below its prefix.
fn bundled(launcher: &Path, findings: &mut Findings) {
    let Ok(launcher) = launcher.canonicalize() else { return };
    let Some(prefix) = launcher.parent().and_then(Path::parent) else { return };
    // An MPI in a system directory uses the system's libfabric, which another check reports.
    if prefix == Path::new("/usr") || prefix == Path::new("/usr/local") {
        return;
    }
    let places = ["lib/mpich", "lib/openmpi", "lib", "libfabric/lib", "opt/mpi/libfabric/lib"];
    let mut files = places.iter().map(|place| prefix.join(place).join("libfabric.so.1"));
    match files.find(|file| file.is_file()) {
        Some(file) => {
            findings.good(format!("MPI: brings its own libfabric, {}", file.display()));
        }
        None => findings.note(
            "MPI: brings no libfabric of its own",
            "it takes the system's, or that of LD_LIBRARY_PATH (Intel MPI: I_MPI_OFI_LIBRARY)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::findings::Verdict;
    use super::super::findings::tests::{found, subject, verdict, words};
    use super::*;

    #[test]
    fn a_program_that_cannot_be_started_is_bad_and_an_unknown_launcher_is_not() {
        for (command, verdict, what) in [
            ("no-such-directory/mpiexec", Verdict::Bad, "no program `no-such-directory/mpiexec`"),
            ("no-such-program ./app", Verdict::Bad, "no program `no-such-program`"),
            ("no-such-program mpiexec ./app", Verdict::Bad, "no program `no-such-program`"),
            ("sh no-such-directory/mpiexec", Verdict::Bad, "no-such-directory/mpiexec`"),
            ("/ ./app", Verdict::Bad, "`/` cannot be started: Permission denied"),
            ("sh ./app", Verdict::Note, "`sh` is no launcher that tcam knows"),
        ] {
            let words = words(command);
            let findings = found(|findings| mpi(&subject(&words, 1), findings));
            assert_eq!(findings[0].verdict, verdict, "{command}");
            assert!(findings[0].what.contains(what), "{}", findings[0].what);
        }
    }

    #[test]
    fn programs_are_judged_by_their_mpi_library() {
        let judged = |content: &[u8], mpi| {
            verdict(|findings| judge(Path::new("app"), content, mpi, findings)).unwrap()
        };
        assert_eq!(judged(b"\x7fELF..libmpi.so.40\0", Mpi::Open(5)), Verdict::Good);
        assert_eq!(judged(b"\x7fELF..libmpi.so.40\0", Mpi::Mpich), Verdict::Bad);
        assert_eq!(judged(b"\x7fELF..libmpi.so.12\0", Mpi::Intel), Verdict::Good);
        assert_eq!(judged(b"\x7fELF..libmpi_mpifh.so.40\0", Mpi::Open(5)), Verdict::Good);
        assert_eq!(judged(b"\x7fELF..libmpi_mpifh.so.40\0", Mpi::Mpich), Verdict::Bad);
        assert_eq!(judged(b"\x7fELF..libmpifort.so.12\0", Mpi::Mpich), Verdict::Good);
        assert_eq!(judged(b"\x7fELF..libmpi.so.12\0", Mpi::Mpich), Verdict::Good);
        assert_eq!(judged(b"\x7fELF..libmpi.so.12\0", Mpi::Open(4)), Verdict::Bad);
        assert_eq!(judged(b"\x7fELF..libmpi_gnu_123.so.12\0", Mpi::Mpich), Verdict::Good);
        assert_eq!(judged(b"\x7fELF..libmpifort_cray.so.12\0", Mpi::Open(5)), Verdict::Bad);
        assert_eq!(judged(b"#!/bin/sh\n", Mpi::Mpich), Verdict::Note);
        assert_eq!(judged(b"\x7fELF..libc.so.6\0", Mpi::Mpich), Verdict::Note);
    }

    #[test]
    fn a_missing_program_is_bad() {
        let of = |command: &str| {
            let words = words(command);
            let launcher = launcher::in_command(&words).unwrap();
            found(|findings| program(&words, launcher, Mpi::Mpich, findings)).remove(0)
        };
        let missing = of("mpiexec -n 2 ./no-such-program");
        assert_eq!(missing.verdict, Verdict::Bad);
        assert!(missing.what.contains("`-n 2 ./no-such-program`"), "{}", missing.what);
        assert_eq!(of("env A=1 mpiexec -n 2 sh -c true").verdict, Verdict::Note);
    }

    #[test]
    fn the_mpi_of_a_program_is_found_without_a_launcher() {
        let directory = tempfile::tempdir().unwrap();
        let app = directory.path().join("app");
        fs::write(&app, b"\x7fELF..libmpi.so.40\0").unwrap();
        let mut words = words("sh -n 2");
        words.push(app.clone().into());
        assert!(linked(&words).is_none(), "the program is not executable");
        fs::set_permissions(&app, fs::Permissions::from_mode(0o755)).unwrap();
        let finding = found(|findings| mpi(&subject(&words, 1), findings)).remove(0);
        assert_eq!(finding.verdict, Verdict::Good);
        assert!(finding.what.ends_with("app is linked to Open MPI"), "{}", finding.what);
    }
}
