#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks that a message arrives when it comes, and not when the receiver polls: programs whose
unexpected messages are known by construction (tests/apps/arrivals.c), with each MPI, with manual
and automatic progress, with `tcam run`, `record` and `answer`, and between two hosts."""

import argparse
import collections
import csv
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import time

from lib import mpi as runs
from lib.checks import check, exit_code
from lib.slowness import within
from lib.two_hosts import TwoHosts

PLACE = runs.TARGET / "arrival-tests"
# Words of the program. `tcam` must count the unexpected messages that the program prints.
CASES = {
    "late": ["late", "500", "100", "500"],
    "many late": ["late", "10000", "100", "1000"],
    "halo": ["halo", "100", "200", "40", "20"],
    "in order": ["inorder", "10000", "100", "1000"],
    "broadcasts": ["bcasts", "20000", "8", "1500"],
}
# Messages of one exchange of `halo`: two for each field.
HALO = 2 * int(CASES["halo"][1])
# The socket of a receiver that does not poll holds some 60 KB, and the last messages of a burst may come
# 40 ms after their send. So these are the cases for two hosts.
FAR = {"late": ["late", "150", "100", "500"], "halo": ["halo", "100", "200", "250", "6"]}
# Largest time in ns between a send and the recorded arrival of its message, and of the median of these
# times. A receiver that computes for 500 ms handles most messages after that time.
LATEST, MEDIAN = 100_000_000, 20_000_000
POLLED = "Messages arrived when their receivers polled"
# Error in ns of times on one host, and the longest time between the record of a send and its frame.
SAME_CLOCK, SEND = 100, 20_000
# Messages of the MPI itself that may be unexpected or not: those of barriers and of its start.
OWN = 6
# Intel MPI, which `tests/nightly/impi.sh` installs, runs programs that were compiled for MPICH.
BINARIES = runs.MPIS | {"impi": runs.VENVS / "impi" / "bin"}
INTEL = {
    "I_MPI_ROOT": str(runs.VENVS / "impi"),
    "LD_LIBRARY_PATH": str(runs.VENVS / "impi" / "lib"),
    # Otherwise a broadcast on one host sends no messages.
    "I_MPI_COLL_INTRANODE": "pt2pt",
    "I_MPI_OFI_LIBRARY": str(runs.VENVS / "mpich" / "lib" / "mpich" / "libfabric.so.1"),
}
# Intel MPI has no such setting.
AUTOMATIC = {
    "mpich": {"MPIR_CVAR_CH4_OFI_ENABLE_DATA_AUTO_PROGRESS": "1"},
    "openmpi5": {"OMPI_MCA_mtl_ofi_data_progress": "auto"},
    "openmpi4": {"OMPI_MCA_mtl_ofi_data_progress": "auto"},
}


def tcam(arguments, words, before=(), variables=None):
    command = [*before, str(arguments.tcam), *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=within(120), check=False,
        env=os.environ | {"FI_LOG_LEVEL": "warn", "FI_LOG_PROV": "tcam"} | (variables or {}),
    )  # fmt: skip


def compiler(mpi):
    """Returns the MPI with whose compiler the programs of an MPI are built."""
    return "mpich" if mpi == "impi" else mpi


def fresh(name):
    place = PLACE / name.replace(" ", "-")
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def counts(what, done, place):
    """Checks the unexpected messages in the reports of a run against the line of the program."""
    line = re.search(r"arrivals: ok .*unexpected=(\d+)", done.stdout)
    if not check(done.returncode == 0 and line, f"{what}: {done.returncode} {done.stdout}{done.stderr}"):
        return None
    expected = int(line[1])
    reports = [json.loads(path.read_text()) for path in place.glob("*.json")]
    found = sum(report[context]["unexpected"] for report in reports for context in ("tagged", "msg"))
    check(expected <= found <= expected + OWN, f"{what}: {found} messages are unexpected, not {expected}")
    return expected


def run(arguments, mpi, name, words, settings=(), launcher=None, before=(), variables=None):
    place = fresh(f"{mpi}-{name}")
    launcher = launcher or [str(BINARIES[mpi] / "mpiexec"), "-n", "2"]
    variables = (variables or {}) | (INTEL if mpi == "impi" else {})
    program = str(runs.TARGET / "apps" / compiler(mpi) / "arrivals")
    settings = [f"--set={setting}" for setting in settings]
    command = ["run", f"--report={place}", *settings, "--", *launcher, program, *words]
    return counts(f"{mpi}, {name}", tcam(arguments, command, before, variables), place)


def each_mpi(arguments):
    for mpi in arguments.mpi:
        runs.build(compiler(mpi))
        for name, words in CASES.items():
            run(arguments, mpi, name, words)
            if mpi in AUTOMATIC:
                run(arguments, mpi, f"{name} automatic", words, variables=AUTOMATIC[mpi])


def with_polls_as_arrivals(arguments):
    """With `arrival=poll` the receives of `late` are posted before the program polls."""
    place = fresh("poll")
    program = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "2", str(runs.TARGET / "apps" / "mpich" / "arrivals")]
    done = tcam(arguments, ["run", f"--report={place}", "--set=arrival=poll", "--", *program, *CASES["late"]])
    reports = [json.loads(path.read_text()) for path in place.glob("*.json")]
    found = sum(report["tagged"]["unexpected"] for report in reports)
    check(done.returncode == 0 and found <= OWN, f"poll: {found} unexpected messages; {done.stderr}")
    check(POLLED in done.stderr, f"poll: {done.stderr}")
    arrival = {report["config"]["arrival"] for report in reports}
    check(arrival == {"poll"}, f"poll: reports say {arrival}")
    # Each command says it, and so does the paragraph to quote.
    recording = fresh("record polls") / "recording"
    done = tcam(arguments, ["run", f"--trace={recording}", "--set=arrival=poll", "--", *program, *CASES["late"]])
    check(done.returncode == 0 and POLLED in done.stderr, f"poll, record: {done.stderr}")
    for words in (["replay"], ["replay", "--with=devices"], ["sweep", f"--out={recording}-sweep", "--trace"], ["show"], ["answer"]):
        done = tcam(arguments, [*words, recording])
        said = " ".join((done.stdout + done.stderr).split())
        check(done.returncode == 0 and POLLED in said, f"poll, {words[0]}: {said[-900:]}")
    check(said.endswith("Messages arrived when their receivers polled."), f"poll, to quote: {said[-300:]}")
    done = tcam(arguments, ["replay", "--set=arrival=nic", recording])
    check(done.returncode == 125 and "order of the recording" in done.stderr, f"poll, replay: {done.stderr}")


def recorded(arguments):
    """`tcam answer` records the counts of the run, its page has the longest UMQ, and no sender waited.
    A replay of the recording has these counts, too."""
    program = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "2", str(runs.TARGET / "apps" / "mpich" / "arrivals")]
    for name, words in CASES.items():
        place = fresh(f"record {name}")
        done = tcam(arguments, ["answer", "--repeat=1", "--json=-", f"--out={place}", "--", *program, *words])
        log = place / "1" / "output.log"
        if not check(done.returncode == 0 and log.exists(), f"answer, {name}: {done.stdout}{done.stderr}"):
            continue
        printed = subprocess.CompletedProcess([], 0, log.read_text(), "")
        expected = counts(f"record, {name}", printed, place / "1")
        if not expected:
            continue
        umq = json.loads(done.stdout)["rank"]["umq"]["most"]
        of_rank = HALO if name == "halo" else expected
        check(of_rank <= umq <= of_rank + OWN, f"answer, {name}: UMQ {umq}, not {of_rank}")
        page = tcam(arguments, ["answer", place / "1"]).stdout
        check("waited" not in page, f"answer, {name}: {page}")
        again = fresh(f"replay {name}")
        replayed = tcam(arguments, ["replay", f"--report={again}", place / "1"])
        check(replayed.returncode == 0, f"replay: {replayed.stderr}")
        counts(f"replay, {name}", printed, again)


def between_hosts(arguments):
    why = TwoHosts.why_not()
    if why:
        print(f"two hosts skipped: {why}")
        return
    with TwoHosts() as hosts:
        for mpi in [mpi for mpi in arguments.mpi if mpi != "impi"][:1]:
            for name, words in FAR.items():
                launcher = hosts.launcher(mpi, runs.MPIS[mpi], 1)
                run(arguments, mpi, f"two hosts {name}", words, launcher=launcher, before=hosts.on(1, []))
            times_between_hosts(arguments, hosts, mpi)


def times(place):
    """Returns the times in ns between the sends and the arrivals of messages in a recording, whose hosts
    have the same clock."""
    done = subprocess.run(
        [str(runs.TCAM), "show", "--format=csv", f"--out={place}-csv", place], capture_output=True, text=True, check=False
    )
    check(done.returncode == 0, f"export: {done.stderr}")
    sends, arrivals = collections.defaultdict(list), collections.defaultdict(list)
    with open(f"{place}-csv/operations.csv", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["operation"] == "send":
                sends[row["rank"], row["destination_rank"], row["match_bits"]].append(int(row["ns"]))
            if row["operation"] == "arrive":
                arrivals[row["source_rank"], row["rank"], row["match_bits"]].append(int(row["ns"]))
    return [
        arrival - send
        for key, all_of in arrivals.items()
        for send, arrival in zip(sends[key], all_of)
    ]


def times_between_hosts(arguments, hosts, mpi):
    """The recorded time of an arrival is that of its send, although the receiver computes."""
    place = fresh("two hosts times") / "recording"
    program = str(runs.TARGET / "apps" / mpi / "arrivals")
    launcher = hosts.launcher(mpi, runs.MPIS[mpi], 1)
    words = ["run", f"--trace={place}", "--set=trace_sends=on", "--", *launcher, program, *FAR["late"]]
    done = tcam(arguments, words, hosts.on(1, []))
    if not counts(f"{mpi}, two hosts, times", done, place):
        return
    waits = times(place)
    middle = statistics.median(waits)
    # The recorded error of the clocks contains the true one, which is 0.
    error = json.loads(tcam(arguments, ["show", "--json=-", place]).stdout)["need"]["uncertain_ns"] / 2
    print(
        f"two hosts: {len(waits)} messages, {middle / 1e3:.0f} us (median), {max(waits) / 1e3:.0f} us (most); "
        f"error of the clocks {error / 1e3:.0f} us"
    )
    check(SAME_CLOCK < error, f"no error of the clocks: {error} ns")
    check(abs(middle) < error + SEND, f"messages came {middle} ns after their sends, the error is {error} ns")
    check(len(waits) >= int(FAR["late"][1]), f"{len(waits)} messages have times")
    check(max(map(abs, waits)) < LATEST, f"a message came {max(waits, key=abs)} ns after its send")
    check(abs(middle) < MEDIAN, f"messages came {middle} ns after their sends")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    parser.add_argument("--mpi", type=runs.words(list(BINARIES)), default=["mpich", "openmpi5"])
    parser.add_argument("--rounds", type=int, default=1, help="repetitions of everything")
    arguments = parser.parse_args()
    shutil.rmtree(PLACE, ignore_errors=True)
    started = time.monotonic()
    for _ in range(arguments.rounds):
        each_mpi(arguments)
        with_polls_as_arrivals(arguments)
        recorded(arguments)
        between_hosts(arguments)
    print(f"{time.monotonic() - started:.0f} s")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
