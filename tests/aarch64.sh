#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The crates for 64-bit Arm: all of them are checked, and the unit tests of those below the
# transports run under emulation, with the scalar kernel. Outside of x86-64 nobody runs MPI programs.
. "$(dirname "$0")/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
need_cargo
triple=aarch64-unknown-linux-gnu
libc=/usr/aarch64-linux-gnu
rustc --print target-libdir --target "$triple" | xargs ls >/dev/null 2>&1 || rustup target add "$triple"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $libc"
# The headers of libfabric are the same for all processors, those of libc are not.
export PKG_CONFIG_ALLOW_CROSS=1
export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="-isystem $libc/include"
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
say "All crates for $triple, with lints"
cargo clippy --quiet --workspace --all-targets --target "$triple" -- -D warnings
say "Unit tests under emulation"
# Emulation is some twenty times slower: random tests have fewer cases.
PROPTEST_CASES=${PROPTEST_CASES:-16} cargo test --quiet --target "$triple" -p ternary_cam -p matching -p nic
