#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures how much longer programs take here than on a quiet machine, and prints a whole number.
The tests multiply their time limits by it: 1 on an idle machine, 5 beside a load of 8 on two
processors. TCAM_TEST_SLOWNESS sets the minimum; programs that a test starts inherit the result in
this variable."""

import functools
import math
import multiprocessing
import os
import time

NAME = "TCAM_TEST_SLOWNESS"
# Seconds of processor time, on each processor at the same time.
WORK = 0.15
# Clock resolution and the kernel's own work on a quiet machine do not count as load.
NOISE = 0.3
# Upper limit, so that a hang is found on every machine.
MOST = 20


def spin(_):
    """Returns the wall-clock time per second of processor time."""
    start, used = time.monotonic(), time.process_time()
    while time.process_time() - used < WORK:
        pass
    return (time.monotonic() - start) / WORK


@functools.cache
def slowness():
    """Returns the slowness, which is measured once per process. Also stores it in the environment,
    for the programs that this process starts."""
    processors = len(os.sched_getaffinity(0))
    with multiprocessing.get_context("fork").Pool(processors) as pool:
        slowest = max(pool.map(spin, range(processors), chunksize=1))
    least = int(os.environ.get(NAME) or 1)
    os.environ[NAME] = str(max(1, least, min(math.ceil(slowest - NOISE), MOST)))
    return int(os.environ[NAME])


def within(seconds):
    """Returns the time limit for an operation that takes up to `seconds` on a quiet machine."""
    return seconds * slowness()


if __name__ == "__main__":
    print(slowness())
