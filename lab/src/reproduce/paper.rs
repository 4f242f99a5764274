// SPDX-License-Identifier: BSD-2-Clause
//! What Ghazimirsaeed, Grant and Afsahi print: *A dynamic, unified design for
//! dedicated message matching engines for collective and point-to-point
//! communications*, Parallel Computing 89 (2019). Figures are bars without numbers;
//! these are the numbers that the text says of them, "up to" over processes.

use crate::workload::Pattern;

/// The applications with the processes they were run on.
pub(super) const APPLICATIONS: [(Pattern, [u32; 3]); 4] = [
    (Pattern::Radix, [512, 1024, 2048]),
    (Pattern::Nbody, [256, 512, 1024]),
    (Pattern::Miniamr, [512, 1024, 2048]),
    (Pattern::Fds, [512, 1024, 2048]),
];

/// Speedups over the list in one queue (PRQ, UMQ) for one kind of traffic, in the
/// order COL+PNP, COL+LL, LL+PNP, OMPI; empty where the text has none.
type Speedups = (Pattern, &'static str, &'static str, [&'static str; 4]);

const SPEEDUPS: [Speedups; 20] = [
    (Pattern::Radix, "PRQ", "all", ["1.14", "", "", ""]),
    (Pattern::Radix, "UMQ", "all", ["1.15", "", "", ""]),
    (Pattern::Nbody, "PRQ", "all", ["1.89", "1.27", "", ""]),
    (Pattern::Nbody, "PRQ", "collective", ["1.33", "", "", "1.22"]),
    (Pattern::Nbody, "PRQ", "point-to-point", ["", "1.37", "2.28", ""]),
    (Pattern::Nbody, "UMQ", "all", ["1.94", "1.18", "", ""]),
    (Pattern::Nbody, "UMQ", "collective", ["1.09", "", "", "1.1"]),
    (Pattern::Nbody, "UMQ", "point-to-point", ["", "1.23", "2.26", ""]),
    (Pattern::Miniamr, "PRQ", "all", ["", "", "1", ""]),
    (Pattern::Miniamr, "PRQ", "collective", ["1.46", "", "", ""]),
    (Pattern::Miniamr, "PRQ", "point-to-point", ["1", "1", "1", "1"]),
    (Pattern::Miniamr, "UMQ", "all", ["", "", "1", ""]),
    (Pattern::Miniamr, "UMQ", "collective", ["1.37", "", "", ""]),
    (Pattern::Miniamr, "UMQ", "point-to-point", ["1", "1", "1", "1"]),
    (Pattern::Fds, "PRQ", "all", ["", "52", "", ""]),
    (Pattern::Fds, "PRQ", "collective", ["42 (80)", "", "2", ""]),
    (Pattern::Fds, "PRQ", "point-to-point", ["73", "71", "", ""]),
    (Pattern::Fds, "UMQ", "all", ["", "27", "", ""]),
    (Pattern::Fds, "UMQ", "collective", ["42", "", "17", ""]),
    (Pattern::Fds, "UMQ", "point-to-point", ["4.4", "3.34", "", ""]),
];

/// The paper's speedups for a row of Figures 6 to 8.
pub(super) fn speedups(pattern: Pattern, queue: &str, kind: &str) -> [&'static str; 4] {
    let mut rows = SPEEDUPS.iter();
    rows.find(|row| (row.0, row.1, row.2) == (pattern, queue, kind)).map_or([""; 4], |row| row.3)
}

/// Queues made for collective elements by COL+PNP, where the text says (Fig. 9).
pub(super) const fn queues(pattern: Pattern, ranks: u32) -> &'static str {
    match (pattern, ranks) {
        (Pattern::Miniamr, 2048) => "at most 74",
        (Pattern::Fds, 1024) => "256",
        (Pattern::Fds, 2048) => "360 (416 + 194)",
        _ => "",
    }
}

/// Overhead over search time (Table 2).
pub(super) const fn overhead(pattern: Pattern, ranks: u32) -> &'static str {
    match (pattern, ranks) {
        (Pattern::Radix, 512) => "0.0359",
        (Pattern::Radix, 1024) => "0.0303",
        (Pattern::Radix, 2048) => "0.0175",
        (Pattern::Nbody, 256) => "0.1563",
        (Pattern::Nbody, 512) => "0.0589",
        (Pattern::Nbody, 1024) => "0.0343",
        (Pattern::Miniamr, 512) => "0.0192",
        (Pattern::Miniamr, 1024) => "0.0366",
        (Pattern::Miniamr, 2048) => "0.0138",
        (Pattern::Fds, 512) => "0.0027",
        (Pattern::Fds, 1024) => "0.0021",
        (Pattern::Fds, 2048) => "0.0020",
        _ => "",
    }
}

/// Processes of MPI_Gather, its latency over the list's and its queues with k = 1
/// (Fig. 5a).
pub(super) const GATHER: [(u32, &str, &str); 3] =
    [(1024, "1.5", "32"), (2048, "2.4", "45"), (4096, "5.4", "64")];
