#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the training set (samples.csv and costs.csv) with every engine in five processes. Needs a quiet
machine."""

import itertools
import math
import pathlib
import re
import sys
import tempfile

from streams import measure, run, write

# Least number of operations of a stream, and number of measuring processes. The kernel places the pages of each
# process differently, so that the times of two processes differ by 5 % in the median.
OPERATIONS, PROCESSES = 16_384, 5
# (seed, table entries): two seeds without tables, and a third one with small tables.
SEEDS = ((1, 0), (2, 0), (3, 32))
RANKS = {
    (8, 64, 256, 1024): "fds amg nbody",
    (16, 128, 512, 2048): "miniamr",
    (4, 8, 27, 64, 512): "lammps minimd halo radix solver",
    (4, 16, 64, 512): "gather allreduce iallgather cholesky manager",
}
FLIGHTS = {
    "shuffle burst reverse": ((2, 8, 32, 128, 512, 2048), (1, 8192, 256)),
    "pingpong": ((0, 1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200), (1, 64, 512, 8192, 1024)),
}


def plans():
    """Yields the arguments of `tcam workload` for each stream."""
    for each, patterns in RANKS.items():
        for pattern, ranks in itertools.product(patterns.split(), each):
            yield pattern, "--ranks", ranks
    for patterns, (messages, sizes) in FLIGHTS.items():
        for pattern in patterns.split():
            for flight in zip(messages, itertools.cycle(sizes)):
                yield pattern, "--ranks", 2, "--messages", flight[0], "--bytes", flight[1]


def generate(tcam, plan, place):
    """Returns the path of a trace of rank 0 with at least OPERATIONS operations. The trace has an even number of
    steps, because some patterns alternate."""
    steps = 2
    while True:
        out = pathlib.Path(place, str(steps))
        output = run(tcam, "workload", *plan, "--rank=0", f"--steps={steps}", f"--out={out}")
        messages = int(re.search(r"rank 0 +([\d,]+)", output)[1].replace(",", ""))
        if 2 * messages >= OPERATIONS:
            return next(out.iterdir())
        steps = 2 * max(math.ceil(steps * OPERATIONS / messages / 4), steps // 2 + 1)


def main():
    (tcam,) = sys.argv[1:]
    samples = []
    for plan, (seed, entries) in itertools.product(plans(), SEEDS):
        words = [*map(str, plan), "--seed", str(seed)]
        name = f"{' '.join(words)}; {entries} entries"
        with tempfile.TemporaryDirectory() as place:
            trace = generate(tcam, words, place)
            sample = measure(tcam, name, plan[0], trace, entries, PROCESSES)
        print(name if sample else f"{name}: left out, because nothing spills", flush=True)
        samples += [sample] if sample else []
    write(samples)


if __name__ == "__main__":
    main()
