#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Tests `tcam answer`: its page, its agreement with the other commands, and its reports on programs
that fail."""

import argparse
import csv
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

import brute
import figures
import need
from lib import mpi as runs
from lib.checks import check, exit_code
from command import files, tcam
from lib.slowness import within

PLACE = runs.TARGET / "answer-page-tests"


def is_page(what, text):
    lines = text.splitlines()
    check(len(lines) <= 40, f"{what}: {len(lines)} lines")
    for line in lines:
        check(len(line) <= 80, f"{what}: {len(line)} columns: {line}")
    for part in ("Entries needed", "receives (PRQ)", "Device", "To quote: "):
        check(part in text, f"{what}: no {part}: {text}")


def answered(arguments, *words):
    """Checks that `tcam answer` succeeds. Returns its page as one line of text, and as JSON."""
    page = tcam(arguments, "answer", *words)
    done = tcam(arguments, "answer", "--json=-", *words)
    check(page.returncode == done.returncode == 0, f"{words}: {page.stderr[-500:]} {done.stderr[-500:]}")
    is_page(str(words), page.stdout)
    return " ".join(page.stdout.split()), json.loads(done.stdout)


def agrees(arguments, what, words, told, traces):
    """Checks that other commands report the values of `told`, the answer for these traces."""
    divided = next(of for of in told["devices"] if of["unit"] == "NIC")
    need = told["nic"]["peak_total"]["most"]
    # A replay has one of the orders of the ranks that the range of the need allows.
    for pool, of in (("pool=node", told["nic"]["peak_total"]), (f"device={divided['device']}", divided["needs"][0])):
        for entries, fits in ((of["most"], True), (of["least"] - 1, False)):
            done = tcam(arguments, "replay", f"--with={pool},pool_entries={entries}", "--json=-", *words, traces)
            line = json.loads(done.stdout)["lines"][1]
            spills = sum(line[f"{queue}_spills"] for queue in ("prq", "umq", "internal"))
            check((spills == 0) == fits, f"{what}, {pool}: {spills} spill at {entries} of {of}")
    done = tcam(arguments, "sweep", "--json=-", f"--out={PLACE / 'sweep'}", "--set=pool=node", *words, "--trace", traces)
    check(json.loads(done.stdout)["needed_entries"] == need, f"{what}: sweep prints another need than {need}")
    done = tcam(arguments, "sweep", f"--out={PLACE / 'sweep'}", *words, "--trace", traces)
    check(not told["crowded"] or "take turns" in done.stdout, f"{what}: {done.stdout[-600:]}")
    done = tcam(arguments, "replay", "--with=devices", *words, traces)
    share = re.search(r"NIC of .* needs (?:[0-9,]+ to )?([0-9,]+) entr", " ".join(done.stdout.split()))
    check(share and int(share[1].replace(",", "")) == need, f"{what}: {done.stdout[-600:]}")
    if not words:
        stats = json.loads(tcam(arguments, "show", "--json=-", traces).stdout)
        check(stats["need"]["nics"][0]["each"]["internal"]["most"] == told["nic"]["internal"]["most"], f"{what}: show")
        page = tcam(arguments, "show", "--format=html", "--out=-", traces).stdout
        check(re.search(rf"needs ([0-9,]+ to )?{need:,} entries: ", page), f"{what}: the page has no need of {need}")
        changes = json.loads(tcam(arguments, "show", "--json=-", "--against", traces, traces).stdout)["changes"]
        both = [(of["before"], of["after"]) for of in changes if of["what"] == "entries of the NIC that needs most"]
        check(both == [(need, need)], f"{what}: {both} against {need}")
    for device in told["devices"]:
        done = tcam(arguments, "replay", f"--with=device={device['device']}", "--json=-", *words, traces)
        judged = json.loads(done.stdout)["judged"][1]
        check(judged["suffices"] == device["suffices"], f"{what}: {judged} and {device}")


def recordings(arguments, programs):
    """Checks the answers for one recording, for several recordings, and for ranks placed on
    nodes."""
    names = [PLACE / f"fds-{run}" for run in (1, 2)]
    for name in names:
        launched = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "8", str(programs / "fds_gather"), "--steps", "4"]
        done = tcam(arguments, "run", f"--trace={name}", "--", *launched)
        check(done.returncode == 0, f"record: {done.stderr[-500:]}")
    page, told = answered(arguments, names[0])
    check("exit status 0" in page and "MPICH" in page and "One run shows no spread" in page, page)
    # MPICH itself posts eight receives per rank.
    check(told["rank"]["internal"]["most"] == 8, f"internal receives of a rank: {told['rank']}")
    check(told["nic"]["internal"]["most"] == 64, f"internal receives of a NIC: {told['nic']}")
    agrees(arguments, "one host", [], told, names[0])
    for placement in ("block", "cyclic"):
        words = ["--ppn=4", f"--placement={placement}"]
        page, told = answered(arguments, *words, names[0])
        check(told["nodes"] == 2 and "2 nodes are assumed" in page, page)
        agrees(arguments, placement, words, told, names[0])
    page, told = answered(arguments, *names)
    check(told["runs"] == 2 and "2 runs" in page and "no spread" not in page, page)
    connectx = next(of for of in told["devices"] if of["device"] == "connectx")
    check(not connectx["suffices"] and "no UMQ" in connectx["why"] and connectx["by_design"] > 0, str(connectx))
    sums = [told["rank"][queue]["most"] for queue in ("prq", "umq")]
    check(max(sums) <= told["rank"]["peak_total"]["most"] <= sum(sums) + 8, str(told["rank"]))
    alone = [answered(arguments, name)[1]["nic"]["peak_total"] for name in names]
    least, most = min(of["least"] for of in alone), max(of["most"] for of in alone)
    check(told["nic"]["peak_total"] == {"least": least, "most": most}, f"{told['nic']} of {alone}")
    # The page names the missing ranks of the run that lacks them.
    lacking = PLACE / "lacking"
    shutil.copytree(names[1], lacking)
    for path in lacking.glob("5.*.trace"):
        path.unlink()
    for order in ([names[0], lacking], [lacking, names[0]]):
        done = tcam(arguments, "answer", *order)
        check(done.returncode == 3 and "no trace of rank 5" in " ".join(done.stdout.split()), f"{done.returncode} {done.stdout[:900]}")
    shutil.rmtree(lacking)


def figures_by_hand(arguments):
    """Compares all figures of a new recording with a brute force, also those of a device that overflows."""
    brute.PLACE = need.PLACE = PLACE
    traces = figures.Traces(arguments, PLACE / "fds-1", "mpich", "exact")
    figures.figures(arguments, "by hand", traces)
    for of in ("cassini-software", "alpu"):
        costs = traces.replay(figures.DEVICES[of][0]).costs()
        check(max(costs.values()) > 0, f"by hand: no costs of {of}")


def placed_by_a_file(arguments):
    """A placement file that lists nodes in blocks gives the same answer as the placement `block`.
    Mistakes in such a file are explained."""
    traces, path = PLACE / "fds-1", PLACE / "nodes"
    path.write_text("a:4\nb:4\n")
    _, block = answered(arguments, "--ppn=4", traces)
    _, listed = answered(arguments, f"--placement={path}", traces)
    check(block["nic"] == listed["nic"], f"{block['nic']} and {listed['nic']}")
    for words, part in (
        ([f"--placement={path}", "--ppn=4"], "leave --ppn out"),
        (["--placement=cyclic"], "need --ppn"),
    ):
        done = tcam(arguments, "answer", *words, traces)
        check(done.returncode == 125 and part in done.stderr, f"{words}: {done.stderr}")
    path.write_text("a:4\n")
    done = tcam(arguments, "answer", f"--placement={path}", traces)
    check(done.returncode == 125 and "4 of 8 ranks" in done.stderr, done.stderr)


def programs_that_run(arguments, programs):
    """A program is recorded three times, and its failure comes first in the output."""
    launcher = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "4"]
    out = PLACE / "run"
    start = time.monotonic()
    done = tcam(arguments, "answer", f"--out={out}", "--", *launcher, str(programs / "fds_gather"), "--steps", "4")
    check(done.returncode == 0, done.stderr[-500:])
    is_page("run", done.stdout)
    check("3 runs, exit status 0" in " ".join(done.stdout.split()), done.stdout)
    check(time.monotonic() - start < within(30), f"{time.monotonic() - start:.0f} s")
    foreign = PLACE / "foreign" / "3" / "0.json"
    foreign.parent.mkdir(parents=True, exist_ok=True)
    foreign.write_text("a file of another program")
    for words, code, part in (
        (["--set=device=alpu", "--", "true"], 125, "the page does not depend on it"),
        ([f"--out={foreign.parents[1]}", "--", "touch", PLACE / "ran"], 125, "no report of tcam"),
        (["--set=device=alpu", out / "1"], 2, "cannot be used with"),
    ):
        done = tcam(arguments, "answer", *words)
        check(done.returncode == code and part in done.stderr, f"{words}: {done.stderr}")
    check(not (PLACE / "ran").exists(), "the program ran before the directory was checked")
    log = (out / "1" / "output.log").read_text()
    check(log != "" and (out / "3" / "run.tcam").exists(), f"the output: {log}")
    # A run without traces changes nothing of an earlier recording.
    before = files(out / "1")
    done = tcam(arguments, "answer", "--repeat=1", f"--out={out}", "--", *launcher, "./nosuchprog")
    after = files(out / "1")
    check(done.returncode not in (0, 3) and b"nosuchprog" in after.pop("output.log.new"), done.stderr[-500:])
    check(after == before, f"a run without traces: {sorted(after)}")
    for part in ("another --out DIR keeps them", f"{out / '1'} and later ones stay"):
        check(part in done.stderr, f"a run without traces: no {part} in {done.stderr}")
    one = shutil.which("taskset")
    if one:
        command = [one, "-c", "0", str(arguments.tcam), "answer", "--repeat=1", f"--out={PLACE / 'pinned'}", "--"]
        command += [*launcher, str(programs / "ring")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=within(60), check=False)
        check("on 1 processor;" in " ".join(done.stdout.split()), f"pinned: {done.stdout} {done.stderr[-300:]}")
    script = PLACE / "fails"
    script.write_text(f"#!/bin/sh\n{programs / 'ring'} >/dev/null\nexit 7\n")
    script.chmod(0o755)
    for task, option in (("answer", "--out"), ("run", "--trace")):
        out = PLACE / f"failed-{task}"
        done = tcam(arguments, task, f"{option}={out}", "--", *launcher, str(script))
        check(done.returncode == 7, f"{task}: {done.returncode} {done.stderr[-300:]}")
        if task == "answer":
            check(done.stdout.startswith("FAILED, the program ended with exit status 7"), done.stdout[:200])
            out /= "1"
        # Every later command reports the failure.
        for words in (["answer", out], ["replay", "--with=devices", out], ["sweep", f"--out={PLACE / 'sweep'}", "--trace", out]):
            done = tcam(arguments, *words)
            said = done.stdout + done.stderr
            check("FAILED" in said and "exit status 7" in said, f"{words}: {said[-600:]}")
    # A crash cuts counts short, so all commands exit with 3, whatever the launcher returns.
    crash = [*launcher, "timeout", "-s", "KILL", "0.7", str(programs / "patterns"), "halo", "1000000", "50"]
    out = PLACE / "crashed"
    for words in (["run", "--", *crash], ["run", f"--trace={out}-record", "--", *crash],
                  ["answer", f"--out={out}", "--", *crash], ["answer", out]):  # fmt: skip
        done = tcam(arguments, *words)
        check(done.returncode == 3, f"crash, {words[0]}: {done.returncode} {done.stderr[-300:]}")
        check("cut short" in done.stdout + done.stderr, f"crash, {words[0]}: {done.stdout[:300]}")
    done = tcam(arguments, "answer", f"--out={PLACE / 'none'}", "--", "sh", "-c", "exit 3")
    check(done.returncode == 3 and done.stdout == "", f"none: {done.returncode} {done.stdout}")


def longest(rows, rank, queue):
    """Returns two times in seconds and the maximum length of a queue, from the rows of lengths.csv: the
    time of the sample before the maximum, and that of the maximum."""
    lengths = {}
    for row in rows:
        if (row["rank"], row["queue"]) == (str(rank), queue):
            # Two samples may have the same microsecond.
            sample = (int(row["us"]), int(row["operations"]))
            lengths[sample] = lengths.get(sample, 0) + int(row["elements"])
    samples = sorted(lengths)
    most = max(samples, key=lambda sample: lengths[sample])
    return samples[max(samples.index(most) - 1, 0)][0] * 1e-6, most[0] * 1e-6, max(lengths.values())


def one_clock(arguments, programs):
    """For a rank that starts late, all outputs report its longest queue at the same time."""
    late, place, out = PLACE / "late", PLACE / "clock", PLACE / "clock-out"
    late.write_text('#!/bin/sh\n[ "$PMI_RANK" = 0 ] && sleep 0.7\nexec "$@"\n')
    late.chmod(0o755)
    launched = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "4", str(late), str(programs / "fds_gather"), "--steps", "4"]
    done = tcam(arguments, "run", f"--trace={place}", "--", *launched)
    check(done.returncode == 0, f"clock: {done.stderr[-500:]}")
    by = json.loads(tcam(arguments, "show", "--by=kind", "--json=-", place).stdout)
    at = by["umq_at_s"]
    check(by["umq_rank"] == 0 and at > 0.6, f"clock: {by}")
    need = json.loads(tcam(arguments, "show", "--json=-", place).stdout)["need"]
    check(0.6 < need["ranks"][0]["at_s"] and need["nics"][0]["at_s"] > 0.6, f"clock: {need}")
    done = tcam(arguments, "show", "--format=csv", f"--out={out}", place)
    check(done.returncode == 0, f"clock: {done.stderr[-500:]}")
    with (out / "lengths.csv").open(encoding="utf-8") as file:
        before, most, mark = longest(csv.DictReader(file), 0, "UMQ")
    check(mark == by["umq_high_water"], f"clock: {mark} in lengths.csv, {by}")
    check(before - 0.01 <= at <= most + 0.01, f"clock: {before} to {most} in lengths.csv, at {at}")
    with (out / "operations.csv").open(encoding="utf-8") as file:
        first = min(int(row["ns"]) for row in csv.DictReader(file) if row["rank"] == "0")
    check(first > 6e8, f"clock: rank 0 began at {first} ns")
    done = tcam(arguments, "show", f"--out={out}", "--format=svg", place)
    for name in ("lengths", "fill", "occupancy"):
        check("since the run began" in (out / f"{name}.svg").read_text(), f"clock: {name}.svg")


def pages_of_html(arguments):
    """The HTML page contains the facts of the text page and a picture of the need, and needs no
    other file. The page of `tcam show --format html` begins with the same answer. If it has only reports, that page
    names the missing facts."""
    page, drawn, both = (PLACE / name for name in ("answer.html", "answer.svg", "report.html"))
    traces = [PLACE / f"fds-{run}" for run in (1, 2)]
    text, told = answered(arguments, f"--html={page}", f"--plot={drawn}", *traces)
    needs = f"needs {told['nic']['peak_total']['most']:,}"
    at_need = next(of for of in told["sizes"] if of["entries"] == told["nic"]["peak_total"]["most"])
    check(at_need["immediate_percent"]["least"] == 100 and at_need["with_way_percent"]["most"] == 0, str(at_need))
    least = told["sizes"][0]
    check(0 < least["cpu_list_percent"]["least"] < least["with_way_percent"]["most"], str(least))
    check(drawn.read_text().count(needs) == 2, f"answer.svg has no {needs}")
    quote = text[text.index("To quote: ") + len("To quote: ") :]
    tcam(arguments, "show", "--format=html", f"--out={both}", *traces)
    for name in (page, both):
        html = name.read_text()
        check(not any(part in html for part in ("<script", "<link", "src=", "@import")), f"{name} needs other files")
        body = " ".join(html[html.index("<main>") :].split())
        check(body.startswith("<main> <section> <h2>Answer</h2>"), f"{name}: {body[:200]}")
        for part in (quote, needs, "cassini-hybrid", "The largest sums are those of rank", "exit status 0"):
            check(part in body, f"{name}: no {part}")
    done = tcam(arguments, "answer", f"--html={PLACE / 'x.svg'}", traces[0])
    check(done.returncode == 125 and "x.html" in done.stderr, f"--html x.svg: {done.stderr}")
    # The page of a run that `tcam answer --ppn 2` recorded has the answer for such nodes.
    run = traces[0] / "run.tcam"
    record = run.read_text()
    run.write_text(json.dumps(json.loads(record) | {"ppn": 2}))
    html = tcam(arguments, "show", "--format=html", "--out=-", traces[0]).stdout
    for part in ("nodes are assumed", "as if all ranks shared one NIC"):
        check(part in html, f"report of a run with --ppn: no {part}")
    run.write_text(record)
    reports = PLACE / "reports"
    reports.mkdir()
    for path in (*traces[0].glob("*.json"), traces[0] / "run.tcam"):
        shutil.copy(path, reports)
    html = tcam(arguments, "show", "--format=html", "--out=-", reports).stdout
    rank = json.loads(tcam(arguments, "answer", "--json=-", traces[0]).stdout)["rank"]
    for part in (f"need {rank['prq']['most']:,} entries for receives", "A NIC of all ranks needs between", "take a recording"):
        check(part in html, f"report of reports: no {part}")


def replays_that_are_kept(arguments):
    """A replay that writes reports also copies run.tcam, the record of the run."""
    out = PLACE / "replayed"
    done = tcam(arguments, "replay", f"--report={out}", PLACE / "fds-1")
    check(done.returncode == 0, done.stderr[-500:])
    check((out / "run.tcam").read_bytes() == (PLACE / "fds-1" / "run.tcam").read_bytes(), f"{sorted(out.iterdir())}")


def times_modelled(arguments):
    """The table of costs fits in 80 columns, and the help describes the queueing of the model."""
    done = tcam(arguments, "sweep", "--timing=cpu-list", f"--out={PLACE / 'sweep'}", "--trace", PLACE / "fds-1")
    table = [line for line in done.stdout.splitlines() if re.match(r" ?[\d,]+ +[\d.]+ %", line)]
    check(len(table) > 4 and all(len(line) <= 80 for line in done.stdout.splitlines() if line in table), done.stdout[:900])
    check("99 %" not in "".join(done.stdout.splitlines()[:8]), done.stdout[:900])
    text = " ".join(tcam(arguments, "sweep", "--help").stdout.split())
    check("no queueing" not in text and "one operation after the other" in text, text[-900:])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    arguments = parser.parse_args()
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    started = time.monotonic()
    programs = runs.build("mpich")
    recordings(arguments, programs)
    one_clock(arguments, programs)
    times_modelled(arguments)
    figures_by_hand(arguments)
    pages_of_html(arguments)
    replays_that_are_kept(arguments)
    placed_by_a_file(arguments)
    programs_that_run(arguments, programs)
    print(f"{time.monotonic() - started:.0f} s")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
