#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Runs libfabric's own tests, built elsewhere, against our provider:
#   fabtests.sh PREFIX [SETS]    PREFIX has bin/runfabtests.sh; SETS as for its -t
# Not part of make test: this repository neither builds nor contains libfabric.
. "$(dirname "$0")/../lib/setup.sh"
prefix=${1:?the prefix of a libfabric with fabtests}
sets=${2:-quick,multinode,threaded}
[ -x "$prefix/bin/runfabtests.sh" ] || fail "$prefix/bin/runfabtests.sh is missing"
need_cargo
build_tcam
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The script needs ssh to both hosts. This substitute runs everything on this host, and ignores the
# script's requests to kill every fi_* process of the host, which may belong to others.
cat >"$work/ssh" <<'SSH'
#!/bin/bash
while [ $# -gt 0 ]; do
    case $1 in -n) shift ;; -o) shift 2 ;; *) break ;; esac
done
shift
case $* in *"kill -9"*) exit 0 ;; esac
exec bash -c "$*"
SSH
chmod +x "$work/ssh"
export PATH="$work:$prefix/bin:$PATH" LD_LIBRARY_PATH="$prefix/lib" FI_PROVIDER_PATH="$target/provider"
cd "$work"
failed=0
for set in $(echo "$sets" | tr ',' ' '); do
    say "fabtests: $set"
    bash "$prefix/bin/runfabtests.sh" -t "$set" -f "$root/tests/nightly/fabtests.exclude" tcam 127.0.0.1 127.0.0.1 ||
        failed=1
done
exit $failed
