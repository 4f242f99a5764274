#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs MPI_Comm_spawn and MPI_Comm_disconnect in a loop on 200 ports, so that many workers in turn
# get the same port.
#     tests/gate/spawn.sh [ROUNDS]      default 500
# Prints the resources of the master after a fifth of the rounds and at the end. Per worker, MPICH
# keeps about 33 KiB over any provider, and Open MPI about 77 KiB in PMIx; the provider's heap does
# not grow (docs/provider-status.md).
. "$(dirname "$0")/../lib/setup.sh"
rounds=${1:-500}
# shellcheck disable=SC2086
need_packages $build_packages iproute2
need_cargo
need_mpich
need_openmpi
build_tcam
if ! unshare -n true 2>/dev/null; then
    echo "spawn skipped: network namespaces are not permitted here"
    exit 0
fi
slowness=$(python3 tests/lib/slowness.py)
few_ports='ip link set lo up && echo "40000 40199" >/proc/sys/net/ipv4/ip_local_port_range && exec "$@"'
for mpi in mpich openmpi5; do
    bin=$venvs/${mpi%5}/bin
    build_apps "$mpi" "$bin/mpicc"
    say "$mpi: $rounds workers, one after the other"
    log=$target/spawn-$mpi.log
    FI_TCAM_CHECK=on timeout -k 5 $(((60 + rounds) * slowness)) unshare -n sh -c "$few_ports" ports \
        "$tcam" run --mpi="$mpi" --report="$target/spawn-$mpi" -- \
        "$bin/mpiexec" -n 1 "$target/apps/$mpi/spawn" "$rounds" >"$log" 2>&1 ||
        { tail -n 20 "$log" >&2; fail "$mpi: the loop did not end well"; }
    grep '^spawn round' "$log"
    awk -F'[ =]' -v rounds="$rounds" '
        /^spawn round/ { memory[$3] = $5; files[$3] = $7; shared[$3] = $9; last = $3; first = first ? first : $3 }
        END {
            if (last != rounds) { print "the loop ended early"; exit 1 }
            if (files[last] > files[first] || shared[last] > shared[first] + 2) {
                print "descriptors or segments grow"; exit 1
            }
            if (memory[last] - memory[first] > 2048 + 96 * (last - first)) { print "memory grows"; exit 1 }
        }' "$log"
done
