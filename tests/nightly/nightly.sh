#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs what make test omits or shortens, with all combinations; after make test, in about 35
# minutes.
#   tests/nightly/nightly.sh [computes|waits]      one of its two lanes, with the previous build
. "$(dirname "$0")/../lib/setup.sh"
. tests/lib/stages.sh
export CARGO_INCREMENTAL=0 TCAM_PROFILE=gate

computes() {
    say "MPI programs, all sizes of the table"
    python3 tests/gate/mpi.py
    python3 tests/gate/mpi.py --mpi mpich --ranks 4 --entries 7 --vcis 4
    say "MPI programs, other tables, host engines and overflow models"
    clusters=$target/clusters-of-4
    {
        echo '{"format":"tcam-clusters","version":1,"processes":4,"k":2}'
        for rank in 0 1 2 3; do
            echo "{\"rank\":$rank,\"prq\":[0,1,null,0],\"umq\":[1,null,0,1]}"
        done
    } >"$clusters"
    for settings in host_engine=list host_engine=tail-queues host_engine=rank-array host_engine=col-list \
        host_engine=list-pnp "host_engine=kmeans clusters=$clusters host_storage=linked" \
        "host_engine=hash table=cam" "host_engine=newmadeleine kernel_copy=off" \
        overflow=prefix overflow=sticky overflow=flow-control pool=node; do
        set --
        for setting in $settings; do
            set -- "$@" --set "$setting"
        done
        python3 tests/gate/mpi.py --mpi mpich,openmpi5 --ranks 4 --entries 7 "$@"
        python3 tests/gate/mpi.py --mpi mpich --app threads --ranks 4 --entries 7 --vcis 4 "$@"
    done
}

waits() {
    say "C clients of the provider, all sizes of the table"
    LIBFABRIC_2=$venvs/mpich/lib/mpich tests/fabric/run.sh "$target/provider"
    say "Bad days, 70,000 clients"
    tests/gate/faults.sh "$target/provider"
    say "Two hosts, all sizes of the table"
    python3 tests/gate/hosts.py --only programs,tools --mpi4py "$mpi4py_tests"
    say "mpi4py on two and three ranks"
    tests/nightly/mpi4py.sh
    say "Files of settings"
    python3 tests/nightly/settings.py
    say "Running programs, watched"
    python3 tests/nightly/watch.py
    say "Pages in a browser"
    python3 tests/nightly/page.py
    say "Growth with the number of ranks"
    python3 tests/nightly/scale.py
    say "Models of host engines, learned again"
    papers/advisor.sh check
    papers/reproduce.sh check brief
    say "Examples"
    tests/nightly/examples.sh
}

if [ -n "$lane" ]; then
    "$lane"
    exit
fi
# shellcheck disable=SC2086
need_packages $build_packages $test_packages binutils chromium environment-modules man-db
need_cargo
mind_room 2500
need_mpich
need_openmpi
need_mpi4py_tests
# The lanes have no network access.
need_pandas
need_advisor
need_mutants
say "Lints, documents of the code and their examples"
tests/gate/lint.sh
say "The provider, tcam and MPI programs: build"
build_tcam
build_all_apps
lanes computes waits
say "The guide, as written"
python3 tests/nightly/guide.py
say "The wheel"
tests/nightly/wheel.sh
say "Tarball, modulefile, .deb, a release"
TCAM_WHEEL=$(echo "$root"/target/wheel/dist/tcam-*.whl) tests/nightly/packaging.sh
say "Mutants: a sample"
tests/nightly/mutants.sh
say_title "All tests passed"
