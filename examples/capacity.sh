#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A capacity study of one program: how many entries a NIC needs by the number of ranks, and which
# devices hold all of them. The program is recorded once per size; the rest are replays.
#   capacity.sh OUT PROGRAM [ARGUMENT...]
# RANKS_A_NODE is the number of ranks that share a NIC (default 4), SIZES the numbers of ranks.
set -eu
out=$1
shift
mkdir -p "$out"
for ranks in ${SIZES:-8 16 32}; do
    tcam record --out "$out/run-$ranks" -- mpiexec -n "$ranks" "$@"
    tcam answer --ppn "${RANKS_A_NODE:-4}" "$out/run-$ranks" | tee "$out/answer-$ranks.txt"
    tcam export --parquet --out "$out/numbers-$ranks" "$out/run-$ranks"
done
# The largest size of the program at several sizes of the table, as a picture and as a CSV file.
tcam sweep --ppn "${RANKS_A_NODE:-4}" --out "$out/sweep" --trace "$out/run-$ranks"
tcam scale --ppn "${RANKS_A_NODE:-4}" --to 4096 "$out"/run-*
