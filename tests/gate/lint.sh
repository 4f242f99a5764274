#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Checks format, lints, layers, the API documentation and its examples.
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages shellcheck
need_cargo
profile=${TCAM_PROFILE:-dev}
say "Format, lints, layers and documents of the code"
cargo fmt --all --check
cargo clippy --quiet --workspace --all-targets --profile "$profile" -- -D warnings
cargo test --quiet --workspace --doc --profile "$profile"
# The fuzz targets are no members of the workspace. tests/nightly/fuzz.sh runs them.
for crate in ternary_cam nic provider; do
    RUSTFLAGS="--cfg fuzzing" CARGO_TARGET_DIR=$target/fuzz-check \
        cargo check --quiet --manifest-path $crate/fuzz/Cargo.toml
done
python3 tests/lib/floors.py
python3 tests/lib/pairwise.py
RUSTDOCFLAGS="-D warnings -A rustdoc::private-intra-doc-links" \
    cargo doc --quiet --profile "$profile" --workspace --no-deps --document-private-items
# These warnings are off because setup.sh makes scripts exit at the first error and sets variables for
# other scripts, and because `a= b=` empties both variables on purpose.
shellcheck -S warning -e SC1007,SC2034,SC2154,SC2164 tests/*/*.sh examples/*.sh papers/*.sh papers/*/*.sh packaging/*.sh
