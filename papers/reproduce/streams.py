# SPDX-License-Identifier: BSD-2-Clause
"""Makes streams of operations as trace files, replays them with papers-bench, and runs MPI programs over tcam."""

import array
import json
import os
import pathlib
import re
import secrets
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
# The build that tests/lib/setup.sh makes.
PROVIDER = TARGET / "provider"
TCAM = PROVIDER / "tcam"
BENCH = TARGET / os.environ.get("TCAM_PROFILE", "release") / "papers-bench"

KEY, POST, ARRIVE = 1, 5, 8  # kinds of records of a trace, see nic/src/trace.rs
HEADER, BYTES = 8192, 8
STEPS, MESSAGES = 8, 16_384  # least number of steps of a workload, and of operations in all steps
MPICH = {"MPIR_CVAR_CH4_NETMOD": "ofi", "MPIR_CVAR_NOLOCAL": "1"}


def say(text):
    print(text, file=sys.stderr, flush=True)


class Stream:
    """A trace of rank 0, and the number of steps into which papers-bench divides it. The first `once`
    operations are not repeated."""

    def __init__(self, place, steps, once=0):
        (self.path,) = pathlib.Path(place).glob("*.trace")
        self.steps, self.once = steps, once

    @classmethod
    def of_workload(cls, place, pattern, ranks, seed):
        """Makes a stream with `tcam workload`. It has too many steps for the branch predictor to learn."""

        def made(steps, out):
            words = [TCAM, "workload", pattern, f"--ranks={ranks}", f"--seed={seed}", f"--steps={steps}"]
            subprocess.run([*words, f"--out={out}"], check=True, stdout=subprocess.DEVNULL)
            return cls(out, steps)

        (one,) = made(1, f"{place}-step").replay(["host_engine=hash"])
        # The counters cover two steps.
        operations = (one["counted"]["posts"] + one["counted"]["arrivals"]) // 2
        return made(max(STEPS, MESSAGES // operations), place)

    @classmethod
    def of(cls, place, ranks, steps, once=()):
        """Makes a stream from steps. Each operation of a step is a kind, match bits and a source."""
        pathlib.Path(place).mkdir()
        # The header that nic::trace reads.
        head = {
            "context": "tagged", "tcam": "", "libfabric": "", "host": "generated", "pid": 1, "rank": 0,
            "address": "0.0.0.0:0", "program": "papers", "window": 0, "start_ns": 0, "start_clock_ns": 0,
            "origin": {"command": "", "mpi": "", "processors": "", "started_s": 0}, "layout": "mpich",
            "config": {"nprocs": str(ranks), "tag_layout": "mpich"},
        }  # fmt: skip
        words = array.array("I")
        for step in [once, *steps]:
            for kind, bits, source in step:
                words.extend((KEY, source, bits & 0xFFFF_FFFF, bits >> 32, 0, 0, kind | BYTES << 16))
        if sys.byteorder == "big":
            words.byteswap()
        with open(pathlib.Path(place) / "0.1.0.tagged.trace", "wb") as file:
            file.write(f"tcam-trace 7\n{json.dumps(head)}".encode().ljust(HEADER - 16))
            # The recording is complete, and the number of its words is not given.
            file.write(bytes(8) + (3).to_bytes(8, "little"))
            words.tofile(file)
        return cls(place, len(steps), len(once))

    def replay(self, settings, ms=0):
        """Returns the answers of papers-bench, one for each of `settings`. If `ms` is 0, papers-bench counts and
        measures no times."""
        words = [BENCH, "replay", self.path, str(self.steps), str(self.once), str(ms), *settings]
        done = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()]


def settings(engine, storage, k=8, clusters=None):
    """Returns the settings of an engine, with the paper's theta for lists and ours for arrays."""
    theta = {"linked": 100, "packed": 512}[storage]
    text = f"host_engine={engine},host_storage={storage},theta={theta},k_col={k},k_pnp={k}"
    return text + (f",clusters={clusters}" if clusters else "")


def nanoseconds(answer, role, collective=None):
    """Returns the median time of the operations with a role, for collective or point-to-point traffic. If
    `collective` is None, returns the weighted mean of both medians. Returns None without such operations."""
    kinds = answer["times"][role]
    if collective is not None:
        return kinds[collective][1]
    known = [(total, median) for total, median in kinds if median is not None]
    count = sum(total for total, _ in known)
    return sum(total * median for total, median in known) / count if count else None


class Job:
    """An MPI program and its launcher. The program runs over tcam; the environment is for MPICH."""

    def __init__(self, words, program):
        self.words, self.program = [str(word) for word in words], program

    def run(self, set_to, words, report=None):
        """Runs the program and returns its output. Exits if the program fails. Timed runs write no report,
        because counting the depth of each search takes time."""
        environment = os.environ | MPICH | {
            "FI_PROVIDER": "tcam",
            "FI_PROVIDER_PATH": str(PROVIDER),
            "FI_TCAM_JOB_KEY": secrets.token_hex(16),
        }  # fmt: skip
        environment |= {f"FI_TCAM_{name.upper()}": str(value) for name, value in set_to.items()}
        if report:
            environment["FI_TCAM_REPORT"] = f"{report}/%r.%p"
        done = subprocess.run(
            [*self.words, *map(str, words)],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        if done.returncode:
            tail = "\n".join(done.stdout.splitlines()[-20:])
            raise SystemExit(f"{' '.join(self.words)}: exit code {done.returncode}\n{tail}")
        return done.stdout

    def value(self, text, name):
        """Returns the number after `name=` in the line that the program prints. Exits without such a line."""
        found = re.search(rf"^{self.program}: ok (?:.* )?{name}=(\S+)", text, re.MULTILINE)
        if not found:
            raise SystemExit(f"{self.words[-1]} printed no line `{self.program}: ok` with {name}")
        return float(found[1])


def job_settings(engine, storage, k=8):
    pairs = [pair.split("=") for pair in settings(engine, storage, k).split(",")]
    chosen = {name: value for name, value in pairs if name != "theta" or storage == "linked"}
    return {"prq_entries": 0, "umq_entries": 0} | chosen
