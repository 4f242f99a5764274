// SPDX-License-Identifier: BSD-2-Clause
//! The program behind a launcher: checks that it exists, and is linked to the launcher's MPI.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use host::regular;

use super::finding::Finding;
use crate::file::LONGEST;
use crate::launch::launcher::{self, Mpi};

/// First bytes of a binary; scripts begin otherwise.
const ELF: &[u8] = b"\x7fELF";

/// Names of MPI libraries, as a program that is linked to one contains them. A program in Fortran
/// or C++ may name only the library of its language.
const LIBRARIES: &[(&[u8], &str)] = &[
    (b"libmpifort.so.12", "MPICH or Intel MPI"),
    (b"libmpicxx.so.12", "MPICH or Intel MPI"),
    (b"libmpi_mpifh.so.40", "Open MPI"),
    (b"libmpi_usempif08.so.40", "Open MPI"),
    (b"libmpi_usempi_ignore_tkr.so.40", "Open MPI"),
    (b"libmpi_cxx.so.40", "Open MPI"),
    (b"libmpi.so.12", "MPICH or Intel MPI"),
    (b"libmpich.so", "MPICH"),
    (b"libmpi.so.40", "Open MPI"),
];

/// Returns true if a file is a program linked to an MPI library.
fn is_linked(path: &Path) -> bool {
    regular::read(path, LONGEST).is_ok_and(|content| library(&content).is_some())
}

/// Returns the path of the first of these words that is a program linked to an MPI library.
fn linked(words: &[&OsStr]) -> Option<PathBuf> {
    words.iter().filter_map(|word| launcher::find(word).ok()).find(|path| is_linked(path))
}

/// Returns the index of the first of these words that is a program linked to an MPI library.
pub(super) fn position(words: &[OsString]) -> Option<usize> {
    words.iter().position(|word| launcher::find(word).is_ok_and(|path| is_linked(&path)))
}

/// Checks the program of a command without a launcher of an MPI: one alone, or started by a
/// scheduler.
pub(super) fn alone(command: &[OsString]) -> Option<Finding> {
    let (path, of) = linked_program(command)?;
    Some(Finding::good(format!("MPI: {} is linked to {of}", path.display())))
}

/// Returns the MPI that the program of a command is linked to.
pub(super) fn linked_to(command: &[OsString]) -> Option<&'static str> {
    linked_program(command).map(|(_, of)| of)
}

fn linked_program(command: &[OsString]) -> Option<(PathBuf, &'static str)> {
    let words: Vec<&OsStr> = command.iter().map(OsString::as_os_str).collect();
    let path = linked(&words)?;
    let of = library(&regular::read(&path, LONGEST).ok()?)?;
    Some((path, of))
}

/// Checks the program of a command with a launcher of this MPI.
pub(super) fn program(command: &[OsString], mpi: Mpi) -> Option<Finding> {
    let launcher = launcher::in_command(command)?;
    let behind = command.iter().skip_while(|word| *word != launcher).skip(1);
    let words: Vec<&OsStr> = behind.map(OsString::as_os_str).collect();
    // Numbers and most other arguments of options are no programs; `node` is one on some hosts.
    let mut programs = words.iter().filter_map(|word| launcher::find(word).ok());
    let Some(path) = linked(&words).or_else(|| programs.next()) else {
        let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        return Some(Finding::bad(
            format!("MPI: no program that can be run in `{}`", shown.join(" ")),
            "give its path, and make it executable",
        ));
    };
    Some(judge(&path, &regular::read(&path, LONGEST).ok()?, mpi))
}

/// Returns the MPI that a program is linked to.
fn library(content: &[u8]) -> Option<&'static str> {
    let has = |name: &[u8]| content.windows(name.len()).any(|part| part == name);
    let linked = LIBRARIES.iter().find(|(name, _)| content.starts_with(ELF) && has(name));
    linked.map(|(_, of)| *of)
}

fn judge(path: &Path, content: &[u8], mpi: Mpi) -> Finding {
    let shown = path.display();
    let Some(of) = library(content) else {
        return Finding::note(
            format!("MPI: {shown} is not linked to an MPI library itself"),
            "well so if it loads MPI as it runs (a script, Python); otherwise it is no MPI program",
        );
    };
    let of_launcher = match mpi {
        Mpi::Open(_) => "Open MPI",
        Mpi::Mpich => "MPICH",
        Mpi::Intel => "Intel MPI",
    };
    if of.contains(of_launcher) {
        return Finding::good(format!("MPI: {shown} is linked to {of}"));
    }
    Finding::bad(
        format!("MPI: {shown} is linked to {of}, and the launcher is of {mpi}"),
        "start it with the launcher of the MPI that it was compiled with",
    )
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn programs_are_judged_by_their_mpi_library() {
        let judged = |content: &[u8], mpi| judge(Path::new("app"), content, mpi).verdict;
        assert_eq!(judged(b"\x7fELF..libmpi.so.40\0", Mpi::Open(5)), Verdict::Good);
        assert_eq!(judged(b"\x7fELF..libmpi.so.40\0", Mpi::Mpich), Verdict::Bad);
        assert_eq!(judged(b"\x7fELF..libmpi.so.12\0", Mpi::Intel), Verdict::Good);
        assert_eq!(judged(b"\x7fELF..libmpi_mpifh.so.40\0", Mpi::Open(5)), Verdict::Good);
        assert_eq!(judged(b"\x7fELF..libmpi_mpifh.so.40\0", Mpi::Mpich), Verdict::Bad);
        assert_eq!(judged(b"\x7fELF..libmpifort.so.12\0", Mpi::Mpich), Verdict::Good);
        assert_eq!(judged(b"\x7fELF..libmpi.so.12\0", Mpi::Mpich), Verdict::Good);
        assert_eq!(judged(b"\x7fELF..libmpi.so.12\0", Mpi::Open(4)), Verdict::Bad);
        assert_eq!(judged(b"#!/bin/sh\n", Mpi::Mpich), Verdict::Note);
        assert_eq!(judged(b"\x7fELF..libc.so.6\0", Mpi::Mpich), Verdict::Note);
    }

    #[test]
    fn a_missing_program_is_bad() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let missing = program(&words("mpiexec -n 2 ./no-such-program"), Mpi::Mpich).unwrap();
        assert_eq!(missing.verdict, Verdict::Bad);
        assert!(missing.what.contains("`-n 2 ./no-such-program`"), "{}", missing.what);
        let shell = program(&words("env A=1 mpiexec -n 2 sh -c true"), Mpi::Mpich).unwrap();
        assert_eq!(shell.verdict, Verdict::Note);
    }

    #[test]
    fn the_mpi_of_a_program_is_found_without_a_launcher() {
        let directory = tempfile::tempdir().unwrap();
        let app = directory.path().join("app");
        fs::write(&app, b"\x7fELF..libmpi.so.40\0").unwrap();
        let words =
            |app: &Path| ["sh", "-n", "2"].map(OsString::from).into_iter().chain([app.into()]);
        let words: Vec<_> = words(&app).collect();
        assert!(alone(&words).is_none(), "the program is not executable");
        fs::set_permissions(&app, fs::Permissions::from_mode(0o755)).unwrap();
        let finding = alone(&words).unwrap();
        assert_eq!(finding.verdict, Verdict::Good);
        assert!(finding.what.ends_with("app is linked to Open MPI"), "{}", finding.what);
    }
}
