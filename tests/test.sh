#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Everything that must hold before a change goes in.
. "$(dirname "$0")/setup.sh"
. "$root/tests/stages.sh"
# shellcheck disable=SC2086
need_packages $build_packages openmpi-bin libopenmpi-dev valgrind iproute2 procps
need_cargo
mind_room 2500
need_mpich
need_openmpi
need_mpi4py_tests

# One build of each thing: what a second one could reuse only fills the disk.
export CARGO_INCREMENTAL=0 TCAM_PROFILE=gate
say "Format and lints"
cargo fmt --all --check
cargo clippy --quiet --workspace --all-targets --profile gate -- -D warnings
say "Circles of files, imports up a floor"
python3 tests/floors.py
say "Unit tests, and the build of what is tested next"
build_tcam
cargo test --quiet --workspace --profile gate
say "fi_info"
tests/fi_info.sh
say "C clients of the provider"
LIBFABRIC_2=$venvs/mpich/lib/mpich tests/fabric/run.sh "$target/provider"
say "Bad days"
tests/faults.sh "$target/provider"
say "MPI programs"
python3 tests/mpi.py --ranks 2,4
# On two cores 16 ranks take half of the time: make matrix has the other tables.
python3 tests/mpi.py --ranks 16 --entries 0,7
python3 tests/mpi.py --mpi mpich --ranks 4 --entries 7 --vcis 4
say "Two hosts"
python3 tests/hosts.py --mpi4py "$mpi4py_tests"
say "MPI programs, other tables, host engines and overflow models"
clusters=$target/clusters-of-4
{
    echo '{"format":"tcam-clusters","version":1,"processes":4,"k":2}'
    for rank in 0 1 2 3; do
        echo "{\"rank\":$rank,\"prq\":[0,1,null,0],\"umq\":[1,null,0,1]}"
    done
} >"$clusters"
for settings in host_engine=list host_engine=tail-queues host_engine=rank-array host_engine=col-list \
    host_engine=list-pnp "host_engine=kmeans clusters=$clusters queue=linked" \
    "host_engine=hash table=cam" "host_engine=newmadeleine kernel_copy=off" \
    "host_engine=auto theta=8 refuse=any-source" \
    overflow=prefix overflow=sticky overflow=flow-control pool=node; do
    set --
    for setting in $settings; do
        set -- "$@" --set "$setting"
    done
    python3 tests/mpi.py --mpi mpich,openmpi5 --ranks 4 --entries 7 "$@"
    python3 tests/mpi.py --mpi mpich --app threads --ranks 4 --entries 7 --vcis 4 "$@"
done
say "Workers that are spawned"
tests/spawn.sh 50
say "Models of devices: what their reports say"
python3 tests/models.py
say "The command line on bad days"
python3 tests/command.py
say "How runs end"
python3 tests/endings.py
say "Answers that say what they lack"
python3 tests/answers.py
say "Advice, and models that are learned again"
python3 tests/advise.py
say "Traces: recorded, replayed, swept"
python3 tests/traces.py
say "Profiles, clusters, promises and engines"
python3 tests/engines.py
say "Thresholds between channels, and files of settings"
python3 tests/tune.py
say "Replays and curves against a brute force"
python3 tests/brute.py
say "The need of a NIC against a brute force"
python3 tests/need.py
say "The answer on one page"
python3 tests/answer.py
say "Running programs, watched"
python3 tests/watch.py
say "Generated streams against recorded ones"
python3 tests/workloads.py
say "The guide, as written"
python3 tests/guide.py
say "mpi4py"
tests/mpi4py.sh
say_title "All tests passed"
