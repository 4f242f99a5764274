#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tests/soak.sh [SECONDS]: random operations between 8 processes (default half an hour),
# with tables that are too small, so that everything spills and is promoted.
. "$(dirname "$0")/setup.sh"
need_cargo
build_tcam
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cc -O2 -Wall -Wextra -Wno-unused-function -o "$build/soak" tests/fabric/soak.c -lfabric -lpthread
FI_PROVIDER=tcam FI_PROVIDER_PATH=$target/provider \
    FI_TCAM_PRQ_ENTRIES=7 FI_TCAM_UMQ_ENTRIES=7 nice -n 19 "$build/soak" "${1:-1800}"
