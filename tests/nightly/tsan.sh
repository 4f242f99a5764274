#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the threaded C clients and the faults between two hosts, with ThreadSanitizer in the provider
# and in the clients. ThreadSanitizer reports two unordered accesses of two threads as an error. The
# Rust standard library and libfabric are not instrumented: tests/nightly/tsan.suppressions lists
# the consequences, each with its reason.
#   tests/nightly/tsan.sh [CLIENT...]
. "$(dirname "$0")/sanitizer.sh"
sanitize tsan thread -Cunsafe-allow-abi-mismatch=sanitizer
# After a fork in a threaded process the child continues, as it does without the sanitizer. An error
# changes the exit code of the process.
export TSAN_OPTIONS=exitcode=66:die_after_fork=0:suppressions=$PWD/tests/nightly/tsan.suppressions
# The sanitizer must find two threads on an endpoint without a lock.
must_find race 'WARNING: ThreadSanitizer: data race'
[ $# -gt 0 ] || CARGO_TARGET_DIR=$target python3 tests/gate/hosts.py --only faults
[ $# -gt 0 ] || tests/fabric/run.sh "$target/provider" timed
[ $# -gt 0 ] || set -- threads sends served scalable auto shared shared_av rma trigger atomic busy late
tests/fabric/run.sh "$target/provider" "$@"
