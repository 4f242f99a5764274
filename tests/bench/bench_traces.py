#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Times tcam on a trace of about 11 million operations: one replay, a sweep of 16 sizes in one
pass, and a sweep of 2 sizes by replays (a model that one pass cannot answer). Then measures by how
much a recording reduces MPICH's rate of 8 B messages, with and without recorded sends, each
compared with a run without a recording, and by how much call sites reduce it further."""

import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile
import time

from lib import sessions
from lib.mpi import MPIS, TARGET

TCAM = TARGET / "release" / "tcam"
SIZES = "0,1,...,16384"
REPEATS = 3
PAIRS = 10
ROUNDS = 8


def timed(*words):
    """Returns the median seconds of a command."""
    taken = []
    for _ in range(REPEATS):
        start = time.monotonic()
        subprocess.run([str(TCAM), *words], check=True, capture_output=True)
        taken.append(time.monotonic() - start)
    return sorted(taken)[REPEATS // 2]


def operations(trace):
    """Returns the number of operations of a trace, as a replay prints it."""
    done = subprocess.run([str(TCAM), "replay", trace], check=True, capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    return int(last.split(" operations")[0].replace(",", ""))


def rate(*words):
    """Returns messages per second, the best of all rounds of a run."""
    program = [str(TARGET / "apps" / "mpich" / "bandwidth"), *["8"] * ROUNDS]
    launcher = [str(MPIS["mpich"] / "mpiexec"), "-n", "2"]
    command = [str(TCAM), "run", "--mpi=mpich", *words, "--", *launcher, *program]
    done = sessions.run(command, check=True)
    return max(float(rate) for rate in re.findall(r"messages_per_s=(\d+)", done.stdout))


def reduction(base, more):
    """Returns the median rate with the words `base`, and the sorted percentages by which the words
    `more` reduce this rate."""
    rates, shares = [], []
    for pair in range(PAIRS):
        both = [base, more]
        # The order alternates.
        order = both if pair % 2 else both[::-1]
        first, second = (rate(*words) for words in order)
        with_base, with_more = (first, second) if pair % 2 else (second, first)
        rates.append(with_base)
        shares.append(100 * (1 - with_more / with_base))
    return statistics.median(rates), sorted(shares)


def main():
    place = pathlib.Path(tempfile.mkdtemp(prefix="tcam-bench-"))
    try:
        trace, out = str(place / "trace"), f"--out={place / 'sweep'}"
        words = ["workload", "fds", "--ranks=1024", "--steps=1100", f"--out={trace}"]
        subprocess.run([str(TCAM), *words], check=True, capture_output=True)
        millions = operations(trace) / 1e6
        replay = timed("replay", trace)
        sweep = timed("sweep", f"--trace={trace}", f"--prq={SIZES}", out)
        prefix = ["--set=overflow=prefix", "--set=host_engine=list"]
        other = timed("sweep", f"--trace={trace}", "--prq=1024,4096", *prefix, out)
        print(f"one replay of {millions:.1f} million operations: {replay:.2f} s,", end=" ")
        print(f"{millions / replay:.1f} million a second")
        print(f"a sweep of 16 sizes, overflow=spill: {sweep:.2f} s, {sweep / replay:.1f} replays")
        print(f"a sweep of 2 sizes, overflow=prefix, list: {other:.2f} s, {other / replay:.1f} replays")
        trace = f"--trace={place / 'rate'}"
        for what, base, more in (
            ("a recording", [], [trace]),
            ("a recording with sends", [], [trace, "--set=trace_sends=on"]),
            ("call sites of a recording", [trace], [trace, "--sites"]),
        ):
            without, shares = reduction(base, more)
            print(f"{what} of {without / 1e6:.2f} million messages of 8 B a second,", end=" ")
            print(f"MPICH, takes {statistics.median(shares):.1f} %", end=" ")
            print(f"({shares[1]:.1f} to {shares[-2]:.1f})")
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
