#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Models that predict the time of host engines (papers/papers.md, Advisor):
#   check      learns the models and compares them with the page: 1 minute
#   write      learns the models and rewrites the page
#   measure    measures the training set: 1 hour, quiet machine
#   programs   compares predictions with real programs, which are not in the training set: 30 minutes, quiet
. "$(dirname "$0")/../tests/lib/setup.sh"

need_advisor
python=$venvs/advisor/bin/python

case ${1:-} in
check | write) exec "$python" papers/advisor/learn.py "--$1" ;;
measure)
    need_cargo
    build_tcam
    exec "$python" papers/advisor/measure.py "$tcam"
    ;;
programs)
    need_packages openmpi-bin lammps hpcc nwchem openfoam openfoam-examples
    need_cargo
    build_tcam
    programs=$target/programs
    rm -rf "$programs"
    . papers/advisor/programs.sh
    exec "$python" papers/advisor/programs.py "$tcam" "$programs"
    ;;
*) fail "Usage: papers/advisor.sh check|write|measure|programs" ;;
esac
