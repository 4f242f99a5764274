#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Measures a paper. Writes PAPER.csv, PAPER.md and the verdicts in papers.md. Without PAPER, does all papers:
#   papers/reproduce.sh [PAPER [OPTION...]]      measures; --help lists the options
#   papers/reproduce.sh PAPER --from CSV         measures nothing and renders the page from the CSV file
#   papers/reproduce.sh check [brief]            fails if a page differs from its CSV file; "brief" then
#                                                also measures a little of each paper, into target/papers
# RANKS is the number of ranks of MPICH in colpnp (default 64), all on this machine. For polling, two hosts are
# made on this machine, which needs permission to make namespaces. EACH is the number of ranks on the first and
# on the second host (default 2,16).
. "$(dirname "$0")/../tests/lib/setup.sh"
export PYTHONPATH="$root/papers" PYTHONDONTWRITEBYTECODE=1

# Measures one paper, with its MPI program if it has one.
measure() {
    paper=$1
    shift
    set -- python3 -m reproduce "$paper" "$@"
    case $paper in
    kmeans | tail-queues) "$@" ;;
    polling)
        need_packages iproute2
        python3 tests/bench/on_two_hosts.py --ranks "${EACH:-2,16}" \
            --program "$target/apps/mpich/polling" -- "$@" --
        ;;
    colpnp)
        "$@" -- "$venvs/mpich/bin/mpiexec" -n "${RANKS:-64}" "$target/apps/mpich/collectives" ;;
    *) "$@" -- "$venvs/mpich/bin/mpiexec" -n 2 "$target/apps/mpich/hints" ;;
    esac
}

papers="colpnp kmeans hash polling tail-queues"
case " $* " in
" check "*)
    python3 -m unittest -q reproduce.tests
    python3 -m reproduce check
    [ "${2:-}" = brief ] || exit 0
    ;;
*" --from"* | *" --help "* | *" -h "*) exec python3 -m reproduce "$@" ;;
esac
# shellcheck disable=SC2086
need_packages $build_packages
need_cargo
need_mpich
build_tcam
cargo build --quiet --profile "${TCAM_PROFILE:-release}" -p papers-bench
build_apps mpich "$venvs/mpich/bin/mpicc"
if [ "${2:-}" = brief ]; then
    brief="--ms 1 --seeds 1 --out $target/papers"
    # shellcheck disable=SC2086
    for paper in $papers; do
        case $paper in
        # The MPI runs of hash take minutes, so measure hash without them.
        hash) python3 -m reproduce hash $brief ;;
        tail-queues) measure tail-queues --only mcs,2,32 $brief ;;
        polling) EACH=2,1 measure polling --only every $brief ;;
        *) RANKS=4 measure "$paper" $brief ;;
        esac
    done
elif [ $# -gt 0 ]; then
    measure "$@"
else
    for paper in $papers; do
        measure "$paper"
    done
fi
