# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Sourced after setup.sh by scripts of many stages, which call themselves with the name of a lane.
# Each `say` begins a stage. At the end of a stage, $stages gets a row with its lane, its seconds
# and the processor seconds of its child processes. The script prints the rows at its end, also
# after a failed stage.

script=$(echo "$root"/tests/*/"$(basename "$0")")
lane=${1:-}
case $lane in
"" | computes | waits | ends) ;;
*) fail "$lane: the lanes are computes, waits and ends" ;;
esac
stages=$target/stages.csv
stage=
others=
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
# lanes FIRST OTHER...: runs lanes of this script at the same time, each with its own ports and
# /dev/shm. The output of the other lanes follows that of the first.
lanes() {
    end_stage
    # A test measures the machine when it begins; the load from the other lanes may begin later.
    export TCAM_TEST_SLOWNESS="${TCAM_TEST_SLOWNESS:-3}"
    failed=
    first=$1
    shift
    for name in "$@"; do
        tests/lib/apart.sh "$script" "$name" >"$target/$name.log" 2>&1 &
        others="$others $!"
    done
    tests/lib/apart.sh "$script" "$first" || failed=$first
    for process in $others; do
        wait "$process" || failed="$failed $1"
        cat "$target/$1.log"
        shift
    done
    others=
    [ -z "$failed" ] || fail "Failed: $failed"
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
    [ -z "$others" ] || kill -KILL $others 2>/dev/null || :
    [ -n "$lane" ] || print_stages
    exit "$status"
}
trap end_script EXIT
trap 'exit 130' INT TERM
