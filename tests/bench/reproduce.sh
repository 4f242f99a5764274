#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Regenerates docs/PAPER.md and docs/PAPER.csv and, from them, the verdicts in docs/papers.md, of
# all papers or of one: tests/bench/reproduce.sh [PAPER [--from CSV]]. With --from CSV nothing is
# measured: `tests/bench/reproduce.sh colpnp --from docs/colpnp.csv` after a change of the text.
# RANKS is the number of ranks that share the machine through MPICH in colpnp. For polling, two
# hosts are made on this machine, which requires the right to create namespaces; EACH is the number
# of ranks per host.
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages
need_cargo
build_tcam

# One paper: measured in-process and, if it has a program, through MPICH; or read from a CSV.
reproduce() {
    paper=$1
    shift
    if [ $# -gt 0 ]; then
        "$tcam" reproduce "$paper" --out docs "$@"
        return
    fi
    case $paper in
    kmeans | tail-queues) "$tcam" reproduce "$paper" --out docs ; return ;;
    polling)
        need_packages iproute2
        need_mpich
        build_apps mpich "$venvs/mpich/bin/mpicc"
        python3 tests/bench/on_two_hosts.py --ranks "${EACH:-2,16}" \
            --program "$target/apps/mpich/polling" -- "$tcam" reproduce polling --out docs --
        return
        ;;
    colpnp) ranks=${RANKS:-64} program=collectives ;;
    *) ranks=2 program=hints ;;
    esac
    need_mpich
    build_apps mpich "$venvs/mpich/bin/mpicc"
    "$tcam" reproduce "$paper" --out docs -- \
        "$venvs/mpich/bin/mpiexec" -n "$ranks" "$target/apps/mpich/$program"
}

# Copies the verdicts of a paper from its page to docs/papers.md.
copy_verdicts() {
    begin="<!-- verdicts of $1: begin -->"
    end="<!-- verdicts of $1: end -->"
    verdicts=$target/verdicts.md
    awk '/^## /{ on = $2 == "Verdicts"; next } on' "docs/$1.md" >"$verdicts"
    awk -v begin="$begin" -v end="$end" -v file="$verdicts" '
        $0 == end { inside = 0 }
        !inside { print }
        $0 == begin { inside = 1; while ((getline line < file) > 0) print line }
    ' docs/papers.md >"$target/papers.md"
    cp "$target/papers.md" docs/papers.md
}

papers=${1:-colpnp kmeans hash polling tail-queues}
[ $# -eq 0 ] || shift
for paper in $papers; do
    reproduce "$paper" "$@"
    copy_verdicts "$paper"
done
