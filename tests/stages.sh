# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# Sourced behind setup.sh by scripts of many stages. Each `say` begins a stage. When the stage ends, its
# name, its seconds and the processor seconds of its child processes go to $stages. The script prints
# them at its end, also when a stage failed.

stages=$target/stages.csv
mkdir -p "$target"
echo "stage,seconds,processor_seconds" >"$stages"
stage=

# Sets $spent: processor seconds of all child processes so far. `times` counts those that this shell
# waited for, so it does not run in a subshell.
read_spent() {
    times >"$stages.times"
    spent=$(awk -F'[ms ]+' 'NR == 2 { printf "%.0f", $1 * 60 + $2 + $3 * 60 + $4 }' "$stages.times")
    rm "$stages.times"
}

end_stage() {
    [ -n "$stage" ] || return 0
    read_spent
    echo "\"$stage\",$(($(date +%s) - stage_began)),$((spent - spent_before))" >>"$stages"
    stage=
}

say() {
    end_stage
    read_spent
    stage=$* stage_began=$(date +%s) spent_before=$spent
    say_title "$stage"
}

end_script() {
    status=$?
    end_stage
    awk -F'"' '
        BEGIN { printf "\nseconds  processor  stage\n" }
        NR > 1 { split($3, of, ","); printf "%7d  %9d  %s\n", of[2], of[3], $2; all += of[2]; used += of[3] }
        END { printf "%7d  %9d  all stages\n", all, used }' "$stages"
    exit "$status"
}
trap end_script EXIT
