#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""That no answer of tcam looks more certain than it is: ranks that are missing, were killed or
found no room are told first, in every format and in the exit status."""

import argparse
import csv
import json
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import mpi as runs
from checks import all_post, check, exit_code
from command import as_at_a_terminal, ranks_of, tcam, wait_for

PLACE = runs.TARGET / "answer-tests"
LACK = "every count is a lower bound"
INCOMPLETE = 3


def fresh(name):
    """An empty directory."""
    place = PLACE / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def launched(mpi, ranks, *words):
    return [str(runs.MPIS[mpi] / "mpiexec"), "-n", str(ranks), *map(str, words)]


def posts(report):
    return report["tagged"]["kinds"]["point_to_point"]["posts"]


def crashes(arguments, mpi, programs):
    """Ranks that crash leave their counters, in reports of a run and of a recording."""
    for how in ("kill", "abort", "segv", "exit"):
        for task, option in (("run", "--report"), ("record", "--out")):
            what, place = f"{mpi}, {task}, {how}", fresh("crash") / "out"
            program = launched(mpi, 8, programs / "crash", how, *(["all"] * (how == "exit")))
            json_file = place.parent / "sum.json"
            words = [task, f"{option}={place}", f"--mpi={mpi}", f"--json={json_file}"]
            done = tcam(arguments, *words, "--", *program)
            told = done.returncode == INCOMPLETE and LACK in done.stderr
            check(told, f"{what}: {done.returncode} {done.stderr[-1500:]}")
            told = json.loads(json_file.read_text())
            check(not told["complete"] and told["ranks_of"] == 8, f"{what}: {told['ranks']}")
            cut = told["cut_short_ranks"] if mpi == "mpich" else [[1, 1]]
            check(any(low <= 1 <= high for low, high in cut), f"{what}: {told['cut_short_ranks']}")
            of_1 = json.loads((place / "1.json").read_text()) if (place / "1.json").exists() else {}
            # What came within the last 10 ms may be missing, but it polled for longer.
            check(of_1 and posts(of_1) >= 100, f"{what}: {posts(of_1) if of_1 else sorted(place.iterdir())}")
            check(of_1.get("written_at") == "running", f"{what}: {of_1.get('written_at')}")
            check("CUT SHORT" in (place / "1.txt").read_text(), f"{what}: 1.txt")
            check(not list(place.glob("*.draft")), f"{what}: {sorted(place.iterdir())}")
            done = tcam(arguments, *words, "--partial", "--", *program)
            # Then the program's own end counts; that of MPICH's launcher is 0 after _exit.
            check(done.returncode != INCOMPLETE, f"{what}, --partial: {done.returncode}")


def interrupted(arguments, programs):
    """Ctrl-C: all ranks are there, cut short; the status is that of the signal."""
    place = fresh("interrupted") / "out"
    program = launched("mpich", 8, programs / "patterns", "halo", "1000000", "50")
    with subprocess.Popen(
        [str(arguments.tcam), "run", f"--report={place}", "--", *program],
        stderr=subprocess.PIPE, text=True, preexec_fn=as_at_a_terminal, start_new_session=True,
    ) as child:  # fmt: skip
        wait_for(lambda: len(ranks_of(child.pid)) >= 8, "interrupted: no ranks")
        wait_for(lambda: all_post(arguments.tcam, ranks_of(child.pid)), "interrupted: no posts")
        child.send_signal(signal.SIGTERM)
        _, errors = child.communicate(timeout=60)
    lines = [line for line in errors.splitlines() if "INCOMPLETE" in line]
    check(child.returncode == 143, f"interrupted: {child.returncode}")
    check(lines and "ranks 0-7 were cut short" in lines[0], f"interrupted: {errors[-1500:]}")
    check("tcam: 8 ranks, 8 cut short" in errors, f"interrupted: {errors[-1500:]}")


def parts(arguments, programs):
    """Of some of the ranks, each command says so first, and in its status."""
    whole, some = fresh("whole") / "t", fresh("parts")
    done = tcam(arguments, "record", f"--out={whole}", "--mpi=mpich", "--", *launched("mpich", 16, programs / "ring"))
    check(done.returncode == 0, f"parts: {done.stderr[-500:]}")
    reports, traces, both = some / "reports", some / "traces", some / "both"
    for place in (reports, traces, both):
        place.mkdir()
    for rank in (0, 1, 2, 5):
        shutil.copy(whole / f"{rank}.json", reports)
        shutil.copy(whole / f"{rank}.json", both)
        for trace in whole.glob(f"{rank}.*.trace"):
            shutil.copy(trace, traces)
            shutil.copy(trace, both)
    missing = "4 of 16 ranks: no {} of ranks 3-4 and 6-15; " + LACK
    out = some / "out"
    for words, sources in (
        (["stats"], (reports, both, traces)),
        (["plot", f"--out={out / 'plot'}"], (reports, both, traces)),
        (["report", f"--out={out / 'page.html'}"], (reports, both, traces)),
        (["export", f"--out={out / 'csv'}"], (reports, both, traces)),
        (["replay"], (traces, both)),
        (["compare", "--with=host_engine=list"], (traces, both)),
        (["sweep", f"--out={out / 'sweep'}", "--prq=4,8", "--trace"], (traces, both)),
    ):
        out.mkdir(exist_ok=True)
        for source in sources:
            done = tcam(arguments, *words, source)
            what = f"parts: {words[0]} {source.name}"
            of = "report" if source == reports or source == both and words[0] in ("stats", "plot", "report", "export") else "trace"
            told = missing.format(of) in done.stdout + done.stderr
            check(done.returncode == INCOMPLETE and told, f"{what}: {done.returncode} {done.stdout[:300]} {done.stderr[-500:]}")
            if words[0] in ("stats", "sweep"):
                first = next(line for line in done.stdout.splitlines() if line and not line.startswith(("Table", "──")))
                check("INCOMPLETE" in done.stdout, f"{what}: {first}")
            words_whole = [*words[:-1], "--trace"] if words[-1] == "--trace" else words
            partial = tcam(arguments, words_whole[0], "--partial", *words_whole[1:], source)
            check(partial.returncode == 0, f"{what}, --partial: {partial.returncode} {partial.stderr[-300:]}")
            all_of = whole if source != reports else whole
            full = tcam(arguments, *words, all_of)
            check(full.returncode == 0 and LACK not in full.stdout + full.stderr, f"{what}, whole: {full.returncode} {full.stderr[-300:]}")
    done = tcam(arguments, "stats", "--json=-", reports)
    told = json.loads(done.stdout)
    check(told["missing_ranks"] == [[3, 4], [6, 15]] and told["ranks_of"] == 16, f"{told['missing_ranks']}")
    tcam(arguments, "report", f"--out={out / 'page.html'}", traces)
    page = (out / "page.html").read_text()
    check('<p class="lack">INCOMPLETE, 4 of 16 ranks' in page and "ring on 4 of 16 ranks" in page, "parts: page")
    tcam(arguments, "plot", "--format=svg", f"--out={out / 'plot'}", traces)
    for picture in (out / "plot").glob("*.svg"):
        check("4 of 16 ranks" in picture.read_text(), f"parts: {picture.name}")
    tcam(arguments, "sweep", f"--out={out / 'sweep'}", "--prq=4,8", "--trace", traces)
    with open(out / "sweep" / "sweep.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    check(rows and all((row["ranks"], row["ranks_of"]) == ("4", "16") for row in rows), f"parts: {rows[:1]}")


def full_disk(arguments, programs):
    """A full disk is the cause that is named, and no success."""
    place = fresh("full")
    ring = " ".join(launched("mpich", 8, programs / "ring"))
    for task, option, size in (
        ("run", "--report", 60), ("record", "--out", 700), ("record", "--out", 2600),
    ):  # fmt: skip
        script = (
            f"mount -t tmpfs -o size={size}k none {place} && "
            f"{arguments.tcam} {task} --mpi=mpich {option}={place}/out -- {ring}"
        )
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=120, check=False)
        what = f"full disk, {task}, {size} KiB"
        check(done.returncode in (INCOMPLETE, 125), f"{what}: {done.returncode} {done.stderr[-800:]}")
        named = "o space left on" in done.stderr.splitlines()[-1] or "no space left on the device" in done.stderr
        check(named and "_exit" not in done.stderr, f"{what}: {done.stderr[-1500:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TARGET / "release" / "tcam")
    arguments = parser.parse_args()
    started = time.monotonic()
    for mpi in ("mpich", "openmpi5"):
        crashes(arguments, mpi, runs.build(mpi))
    programs = runs.build("mpich")
    interrupted(arguments, programs)
    parts(arguments, programs)
    full_disk(arguments, programs)
    print(f"{time.monotonic() - started:.0f} s")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
