// SPDX-License-Identifier: BSD-2-Clause
// libmpi_streams.so: functions of MPICH for streams. Those of MPICH 5.0.2 end the process, because
// MPIX_Stream_comm_create_multiplex fails an assertion.
#include <mpi.h>

int MPIX_Stream_irecv(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, int source,
                      int destination, MPI_Request *request) {
    (void)source, (void)destination;
    return MPI_Irecv(to, count, type, from, tag, comm, request);
}

int MPIX_Stream_irecv_c(void *to, MPI_Count count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                        int source, int destination, MPI_Request *request) {
    (void)source, (void)destination;
    return MPI_Irecv(to, (int)count, type, from, tag, comm, request);
}

int MPIX_Irecv_enqueue(void *to, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
                       MPI_Request *request) {
    return MPI_Irecv(to, count, type, from, tag, comm, request);
}
