#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs mpi4py's own tests of point-to-point, collective and one-sided operations over tcam, with
# MPICH and Open MPI 5, on 2 and 3 ranks. Arguments: the MPIs (default: mpich openmpi). RANKS="2 3"
# sets the numbers of ranks.
. "$(dirname "$0")/../lib/setup.sh"
need_mpich
need_openmpi

need_mpi4py_tests

# One-sided operations use the provider as well.
export OMPI_MCA_btl=self,ofi
[ $# -gt 0 ] || set -- mpich openmpi
failed=0
slowness=$(python3 tests/lib/slowness.py)
for mpi in "$@"; do
    for ranks in ${RANKS:-2 3}; do
        log=$target/mpi4py-$mpi-$ranks.log
        printf 'mpi4py on %s, %s ranks: ' "$mpi" "$ranks"
        if (cd "$mpi4py_tests" && timeout -k 10 $((240 * slowness)) "$tcam" run --prq 64 --umq 64 -- \
            "$venvs/$mpi/bin/mpiexec" -n "$ranks" "$venvs/$mpi/bin/python" main.py -v \
            -i 'test_(p2p_|cco_|rma|win)') >"$log" 2>&1; then
            sed -n 's/^Ran \([0-9]* tests\).*/\1 passed/p' "$log" | head -1
        else
            failed=1
            echo "FAILED, see $log"
            grep -E '^(FAIL|ERROR):' "$log" | sort -u | head -10
            tail -15 "$log"
        fi
    done
done
exit $failed
