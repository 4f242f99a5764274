#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes two hosts on this machine (tests/two_hosts.py) and runs a command on the first, with the
words behind it that launch an MPI program on both: COMMAND mpiexec ... PROGRAM."""

import argparse
import pathlib
import subprocess
import sys

import mpi
from two_hosts import TwoHosts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", choices=list(mpi.MPIS), default="mpich")
    parser.add_argument("--ranks", type=mpi.numbers, default=[2, 1], help="of host 1 and of host 2")
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    if why := TwoHosts.why_not():
        print(f"Two hosts on this machine: {why}", file=sys.stderr)
        return 1
    with TwoHosts() as hosts:
        launcher = hosts.launcher(arguments.mpi, mpi.MPIS[arguments.mpi], arguments.ranks)
        words = [*arguments.command, *launcher, str(arguments.program)]
        return subprocess.run(hosts.on(1, words), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
