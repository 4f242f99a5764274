#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests `tcam show --live` on a running MPI program: it shows every rank with its rates and lengths, and
nothing of a program that has ended or was killed."""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time

from lib import mpi as runs
from lib.checks import check, exit_code
from lib.slowness import within

RANKS = 4
# Unique, because others may run the same program.
PROGRAM = f"w{os.getpid()}"


def watch(arguments, *words):
    """Runs `tcam show --live`. Returns its exit code and its output."""
    command = [str(arguments.tcam), "show", "--live", "--interval=0.3", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=within(60), check=False)
    check(done.stderr == "", done.stderr[-500:])
    check(all(len(line) <= 120 for line in done.stdout.splitlines()), done.stdout)
    return done.returncode, done.stdout


def lines_of(text):
    """Returns the words of the lines of this test's program by rank."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) > 3 and words[2] == PROGRAM and words[0].isdigit():
            found[int(words[0])] = words
    return found


def looked_at(arguments, mpi, programs):
    """`tcam show --live` shows every rank of a running program, and none after the ranks were killed."""
    program = runs.TARGET / "watch-tests" / PROGRAM
    program.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(programs / "patterns", program)
    command = [str(runs.MPIS[mpi] / "mpiexec"), "-n", str(RANKS), str(program)]
    words = ["run", f"--mpi={mpi}", "--prq=8", "--umq=8", "--", *command, "halo", "100000", "50"]
    with subprocess.Popen(
        [str(arguments.tcam), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:  # fmt: skip
        try:
            end, ranks = time.monotonic() + within(60), {}
            while time.monotonic() < end:
                code, text = watch(arguments, "--once")
                ranks = lines_of(text)
                if len(ranks) == RANKS and all(words[3] not in "-0" for words in ranks.values()):
                    break
            check(code == 0, f"{mpi}: exit code {code}")
            check(sorted(ranks) == list(range(RANKS)), f"{mpi}: {text}")
            check(all(words[3] not in "-0" for words in ranks.values()), f"{mpi}: rates, {text}")
            # 50 receives are posted at the same time, more than the table has entries.
            spilled = [line for line in ranks.values() if "+" in "".join(line)]
            check(len(spilled) == RANKS, f"{mpi}: places, {text}")
            code, text = watch(arguments, "--count=2")
            check(code == 0 and text.count("posts/s") == 2, f"{mpi}: two tables, {text}")
            ends_at_ctrl_c(arguments)
            for words in ranks.values():
                # The launcher kills the remaining ranks when one dies.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(words[1]), signal.SIGKILL)
            child.wait(timeout=within(30))
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            program.unlink()
    code, text = watch(arguments, "--once")
    check(not lines_of(text), f"{mpi}: killed, {text}")


def one_of_two(arguments, programs):
    """Of two programs that run at the same time, each can be shown alone."""
    names = [f"{PROGRAM}{letter}" for letter in "ab"]
    mpiexec = str(runs.MPIS["mpich"] / "mpiexec")
    with contextlib.ExitStack() as stack:
        for name in names:
            program = runs.TARGET / "watch-tests" / name
            shutil.copy(programs / "patterns", program)
            stack.callback(program.unlink)
            command = [mpiexec, "-n", "2", str(program), "halo", "100000", "50"]
            child = subprocess.Popen(
                [str(arguments.tcam), "run", "--mpi=mpich", "--", *command],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
            stack.callback(child.wait)
            stack.callback(child.terminate)
        end, jobs = time.monotonic() + within(60), {}
        while time.monotonic() < end and len(jobs) < 2:
            code, text = watch(arguments, "--once")
            told = re.findall(r"^job ([0-9a-f]{4}): 2 endpoints of (\S+)$", text, re.MULTILINE)
            jobs = {name: job for job, name in told if name in names}
        check(len(jobs) == 2, f"two jobs: {code} {text}")
        for name, job in jobs.items():
            code, text = watch(arguments, "--once", f"--job={job}")
            check(code == 0 and "\n2 endpoints\n" in text, f"{name}, {job}: {code} {text}")
            shown = {words[2] for words in map(str.split, text.splitlines()) if len(words) > 3}
            check(shown & set(names) == {name}, f"{name}, {job}: {text}")
    code, text = watch(arguments, "--once", f"--job={job}")
    check(code == 1 and f"No endpoint of job {job}" in text, f"ended: {code} {text}")


def ends_at_ctrl_c(arguments):
    """Ctrl-C ends `tcam show --live` without an error message."""
    command = [str(arguments.tcam), "show", "--live", "--interval=0.1"]
    # A shell makes its background processes ignore SIGINT; this test may be one of them.
    def heeds():
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, preexec_fn=heeds) as child:
        shown = child.stdout.readline()
        child.send_signal(signal.SIGINT)
        rest, errors = child.communicate(timeout=within(10))
    check(child.returncode == -signal.SIGINT and errors == b"", f"Ctrl-C: {errors}")
    check(b"posts/s" in shown + rest, "nothing was shown before Ctrl-C")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    arguments = parser.parse_args()
    for mpi in ("mpich", "openmpi5"):
        looked_at(arguments, mpi, runs.build(mpi))
    one_of_two(arguments, runs.build("mpich"))
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
