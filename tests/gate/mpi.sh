#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# All MPI programs on one MPI, at every size of the tables: mpi.sh mpich|openmpi5|openmpi4
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages openmpi-bin libopenmpi-dev
need_cargo
need_mpich
need_openmpi
build_tcam
exec python3 tests/gate/mpi.py --mpi "$1" --ranks 2,4
