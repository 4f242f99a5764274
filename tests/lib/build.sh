#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Builds the provider and tcam into target/provider as make test does, for single stages.
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages
need_cargo
# shellcheck disable=SC2034
quiet='' TCAM_PROFILE=gate
build_tcam
