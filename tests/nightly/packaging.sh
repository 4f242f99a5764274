#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Tests packaging/: makes the files of a release in a dry run; uses the tarball through its environment script
# and its modulefile, and the .deb as root; compiles the recipe of Spack. Builds no images.
# TCAM_WHEEL names the wheel of a previous test.
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages binutils environment-modules man-db git
python3 -c 'compile(open("packaging/spack/package.py").read(), "package.py", "exec")'
sh -n packaging/env.sh
export TCAM_PROFILE="${TCAM_PROFILE:-gate}"
place=$(mktemp -d)
installed=
tidy() {
    [ -z "$installed" ] || dpkg --purge tcam
    rm -rf "$place"
}
trap tidy EXIT
trap 'exit 130' INT TERM

say "Versions and clones that make release refuses"
# state DIRECTORY: prints the commit, the tags and the changed files of a clone.
state() { git -C "$1" rev-parse HEAD && git -C "$1" tag && git -C "$1" status --porcelain; }
# refuses TEXT VERSION: fails unless release.sh refuses the version with TEXT and leaves the clone as it
# was.
refuses() {
    state "$place/clone" >"$place/before"
    "$place/clone/packaging/release.sh" "$2" >"$place/refused.log" 2>&1 && fail "make release VERSION=$2 does not fail."
    grep -q "$1" "$place/refused.log" || { cat "$place/refused.log" >&2; fail "make release does not print \"$1\"."; }
    state "$place/clone" | cmp - "$place/before" || fail "make release VERSION=$2 fails and changes the clone."
}
git clone -q -c user.name=test -c user.email=test@localhost "$root" "$place/clone"
for version in "" 1.0 1.0.0-dev 01.0.0; do
    refuses "not a version" "$version"
done
refuses "older than" 0.0.9
touch "$place/clone/unknown"
refuses unknown 99.0.0
rm "$place/clone/unknown"
# A failure after the commit and the tag were made removes both.
(export DRY_RUN=clone TCAM_WHEEL="$place/none.whl" && refuses "its commit and its tag are removed" 99.0.0)
# Files that are edited during the build are kept.
printf '#!/bin/sh\necho edited >README.md\n' >"$place/clone/.git/hooks/post-commit"
chmod +x "$place/clone/.git/hooks/post-commit"
! DRY_RUN=clone TCAM_WHEEL="$place/none.whl" "$place/clone/packaging/release.sh" 99.0.0 >"$place/refused.log" 2>&1 ||
    fail "make release succeeds without a wheel."
rm "$place/clone/.git/hooks/post-commit"
[ "$(git -C "$place/clone" status --porcelain)" = " M README.md" ] || fail "make release fails and removes an edit."
git -C "$place/clone" checkout -q README.md
sed -i '/^- /d' "$place/clone/CHANGELOG.md"
git -C "$place/clone" commit -qam "No entries"
refuses "no entry" 99.0.0

say "The files of a release, without effect on this clone"
state "$root" >"$place/before"
DRY_RUN=1 packaging/release.sh 99.0.0 >"$place/release.log" 2>&1 || { cat "$place/release.log" >&2; exit 1; }
state "$root" | cmp - "$place/before" || fail "A dry run changed this clone."
for line in "tag v99.0.0" "Release 99.0.0" '+version = "99.0.0"' "+## \[99.0.0\] - 20..-..-.."; do
    grep -q "^ *$line\$" "$place/release.log" || { cat "$place/release.log" >&2; fail "No line $line."; }
done
files=$target/release-99.0.0
(cd "$files" && sha256sum --check SHA256SUMS) | tee "$place/sums.log"
[ "$(grep -c OK "$place/sums.log")" = 5 ] || fail "$files has not 5 files."
python3 - "$files/tcam-99.0.0.cdx.json" <<'END'
import json
import sys

components = json.load(open(sys.argv[1]))["components"]
names = {component["name"] for component in components}
assert {"tcam-provider", "tcam-channel", "tcam-lab", "libc", "clap"} <= names, names
assert not names & {"proptest", "loom", "bindgen", "windows-sys"}, names
assert all("licenses" in component for component in components)
assert all(component["name"].startswith("tcam-") or "hashes" in component for component in components)
END

# Runs checks as a user without this clone. $1: prefix, $2: directory with the provider, $3: commands that set
# up the environment.
as_user() {
    env -i HOME="$place" PATH=/usr/bin:/bin tree="$1" provider="$2" bash -c "$3"'
        set -e
        cd /
        [ "$(command -v tcam)" = "$tree/bin/tcam" ]
        tcam --version
        env ${TCAM_PROVIDER_PATH:+FI_PROVIDER_PATH=$TCAM_PROVIDER_PATH} fi_info -p tcam | grep -q "provider: tcam"
        tcam doctor >"$HOME/doctor.log" || { cat "$HOME/doctor.log" >&2; exit 1; }
        grep -F "$provider/libtcam-fi.so can be loaded" "$HOME/doctor.log"
        [ -z "${FI_PROVIDER_PATH:-}" ]
        man -w tcam fi_tcam | grep -c "^$tree/" | grep -qx 2'
}
tar -xzf "$files"/tcam-99.0.0-linux-*.tar.gz -C "$place"
tree=$(echo "$place"/tcam-99.0.0-*)
say "The tarball through env.sh"
as_user "$tree" "$tree/lib/libfabric" '. "$tree/env.sh"'
say "The tarball through its modulefile"
as_user "$tree" "$tree/lib/libfabric" \
    '. /usr/share/modules/init/bash && module use "$tree/share/modulefiles" && module load tcam'

say "The .deb"
deb=$(echo "$files"/tcam_99.0.0_*.deb)
if [ "$(id -u)" = 0 ]; then
    ! dpkg-query -W tcam >/dev/null 2>&1 || fail "A package tcam is known to dpkg. Remove it: dpkg --purge tcam"
    installed=yes
    # Images of containers often exclude man pages.
    dpkg --path-include='/usr/share/*' --install "$deb"
    [ -z "$(dpkg --verify tcam)" ] || { dpkg --verify tcam >&2; fail "dpkg --verify finds differences."; }
    as_user /usr /usr/lib/libfabric ''
    dpkg --purge tcam
    installed=
    [ ! -e /usr/bin/tcam ] && [ ! -e /usr/lib/libfabric ] || fail "The .deb leaves files."
else
    echo "Not root: it is not installed."
    dpkg-deb --contents "$deb"
fi
echo "passed"
