#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# make dist: a tarball of what make install installs, with a modulefile and env.sh, into target/dist.
# TCAM_PROFILE names the profile of cargo (release).
. "$(dirname "$0")/../tests/lib/setup.sh"
need_cargo
version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
profile=${TCAM_PROFILE:-release}
name=tcam-$version-$(uname -s | tr '[:upper:]' '[:lower:]')-$(uname -m)
[ "$profile" = release ] || name=$name-$profile
place=$target/dist
tree=$place/$name
rm -rf "$tree"
make -s install PROFILE="$profile" DESTDIR="$place" PREFIX="/$name"
# Line tables are four fifths of the program.
strip --strip-debug "$tree/bin/tcam" "$tree/lib/libfabric/libtcam-fi.so"
install -D -m 644 packaging/modulefile "$tree/share/modulefiles/tcam/$version"
install -m 644 packaging/env.sh LICENSE "$tree"
glibc=$(objdump -T "$tree/bin/tcam" "$tree/lib/libfabric/libtcam-fi.so" |
    grep -o 'GLIBC_[0-9.]*' | sort -uV | tail -n 1 | cut -d_ -f2)
cat >"$tree/README" <<END
tcam $version, for Linux on $(uname -m) with glibc $glibc or newer.

    . ./env.sh                                    or: module use $name/share/modulefiles; module load tcam
    tcam doctor -- mpiexec -n 4 ./your-program

The directory can be moved. man tcam and man fi_tcam describe all commands and parameters.
END
tar -C "$place" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$(git log -1 --format=%ct)" \
    -czf "$tree.tar.gz" "$name"
rm -rf "$tree"
echo "Needs glibc $glibc:"
echo "$tree.tar.gz"
