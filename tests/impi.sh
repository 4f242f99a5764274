#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Intel MPI's own benchmarks over tcam, on the libfabric of MPICH's wheel.
. "$(dirname "$0")/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages
need_cargo
need_mpich
need_impi
build_tcam

export I_MPI_ROOT="$venvs/impi"
export LD_LIBRARY_PATH="$venvs/impi/lib"
export I_MPI_OFI_LIBRARY="$venvs/mpich/lib/mpich/libfabric.so.1"
for benchmark in PingPong:2 Exchange:4 Gather:4 Allreduce:4; do
    name=${benchmark%:*} ranks=${benchmark#*:}
    log=$target/impi-$name.log
    printf 'Intel MPI, IMB-MPI1 %s on %s ranks: ' "$name" "$ranks"
    timeout -k 10 300 "$tcam" run -- "$venvs/impi/bin/mpiexec" -n "$ranks" \
        "$venvs/impi/bin/IMB-MPI1" "$name" -npmin "$ranks" -msglog 0:18 -iter 200 -time 5 >"$log" 2>&1 ||
        { echo FAILED; tail -30 "$log"; exit 1; }
    grep -q '# All processes entering MPI_Finalize' "$log" || { echo "did not end: $log"; exit 1; }
    echo ok
done
