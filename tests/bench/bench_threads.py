#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures threads of a rank: message rate and half a round trip by number of threads, messages
beside a waiting thread, and two sending threads with and without an MPI. Compares tcam with the
transports that the MPIs already have, all without a report. The variants take turns, round after
round; medians are printed."""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from lib import sessions
from bench import MPICH, OFI, OPENMPI, RIVALS, TARGET, UCX

OB1 = RIVALS["Open MPI ob1/sm"][3]
PROVIDER = {"FI_PROVIDER": "tcam", "FI_PROVIDER_PATH": str(TARGET / "release")}
# With more threads than cores, Open MPI stalls unless it is set to yield its cores.
YIELDS = {"OMPI_MCA_mpi_yield_when_idle": "1", "PRTE_MCA_hwloc_default_binding_policy": "none"}
CM = {"OMPI_MCA_pml": "cm", "OMPI_MCA_mtl": "ofi", "OMPI_MCA_mtl_ofi_provider_include": "tcam"}
# Name: programs (by MPI), launcher, environment. Each VCI of MPICH is an endpoint.
MPIS = {
    "MPICH tcam": ("mpich", MPICH, OFI | PROVIDER),
    "MPICH ofi/shm": ("mpich", MPICH, OFI | {"FI_PROVIDER": "shm"}),
    "MPICH ofi/sm2": ("mpich", MPICH, OFI | {"FI_PROVIDER": "sm2"}),
    "MPICH UCX": ("mpich", MPICH, UCX),
}
MPIS |= {
    f"{name}, 4 VCIs": (programs, launcher, environment | {"MPIR_CVAR_CH4_NUM_VCIS": "4"})
    for name, (programs, launcher, environment) in MPIS.items()
}
MPIS |= {
    "Open MPI tcam": ("openmpi5", OPENMPI, OB1 | YIELDS | CM | PROVIDER),
    "Open MPI ob1/sm": ("openmpi5", OPENMPI, OB1 | YIELDS),
}
RAW = ["tcam", "shm", "sm2"]
# MPICH 5 ships a libfabric that has sm2.
LIBFABRIC = MPICH.parent.parent / "lib" / "mpich"
ROLES = ["apart", "mixed", "both", "trip"]
# Pairs that are compared turn by turn: through an MPI, and without one.
NEAREST = [("MPICH tcam", "MPICH ofi/shm"), ("tcam", "shm")]
TOO_LONG = 60


def output(name, command, environment):
    """Returns the output of a program; None, after printing a line, if it hangs or fails."""
    try:
        done = sessions.run(command, environment, timeout=TOO_LONG)
    except subprocess.TimeoutExpired:
        print(f"{name}: no end after {TOO_LONG} s: {command[-1]}", flush=True)
        return None
    if done.returncode:
        print(f"{name}: failed: {command}\n{done.stdout}{done.stderr}", flush=True)
        return None
    return done.stdout


def through_mpi(name, ranks, program, *arguments):
    """Runs a program. Returns a dictionary of words KEY=VALUE for each result line, or an empty list if
    the program hangs or fails."""
    programs, launcher, environment = MPIS[name]
    command = [launcher, "-n", ranks, TARGET / "apps" / programs / program, *arguments]
    text = output(name, command, environment) or ""
    lines = [line.split()[1:] for line in text.splitlines() if line.startswith(program + " ")]
    return [dict(word.split("=") for word in line) for line in lines]


def measure_role(values, name, role, milliseconds):
    """Measures communicating threads: millions of messages per second, or half a round trip in us."""
    for row in through_mpi(name, 2, "threads", "--roles", role, "--ms", milliseconds):
        rate = float(row.get("messages_per_s", 0)) / 1e6
        value = rate or float(row["half_round_trip_us"])
        values.add(row["roles"], row["comms"], name, row["threads"], value)


def measure_waits(values, name):
    """Measures a send and half a round trip beside a waiting thread, on 4 ranks, in us."""
    for words in ([], ["trips"]):
        for row in through_mpi(name, 4, "threads_latency", *words):
            for column in ("median_us", "p99_us"):
                values.add("waits", *words or ["sends"], name, column, float(row[column]))


def measure_bursts(values, name):
    """Measures one and two threads that send while their receiver sleeps: ns per message."""
    for row in through_mpi(name, 2, "bursts", 300):
        values.add("bursts", "", name, row["threads"], float(row["ns_a_message"]))


def measure_raw(values, name):
    """Measures one and two sending threads without an MPI: ns per message."""
    environment = PROVIDER | {"FI_PROVIDER": name, "LD_LIBRARY_PATH": str(LIBFABRIC)}
    for line in (output(name, [TARGET / "fabric" / "senders"], environment) or "").splitlines():
        _, how, time = line.split(": ")
        values.add("raw", "", name, how, float(time.split()[0]))


class Values:
    """Measured values by table, row and column. If a file is given, includes the values of earlier
    runs."""

    def __init__(self, file):
        self.file, self.all = file, {}
        if file and file.exists():
            kept = json.loads(file.read_text())
            self.all = {tuple(key.split("/")): table for key, table in kept.items()}

    def rounds(self):
        """Returns the number of rounds so far: the largest number of values in a cell."""
        rows = [row for table in self.all.values() for row in table.values()]
        return max((len(runs) for row in rows for runs in row.values()), default=0)

    def keep(self):
        if self.file:
            kept = {"/".join(key): table for key, table in self.all.items()}
            self.file.write_text(json.dumps(kept))

    def add(self, kind, variant, name, column, value):
        table = self.all.setdefault((kind, variant), {})
        table.setdefault(name, {}).setdefault(column, []).append(value)

    def show(self, title, kind, variant, digits):
        """Prints medians, each with the lowest and the highest value."""
        table = self.all.get((kind, variant), {})
        columns = list(dict.fromkeys(column for row in table.values() for column in row))
        print(f"\n{title}\n" + " | ".join(["", *columns]))
        for name, row in table.items():
            cells = []
            for column in columns:
                found = row.get(column)
                if not found:
                    cells.append("none")
                    continue
                numbers = [statistics.median(found), min(found), max(found)]
                middle, least, most = [f"{number:.{digits}f}" for number in numbers]
                cells.append(f"{middle} ({least} to {most})")
            print(" | ".join([name, *cells]))
        ours, shm = (table.get(name, {}) for name in NEAREST[kind == "raw"])
        if all(len(ours.get(column, ())) == len(shm.get(column, [])) for column in columns):
            pairs = [zip(ours[column], shm[column]) for column in columns]
            ratios = [f"{statistics.median(a / b for a, b in turns):.2f}" for turns in pairs]
            print(" | ".join(["the first over libfabric's shm, by turns", *ratios]))
        sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each")
    parser.add_argument("--ms", type=int, default=50, help="milliseconds of a measurement")
    parser.add_argument("--keep", type=pathlib.Path, help="a file that adds runs to earlier ones")
    arguments = parser.parse_args()
    values = Values(arguments.keep)
    earlier = values.rounds()
    for turn in range(earlier, earlier + arguments.rounds):
        there_or_back = 1 if turn % 2 == 0 else -1
        for role in ROLES:
            for name in list(MPIS)[::there_or_back]:
                measure_role(values, name, role, arguments.ms)
        for name in list(MPIS)[::there_or_back]:
            measure_waits(values, name)
            measure_bursts(values, name)
        for name in RAW[::there_or_back]:
            measure_raw(values, name)
        values.keep()
    what = {"own": "a communicator for each pair of threads", "shared": "one communicator for all"}
    for role in ROLES:
        unit = "half a round trip, us" if role == "trip" else "M messages of 8 B a second"
        for comms, words in what.items():
            values.show(f"{role}, {words}: {unit}, by threads of a rank", role, comms, 2)
    values.show("MPI_Send of 8 B beside a thread that waits, 4 ranks", "waits", "sends", 2)
    values.show("Half a round trip of 8 B beside one, 4 ranks", "waits", "trips", 2)
    values.show("Threads that send, ns a message of 8 B, by threads", "bursts", "", 0)
    values.show("Without an MPI, ns a message of 8 B", "raw", "", 0)


if __name__ == "__main__":
    main()
