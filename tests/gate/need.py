#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the number of entries that a NIC needs. A brute-force computation, from operations.csv alone,
must agree with `tcam sweep`, with `tcam answer`, and with the smallest pool for which `tcam replay --with`
has no spill. The traces are generated ones, the recordings in tests/data, and new recordings of a
program whose ranks hold receives one after the other."""

import argparse
import bisect
import collections
import csv
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time

from lib import mpi as runs
from brute import Writer
from lib.brute_force import Context
from lib.checks import check, exit_code
from lib.slowness import within

PLACE = runs.TARGET / "need-tests"
RANKS = 4
# Ranks per node (--ppn), and the placement. With 0 the options are omitted: all ranks share one NIC.
PLACEMENTS = [(0, "block"), (1, "block"), (2, "block"), (2, "cyclic"), (4, "block")]
# Recordings, and the ranks per node of their placement.
DATA = runs.ROOT / "tests" / "data"
RECORDED = [("hpcg-16", 8), ("lulesh-27", 9), ("snap-16", 8)]
# Largest error in nanoseconds of a time of a new recording; see lab/src/capacity/need.rs.
ERROR = 100
LARGEST = 1 << 30
KINDS = ("prq", "umq", "internal")
# The number of receives of a rank of tests/apps/stagger.c, and the microseconds that it sleeps.
STAGGERED = [(5, 0), (14, 0), (40, 0), (14, 1000), (40, 10_000)]


def tcam(arguments, *words):
    """Returns the JSON document that tcam prints; None, after printing an error, if it failed."""
    command = [str(arguments.tcam), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=within(120), check=False)
    check(done.returncode == 0, f"{' '.join(command)}: {done.stderr[-500:]}")
    return json.loads(done.stdout) if done.returncode == 0 else None


def generate(place, seed):
    """Writes traces of several ranks, in which no two operations have the same time."""
    rng = random.Random(seed)
    place.mkdir(parents=True)
    writers = [Writer(rank, context) for rank in range(RANKS) for context in ("tagged", "msg")]
    posted, arrived = [0] * len(writers), [0] * len(writers)
    wild, tags, now = rng.choice([0, 0.2, 0.5]), rng.choice([2, 6]), 0
    for writer in writers:
        # This header makes tcam take the numbers of peers as ranks.
        writer.header["libfabric"] = "none"
    receives = [0.5] * len(writers)
    for _ in range(rng.randrange(300, 1200)):
        at = min(rng.randrange(2 * RANKS), rng.randrange(2 * RANKS))
        writer, now = writers[at], now + rng.randrange(1, 2000)
        if rng.random() < 0.05:
            receives[at] = rng.choice([0.15, 0.5, 0.85])
        writer.put(writer.TIME, numbers=[now])
        source = None if rng.random() < wild else rng.randrange(RANKS)
        key, chance = (rng.randrange(tags), rng.choice([0, 0, 0, 1]), source), rng.random()
        if chance < 0.04:
            writer.put(writer.CANCEL, numbers=[rng.randrange(max(posted[at] - 30, 0), posted[at] + 1)])
        elif chance < 0.06:
            writer.put(writer.DROP, numbers=[rng.randrange(max(arrived[at] - 30, 0), arrived[at] + 1)])
        elif chance < 0.12:
            writer.put(rng.choice([writer.PEEK, writer.CLAIM, writer.DISCARD]), key)
        elif rng.random() < receives[at]:
            writer.put(writer.POST, key, length=rng.choice([8, 8, 2000]))
            posted[at] += 1
        else:
            writer.put(writer.ARRIVE, (key[0], 0, rng.randrange(RANKS)), length=8)
            arrived[at] += 1
    for rank in range(RANKS):
        for writer in writers[2 * rank : 2 * rank + 2]:
            writer.write(place / f"{rank}.{writer.header['context']}.trace")


class Watched(list):
    """List of the elements of a queue that calls `report` when an element joins or leaves."""

    def __init__(self, report):
        super().__init__()
        self.report = report

    def append(self, element):
        super().append(element)
        self.report(element, 1)

    def remove(self, element):
        super().remove(element)
        self.report(element, -1)


class Operation:
    """An operation, with the changes of the queues that it made, and the times between which it was
    made. A change consists of the kind of the element, the rank of its source or None, and 1 or -1."""

    def __init__(self, rank, context, ns):
        self.rank, self.context, self.ns = rank, context, ns
        self.first = self.last = ns
        self.changes = []


def history(operations, times):
    """Returns the operations of all traces. `times` is "generated" if the order of all operations is
    exact, otherwise "exact"."""
    contexts = {}
    for row in operations:
        contexts.setdefault((int(row["rank"]), row["context"]), []).append(row)
    done = []
    for (rank, name), rows in contexts.items():
        now = []

        def watch(queue, of=(rank, name), now=now):
            kind = queue if of[1] == "tagged" else "internal"

            def report(element, change):
                check(element.source == "" or element.source_rank != "", f"{of}: a source of no rank")
                source = int(element.source_rank) if element.source_rank else None
                now[-1].changes.append((kind, source, change))

            return Watched(report)

        context = Context(LARGEST, "spill", ())
        context.prq.elements, context.umq.elements = watch("prq"), watch("umq")
        for row in rows:
            now.append(Operation(rank, name, int(row["ns"])))
            context.play(row)
        check(not context.differ, f"rank {rank}, {name}: {context.differ[:3]}")
        for of in now if times == "exact" else []:
            of.first, of.last = of.ns - ERROR, of.ns + ERROR
        done += now
    done.sort(key=lambda of: of.ns)
    if times == "generated":
        for place, of in enumerate(done):
            of.first = of.last = place
    return done


class Unit:
    """Operations whose order is exact. A count may have the value of an operation from the first time
    of the operation to the last time of the next one."""

    def __init__(self):
        self.values, self.first, self.last = [0], [-ERROR], []

    def add(self, value, operation):
        self.values.append(value)
        self.first.append(operation.first)
        self.last.append(operation.last)

    def possible(self, time_of):
        """Returns the values that the count may have at a time."""
        return self.values[bisect.bisect_left(self.last, time_of) : bisect.bisect_right(self.first, time_of)]


def peak(units):
    """Returns the least and the most that the largest sum over the units may be."""
    times = sorted({time_of for unit in units for time_of in (*unit.first, *unit.last)})
    # Values leave after their last time.
    after = [time_of + 0.5 for time_of in times]
    most = max(sum(max(unit.possible(at)) for unit in units) for at in times)
    least = max(sum(min(unit.possible(at)) for unit in units) for at in after)
    return least, most


def needs(done, ranks, ppn, placement):
    """Returns the range of the peak number of elements on a NIC and the peak on a rank, for each kind:
    PRQ, UMQ, or internal (untagged), and all kinds together (`peak_total`)."""
    nodes = -(-ranks // ppn) if ppn else 1

    def node(rank):
        if not ppn:
            return 0
        return rank // ppn if placement == "block" else rank % nodes

    units, now = collections.defaultdict(Unit), collections.Counter()
    for of in done:
        changed = set()
        for kind, source, change in of.changes:
            if ppn and source is not None and node(source) == node(of.rank):
                continue
            for count in (kind, "peak_total"):
                now[of.rank, count] += change
                changed.add(count)
        for count in changed:
            units[of.rank, count].add(now[of.rank, count], of)
    found = {"nic": {}, "rank": {}}
    for count in (*KINDS, "peak_total"):
        alone, on_nic = {}, collections.defaultdict(list)
        for (rank, of), unit in units.items():
            if of == count:
                alone[rank] = max(unit.values)
                on_nic[node(rank)].append(unit)
        found["rank"][count] = max(alone.values(), default=0)
        ranges = [(0, 0)]
        for at, of in on_nic.items():
            least, most = peak(of)
            # All ranks together hold at least what one of them holds.
            ranges.append((max(least, *(alone[rank] for rank in alone if node(rank) == at), 0), most))
        found["nic"][count] = {"least": max(of[0] for of in ranges), "most": max(of[1] for of in ranges)}
    return found["nic"], {kind: found["rank"][kind] for kind in KINDS}


def overflows(arguments, place, words, entries):
    """Returns true if any element spills from a pool of `entries` entries."""
    pool = f"--with=pool=node,pool_entries={entries}"
    line = tcam(arguments, "replay", "--json=-", pool, *words, place)["lines"][1]
    return sum(line[f"{what}_spills"] for what in ("prq", "umq", "internal")) > 0


def smallest(arguments, place, words, guess):
    """Returns the smallest pool without a spill, by bisection that begins around a guess."""
    least, enough, tries = 0, 1024, [guess - 1, guess]
    while enough - least > 1:
        middle = tries.pop() if tries else (least + enough) // 2
        if least < middle < enough:
            spills = overflows(arguments, place, words, middle)
            least, enough = (middle, enough) if spills else (least, middle)
    return enough


def judge(arguments, what, place, placements, times):
    out = PLACE / "export"
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([arguments.tcam, "show", "--format=csv", f"--out={out}", place], check=True, capture_output=True)
    with (out / "operations.csv").open(encoding="utf-8") as file:
        operations = list(csv.DictReader(file))
    done = history(operations, times)
    ranks = 1 + max(int(row["rank"]) for row in operations)
    told = []
    for ppn, placement in placements:
        words = [f"--ppn={ppn}", f"--placement={placement}"] if ppn else []
        name = f"{what} {' '.join(words)}"
        by_hand = dict(zip(("nic", "rank"), needs(done, ranks, ppn, placement)))
        least, nic = by_hand["nic"]["peak_total"].values()
        out = f"--out={PLACE / 'sweep'}"
        pool = tcam(arguments, "sweep", "--json=-", out, "--set=pool=node", *words, "--trace", place)
        check(pool["needed_entries"] == nic, f"{name}: sweep needs {pool['needed_entries']}, by brute force {nic}")
        for run in pool["runs"]:
            spills = run["prq_spills"] + run["umq_spills"] + run["internal_spills"]
            # A replay has one of the possible orders of the ranks.
            fits = run["pool_entries"] >= (nic if spills else least)
            check(fits == (spills == 0), f"{name}: {spills} spill at {run['pool_entries']} of {least} to {nic}")
        by_compare = smallest(arguments, place, words, nic)
        check(max(least, 1) <= by_compare <= max(nic, 1), f"{name}: compare needs {by_compare}, by brute force {least} to {nic}")
        answer = tcam(arguments, "answer", "--json=-", *words, place)
        theirs = {of: answer["nic"][of] for of in by_hand["nic"]}
        check(theirs == by_hand["nic"], f"{name}: answer for a NIC {theirs}, by brute force {by_hand['nic']}")
        theirs = {of: answer["rank"][of]["most"] for of in by_hand["rank"]}
        check(theirs == by_hand["rank"], f"{name}: answer for a rank {theirs}, by brute force {by_hand['rank']}")
        for unit in by_hand:
            late, most = answer[unit]["umq_at_least"]["most"], answer[unit]["umq"]["most"]
            check(late <= most, f"{name}: UMQ of a {unit} at least {late}, at most {most}")
        told.append(nic if least == nic else f"{least} to {nic}")
    print(f"  {what}: {len(operations)} operations, NICs need {told}", flush=True)


def write_by_hand(name, contexts):
    """Writes a trace for each context, which consists of a rank, a port and operations. An operation
    consists of a time in microseconds, POST or ARRIVE, the tag, the source and the length. Returns the
    directory of the traces."""
    place = PLACE / name
    place.mkdir(parents=True)
    for rank, port, operations in contexts:
        writer = Writer(rank, "tagged")
        writer.header |= {"libfabric": "none", "address": f"127.0.0.1:{port}"}
        for time_of, kind, tag, source, length in operations:
            writer.put(writer.TIME, numbers=[1000 * time_of])
            writer.put(kind, (tag, 0, source), length=length)
        writer.write(place / f"{rank}.{port}.trace")
    return place


def written_by_hand(arguments):
    """Checks refused short receives, the duration of a run, ranks with two endpoints, and pools that
    reserve entries for each rank, with traces that this function writes."""
    post, arrive = Writer.POST, Writer.ARRIVE
    both = [(at, post, at, 2, 8) for at in range(600)]
    both += [(2000 - at, arrive, at, 2, 8) for at in reversed(range(600))]
    sweep = ["sweep", "--json=-", f"--out={PLACE / 'sweep'}"]

    short = write_by_hand("short", [(0, 4000, both)])
    told = tcam(arguments, *sweep, "--prq=64,4096", "--set=refuse_below=9", "--trace", short)
    spills = [run["prq_spills"] for run in told["runs"]]
    check(spills == [600, 600], f"refuse_below: {spills} spill of 600 receives")

    # The last message is from the same node.
    late = write_by_hand("late", [(0, 4000, [(1, arrive, 1, 2, 8), (9_000_000, arrive, 2, 1, 8)]), (2, 4002, both)])
    for ppn in (0, 2, 4):
        words = [f"--ppn={ppn}"] if ppn else []
        told = tcam(arguments, "answer", "--partial", "--json=-", *words, late)
        check(told["seconds"]["most"] == 9, f"--ppn {ppn}: {told['seconds']} s of 9")

    costs = []
    for ports in ([4000], [4000, 4001]):
        place = write_by_hand(f"endpoints-{len(ports)}", [(0, port, both) for port in ports])
        told = tcam(arguments, "answer", "--json=-", place)
        check((told["shares"] is not None) == (len(ports) > 1), f"{ports}: {told['shares']}")
        costs.append(next(of for of in told["devices"] if of["device"] == "alpu")["cpu_list_percent"]["most"])
    check(0 < costs[0] and abs(costs[1] - 2 * costs[0]) < 1e-9, f"{costs} % of one and two endpoints of a rank")

    ranks = write_by_hand("reserved", [(rank, 4000 + rank, both[:40]) for rank in range(8)])
    told = tcam(arguments, *sweep, "--set=pool=node", "--set=pool_reserved=20", "--trace", ranks)
    check(min(run["pool_entries"] for run in told["runs"]) >= 160, f"reserved: {told['runs'][0]}")


def staggered(arguments):
    """Checks that a NIC needs the receives of one rank if the ranks hold them one after the other."""
    programs = runs.build("mpich")
    for count, pause in STAGGERED:
        what = f"stagger {count} {pause}"
        place = PLACE / what.replace(" ", "-")
        launched = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "8", str(programs / "stagger")]
        words = ["run", f"--trace={place}", "--mpi=mpich", "--", *launched, str(count), "5", str(pause)]
        done = subprocess.run(
            [str(arguments.tcam), *words], capture_output=True, text=True, timeout=within(120), check=False
        )
        if not check(done.returncode == 0, f"{what}: {done.stderr[-500:]}"):
            continue
        answer = tcam(arguments, "answer", "--json=-", "--ppn=4", place)
        least, most = answer["nic"]["prq"].values()
        # Beside the receives, a NIC has those of the barrier and of a request.
        check(least <= count + 3 and most >= count, f"{what}: a NIC needs {least} to {most} receives")
        check(most <= 1.1 * (count + 3), f"{what}: a NIC needs up to {most} receives")
        judge(arguments, what, place, [(4, "block")], "exact")
    emulated_pool(arguments, launched, PLACE / "stagger-14-0")


def emulated_pool(arguments, launched, recording):
    """Checks the need of a recording against runs with a pool that all ranks of the host share. Of
    the receives of a barrier, a run may have up to 3 more or fewer at one moment."""
    nic = tcam(arguments, "answer", "--json=-", recording)["nic"]["peak_total"]
    for entries, fits in ((nic["most"] + 3, True), (nic["least"] - 4, False)):
        place = PLACE / f"pool-{entries}"
        settings = ["--set=pool=node", f"--set=pool_entries={entries}", f"--report={place}"]
        command = [str(arguments.tcam), "run", *settings, "--", *launched, "14", "5"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=within(120), check=False)
        reports = [json.loads(path.read_text()) for path in place.glob("*.json")]
        queues = [report[context][queue] for report in reports for context in ("tagged", "msg") for queue in ("prq", "umq")]
        spills = sum(queue["spills"] for queue in queues)
        right = done.returncode == 0 and len(reports) == 8 and (spills == 0) == fits
        check(right, f"a pool of {entries} for a need of {nic}: {spills} spill; {done.stderr[-300:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    parser.add_argument("--seed", type=int, default=1, help="seed of the first generated traces")
    parser.add_argument("--generated", type=int, default=4, help="number of sets of generated traces")
    arguments = parser.parse_args()
    shutil.rmtree(PLACE, ignore_errors=True)
    start = time.monotonic()
    for seed in range(arguments.seed, arguments.seed + arguments.generated):
        place = PLACE / f"seed-{seed}"
        generate(place, seed)
        judge(arguments, f"seed {seed}", place, PLACEMENTS, "generated")
    written_by_hand(arguments)
    for name, ppn in RECORDED:
        shutil.unpack_archive(DATA / f"{name}.tar.xz", PLACE)
        judge(arguments, name, PLACE / name, [(0, "block"), (ppn, "block"), (ppn, "cyclic")], "exact")
    staggered(arguments)
    print(f"  {time.monotonic() - start:.0f} s")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
