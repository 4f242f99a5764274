#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Floods of MPI_Iprobe (tests/apps/flood.c) on 4 ranks while memory runs out, by hand and as root. A
run that does not end has its stacks printed.

The runs and a *hog* share a memory cgroup. The hog takes all memory that the limit leaves, and is
the first that the kernel kills; then it begins again."""

import argparse
import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from lib import mpi as runs

HOG = """
import pathlib
pathlib.Path("/proc/self/oom_score_adj").write_text("1000")
held = []
while True:
    held.append(b"x" * (4 << 20))
"""


def group_of(name, mebibytes):
    """Makes a memory cgroup with this limit. Returns its directory; None if that is impossible."""
    for root, limit in (("memory", "memory.limit_in_bytes"), (".", "memory.max")):
        place = pathlib.Path("/sys/fs/cgroup") / root / name
        with contextlib.suppress(OSError):
            place.mkdir(exist_ok=True)
            (place / limit).write_text(str(mebibytes << 20))
            return place
    return None


def stacks(group):
    """Prints the stacks of all processes of a group."""
    for process in (group / "cgroup.procs").read_text().split():
        name = pathlib.Path("/proc", process, "comm").read_text().strip()
        print(f"{process} ({name}):", flush=True)
        if shutil.which("gdb"):
            subprocess.run(["gdb", "-batch", "-p", process, "-ex", "thread apply all bt"], stderr=subprocess.DEVNULL)
        else:
            print(pathlib.Path("/proc", process, "stack").read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", default="mpich", choices=["mpich", "openmpi5"])
    parser.add_argument("--times", type=int, default=100, help="number of runs")
    parser.add_argument("--limit", type=int, default=400, help="memory of all processes together, in MiB")
    parser.add_argument("--seconds", type=int, default=300, help="time limit of a run")
    arguments = parser.parse_args()
    group = group_of("tcam-flood", arguments.limit)
    if group is None:
        sys.exit("skipped: no memory cgroup can be made here")

    def inside():
        (group / "cgroup.procs").write_text(str(os.getpid()))

    ended = threading.Event()
    kills = []

    def hogs():
        while not ended.is_set():
            hog = subprocess.Popen([sys.executable, "-c", HOG], preexec_fn=inside)
            while hog.poll() is None and not ended.wait(0.01):
                pass
            hog.kill()
            hog.wait()
            kills.append(hog.pid)

    program = runs.build(arguments.mpi) / "flood"
    commands = [
        [str(runs.TCAM), "run", f"--set=arrival={arrival}", "--", *runs.launch_here(arguments.mpi, 4), str(program), "30"]
        for arrival in ("nic", "poll")
    ]
    hog, hung, failed = threading.Thread(target=hogs), 0, 0
    hog.start()
    try:
        for at in range(arguments.times):
            with subprocess.Popen(commands[at % 2], preexec_fn=inside, start_new_session=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
                try:
                    told = run.communicate(timeout=arguments.seconds)[0]
                    # The kernel may kill a rank too, if it finds no hog.
                    failed += run.returncode != 0
                    if "FAILED" in told or run.returncode == 0 and "flood: ok" not in told:
                        sys.exit(told)
                except subprocess.TimeoutExpired:
                    hung += 1
                    stacks(group)
                    os.killpg(run.pid, signal.SIGKILL)
    finally:
        ended.set()
        hog.join()
        group.rmdir()
    print(f"{arguments.times} runs, {hung} hung, {failed} ended in error; memory ran out {len(kills)} times")
    sys.exit(hung > 0)


if __name__ == "__main__":
    main()
