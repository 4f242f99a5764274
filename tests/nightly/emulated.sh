#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs the unit tests of the table, the engines and the NIC model on an emulated processor:
#   emulated.sh aarch64    64-bit Arm, after a lint of all crates for it
#   emulated.sh nehalem    x86-64 without AVX
# Both processors run only the scalar kernel. The script runs no MPI programs.
. "$(dirname "$0")/../lib/setup.sh"
need_cargo
case ${1:-} in
    aarch64)
        # shellcheck disable=SC2086
        need_packages $build_packages qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross
        triple=aarch64-unknown-linux-gnu
        libc=/usr/aarch64-linux-gnu
        [ -d "$(rustc --print target-libdir --target "$triple")" ] || rustup target add "$triple"
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L $libc"
        export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
        # The headers of libfabric are the same for all processors, but those of libc are not.
        export PKG_CONFIG_ALLOW_CROSS=1
        export BINDGEN_EXTRA_CLANG_ARGS_aarch64_unknown_linux_gnu="-isystem $libc/include"
        say "Lints for $triple"
        cargo clippy --quiet --workspace --all-targets --target "$triple" -- -D warnings
        ;;
    nehalem)
        # shellcheck disable=SC2086
        need_packages $build_packages qemu-user
        triple=x86_64-unknown-linux-gnu
        export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="qemu-x86_64 -cpu Nehalem"
        ;;
    *) fail "usage: emulated.sh aarch64|nehalem" ;;
esac
say "Unit tests on $1"
# Emulation is about twenty times slower, so random tests run fewer cases.
PROPTEST_CASES=${PROPTEST_CASES:-8} cargo test --quiet --target "$triple" -p tcam-ternary-cam -p tcam-matching -p tcam-nic
