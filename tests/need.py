#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The need of a NIC by brute force, from operations.csv alone, against `tcam sweep`, `tcam answer`,
and the smallest pool with which `tcam compare` has no spill."""

import argparse
import csv
import json
import pathlib
import random
import shutil
import subprocess
import sys
import time

import mpi as runs
from brute import Writer
from brute_force import Context
from checks import check, exit_code
from slowness import within

PLACE = runs.TARGET / "need-tests"
RANKS = 4
# Ranks of a node, and how they are placed; 0 leaves them where they ran.
PLACEMENTS = [(0, "block"), (1, "block"), (2, "block"), (2, "cyclic"), (4, "block")]
LARGEST = 1 << 30


def tcam(arguments, *words):
    """What tcam prints to standard output; nothing, said, if it failed."""
    command = [str(arguments.tcam), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=within(120), check=False)
    check(done.returncode == 0, f"{' '.join(command)}: {done.stderr[-500:]}")
    return json.loads(done.stdout) if done.returncode == 0 else None


def generate(place, seed):
    """Traces of several ranks, in which no two operations come at one time."""
    rng = random.Random(seed)
    place.mkdir(parents=True)
    writers = [Writer(rank, context, 6) for rank in range(RANKS) for context in ("tagged", "msg")]
    posted, arrived = [0] * len(writers), [0] * len(writers)
    wild, tags, now = rng.choice([0, 0.2, 0.5]), rng.choice([2, 6]), 0
    for writer in writers:
        # Made by no network: numbers of peers are ranks.
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


def needs(operations, ppn, placement):
    """The most that each node held at once, and the longest PRQ and UMQ of a rank."""
    nodes = -(-RANKS // ppn) if ppn else 1

    def node(rank):
        if not ppn:
            return 0
        return rank // ppn if placement == "block" else rank % nodes

    def is_local(source, rank):
        return bool(ppn) and source != "" and node(int(source)) == node(rank)

    contexts = {(rank, name): Context(LARGEST, "spill", ()) for rank in range(RANKS) for name in ("tagged", "msg")}
    held, most, longest = dict.fromkeys(contexts, 0), [0] * nodes, [0, 0]
    now = [0] * nodes
    for row in sorted(operations, key=lambda row: int(row["ns"])):
        rank, name = key = int(row["rank"]), row["context"]
        context = contexts[key]
        context.play(row)
        lengths = [sum(not is_local(element.source, rank) for element in queue.elements)
                   for queue in (context.prq, context.umq)]  # fmt: skip
        now[node(rank)] += sum(lengths) - held[key]
        held[key] = sum(lengths)
        most[node(rank)] = max(most[node(rank)], now[node(rank)])
        if name == "tagged":
            longest = [max(pair) for pair in zip(longest, lengths)]
    return max(most), longest


def overflows(arguments, place, words, entries):
    """Whether anything spills from a pool of so many entries."""
    pool = f"--with=pool=node,pool_entries={entries}"
    line = tcam(arguments, "compare", "--json=-", pool, *words, place)["lines"][1]
    return sum(line[f"{what}_spills"] for what in ("prq", "umq", "internal")) > 0


def smallest(arguments, place, words):
    """The smallest pool without a spill, by bisection."""
    least, enough = 0, 1024
    while enough - least > 1:
        middle = (least + enough) // 2
        least, enough = (middle, enough) if overflows(arguments, place, words, middle) else (least, middle)
    return enough


def judge(arguments, what, place):
    out = PLACE / "export"
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([arguments.tcam, "export", f"--out={out}", place], check=True, capture_output=True)
    with (out / "operations.csv").open(encoding="utf-8") as file:
        operations = list(csv.DictReader(file))
    told = []
    for ppn, placement in PLACEMENTS:
        words = [f"--ppn={ppn}", f"--placement={placement}"] if ppn else []
        name = f"{what} {' '.join(words)}"
        nic, (prq, umq) = needs(operations, ppn, placement)
        out = f"--out={PLACE / 'sweep'}"
        pool = tcam(arguments, "sweep", "--json=-", out, "--set=pool=node", *words, "--trace", place)
        check(pool["needed_entries"] == nic, f"{name}: sweep needs {pool['needed_entries']}, by brute force {nic}")
        for run in pool["runs"]:
            spills = run["prq_spills"] + run["umq_spills"] + run["internal_spills"]
            fits = run["pool_entries"] >= nic
            check(fits == (spills == 0), f"{name}: {spills} spill at {run['pool_entries']} of {nic}")
        by_compare = smallest(arguments, place, words)
        check(by_compare == max(nic, 1), f"{name}: compare needs {by_compare}, by brute force {nic}")
        answer = tcam(arguments, "answer", "--json=-", *words, place)
        ours = {"rank": (prq, umq), "nic": nic}
        theirs = {"rank": tuple(answer["rank"][of]["most"] for of in ("prq", "umq")),
                  "nic": answer["nic"]["at_once"]["most"]}  # fmt: skip
        check(theirs == ours, f"{name}: answer {theirs}, by brute force {ours}")
        for queue in ("rank", "nic"):
            least, most = answer[queue]["umq_at_least"]["most"], answer[queue]["umq"]["most"]
            check(least <= most, f"{name}: UMQ of {queue} at least {least}, at most {most}")
        told.append(nic)
    print(f"  {what}: {len(operations)} operations, NICs need {told}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    parser.add_argument("--seed", type=int, default=1, help="of the first generated traces")
    parser.add_argument("--generated", type=int, default=4, help="number of those")
    arguments = parser.parse_args()
    shutil.rmtree(PLACE, ignore_errors=True)
    start = time.monotonic()
    for seed in range(arguments.seed, arguments.seed + arguments.generated):
        place = PLACE / f"seed-{seed}"
        generate(place, seed)
        judge(arguments, f"seed {seed}", place)
    print(f"  {time.monotonic() - start:.0f} s")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
