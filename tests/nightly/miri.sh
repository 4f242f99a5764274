#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs the safe cores and the handling of C pointers in ffi under Miri, with fewer cases. Needs a
# nightly toolchain with the component miri. Miri does not interpret vector instructions, so only
# the scalar kernel runs.
set -e
cd "$(dirname "$0")/../.."
cargo +nightly miri --version || {
    echo "Miri is missing: rustup toolchain install nightly --component miri,rust-src" >&2
    exit 1
}
# proptest reads its regression files (no isolation), and addresses come from C as numbers
# (permissive provenance).
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" PROPTEST_CASES=2
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
cargo +nightly miri test -p tcam-ternary-cam
for crate in tcam-matching tcam-nic tcam-ffi papers-bench; do
    cargo +nightly miri test -p $crate --lib
done
