#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks the number of entries that a NIC needs. A brute-force computation, from operations.csv alone,
must agree with `tcam sweep`, with `tcam answer`, and with the smallest pool for which `tcam compare`
has no spill. The traces are generated ones and the recordings in tests/data."""

import argparse
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
RECORDED = {"hpcg-16": 8, "lulesh-27": 9, "snap-16": 8}
# As in lab/src/traces/player.rs: FULL or more operations with the same time are spread evenly up to
# the next clock reading. A group longer than MOST is split.
FULL, MOST = 32, 4096
LARGEST = 1 << 30


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
        key, chance = (rng.randrange(tags), 0, source), rng.random()
        if chance < 0.04:
            writer.put(writer.CANCEL, numbers=[rng.randrange(max(posted[at] - 30, 0), posted[at] + 1)])
        elif chance < 0.06:
            writer.put(writer.DROP, numbers=[rng.randrange(max(arrived[at] - 30, 0), arrived[at] + 1)])
        elif chance < 0.12:
            writer.put(rng.choice([writer.PEEK, writer.CLAIM, writer.DISCARD]), key)
        elif rng.random() < receives[at]:
            writer.put(writer.POST, key, length=8)
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


def even(times):
    """Returns the times of operations, with full groups spread until the next clock reading."""
    at = 0
    while at < len(times):
        end, now = at, times[at]
        while end < len(times) and times[end] == now and end - at < MOST:
            end += 1
        if end - at >= FULL and end < len(times):
            span = times[end] - now
            times[at:end] = [now + span * place // (end - at) for place in range(end - at)]
        at = end
    return times


def history(operations):
    """Returns the changes of the queues of all ranks in order of time: the rank, the context, the
    queue, the rank of the element's source or None, and 1 if the element joins the queue or -1 if
    it leaves."""
    contexts = {}
    for row in operations:
        contexts.setdefault((int(row["rank"]), row["context"]), []).append(row)
    changes = []
    for place, ((rank, name), rows) in enumerate(contexts.items()):
        times = even([int(row["ns"]) for row in rows])
        now = [0]

        def watch(queue, at=place, of=(rank, name), now=now):
            def report(element, change):
                check(element.source == "" or element.source_rank != "", f"{of}: a source of no rank")
                source = int(element.source_rank) if element.source_rank else None
                changes.append((now[0], at, (*of, queue, source, change)))

            return Watched(report)

        context = Context(LARGEST, "spill", ())
        context.prq.elements, context.umq.elements = watch("prq"), watch("umq")
        for time_of, row in zip(times, rows):
            now[0] = time_of
            context.play(row)
        check(not context.differ, f"rank {rank}, {name}: {context.differ[:3]}")
    changes.sort(key=lambda change: change[:2])
    return [change for _, _, change in changes]


def needs(changes, ranks, ppn, placement):
    """Returns the peak number of elements on a NIC and on a rank for each kind: PRQ, UMQ, or internal
    (untagged). For the NIC, `at_once` is the peak of all kinds together."""
    nodes = -(-ranks // ppn) if ppn else 1

    def node(rank):
        if not ppn:
            return 0
        return rank // ppn if placement == "block" else rank % nodes

    now, most = collections.Counter(), collections.Counter()
    for rank, name, queue, source, change in changes:
        at = node(rank)
        if ppn and source is not None and node(source) == at:
            continue
        kind = queue if name == "tagged" else "internal"
        for of in (("rank", rank, kind), ("nic", at, kind), ("nic", at, "at_once")):
            now[of] += change
            most[of] = max(most[of], now[of])

    def largest(unit, kinds):
        return {kind: max((count for of, count in most.items() if of[::2] == (unit, kind)), default=0)
                for kind in kinds}  # fmt: skip

    return largest("nic", ("prq", "umq", "internal", "at_once")), largest("rank", ("prq", "umq", "internal"))


def overflows(arguments, place, words, entries):
    """Returns true if any element spills from a pool of `entries` entries."""
    pool = f"--with=pool=node,pool_entries={entries}"
    line = tcam(arguments, "compare", "--json=-", pool, *words, place)["lines"][1]
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


def judge(arguments, what, place, placements):
    out = PLACE / "export"
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([arguments.tcam, "export", f"--out={out}", place], check=True, capture_output=True)
    with (out / "operations.csv").open(encoding="utf-8") as file:
        operations = list(csv.DictReader(file))
    changes = history(operations)
    ranks = 1 + max(int(row["rank"]) for row in operations)
    told = []
    for ppn, placement in placements:
        words = [f"--ppn={ppn}", f"--placement={placement}"] if ppn else []
        name = f"{what} {' '.join(words)}"
        by_hand = dict(zip(("nic", "rank"), needs(changes, ranks, ppn, placement)))
        nic = by_hand["nic"]["at_once"]
        out = f"--out={PLACE / 'sweep'}"
        pool = tcam(arguments, "sweep", "--json=-", out, "--set=pool=node", *words, "--trace", place)
        check(pool["needed_entries"] == nic, f"{name}: sweep needs {pool['needed_entries']}, by brute force {nic}")
        for run in pool["runs"]:
            spills = run["prq_spills"] + run["umq_spills"] + run["internal_spills"]
            fits = run["pool_entries"] >= nic
            check(fits == (spills == 0), f"{name}: {spills} spill at {run['pool_entries']} of {nic}")
        by_compare = smallest(arguments, place, words, nic)
        check(by_compare == max(nic, 1), f"{name}: compare needs {by_compare}, by brute force {nic}")
        answer = tcam(arguments, "answer", "--json=-", *words, place)
        for unit, ours in by_hand.items():
            theirs = {of: answer[unit][of]["most"] for of in ours}
            check(theirs == ours, f"{name}: answer for a {unit} {theirs}, by brute force {ours}")
            least, most = answer[unit]["umq_at_least"]["most"], answer[unit]["umq"]["most"]
            check(least <= most, f"{name}: UMQ of a {unit} at least {least}, at most {most}")
        told.append(nic)
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
        judge(arguments, f"seed {seed}", place, PLACEMENTS)
    written_by_hand(arguments)
    for name, ppn in RECORDED.items():
        shutil.unpack_archive(DATA / f"{name}.tar.xz", PLACE)
        judge(arguments, name, PLACE / name, [(0, "block"), (ppn, "block"), (ppn, "cyclic")])
    print(f"  {time.monotonic() - start:.0f} s")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
