// SPDX-License-Identifier: BSD-2-Clause
//! Names of collective operations.

use super::kind::CollectiveId;

/// Names of MPICH's collective operations, by their tags from 1 up.
const MPICH_OPERATIONS: [&str; 28] = [
    "barrier",
    "bcast",
    "gather",
    "gatherv",
    "scatter",
    "scatterv",
    "allgather",
    "allgatherv",
    "alltoall",
    "alltoallv",
    "reduce",
    "reduce",
    "reduce",
    "allreduce",
    "allreduce",
    "allreduce",
    "reduce_scatter",
    "reduce_scatter",
    "reduce_scatter",
    "scan",
    "scan",
    "scan",
    "copy",
    "exscan",
    "alltoallw",
    "topology",
    "topology",
    "reduce_scatter_block",
];

/// Names of Open MPI's collective operations, by their tags from -10 down.
const OPEN_MPI_OPERATIONS: [&str; 17] = [
    "allgather",
    "allgatherv",
    "allreduce",
    "alltoall",
    "alltoallv",
    "alltoallw",
    "barrier",
    "bcast",
    "exscan",
    "gather",
    "gatherv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_block",
    "scan",
    "scatter",
    "scatterv",
];

/// Name of a blocking collective operation, the common name of all nonblocking ones, or `other
/// collective` if the tag is unknown.
pub(super) fn operation_name(open_mpi: bool, operation: u32) -> &'static str {
    if operation == CollectiveId::NONBLOCKING {
        return "nonblocking collective";
    }
    let (names, first) = match open_mpi {
        true => (&OPEN_MPI_OPERATIONS[..], 10),
        false => (&MPICH_OPERATIONS[..], 1),
    };
    let at = operation.checked_sub(first).and_then(|at| usize::try_from(at).ok());
    at.and_then(|at| names.get(at).copied()).unwrap_or("other collective")
}
