# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Sourced after setup.sh by scripts of many stages, which call themselves with the name of a lane.
# Each `say` begins a stage. At the end of a stage, $stages gets a row with its lane, its seconds
# and the processor seconds of its child processes. The script prints the rows at its end, also
# after a failed stage, and then the last lines of each lane that failed.

script=$(echo "$root"/tests/*/"$(basename "$0")")
lane=${1:-}
case $lane in
"" | computes | waits | ends) ;;
*) fail "$lane: the lanes are computes, waits and ends" ;;
esac
stages=$target/stages.csv
stage=
running=
failed=
mkdir -p "$target"
[ -n "$lane" ] || echo "stage,lane,seconds,processor_seconds" >"$stages"

# Sets $spent: processor seconds of all child processes until now. `times` counts only the children
# that this shell waited for, so it must not run in a subshell.
read_spent() {
    times >"$stages.times$lane"
    spent=$(awk -F'[ms ]+' 'NR == 2 { printf "%.0f", $1 * 60 + $2 + $3 * 60 + $4 }' "$stages.times$lane")
    rm "$stages.times$lane"
}

end_stage() {
    [ -n "$stage" ] || return 0
    read_spent
    echo "\"$stage\",$lane,$(($(date +%s) - stage_began)),$((spent - spent_before))" >>"$stages"
    stage=
}

say() {
    end_stage
    read_spent
    stage=$* stage_began=$(date +%s) spent_before=$spent
    say_title "$stage"
}
# lanes NAME...: runs lanes of this script at the same time, each with its own ports and /dev/shm,
# and prints their output in this order.
lanes() {
    end_stage
    # A test measures the machine when it begins; the load from the other lanes may begin later.
    export TCAM_TEST_SLOWNESS="${TCAM_TEST_SLOWNESS:-3}"
    for name in "$@"; do
        tests/lib/apart.sh "$script" "$name" >"$target/$name.log" 2>&1 &
        running="$running $!"
    done
    for process in $running; do
        tail -f -n +1 --pid="$process" "$target/$1.log"
        wait "$process" || failed="$failed $1"
        shift
    done
    running=
    [ -z "$failed" ] || exit 1
}

print_stages() {
    awk -F'"' -v all=$(($(date +%s) - began)) '
        BEGIN { printf "\nseconds  processor  stage\n" }
        NR > 1 {
            split($3, of, ",")
            printf "%7d  %9d  %s%s\n", of[3], of[4], $2, of[2] ? " (" of[2] ")" : ""
            spent += of[4]
        }
        END { printf "%7d  %9d  all\n", all, spent }' "$stages"
}

end_script() {
    status=$?
    end_stage
    # A lane ends when the process that created its namespaces ends.
    # shellcheck disable=SC2086
    [ -z "$running" ] || kill -KILL $running 2>/dev/null || :
    [ -n "$lane" ] || print_stages
    for name in $failed; do
        printf '\nThe lane "%s" failed:\n' "$name"
        tail -n 8 "$target/$name.log"
    done
    exit "$status"
}
trap end_script EXIT
trap 'exit 130' INT TERM
