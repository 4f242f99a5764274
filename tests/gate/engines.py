#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests profiles, clusters, promises and engines on the command line. Each test repeats an error
that a new user found."""

import argparse
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys

from lib import mpi as runs
from lib.checks import check, exit_code
from lib.mpi import TARGET, TCAM
from lib.slowness import within

PLACE = TARGET / "engine-tests"
OWN_FAILURE, INCOMPLETE = 125, 3
HEAD = '{"format":"tcam-clusters","version":1,"processes":4,"k":2}\n'
ROW = '{"rank":0,"prq":[0,1],"umq":[]}\n'


def tcam(arguments, *words):
    command = [str(arguments.tcam), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=within(120), check=False)


def refused(done, *parts):
    """Checks that tcam itself failed, with these parts in its message."""
    told = done.returncode == OWN_FAILURE and all(part in done.stderr for part in parts)
    check(told, f"{done.args[1:]}: {done.returncode} {done.stderr[-300:]}, not {parts}")


def files(arguments, traces):
    """Checks that a file of another kind is kept, and a report with an odd source is refused."""
    clusters = PLACE / "a.clusters"
    done = tcam(arguments, "cluster", "--k=4", "--out", clusters, traces)
    check(done.returncode == 0 and "in a queue" in " ".join(done.stdout.split()), done.stdout)
    precious = PLACE / "precious.c"
    precious.write_text("int main(void);\n")
    refused(tcam(arguments, "cluster", "--out", precious, traces), "another file is there")
    tcam(arguments, "replay", "--report", PLACE / "odd", traces)
    report = json.loads((PLACE / "odd" / "0.json").read_text())
    report["tagged"]["prq"]["added"] = [[4294967295, report["tagged"]["prq"]["inserts"]]]
    odd = PLACE / "odd.json"
    odd.write_text(json.dumps(report))
    refused(tcam(arguments, "cluster", "--out", PLACE / "odd.clusters", odd), "odd.json")
    for k in ("0", "4097", "few"):
        done = tcam(arguments, "cluster", "--k", k, traces)
        check(done.returncode != 0 and "from 1 to 4096" in done.stderr, f"--k {k}: {done.stderr}")


def before_the_start(arguments, traces):
    """Every line of a clusters file is checked before anything starts."""
    bad = PLACE / "bad.clusters"
    touched = PLACE / "started"
    for content, part in [
        (None, "No such file"),
        ("", "not a cluster file"),
        (HEAD + ROW + "garbage\n", "line 3"),
        (HEAD + ROW + ROW, "rank 0 already has a line"),
    ]:
        if content is None:
            bad.unlink(missing_ok=True)
        else:
            bad.write_text(content)
        sets = ["--set=host_engine=kmeans", f"--set=clusters={bad}"]
        refused(tcam(arguments, "run", *sets, "--", "touch", touched), part)
        check(not touched.exists(), f"{part}: the program was started")
        refused(tcam(arguments, "replay", *sets, traces), part)
    refused(tcam(arguments, "run", "--set=host_engine=kmeans", "--", "touch", touched), "needs")
    pipe = PLACE / "pipe"
    os.mkfifo(pipe)
    sets = ["--set=host_engine=kmeans", f"--set=clusters={pipe}"]
    refused(tcam(arguments, "replay", *sets, traces), "not a regular file")


def left_out(arguments):
    """A rank whose tagged trace is cut off in its header is reported, even if its other trace is
    complete."""
    place = PLACE / "cut"
    done = tcam(arguments, "workload", "halo", "--ranks=27", "--rank=0,1", f"--out={place}")
    check(done.returncode == 0, done.stderr)
    trace = next(place.glob("0.*.trace"))
    trace.write_bytes(trace.read_bytes()[:100])
    done = tcam(arguments, "replay", "--cut-off", place)
    told = done.returncode == INCOMPLETE and "rank 0 were cut short" in done.stderr
    check(told, f"--cut-off: {done.returncode} {done.stderr[-500:]}")


def told(arguments, what, *words):
    """Runs `tcam replay --time`. Returns its JSON document and the last case, which has no tables. Returns
    (None, None) if the command failed."""
    done = tcam(arguments, "replay", "--time", "--json", "-", *words)
    if not check(done.returncode == 0, f"{what}: {done.returncode} {done.stderr[-500:]}"):
        return None, None
    page = json.loads(done.stdout)
    check(page["format"] == "tcam-engines", f"{what}: {done.stdout[:300]}")
    for case in page["cases"]:
        ratios_by_hand(what, case["engines"])
    return page, page["cases"][-1]


def ratios_by_hand(what, engines):
    """Checks that the median ratio of each engine is one that the times allow: of both engines, 80 % of
    the rounds are within the range, so in 60 % of the rounds the ratio is within these bounds."""
    now = next((of["ns_a_message"] for of in engines if of["is_now"]), None)
    for of in engines if now and now["low"] > 0 else []:
        times, ratio = of["ns_a_message"], of["beside_now"]["median"]
        least, most = times["low"] / now["high"], times["high"] / now["low"]
        check(0.999 * least <= ratio <= 1.001 * most, f"{what}, {of['engine']}: {ratio}, not {least} to {most}")


def generated(arguments, name, pattern, *words):
    done = tcam(arguments, "workload", pattern, f"--out={PLACE / name}", *words)
    check(done.returncode == 0, f"workload {pattern}: {done.stderr[-500:]}")
    return PLACE / name


def measured(arguments):
    """A hash is faster than a long list by more than their spread. The counts are those of a replay."""
    lists = ["--set=host_engine=list", "--set=host_storage=linked", "--prq=0", "--umq=0"]
    seeds = [generated(arguments, f"shuffle-{seed}", "shuffle", f"--seed={seed}") for seed in (1, 2)]
    page, case = told(arguments, "shuffle", *lists, *seeds)
    if page:
        check(len(page["runs"]) == 2 and page["messages"] == 2 * 10240, f"shuffle: {page['messages']}")
        if "hash" in case["reading"].split(" is the fastest")[0]:
            none = "no wildcard. Here are none in 2 runs"
            check(none in case["reading"], f"shuffle: {case['reading']}")
        engines = {(of["engine"], of["queue"]): of for of in case["engines"]}
        now, quick = engines["list", "linked"], engines["hash", "packed"]
        check(now["is_now"] and now["beside_now"]["median"] == 1.0, f"shuffle: {now['beside_now']}")
        check(quick["beside_now"]["high"] < 0.6, f"shuffle: {quick['beside_now']}")
        for of in case["engines"]:
            times = of["ns_a_message"]
            check(0 < times["low"] <= times["median"] <= times["high"], f"{of['engine']}: {times}")
            check(of["counters"]["arrivals"] == 2 * 10240, f"{of['engine']}: {of['counters']['arrivals']}")
    page, case = told(arguments, "a part of shuffle", "--operations=1000", *lists, seeds[0])
    if page:
        check(page["measured_operations"] == 1000 < page["operations"], f"{page['measured_operations']}")
    page, case = told(arguments, "shuffle in tables", seeds[0])
    if page:
        tables, without = page["cases"]
        check("nothing spills" in tables["reading"] and without["spilled_percent"] == 100, tables["reading"])
        # This measures a list of 1,024 elements, not the tables of the recording.
        times = {(of["engine"], of["queue"]): of["ns_a_message"]["median"] for of in without["engines"]}
        check(times["list", "linked"] > 2 * times["hash", "packed"], f"without tables: {times}")
    page, case = told(arguments, "shuffle beside a pool", "--set=pool=node", seeds[0])
    if page:
        check([of["prq_entries"] for of in page["cases"]] == [0], f"a pool: {page['cases']}")
    manager = generated(arguments, "manager", "manager", "--ranks=512")
    page, case = told(arguments, "manager", *lists, manager)
    if page:
        best = case["reading"].split(" is the fastest")[0]
        check(page["wildcards"] > 0 and "hash" not in best, f"manager: {case['reading']}")
    done = tcam(arguments, "replay", "--time", *lists, seeds[0])
    width = max(map(len, done.stdout.splitlines()))
    check(done.returncode == 0 and width <= 80, f"a page of {width} columns")


def refusals(arguments):
    """`tcam replay --time` refuses inputs that are no recordings, and incomplete ones without --cut-off."""
    whole = generated(arguments, "whole", "halo", "--rank=0,1", "--ranks=8")
    none, empty, cut = (PLACE / name for name in ("none", "empty", "short"))
    for directory in (none, empty):
        directory.mkdir()
    shutil.copytree(whole, cut)
    (first, second) = sorted(whole.iterdir())
    # The end of the header says that the trace is complete, and no number of words.
    (empty / first.name).write_bytes(first.read_bytes()[: 8192 - 16] + struct.pack("<QII", 0, 3, 0))
    (cut / second.name).write_bytes(second.read_bytes()[:-5])
    for what, words, part in (
        ("no trace", [none], "no trace"),
        ("nothing", [], "TRACE"),
        ("an empty trace", [empty], "no operation is recorded"),
        ("a trace that was cut", [cut], second.name),
        ("an unknown device", ["--device=nic-2000", whole], "nic-2000"),
        ("a report", ["--set=report=x", whole], "report"),
        ("no operations", ["--operations=0", whole], "--operations"),
    ):
        done = tcam(arguments, "replay", "--time", *words)
        good = done.returncode in (OWN_FAILURE, 2) and part in done.stderr
        check(good, f"{what}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}")
    done = tcam(arguments, "replay", "--time", "--cut-off", cut)
    good = done.returncode == INCOMPLETE and "INCOMPLETE" in done.stdout
    check(good, f"--cut-off: {done.returncode} {done.stdout[:300]} {done.stderr[-300:]}")
    done = tcam(arguments, "replay", "--time", "--cut-off", "--partial", "--json=-", cut)
    good = done.returncode == 0 and not json.loads(done.stdout)["runs"][0]["complete"]
    check(good, f"--cut-off --partial: {done.returncode} {done.stderr[-300:]}")


def wildcards(arguments, traces):
    """An engine that cannot be measured is named and not replaced by another. The MPI's own receives
    are no wildcards of the program and break no promise. Any-source receives of a program break one."""
    sets = ["--prq=0", "--umq=0", "--set=host_engine=kmeans", f"--set=clusters={PLACE / 'a.clusters'}"]
    done = tcam(arguments, "replay", "--time", *sets, traces)
    good = done.returncode == 0 and "nothing spills" not in done.stdout and "kmeans is not measured" in done.stderr
    check(good, f"engines beside kmeans: {done.stdout[:300]} {done.stderr[:300]}")
    place = PLACE / "probe"
    program = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "2", str(runs.build("mpich") / "hints"), "burst", "64", "5"]
    done = tcam(arguments, "run", f"--trace={place}", "--prq=0", "--umq=0", "--", *program)
    check(done.returncode == 0, done.stderr[-300:])
    page, _ = told(arguments, "hints", place)
    check(page and page["wildcards"] == 0, "the MPI's own receives are none of the program's")
    done = tcam(arguments, "run", "--set=host_engine=hash", f"--report={PLACE / 'hash'}", "--", *program)
    reports = tcam(arguments, "show", PLACE / "hash").stdout
    check(done.returncode == 0 and reports and "BROKEN" not in done.stderr + reports, "no promise is broken")
    wild = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "2", str(runs.build("mpich") / "any_source")]
    done = tcam(arguments, "run", "--set=host_engine=hash", f"--report={PLACE / 'hash'}", "--", *wild)
    stats = tcam(arguments, "show", PLACE / "hash")
    check("BROKEN PROMISES" in done.stderr and "BROKEN PROMISES" in stats.stdout, "promises are broken")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=TCAM)
    arguments = parser.parse_args()
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    traces = PLACE / "nbody"
    done = tcam(arguments, "workload", "nbody", "--ranks=64", f"--out={traces}")
    check(done.returncode == 0, done.stderr)
    files(arguments, traces)
    before_the_start(arguments, traces)
    left_out(arguments)
    wildcards(arguments, traces)
    measured(arguments)
    refusals(arguments)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
