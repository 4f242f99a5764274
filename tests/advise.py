#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`tcam advise`: models that are learned again are the same to the bit, advice on generated
programs is what it has to be, and what cannot be advised on is refused or told."""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

from checks import check, exit_code
from mpi import ROOT, TARGET, TCAM
from slowness import within

ADVISOR = ROOT / "lab" / "advisor"
OWN_FAILURE, INCOMPLETE = 125, 3
LIST = ["--set", "host_engine=list", "--set", "queue=linked", "--prq=0", "--umq=0"]


def tcam(arguments, *words):
    command = [str(arguments.tcam), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=within(300), check=False)


def again(arguments, place):
    """Learned from the stored files, the models are those stored."""
    place.mkdir()
    for name in ("samples.csv", "costs.csv"):
        shutil.copy(ADVISOR / name, place)
    done = tcam(arguments, "advise", "--train", "--out", place)
    check(done.returncode == 0, f"--train: {done.returncode} {done.stderr[-500:]}")
    for name in ("models.json", "validation.md"):
        same = (place / name).exists() and (place / name).read_bytes() == (ADVISOR / name).read_bytes()
        check(same, f"--train: {name} is another one")


def generated(arguments, place, pattern, *words):
    done = tcam(arguments, "workload", pattern, f"--out={place}", *words)
    check(done.returncode == 0, f"workload {pattern}: {done.stderr[-500:]}")
    return place


def advised(arguments, what, *words):
    """What --json tells."""
    done = tcam(arguments, "advise", "--json", "-", *words)
    if not check(done.returncode == 0, f"{what}: {done.returncode} {done.stderr[-500:]}"):
        return None
    told = json.loads(done.stdout)
    check(told["format"] == "tcam-advise" and told["cases"], f"{what}: {done.stdout[:300]}")
    return told


def programs(arguments, place):
    """A long list is left, runs are told as a range, and hash is not for wildcards."""
    seeds = [
        generated(arguments, place / f"shuffle-{seed}", "shuffle", f"--seed={seed}")
        for seed in (1, 2, 3)
    ]
    told = advised(arguments, "shuffle", *LIST, *seeds)
    if told:
        (case,) = told["cases"]
        least, most = case["saves_percent"]
        check(50 < least <= most < 100 and case["confidence"] > 0.5, f"shuffle: {case['advice']}")
        check("no wildcard in 3 runs" in case["advice"], f"shuffle: {case['advice']}")
        check(told["recommended_entries"] == 1024, f"shuffle: {told['recommended_entries']}")
        (of_list,) = [of for of in case["engines"][0] if (of["engine"], of["queue"]) == ("list", "linked")]
        found = of_list["prq_found"]
        check(found["attempts"] == 10240 and found["variance"] > 0, f"shuffle: {found}")
    told = advised(arguments, "shuffle, as recorded", seeds[0])
    if told:
        check(told["cases"][0]["advised"] is None, f"shuffle in tables: {told['cases'][0]['advice']}")
        check(len(told["cases"]) == 2, "shuffle in tables: no advice without tables")
    manager = generated(arguments, place / "manager", "manager", "--ranks=512")
    told = advised(arguments, "manager", *LIST, manager)
    if told:
        (case,) = told["cases"]
        check(case["advised"]["engine"] != "hash", f"manager: {case['advice']}")
        check("have a wildcard" in case["advice"], f"manager: {case['advice']}")
    done = tcam(arguments, "advise", "--device=alpu", "--measure", seeds[0])
    check(done.returncode == 0 and "measured" in done.stdout, f"--measure: {done.stderr[-500:]}")


def refusals(arguments, place):
    """What is no program, or not all of one."""
    whole = generated(arguments, place / "whole", "halo", "--rank=0,1", "--ranks=8")
    none, empty, cut = (place / name for name in ("none", "empty", "cut"))
    for directory in (none, empty):
        directory.mkdir()
    shutil.copytree(whole, cut)
    (first, second) = sorted(whole.iterdir())
    header = first.read_bytes()[:8192]
    (empty / first.name).write_bytes(header)
    (cut / second.name).write_bytes(second.read_bytes()[:-5])
    for what, words, told in (
        ("no trace", [none], "no trace"),
        ("nothing", [], "TRACE"),
        ("an empty trace", [empty], "no operation is recorded"),
        ("a trace that was cut", [cut], second.name),
        ("an unknown device", ["--device=nic-2000", whole], "nic-2000"),
        ("a report", ["--set=report=x", whole], "report"),
    ):
        done = tcam(arguments, "advise", *words)
        refused = done.returncode in (OWN_FAILURE, 2) and told in done.stderr
        check(refused, f"{what}: {done.returncode} {done.stdout[-200:]} {done.stderr[-300:]}")
    done = tcam(arguments, "advise", "--cut-off", cut)
    told = done.returncode == INCOMPLETE and "INCOMPLETE" in done.stdout
    check(told, f"--cut-off: {done.returncode} {done.stdout[:300]} {done.stderr[-300:]}")
    done = tcam(arguments, "advise", "--cut-off", "--partial", "--json=-", cut)
    told = done.returncode == 0 and not json.loads(done.stdout)["runs"][0]["complete"]
    check(told, f"--cut-off --partial: {done.returncode} {done.stderr[-300:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=TCAM)
    arguments = parser.parse_args()
    place = TARGET / "advise-tests"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    again(arguments, place / "again")
    programs(arguments, place)
    refusals(arguments, place)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
