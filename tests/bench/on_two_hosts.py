#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes two hosts on this machine (tests/lib/two_hosts.py) and runs a command on the first. Appends
to the command the words that launch an MPI program on both hosts: COMMAND mpiexec ... PROGRAM."""

import argparse
import os
import pathlib
import subprocess
import sys

from lib import mpi
from lib.two_hosts import TwoHosts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mpi", choices=list(mpi.MPIS), default="mpich")
    parser.add_argument("--ranks", type=mpi.numbers, default=[2, 1], help="of host 1 and of host 2")
    parser.add_argument("--program", type=pathlib.Path, required=True)
    # Everything after the first -- is the command, which may contain another --.
    at = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    arguments, command = parser.parse_args(sys.argv[1:at]), sys.argv[at + 1 :]
    if not command:
        parser.error("a command is needed behind --")
    if why := TwoHosts.why_not():
        print(f"Two hosts on this machine: {why}", file=sys.stderr)
        return 1
    with TwoHosts() as hosts:
        launcher = hosts.launcher(arguments.mpi, mpi.MPIS[arguments.mpi], arguments.ranks)
        words = ["env", "-C", os.getcwd(), *command, *launcher, str(arguments.program)]
        return subprocess.run(hosts.on(1, words), check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
