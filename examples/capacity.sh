#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# A capacity study of one program: the number of entries that a NIC needs, by the number of ranks, and the
# devices with enough entries. Records the program once for each number of ranks; the other results come from
# replays. All results are in the directory OUT:
#   capacity.sh OUT PROGRAM [ARGUMENT...]
# RANKS_A_NODE is the number of ranks that share a NIC (default 4). SIZES has the numbers of ranks (default
# "8 16 32").
set -eu
out=$1
shift
mkdir -p "$out"
for ranks in ${SIZES:-8 16 32}; do
    tcam run --trace "$out/run-$ranks" -- mpiexec -n "$ranks" "$@"
    tcam answer --ppn "${RANKS_A_NODE:-4}" "$out/run-$ranks" >"$out/answer-$ranks.txt"
    cat "$out/answer-$ranks.txt"
    tcam show --format parquet --out "$out/numbers-$ranks" "$out/run-$ranks"
done
# The last run with several table sizes, as a picture and as a CSV file.
tcam sweep --ppn "${RANKS_A_NODE:-4}" --out "$out/sweep" --trace "$out/run-$ranks"
tcam scale --ppn "${RANKS_A_NODE:-4}" --to 4096 "$out"/run-* >"$out/scale.txt"
cat "$out/scale.txt"
