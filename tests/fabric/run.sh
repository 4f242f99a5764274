#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-2-Clause
# Builds the C clients of libtcam-fi.so and runs each with tables of 0, 1, 7 and 4096 entries, with
# and without the kernel copy, under the installed libfabric. Clients that test the death of a
# process at a certain moment run with fewer sizes. Most clients wait more than they compute, so two
# run at the same time; clients that sleep run alone afterwards. Each run has its own ports and
# /dev/shm (tests/lib/apart.sh).
#     run.sh DIRECTORY-OF-THE-PROVIDER [CLIENT...]
#     run.sh DIRECTORY-OF-THE-PROVIDER timed
# The second form runs the clients that measure when the provider sleeps and how soon it wakes up.
# These need a quiet machine, so the first form omits them.
# With BRIEF=1 the tables have 0 and 7 entries, and only clients with long messages run without the
# kernel copy, because the others do not use it. LIBFABRIC_2 may be the directory of a libfabric
# 2.x, for tests of its newer API.
set -u
here=$(cd "$(dirname "$0")" && pwd)
export FI_PROVIDER_PATH=$1 FI_PROVIDER=tcam
shift
# Time limits are those of a quiet machine, multiplied by this factor.
TCAM_TEST_SLOWNESS=$(python3 "$here/../lib/slowness.py") || exit 1
export TCAM_TEST_SLOWNESS
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
passed=0 failed=0 skipped= lane=
clients=("$@")
[ ${#clients[@]} -gt 0 ] || clients=(order messages busy probe cancel directed profile manual objects scalable shared member holder shared_av threads sends served rebind fork death lost seldom leaving again gone image short silent auto rma region trigger atomic late arrival)
# Clients that call process_vm_readv or process_vm_writev.
with_long_messages="messages busy probe scalable shared threads sends served leaving again gone image short auto rma region late arrival"
# Fails if a client leaves a file in its own /dev/shm.
# shellcheck disable=SC2016
and_nothing_stays='"$@" || exit; [ -z "${TCAM_APART:-}" ] || ! find /dev/shm -type f | grep .'
run() {
    local name=$1
    shift
    # The output goes to a file, because a child that outlives its client would keep a pipe open.
    if timeout -k 5 $((60 * TCAM_TEST_SLOWNESS)) "$here/../lib/apart.sh" \
        sh -c "$and_nothing_stays" run "$@" >"$build/output$lane" 2>&1; then
        passed=$((passed + 1))
        # Print a skipped message once, even if the client runs several times.
        output=$(grep skipped "$build/output$lane") && [[ $skipped != *"$output"* ]] &&
            skipped+=$output && echo "$output"
    else
        failed=$((failed + 1))
        echo "$name" >>"$build/failed"
        echo "$name: failed"
        tail -n 5 "$build/output$lane"
    fi
}
timed() {
    for client in naps looks bound; do
        cc -O1 -Wall -Wextra -Wno-unused-function -o "$build/$client" "$here/$client.c" -lfabric -lpthread || exit 1
    done
    run "naps" env FI_TCAM_IDLE=yield "$build/naps"
    run "naps, automatic progress" env FI_TCAM_IDLE=yield AUTO_PROGRESS=1 "$build/naps"
    run "looks" "$build/looks"
    if grep -qsE '^[0-9]' /sys/fs/cgroup/cpu.max /sys/fs/cgroup/cpu/cpu.cfs_quota_us; then
        echo "bound skipped: the processors of this container are rationed, so that polls may sleep"
    else
        run "bound" "$build/bound"
    fi
}
end() {
    echo "$passed passed, $failed failed"
    # The last lines are what remains of a long log.
    [ ! -f "$build/failed" ] || sed 's/^/failed: /' "$build/failed"
    [ "$failed" -eq 0 ]
    exit
}
all_of() {
    local client=$1 sizes="0 1 7 4096" copies="auto off" entries copy
    cc -O1 -Wall -Wextra -Wno-unused-function -o "$build/$client" "$here/$client.c" -lfabric -lpthread || exit 1
    case $client in
        rebind) sizes=7 ;;
        manual | member | holder | region | fork | death | lost | seldom | leaving | again | gone | image | short | silent) sizes="0 7" ;;
    esac
    if [ -n "${BRIEF:-}" ]; then
        [ "$sizes" = 7 ] || sizes="0 7"
        case " $with_long_messages " in *" $client "*) ;; *) copies=auto ;; esac
    fi
    for entries in $sizes; do
        for copy in $copies; do
            export FI_TCAM_PRQ_ENTRIES=$entries FI_TCAM_UMQ_ENTRIES=$entries FI_TCAM_KERNEL_COPY=$copy
            run "$client, $entries entries, kernel copy $copy" "$build/$client"
            [ "$entries" = 7 ] && AUTO_PROGRESS=1 \
                run "$client, $entries entries, kernel copy $copy, automatic progress" \
                "$build/$client"
        done
    done
}
if [ "$*" = timed ]; then
    timed
    end
fi
# Each of the two lanes runs the clients for which it succeeds in creating a directory. The other
# lane then skips these clients.
lane_of_clients() {
    lane=$1
    local client
    for client in "${clients[@]}"; do
        mkdir "$build/taken-$client" 2>/dev/null && all_of "$client"
    done
    echo "$passed $failed" >"$build/counts$lane"
}
lane_of_clients 1 &
lane_of_clients 2 &
wait
for lane in 1 2; do
    # A lane that found no compiler counted nothing.
    read -r lane_passed lane_failed <"$build/counts$lane" || exit 1
    passed=$((passed + lane_passed)) failed=$((failed + lane_failed))
