#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Times tcam on a trace of some 11 million operations: one replay, a sweep of 16
sizes in one pass, and one of 2 sizes by replays (a model that one pass cannot answer)."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
TCAM = TARGET / "release" / "tcam"
SIZES = "0,1,...,16384"
REPEATS = 3


def timed(*words):
    """Median seconds of a command."""
    taken = []
    for _ in range(REPEATS):
        start = time.monotonic()
        subprocess.run([str(TCAM), *words], check=True, capture_output=True)
        taken.append(time.monotonic() - start)
    return sorted(taken)[REPEATS // 2]


def operations(trace):
    """Operations of a trace, as a replay says."""
    done = subprocess.run([str(TCAM), "replay", trace], check=True, capture_output=True, text=True)
    last = done.stderr.strip().splitlines()[-1]
    return int(last.split(" operations")[0].replace(",", ""))


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
    finally:
        shutil.rmtree(place)


if __name__ == "__main__":
    main()
