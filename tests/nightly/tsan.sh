#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# The threaded C clients and the faults between two hosts with ThreadSanitizer in the provider and in the clients: every pair of
# accesses of two threads without an order between them is an error. Rust's own library and libfabric
# are not instrumented: tests/nightly/tsan.suppressions has what that costs, each with its reason.
#   tests/nightly/tsan.sh [CLIENT...]
. "$(dirname "$0")/sanitizer.sh"
sanitize tsan thread -Cunsafe-allow-abi-mismatch=sanitizer
# A child of a process with threads goes on, as without. An error ends the process at its exit.
export TSAN_OPTIONS=exitcode=66:die_after_fork=0:suppressions=$PWD/tests/nightly/tsan.suppressions
# Two threads on an endpoint that has no lock.
must_find race 'WARNING: ThreadSanitizer: data race'
[ $# -gt 0 ] || CARGO_TARGET_DIR=$target python3 tests/gate/hosts.py --only faults
[ $# -gt 0 ] || set -- threads sends served scalable auto shared shared_av rma trigger atomic busy late
tests/fabric/run.sh "$target/provider" "$@"
