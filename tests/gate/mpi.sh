#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs all MPI programs with one MPI, at every table size: mpi.sh mpich|openmpi5|openmpi4
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages openmpi-bin libopenmpi-dev
need_cargo
need_mpich
need_openmpi
build_tcam
exec python3 tests/gate/mpi.py --mpi "$1" --ranks 2,4
