#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Tests the provider with fi_info: the system's libfabric and those of the wheels list the provider,
# every parameter is documented, and errors name wrong values.
. "$(dirname "$0")/../lib/setup.sh"
need_packages libfabric-bin
need_mpich
need_openmpi
unset FI_PROVIDER
export FI_PROVIDER_PATH="$target/provider"

parameters=$(sed -n "s/^    \([a-z_]*\): [A-Za-z0-9<>]* {\$/\1/p" nic/src/params/list.rs)
[ -n "$parameters" ] || fail "no parameters found in nic/src/params/list.rs"

for library in "" "$venvs/mpich/lib/mpich" "$venvs/openmpi/lib/openmpi"; do
    [ -z "$library" ] || export LD_LIBRARY_PATH="$library"
    version=$(fi_info --version | sed -n 's/^libfabric: //p')
    fi_info -p tcam -v | grep -q 'prov_name: tcam' ||
        fail "libfabric $version does not list tcam"
    described=$(fi_info -e)
    for parameter in $parameters; do
        name=FI_TCAM_$(echo "$parameter" | tr '[:lower:]' '[:upper:]')
        echo "$described" | grep -q "$name" || fail "libfabric $version: fi_info -e lacks $name"
    done
    wrong=$(FI_TCAM_PRQ_ENTRIES=many fi_info -p tcam 2>&1) &&
        fail "libfabric $version: FI_TCAM_PRQ_ENTRIES=many was accepted"
    echo "$wrong" | grep -q 'FI_TCAM_PRQ_ENTRIES=many' ||
        fail "libfabric $version: a wrong value is not named: $wrong"
    echo "libfabric $version: listed, $(echo "$parameters" | wc -l) parameters documented"
done
