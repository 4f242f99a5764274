#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs the safe cores and the handling of C pointers in ffi under Miri, with fewer cases. Needs a
# nightly toolchain with the component miri. Miri does not interpret vector instructions, so only
# the scalar kernel runs.
#
#   tests/nightly/miri.sh                all tests, which takes hours
#   tests/nightly/miri.sh 2/4            the second of four shards, of each crate every fourth test
#   tests/nightly/miri.sh 2/4 CRATE...   the shard of these crates only
#
# Prints the seconds of each test and of each crate.
set -e
cd "$(dirname "$0")/../.."
shard=${1:-1/1}
[ $# -eq 0 ] || shift
part=${shard%/*} parts=${shard#*/}
if ! { [ "$part/$parts" = "$shard" ] && [ "$part" -ge 1 ] && [ "$part" -le "$parts" ]; }; then
    echo "miri.sh: the shard is $shard, but must be like 2/4, the second of four" >&2
    exit 1
fi
[ $# -gt 0 ] || set -- tcam-ternary-cam tcam-matching tcam-nic tcam-ffi papers-bench
cargo +nightly miri --version || {
    echo "Miri is missing: rustup toolchain install nightly --component miri,rust-src" >&2
    exit 1
}
# proptest reads its regression files (no isolation), and addresses come from C as numbers
# (permissive provenance).
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" PROPTEST_CASES=2
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
IFS='
'
for crate; do
    began=$(date +%s)
    # The integration tests and the examples in the documentation of this crate run as well.
    [ "$crate" = tcam-ternary-cam ] && targets= || targets=--lib
    # shellcheck disable=SC2086
    listed=$(cargo +nightly miri test -p "$crate" $targets -- --list)
    names=$(echo "$listed" | sed -n 's/: test$//p' | LC_ALL=C sort -u |
        awk -v part="$part" -v parts="$parts" 'NR % parts == part % parts')
    if [ -n "$names" ]; then
        # shellcheck disable=SC2086
        cargo +nightly miri test -p "$crate" $targets -- --exact -Zunstable-options --report-time $names
    fi
    printf '\n== %s, shard %s: %d tests, %d s\n' "$crate" "$shard" "$(echo "$names" | grep -c .)" \
        $(($(date +%s) - began))
done
