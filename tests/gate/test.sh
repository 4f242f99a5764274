#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs the tests that must pass before a change is merged, in 15 minutes on two cores. nightly.sh
# runs the other tests.
#   tests/gate/test.sh [computes|waits|ends]      one of its three lanes, with the previous build
. "$(dirname "$0")/../lib/setup.sh"
. tests/lib/stages.sh

# Each crate is built once, so data for incremental builds would only fill the disk.
export CARGO_INCREMENTAL=0 TCAM_PROFILE=gate BRIEF=1

computes() {
    say "Unit tests, and their build"
    # nightly.sh tests the examples in documents, because they need another build of the libraries.
    cargo test --quiet --workspace --lib --bins --tests --profile gate
    say "MPI programs, each two settings"
    python3 tests/gate/mpi.py --pairwise
    say "Workers that are spawned"
    tests/gate/spawn.sh 50
    say "Models of devices: what their reports say"
    python3 tests/gate/models.py
    say "Traces: recorded, replayed, swept"
    python3 tests/gate/traces.py
    say "Profiles, clusters, promises and engines"
    python3 tests/gate/engines.py
    say "Replays and curves against a brute force"
    python3 tests/gate/brute.py
    say "The need of a NIC against a brute force"
    python3 tests/gate/need.py
    say "Messages that come while their receiver computes"
    python3 tests/gate/arrivals.py
    say "Settings of a NIC"
    python3 tests/gate/settings.py
    say "The answer on one page"
    python3 tests/gate/answer.py
    say "Generated streams against recorded ones"
    python3 tests/gate/workloads.py
}

waits() {
    say "fi_info"
    tests/gate/fi_info.sh
    say "C clients of the provider"
    LIBFABRIC_2=$venvs/mpich/lib/mpich tests/fabric/run.sh "$target/provider"
    say "Bad days"
    tests/gate/faults.sh "$target/provider"
    say "Two hosts"
    python3 tests/gate/hosts.py --only programs,faults --each 2 --entries 7
}

ends() {
    say "The command line on bad days"
    python3 tests/gate/command.py
    say "How runs end"
    python3 tests/gate/endings.py
    say "Answers that say what they lack"
    python3 tests/gate/answers.py
    say "Lines of programs that fill the queues"
    python3 tests/gate/sites.py
}

if [ -n "$lane" ]; then
    "$lane"
    exit
fi
# shellcheck disable=SC2086
need_packages $build_packages $test_packages
need_cargo
mind_room 2500
# These wait for the network beside the stages, so they do not begin a stage.
(
    say() { say_title "$@"; }
    need_mpich
    need_openmpi
) >"$target/installs.log" 2>&1 &
installs=$!
say "Format, circles of files, imports up a floor, pairs of settings"
cargo fmt --all --check
python3 tests/lib/floors.py
python3 tests/lib/pairwise.py
say "The provider, tcam and MPI programs: build"
build_tcam
wait "$installs" || { cat "$target/installs.log" >&2; fail "The installs failed."; }
build_all_apps
say "C clients that measure sleeps, which need a quiet machine"
tests/fabric/run.sh "$target/provider" timed
lanes computes waits ends
say_title "All tests passed"
