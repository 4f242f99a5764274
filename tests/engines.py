#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Profiles, clusters, promises and engines on the command line: what a stranger broke once."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import mpi as runs
from checks import check, exit_code
from mpi import TARGET, TCAM
from slowness import within

PLACE = TARGET / "engine-tests"
OWN_FAILURE, INCOMPLETE = 125, 3
HEAD = '{"format":"tcam-clusters","version":1,"processes":4,"k":2}\n'
ROW = '{"rank":0,"prq":[0,1],"umq":[]}\n'


def tcam(arguments, *words):
    command = [str(arguments.tcam), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=within(120), check=False)


def refused(done, *parts):
    """It is an error of tcam's own, in words."""
    told = done.returncode == OWN_FAILURE and all(part in done.stderr for part in parts)
    check(told, f"{done.args[1:]}: {done.returncode} {done.stderr[-300:]}, not {parts}")


def files(arguments, traces):
    """Profiles and clusters: what is damaged is refused, what is there is spared."""
    profile, clusters = PLACE / "a.profile", PLACE / "a.clusters"
    check(tcam(arguments, "profile", "--out", profile, traces).returncode == 0, "profile")
    done = tcam(arguments, "cluster", "--k=4", "--out", clusters, profile)
    check(done.returncode == 0 and "in a queue" in " ".join(done.stdout.split()), done.stdout)
    refused(tcam(arguments, "cluster", "--out", profile, profile), "another file is there")
    precious = PLACE / "precious.c"
    precious.write_text("int main(void);\n")
    for words in (["profile", traces], ["cluster", profile]):
        refused(tcam(arguments, *words, "--out", precious), "another file is there")
    head = '{"format":"tcam-profile","version":1,"processes":4}\n'
    odd = PLACE / "odd.profile"
    for row, part in [
        ('{"rank":0,"prq":[[4294967295,5],[1,3]],"umq":[]}', "is above"),
        ('{"rank":7,"prq":[],"umq":[]}', "rank 7 of 4"),
        ('{"rank":0,"prq":[],"umq":[]}\n{"rank":0,"prq":[],"umq":[]}', "rank 0 of 4"),
        ('{"rank":0', "line 2"),
    ]:
        odd.write_text(head + row + "\n")
        refused(tcam(arguments, "cluster", "--out", PLACE / "odd.clusters", odd), part)
    refused(tcam(arguments, "cluster", traces), str(traces))
    for k in ("0", "4097", "few"):
        done = tcam(arguments, "cluster", "--k", k, profile)
        check(done.returncode != 0 and "from 1 to 4096" in done.stderr, f"--k {k}: {done.stderr}")


def before_the_start(arguments, traces):
    """Clusters are checked before anything starts, every line of them."""
    bad = PLACE / "bad.clusters"
    touched = PLACE / "started"
    for content, part in [
        (None, "No such file"),
        ("", "no file of clusters"),
        (HEAD + ROW + "garbage\n", "line 3"),
        (HEAD + ROW + ROW, "rank 0 has clusters already"),
    ]:
        if content is None:
            bad.unlink(missing_ok=True)
        else:
            bad.write_text(content)
        sets = ["--set=host_engine=kmeans", f"--set=clusters={bad}"]
        refused(tcam(arguments, "run", *sets, "--", "touch", touched), part)
        check(not touched.exists(), f"{part}: the program was started")
        refused(tcam(arguments, "replay", *sets, traces), part)
    refused(tcam(arguments, "run", "--set=host_engine=kmeans", "--", "touch", touched), "needs")
    pipe = PLACE / "pipe"
    os.mkfifo(pipe)
    sets = ["--set=host_engine=kmeans", f"--set=clusters={pipe}"]
    refused(tcam(arguments, "replay", *sets, traces), "not a regular file")


def left_out(arguments):
    """A rank whose tagged trace has no beginning is missed, though another of its is there."""
    place = PLACE / "cut"
    done = tcam(arguments, "workload", "halo", "--ranks=27", "--rank=0,1", f"--out={place}")
    check(done.returncode == 0, done.stderr)
    trace = next(place.glob("0.*.trace"))
    trace.write_bytes(trace.read_bytes()[:100])
    done = tcam(arguments, "replay", "--cut-off", place)
    told = done.returncode == INCOMPLETE and "rank 0 were cut short" in done.stderr
    check(told, f"--cut-off: {done.returncode} {done.stderr[-500:]}")


def advice(arguments, traces):
    """An engine that is not judged stands in for none, and probes are wildcards, too."""
    sets = ["--prq=0", "--umq=0", "--set=host_engine=kmeans", f"--set=clusters={PLACE / 'a.clusters'}"]
    done = tcam(arguments, "advise", *sets, traces)
    good = done.returncode == 0 and "nothing leaves" not in done.stdout and "kmeans is not judged" in done.stderr
    check(good, f"advise beside kmeans: {done.stdout[:300]} {done.stderr[:300]}")
    place = PLACE / "probe"
    program = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "2", str(runs.build("mpich") / "hints"), "burst", "64", "5"]
    done = tcam(arguments, "record", f"--out={place}", "--prq=0", "--umq=0", "--", *program)
    check(done.returncode == 0, done.stderr[-300:])
    done = tcam(arguments, "advise", "--json", "-", place)
    told = json.loads(done.stdout) if done.returncode == 0 else {"wildcards": done.stderr}
    check(told["wildcards"] == 0, f"the MPI's own receives are none of the program's: {told['wildcards']}")
    done = tcam(arguments, "run", "--set=host_engine=hash", f"--report={PLACE / 'hash'}", "--", *program)
    reports = "".join(path.read_text() for path in (PLACE / "hash").glob("*.txt"))
    check(done.returncode == 0 and reports and "BROKEN" not in done.stderr + reports, "no promise is broken")
    wild = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "2", str(runs.build("mpich") / "any_source")]
    done = tcam(arguments, "run", "--set=host_engine=hash", f"--report={PLACE / 'hash'}", "--", *wild)
    stats = tcam(arguments, "stats", PLACE / "hash")
    check("BROKEN PROMISES" in done.stderr and "BROKEN PROMISES" in stats.stdout, "promises are broken")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=TCAM)
    arguments = parser.parse_args()
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    traces = PLACE / "nbody"
    done = tcam(arguments, "workload", "nbody", "--ranks=64", f"--out={traces}")
    check(done.returncode == 0, done.stderr)
    files(arguments, traces)
    before_the_start(arguments, traces)
    left_out(arguments)
    advice(arguments, traces)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
