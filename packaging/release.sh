#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# make release VERSION=1.2.3: makes the commit and the tag of a release in this clone, and its files in
# target/release-1.2.3.
# With DRY_RUN=1 or --dry-run, makes commit and tag in a temporary clone of the last commit.
. "$(dirname "$0")/lib.sh"
trap 'exit 130' HUP INT TERM
[ "${1:-}" != --dry-run ] || {
    DRY_RUN=1
    shift
}
new=${1:-}
if [ "${DRY_RUN:-0}" = 1 ]; then
    clone=$(mktemp -d)
    trap 'rm -rf "$clone"' EXIT
    git clone -q -c user.name=dry-run -c user.email=dry-run@localhost "$root" "$clone"
    mkdir -p "$venvs" "$clone/target"
    ln -s "$venvs" "$clone/target/venv"
    DRY_RUN=clone CARGO_TARGET_DIR=$target "$clone/packaging/release.sh" "$new"
    exit
fi
need_cargo
# Only a dry run may take files that were built before, or with another profile.
[ "${DRY_RUN:-}" = clone ] || unset TCAM_WHEEL TCAM_PROFILE

# The wheel's version allows no other suffixes.
echo "$new" | grep -qxE '(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}(-(alpha|beta|rc)\.(0|[1-9][0-9]*))?' ||
    fail "VERSION=$new: not a version such as 1.2.3 or 1.2.3-rc.1"
released() { git rev-parse -q --verify "refs/tags/v$1" >/dev/null; }
! released "$new" || fail "VERSION=$new: the tag v$new exists"
relation=ge
! released "$version" || relation=gt
dpkg --compare-versions "$(deb_version "$new")" "$relation" "$(deb_version "$version")" ||
    fail "VERSION=$new: older than $version, the version in Cargo.toml"
changes=$(git status --porcelain)
[ -z "$changes" ] || fail "Commit or remove these changes first:
$changes"
sed -n '/^## \[Unreleased\]$/,/^## \[[0-9]/p' CHANGELOG.md | grep -q '^- ' ||
    fail "CHANGELOG.md has no entry under Unreleased."

before=$(git rev-parse HEAD)
undo() {
    git tag -d "v$new" >/dev/null 2>&1 || :
    # Other files may have been edited during the build.
    git reset -q --soft "$before"
    git checkout -q "$before" Cargo.toml Cargo.lock CHANGELOG.md
    echo "The release failed; its commit and its tag are removed." >&2
}
trap undo EXIT
say "Commit and tag of $new"
sed -i "/^\[workspace.package\]/,/^\$/s/^version = .*/version = \"$new\"/" Cargo.toml
sed -i "s/^## \[Unreleased\]\$/&\n\n## [$new] - $(date +%F)/" CHANGELOG.md
cargo update --quiet --workspace --offline
git commit -q -m "Release $new" Cargo.toml Cargo.lock CHANGELOG.md
git tag -a -m "tcam $new" "v$new"
git --no-pager show -U0 "v$new"

say "Files of $new"
TCAM_DIST=$target/release-$new
rm -rf "$TCAM_DIST"
mkdir -p "$TCAM_DIST"
[ -n "${TCAM_WHEEL:-}" ] || {
    packaging/wheel/build.sh
    TCAM_WHEEL=$(echo "$root"/target/wheel/dist/tcam-*.whl)
}
export TCAM_DIST TCAM_WHEEL
cp "$(dirname "$TCAM_WHEEL")"/tcam-* "$TCAM_DIST"
packaging/dist.sh
packaging/deb.sh
python3 packaging/sbom.py >"$TCAM_DIST/tcam-$new.cdx.json"
(cd "$TCAM_DIST" && sha256sum tcam* >SHA256SUMS)
trap - EXIT
cat <<END

$TCAM_DIST has the files of tcam $new. Next (RELEASING.md):
    git push origin HEAD v$new
    Publish the section $new of CHANGELOG.md, and attach all files.
To give up the release before the push: git tag -d v$new && git reset --keep $before
END
