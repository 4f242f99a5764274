// SPDX-License-Identifier: BSD-2-Clause
//! What Ghazimirsaeed, Grant and Afsahi print: *A dynamic, unified design for
//! dedicated message matching engines for collective and point-to-point
//! communications*, Parallel Computing 89 (2019). Figures are bars without numbers;
//! these are the numbers that the text says of them. Where it says how long queues were,
//! *Tail queues* does, CCPE 2019.

use matching::HostEngine;

use crate::workload::pattern::Pattern;

/// The applications with the processes they were run on.
pub(super) const APPLICATIONS: [(Pattern, &[u32]); 4] = [
    (Pattern::Radix, LARGE),
    (Pattern::Nbody, SMALL),
    (Pattern::Miniamr, LARGE),
    (Pattern::Fds, LARGE),
];
/// Processes of MPI_Gather (Fig. 5a).
pub(super) const GATHER: &[u32] = &[1024, 2048, 4096];
/// k_C and k_P of the applications, and k_C of the collective operations.
pub(super) const K: u32 = 8;
pub(super) const K_OPERATIONS: u32 = 1;
/// Processes of the queue lengths in *Tail queues*.
pub(super) const LENGTHS: &[u32] = &[4096];

const LARGE: &[u32] = &[512, 1024, 2048];
const SMALL: &[u32] = &[256, 512, 1024];
const PRQ: &[&str] = &["PRQ"];
const UMQ: &[&str] = &["UMQ"];
const EITHER: &[&str] = &["PRQ", "UMQ"];
const BOTH: &[&str] = &[""];
const ALL: &str = "all";
const COLLECTIVE: &str = "collective";
const POINT_TO_POINT: &str = "point-to-point";
const COL_PNP: HostEngine = HostEngine::ColPnp;
const COL_LL: HostEngine = HostEngine::ColList;
const LL_PNP: HostEngine = HostEngine::ListPnp;
const OMPI: HostEngine = HostEngine::RankArray;

/// How a paper's number is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Says {
    /// The largest over its processes.
    UpTo,
    /// All of them are near it.
    About,
}

/// A number in the paper's text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// Where it is said.
    pub(super) at: &'static str,
    pub(super) pattern: Pattern,
    /// The processes that it is said of.
    pub(super) ranks: &'static [u32],
    /// The queues that it is said of; the larger of two.
    pub(super) queues: &'static [&'static str],
    pub(super) traffic: &'static str,
    pub(super) engine: HostEngine,
    pub(super) k: u32,
    pub(super) metric: &'static str,
    pub(super) figure: f64,
    pub(super) says: Says,
}

/// "Up to" a speedup of searches in an application with k_C = k_P = 8.
const fn faster(
    at: &'static str,
    (pattern, ranks): (Pattern, &'static [u32]),
    queues: &'static [&'static str],
    traffic: &'static str,
    engine: HostEngine,
    figure: f64,
) -> Claim {
    let (k, metric, says) = (K, "speedup", Says::UpTo);
    Claim { at, pattern, ranks, queues, traffic, engine, k, metric, figure, says }
}

/// "Around 1 in all cases".
const fn the_same(
    at: &'static str,
    of: (Pattern, &'static [u32]),
    queues: &'static [&'static str],
    traffic: &'static str,
    engine: HostEngine,
) -> Claim {
    Claim { says: Says::About, ..faster(at, of, queues, traffic, engine, 1.0) }
}

/// Queues made.
const fn made(
    at: &'static str,
    (pattern, ranks): (Pattern, &'static [u32]),
    queues: &'static [&'static str],
    traffic: &'static str,
    k: u32,
    figure: f64,
) -> Claim {
    let of = faster(at, (pattern, ranks), queues, traffic, COL_PNP, figure);
    Claim { k, metric: "queues", ..of }
}

/// Overhead over search time (Table 2).
const fn overhead(pattern: Pattern, ranks: &'static [u32], figure: f64) -> Claim {
    let of = faster("Table 2", (pattern, ranks), BOTH, "", COL_PNP, figure);
    Claim { metric: "overhead", ..of }
}

