#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Compares traces that `tcam workload` generates with traces recorded from the MPI program of the
same patterns: the longest PRQ and UMQ of rank 0, and its messages."""

import argparse
import collections
import json
import pathlib
import shutil
import struct
import subprocess
import sys

from lib.checks import check, exit_code
from lib.mpi import MPIS, TARGET, TCAM, bounded, build

HEADER = 8192
KEY, POST, ARRIVE, AGAIN, CLAIM, DISCARD, SEND, LATER = 1, 5, 8, 15, 17, 18, 19, 23
OPERATIONS = {*range(POST, 14), CLAIM, DISCARD, SEND}
WORDS = {KEY: 6, 2: 3, 3: 7, 4: 3, 11: 3, 12: 3, 13: 2, 16: 4, 20: 4}
ANY = 0xFFFF_FFFF
COLLECTIVE = 1 << 31  # marks collectives in MPICH's match bits; sign bit of Open MPI's tags
STEPS, MESSAGES = 4, 300

# Messages of a barrier of 8 ranks that one rank receives. A recorded PRQ may be longer by one
# barrier that waits while the queue is full; a UMQ by the barriers before and after it.
BARRIER = {"mpich": 3, "openmpi5": 8}
PATTERNS = ["fds", "nbody", "gather", "halo", "shuffle", "lammps", "minimd"]

Queues = collections.namedtuple("Queues", "prq umq point_to_point")


def match(queue, bits, ignore, source):
    """Removes the oldest element that matches. Returns true if there was one."""
    for at, (other, other_ignore, other_source) in enumerate(queue):
        same = (bits ^ other) & ~(ignore | other_ignore) == 0
        if same and (source == other_source or ANY in (source, other_source)):
            del queue[at]
            return True
    return False


def records(data):
    """Returns the words of a trace in order: those after the window, then those of the window."""
    header, state = data[: HEADER - 16], data[HEADER - 16 : HEADER]
    window = json.loads(header.decode().split("\n", 1)[1])["window"]
    behind = data[HEADER + window :]
    if window:
        (laps,) = struct.unpack_from("<Q", state)
        behind = behind[: laps * window] + data[HEADER : HEADER + window]
    return struct.unpack(f"<{len(behind) // 4}I", behind[: len(behind) // 4 * 4])


def read(directory):
    """Returns the longest PRQ and UMQ of rank 0 and the number of its point-to-point messages, by
    playing its trace to two lists."""
    (path,) = pathlib.Path(directory).glob("0.*.tagged.trace")
    data = path.read_bytes()
    assert data.startswith(b"tcam-trace 7\n"), path
    posted, unexpected = [], []
    longest, messages = [0, 0], 0
    keys = [(0, 0, 0)] * 1024
    words, at, last = records(data), 0, 0
    while at < len(words) and words[at] != 0:
        kind = words[at] & 0x1F
        if kind == KEY:
            source, low, high, ignore_low, ignore_high = words[at + 1 : at + 6]
            place = words[at] >> 6 & 0x3FF
            keys[place] = (low | high << 32, ignore_low | ignore_high << 32, source)
        if kind in OPERATIONS:
            last = words[at]
        times = words[at] >> 16 if kind == AGAIN else 1 if kind in OPERATIONS | {LATER} else 0
        bits, ignore, source = keys[last >> 6 & 0x3FF]
        for _ in range(times):
            if last & 0x1F == ARRIVE:
                messages += bits & COLLECTIVE == 0
                if not match(posted, bits, 0, source):
                    unexpected.append((bits, 0, source))
            elif last & 0x1F == POST and not match(unexpected, bits, ignore, source):
                posted.append((bits, ignore, source))
            longest = [max(longest[0], len(posted)), max(longest[1], len(unexpected))]
        at += WORDS.get(kind, 1)
    return Queues(*longest, messages)


def generated(arguments, pattern):
    """Generates a trace of rank 0. Returns its `Queues`."""
    place = TARGET / "workload-tests" / "generated" / pattern
    shutil.rmtree(place, ignore_errors=True)
    command = [
        str(arguments.tcam), "workload", pattern, f"--ranks={arguments.ranks}",
        f"--steps={STEPS}", f"--out={place}",
    ]  # fmt: skip
    if pattern in ("shuffle", "burst"):
        command.append(f"--messages={MESSAGES}")
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return read(place)


def recorded(arguments, mpi, pattern):
    """Runs the MPI program. Returns the `Queues` of rank 0, or None if the program failed."""
    place = TARGET / "workload-tests" / mpi / pattern
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    log = place / "output.log"
    command = [
        str(arguments.tcam), "run", f"--mpi={mpi}", f"--set=trace={place}", "--",
        str(MPIS[mpi] / "mpiexec"), "-n", str(arguments.ranks),
        str(TARGET / "apps" / mpi / "patterns"), pattern, str(STEPS), str(MESSAGES),
    ]  # fmt: skip
    code = bounded(command, log, arguments.timeout)
    check(code == 0, f"{mpi} {pattern}: exit code {code}, see {log}")
    return read(place) if code == 0 else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one run")
    parser.add_argument("--tcam", type=pathlib.Path, default=TCAM)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--pattern", default=",".join(PATTERNS))
    arguments = parser.parse_args()
    for mpi, barrier in BARRIER.items():
        build(mpi)
        for pattern in arguments.pattern.split(","):
            ours, theirs = generated(arguments, pattern), recorded(arguments, mpi, pattern)
            if theirs is None:
                continue
            print(f"  {mpi} {pattern}: generated {tuple(ours)}, recorded {tuple(theirs)}")
            what = f"{mpi} {pattern}: generated {ours}, recorded {theirs}"
            check(ours.prq <= theirs.prq <= ours.prq + barrier, f"longest PRQ, {what}")
            # A program may be late in practice although its pattern is not, so a UMQ that should be
            # empty is not compared.
            if ours.umq:
                check(ours.umq <= theirs.umq <= ours.umq + 2 * barrier, f"longest UMQ, {what}")
            same = ours.point_to_point == theirs.point_to_point
            check(same, f"point-to-point messages, {what}")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
