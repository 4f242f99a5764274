#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Checks licences, sources and known vulnerabilities of the linked crates.
. "$(dirname "$0")/../lib/setup.sh"
need_cargo
command -v cargo-deny >/dev/null || cargo install --quiet --locked cargo-deny
cargo deny check "$@"
