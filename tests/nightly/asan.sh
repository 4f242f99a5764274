#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the C clients, the fault tests and the faults between two hosts, with AddressSanitizer in the
# provider and in the clients. AddressSanitizer checks every memory access.
#   tests/nightly/asan.sh [CLIENT...]
. "$(dirname "$0")/sanitizer.sh"
sanitize asan address
# Leaks are not checked, because libfabric keeps the libraries that it loads. An error ends the process
# with exit code 99.
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=0:exitcode=99:detect_stack_use_after_return=1
# The sanitizer must find a message that is longer than the memory of its receive.
must_find overrun 'heap-buffer-overflow'
tests/fabric/run.sh "$target/provider" "$@"
[ $# -gt 0 ] || tests/fabric/run.sh "$target/provider" timed
[ $# -gt 0 ] || tests/gate/faults.sh "$target/provider" 1
[ $# -gt 0 ] || CARGO_TARGET_DIR=$target python3 tests/gate/hosts.py --only faults
