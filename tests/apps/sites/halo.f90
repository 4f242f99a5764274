! SPDX-License-Identifier: BSD-2-Clause
! Posts receives in a procedure of a module and in the program, with mpi and with mpi_f08 (-DF08).
module halo
#ifdef F08
    use mpi_f08
#else
    use mpi
#endif
    implicit none
#ifdef F08
    type(MPI_Request) :: requests(512)
#else
    integer :: requests(512)
#endif
    integer :: rank, ranks, error
    character(8) :: bytes(512)
contains
    subroutine exchange(first)
        integer, intent(in) :: first
        integer :: from
        do from = 0, ranks - 1
            if (from == rank) cycle
            call MPI_Irecv(bytes(first + from), 8, MPI_CHARACTER, from, 7, MPI_COMM_WORLD, &
                requests(first + from), error)
        end do
    end subroutine
end module

program sites
    use halo
    implicit none
    integer :: round, to, from
    call MPI_Init(error)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
    requests = MPI_REQUEST_NULL
    do round = 1, 20
        call exchange(1)
        do from = 0, ranks - 1
            if (from == rank) cycle
            call MPI_Irecv(bytes(1 + ranks + from), 8, MPI_CHARACTER, from, 7, MPI_COMM_WORLD, &
                requests(1 + ranks + from), error)
        end do
        call MPI_Barrier(MPI_COMM_WORLD, error)
        do to = 0, ranks - 1
            if (to == rank) cycle
            call MPI_Send('message ', 8, MPI_CHARACTER, to, 7, MPI_COMM_WORLD, error)
            call MPI_Send('message ', 8, MPI_CHARACTER, to, 7, MPI_COMM_WORLD, error)
        end do
        call MPI_Waitall(2 * ranks, requests, MPI_STATUSES_IGNORE, error)
    end do
    call MPI_Finalize(error)
end program