done
lane=
unset FI_TCAM_PRQ_ENTRIES FI_TCAM_UMQ_ENTRIES FI_TCAM_KERNEL_COPY
# Runs contexts that close with pending operations, and a peer that is stopped in the middle of a
# copy.
if [ -x "$build/scalable" ]; then
    for client in closing stopped; do
        cc -O1 -Wall -Wextra -Wno-unused-function -rdynamic -o "$build/$client" "$here/$client.c" -lfabric -lpthread || exit 1
    done
    seed=$RANDOM
    for how in FI_TCAM_KERNEL_COPY=auto FI_TCAM_KERNEL_COPY=off AUTO_PROGRESS=1 \
        "FI_TCAM_HOST_ENGINE=list FI_TCAM_PRQ_ENTRIES=7 FI_TCAM_UMQ_ENTRIES=0"; do
        # shellcheck disable=SC2086
        run "closing $seed 2, $how" env $how "$build/closing" $seed 2
    done
    run "closing $seed" "$build/closing" $seed
    # The kernel reads memory that atomic operations of the client's other thread change, which
    # ThreadSanitizer reports as a race.
    [ -n "${TSAN_OPTIONS:-}" ] || run "closing $seed 2 1" "$build/closing" $seed 2 1
    for what in write read send; do
        run "stopped $what" "$build/stopped" $what
    done
fi
if [ -x "$build/rma" ]; then
    for rules in basic endpoint; do
        for copy in auto off; do
            run "rma, memory registered as $rules, kernel copy $copy" \
                env FI_TCAM_MR=$rules FI_TCAM_KERNEL_COPY=$copy "$build/rma"
        done
    done
    run "rma, nothing eager" env FI_TCAM_EAGER_SIZE=0 "$build/rma"
    for eager in 0 97 16384; do
        run "rma, kernel copy off, $eager bytes eager" \
            env FI_TCAM_KERNEL_COPY=off FI_TCAM_EAGER_SIZE=$eager "$build/rma"
    done
fi
if [ -x "$build/directed" ] && [ -n "${LIBFABRIC_2:-}" ]; then
    run "directed, libfabric 2.x" env LD_LIBRARY_PATH="$LIBFABRIC_2" "$build/directed"
fi
cc -O1 -Wall -Wextra -Wno-unused-function -o "$build/flow" "$here/flow.c" -lfabric || exit 1
for exhausted in spill fail; do
    run "flow, $exhausted" env FI_TCAM_OVERFLOW=flow-control FI_TCAM_EXHAUSTED=$exhausted \
        FI_TCAM_FLOW_TIMEOUT=200 FI_TCAM_PRQ_ENTRIES=7 FI_TCAM_UMQ_ENTRIES=7 \
        "$build/flow" $exhausted
done
# Runs the waiting test with the default idle setting, and with the setting that lets every poll
# sleep.
cc -O1 -Wall -Wextra -Wno-unused-function -o "$build/wait" "$here/wait.c" -lfabric -lpthread || exit 1
for idle in auto yield; do
    run "wait, idle $idle" env FI_TCAM_IDLE=$idle "$build/wait"
    run "wait, idle $idle, automatic progress" env FI_TCAM_IDLE=$idle AUTO_PROGRESS=1 "$build/wait"
done
# Repeats clients with locks, and with every compare kernel that this processor supports.
if [ ! -x "$build/messages" ]; then
    cc -O1 -o "$build/messages" "$here/messages.c" -lfabric || exit 1
fi
run "messages, FI_THREAD_SAFE" "$build/messages" safe
for kernel in avx512 avx2 scalar; do
    case $kernel in
        avx512) grep -qw avx512bw /proc/cpuinfo ;;
        avx2) grep -qw avx2 /proc/cpuinfo ;;
        scalar) true ;;
    esac || { echo "kernel $kernel skipped: this processor does not have it"; continue; }
    FI_TCAM_KERNEL=$kernel run "messages, kernel $kernel" "$build/messages"
done
# Users run programs under valgrind, which hides the vDSO and some features of the processor.
if [ -n "${SANITIZED:-}" ] || ! command -v valgrind >/dev/null; then
    echo "valgrind skipped: it is not here, or a sanitizer is"
elif [ -x "$build/order" ]; then
    FI_TCAM_PRQ_ENTRIES=7 run "order under valgrind" \
        valgrind --quiet --error-exitcode=9 "$build/order"
fi
# A wrong value or name must give an error that names it. (fi_info cannot load an instrumented
# provider, see tests/nightly/asan.sh.)
[ -n "${SANITIZED:-}" ] || for wrong in FI_TCAM_PRQ_ENTRIES=65537 FI_TCAM_KERNEL=mmx FI_TCAM_PRQ_ENTRY=7; do
    if message=$(env "$wrong" timeout $((20 * TCAM_TEST_SLOWNESS)) fi_info -p tcam 2>&1); then
        echo "$wrong: accepted"; failed=$((failed + 1))
    elif ! grep -q "${wrong%%=*}" <<<"$message"; then
        echo "$wrong: not named in: $message"; failed=$((failed + 1))
    else
        passed=$((passed + 1))
    fi
done
end
