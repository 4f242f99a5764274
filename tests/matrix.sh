#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# What make test has shorter: every MPI program on 2, 4 and 16 ranks with every size of the table, and
# bad days with 100,000 clients in turn.
. "$(dirname "$0")/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages openmpi-bin libopenmpi-dev procps
need_cargo
need_mpich
need_openmpi
build_tcam
say "Bad days"
CLIENTS=100000 tests/faults.sh "$target/provider"
say "MPI programs"
python3 tests/mpi.py
