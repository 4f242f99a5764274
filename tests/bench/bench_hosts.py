#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Measures MPICH over tcam and over libfabric's tcp provider between two hosts
(tests/lib/two_hosts.py). Then measures tcam between two ranks of one host, with the network off and
on. The two rivals of each comparison run alternately. Prints the median of each rival, and the
median and the range of their ratio."""

import argparse
import statistics
import sys

from lib import mpi
from lib import sessions
from lib.two_hosts import TwoHosts

MPICH = {"MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1"}
TCAM = MPICH | {"FI_PROVIDER": "tcam", "FI_PROVIDER_PATH": str(mpi.TARGET / "release")}
BETWEEN = {"tcp": MPICH | {"FI_PROVIDER": "tcp"}, "tcam": TCAM | {"FI_TCAM_NET": "tcp"}}
WITHIN = {"off": TCAM | {"FI_TCAM_NET": "off"}, "open": TCAM | {"FI_TCAM_NET": "tcp"}}
SHORT = ["1", "64", "1024", "4096"]
LONG = ["16384", "65536", "262144", "1048576", "4194304"]


def rows(hosts, words, environment, program, arguments):
    """Runs a program on the hosts. Returns its result lines as dictionaries of words KEY=VALUE."""
    command = hosts.on(1, [*words, mpi.TARGET / "apps" / "mpich" / program, *arguments])
    done = sessions.run(command, environment, timeout=300)
    if done.returncode:
        sys.exit(f"{program} failed: {environment}\n{done.stdout}{done.stderr}")
    lines = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith(program)]
    return [dict(word.split("=") for word in line) for line in lines]


def compare(title, rounds, rivals, measure, wanted):
    """Runs `measure`, which yields pairs of a key and a value, for each of the two rivals in each
    round. Prints for each key the median of each rival, and the ratio of the second to the first."""
    values = {}
    for turn in range(rounds):
        names = list(rivals) if turn % 2 == 0 else list(rivals)[::-1]
        for name in names:
            for at, value in measure(rivals[name]):
                values.setdefault(at, {}).setdefault(name, []).append(value)
    first, second = rivals
    print(f"\n{title}\n{'':>10}{first:>12}{second:>12}   {second} / {first}")
    for at, of in values.items():
        ratios = sorted(b / a for a, b in zip(of[first], of[second]))
        spread = f"{ratios[0]:.2f} to {ratios[-1]:.2f}"
        medians = "".join(f"{statistics.median(of[name]):12.2f}" for name in rivals)
        print(f"{at:>10}{medians}   {statistics.median(ratios):.3f} ({spread})")
    print(f"wanted: {wanted}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    if why := TwoHosts.why_not():
        print(f"SKIPPED, two hosts: {why}")
        return
    mpi.build("mpich")
    with TwoHosts() as hosts:
        far = hosts.launcher("mpich", mpi.MPIS["mpich"], 1)
        near = [mpi.MPIS["mpich"] / "mpiexec", "-n", "2"]

        def latency(words):
            def measure(environment):
                for row in rows(hosts, words, environment, "latency", ["0"]):
                    yield "8 B", float(row["half_round_trip_us"])

            return measure

        def rate(environment):
            for row in rows(hosts, far, environment, "bandwidth", SHORT):
                yield int(row["size"]), float(row["messages_per_s"]) / 1e3

        def bandwidth(environment):
            for row in rows(hosts, far, environment, "bandwidth", LONG):
                yield int(row["size"]), float(row["mb_per_s"])

        rounds = arguments.rounds
        compare(
            "Half round trip between two hosts, us", rounds, BETWEEN, latency(far), "at most 1.1"
        )
        compare(
            "Thousand messages a second between two hosts, 64 in flight, by size", rounds, BETWEEN,
            rate, "at least 1",
        )  # fmt: skip
        compare(
            "MB/s between two hosts, 64 messages in flight, by size", rounds, BETWEEN, bandwidth,
            "at least 0.95 from 65536 on",
        )  # fmt: skip
        compare(
            "Half round trip within a host, us, without a network and with one that is open",
            rounds, WITHIN, latency(near), "at most 1.02",
        )  # fmt: skip


if __name__ == "__main__":
    main()
