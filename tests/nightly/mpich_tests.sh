#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs MPICH's own tests, configured elsewhere, over our provider:
#   mpich_tests.sh DIRECTORY [PARTS]    DIRECTORY is its test/mpi, configured with the MPICH of
#                                       target/venv/mpich, PARTS some of its directories
# Failed tests are repeated over libfabric's shm provider; only a test that passes there counts as a
# failure of tcam. Not part of make test: this repository neither builds nor contains MPICH.
. "$(dirname "$0")/../lib/setup.sh"
tests=${1:?the directory test/mpi of MPICH, configured}
shift
[ -x "$tests/runtests" ] && [ -f "$tests/config.status" ] ||
    fail "$tests is not configured: there, ./autogen.sh and
./configure --with-mpi=$venvs/mpich --disable-fortran --disable-cxx --enable-threads=multiple"
[ $# -gt 0 ] ||
    set -- attr coll comm datatype errhan errors group impls info init io mpi_t part perf pt2pt \
        rma session spawn threads topo
need_cargo
need_mpich
build_tcam
export PATH="$venvs/mpich/bin:$PATH" MPITEST_TIMEOUT=${MPITEST_TIMEOUT:-120}
export MPIR_CVAR_CH4_NETMOD=ofi MPIR_CVAR_NOLOCAL=1 FI_PROVIDER_PATH="$target/provider"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$tests"
say "Building what all tests share"
make -s run_mpitests >"$work/make" 2>&1 || { tail -n 20 "$work/make"; exit 1; }

# Runs one part over a provider; the results are in $work/NAME.tap.
run_part() {
    provider=$1 part=$2 list=$3 name=$4
    FI_PROVIDER=$provider ./runtests -tests="$list" -testdirs="$part" -srcdir=. \
        -mpiexec=mpiexec -tapfile="$work/$name.tap" >"$work/$name.log" 2>&1 || :
    [ -s "$work/$name.tap" ] || { tail -n 5 "$work/$name.log"; exit 1; }
}
# Prints directory, program and number of processes of failed tests.
failed() { sed -n 's|^not ok [0-9]* - \./\(.*\)/\([^/]*\) \([0-9]*\) #.*|\1 \2 \3|p' "$work/$1.tap"; }

failures=0
for part in "$@"; do
    run_part tcam "$part" testlist ours
    passed=$(grep -c '^ok' "$work/ours.tap") || :
    failed ours >"$work/failed"
    others=
    while read -r directory program ranks; do
        grep "^$program $ranks\b" "$directory/testlist" >"$directory/testlist.again" || :
        run_part shm "$directory" testlist.again again </dev/null
        rm "$directory/testlist.again"
        if grep -q '^ok' "$work/again.tap"; then
            failures=$((failures + 1))
            echo "FAILED: $directory/$program, $ranks ranks"
        else
            others="$others $program"
        fi
    done <"$work/failed"
    echo "$part: $passed passed${others:+; over shm neither:$others}"
done
[ $failures = 0 ] || fail "$failures failed that libfabric's shm can do"
