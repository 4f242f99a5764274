#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares `tcam replay` and `tcam sweep --trace` with an independent brute force: lists in MPI order,
and each overflow model as fi_tcam(7) describes it. The brute force reads only operations.csv of `tcam
export` and shares no code with tcam. Some traces are generated, with wildcards, cancels, probes and
buffers of several messages; others are recordings of MPI programs that cancel and probe."""

import argparse
import collections
import csv
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import time

from lib import mpi as runs
from lib.brute_force import TAKES, brute_force
from lib.checks import check, exit_code
from lib.slowness import within

PLACE = runs.TARGET / "brute-tests"
MODELS = ["spill", "prefix", "sticky", "flow-control"]
SIZES = [0, 1, 5, 30]
# Programs and their settings for the recording; some hold receives back.
RECORDED = [
    ("cancel", []), ("probe", []), ("any_source", ["overflow=flow-control", "prq_entries=3"])
]  # fmt: skip
GENERATED = 8
QUEUES = ("prq", "umq")
SWEPT = ["inserts", "table_matches", "host_matches", "spills", "promotions", "high_water"]


def tcam(arguments, *words):
    """Returns the standard output of tcam; None, after printing an error, if it failed."""
    command = [str(arguments.tcam), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=within(120), check=False)
    fine = check(done.returncode == 0, f"{' '.join(command)}: {done.stderr[-500:]}")
    return done.stdout if fine else None


def exported(arguments, traces):
    """Returns the operations of traces, from `tcam show`; an empty list if it failed."""
    out = PLACE / "export"
    shutil.rmtree(out, ignore_errors=True)
    if tcam(arguments, "show", "--format=csv", f"--out={out}", traces) is None:
        return []
    with (out / "operations.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def replayed(arguments, what, traces, contexts, words):
    """Compares a replay with the brute force, rank by rank and count by count."""
    out = PLACE / "replay"
    shutil.rmtree(out, ignore_errors=True)
    told = tcam(arguments, "replay", f"--report={out}", "--json=-", *words, traces)
    if told is None:
        return
    reports = [json.loads(path.read_text()) for path in out.glob("*.json")]
    for (rank, name), context in contexts.items():
        (report,) = [report for report in reports if report["rank"] == rank]
        for queue in QUEUES:
            found = report[name][queue]
            ours = getattr(context, queue).told()
            for count, value in ours.items():
                theirs = found[count]
                if count == "block_reasons":
                    theirs = {reason: number for reason, number in theirs.items() if number}
                elif count == "search_depth":
                    theirs = {name: theirs[name] for name in value}
                check(theirs == value, f"{what}, rank {rank}: {name} {queue} {count}: "
                      f"{theirs}, by brute force {value}")  # fmt: skip
        ours = (context.posted + context.taken, context.arrived, context.peeks)
        theirs = tuple(report[name][of] for of in ("posts", "arrivals", "peeks"))
        check(ours == theirs, f"{what}, rank {rank}: {theirs}, by brute force {ours}")
    sums = json.loads(told)
    for name in ("tagged", "msg"):
        for queue in QUEUES:
            ours = sum(getattr(of, queue).counts["spills"]
                       for (_, of_name), of in contexts.items() if of_name == name)  # fmt: skip
            theirs = sums[name][queue]["spills"]
            check(ours == theirs, f"{what}: {name} {queue} {theirs} spills in all, not {ours}")


def swept(arguments, what, traces, by_size, words):
    """Compares a sweep with the brute force; with `spill` this checks the one-pass curve."""
    sizes = ",".join(map(str, by_size))
    words = [f"--trace={traces}", f"--prq={sizes}", f"--out={PLACE / 'sweep'}", *words]
    told = tcam(arguments, "sweep", "--json=-", *words)
    if told is None:
        return
    rows = json.loads(told)["runs"]
    check([row["prq_entries"] for row in rows] == list(by_size), f"{what}: sizes of {rows}")
    for row, contexts in zip(rows, by_size.values()):
        tagged = [of for (_, name), of in contexts.items() if name == "tagged"]
        for queue in QUEUES:
            for count in SWEPT:
                ours = [getattr(of, queue).told()[count] for of in tagged]
                ours = max(ours) if count == "high_water" else sum(ours)
                theirs = row[f"{queue}_{count}"]
                check(ours == theirs, f"{what}, {row['prq_entries']} entries: "
                      f"{queue} {count} {theirs}, by brute force {ours}")  # fmt: skip
        if "--set=overflow=spill" in words and row["host_entries_a_message"] is not None:
            ours = sum(getattr(of, queue).host_entries for of in tagged for queue in QUEUES)
            ours /= max(sum(of.arrived for of in tagged), 1)
            theirs = row["host_entries_a_message"]
            check(abs(ours - theirs) <= 1e-9 * max(ours, 1), f"{what}: {theirs} entries, not {ours}")


def compare(arguments, what, traces, refuse=()):
    """Compares every overflow model and size, for the traces in one directory. Returns the number of
    operations of each kind."""
    operations = exported(arguments, traces)
    kinds = collections.Counter(row["operation"] for row in operations)
    print(f"  {what}: {len(operations)} operations, {kinds['cancel'] + kinds['drop']} cancels,",
          f"{sum(kinds[kind] for kind in ('peek', *TAKES))} probes", flush=True)  # fmt: skip
    for model in MODELS:
        words = [f"--set=overflow={model}", f"--set=refuse={','.join(refuse) or 'none'}"]
        by_size = {size: brute_force(operations, size, model, refuse) for size in SIZES}
        for size, contexts in by_size.items():
            differ = [line for context in contexts.values() for line in context.differ]
            check(not differ, f"{what}: {differ[:3]}")
            tables = [f"--prq={size}", f"--umq={size}"]
            name = f"{what}, {model}, {size} entries"
            replayed(arguments, name, traces, contexts, [*words, *tables])
        swept(arguments, f"{what}, {model}", traces, by_size, words)
    return kinds


class Writer:
    """Writes a trace, as nic/src/trace.rs describes it."""

    KEY, TIME, MULTI, POST, ANYWAY, HELD, ARRIVE = 1, 2, 3, 5, 6, 7, 8
    PEEK, CANCEL, DROP, CLAIM, DISCARD, TURN = 9, 11, 12, 17, 18, 21
    ANY = 0xFFFF_FFFF
    ORIGIN = {"command": "", "mpi": "", "processors": "", "started_s": 0}

    def __init__(self, rank, context):
        self.words, self.place = [], 0
        self.header = {
            "context": context, "tcam": "0.1.0", "libfabric": "2.5", "host": "brute", "rank": rank,
            "pid": 100 + rank, "address": f"127.0.0.1:{4000 + rank}", "program": "brute",
            "origin": self.ORIGIN, "window": 0, "start_ns": 0, "start_clock_ns": 0, "layout": "opaque",
            "config": {},
        }  # fmt: skip

    def put(self, kind, key=None, length=0, flag=0, numbers=()):
        """Adds an operation, with its key or with numbers of 8 bytes."""
        head = kind | flag << 5 | length << 16
        if key is not None:
            self.place = (self.place + 1) % 1024
            bits, ignore, source = key
            source = self.ANY if source is None else source
            self.words += [self.KEY | self.place << 6, source, *halves(bits), *halves(ignore)]
            head |= self.place << 6
        self.words += [head, *(half for number in numbers for half in halves(number))]

    def turn(self, thread, is_device):
        """Sets the thread of the following operations."""
        self.words.append(self.TURN | is_device << 5 | thread << 6)

    def write(self, path):
        header = f"tcam-trace 7\n{json.dumps(self.header)}".encode().ljust(8192 - 16)
        words = struct.pack(f"<{len(self.words)}I", *self.words)
        path.write_bytes(header + bytes(8) + struct.pack("<II", 3, 0) + words)


def halves(number):
    return number & 0xFFFF_FFFF, number >> 32


def generate(path, seed):
    """Writes a trace of random operations. Phases with many receives and phases with many messages
    alternate, so that both queues grow."""
    rng = random.Random(seed)
    tags, sources = rng.choice([2, 5, 12]), rng.choice([1, 3, 6])
    wild, several = rng.choice([0, 0.1, 0.4]), rng.choice([0, 0.05])
    writer = Writer(0, "tagged")
    probes = [writer.PEEK, writer.CLAIM, writer.DISCARD]
    posted = arrived = 0

    def pattern():
        ignore = rng.choice([3, 0xFF << 60 & (1 << 64) - 1]) if rng.random() < wild else 0
        source = None if rng.random() < wild else rng.randrange(sources)
        return rng.randrange(tags) | rng.randrange(2) << 60, ignore, source

    for _ in range(25):
        receives = rng.choice([0.15, 0.5, 0.85])
        for _ in range(rng.randrange(10, 70)):
            if rng.random() < 0.2:
                # Matching must not depend on the threads.
                writer.turn(rng.randrange(4), rng.random() < 0.5)
            chance = rng.random()
            if chance < 0.05:
                writer.put(writer.CANCEL, numbers=[rng.randrange(max(posted - 60, 0), posted + 1)])
            elif chance < 0.08:
                writer.put(writer.DROP, numbers=[rng.randrange(max(arrived - 60, 0), arrived + 1)])
            elif chance < 0.15:
                writer.put(rng.choice(probes), pattern())
            elif chance < 0.17:
                writer.put(writer.HELD, pattern())
            elif rng.random() < receives:
                length = rng.randrange(100)
                if rng.random() < several:
                    length = 0
                    writer.put(writer.MULTI, numbers=[200, rng.randrange(100), rng.randrange(80)])
                kind = writer.POST if rng.random() < 0.9 else writer.ANYWAY
                writer.put(kind, pattern(), length, flag=rng.random() < 0.2)
                posted += 1
            else:
                bits, _, source = pattern()
                source = rng.randrange(sources) if source is None else source
                writer.put(writer.ARRIVE, (bits, 0, source), length=rng.randrange(100))
                arrived += 1
    path.parent.mkdir(parents=True, exist_ok=True)
    writer.write(path)


def recorded(arguments, mpi, program, settings):
    """Records a program. Returns the directory of its traces, or None."""
    place = PLACE / f"{mpi}-{program}"
    command = [runs.MPIS[mpi] / "mpiexec", "-n", "4", runs.TARGET / "apps" / mpi / program]
    sets = [f"--set={setting}" for setting in settings]
    words = ["run", f"--trace={place}", f"--mpi={mpi}", *sets, "--", *command]
    return place if tcam(arguments, *words) is not None else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    parser.add_argument("--seed", type=int, default=1, help="of the first generated trace")
    parser.add_argument("--generated", type=int, default=GENERATED, help="number of those")
    parser.add_argument("--mpi", default="mpich,openmpi5", help="whose programs are recorded")
    arguments = parser.parse_args()
    shutil.rmtree(PLACE, ignore_errors=True)
    start, kinds = time.monotonic(), collections.Counter()
    for seed in range(arguments.seed, arguments.seed + arguments.generated):
        place = PLACE / f"seed-{seed}"
        generate(place / "0.trace", seed)
        refuse = [(), ("any-source",), (), ("any-source", "non-contiguous")][seed % 4]
        what = " ".join([f"seed {seed}", *refuse])
        kinds += compare(arguments, what, place, refuse)
    for mpi in filter(None, arguments.mpi.split(",")):
        runs.build(mpi)
        for program, settings in RECORDED:
            place = recorded(arguments, mpi, program, settings)
            if place:
                kinds += compare(arguments, f"{mpi} {program}", place)
    for kind in ("cancel", "drop", "peek", *TAKES, "held"):
        check(kinds[kind] > 0, f"no {kind} in any trace")
    print(f"  {time.monotonic() - start:.0f} s")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
