#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tests/nightly/fuzz.sh CRATE TARGET [SECONDS]: builds a fuzz target with coverage counters, as
# cargo-fuzz would, and runs it for SECONDS (default 60). The targets are `ternary_cam operations`,
# `nic reader`, `provider segment` and `provider network`. SANITIZER=address checks every memory access. Needs no
# nightly toolchain: the script enables the unstable switches of the stable compiler.
set -e
cd "$(dirname "$0")/../../$1/fuzz"
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1
RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
  -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
  -Ccodegen-units=1 --cfg fuzzing -Cdebug-assertions ${SANITIZER:+-Zsanitizer=$SANITIZER}" \
  cargo build --release --bin "$2" --target "$host"
mkdir -p "corpus/$2" "artifacts/$2"
exec "${CARGO_TARGET_DIR:-target}/$host/release/$2" "corpus/$2" \
  "-artifact_prefix=artifacts/$2/" -max_len=8192 "-max_total_time=${3:-60}"
