#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The safe cores and what ffi does with C's pointers under Miri, with fewer cases. It
# needs a nightly toolchain with the component miri. Vector kernels are not interpreted:
# the scalar one stands for them.
set -e
cd "$(dirname "$0")/../.."
cargo +nightly miri --version || {
    echo "Miri is missing: rustup toolchain install nightly --component miri,rust-src" >&2
    exit 1
}
# Regression files of proptest are files.
# Addresses come from C as numbers.
export MIRIFLAGS="-Zmiri-disable-isolation -Zmiri-permissive-provenance" PROPTEST_CASES=2
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/miri"
cargo +nightly miri test -p ternary_cam
for crate in matching nic ffi papers-bench; do
    cargo +nightly miri test -p $crate --lib
done
