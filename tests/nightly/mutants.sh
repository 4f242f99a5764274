#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# Changes one line of the code at a time, and checks that a test of its crate fails. `.cargo/mutants.toml`
# names the files and what is left out.
#   tests/nightly/mutants.sh         the sample of this night, a part of all mutants that the date selects
#   tests/nightly/mutants.sh all     all mutants: about 18 hours
. "$(dirname "$0")/../lib/setup.sh"
# shellcheck disable=SC2086
need_packages $build_packages
need_cargo
need_mutants

# Each night tests every 240th mutant: about 18, of each file in proportion to its size. 240 nights
# test all of them.
nights=240
night=$(($(date +%s) / 86400 % nights))
out=$target/mutants
if [ "${1:-}" = all ]; then
    say "Mutants: all"
    set --
else
    say "Mutants: part $((night + 1)) of $nights"
    set -- --shard "$night/$nights" --sharding round-robin
fi
# One mutant at a time, because the tests of the command line run the built tcam. The limit in seconds
# ends the tests of a mutant that hangs. It is 10 times the time that the tests take.
rm -rf "$out"
mkdir -p "$out"
status=0
CARGO_TARGET_DIR=$out/target CARGO_INCREMENTAL=1 cargo mutants --colors never --no-times --timeout 240 \
    --jobs 1 --output "$out" "$@" -- --tests >"$out/log" 2>&1 || status=$?
rm -rf "$out/target"
# 2: mutants were missed, 3: mutants timed out.
case $status in
0 | 2 | 3) ;;
*) tail -n 20 "$out/log" >&2; fail "cargo mutants failed with status $status" ;;
esac
python3 - "$out/mutants.out/outcomes.json" "$#" <<'END'
import collections, json, math, sys

FLOOR = 0.85
crates = collections.defaultdict(collections.Counter)
for outcome in json.load(open(sys.argv[1]))["outcomes"]:
    # The tests of the unchanged code, which must pass.
    if outcome["scenario"] == "Baseline":
        continue
    mutant = outcome["scenario"]["Mutant"]
    crates[mutant["package"]][outcome["summary"]] += 1
    if outcome["summary"] in ("MissedMutant", "Timeout"):
        print(f"  {outcome['summary']:<13} {mutant['name']}")
for crate, of in sorted(crates.items()):
    # A test that hangs fails as well. Mutants that do not compile do not count.
    caught, missed = of["CaughtMutant"] + of["Timeout"], of["MissedMutant"]
    print(f"  {crate}: {caught} of {caught + missed} mutants are caught, {of['Timeout']} of them by a time limit")
all_of = sum(crates.values(), collections.Counter())
missed = all_of["MissedMutant"]
tested = missed + all_of["CaughtMutant"] + all_of["Timeout"]
# The share of so small a sample differs from that of all mutants. `chance` is the probability that a
# sample misses as many or more although the tests catch 85 % of all mutants. The script fails if it is
# below 1 %: of 18 mutants, if 8 are missed.
chance = sum(math.comb(tested, n) * (1 - FLOOR) ** n * FLOOR ** (tested - n) for n in range(missed, tested + 1))
fails = chance < 0.01 if sys.argv[2] != "0" else tested - missed < FLOOR * tested
print(f"  all: {1 - missed / tested:.1%} of {tested} are caught; the floor of all mutants is {FLOOR:.0%}")
sys.exit("Too few are caught." if fails else 0)
END
