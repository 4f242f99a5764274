#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures the training set anew, samples.csv and costs.csv, with every engine in five processes.
Takes a quiet machine."""

import itertools
import math
import pathlib
import re
import sys
import tempfile

from streams import measure, run, write

# Operations of a stream at least, and processes that measure: where the kernel puts the pages of a
# process makes two of them differ by 5 % in the median.
OPERATIONS, PROCESSES = 16_384, 5
# Two seeds without tables, another one with small tables.
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
    """Words of `tcam workload`."""
    for each, patterns in RANKS.items():
        for pattern, ranks in itertools.product(patterns.split(), each):
            yield pattern, "--ranks", ranks
    for patterns, (messages, sizes) in FLIGHTS.items():
        for pattern in patterns.split():
            for flight in zip(messages, itertools.cycle(sizes)):
                yield pattern, "--ranks", 2, "--messages", flight[0], "--bytes", flight[1]


def generate(tcam, plan, place):
    """The trace of rank 0, with an even number of steps: some patterns take turns."""
    steps = 2
    while True:
        out = pathlib.Path(place, str(steps))
        told = run(tcam, "workload", *plan, "--rank=0", f"--steps={steps}", f"--out={out}")
        messages = int(re.search(r"rank 0 +([\d,]+)", told)[1].replace(",", ""))
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
        print(name if sample else f"{name}: nothing spills, left out", flush=True)
        samples += [sample] if sample else []
    write(samples)


if __name__ == "__main__":
    main()
