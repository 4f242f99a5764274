# SPDX-License-Identifier: BSD-2-Clause
"""Runs MPI launchers, each in its own session, so that no rank outlives them."""

import contextlib
import os
import pathlib
import signal
import subprocess

from lib.slowness import within


def members(session):
    """Returns the live processes of a session."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, _, of = stat.read_text(errors="replace").rsplit(")", 1)[1].split()[:4]
            if int(of) == session and state != "Z":
                found.append(int(stat.parent.name))
    return found


def end(child):
    """Ends a process that was started with `start_new_session`, and all processes of its
    session."""
    if members(child.pid):
        # Ends the launcher first, because it knows all ranks, including those outside the session.
        with contextlib.suppress(ProcessLookupError, subprocess.TimeoutExpired):
            os.killpg(child.pid, signal.SIGTERM)
            child.wait(timeout=within(10))
    for pid in members(child.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    child.wait()


def run(command, environment=None, timeout=None, check=False):
    """Runs a command in a new session, like `subprocess.run` with captured output. All processes of
    the session end before this function returns or raises."""
    child = subprocess.Popen(
        [str(word) for word in command], env=os.environ | (environment or {}), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    with child:
        try:
            output = child.communicate(timeout=timeout)
        finally:
            end(child)
    done = subprocess.CompletedProcess(child.args, child.returncode, *output)
    if check:
        done.check_returncode()
    return done
