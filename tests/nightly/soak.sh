#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tests/nightly/soak.sh [SECONDS]: runs random operations between 8 processes (default half an
# hour). At the same time 6 more processes exit and restart at their ports; some of them are killed.
# The tables are too small, so that elements spill and are promoted, and every payload has a
# checksum.
. "$(dirname "$0")/../lib/setup.sh"
need_cargo
build_tcam
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
for program in soak comers; do
    cc -O2 -Wall -Wextra -Wno-unused-function -o "$build/$program" "tests/fabric/$program.c" \
        -lfabric -lpthread
done
# Time limits are those of a quiet machine, multiplied by this factor.
TCAM_TEST_SLOWNESS=$(python3 tests/lib/slowness.py)
export TCAM_TEST_SLOWNESS
export FI_PROVIDER=tcam FI_PROVIDER_PATH="$target/provider" FI_TCAM_CHECK=on \
    FI_TCAM_PRQ_ENTRIES=7 FI_TCAM_UMQ_ENTRIES=7
nice -n 19 "$build/comers" "${1:-1800}" &
comers=$!
nice -n 19 "$build/soak" "${1:-1800}"
wait "$comers"
