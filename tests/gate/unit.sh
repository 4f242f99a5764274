#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs the unit tests with one compiler: unit.sh stable, or unit.sh msrv for the oldest version that
# Cargo.toml allows.
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages
need_cargo
toolchain=${1:-stable}
if [ "$toolchain" = msrv ]; then
    toolchain=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    rustup toolchain install "$toolchain" --profile minimal --no-self-update
fi
say "Unit tests, Rust $toolchain"
cargo "+$toolchain" test --quiet --workspace
