#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# make dist: a tarball of the files of the wheel, with a modulefile and env.sh, into target/dist.
. "$(dirname "$0")/lib.sh"
name=tcam-$version-linux-$(uname -m)
tree=$place/$name
rm -rf "$tree"
install_wheel DESTDIR="$place" PREFIX="/$name"
install -D -m 644 packaging/modulefile "$tree/share/modulefiles/tcam/$version"
install -m 644 packaging/env.sh LICENSE "$tree"
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