/// Speedup of an operation or of a whole program.
const fn through_mpi(
    at: &'static str,
    of: (Pattern, &'static [u32]),
    engine: HostEngine,
    k: u32,
    figure: f64,
) -> Claim {
    Claim { k, metric: "time speedup", ..faster(at, of, BOTH, "", engine, figure) }
}

/// Length of a queue.
const fn longest(pattern: Pattern, queues: &'static [&'static str], figure: f64) -> Claim {
    let at = "*Tail queues*, Table 2";
    let of = faster(at, (pattern, LENGTHS), queues, "", HostEngine::List, figure);
    Claim { metric: "longest", ..of }
}

const RADIX: (Pattern, &[u32]) = APPLICATIONS[0];
const NBODY: (Pattern, &[u32]) = APPLICATIONS[1];
const MINIAMR: (Pattern, &[u32]) = APPLICATIONS[2];
const FDS: (Pattern, &[u32]) = APPLICATIONS[3];

/// All of them, in the order of the figures.
pub(super) const CLAIMS: &[Claim] = &[
    // The text names no processes for 5b and 5c: those of the figure's other part.
    through_mpi("Fig. 5a", (Pattern::Gather, &[1024]), COL_PNP, K_OPERATIONS, 1.5),
    through_mpi("Fig. 5a", (Pattern::Gather, &[2048]), COL_PNP, K_OPERATIONS, 2.4),
    through_mpi("Fig. 5a", (Pattern::Gather, &[4096]), COL_PNP, K_OPERATIONS, 5.4),
    made("section 5.2", (Pattern::Gather, &[1024]), PRQ, COLLECTIVE, K_OPERATIONS, 32.0),
    made("section 5.2", (Pattern::Gather, &[2048]), PRQ, COLLECTIVE, K_OPERATIONS, 45.0),
    made("section 5.2", (Pattern::Gather, &[4096]), PRQ, COLLECTIVE, K_OPERATIONS, 64.0),
    through_mpi("Fig. 5b", (Pattern::Allreduce, GATHER), COL_PNP, K_OPERATIONS, 1.16),
    through_mpi("Fig. 5c", (Pattern::Iallgather, GATHER), COL_PNP, K_OPERATIONS, 1.26),
    faster("Fig. 7a", RADIX, UMQ, ALL, COL_PNP, 1.15),
    faster("Fig. 7b", RADIX, PRQ, ALL, COL_PNP, 1.14),
    the_same("Fig. 7b", RADIX, PRQ, POINT_TO_POINT, COL_PNP),
    faster("Fig. 7c", NBODY, UMQ, ALL, COL_PNP, 1.94),
    faster("Fig. 7c", NBODY, UMQ, ALL, COL_LL, 1.18),
    faster("Fig. 6c", NBODY, UMQ, COLLECTIVE, COL_PNP, 1.09),
    faster("Fig. 7c", NBODY, UMQ, COLLECTIVE, OMPI, 1.1),
    faster("Fig. 7c", NBODY, UMQ, POINT_TO_POINT, COL_LL, 1.23),
    faster("Fig. 7c", NBODY, UMQ, POINT_TO_POINT, LL_PNP, 2.26),
    faster("Fig. 7d", NBODY, PRQ, ALL, COL_PNP, 1.89),
    faster("Fig. 7d", NBODY, PRQ, ALL, COL_LL, 1.27),
    faster("Fig. 6d", NBODY, PRQ, COLLECTIVE, COL_PNP, 1.33),
    faster("Fig. 7d", NBODY, PRQ, COLLECTIVE, OMPI, 1.22),
    faster("Fig. 7d", NBODY, PRQ, POINT_TO_POINT, COL_LL, 1.37),
    faster("Fig. 7d", NBODY, PRQ, POINT_TO_POINT, LL_PNP, 2.28),
    faster("Fig. 6e", MINIAMR, UMQ, COLLECTIVE, COL_PNP, 1.37),
    the_same("Fig. 8a", MINIAMR, UMQ, ALL, LL_PNP),
    the_same("Fig. 8a", MINIAMR, UMQ, POINT_TO_POINT, COL_PNP),
    the_same("Fig. 8a", MINIAMR, UMQ, POINT_TO_POINT, COL_LL),
    the_same("Fig. 8a", MINIAMR, UMQ, POINT_TO_POINT, LL_PNP),
    the_same("Fig. 8a", MINIAMR, UMQ, POINT_TO_POINT, OMPI),
    faster("Fig. 6f", MINIAMR, PRQ, COLLECTIVE, COL_PNP, 1.46),
    the_same("Fig. 8b", MINIAMR, PRQ, ALL, LL_PNP),
    the_same("Fig. 8b", MINIAMR, PRQ, POINT_TO_POINT, COL_PNP),
    the_same("Fig. 8b", MINIAMR, PRQ, POINT_TO_POINT, COL_LL),
    the_same("Fig. 8b", MINIAMR, PRQ, POINT_TO_POINT, LL_PNP),
    the_same("Fig. 8b", MINIAMR, PRQ, POINT_TO_POINT, OMPI),
    faster("abstract", FDS, EITHER, COLLECTIVE, COL_PNP, 80.0),
    faster("Fig. 8c", FDS, UMQ, ALL, COL_LL, 27.0),
    faster("Fig. 6g", FDS, UMQ, COLLECTIVE, COL_PNP, 42.0),
    faster("Fig. 8c", FDS, UMQ, COLLECTIVE, LL_PNP, 17.0),
    faster("Fig. 8c", FDS, UMQ, POINT_TO_POINT, COL_PNP, 4.4),
    faster("Fig. 8c", FDS, UMQ, POINT_TO_POINT, COL_LL, 3.34),
    faster("Fig. 8d", FDS, PRQ, ALL, COL_LL, 52.0),
    faster("Fig. 6h", FDS, PRQ, COLLECTIVE, COL_PNP, 42.0),
    faster("Fig. 8d", FDS, PRQ, COLLECTIVE, LL_PNP, 2.0),
    faster("Fig. 8d", FDS, PRQ, POINT_TO_POINT, COL_PNP, 73.0),
    faster("Fig. 8d", FDS, PRQ, POINT_TO_POINT, COL_LL, 71.0),
    made("section 6", (Pattern::Miniamr, &[2048]), EITHER, COLLECTIVE, K, 74.0),
    made("section 5.4.1", (Pattern::Fds, &[1024]), EITHER, COLLECTIVE, K, 256.0),
    made("section 5.4.1", (Pattern::Fds, &[2048]), EITHER, COLLECTIVE, K, 360.0),
    made("section 6", (Pattern::Fds, &[2048]), EITHER, COLLECTIVE, K, 416.0),
    made("section 6", (Pattern::Fds, &[2048]), EITHER, POINT_TO_POINT, K, 194.0),
    through_mpi("Fig. 11", FDS, COL_PNP, K, 5.5),
    through_mpi("Fig. 11", FDS, COL_LL, K, 5.0),
    through_mpi("Fig. 11", FDS, LL_PNP, K, 2.3),
    through_mpi("Fig. 11", FDS, OMPI, K, 4.8),
    overhead(Pattern::Radix, &[512], 0.0359),
    overhead(Pattern::Radix, &[1024], 0.03027),
    overhead(Pattern::Radix, &[2048], 0.0175),
    overhead(Pattern::Nbody, &[256], 0.1563),
    overhead(Pattern::Nbody, &[512], 0.0589),
    overhead(Pattern::Nbody, &[1024], 0.0343),
    overhead(Pattern::Miniamr, &[512], 0.0192),
    overhead(Pattern::Miniamr, &[1024], 0.0366),
    overhead(Pattern::Miniamr, &[2048], 0.0138),
    overhead(Pattern::Fds, &[512], 0.0027),
    overhead(Pattern::Fds, &[1024], 0.0021),
    overhead(Pattern::Fds, &[2048], 0.0020),
    longest(Pattern::Fds, PRQ, 24.0),
    longest(Pattern::Fds, UMQ, 8147.0),
];
