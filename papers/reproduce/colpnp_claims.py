# SPDX-License-Identifier: BSD-2-Clause
"""Numbers printed by Ghazimirsaeed, Grant and Afsahi: *A dynamic, unified design for dedicated message
matching engines for collective and point-to-point communications*, Parallel Computing 89 (2019).

The figures of the paper are bars without numbers, so these are the numbers in its text and in Table 2.
The lengths of queues are from *Tail queues*, CCPE 2019.
"""

from collections import namedtuple

LARGE, SMALL = (512, 1024, 2048), (256, 512, 1024)
# Applications, each with the numbers of processes in the paper.
APPLICATIONS = {"radix": LARGE, "nbody": SMALL, "miniamr": LARGE, "fds": LARGE}
GATHER = (1024, 2048, 4096)  # numbers of processes in MPI_Gather (Fig. 5a)
K, K_OPERATIONS = 8, 1  # k_C and k_P of the applications, and k_C of the collective operations
LENGTHS = (4096,)  # number of processes for the queue lengths in *Tail queues*

PRQ, UMQ, EITHER, BOTH = ("PRQ",), ("UMQ",), ("PRQ", "UMQ"), ("",)
ALL, COLLECTIVE, POINT_TO_POINT = "all", "collective", "point-to-point"
COL_PNP, COL_LL, LL_PNP, OMPI = "col-pnp", "col-list", "list-pnp", "rank-array"

# A number that the paper prints. `at` is its place. `ranks` has the numbers of processes and `queues` the
# queues (BOTH: both together). If several are measured, the largest is compared ("up to"), or with `about` the
# one farthest from the number.
Claim = namedtuple("Claim", "at pattern ranks queues traffic engine k metric paper about")


def faster(at, pattern, queues, traffic, engine, paper):
    """Returns a claim on the largest speedup of searches in an application."""
    ranks = APPLICATIONS[pattern]
    return Claim(at, pattern, ranks, queues, traffic, engine, K, "speedup", paper, False)


def the_same(at, pattern, queues, traffic, engine):
    """Returns a claim that the speedup of searches is about 1 in all cases."""
    return faster(at, pattern, queues, traffic, engine, 1.0)._replace(about=True)


def made(at, pattern, ranks, queues, traffic, k, paper):
    return Claim(at, pattern, (ranks,), queues, traffic, COL_PNP, k, "queues", paper, False)


def overhead(pattern, *papers):
    """Yields, for each number of processes, a claim on the time of making queues divided by that of searches
    (Table 2)."""
    for ranks, paper in zip(APPLICATIONS[pattern], papers):
        yield Claim("Table 2", pattern, (ranks,), BOTH, "", COL_PNP, K, "overhead", paper, False)


def through_mpi(at, pattern, ranks, engine, k, paper):
    """Returns a claim on the speedup of an operation or of a whole program."""
    return Claim(at, pattern, ranks, BOTH, "", engine, k, "time speedup", paper, False)


def longest(queues, paper):
    at = "*Tail queues*, Table 2"
    return Claim(at, "fds", LENGTHS, queues, "", "list", K, "longest", paper, False)


