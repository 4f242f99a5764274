#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""No answer of tcam looks more certain than it is: missing or killed ranks, and ranks without space
for their data, come first in every format and set the exit status."""

import argparse
import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

from lib import mpi as runs
from lib.checks import all_post, check, exit_code
from command import tcam
from endings import as_at_a_terminal, ranks_of, wait_for
from lib.slowness import within

PLACE = runs.TARGET / "answer-tests"
LACK = "every count is a lower bound"
INCOMPLETE = 3


def fresh(name):
    """Returns an empty directory."""
    place = PLACE / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    return place


def launched(mpi, ranks, *words):
    return [str(runs.MPIS[mpi] / "mpiexec"), "-n", str(ranks), *map(str, words)]


def posts(report):
    return report["tagged"]["kinds"]["point_to_point"]["posts"]


def crashes(arguments, mpi, programs):
    """Ranks that crash leave their counters in the reports of a run and of a recording."""
    for how in ("kill", "abort", "segv", "exit"):
        for task, option in (("run", "--report"), ("run", "--trace")):
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
            # The last 10 ms may be missing, but the program polled for longer.
            check(of_1 and posts(of_1) >= 100, f"{what}: {posts(of_1) if of_1 else sorted(place.iterdir())}")
            check(of_1.get("written_at") == "running", f"{what}: {of_1.get('written_at')}")
            check("were cut short" in tcam(arguments, "show", place / "1.json").stdout, f"{what}: rank 1")
            check(not list(place.glob("*.draft")), f"{what}: {sorted(place.iterdir())}")
            done = tcam(arguments, *words, "--partial", "--", *program)
            # With --partial the program's own exit status counts; MPICH's launcher returns 0 after
            # _exit.
            check(done.returncode != INCOMPLETE, f"{what}, --partial: {done.returncode}")


def aborted(arguments, mpi, programs):
    """After MPI_Abort no report counts a receive that the program did not post, however its ranks
    end."""
    for task, option in (("run", "--report"), ("run", "--trace")):
        what, place = f"{mpi}, {task}, MPI_Abort", fresh("aborted") / "out"
        words = [task, f"{option}={place}", f"--mpi={mpi}", "--partial"]
        done = tcam(arguments, *words, "--", *launched(mpi, 8, programs / "crash", "mpi_abort"))
        check(done.returncode not in (0, 125), f"{what}: {done.returncode}")
        reports = [json.loads(path.read_text()) for path in place.glob("*.json")]
        check(sorted(of["rank"] for of in reports) == list(range(8)), f"{what}: {sorted(place.iterdir())}")
        # 100 receives per rank, and one more on ranks that wait for a message that never arrives.
        found = sum(posts(of) for of in reports)
        check(800 <= found <= 807, f"{what}: {found} receives")


def interrupted(arguments, programs):
    """After SIGTERM all ranks are reported as cut short, and the exit status is that of the
    signal."""
    place = fresh("interrupted") / "out"
    program = launched("mpich", 8, programs / "patterns", "halo", "1000000", "50")
    with subprocess.Popen(
        [str(arguments.tcam), "run", f"--report={place}", "--", *program],
        stderr=subprocess.PIPE, text=True, preexec_fn=as_at_a_terminal, start_new_session=True,
    ) as child:  # fmt: skip
        wait_for(lambda: len(ranks_of(child.pid)) >= 8, "interrupted: no ranks")
        wait_for(lambda: all_post(arguments.tcam, ranks_of(child.pid)), "interrupted: no posts")
        child.send_signal(signal.SIGTERM)
        _, errors = child.communicate(timeout=within(60))
    lines = [line for line in errors.splitlines() if "INCOMPLETE" in line]
    check(child.returncode == 143, f"interrupted: {child.returncode}")
    check(lines and "ranks 0-7 were cut short" in lines[0], f"interrupted: {errors[-1500:]}")
    check("tcam: 8 ranks, 8 cut short" in errors, f"interrupted: {errors[-1500:]}")


def parts(arguments, programs):
    """If some ranks are missing, each command reports it and returns the exit status INCOMPLETE. The
    commands `show` and `sweep` print it in their first line."""
    whole, some = fresh("whole") / "t", fresh("parts")
    done = tcam(arguments, "run", f"--trace={whole}", "--mpi=mpich", "--", *launched("mpich", 16, programs / "ring"))
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
        (["show"], (reports, both, traces)),
        (["show", "--format=plot", f"--out={out / 'plot'}"], (reports, both, traces)),
        (["show", "--format=html", f"--out={out / 'page.html'}"], (reports, both, traces)),
        (["show", "--format=csv", f"--out={out / 'csv'}"], (reports, both, traces)),
        (["replay"], (traces, both)),
        (["replay", "--with=host_engine=list"], (traces, both)),
        (["sweep", f"--out={out / 'sweep'}", "--prq=4,8", "--trace"], (traces, both)),
    ):
        out.mkdir(exist_ok=True)
        for source in sources:
            done = tcam(arguments, *words, source)
            what = f"parts: {words[0]} {source.name}"
            of = "report" if source == reports or source == both and words[0] == "show" else "trace"
            told = missing.format(of) in done.stdout + done.stderr
            check(done.returncode == INCOMPLETE and told, f"{what}: {done.returncode} {done.stdout[:300]} {done.stderr[-500:]}")
            if words[0] == "sweep" or words == ["show"]:
                first = done.stdout.partition("\n")[0]
                check(first == "INCOMPLETE, " + missing.format(of), f"{what}: {first}")
            words_whole = [*words[:-1], "--trace"] if words[-1] == "--trace" else words
            partial = tcam(arguments, words_whole[0], "--partial", *words_whole[1:], source)
            check(partial.returncode == 0, f"{what}, --partial: {partial.returncode} {partial.stderr[-300:]}")
            full = tcam(arguments, *words, whole)
            check(full.returncode == 0 and LACK not in full.stdout + full.stderr, f"{what}, whole: {full.returncode} {full.stderr[-300:]}")
    done = tcam(arguments, "show", "--json=-", reports)
    told = json.loads(done.stdout)
    check(told["missing_ranks"] == [[3, 4], [6, 15]] and told["ranks_of"] == 16, f"{told['missing_ranks']}")
    tcam(arguments, "show", "--format=html", f"--out={out / 'page.html'}", traces)
    page = (out / "page.html").read_text()
    check('<p class="lack">INCOMPLETE, 4 of 16 ranks' in page and "ring on 4 of 16 ranks" in page, "parts: page")
    tcam(arguments, "show", "--format=svg", f"--out={out / 'plot'}", traces)
    for picture in (out / "plot").glob("*.svg"):
        check("4 of 16 ranks" in picture.read_text(), f"parts: {picture.name}")
    tcam(arguments, "sweep", f"--out={out / 'sweep'}", "--prq=4,8", "--trace", traces)
    with open(out / "sweep" / "sweep.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    check(rows and all((row["ranks"], row["ranks_of"]) == ("4", "16") for row in rows), f"parts: {rows[:1]}")


def mixed(arguments, programs):
    """Missing traces beside complete reports, and files of two runs, are reported."""
    place = fresh("mixed")
    known = launched("mpich", 4, programs / "known")
    for run in ("a", "b"):
        done = tcam(arguments, "run", f"--trace={place / run}", "--mpi=mpich", "--", *known)
        check(done.returncode == 0, f"mixed: {done.stderr[-500:]}")
    for trace in (place / "b").glob("0.*.trace"):
        trace.unlink()
    lack = "Traces: INCOMPLETE, 3 of 4 ranks: no trace of rank 0"
    for words in (["show", "--by=tag"], ["show", "--format=plot", f"--out={place / 'p'}"], ["show", "--format=html", f"--out={place / 'r.html'}"]):
        done = tcam(arguments, *words, place / "b")
        told = lack in done.stdout + done.stderr
        check(done.returncode == INCOMPLETE and told, f"mixed: {words}: {done.returncode} {done.stderr[-300:]}")
    check(lack in (place / "r.html").read_text(), "mixed: the page")
    check("traces of 3 of 4 ranks" in (place / "p" / "curve.svg").read_text(), "mixed: the curve")
    # The tables are made from the reports, which are complete, and the need of a NIC from the traces.
    done = tcam(arguments, "show", place / "b")
    tables, _, needed = done.stdout.partition(lack)
    told = "INCOMPLETE" not in tables and "A NIC of" not in tables and "A NIC of" in needed
    check(done.returncode == INCOMPLETE and told, f"mixed, reports: {done.returncode} {done.stdout}")
    done = tcam(arguments, "show", place / "a" / "0.json", place / "a" / "1.json", place / "b" / "2.json", place / "b" / "3.json")
    told = "ranks of several runs" in done.stdout and "2 runs, whose counts tell nothing together" in done.stderr
    check(done.returncode == INCOMPLETE and told, f"mixed: {done.returncode} {done.stdout[:300]} {done.stderr}")
    done = tcam(arguments, "show", "--by=phase", "--json=-", place / "a")
    told = json.loads(done.stdout)
    check(told["complete"] and told["phases"][0]["prq_high_water"] > 0, f"mixed, phases: {told}")


def full_disk(arguments, programs):
    """A full disk is reported as the cause, and the command fails."""
    place = fresh("full")
    ring = " ".join(launched("mpich", 8, programs / "ring"))
    for task, option, size in (
        ("run", "--report", 60), ("run", "--trace", 700), ("run", "--trace", 1000),
        ("answer", "--out", 60),
    ):  # fmt: skip
        script = (
            f"mount -t tmpfs -o size={size}k none {place} && "
            f"{arguments.tcam} {task} --mpi=mpich {option}={place}/out -- {ring}"
        )
        done = subprocess.run(["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, timeout=within(120), check=False)
        what = f"full disk, {task}, {size} KiB"
        # mpiexec fails with 255 if it cannot write to the log of `answer`, which is on that disk.
        codes = (255, 125) if task == "answer" else (INCOMPLETE, 125)
        check(done.returncode in codes, f"{what}: {done.returncode} {done.stderr[-800:]}")
        named = "o space left on" in done.stderr.splitlines()[-1] or "no space left on the device" in done.stderr
        check(named and "_exit" not in done.stderr, f"{what}: {done.stderr[-1500:]}")
        # tcam knows the number of ranks from the command.
        told = task != "answer" or "no space left on the device for the reports of 8 ranks" in done.stderr
        check(told and "doctor" not in done.stderr, f"{what}: {done.stderr[-1500:]}")
        mixed = [line for line in done.stderr.splitlines() if line.find("tcam: cannot") > 0]
        check(not mixed, f"{what}: {mixed}")


KNOWN = {
    # Communicator, tag: posted receives, unexpected messages.
    ("world", 10): (40, 0), ("world", 11): (30, 0), ("one", 10): (25, 0), ("one", 12): (20, 0),
    ("two", 11): (12, 0), ("two", 13): (10, 0), ("world", 30): (1, 0), ("one", 31): (0, 211),
}  # fmt: skip
KNOWN_PEERS = {"rank 1": (48, 100), "rank 2": (45, 80), "rank 3": (44, 31), "any source": (1, 0)}


def who_fills(arguments, mpi, programs):
    """For a program with known queues, `tcam show` prints exactly the counts of KNOWN and
    KNOWN_PEERS by communicator, tag and peer, both after the recording and from its traces
    alone."""
    place, traces = fresh(f"known-{mpi}") / "t", fresh(f"known-{mpi}-traces")
    program = launched(mpi, 4, programs / "known")
    done = tcam(arguments, "run", f"--trace={place}", f"--mpi={mpi}", "--", *program)
    check(done.returncode == 0, f"{mpi}, known: {done.stderr[-500:]}")
    for trace in place.glob("*.trace"):
        shutil.copy(trace, traces)
    for source in (place, traces):
        def groups(by, source=source):
            done = tcam(arguments, "show", f"--by={by}", "--json=-", source)
            check(done.returncode == 0, f"{mpi}, --by {by}: {done.stderr[-500:]}")
            told = json.loads(done.stdout)
            check((told["prq_rank"], told["prq_high_water"]) == (0, 138), f"{mpi}: {told}")
            return {of["name"]: of for of in told["groups"]}, told

        what = f"{mpi}, {source.name}"
        by_tag, told = groups("tag")
        names = {}
        for (communicator, tag), (posted, unexpected) in KNOWN.items():
            # Only their tags identify communicators `one` and `two`.
            name = names.get(communicator) or next(
                of.split(" of ", 1)[1] for of in by_tag
                if (communicator == "world" and of == f"tag {tag} of MPI_COMM_WORLD")
                or (communicator == "one" and of.startswith("tag 12 of communicator"))
                or (communicator == "two" and of.startswith("tag 13 of communicator"))
            )  # fmt: skip
            names[communicator] = name
            of = by_tag[f"tag {tag} of {name}"]
            found = (of["prq"]["at_mark"], of["umq"]["at_mark"], of["prq"]["added"], of["umq"]["added"])
            check(found == (posted, unexpected, posted, unexpected), f"{what}, {communicator} {tag}: {found}")
        by_communicator, _ = groups("communicator")
        for name, posted in (("world", 71), ("one", 45), ("two", 22)):
            found = by_communicator[names[name]]["prq"]["at_mark"]
            check(found == posted, f"{what}, {name}: {found}")
        found = by_communicator[names["one"]]["umq"]["at_mark"]
        check(found == 211, f"{what}, one: {found} unexpected")
        by_peer, _ = groups("peer")
        for peer, (posted, unexpected) in KNOWN_PEERS.items():
            found = (by_peer[peer]["prq"]["at_mark"], by_peer[peer]["umq"]["at_mark"])
            # Each rank has sent its DONE message, and collectives of the end may have arrived.
            check(found[0] == posted and unexpected <= found[1] <= unexpected + 4, f"{what}, {peer}: {found}")
        reading = f"211 of {told['umq_high_water']} in the UMQ of rank 0 are tag 31 of {names['one']} from ranks 1-3"
        check(any(of.startswith(reading) for of in told["readings"]), f"{what}: {told['readings']}")
        done = tcam(arguments, "show", "--by=tag", "--to=0", "--from=0", source)
        check(done.returncode == 125 and "nothing is between" in done.stderr, f"{what}: {done}")
        done = tcam(arguments, "show", "--by=tag", "--from=1000", "--json=-", source)
        told = json.loads(done.stdout)
        check(all(of["prq"]["added"] == 0 for of in told["groups"]), f"{what}: {told['groups']}")
        done = tcam(arguments, "show", "--by=phase", source)
        check(done.returncode == 0 and " 138 " in done.stdout, f"{what}: {done.stdout}")
    done = tcam(arguments, "show", "--by=tag", place / "0.json")
    check(done.returncode == 125 and "takes traces" in done.stderr, f"{mpi}: {done.stderr}")
    out = place.parent / "pictures"
    tcam(arguments, "show", "--format=svg", f"--out={out}", place)
    check("communicator" in (out / "fill.svg").read_text(), f"{mpi}: fill.svg")
    tcam(arguments, "show", "--format=html", f"--out={out / 'page.html'}", place)
    page = (out / "page.html").read_text()
    for part in ("Elements by tag", "tag 31 of communicator", "known", "processors", "MPI", "started", "command"):
        check(part in page, f"{mpi}, page: {part}")


def spread(arguments, programs):
    """A sweep prints needs with their spread. Its sizes are around the need, and it recommends a size
    that is at least the need."""
    out = fresh("spread") / "out"
    fds = launched("mpich", 8, programs / "fds_gather", "--steps", "4")
    done = tcam(arguments, "sweep", "--repeat=3", f"--json={out.parent / 'x.json'}", f"--out={out}", "--", *fds)
    check(done.returncode == 0, f"spread: {done.stderr[-500:]}")
    told = json.loads((out.parent / "x.json").read_text())
    need = max(told["prq_needs"]["max"], told["umq_needs"]["max"])
    sizes = sorted({run["prq_entries"] for run in told["runs"]})
    check(need in sizes or abs(min(sizes, key=lambda size: abs(size - need)) - need) <= need // 8, f"spread: {need} {sizes}")
    check(any(need <= size <= 2 * need for size in sizes) and sizes[0] == 0, f"spread: {need} {sizes}")
    check(told["prq_needs"]["runs"] == 3 * len(sizes), f"spread: {told['prq_needs']}")
    check(told["recommended_entries"] >= need, f"spread: {told['recommended_entries']}")
    for part in ("fit immediately", "promoted first", "recommended:", "in %d runs: PRQ" % (3 * len(sizes))):
        check(part in done.stdout, f"spread: no `{part}` in {done.stdout[-1500:]}")
    check(all(run["command"] and run["mpi"].startswith("MPICH") for run in told["runs"]), "spread: origin")
    done = tcam(arguments, "run", "--", *fds)
    # The note is printed only if there are fewer processors than ranks.
    told = "ranks on" in done.stderr and "take turns" in done.stderr
    check(told == (len(os.sched_getaffinity(0)) < 8), f"spread: {done.stderr[-800:]}")


def repeats(arguments, programs):
    """Several recordings are repeats: the need has a spread, and no rank counts twice."""
    place = fresh("repeats")
    ring = launched("mpich", 4, programs / "ring")
    for run in "abc":
        done = tcam(arguments, "run", f"--trace={place / run}", "--mpi=mpich", "--", *ring)
        check(done.returncode == 0, f"repeats: {done.stderr[-500:]}")
    each = [json.loads(tcam(arguments, "show", "--json=-", place / run).stdout) for run in "abc"]
    marks = sorted(of["tagged"]["umq"]["high_water"] for of in each)
    for task in ("show", "sweep"):
        words = [task, f"--out={place / 'o'}", "--trace"] if task == "sweep" else [task]
        directories = [place / run for run in "abc"]
        for json_words in ([], ["--json=-"]):
            done = tcam(arguments, task, *json_words, *words[1:], *directories)
            check(done.returncode == 0, f"repeats, {task}: {done.stderr[-500:]}")
            if not json_words:
                told = "another run exceeds the highest of 3 with probability at most 1/4"
                check(told in done.stdout, f"repeats, {task}: {done.stdout[-1500:]}")
                continue
            told = json.loads(done.stdout)
            needs = told["umq_needs"]
            check([needs["min"], needs["max"], needs["runs"]] == [marks[0], marks[2], 3], f"{task}: {needs}")
            check(needs["median"] == marks[1], f"repeats, {task}: {needs}, {marks}")
            if task == "sweep":
                ranks = {(run["repeat"], run["ranks"]) for run in told["runs"]}
                check(ranks == {(1, 4), (2, 4), (3, 4)}, f"repeats: {ranks}")
                check(told["smallest_tables"][0]["of"] == "worst rank, 3 runs", f"repeats: {told['smallest_tables'][0]}")
    # On two nodes of two ranks, every second message of the ring crosses nodes.
    both = {}
    for ppn in ("", "--ppn=1", "--ppn=2", "--ppn=4"):
        out = place / f"replay{ppn}"
        done = tcam(arguments, "replay", f"--report={out}", *([ppn] if ppn else []), place / "a")
        check(done.returncode == 0, f"repeats {ppn}: {done.stderr[-500:]}")
        found = [json.loads((out / f"{rank}.json").read_text()) for rank in range(4)] if ppn != "--ppn=4" else []
        both[ppn] = [of["tagged"]["kinds"]["point_to_point"]["arrivals"] for of in found]
    done = tcam(arguments, "show", "--format=csv", f"--out={place / 'csv'}", place / "a")
    check(done.returncode == 0, f"repeats: {done.stderr[-500:]}")
    with (place / "csv" / "operations.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["context"] == "tagged"]
    for row in rows:
        if row["operation"] == "arrive" and row["kind"] == "point-to-point":
            near = {(int(row["rank"]) + step) % 4 for step in (1, 3)}
            check(int(row["source_rank"]) in near, f"export: {row}")
    for words in (["sweep", f"--out={place / 'o'}", "--trace"], ["show"]):
        # Neither one recording given twice nor a different program is a repeat.
        done = tcam(arguments, *words, place / "a", place / "a")
        check("probability" not in done.stdout, f"repeats, {words}: {done.stdout[-500:]}")
        other = launched("mpich", 4, programs / "known")
        tcam(arguments, "run", f"--trace={place / 'other'}", "--mpi=mpich", "--", *other)
        done = tcam(arguments, *words, place / "a", place / "other")
        told = done.returncode == 0 and f"{place / 'other' if words[0] == 'show' else 'other'}:\n" in done.stdout
        check(told and "probability" not in done.stdout, f"repeats, {words}: {done.stdout[-500:]} {done.stderr[-500:]}")
    done = tcam(arguments, "replay", "--ppn=4", "--partial", *(place / "a").glob("0.*.trace"))
    check(done.returncode == 125 and "1 of 4" in done.stderr, f"ppn: {done.stderr[-500:]}")
    # Any-source receives that match on the same node do not stay in the tables forever.
    program = launched("mpich", 4, programs / "any_source")
    tcam(arguments, "run", f"--trace={place / 'any'}", "--mpi=mpich", "--", *program)
    marks = []
    for ppn in (1, 2, 4):
        done = tcam(arguments, "replay", "--json=-", f"--ppn={ppn}", place / "any")
        told = json.loads(done.stdout)["tagged"]
        marks.append(told["prq"]["high_water"])
        check(ppn < 4 or told["arrivals"] == 0, f"ppn: {told['arrivals']} messages of one node")
    check(marks[0] >= marks[1] >= marks[2], f"ppn: PRQ {marks}")
    check(both[""] == both["--ppn=1"], f"ppn: {both}")
    check(all(0 < two < one for one, two in zip(both[""], both["--ppn=2"])), f"ppn: {both}")


def overflow(arguments):
    """A stream that overflows nearly always is not reported as fitting, and its cost counts the
    moved elements."""
    place = fresh("overflow")
    program = launched("mpich", 2, runs.build("mpich") / "queues", "--posted=0", "--others=0", "--any=0", "--unexpected=20000")
    done = tcam(arguments, "run", f"--trace={place / 't'}", "--prq=64", "--umq=64", "--", *program)
    told = "DOES NOT FIT" in done.stderr and "promoted first" in done.stderr
    check(done.returncode == 0 and told, f"overflow: {done.stderr[-1500:]}")
    cost = {}
    for size in (64, 65536):
        words = ["sweep", f"--prq={size}", "--set=promote_ns=100", f"--out={place / 'o'}", "--json=-", "--trace"]
        done = tcam(arguments, *words, place / "t")
        cost[size] = json.loads(done.stdout)["runs"][0]["added_ns"]
    check(cost[64] > 50 and cost[65536] == 0, f"overflow: {cost}")
    done = tcam(arguments, "show", place / "t")
    depths = next((line.split() for line in done.stdout.splitlines() if line.startswith(" UMQ") and "found" in line), None)
    # Rank 0 posts a receive for each of the 20,000 messages after all have arrived.
    found = int(depths[2].replace(",", "")) if depths else 0
    check(found >= 20000, f"overflow: {depths or done.stdout}")


def changed(arguments, programs):
    """Checks which differences between two experiments `tcam show --against` prints, and when it fails."""
    place = fresh("changed")
    for name, posted in (("a", 50), ("b", 100)):
        program = launched("mpich", 2, programs / "queues", f"--posted={posted}")
        done = tcam(arguments, "run", f"--report={place / name}", "--prq=64", "--", *program)
        check(done.returncode == 0, f"--against: {done.stderr[-500:]}")
    a, b = place / "a", place / "b"
    done = tcam(arguments, "show", f"--against={a}", b)
    check(done.returncode == 0 and "PRQ high-water mark" in done.stdout, f"--against: {done}")
    done = tcam(arguments, "show", "--fail-above=10", f"--against={a}", b)
    check(done.returncode == 1 and "PRQ high-water mark" in done.stderr, f"--against: {done}")
    done = tcam(arguments, "show", "--fail-above=10", "--json=-", f"--against={a}", a)
    told = json.loads(done.stdout)
    check(done.returncode == 0 and told["failed"] == [], f"--against of the same: {done}")
    (a / "1.json").unlink()
    done = tcam(arguments, "show", f"--against={a}", b)
    check(done.returncode == INCOMPLETE and LACK in done.stderr, f"--against of a part: {done}")


def messages(arguments, programs):
    """Checks the messages for mistakes whose error messages were once wrong."""
    place = fresh("messages")
    (place / "0.json").write_text("{")
    (place / "app.trace").mkdir()
    empty = fresh("messages-empty")
    shutil.copytree(PLACE / "whole" / "t", empty / "run.trace")
    bad = fresh("messages-bad")
    (bad / "libtcam-fi.so").write_text("no library")
    other = fresh("messages-other")
    (other / "0.json").write_text('{"mine": 1}')
    ring = launched("mpich", 2, programs / "ring")
    for words, code, part in (
        (["show", place / "0.json"], 125, "cut off in the middle"),
        (["show", empty], 125, "but in"),
        (["run", f"--provider={bad}", "--", *ring], 125, "no provider of libfabric"),
        (["sweep", "--prq=0,64,..,8192", "--", *ring], 2, "three dots are expected"),
        (["sweep"], 2, "--trace DIR"),
        (["run", f"--report={other}", "--", *ring], 125, "0.json: is there and no report of tcam"),
    ):
        done = tcam(arguments, *words)
        told = done.stderr + done.stdout
        check(done.returncode == code and part in told, f"{words}: {done.returncode} {told[-400:]}")
    check((other / "0.json").read_text() == '{"mine": 1}', "0.json of another program is gone")
    done = subprocess.run([str(arguments.tcam), "show", "."], cwd=empty, capture_output=True, text=True, timeout=within(60), check=False)
    check(done.returncode == 125 and "run.trace" in done.stderr, f"stats .: {done.stderr}")


def several(arguments, programs):
    """Ranks of several recordings are not added, neither those of repeats nor those of runs with
    different numbers of ranks."""
    place = fresh("several")
    for run, ranks in (("a", 4), ("b", 4), ("c", 4), ("two", 2)):
        ring = launched("mpich", ranks, programs / "ring")
        done = tcam(arguments, "run", f"--trace={place / run}", "--mpi=mpich", "--", *ring)
        check(done.returncode == 0, f"several: {done.stderr[-500:]}")
    repeats, sizes = [place / run for run in "abc"], [place / "two", place / "a"]
    for directories in (repeats, sizes):
        what, ranks = f"several, {len(directories)}", [int(of.name == "two") * -2 + 4 for of in directories]
        out = fresh("several-out")
        done = {
            "replay": tcam(arguments, "replay", "--with=devices", f"--csv={out / 'x.csv'}", *directories),
            "show --by": tcam(arguments, "show", "--by=tag", *directories),
            "show": tcam(arguments, "show", *directories),
            "answer": tcam(arguments, "answer", *directories),
            "sweep": tcam(arguments, "sweep", f"--out={out / 'sweep'}", "--trace", *directories),
            "plot": tcam(arguments, "show", "--format=svg", f"--out={out}", *directories),
            "report": tcam(arguments, "show", "--format=html", f"--out={out / 'x.html'}", *directories),
        }
        page = (out / "x.html").read_text()
        for task, of in done.items():
            told = of.stdout + of.stderr + page
            check(of.returncode == 0 and "INCOMPLETE" not in told, f"{what}, {task}: {of}")
            check("12 ranks" not in told and "6 ranks" not in told, f"{what}, {task}: {of.stdout[:500]}")
        title = "ring on 4 ranks, replayed, the worst of 3 runs" if directories is repeats else "ring on 2 ranks"
        check(title in done["replay"].stdout, f"{what}: {done['replay'].stdout[:500]}")
        with (out / "x.csv").open(encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        check({row["recording"] for row in rows} == set(map(str, directories)), f"{what}: {rows[0]}")
        for at, (directory, of) in enumerate(zip(directories, ranks, strict=True)):
            by = done["show --by"].stdout
            check(f"{directory}:\nring on {of} ranks" in by, f"{what}: {by[:500]}")
            if directories is sizes:
                check(f"{directory}:\nring on {of} ranks" in done["show"].stdout, f"{what}: {done['show'].stdout[:500]}")
                check(f"ring on {of} ranks" in (out / "sweep" / f"{at + 1}-{directory.name}" / "curve.svg").read_text(), what)
                check(f"ring: {of} ranks of MPICH" in done["answer"].stdout, f"{what}: {done['answer'].stdout[:500]}")
            check(f"{directory}: ring on {of} ranks" in page, f"{what}: page")
            curve = out / f"{at + 1}-{directory.name}" / "curve.svg"
            check(f"ring on {of} ranks" in curve.read_text(), f"{what}: {curve}")
        check(("another run exceeds the highest of 3" in page) == (directories is repeats), f"{what}: page")
        told = json.loads(tcam(arguments, "show", "--by=peer", "--json=-", *directories).stdout)
        check([of["complete"] for of in told["recordings"]] == [True] * len(directories), f"{what}: {told}")
        told = json.loads(tcam(arguments, "replay", "--with=devices", "--json=-", *directories).stdout)
        check([of["ranks_of"] for of in told["recordings"]] == ranks, f"{what}: {told}")
        if directories is sizes:
            for words in (["show"], ["answer"], ["sweep", f"--out={out / 'sweep'}", "--trace"]):
                told = json.loads(tcam(arguments, words[0], "--json=-", *words[1:], *directories).stdout)
                check([of["ranks_of"] for of in told["recordings"]] == ranks, f"{what}, {words}: {told}")


def engines(arguments, programs):
    """A sweep with a host engine prints the entries that this engine probes, as a replay does."""
    place = fresh("engines")
    program = launched("mpich", 2, programs / "queues")
    done = tcam(arguments, "run", f"--trace={place / 'traces'}", "--mpi=mpich", "--", *program)
    check(done.returncode == 0, f"engines: {done.stderr[-500:]}")
    told = {}
    for engine in ("hash", "list"):
        words = ["--prq=0", f"--set=host_engine={engine}", f"--out={place / engine}", "--json=-"]
        done = tcam(arguments, "sweep", *words, "--trace", place / "traces")
        [run] = json.loads(done.stdout)["runs"]
        words = [f"--with=host_engine={engine}", "--prq=0", "--umq=0", "--json=-"]
        compared = json.loads(tcam(arguments, "replay", *words, place / "traces").stdout)
        told[engine] = run["host_traversed_a_message"]
        check(told[engine] == compared["lines"][1]["host_traversed_a_message"], f"engines: {run}")
        check(run["host_entries_a_message"] is None, f"engines: {run}")
    check(told["hash"] < told["list"], f"engines: {told}")
    curve = (place / "hash" / "curve.svg").read_text()
    check("Entries traversed by the host engine" in curve, "engines: curve.svg")


def phases(arguments, programs):
    """Phases end with each collective operation of all ranks, for any number of ranks."""
    for ranks, numbers in ((4, 1), (6, 1), (12, 1), (8, 4000), (6, 4000)):
        what = f"phases of {ranks} ranks, {numbers} numbers"
        place = PLACE / f"phases-{ranks}-{numbers}"
        program = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", str(ranks), str(programs / "phases"), str(numbers)]
        done = tcam(arguments, "run", f"--trace={place}", "--", *program)
        check(done.returncode == 0, f"{what}: {done.stderr[-500:]}")
        told = json.loads(tcam(arguments, "show", "--by=phase", "--json=-", place).stdout)
        # MPI_Init and MPI_Finalize add some phases.
        found = len(told["phases"])
        check(20 < found < 30 and not told["warnings"], f"{what}: {found}, {told['warnings']}")
        entered = [phase["added"] for phase in told["phases"] if phase["added"] >= ranks]
        check(len(entered) >= 20, f"{what}: {entered}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    arguments = parser.parse_args()
    started = time.monotonic()
    for mpi in ("mpich", "openmpi5"):
        crashes(arguments, mpi, runs.build(mpi))
        aborted(arguments, mpi, runs.build(mpi))
        who_fills(arguments, mpi, runs.build(mpi))
    programs = runs.build("mpich")
    interrupted(arguments, programs)
    parts(arguments, programs)
    mixed(arguments, programs)
    full_disk(arguments, programs)
    spread(arguments, programs)
    repeats(arguments, programs)
    overflow(arguments)
    changed(arguments, programs)
    messages(arguments, programs)
    several(arguments, programs)
    engines(arguments, programs)
    phases(arguments, programs)
    print(f"{time.monotonic() - started:.0f} s")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
