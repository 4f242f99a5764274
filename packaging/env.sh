# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Puts an unpacked tarball into the environment of bash or zsh: . DIRECTORY/env.sh
# In another shell set TCAM_ROOT=DIRECTORY before. For a libfabric program without `tcam run`:
#   FI_PROVIDER_PATH=$TCAM_PROVIDER_PATH fi_info -p tcam
if [ -n "${BASH_VERSION:-}" ]; then
    # shellcheck disable=SC3028,SC3054
    TCAM_ROOT=$(CDPATH='' cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
elif [ -n "${ZSH_VERSION:-}" ]; then
    # shellcheck disable=SC3057
    TCAM_ROOT=$(eval 'cd "${${(%):-%x}:h}" && pwd')
fi
if [ -x "${TCAM_ROOT:-}/bin/tcam" ]; then
    export PATH="$TCAM_ROOT/bin:$PATH" TCAM_PROVIDER_PATH="$TCAM_ROOT/lib/libfabric"
else
    echo "env.sh: TCAM_ROOT=${TCAM_ROOT:-} has no bin/tcam" >&2
fi
