#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests how `tcam run`, `answer` and `sweep` end: with programs that hang, after signals,
and after Ctrl-C at a terminal. No process may be left behind."""

import argparse
import contextlib
import os
import pathlib
import pty
import signal
import subprocess
import sys
import time

from lib import mpi as runs
from lib.checks import all_post, check, exit_code
from command import MPIEXEC, files, fresh, tcam
from lib.slowness import within


def runs_that_hang(arguments):
    """A sweep ends a run that takes too long, with its ranks, and continues."""
    place, limit = fresh("hangs"), within(10)
    for mpi in ("mpich", "openmpi5"):
        launcher, built = runs.MPIS[mpi] / "mpiexec", runs.build(mpi)
        script = f'[ "$FI_TCAM_PRQ_ENTRIES" = 2 ] || exec {launcher} -n 2 {built / "ring"}; '
        for end in ("exec ", ""):
            # Without exec the launcher outlives the shell.
            slow = f"{end}{launcher} -n 2 {built / 'patterns'} halo 1000000 50; true"
            words = ["sweep", f"--mpi={mpi}", "--prq=1,2,4", f"--out={place / 'out'}"]
            command = [str(arguments.tcam), *words, f"--timeout={limit}", "--", "sh", "-c", script + slow]
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            ) as child:
                wait_for(lambda: len(ranks_of(child.pid)) >= 2, f"{mpi}: no ranks")
                ranks = ranks_of(child.pid)
                out, errors = child.communicate(timeout=within(120))
            told = f"PRQ 2 UMQ 2, run 1: ended after {limit} s (--timeout)\n"
            code = child.returncode
            check(code == 124 and told in errors, f"{mpi}: {code} {errors}")
            check("needs " in out, f"{mpi}: {out}")
            check(not any(map(lives, ranks)), f"{mpi}: {ranks} live on")
            lines = (place / "out" / "sweep.csv").read_text().splitlines()
            check([line.split(",")[0] for line in lines[1:]] == ["1", "4"], f"{mpi}: {lines}")


def children(pid):
    """Returns the descendants of a process."""
    listed = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True)
    parents = dict(map(int, line.split()) for line in listed.stdout.splitlines())
    found = [pid]
    for parent in found:
        found += [child for child, above in parents.items() if above == parent]
    return found[1:]


def as_at_a_terminal():
    """Resets the signals that the parent of the tests may ignore (nohup). Otherwise the child would
    ignore them as well."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def ends_with_its_program(arguments, programs, mpi):
    """A signal to tcam also ends the program. tcam prints which files the program left, and where."""
    program = [str(runs.MPIS[mpi] / "mpiexec"), "-n", "2", str(programs / "patterns")]
    program += ["halo", "1000000", "50"]
    for task, option, number, code in (
        ("run", "--trace", signal.SIGTERM, 143),
        ("run", "--trace", signal.SIGHUP, 129),
        ("run", "--trace", signal.SIGINT, 130),
        ("run", "", signal.SIGTERM, 143),
        ("sweep", "--out", signal.SIGTERM, 143),
        ("sweep", "--out", signal.SIGINT, 130),
    ):
        what = f"{mpi}, {task} {option}, {number.name}"
        place = fresh("ended") / "out"
        words = [task, *([f"{option}={place}"] if option else []), "--", *program]
        child = subprocess.Popen(
            [str(arguments.tcam), *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, start_new_session=True, preexec_fn=as_at_a_terminal,
        )  # fmt: skip
        try:
            wait_for(lambda pid=child.pid: at_work(arguments, pid), f"{what}: no ranks")
            below = children(child.pid)
            os.kill(child.pid, number)
            _, errors = child.communicate(timeout=within(60))
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
        check(child.returncode == code, f"{what}: exit code {child.returncode}, {errors[-500:]}")
        left = lambda below=below: [one for one in below if lives(one)]
        wait_for(lambda left=left: not left(), f"{what}: {below} live on")
        if task != "sweep":
            told = "endpoints had counted" in errors or "high-water mark" in errors
            check(told, f"{what}: {errors[-1000:]}")
        if option == "--trace":
            names = [path.name for path in place.glob("*")]
            check(any(name.endswith(".trace") for name in names), f"{what}: {names}, {errors}")
            check(not any(name.startswith(".") for name in names), f"{what}: {names}")
            told = "No complete report of 2 endpoints (rank 0, 1): counted from traces" in errors
            told = told and errors.count("INCOMPLETE") == 1 and "Channel shm: at least " in errors
            check(told, f"{what}: {errors[-1000:]}")
            check(f"tcam replay {place}" in errors, f"{what}: {errors[-500:]}")
        elif task == "sweep":
            check(f"ended by {number.name} in the first run" in errors, f"{what}: {errors[-500:]}")


def others_come_first(arguments, programs):
    """The counts of dead ranks are reported, even if another program runs before the command ends and
    removes the files of dead processes. None of these files stays."""
    halo, ring = (f"{MPIEXEC} -n 2 {programs / name}" for name in ("patterns", "ring"))
    script = f"{halo} halo 1000000 50; env -u FI_TCAM_REPORT {ring}; exit 7"
    before = {path.name for path in pathlib.Path("/dev/shm").glob("tcam.*/left.*")}
    words = ["run", "--mpi=mpich", "--", "sh", "-c", script]
    with subprocess.Popen(
        [str(arguments.tcam), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        wait_for(lambda: at_work(arguments, child.pid), "others come first: no ranks")
        for rank in ranks_of(child.pid):
            # The launcher kills the remaining ranks when one dies.
            with contextlib.suppress(ProcessLookupError):
                os.kill(rank, signal.SIGKILL)
        _, errors = child.communicate(timeout=within(60))
    check(child.returncode == 3, f"others come first: {child.returncode} {errors[-500:]}")
    told = "the counts of ranks 0-1 were cut short" in errors and "sh ended with exit code 7" in errors
    check(told, f"others come first: {errors[-1000:]}")
    left = {path.name for path in pathlib.Path("/dev/shm").glob("tcam.*/left.*")} - before
    check(not left, f"others come first: {left} stays")


def a_sweep_is_ended(arguments, programs):
    """If a sweep is ended, the completed runs are drawn."""
    place = fresh("ended-sweep") / "out"
    fast, slow = (str(programs / "ring"), f"{programs / 'patterns'} halo 1000000 50")
    script = f'if [ "$FI_TCAM_PRQ_ENTRIES" = 1 ]; then exec {MPIEXEC} -n 2 {fast}; fi; '
    script += f"exec {MPIEXEC} -n 2 {slow}"
    words = ["sweep", "--mpi=mpich", "--prq=1,2,4", f"--out={place}", "--", "sh", "-c", script]
    with subprocess.Popen(
        [str(arguments.tcam), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, preexec_fn=as_at_a_terminal,
    ) as child:  # fmt: skip
        wait_for(lambda: len(ranks_of(child.pid)) >= 2, "sweep: no ranks")
        lines = (place / "sweep.csv").read_text().splitlines()
        check(len(lines) == 2, f"sweep.csv of a sweep that goes on: {lines}")
        child.terminate()
        out, errors = child.communicate(timeout=within(60))
    check(child.returncode == 143 and "1 of 3 runs" in errors, f"{child.returncode} {errors}")
    check("needs " in out and (place / "curve.svg").is_file(), f"{out}")


def an_answer_is_ended(arguments, programs):
    """If an answer is ended, it prints the page of the complete runs and keeps no other run."""
    place = fresh("ended-answer")
    out, flag = place / "out", place / "ran"
    script = f"if ! [ -e {flag} ]; then touch {flag}; exec {MPIEXEC} -n 2 {programs / 'ring'}; fi; "
    script += f"exec {MPIEXEC} -n 2 {programs / 'patterns'} halo 1000000 50"
    words = ["answer", "--mpi=mpich", f"--out={out}", "--", "sh", "-c", script]
    # The second call is ended in its first run, when the recording of the first call is there.
    for told in (f"1 of 3 runs are complete: `tcam answer {out / '1'}`", "no run is complete"):
        with subprocess.Popen(
            [str(arguments.tcam), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True, preexec_fn=as_at_a_terminal,
        ) as child:  # fmt: skip
            wait_for(lambda child=child: at_work(arguments, child.pid), "answer: no ranks")
            child.terminate()
            page, errors = child.communicate(timeout=within(60))
        check(child.returncode == 143 and told in errors, f"{child.returncode} {errors}")
        check(("Entries needed" in page) == told.startswith("1"), f"{told}: {page}")
        left = [path.name for path in (out / "2").iterdir()]
        check(left == ["output.log.new"], f"{told}: {left}")
        done = tcam(arguments, "answer", out)
        check(done.returncode == 0 and "1 run, " in done.stdout, f"{told}: {done.stdout} {done.stderr}")


def ctrl_c(arguments):
    """Ctrl-C at a terminal reaches the program directly and tcam waits for it; a second Ctrl-C ends
    tcam at once."""
    place = fresh("ctrl-c") / "out"
    for mpi in ("mpich", "openmpi5"):
        program = [str(runs.MPIS[mpi] / "mpiexec"), "-n", "2", str(runs.build(mpi) / "patterns")]
        words = ["run", f"--trace={place}", "--", *program, "halo", "1000000", "50"]
        code, text = at_terminal(arguments, words, lambda pid: at_work(arguments, pid), 1)
        check(code == 130 and f"tcam replay {place}" in text, f"{mpi}, Ctrl-C: {code} {text}")
    before = files(place)
    stubborn = ["sh", "-c", "trap '' INT; exec sleep 50"]
    words = ["run", "--mpi=mpich", f"--trace={place}", "--", *stubborn]
    
    def asleep(pid):
        return any("sleep" in name_of(one) for one in children(pid))

    code, text = at_terminal(arguments, words, asleep, 2)
    check(code == 130 and "a second time" in text, f"Ctrl-C twice: {code} {text}")
    check(files(place) == before, f"Ctrl-C twice: {sorted(files(place))}")


def at_terminal(arguments, words, ready, times):
    """Runs tcam at a separate terminal and types Ctrl-C there, once or several times. Returns its
    exit code and output."""
    pid, terminal = pty.fork()
    if pid == 0:
        as_at_a_terminal()
        os.execv(arguments.tcam, [str(arguments.tcam), *words])
    wait_for(lambda: ready(pid), f"{words}: not ready")
    below = children(pid)
    for _ in range(times):
        time.sleep(within(0.7))
        os.write(terminal, b"\x03")
    shown = b""
    # The terminal closes (EIO) with its last process.
    with contextlib.suppress(OSError):
        while part := os.read(terminal, 1 << 16):
            shown += part
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    wait_for(lambda: not any(map(lives, below)), f"{words}: {below} live on")
    return code, shown.decode(errors="replace")


def ranks_of(pid):
    """Returns the descendants of a process that are ranks of the program `patterns`."""
    return [one for one in children(pid) if "patterns" in name_of(one)]


def at_work(arguments, pid):
    """Returns true if both ranks below a process exchange messages."""
    ranks = ranks_of(pid)
    return len(ranks) >= 2 and all_post(arguments.tcam, ranks)


def name_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8")
    except OSError:
        return ""


def lives(pid):
    """Returns true if a process exists and is not a zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def wait_for(what, why):
    """Waits until the condition `what` holds. If it does not within the time limit, records a failed
    check."""
    end = time.monotonic() + within(30)
    while not (holds := what()) and time.monotonic() < end:
        time.sleep(0.05)
    check(holds, why)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    arguments = parser.parse_args()
    programs = runs.build("mpich")
    runs_that_hang(arguments)
    for mpi in ("mpich", "openmpi5"):
        ends_with_its_program(arguments, runs.build(mpi), mpi)
    a_sweep_is_ended(arguments, programs)
    an_answer_is_ended(arguments, programs)
    others_come_first(arguments, programs)
    ctrl_c(arguments)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
