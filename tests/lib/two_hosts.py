# SPDX-License-Identifier: BSD-2-Clause
"""Creates two hosts on one machine. Each host has its own namespaces for network, mounts, host
names and IPC, and its own /dev/shm. A pair of virtual interfaces connects them."""

import pathlib
import shutil
import subprocess
import tempfile
import time

SHELL = """#!/bin/sh
# As ssh: options, a host, a command line for its shell; nothing of the environment goes along.
while case $1 in -*) true ;; *) false ;; esac; do shift; done
host=${1##*.}
shift
exec env -i PATH=/usr/bin:/bin:/usr/sbin HOME="$HOME" \\
    nsenter -t "$(cat "$(dirname "$0")/$host")" -n -m -u -i -- sh -c "$*"
"""


class TwoHosts:
    """Hosts 1 and 2, whose addresses are `address(1)` and `address(2)`."""

    def __init__(self):
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="tcam-hosts-"))
        self.rsh = self.place / "rsh"
        self.rsh.write_text(SHELL)
        self.rsh.chmod(0o755)
        self.holders = {}

    @staticmethod
    def why_not():
        """Returns the reason why two hosts are impossible on this machine; None if they are
        possible."""
        for tool in ("unshare", "nsenter", "ip"):
            if not shutil.which(tool):
                return f"there is no {tool}"
        probe = ["unshare", "-n", "-m", "-u", "-i", "ip", "link", "add", "probe", "type", "veth"]
        tried = subprocess.run(probe, capture_output=True, text=True, check=False)
        if tried.returncode:
            return f"namespaces with interfaces cannot be made: {tried.stderr.strip()}"
        return None

    def __enter__(self):
        for host in (1, 2):
            start = (
                f"hostname node{host} && mount --make-rprivate / && mount -t tmpfs tmpfs /dev/shm"
                " && echo && exec sleep infinity"
            )
            holder = subprocess.Popen(
                ["unshare", "-n", "-m", "-u", "-i", "sh", "-c", start], stdout=subprocess.PIPE
            )
            self.holders[host] = holder
            holder.stdout.readline()
            (self.place / str(host)).write_text(f"{holder.pid}\n")
        self.ip(1, f"link add veth1 type veth peer name veth2 netns {self.holders[2].pid}")
        for host in (1, 2):
            self.ip(host, "link set lo up")
            self.ip(host, f"addr add {self.address(host)}/24 dev veth{host}")
            self.ip(host, f"link set veth{host} up")
        for host in (1, 2):
            while "state UP" not in self.ip(host, f"link show veth{host}"):
                time.sleep(0.01)
        return self

    def __exit__(self, *_):
        for host, holder in self.holders.items():
            subprocess.run(
                self.on(host, ["sh", "-c", "umount /dev/shm"]), capture_output=True, check=False
            )
            holder.kill()
            holder.wait()
        shutil.rmtree(self.place, ignore_errors=True)

    @staticmethod
    def address(host):
        return f"10.99.0.{host}"

    def on(self, host, command):
        """Returns the command that runs `command` on a host."""
        pid = str(self.holders[host].pid)
        return ["nsenter", "-t", pid, "-n", "-m", "-u", "-i", "--", *map(str, command)]

    def ip(self, host, words):
        command = self.on(host, ["ip", *words.split()])
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout

    def link(self, state):
        """Sets the link between the hosts up or down."""
        self.ip(1, f"link set veth1 {state}")

    def shm(self, host):
        """Returns the files in the /dev/shm of a host."""
        found = subprocess.run(
            self.on(host, ["find", "/dev/shm", "-type", "f"]), capture_output=True, text=True
        )
        return found.stdout.split()

    def launcher(self, mpi, binaries, each):
        """Returns the launcher command of an MPI. `each` is the number of ranks on each host, or a pair
        of the numbers on host 1 and host 2."""
        each = each if isinstance(each, (tuple, list)) else (each, each)
        hosts = ",".join(f"{self.address(host)}:{each[host - 1]}" for host in (1, 2))
        mpiexec = str(binaries / "mpiexec")
        if mpi == "mpich":
            here = ["-launcher", "ssh", "-launcher-exec", self.rsh, "-localhost", self.address(1)]
            words = [mpiexec, *here, "-hosts", hosts, "-n", sum(each)]
        else:
            agent = "--prtemca plm_ssh_agent" if mpi == "openmpi5" else "--mca plm_rsh_agent"
            words = [mpiexec, *agent.split(), self.rsh, "--host", hosts, "-n", sum(each)]
        return [str(word) for word in words]

