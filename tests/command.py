#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `tcam run`, `record` and `sweep` do when something goes wrong: what is old is not
lost and nothing is left running."""

import argparse
import pathlib
import shutil
import subprocess
import sys

import mpi as runs
from checks import check, exit_code

PLACE = runs.TARGET / "command-tests"
MPIEXEC = str(runs.MPIS["mpich"] / "mpiexec")


def tcam(arguments, *words, **options):
    """Runs tcam and returns what it did."""
    options = {"capture_output": True, "text": True, "timeout": 120} | options
    return subprocess.run([str(arguments.tcam), *map(str, words)], **options)


def fresh(name):
    """An empty directory."""
    place = PLACE / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def files(place):
    """What is in a directory, hidden files too, and what is in these."""
    return {path.name: path.read_bytes() for path in place.iterdir()}


def old_files_stay(arguments, programs):
    """A run that leaves nothing leaves what an earlier one wrote."""
    ring = [MPIEXEC, "-n", "2", str(programs / "ring")]
    for task, option in (("record", "--out"), ("run", "--report")):
        place = fresh(task)
        done = tcam(arguments, task, f"{option}={place}", "--", *ring)
        check(done.returncode == 0, f"{task}: {done.stderr[-500:]}")
        before = files(place)
        check({"0.json", "1.json"} <= set(before), f"{task}: {sorted(before)}")
        for words, code in (
            (["--", "nosuchprog"], 125),
            (["--set=prq_entries=bad", "--", *ring], 125),
            (["--", "true"], 125),
            (["--", MPIEXEC, "-n", "2", "false"], 1),
        ):
            done = tcam(arguments, task, f"{option}={place}", *words)
            check(done.returncode == code, f"{task} {words}: {done.returncode} {done.stderr}")
            check(files(place) == before, f"{task} {words}: {sorted(files(place))}")
        done = tcam(arguments, task, f"{option}={place}", "--", *ring)
        after = files(place)
        check(done.returncode == 0 and after, f"{task}: {done.stderr[-500:]}")
        check(len(after) == len(before) and after != before, f"{task}: {sorted(after)}")
        new = PLACE / f"{task}-new"
        tcam(arguments, task, f"{option}={new}", "--", "true")
        check(not new.exists(), f"{task}: {new} was made for nothing")


def some_sizes_fail(arguments, programs):
    """A sweep draws the sizes that worked and names the others."""
    place = fresh("sweep")
    script = place / "app.sh"
    script.write_text(
        "#!/bin/sh\n"
        'if [ "$FI_TCAM_PRQ_ENTRIES" = 2 ]; then echo no luck; exit 7; fi\n'
        f'exec {MPIEXEC} -n 2 {programs / "ring"}\n'
    )
    script.chmod(0o755)
    out = place / "out"
    words = ["sweep", "--mpi=mpich", f"--out={out}"]
    done = tcam(arguments, *words, "--prq=1,2,4", "--", script)
    check(done.returncode == 7, f"sweep: {done.returncode} {done.stderr}")
    check("PRQ 2 UMQ 2, run 1: exit status: 7\n" in done.stderr, done.stderr)
    check(done.stderr.endswith("no luck\n"), done.stderr)
    lines = (out / "sweep.csv").read_text().splitlines()
    check([line.split(",")[0] for line in lines[1:]] == ["1", "4"], f"{lines}")
    curve = (out / "curve.svg").read_text()
    # Nothing worked: what there was stays.
    done = tcam(arguments, *words, "--prq=2", "--", script)
    check(done.returncode == 7 and (out / "curve.svg").read_text() == curve, done.stderr)
    check((out / "sweep.csv").read_text().splitlines() == lines, "the rows are lost")
    done = tcam(arguments, *words, "--prq=8", "--", script)
    check(done.returncode == 0, done.stderr)
    left = [path.name for path in (out / "runs").iterdir()]
    check(left == ["prq8-umq8-1"], f"{left}")


def output_goes_nowhere(arguments, programs):
    """Output that nobody takes ends no run, and other tasks as it ends other tools."""
    place, broken = fresh("nowhere"), subprocess.PIPE
    ring = [MPIEXEC, "-n", "2", str(programs / "ring")]
    # The launcher would fail for want of output itself.
    mute = ["sh", "-c", f"{' '.join(ring)} >/dev/null 2>&1; exit 9"]
    tasks = [
        (["record", "--mpi=mpich", f"--out={place / 'traces'}", "--", *mute], 9, 9),
        (["run", "--mpi=mpich", "--", *mute], 9, 9),
        (["sweep", "--prq=4", f"--out={place / 'sweep'}", "--", *ring], 0, 125),
        (["sweep", f"--trace={place / 'traces'}", f"--out={place / 'replayed'}"], -13, 125),
        (["stats", str(place / "traces")], -13, 125),
        (["replay", str(place / "traces")], -13, 125),
        (["doctor"], -13, 125),
        (["--help"], 0, 125),
    ]
    for words, closed, full in tasks:
        with subprocess.Popen(
            [str(arguments.tcam), *words], stdout=broken, stderr=subprocess.STDOUT
        ) as child:
            child.stdout.close()
            code = child.wait(timeout=60)
        check(code == closed, f"{words}, closed: exit code {code}")
        with open("/dev/full", "w", encoding="utf-8") as device:
            options = {"capture_output": False, "stdout": device, "stderr": subprocess.PIPE}
            done = tcam(arguments, *words, **options)
            if words[0] != "replay":
                check(done.returncode == full, f"{words}, full: {done.returncode}")
            told = "No space left on device" in done.stderr
            check(told or full != 125 or words[0] == "replay", f"{words}: {done.stderr}")
            options |= {"stderr": device}
            done = tcam(arguments, *words, **options)
            check(done.returncode == full, f"{words}, both full: {done.returncode}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TARGET / "release" / "tcam")
    arguments = parser.parse_args()
    programs = runs.build("mpich")
    old_files_stay(arguments, programs)
    some_sizes_fail(arguments, programs)
    output_goes_nowhere(arguments, programs)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
