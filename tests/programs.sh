#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Records real programs over Open MPI 4.1 and holds the advisor's answers against measured replays:
# the table of docs/papers.md. Outside CI: 5 minutes, quiet. None of these is ever learned from.
. "$(dirname "$0")/setup.sh"
need_packages openmpi-bin lammps hpcc nwchem openfoam openfoam-examples
build_tcam
exec python3 tests/programs.py "$@"
