# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Sourced by dist.sh, deb.sh and release.sh: setup.sh, and the installation of the files of the wheel.
. "$(dirname "$0")/../tests/lib/setup.sh"
command -v dpkg >/dev/null || fail "dpkg is missing: packages are made on Debian or Ubuntu."
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
# release.sh sets another directory.
place=${TCAM_DIST:-$target/dist}
mkdir -p "$place"

# Debian's spelling of a version: 1.0.0~rc.1 is older than 1.0.0.
deb_version() { echo "$1" | tr - '~'; }

# install_wheel VARIABLE=VALUE...: installs provider, tcam and man pages of the wheel with the variables of
# make install. Sets $glibc to the oldest version that the files need. Builds the wheel unless
# $TCAM_WHEEL names one.
install_wheel() {
    need_packages make binutils python3
    wheel=${TCAM_WHEEL:-}
    [ -n "$wheel" ] || {
        packaging/wheel/build.sh
        wheel=$(echo "$root"/target/wheel/dist/tcam-*.whl)
    }
    built=$(mktemp -d)
    python3 -m zipfile -e "$wheel" "$built/wheel"
    mv "$built"/wheel/tcam-*.data/scripts/tcam "$built/tcam"
    mv "$built"/wheel/tcam-*.data/data/lib/libfabric/libtcam-fi.so "$built/libtcam_fi.so"
    mv "$built"/wheel/tcam-*.data/data/lib/libfabric/libtcam-sites.so "$built/libtcam_sites.so"
    mv "$built"/wheel/tcam-*.data/data/lib/libfabric/libtcam-sites-large.so "$built/libtcam_sites_large.so"
    make -s install-built BUILT="$built" "$@"
    glibc=$(objdump -T "$built/tcam" "$built/libtcam_fi.so" "$built"/libtcam_sites*.so |
        grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d_ -f2)
    rm -rf "$built"
}
