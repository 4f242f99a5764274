// SPDX-License-Identifier: BSD-2-Clause
//! Finds the MPI library that a program is linked to.

use super::Mpi;

/// First bytes of a binary. Scripts begin with other bytes.
const ELF: &[u8] = b"\x7fELF";

/// Names of MPI libraries that a linked program contains, each with the name of the MPI. A program
/// in Fortran or C++ may contain only the name of the library of its language.
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
    // Cray MPICH has a library for each compiler, such as libmpi_gnu_123.so.12.
    (b"libmpi_cray", "Cray MPICH"),
    (b"libmpi_gnu", "Cray MPICH"),
    (b"libmpifort_cray", "Cray MPICH"),
    (b"libmpifort_gnu", "Cray MPICH"),
];

/// Returns the name of the MPI that a program is linked to, or `None` if it names none of
/// [`LIBRARIES`].
pub(crate) fn of_program(content: &[u8]) -> Option<&'static str> {
    let has = |name: &[u8]| content.windows(name.len()).any(|part| part == name);
    let linked = LIBRARIES.iter().find(|(name, _)| content.starts_with(ELF) && has(name));
    linked.map(|(_, of)| *of)
}

/// Returns true if a program that is linked to the library of this name can be started with the
/// launcher of this MPI.
pub(crate) fn fits(library: &str, mpi: Mpi) -> bool {
    library.contains(match mpi {
        Mpi::Open(_) => "Open MPI",
        Mpi::Mpich => "MPICH",
        Mpi::Intel => "Intel MPI",
    })
}
