#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests `tcam scale` on real programs: from recordings on 4, 8 and 16 ranks it must print a range
that contains the need of 32 ranks, or refuse to predict."""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

from lib import mpi as runs
from lib.checks import check, exit_code
from lib.mpi import TARGET, TCAM
from lib.slowness import within

PLACE = TARGET / "scale-tests"
SIZES, HELD_BACK, REPEATS = (4, 8, 16), 32, 2
# Programs, and whether the PRQ of the worst rank grows with the number of ranks.
PROGRAMS = {"fds_gather --steps 3 --meshes 8": True, "phases": False, "alltoall": True}


def tcam(arguments, *words):
    command = [str(arguments.tcam), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=within(120), check=False)


def record(arguments, program, ranks):
    """Records REPEATS runs of a program. Returns their directories."""
    name, *words = program.split()
    launched = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", str(ranks), str(runs.build("mpich") / name), *words]
    places = [PLACE / f"{name}-{ranks}-{repeat}" for repeat in range(REPEATS)]
    for place in places:
        done = tcam(arguments, "run", f"--trace={place}", "--", *launched)
        check(done.returncode == 0, f"{program} on {ranks} ranks: {done.stderr[-500:]}")
    return places


def held_back(arguments, program, grows):
    places = [place for ranks in SIZES for place in record(arguments, program, ranks)]
    done = tcam(arguments, "scale", "--json=-", f"--to={HELD_BACK}", *places)
    if not check(done.returncode == 0, f"{program}: {done.returncode} {done.stderr[-500:]}"):
        return
    predicted = json.loads(done.stdout)
    last = record(arguments, program, HELD_BACK)
    done = tcam(arguments, "scale", "--json=-", f"--to={HELD_BACK}", *places, *last)
    found = json.loads(done.stdout)
    for need, of_all in zip(predicted["needs"], found["needs"], strict=True):
        what = f"{program}: {need['count']} of a {need['of']}"
        seen = next(point for point in of_all["needs"] if point["ranks"] == HELD_BACK)
        if need["of"] == "nic":
            # All ranks of a size share one host, so the need has no law in the number of ranks.
            check(need["refused"] and need["predicts"] is None, f"{what}: {need['predicts']}")
            continue
        if need["refused"]:
            print(f"    {what}: refused ({need['predicts']}), {seen['most']} needed")
            continue
        low, high = need["predicts"]
        check(low <= seen["most"] and seen["least"] <= high, f"{what}: {seen} is not in {low} to {high}")
    prq = next(need for need in predicted["needs"] if need["count"] == "prq")
    check(prq["constant"] != grows, f"{program}: PRQ constant is {prq['constant']}: {prq['needs']}")
    page = tcam(arguments, "scale", f"--to={HELD_BACK}", *places).stdout
    check(0 < page.count("\n") <= 40 and max(map(len, page.splitlines())) <= 80, f"{program}: {page}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=TCAM)
    arguments = parser.parse_args()
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    for program, grows in PROGRAMS.items():
        held_back(arguments, program, grows)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
