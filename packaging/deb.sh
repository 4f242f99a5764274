#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# make deb: a package for Debian and Ubuntu of the files of the wheel, into target/dist.
. "$(dirname "$0")/lib.sh"
architecture=$(dpkg --print-architecture)
tree=$place/deb
rm -rf "$tree"
# Debian's libfabric loads all providers of this directory, and tcam looks in /usr/lib/libfabric.
libraries=/usr/lib/$(uname -m)-linux-gnu
install_wheel DESTDIR="$tree" PREFIX=/usr LIBDIR="$libraries"
mkdir -p "$tree/usr/lib/libfabric" "$tree/DEBIAN"
for file in libtcam-fi.so libtcam-sites.so libtcam-sites-large.so; do
    ln -s "..${libraries#/usr/lib}/libfabric/$file" "$tree/usr/lib/libfabric/"
done
install -D -m 644 LICENSE "$tree/usr/share/doc/tcam/copyright"
install -m 644 CHANGELOG.md "$tree/usr/share/doc/tcam/changelog"
gzip -9n "$tree"/usr/share/man/man*/* "$tree/usr/share/doc/tcam/changelog"
(cd "$tree" && find usr -type f | sort | xargs md5sum >DEBIAN/md5sums)
cat >"$tree/DEBIAN/control" <<END
Package: tcam
Version: $(deb_version "$version")
Architecture: $architecture
Maintainer: $(git log -1 --format='%an <%ae>')
Section: science
Priority: optional
Installed-Size: $(du -sk "$tree/usr" | cut -f1)
Depends: libc6 (>= $glibc)
Recommends: libfabric1 (>= 1.17), libfabric-bin, openmpi-bin
Description: capacity experiments on the match table of a NIC
 tcam is a provider for libfabric that emulates the tag matching of a NIC, and
 a command line. It shows how large the table must be for an MPI program.
END
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
file=$place/tcam_$(deb_version "$version")_$architecture.deb
dpkg-deb --root-owner-group -Zgzip --build "$tree" "$file" >/dev/null
rm -rf "$tree"
echo "Needs glibc $glibc:"
echo "$file"
