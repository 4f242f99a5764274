#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs libfabric's own tests, built elsewhere, between two hosts (tests/lib/two_hosts.py). Not part
of make test: this repository neither builds nor contains libfabric."""

import argparse
import os
import pathlib
import subprocess
import sys

from lib import mpi
from lib.two_hosts import TwoHosts

# Substitute for ssh to the host of an address. The script sometimes asks to kill every fi_* process
# of a host; such requests are ignored, because the processes may belong to others. It ends a server
# by killing the parent of ssh. The server must end then, because the next test uses the same port.
SSH = """#!/bin/bash
while [ $# -gt 0 ]; do
    case $1 in -n) shift ;; -o) shift 2 ;; *) break ;; esac
done
host=${1##*.}
shift
case $* in *"kill -9"*) exit 0 ;; esac
exec nsenter -t "$(cat "$(dirname "$0")/$host")" -n -m -u -i -- \\
    setpriv --pdeathsig KILL bash -c "$*"
"""

# Its client does not repeat fi_send after FI_EAGAIN, which the first send to another host returns
# until the connection stands.
EXCLUDED = "fi_scalable_ep\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prefix", type=pathlib.Path, help="has bin/runfabtests.sh")
    parser.add_argument("--provider", default="tcam", help="or tcp, for comparison")
    parser.add_argument("--sets", default="quick")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if why := TwoHosts.why_not():
        sys.exit(f"two hosts cannot be made: {why}")
    bin_, lib = arguments.prefix / "bin", arguments.prefix / "lib"
    with TwoHosts() as hosts:
        ssh = hosts.place / "ssh"
        ssh.write_text(SSH)
        ssh.chmod(0o755)
        environment = os.environ | {
            "PATH": f"{hosts.place}:{bin_}:{os.environ['PATH']}",
            "LD_LIBRARY_PATH": str(lib),
        }
        if arguments.provider == "tcam":
            provider = str(mpi.PROVIDER)
            environment |= {"FI_PROVIDER_PATH": provider, "FI_TCAM_NET": "tcp"}
            # Clients construct the address of the server from a host and a port.
            environment |= {"FI_TCAM_JOB_KEY": "fabtests"}
        everywhere = mpi.ROOT / "tests" / "nightly" / "fabtests.exclude"
        exclude = hosts.place / "exclude"
        exclude.write_text(everywhere.read_text() + EXCLUDED)
        command = [
            "bash", str(bin_ / "runfabtests.sh"), *(["-vvv"] if arguments.verbose else []),
            "-t", arguments.sets, "-f", str(exclude),
            arguments.provider, hosts.address(1), hosts.address(2),
        ]  # fmt: skip
        done = subprocess.run(command, env=environment, cwd=hosts.place, check=False)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
