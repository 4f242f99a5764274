#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Bad days: peers that are killed at any moment, forked children, a full /dev/shm, no
# descriptors, process namespaces, another user, segments that are written over.
#   tests/faults.sh DIRECTORY-OF-THE-PROVIDER [ROUNDS]
set -u
here=$(cd "$(dirname "$0")" && pwd)/fabric
rounds=${2:-2}
build=$(mktemp -d)
# Another user must be able to read it.
chmod 755 "$build"
cp "$1/libtcam-fi.so" "$build/"
export FI_PROVIDER_PATH=$build FI_PROVIDER=tcam FI_LOG_LEVEL=warn
holder=
# shellcheck disable=SC2064
trap 'rm -rf "$build"; [ -z "$holder" ] || kill "$holder" 2>/dev/null' EXIT
passed=0 failed=0
for client in fault orphan full places users scribble; do
    # shellcheck disable=SC2086
    ${CC:-cc} ${CFLAGS:--O1} -Wall -Wextra -Wno-unused-function -o "$build/$client" \
        "$here/$client.c" -lfabric -lpthread ${LIBS:-} || exit 1
done

run() {
    local name=$1
    shift
    # A panic that was caught is a defect, too.
    if output=$(timeout -k 5 "${LIMIT:-30}" "$@" 2>&1) && ! grep -qE 'internal error|panicked' <<<"$output"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$name: failed"
        grep -v 'core:core\|ofi_' <<<"$output" | tail -n 6
    fi
}

for ((round = 0; round < rounds; round++)); do
    seed=$RANDOM
    for progress in manual automatic; do
        [ $progress = automatic ] && export AUTO_PROGRESS=1 || unset AUTO_PROGRESS
        for copy in auto off; do
            for how in frozen target origin; do
                FI_TCAM_KERNEL_COPY=$copy run \
                    "fault $how, seed $seed, $progress progress, kernel copy $copy" \
                    "$build/fault" $how $seed
            done
        done
    done
done
for progress in manual automatic; do
    [ $progress = automatic ] && export AUTO_PROGRESS=1 || unset AUTO_PROGRESS
    run "orphan, $progress progress" "$build/orphan"
    for part in all header peers states slots buffers; do
        seed=$RANDOM
        # A slot says where in its sender's memory the kernel is to read and write, which
        # whoever writes the slot could do without us: so not here.
        case $part in all | slots) copy=off ;; *) copy=auto ;; esac
        FI_TCAM_KERNEL_COPY=$copy run "scribble over $part, seed $seed, $progress progress" "$build/scribble" $seed $part
    done
    for copy in auto off; do
        FI_TCAM_KERNEL_COPY=$copy run "no descriptors, $progress progress, kernel copy $copy" "$build/places" descriptors
    done
    run "no standard streams, $progress progress" "$build/places" silent
    run "no memory to lock, $progress progress" "$build/places" locked
    grep -q 'raise ulimit -l\|skipped' <<<"$output" || { echo "no memory to lock: not said"; failed=$((failed + 1)); }
    if unshare -p true 2>/dev/null; then
        for place in apart inside; do
            run "process namespaces $place, $progress progress" "$build/places" $place
        done
    else
        echo "process namespaces: skipped, making them is not permitted"
    fi
    if [ -e /proc/self/timens_offsets ] && unshare -m true 2>/dev/null; then
        run "another time namespace, $progress progress" "$build/places" dated
    else
        echo "another time namespace: skipped, this kernel has none, or making them is not permitted"
    fi
    if unshare -m true 2>/dev/null; then
        # shellcheck disable=SC2016
        run "full /dev/shm, $progress progress" unshare -m sh -c \
            'mount -t tmpfs -o size=8m tcam-full /dev/shm && "$0" && ! ls /dev/shm | grep tcam' \
            "$build/full"
        grep -q 'no room for a segment' <<<"$output" || { echo "full /dev/shm: not said"; failed=$((failed + 1)); }
        run "another /dev/shm, $progress progress" "$build/places" elsewhere
        grep -q 'not in this /dev/shm' <<<"$output" || { echo "another /dev/shm: not said"; failed=$((failed + 1)); }
        # shellcheck disable=SC2016
        run "/dev/shm that cannot reserve memory, $progress progress" unshare -m sh -c \
            'mount -t ramfs tcam-ram /dev/shm && "$0"' "$build/orphan"
    else
        echo "full /dev/shm: skipped, mounting is not permitted"
    fi
done
unset AUTO_PROGRESS
output=$( (ulimit -f 64; "$build/orphan") 2>&1)
grep -q 'raise ulimit -f' <<<"$output" || { echo "small files: not said"; failed=$((failed + 1)); }
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    mkfifo "$build/in"
    "$build/users" serve <"$build/in" >"$build/out" 2>/dev/null &
    holder=$!
    exec 9>"$build/in"
    for _ in $(seq 100); do
        [ -s "$build/out" ] && break
        sleep 0.1
    done
    run "another user" setpriv --reuid 65534 --regid 65534 --clear-groups \
        "$build/users" call "$(cat "$build/out")"
    exec 9>&-
    wait "$holder" || failed=$((failed + 1))
    holder=
else
    echo "another user: skipped, only root can become one"
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
