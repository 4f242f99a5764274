#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# tests/lib/apart.sh COMMAND [WORD...]: runs a command in its own process namespace, network
# namespace and /dev/shm. Ports and segments of other programs do not disturb it, and its processes
# end with it. TCAM_APART is 1 for the command. If namespaces are not permitted or `ip` is missing,
# the command runs without them and TCAM_APART is empty.
if ! unshare -n -m -p -f --mount-proc true 2>/dev/null || ! command -v ip >/dev/null; then
    export TCAM_APART=
    exec "$@"
fi
export TCAM_APART=1
# The shell is process 1 of the namespace. Signals of its children do not reach that process, so the
# command runs in another one. The interface `here`, if it can be made, gives endpoints an address other
# than that of the loopback.
exec unshare -n -m -p -f --kill-child --mount-proc sh -c '
    ip link set lo up && mount -t tmpfs tmpfs /dev/shm || exit
    ip link add here type veth peer name there 2>/dev/null &&
        ip addr add 10.98.0.1/24 dev here && ip link set here up && ip link set there up
    "$@"
    exit $?' apart "$@"
