#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures how much longer programs take here than on a quiet machine, and prints a whole number.
The tests multiply their limits of time by it: 1 where nothing else runs, 5 beside a load of 8 on two
processors. TCAM_TEST_SLOWNESS sets the least, and hands it on to what a test starts."""

import functools
import math
import multiprocessing
import os
import time

NAME = "TCAM_TEST_SLOWNESS"
# Seconds of a processor's time, on each of them at once.
WORK = 0.15
# What the clocks and the kernel's own work make of a quiet machine is no load.
NOISE = 0.3
# A hang is to be found in the end wherever it is.
MOST = 20


def spin(_):
    """Returns the time by the clock for each second of processor time."""
    start, used = time.monotonic(), time.process_time()
    while time.process_time() - used < WORK:
        pass
    return (time.monotonic() - start) / WORK


@functools.cache
def slowness():
    """Measures once in a process. Programs that it starts find the number in their environment."""
    processors = len(os.sched_getaffinity(0))
    with multiprocessing.get_context("fork").Pool(processors) as pool:
        slowest = max(pool.map(spin, range(processors), chunksize=1))
    least = int(os.environ.get(NAME) or 1)
    os.environ[NAME] = str(max(1, least, min(math.ceil(slowest - NOISE), MOST)))
    return int(os.environ[NAME])


def within(seconds):
    """Returns a limit for what takes up to so many seconds on a quiet machine."""
    return seconds * slowness()


if __name__ == "__main__":
    print(slowness())
