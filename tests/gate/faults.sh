#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs the fault tests: peers that are killed at any moment, forked children, a full /dev/shm, no
# file descriptors, namespaces, another user, overwritten segments, thousands of clients.
#     tests/gate/faults.sh DIRECTORY-OF-THE-PROVIDER [ROUNDS]
# With BRIEF=1 there are fewer clients: 3,000 in turn on a thousand ports instead of 70,000, and
# 1,000 at a time instead of 3,000.
set -u
[ -n "${TCAM_APART+known}" ] || exec "$(dirname "$0")/../lib/apart.sh" "$0" "$@"
here=$(cd "$(dirname "$0")/../fabric" && pwd)
rounds=${2:-1}
# Time limits are those of a quiet machine, multiplied by this factor.
TCAM_TEST_SLOWNESS=$(python3 "$here/../lib/slowness.py") || exit 1
export TCAM_TEST_SLOWNESS
build=$(mktemp -d)
# Another user must be able to read the programs.
chmod 755 "$build"
cp "$1/libtcam-fi.so" "$build/"
tcam=$build/tcam
[ ! -x "$1/tcam" ] || cp "$1/tcam" "$tcam"
export FI_PROVIDER_PATH=$build FI_PROVIDER=tcam FI_LOG_LEVEL=warn
# Every wrong byte must give an error, even if the client does not look at it.
export FI_TCAM_CHECK=on
holder= many=
# shellcheck disable=SC2064
trap 'rm -rf "$build"; for one in $holder $many; do kill "$one" 2>/dev/null; done' EXIT
passed=0 failed=0
for client in again comers fault filter many orphan full places users scribble; do
    # shellcheck disable=SC2086
    ${CC:-cc} ${CFLAGS:--O1} -Wall -Wextra -Wno-unused-function -o "$build/$client" \
        "$here/$client.c" -lfabric -lpthread ${LIBS:-} || exit 1
done

run() {
    local name=$1
    shift
    # A caught panic is also a failure.
    if output=$(timeout -k 5 $((${LIMIT:-30} * TCAM_TEST_SLOWNESS)) "$@" 2>&1) && ! grep -qE 'internal error|panicked' <<<"$output"; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "$name: failed"
        grep -v 'core:core\|ofi_' <<<"$output" | tail -n 6
    fi
}

# Waits until the process in the background has printed something, for up to 10 s.
until_said() {
    for _ in $(seq $((100 * TCAM_TEST_SLOWNESS))); do
        [ -s "$build/out" ] && break
        sleep 0.1
    done
}

# Runs many clients: 3,000 at a time, which take 4 GiB of memory, and more clients in turn than a
# server has numbers (65,536) or ports. AddressSanitizer makes a process about ten times as large
# and as slow, so it gets fewer clients.
clients=70000 together=3000 workers=200 comers=20
[ -z "${BRIEF:-}" ] || clients=3000 together=1000 workers=60 comers=8
[ -z "${SANITIZED:-}" ] || clients=5000 together=300 workers=20
tables="env FI_TCAM_PRQ_ENTRIES=64 FI_TCAM_UMQ_ENTRIES=64"

if [ "$(df -Pk /dev/shm | awk 'NR == 2 { print $4 }')" -ge 5000000 ]; then
    # shellcheck disable=SC2086
    LIMIT=120 run "$together clients together" $tables "$build/many" at-once "$together"
else
    echo "$together clients together: skipped, /dev/shm has less than 5 GB free"
fi

# Usage: ONLY_PORTS RANGE COMMAND. Runs a command in a network namespace with only these ports.
only_ports=(unshare -n sh -c 'echo "$0" >/proc/sys/net/ipv4/ip_local_port_range && exec "$@"')
few=()
[ -z "${BRIEF:-}" ] || ! unshare -n true 2>/dev/null || few=("${only_ports[@]}" "40000 40999")

# This test takes minutes, so it runs in the background of the following tests, which mostly wait.
# shellcheck disable=SC2086
timeout -k 5 $((900 * TCAM_TEST_SLOWNESS)) "${few[@]}" $tables "$build/many" one-by-one "$clients" >"$build/one-by-one" 2>&1 &
many=$!

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
        # A slot contains the addresses at which the kernel reads and writes its sender's memory. A
        # process that can overwrite the slot could damage that memory without tcam, so these parts run
        # without the kernel copy.
        case $part in all | slots) copy=off ;; *) copy=auto ;; esac
        FI_TCAM_KERNEL_COPY=$copy run "scribble over $part, seed $seed, $progress progress" "$build/scribble" $seed $part
    done
    for copy in auto off; do
        FI_TCAM_KERNEL_COPY=$copy run "no descriptors, $progress progress, kernel copy $copy" "$build/places" descriptors
    done
    run "the kernel's copy is filtered, $progress progress" "$build/filter"
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
for most in 64 1500; do
    output=$( (ulimit -f $most; "$build/orphan") 2>&1)
    grep -q 'raise ulimit -f' <<<"$output" || { echo "small files: not said"; failed=$((failed + 1)); }
