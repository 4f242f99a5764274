#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds the fuzz target with coverage counters, as cargo-fuzz would, and runs it
# for so many seconds (default 60).
set -e
cd "$(dirname "$0")"
host=$(rustc +nightly -vV | sed -n 's/^host: //p')
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
  -Ccodegen-units=1 --cfg fuzzing -Cdebug-assertions" \
  cargo +nightly build --release --bin operations --target "$host"
mkdir -p corpus/operations artifacts/operations
exec "${CARGO_TARGET_DIR:-target}/$host/release/operations" corpus/operations \
  -artifact_prefix=artifacts/operations/ -max_len=8192 -max_total_time="${1:-60}"