# Operations first, then applications. The text states no numbers of processes for 5b and 5c; those of 5a
# are used.
CLAIMS = [
    through_mpi("Fig. 5a", "gather", (1024,), COL_PNP, K_OPERATIONS, 1.5),
    through_mpi("Fig. 5a", "gather", (2048,), COL_PNP, K_OPERATIONS, 2.4),
    through_mpi("Fig. 5a", "gather", (4096,), COL_PNP, K_OPERATIONS, 5.4),
    made("section 5.2", "gather", 1024, PRQ, COLLECTIVE, K_OPERATIONS, 32.0),
    made("section 5.2", "gather", 2048, PRQ, COLLECTIVE, K_OPERATIONS, 45.0),
    made("section 5.2", "gather", 4096, PRQ, COLLECTIVE, K_OPERATIONS, 64.0),
    through_mpi("Fig. 5b", "allreduce", GATHER, COL_PNP, K_OPERATIONS, 1.16),
    through_mpi("Fig. 5c", "iallgather", GATHER, COL_PNP, K_OPERATIONS, 1.26),
    faster("Fig. 7a", "radix", UMQ, ALL, COL_PNP, 1.15),
    faster("Fig. 7b", "radix", PRQ, ALL, COL_PNP, 1.14),
    the_same("Fig. 7b", "radix", PRQ, POINT_TO_POINT, COL_PNP),
    faster("Fig. 7c", "nbody", UMQ, ALL, COL_PNP, 1.94),
    faster("Fig. 7c", "nbody", UMQ, ALL, COL_LL, 1.18),
    faster("Fig. 6c", "nbody", UMQ, COLLECTIVE, COL_PNP, 1.09),
    faster("Fig. 7c", "nbody", UMQ, COLLECTIVE, OMPI, 1.1),
    faster("Fig. 7c", "nbody", UMQ, POINT_TO_POINT, COL_LL, 1.23),
    faster("Fig. 7c", "nbody", UMQ, POINT_TO_POINT, LL_PNP, 2.26),
    faster("Fig. 7d", "nbody", PRQ, ALL, COL_PNP, 1.89),
    faster("Fig. 7d", "nbody", PRQ, ALL, COL_LL, 1.27),
    faster("Fig. 6d", "nbody", PRQ, COLLECTIVE, COL_PNP, 1.33),
    faster("Fig. 7d", "nbody", PRQ, COLLECTIVE, OMPI, 1.22),
    faster("Fig. 7d", "nbody", PRQ, POINT_TO_POINT, COL_LL, 1.37),
    faster("Fig. 7d", "nbody", PRQ, POINT_TO_POINT, LL_PNP, 2.28),
    faster("Fig. 6e", "miniamr", UMQ, COLLECTIVE, COL_PNP, 1.37),
    the_same("Fig. 8a", "miniamr", UMQ, ALL, LL_PNP),
    the_same("Fig. 8a", "miniamr", UMQ, POINT_TO_POINT, COL_PNP),
    the_same("Fig. 8a", "miniamr", UMQ, POINT_TO_POINT, COL_LL),
    the_same("Fig. 8a", "miniamr", UMQ, POINT_TO_POINT, LL_PNP),
    the_same("Fig. 8a", "miniamr", UMQ, POINT_TO_POINT, OMPI),
    faster("Fig. 6f", "miniamr", PRQ, COLLECTIVE, COL_PNP, 1.46),
    the_same("Fig. 8b", "miniamr", PRQ, ALL, LL_PNP),
    the_same("Fig. 8b", "miniamr", PRQ, POINT_TO_POINT, COL_PNP),
    the_same("Fig. 8b", "miniamr", PRQ, POINT_TO_POINT, COL_LL),
    the_same("Fig. 8b", "miniamr", PRQ, POINT_TO_POINT, LL_PNP),
    the_same("Fig. 8b", "miniamr", PRQ, POINT_TO_POINT, OMPI),
    faster("abstract", "fds", EITHER, COLLECTIVE, COL_PNP, 80.0),
    faster("Fig. 8c", "fds", UMQ, ALL, COL_LL, 27.0),
    faster("Fig. 6g", "fds", UMQ, COLLECTIVE, COL_PNP, 42.0),
    faster("Fig. 8c", "fds", UMQ, COLLECTIVE, LL_PNP, 17.0),
    faster("Fig. 8c", "fds", UMQ, POINT_TO_POINT, COL_PNP, 4.4),
    faster("Fig. 8c", "fds", UMQ, POINT_TO_POINT, COL_LL, 3.34),
    faster("Fig. 8d", "fds", PRQ, ALL, COL_LL, 52.0),
    faster("Fig. 6h", "fds", PRQ, COLLECTIVE, COL_PNP, 42.0),
    faster("Fig. 8d", "fds", PRQ, COLLECTIVE, LL_PNP, 2.0),
    faster("Fig. 8d", "fds", PRQ, POINT_TO_POINT, COL_PNP, 73.0),
    faster("Fig. 8d", "fds", PRQ, POINT_TO_POINT, COL_LL, 71.0),
    made("section 6", "miniamr", 2048, EITHER, COLLECTIVE, K, 74.0),
    made("section 5.4.1", "fds", 1024, EITHER, COLLECTIVE, K, 256.0),
    made("section 5.4.1", "fds", 2048, EITHER, COLLECTIVE, K, 360.0),
    made("section 6", "fds", 2048, EITHER, COLLECTIVE, K, 416.0),
    made("section 6", "fds", 2048, EITHER, POINT_TO_POINT, K, 194.0),
    through_mpi("Fig. 11", "fds", LARGE, COL_PNP, K, 5.5),
    through_mpi("Fig. 11", "fds", LARGE, COL_LL, K, 5.0),
    through_mpi("Fig. 11", "fds", LARGE, LL_PNP, K, 2.3),
    through_mpi("Fig. 11", "fds", LARGE, OMPI, K, 4.8),
    *overhead("radix", 0.0359, 0.03027, 0.0175),
    *overhead("nbody", 0.1563, 0.0589, 0.0343),
    *overhead("miniamr", 0.0192, 0.0366, 0.0138),
    *overhead("fds", 0.0027, 0.0021, 0.0020),
    longest(PRQ, 24.0),
    longest(UMQ, 8147.0),
]
