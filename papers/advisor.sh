#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Models of how long host engines take, after *Hint-driven matching*, section V: papers/papers.md.
#   check      learns again and compares with the page: a minute
#   write      learns again and renews the page
#   measure    measures the training set anew: an hour, quiet
#   programs   compares with real programs, from which nothing was learned: half an hour, quiet
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
