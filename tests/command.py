#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `tcam run`, `record` and `sweep` do when something goes wrong: what is old is not
lost and nothing is left running."""

import argparse
import pathlib
import shutil
import subprocess
import sys

import mpi as runs
from checks import check, exit_code

PLACE = runs.TARGET / "command-tests"
MPIEXEC = str(runs.MPIS["mpich"] / "mpiexec")


def tcam(arguments, *words, **options):
    """Runs tcam and returns what it did."""
    options = {"capture_output": True, "text": True, "timeout": 120} | options
    return subprocess.run([str(arguments.tcam), *map(str, words)], **options)


def fresh(name):
    """An empty directory."""
    place = PLACE / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def files(place):
    """What is in a directory, hidden files too, and what is in these."""
    return {path.name: path.read_bytes() for path in place.iterdir()}


def old_files_stay(arguments, programs):
    """A run that leaves nothing leaves what an earlier one wrote."""
    ring = [MPIEXEC, "-n", "2", str(programs / "ring")]
    for task, option in (("record", "--out"), ("run", "--report")):
        place = fresh(task)
        done = tcam(arguments, task, f"{option}={place}", "--", *ring)
        check(done.returncode == 0, f"{task}: {done.stderr[-500:]}")
        before = files(place)
        check({"0.json", "1.json"} <= set(before), f"{task}: {sorted(before)}")
        for words, code in (
            (["--", "nosuchprog"], 125),
            (["--set=prq_entries=bad", "--", *ring], 125),
            (["--", "true"], 125),
            (["--", MPIEXEC, "-n", "2", "false"], 1),
        ):
            done = tcam(arguments, task, f"{option}={place}", *words)
            check(done.returncode == code, f"{task} {words}: {done.returncode} {done.stderr}")
            check(files(place) == before, f"{task} {words}: {sorted(files(place))}")
        done = tcam(arguments, task, f"{option}={place}", "--", *ring)
        after = files(place)
        check(done.returncode == 0 and after, f"{task}: {done.stderr[-500:]}")
        check(len(after) == len(before) and after != before, f"{task}: {sorted(after)}")
        new = PLACE / f"{task}-new"
        tcam(arguments, task, f"{option}={new}", "--", "true")
        check(not new.exists(), f"{task}: {new} was made for nothing")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TARGET / "release" / "tcam")
    arguments = parser.parse_args()
    programs = runs.build("mpich")
    old_files_stay(arguments, programs)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
