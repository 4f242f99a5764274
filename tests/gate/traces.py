#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Records MPI programs and replays them. The replay must count what the run counted, with every
engine and overflow model, with MPICH and Open MPI 5. A trace sweep must agree with replays of each
size, and a comparison with replays for each device. Pictures, statistics and exports of a recording
must agree with its reports. Recorded sends must arrive. Threads are distinguished. A killed program
leaves readable traces; a full disk and a size limit end the recording and nothing else."""

import argparse
import collections
import csv
import json
import os
import pathlib
import shutil
import resource
import signal
import struct
import subprocess
import sys
import time

from lib import mpi as runs
from lib.checks import all_post, check, exit_code
from lib.slowness import within

PLACE = runs.TARGET / "trace-tests"
# Exit code of commands whose result covers only some of the ranks or part of their time.
INCOMPLETE = 3
PROGRAMS = ["any_source", "nbcoll", "cancel"]


def tcam(arguments, *words, **options):
    """Runs tcam. Returns the completed process."""
    return subprocess.run(
        [str(arguments.tcam), *words], capture_output=True, text=True, timeout=within(120), **options
    )


def record(arguments, place, mpi, program, ranks, settings, words=(), options=()):
    """Records a program. Returns the completed process."""
    shutil.rmtree(place, ignore_errors=True)
    sets = [f"--set={setting}" for setting in settings]
    command = [str(runs.MPIS[mpi] / "mpiexec"), "-n", str(ranks), str(program), *options]
    words = ["run", f"--trace={place}", f"--mpi={mpi}", *sets, *words, "--", *command]
    return tcam(arguments, *words)


def json_of(done):
    """Returns the parsed output with `--json -`, which must be pure JSON."""
    check(done.returncode == 0, done.stderr[-500:])
    return json.loads(done.stdout)


def clusters(arguments):
    """Makes clusters from the recording that `same` made last. Returns the path of their file."""
    place, out = PLACE / "same", PLACE / "same.clusters"
    done = tcam(arguments, "cluster", "--k=2", f"--out={out}", str(place))
    check(done.returncode == 0, f"cluster: {done.stderr[-500:]}")
    return out


def all_settings(arguments):
    """Returns a setting for every overflow model and host engine, and other settings that change
    counts."""
    names = ("overflow", "host_engine")
    all_of = [f"{name}={value}" for name in names for value in runs.allowed(arguments.tcam, name)]
    return [*all_of, "host_storage=linked", "refuse=any-source"]


def same(arguments, mpi, programs):
    """A replay counts what the run counted."""
    for setting in all_settings(arguments):
        settings = ["prq_entries=7", "umq_entries=5", "theta=8", setting]
        if setting == "host_engine=kmeans":
            settings.append(f"clusters={clusters(arguments)}")
        for program in PROGRAMS:
            what = f"{mpi}, {program}, {setting}"
            place = PLACE / "same"
            done = record(arguments, place, mpi, programs / program, 4, settings)
            if not check(done.returncode == 0, f"{what}: {done.stderr[-500:]}"):
                continue
            done = tcam(arguments, "replay", f"--against={place}", str(place))
            check(done.returncode == 0, f"{what}: {done.stderr[-2000:]}")
    one = str(next(place.glob("1.*.tagged.trace")))
    done = tcam(arguments, "replay", f"--against={place}", one)
    told = done.returncode == INCOMPLETE and "no trace of ranks 0 and 2-3;" in done.stderr
    check(told, f"{mpi}, one rank: {done.returncode} {done.stderr[-1000:]}")
    # One count of one context differs.
    report = next(place.glob("1*.json"))
    text = report.read_text()
    changed = json.loads(text)
    changed["tagged"]["umq"]["search_depth"]["hit_entries"] += 1
    report.write_text(json.dumps(changed))
    done = tcam(arguments, "replay", f"--against={place}", str(place))
    told = done.returncode == 1 and "1 of 8 contexts differ." in done.stderr
    check(told, f"{mpi}, another count: {done.returncode} {done.stderr[-1000:]}")
    report.write_text(text)


def curve(arguments, programs):
    """A trace sweep agrees with replays of each size."""
    place, out = PLACE / "curve", PLACE / "curve-sweep"
    done = record(arguments, place, "mpich", programs / "any_source", 4, [])
    check(done.returncode == 0, done.stderr[-500:])
    done = tcam(arguments, "sweep", f"--trace={place}", "--prq=0,1,...,256", f"--out={out}")
    check(done.returncode == 0 and "smallest table" in done.stdout, f"{done.stdout}{done.stderr}")
    lines = (out / "sweep.csv").read_text().splitlines()
    names = lines[0].split(",")
    for line in lines[1:]:
        row = dict(zip(names, line.split(",")))
        size = row["prq_entries"]
        reports = PLACE / "curve-replay"
        words = [f"--prq={size}", f"--umq={size}", f"--report={reports}", str(place)]
        done = tcam(arguments, "replay", *words)
        check(done.returncode == 0, done.stderr[-500:])
        found = [json.loads(path.read_text()) for path in reports.glob("*.json")]
        for queue in ("prq", "umq"):
            for count in ("inserts", "table_matches", "host_matches", "spills", "promotions"):
                summed = sum(report["tagged"][queue][count] for report in found)
                swept = int(row[f"{queue}_{count}"])
                check(summed == swept, f"size {size}: {queue} {count} {summed} and {swept}")
    untagged = sorted(str(path) for path in place.glob("*.msg.trace"))
    done = tcam(arguments, "sweep", f"--out={out}", "--trace", *untagged)
    check(done.returncode == 125 and "no tagged message" in done.stderr, f"{done}")


def with_latency(rows):
    """Yields the latencies of arrivals and posts in rows of sweep.csv."""
    for row in rows:
        for what in ("arrival", "post"):
            of = {"mean": "mean", "median": "median", "most": "99_percent"}
            yield {name: float(row[f"{what}_{column}_ns"]) for name, column in of.items()}


def timed(arguments):
    """The costs in a sweep are the counts times the cost of each operation."""
    place, out = PLACE / "curve", PLACE / "timed"

    def rows(*words):
        done = tcam(arguments, "sweep", f"--trace={place}", "--prq=0,8,65536", *words, f"--out={out}")
        check(done.returncode == 0 and "host adds" in done.stdout, f"{done.stdout}{done.stderr}")
        lines = (out / "sweep.csv").read_text().splitlines()
        return [dict(zip(lines[0].split(","), line.split(","))) for line in lines[1:]]

    list_ns = rows("--timing=cpu-list")
    searches = rows("--timing=cpu-list", "--set=spill_ns=0", "--set=promote_ns=0")
    check(float(searches[0]["added_ns"]) > float(searches[1]["added_ns"]) > 0, f"{searches}")
    for row, plain in zip(list_ns, searches):
        moved = sum(
            ns * int(row[f"{queue}_{count}"])
            for queue in ("prq", "umq")
            for count, ns in (("spills", 3), ("promotions", 22))
        )
        expected = float(plain["added_ns"]) + moved / int(row["messages"])
        check(abs(float(row["added_ns"]) - expected) < 1e-6, f"{row}: {expected}")
    for row in with_latency(list_ns):
        check(row["mean"] > 0 or row["most"] == 0, f"{row}")
        check(row["most"] >= row["median"], f"{row}")
    check(all(row["added_ns"] == row["matching_ns"] for row in list_ns), f"{list_ns}")
    with_table = rows("--timing=cpu-list", "--set=table_ns=20")
    # Every message, receive and probe searches a table once, if there is one.
    tables = [float(row["matching_ns"]) - float(row["added_ns"]) for row in with_table]
    check(abs(tables[0]) < 1e-6 and abs(tables[1] - tables[2]) < 1e-6, f"{tables}")
    check(tables[2] >= 20, f"{tables}")
    for row, plain in zip(with_table, list_ns):
        added = float(row["added_ns"])
        check(added == float(plain["added_ns"]) <= float(row["added_ns_worst_rank"]), f"{row}")
    check(float(with_table[2]["added_ns"]) == 0, "no spill")
    done = tcam(arguments, "sweep", f"--trace={place}", "--timing=connectx", f"--out={out}")
    check(done.returncode == 125 and "cpu-list" in done.stderr, done.stderr)


def compared(arguments):
    """A comparison agrees with replays for each device."""
    place, table, reports = PLACE / "curve", PLACE / "compare.csv", PLACE / "compare-replay"
    environment = {"env": os.environ | {"FI_TCAM_PRQ_ENTRIES": "9"}}
    done = tcam(arguments, "replay", "--with=devices", f"--csv={table}", str(place), **environment)
    check(done.returncode == 0 and "cassini-hybrid" in done.stdout, f"{done.stdout}{done.stderr}")
    check("FI_TCAM_PRQ_ENTRIES: not used" in done.stderr, done.stderr)
    check(max(map(len, done.stdout.splitlines())) <= 80, "wider than a terminal")
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    # One row for each device. The row `as recorded` replaces that of `generic`.
    devices = runs.allowed(arguments.tcam, "device")
    check(len(rows) == len(devices), f"{len(rows)} lines, {devices}")
    for row in rows:
        device = [] if row["what"] == "as recorded" else [f"--set=device={row['what']}"]
        done = tcam(arguments, "replay", *device, f"--report={reports}", str(place))
        check(done.returncode == 0, done.stderr[-500:])
        found = [json.loads(path.read_text()) for path in reports.glob("*.json")]
        for queue in ("prq", "umq"):
            summed = sum(report["tagged"][queue]["spills"] for report in found)
            check(summed == int(row[f"{queue}_spills"]), f"{row}: {summed}")
    lines = ["--with=device=alpu,prq_entries=3", "--with=refuse=any-source,non-contiguous"]
    done = tcam(arguments, "replay", *lines, "--timing=cpu-list", str(place))
    check(done.returncode == 0 and "host adds" in done.stdout, f"{done.stdout}{done.stderr}")
    told = json_of(tcam(arguments, "replay", "--with=devices", "--json=-", f"--csv={table}", str(place)))
    check(told["format"] == "tcam-devices", f"{told}")
    with table.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    names = ("what", "prq_entries", "umq_spills")
    lines = [[str(line[name]) for name in names] for line in told["lines"]]
    check(lines == [[row[name] for name in names] for row in rows], f"{lines}")
    done = tcam(arguments, "replay", "--with=devices", "--csv=-", str(place))
    check(done.stdout.splitlines() == table.read_text().splitlines(), done.stdout)
    lines = ["--with=device=alpu", "--with=prq_entries=5"]
    done = tcam(arguments, "replay", "--prq=3", "--umq=2", *lines, f"--csv={table}", str(place))
    check(done.returncode == 0 and "\n as set " in done.stdout, f"{done.stdout}{done.stderr}")
    with table.open(encoding="utf-8") as file:
        sizes = [(row["prq_entries"], row["umq_entries"]) for row in csv.DictReader(file)]
    check(sizes == [("3", "2"), ("3", "2"), ("5", "2")], f"sizes of all lines: {sizes}")
    done = tcam(arguments, "replay", "--with=devices", "--prq=3", "--set=prq_entries=3", str(place))
    check(done.returncode == 125 and "give one of them" in done.stderr, done.stderr)
    done = tcam(arguments, "replay", "--with=device=aplu", str(place))
    check(done.returncode == 125 and "did you mean alpu?" in done.stderr, done.stderr)


def as_json(arguments):
    """The numbers in JSON are those of the reports."""
    place, out = PLACE / "curve", PLACE / "json-sweep"
    reports = [json.loads(path.read_text())["tagged"] for path in place.glob("*.json")]
    summed = sum(report["prq"]["inserts"] for report in reports)
    for words in (["show"], ["replay"]):
        told = json_of(tcam(arguments, *words, "--json=-", str(place)))
        check(told["tagged"]["prq"]["inserts"] == summed, f"{words}: {told['tagged']['prq']}")
        check(told["ranks"] == 4, f"{words}: {told['ranks']}")
        ranks = [rank["tagged"]["prq"]["inserts"] for rank in told.get("by_rank", [])]
        check(words == ["replay"] or sum(ranks) == summed, f"{words}: {ranks}")
    words = ["sweep", f"--trace={place}", "--prq=0,8", f"--out={out}"]
    told = json_of(tcam(arguments, *words, "--json=-"))
    check([run["prq_inserts"] for run in told["runs"]] == [summed] * 2, f"{told}")
    smallest = told["smallest_tables"]
    check([of["of"] for of in smallest[:3]] == ["worst rank"] * 2 + ["all ranks"], f"{smallest}")
    for queue in ("prq", "umq"):
        ranks = [of["no_spill"] for of in smallest if of["queue"] == queue and "rank " in of["of"]]
        check(len(ranks) == 4 and max(ranks) == told[f"{queue}_high_water"], f"{smallest}")
    file = PLACE / "sweep.json"
    done = tcam(arguments, *words, f"--json={file}")
    check(done.returncode == 0 and "needs " in done.stdout, f"{done.stdout}{done.stderr}")
    check(json.loads(file.read_text()) == told, "a file has something else")
    done = tcam(arguments, "show", f"--json={PLACE / 'none' / 'x'}", str(place))
    check(done.returncode == 125 and "No such file" in done.stderr, f"{done}")


def looked_at(arguments, programs):
    """Pictures, statistics and exports of a recording agree with its reports."""
    place, out = PLACE / "looked-at", PLACE / "looked-at-out"
    shutil.rmtree(out, ignore_errors=True)
    done = record(arguments, place, "mpich", programs / "any_source", 4, [], ["--prq=7"])
    check(done.returncode == 0, done.stderr[-500:])
    entries = json.loads((place / "0.json").read_text())["config"]["prq_entries"]
    check(entries == "7", f"run --prq=7: {entries}")
    out.mkdir(parents=True)
    for words in (
        ["show", "--all", str(place)],
        ["show", "--format=plot", f"--out={out}", str(place)],
        ["show", "--format=html", f"--out={out / 'report.html'}", str(place)],
        ["show", "--format=csv", f"--out={out}", str(place)],
        ["show", "--format=parquet", f"--out={out}", str(place)],
    ):
        done = tcam(arguments, *words)
        check(done.returncode == 0, f"{words[0]}: {done.stderr[-500:]}")
    for name in ("curve", "lengths", "fill", "occupancy", "depths", "blocks", "map", "traversals"):
        for ending in ("svg", "png"):
            path = out / f"{name}.{ending}"
            check(path.is_file() and path.stat().st_size > 500, f"{path.name} is missing")
    for name in ("queues", "kinds", "depths", "lengths", "origin", "operations"):
        data = (out / f"{name}.parquet").read_bytes()
        check(data[:4] == data[-4:] == b"PAR1", f"{name}.parquet")
    page = (out / "report.html").read_text()
    check(page.count("<svg") == 9 and "<script" not in page, "the page")
    reports = {int(path.stem): json.loads(path.read_text()) for path in place.glob("*.json")}
    for queue, name in (("prq", "rq"), ("umq", "uq")):
        for outcome in ("hit", "miss"):
            lines = (out / f"qstat-{name}-{outcome}.data").read_text().splitlines()
            check(len(lines) == 4, f"{name}-{outcome}: {len(lines)} lines")
            for rank, line in enumerate(lines):
                found = [int(pair.split(",")[0]) for pair in line.split()]
                depth = reports[rank]["tagged"][queue]["search_depth"]
                told = (sum(depth[outcome]), depth[f"{outcome}_entries"])
                have = (len(found), sum(found))
                check(have == told, f"{name}-{outcome}, rank {rank}: {have} and {told}")


def sent(arguments, mpi, programs):
    """Sends are recorded on request: they arrive, and no count changes."""
    place, out = PLACE / "sent", PLACE / "sent-out"
    shutil.rmtree(out, ignore_errors=True)
    settings = ["trace_sends=on", "prq_entries=7"]
    done = record(arguments, place, mpi, programs / "any_source", 4, settings)
    check(done.returncode == 0, f"{mpi}: {done.stderr[-500:]}")
    done = tcam(arguments, "replay", f"--against={place}", str(place))
    check(done.returncode == 0, f"{mpi}: {done.stderr[-2000:]}")
    done = tcam(arguments, "show", "--format=csv", f"--out={out}", str(place))
    check(done.returncode == 0, f"{mpi}: {done.stderr[-500:]}")
    with (out / "operations.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    messages = {"send": collections.Counter(), "arrive": collections.Counter()}
    for row in rows:
        if row["operation"] in messages:
            messages[row["operation"]][row["context"], row["match_bits"], row["bytes"]] += 1
    check(messages["send"] == messages["arrive"], f"{mpi}: {messages}")
    check(messages["send"].total() > 100, f"{mpi}: {messages['send'].total()} sends")
    check(all(row["destination"] for row in rows if row["operation"] == "send"), f"{mpi}: to whom?")
    for rank in range(4):
        times = [int(row["cpu_ns"]) for row in rows
                 if (row["rank"], row["context"], row["thread"]) == (str(rank), "tagged", "0")]  # fmt: skip
        rises = times == sorted(times) and len(set(times)) > 10
        check(rises, f"{mpi}: processor times of rank {rank}: {times[:20]}")
    done = record(arguments, place, mpi, programs / "any_source", 2, ["trace_sends=some"])
    refused = "FI_TCAM_TRACE_SENDS=some: allowed is off, on" in done.stderr
    check(done.returncode == 125 and refused, f"{mpi}: {done.stderr[-500:]}")


def threads_of(arguments, place):
    """Returns what `tcam show --by thread` prints: the lines of all threads, and the sentences."""
    told = json_of(tcam(arguments, "show", "--by=thread", "--json=-", str(place)))
    check(told["by"] == "thread", f"{told}")
    return told["threads"], told["readings"]


def threaded(arguments, mpi, programs):
    """Threads of a rank are distinguished, and their operations are recorded in the order of
    matching."""
    place, out = PLACE / "threaded", PLACE / "threaded-out"
    # The program starts four threads nine times. Otherwise only the main thread posts.
    expected = 1 + 9 * 4
    for settings in (["prq_entries=7", "umq_entries=5"], ["host_engine=list"]):
        what = f"{mpi}, threads, {settings[-1]}"
        done = record(arguments, place, mpi, programs / "threads", 2, settings)
        if not check(done.returncode == 0, f"{what}: {done.stderr[-500:]}"):
            continue
        threads, readings = threads_of(arguments, place)
        for rank in range(2):
            own = [thread for thread in threads if thread["rank"] == rank]
            numbers = [thread["thread"] for thread in own]
            check(numbers == list(range(expected)), f"{what}, rank {rank}: {numbers}")
            check(all(thread["posts"] > 0 for thread in own), f"{what}: {own}")
            check(not any(thread["device_thread"] for thread in own), f"{what}: {own}")
            report = json.loads((place / f"{rank}.json").read_text())["tagged"]
            for count in ("posts", "arrivals"):
                summed = sum(thread[count] for thread in own)
                taken = 0 if count == "arrivals" else sum(thread["probes"] for thread in own)
                told = summed <= report[count] <= summed + taken
                check(told, f"{what}, rank {rank}, {count}: {summed} and {report[count]}")
        several = "2 of 2 processes used their tables with several threads, at most"
        check(readings[0] == f"{several} {expected}", f"{what}: {readings}")
        text = tcam(arguments, "show", "--by=thread", str(place)).stdout
        told = ("rank 1, thread ", f"{2 * expected - 24} others", "compared")
        check(all(words in text for words in told), f"{what}: {text}")
        done = tcam(arguments, "show", "--format=csv", f"--out={out}", str(place))
        check(done.returncode == 0, f"{what}: {done.stderr[-500:]}")
        with (out / "operations.csv").open(encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["context"] == "tagged"]
        found = collections.Counter(
            (row["rank"], row["thread"]) for row in rows if row["operation"].startswith("post")
        )
        posts = {(str(thread["rank"]), str(thread["thread"])): thread["posts"] for thread in threads}
        check(found == posts, f"{what}: {found} and {posts}")
        check({row["device_thread"] for row in rows} == {"false"}, f"{what}: device threads")
        done = tcam(arguments, "replay", f"--against={place}", str(place))
        check(done.returncode == 0, f"{what}: {done.stderr[-2000:]}")
        for words in (["replay", str(place)], ["replay", "--with=devices", str(place)], ["show", f"--against={place}", str(place)],
                      ["sweep", "--prq=0,8", f"--out={out}", "--trace", str(place)]):  # fmt: skip
            done = tcam(arguments, *words)
            check(done.returncode == 0, f"{what}, {words[0]}: {done.stderr[-500:]}")
    done = record(arguments, place, mpi, programs / "any_source", 2, [])
    check(done.returncode == 0, f"{mpi}: {done.stderr[-500:]}")
    threads, readings = threads_of(arguments, place)
    check([thread["thread"] for thread in threads] == [0, 0], f"{mpi}: {threads}")
    check(readings == ["No process used its tables with more than one thread"], f"{readings}")
    done = tcam(arguments, "show", "--by=thread", str(next(place.glob("0.json"))))
    check(done.returncode == 125 and "--by: takes traces" in done.stderr, done.stderr)


def device_thread(arguments):
    """With automatic progress the provider's own thread handles messages, and the statistics name
    it."""
    place, provider = PLACE / "device-thread", arguments.tcam.parent
    shutil.rmtree(place, ignore_errors=True)
    client = PLACE / "auto"
    source = runs.ROOT / "tests" / "fabric" / "auto.c"
    subprocess.run(["cc", "-O1", "-o", str(client), str(source), "-lfabric", "-lpthread"], check=True)
    environment = os.environ | {
        "FI_PROVIDER_PATH": str(provider), "FI_PROVIDER": "tcam", "FI_TCAM_TRACE": str(place)
    }  # fmt: skip
    done = subprocess.run([str(client)], env=environment, capture_output=True, text=True, timeout=within(60))
    check(done.returncode == 0, f"{done.stdout}{done.stderr}")
    threads, readings = threads_of(arguments, place)
    devices = [thread for thread in threads if thread["device_thread"]]
    check(any(thread["arrivals"] > 0 for thread in devices), f"{threads}")
    check(not any(thread["posts"] for thread in devices), f"a device thread posted: {devices}")
    check(len(devices) < len(threads), f"device threads only: {threads}")
    handled = sum(thread["arrivals"] for thread in devices)
    check(readings[-1].startswith(f"Device threads of the provider handled {handled:,} "), readings)
    text = tcam(arguments, "show", "--by=thread", str(place)).stdout
    check(" (device) " in text, text)
    done = tcam(arguments, "replay", str(place))
    check(done.returncode in (0, INCOMPLETE), done.stderr[-500:])


def killed(arguments, programs):
    """The traces of a killed program are readable."""
    place = PLACE / "killed"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    command = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "2", str(programs / "patterns")]
    words = ["run", "--mpi=mpich", f"--set=trace={place}", "--", *command, "halo", "1000000", "50"]
    child = subprocess.Popen(
        [str(arguments.tcam), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    end, ranks = time.monotonic() + within(30), []
    while time.monotonic() < end:
        ranks = [int(path.name.split(".")[1]) for path in place.glob("*.tagged.trace")]
        if len(ranks) == 2 and all_post(arguments.tcam, ranks):
            break
    check(len(ranks) == 2, f"{len(ranks)} ranks recorded within {within(30)} s")
    for rank in ranks:
        os.kill(rank, signal.SIGKILL)
    try:
        child.wait(timeout=within(30))
    finally:
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    done = tcam(arguments, "replay", str(place))
    told = "the counts of ranks 0-1 were cut short" in done.stderr
    check(done.returncode == INCOMPLETE and told, done.stderr[-1000:])


def bounded(arguments, programs):
    """FI_TCAM_TRACE_MAX and a full disk end the recording with a message."""
    place = PLACE / "bounded"
    # Messages of many tags, because repeated operations take no space.
    program, options = programs / "patterns", ["halo", "4000", "1000"]
    done = record(arguments, place, "mpich", program, 2, [], ["--max=1"], options)
    told = "Traces: INCOMPLETE, the counts of ranks 0-1 were cut short" in done.stderr
    check(done.returncode == INCOMPLETE and told, f"bounded: {done.stderr[-500:]}")
    check("FI_TCAM_TRACE_MAX=1 MiB is reached" in done.stderr, f"bounded: {done.stderr[-500:]}")
    largest = max(path.stat().st_size for path in place.glob("*.trace"))
    check(largest <= 1 << 20, f"bounded: a trace of {largest} bytes")
    for words in (["replay"], ["replay", "--with=devices"]):
        done = tcam(arguments, *words, str(place))
        told = done.stderr.count("the recording ended before its program")
        check(1 <= told <= 2, done.stderr[-500:])
    if os.geteuid() != 0:
        print("SKIPPED: a full disk is made by root only")
        return
    disk = PLACE / "disk"
    disk.mkdir(parents=True, exist_ok=True)
    made = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if subprocess.run(made, check=False, capture_output=True).returncode != 0:
        print("SKIPPED: a small disk cannot be mounted here")
        return
    try:
        done = record(arguments, disk / "trace", "mpich", program, 2, [], [], options)
        check("the disk is full; the program goes on" in done.stderr, done.stderr[-500:])
        check("patterns: ok" in done.stdout, f"full disk: {done.stdout[-500:]}")
    finally:
        subprocess.run(["umount", str(disk)], check=False)


def damaged(arguments):
    """Files that are not traces are refused, each with its reason."""
    place = PLACE / "damaged"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    whole = next((PLACE / "curve").glob("0.*.tagged.trace")).read_bytes()
    for name, content, reason in [
        ("empty", b"", "an empty file"),
        ("foreign", b"\x89PNG", "not a tcam trace"),
        ("short", whole[:100], "cut off before the first record"),
        ("cut", whole[:20_000], "cut off before the first record"),
        ("version", whole.replace(b"tcam-trace 7", b"tcam-trace 2", 1), "of another version"),
        ("record", whole[:8192] + b"\x1f" + whole[8193:], "record 0 is damaged"),
    ]:
        path = place / f"{name}.trace"
        path.write_bytes(content)
        done = tcam(arguments, "replay", str(path))
        check(done.returncode == 125 and reason in done.stderr, f"{name}: {done.stderr}")
    # A trace that repeats a receive: a few bytes expand to millions of elements.
    path = place / "repeats.trace"
    header = whole[:8192].replace(b'"window":65536', b'"window":0    ')
    path.write_bytes(header + struct.pack("<II", 5, 15 | 255 << 16) * 20_000)
    out = ["--out", str(place / "looked-at")]
    limit = resource.RLIMIT_AS, (3 << 30, 3 << 30)
    for task in (["replay"], ["replay", "--with=devices"], ["show"], ["show", "--format=csv", *out], ["sweep", *out, "--trace"]):
        done = tcam(arguments, *task, str(path), preexec_fn=lambda: resource.setrlimit(*limit))
        told = "has more than 4000000 elements" in done.stderr and "--max-queue" in done.stderr
        check(done.returncode == 125 and told, f"{task}: {done.stderr}")
    done = tcam(arguments, "replay", "--partial", "--max-queue=5120000", str(path))
    check(done.returncode == 0, done.stderr)
    path = place / "end.trace"
    # A short trace has all its operations in the window, so a longer one is cut here.
    whole = max((PLACE / "bounded").glob("*.trace"), key=lambda trace: trace.stat().st_size)
    path.write_bytes(whole.read_bytes()[:-1])
    done = tcam(arguments, "replay", str(path))
    check(done.returncode == 125 and "--cut-off" in done.stderr, done.stderr)
    out = ["--out", str(place / "looked-at")]
    for task in (["replay"], ["replay", "--with=devices"], ["show"], ["show", "--format=plot", *out], ["show", "--format=csv", *out]):
        done = tcam(arguments, *task, "--cut-off", str(path))
        check(done.returncode == INCOMPLETE and done.stderr.count("cut off in") == 1, done.stderr)
    short = str(place / "short.trace")
    done = tcam(arguments, "show", "--cut-off", str(path), short)
    check(done.returncode == INCOMPLETE and "left out" in done.stderr, done.stderr)
    done = tcam(arguments, "show", "--cut-off", short)
    check(done.returncode == 125 and "short.trace" in done.stderr, done.stderr)
    done = tcam(arguments, "replay", str(PLACE / "nothing"))
    check(done.returncode == 125 and "nothing" in done.stderr, done.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    arguments = parser.parse_args()
    start = time.monotonic()
    for mpi in ("mpich", "openmpi5"):
        print(f"{mpi}: replays of {len(all_settings(arguments)) * len(PROGRAMS)} runs", flush=True)
        same(arguments, mpi, runs.build(mpi))
        sent(arguments, mpi, runs.build(mpi))
        threaded(arguments, mpi, runs.build(mpi))
    programs = runs.build("mpich")
    print(
        "device thread, curve, costs, compared, as JSON, looked at, killed, bounded, damaged",
        flush=True,
    )
    device_thread(arguments)
    curve(arguments, programs)
    timed(arguments)
    compared(arguments)
    as_json(arguments)
    looked_at(arguments, programs)
    killed(arguments, programs)
    bounded(arguments, programs)
    damaged(arguments)
    print(f"  {time.monotonic() - start:.0f} s")
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
