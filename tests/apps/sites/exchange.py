# SPDX-License-Identifier: BSD-2-Clause
"""Posts receives with mpi4py, whose module of C calls MPI."""

from mpi4py import MPI

world = MPI.COMM_WORLD
others = [other for other in range(world.size) if other != world.rank]
for _ in range(20):
    buffers = [bytearray(8) for _ in others]
    requests = [world.Irecv([buffer, MPI.BYTE], other, 7) for buffer, other in zip(buffers, others)]
    world.Barrier()
    for other in others:
        world.Send([b"message ", MPI.BYTE], other, 7)
    MPI.Request.Waitall(requests)
