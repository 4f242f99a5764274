#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# The source package, and from it the wheel for Linux with glibc 2.28 or newer, into target/wheel/dist.
# TCAM_PROFILE names another profile of cargo than release.
. "$(dirname "$0")/../../tests/lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages
need_cargo
need_wheel_tools
dist=$root/target/wheel/dist source=$root/target/wheel/source
rm -rf "$dist" "$source"
# maturin reads the directory's name in pyproject.toml.
mkdir -p "$dist" "$source" target/wheel/data
export PATH="$venvs/wheel/bin:$PATH" CARGO_TARGET_DIR="$target" TCAM_GLIBC=2.28
say "Building the source package and the wheel: some minutes"
maturin sdist --out "$dist"
# Touched: cargo would take the files of an earlier build for new ones.
tar -xzmf "$dist"/tcam-*.tar.gz -C "$source" --strip-components=1
pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$dist" "$source"
rm -rf "$source"
ls -l "$dist"
