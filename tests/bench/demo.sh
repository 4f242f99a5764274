#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Shows a first result: demo.sh fds|lammps
. "$(dirname "$0")/../lib/setup.sh"
application=${1:-fds}
case $application in
fds | lammps) ;;
*) fail "APP=$application: there are fds and lammps" ;;
esac
# shellcheck disable=SC2086
need_packages $build_packages
need_cargo
say "Building the provider and tcam: some minutes, the first time"
# shellcheck disable=SC2034
quiet=
build_tcam

if [ "$application" = fds ]; then
    need_mpich
    say "An FDS-like program on 32 ranks of MPICH: every rank sends to rank 0"
    exec "$tcam" demo --mpicc "$venvs/mpich/bin/mpicc" --out target/demo/fds
fi

need_packages lammps openmpi-bin xz-utils
# Debian ships the benchmark's input only in the source package. The package index is fetched into
# target/, so that nothing outside it changes.
input=$root/target/lammps
if [ ! -f "$input/data.rhodo" ]; then
    say "Fetching the rhodopsin benchmark from the source package of lammps (80 MB)"
    rm -rf "$input"
    mkdir -p "$input/lists/partial" "$input/cache/archives/partial" "$input/sources"
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        case $list in
        *.sources) sed 's/^Types:.*/Types: deb-src/' "$list" >"$input/sources/${list##*/}" ;;
        *.list)
            if [ -f "$list" ]; then sed -n 's/^deb /deb-src /p' "$list"; fi \
                >"$input/sources/${list##*/}"
            ;;
        esac
    done
    options="-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=$input/sources
        -o Dir::State::lists=$input/lists -o Dir::Cache=$input/cache -o APT::Sandbox::User="
    # shellcheck disable=SC2086
    (cd "$input" && apt-get $options -qq update &&
        apt-get $options -qq source --download-only lammps)
    tar -xJf "$input"/lammps_*.orig.tar.xz -C "$input" --strip-components=2 \
        --wildcards '*/bench/in.rhodo' '*/bench/data.rhodo'
    rm -rf "$input"/lammps_* "$input/lists" "$input/sources" "$input/cache"
fi
say "LAMMPS, rhodopsin benchmark (32,000 atoms) on 8 ranks of Debian's Open MPI"
cd "$input"
exec "$tcam" sweep --prq 0,1,...,64 --repeat 3 --out "$root/target/demo/lammps" -- \
    /usr/bin/mpiexec -n 8 lmp -in in.rhodo -log none