done
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    mkfifo "$build/in"
    : >"$build/out"
    "$build/users" serve <"$build/in" >"$build/out" 2>/dev/null &
    holder=$!
    exec 9>"$build/in"
    until_said
    run "another user" setpriv --reuid 65534 --regid 65534 --clear-groups \
        "$build/users" call "$(cat "$build/out")"
    exec 9>&-
    wait "$holder" || failed=$((failed + 1))
    holder=
else
    echo "another user: skipped, only root can become one"
fi

# Peers that exit and restart at their ports, some of them killed.
LIMIT=120 run "peers that come back" env FI_TCAM_PRQ_ENTRIES=7 FI_TCAM_UMQ_ENTRIES=7 \
    "$build/comers" "$comers"
if unshare -m true 2>/dev/null; then
    LIMIT=120 run "peers that come back, over the network" env FI_TCAM_NET=tcp FI_TCAM_JOB_KEY=key \
        "$build/comers" "$comers" far
else
    echo "peers that come back, over the network: skipped, mounting is not permitted"
fi

# Workers that come and go on a hundred ports, so that each port is reused many times.
if unshare -n true 2>/dev/null; then
    hundred=("${only_ports[@]}" "40000 40099")
    LIMIT=180 run "workers on a hundred ports" \
        "${hundred[@]}" "$build/again" workers "$workers"
    FI_TCAM_KERNEL_COPY=off LIMIT=60 run "workers on a hundred ports, kernel copy off" \
        "${hundred[@]}" "$build/again" workers 20
    AUTO_PROGRESS=1 LIMIT=60 run "workers on a hundred ports, automatic progress" \
        "${hundred[@]}" "$build/again" workers 20

    # The segments of a process that is killed in one network namespace are removed when a process
    # starts in another.
    : >"$build/out"
    unshare -n "$build/users" serve </dev/zero >"$build/out" 2>/dev/null &
    victim=$!
    until_said
    space=$(stat -Lc %i "/proc/$victim/ns/net")
    kill -9 "$victim"
    wait "$victim" 2>/dev/null
    run "what was killed in another network namespace" "$build/orphan"
    if ls "/dev/shm/tcam.$(id -u)"/*."$space".* >/dev/null 2>&1; then
        echo "what was killed in another network namespace: $(ls "/dev/shm/tcam.$(id -u)")"
        failed=$((failed + 1))
    fi
else
    echo "network namespaces: skipped, making them is not permitted"
fi

# Another user occupies the name of a user's directory: the error is immediate and names that user.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
    as() {
        local user=$1
        shift
        setpriv --reuid "$user" --regid "$user" --clear-groups "$@"
    }
    taken=/dev/shm/tcam.65533 mine=$(as 65534 mktemp -d)
    for how in "mkdir $taken" "ln -s /nonexistent/x $taken" "ln -s $mine $taken" "touch $taken"; do
        as 65534 sh -c "$how"
        begun=$SECONDS
        output=$(FI_LOG_LEVEL=warn as 65533 timeout -k 1 $((10 * TCAM_TEST_SLOWNESS)) "$build/users" serve 2>&1 </dev/null)
        if [ $? -ne 1 ] || ! grep -q "belongs to user.*65534" <<<"$output" ||
            [ $((SECONDS - begun)) -gt $((5 * TCAM_TEST_SLOWNESS)) ] || [ -n "$(ls -A "$mine")" ]; then
            echo "another user's $how: failed"
            tail -n 3 <<<"$output"
            failed=$((failed + 1))
        else
            passed=$((passed + 1))
        fi
        if [ -x "$tcam" ]; then
            output=$(as 65533 "$tcam" doctor 2>&1)
            grep -q "belongs to user.*65534" <<<"$output" ||
                { echo "another user's $how: doctor does not say"; failed=$((failed + 1)); }
        fi
        rm -rf "$taken"
    done
    # A program with a umask that denies access to everyone, including itself.
    run "umask 0777" sh -c 'umask 0777; exec "$@"' umask \
        setpriv --reuid 65533 --regid 65533 --clear-groups "$build/again"
    # Another user occupies a name that earlier versions used in /dev/shm, and cannot list the directory
    # with the user's doorbells.
    as 65534 ln -s /nonexistent/x "/dev/shm/tcam.65533.1.2"
    mkfifo "$build/in2"
    : >"$build/out"
    as 65533 "$build/users" serve <"$build/in2" >"$build/out" 2>/dev/null &
    holder=$!
    exec 8>"$build/in2"
    until_said
    if [ ! -s "$build/out" ] || as 65534 ls "/dev/shm/tcam.65533" >/dev/null 2>&1; then
        echo "another user looks into the directory of one"
        failed=$((failed + 1))
    fi
    exec 8>&-
    wait "$holder" || failed=$((failed + 1))
    holder=
    rm -f "/dev/shm/tcam.65533.1.2"
    rmdir "$mine"
fi
# Check the output and the status of the test in the background like those of the other tests.
wait "$many"
status=$?
run "$clients clients one after the other" sh -c 'cat "$1"; exit "$2"' told "$build/one-by-one" "$status"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
