#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs Intel MPI's own benchmarks over tcam, with the libfabric of MPICH's wheel. IMB-MT uses one
# endpoint per thread. Then checks the lines that tcam run --sites names.
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages
need_cargo
need_mpich
need_impi
build_tcam

# Time limits are those of a quiet machine, multiplied by this factor.
TCAM_TEST_SLOWNESS=$(python3 tests/lib/slowness.py)
export TCAM_TEST_SLOWNESS
export I_MPI_ROOT="$venvs/impi"
export LD_LIBRARY_PATH="$venvs/impi/lib"
export I_MPI_OFI_LIBRARY="$venvs/mpich/lib/mpich/libfabric.so.1"
for benchmark in PingPong:2 Exchange:4 Gather:4 Allreduce:4; do
    name=${benchmark%:*} ranks=${benchmark#*:}
    log=$target/impi-$name.log
    printf 'Intel MPI, IMB-MPI1 %s on %s ranks: ' "$name" "$ranks"
    timeout -k 10 $((300 * TCAM_TEST_SLOWNESS)) "$tcam" run -- "$venvs/impi/bin/mpiexec" -n "$ranks" \
        "$venvs/impi/bin/IMB-MPI1" "$name" -npmin "$ranks" -msglog 0:18 -iter 200 -time 5 >"$log" 2>&1 ||
        { echo FAILED; tail -30 "$log"; exit 1; }
    grep -q '# All processes entering MPI_Finalize' "$log" || { echo "did not end: $log"; exit 1; }
    echo ok
done

# With scalable endpoints (MPIR_CVAR_CH4_OFI_ENABLE_SCALABLE_ENDPOINTS=1), Intel MPI 2021.19 inserts
# addresses into only the first of its address vectors, but sends to them through all.
ranks=2 threads=4
log=$target/impi-MT.log reports=$target/impi-MT
export I_MPI_THREAD_SPLIT=1 I_MPI_THREAD_RUNTIME=openmp
export I_MPI_THREAD_MAX=$threads OMP_NUM_THREADS=$threads
rm -rf "$reports"
printf 'Intel MPI, IMB-MT on %s ranks of %s threads: ' $ranks $threads
timeout -k 10 $((120 * TCAM_TEST_SLOWNESS)) "$tcam" run --set check=on --report "$reports" -- "$venvs/impi/bin/mpiexec" \
    -n $ranks "$venvs/impi/bin/IMB-MT" -thread_level multiple -count 1,1000,30000 -repeat 50 \
    >"$log" 2>&1 || { echo FAILED; tail -30 "$log"; exit 1; }
for text in "#processes = $ranks (threads: $threads)" '# Benchmarking AllReduceMT'; do
    grep -qF -- "$text" "$log" || { echo "no line \`$text\`: $log"; exit 1; }
done
endpoints=$(find "$reports" -name '*.json' | wc -l)
[ "$endpoints" = $((ranks * threads)) ] ||
    { echo "$endpoints endpoints, not one for each thread: $log"; exit 1; }
echo ok

echo 'Intel MPI, lines of programs:'
python3 tests/gate/sites.py --intel
