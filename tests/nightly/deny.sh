#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Licences, sources and known weaknesses of the crates that are built in.
. "$(dirname "$0")/../lib/setup.sh"
need_cargo
command -v cargo-deny >/dev/null || cargo install --quiet --locked cargo-deny
cargo deny check "$@"
