#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Tests packaging/: unpacks the tarball in another directory and uses it through its environment script
# and its modulefile; compiles the recipe of Spack. Builds no images.
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages binutils environment-modules man-db
python3 -c 'compile(open("packaging/spack/package.py").read(), "package.py", "exec")'
sh -n packaging/env.sh
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
TCAM_PROFILE=${TCAM_PROFILE:-gate} packaging/dist.sh >"$place/dist.log"
cat "$place/dist.log"
tar -xzf "$(tail -n 1 "$place/dist.log")" -C "$place"
tree=$(echo "$place"/tcam-*)

# Runs checks as a user without this clone. $1: commands that set up the environment from $tree.
as_user() {
    env -i HOME="$place" PATH=/usr/bin:/bin tree="$tree" bash -c "$1"'
        set -e
        cd /
        [ "$(command -v tcam)" = "$tree/bin/tcam" ]
        tcam --version
        FI_PROVIDER_PATH=$TCAM_PROVIDER_PATH fi_info -p tcam | grep -q "provider: tcam"
        tcam doctor | grep -F "$tree/lib/libfabric/libtcam-fi.so can be loaded"
        [ -z "${FI_PROVIDER_PATH:-}" ]
        man -w tcam fi_tcam | grep -c "^$tree/" | grep -qx 2'
}
say "The tarball through env.sh"
as_user '. "$tree/env.sh"'
say "The tarball through its modulefile"
as_user '. /usr/share/modules/init/bash && module use "$tree/share/modulefiles" && module load tcam'
echo "passed"
