#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks what reports say of programs whose queues are known: which kind of
traffic was matched where, and why elements were not in the table."""

import argparse
import json
import pathlib
import shutil
import sys

from mpi import MPIS, TARGET, bounded, build

QUEUES = ("prq", "umq")
failed = 0


def check(condition, what):
    """Counts and says what does not hold."""
    global failed
    if not condition:
        failed += 1
        print(f"  FAILED: {what}", flush=True)


def run(arguments, name, mpi, ranks, settings=(), options=()):
    """Runs `queues` and returns the tagged counters by rank; none if it failed.
    `tcam run` checks that the counts add up."""
    place = TARGET / "model-tests" / mpi / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    log = place / "output.log"
    command = [
        str(arguments.tcam), "run", f"--report={place}", f"--mpi={mpi}",
        *[f"--set={one}" for one in settings], "--", str(MPIS[mpi] / "mpiexec"), "-n", str(ranks),
        str(TARGET / "apps" / mpi / "queues"), *options,
    ]  # fmt: skip
    code = bounded(command, log, arguments.timeout)
    print(f"{mpi}, {ranks} ranks, {name}", flush=True)
    reports = [json.loads(path.read_text()) for path in place.glob("*.json")]
    found = {report["rank"]: report["tagged"] for report in reports}
    if code != 0 or set(found) != set(range(ranks)):
        check(False, f"{' '.join(command)}: exit code {code}, reports of {sorted(found)}; {log}")
        return None
    return found


def reasons(queue):
    """The block reasons that a queue counted."""
    return {name: count for name, count in queue["block_reasons"].items() if count}


def kinds(arguments, mpi):
    """Collective and point-to-point traffic are counted apart."""
    options = ["--posted=60", "--others=20", "--any=5", "--unexpected=30"]
    found = run(arguments, "kinds", mpi, 4, ["prq_entries=8", "umq_entries=8"], options)
    for rank, tagged in (found or {}).items():
        own, all_of = tagged["kinds"]["point_to_point"], tagged["kinds"]["collective"]
        receives = 65 + 3 * 30 if rank == 0 else 20
        check(own["posts"] == receives, f"rank {rank}: {own['posts']} receives, not {receives}")
        check(own["arrivals"] == receives, f"rank {rank}: {own['arrivals']} messages")
        for count in ("posts", "arrivals"):
            check(all_of[count] > 0, f"rank {rank}: no collective {count}")
            both = own[count] + all_of[count]
            check(both == tagged[count], f"rank {rank}: {both} {count} of {tagged[count]}")
        check(own["table_matches"] > 0, f"rank {rank}: nothing matched in the table")
    if found:
        spilled = found[0]["prq"]["kinds"]["point_to_point"]["block_reasons"]
        check(spilled["table_full"] >= 57, f"rank 0: PRQ spilled {spilled}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one run")
    parser.add_argument("--tcam", type=pathlib.Path, default=TARGET / "release" / "tcam")
    arguments = parser.parse_args()
    for mpi in ("mpich", "openmpi5"):
        build(mpi)
        kinds(arguments, mpi)
    print("failed" if failed else "passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
