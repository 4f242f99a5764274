# SPDX-License-Identifier: BSD-2-Clause
"""Measures the numbers of each paper. Engines take turns, so that a slow moment of the machine affects all."""

import json
import math
import os
import pathlib
import platform
import random
import re
import subprocess
import tempfile
from collections import namedtuple

from . import colpnp, hash_table, polling, tail_queues
from .colpnp import Numbers, Place
from .figure import Cases
from .kmeans import SENDERS
from .streams import ARRIVE, BENCH, POST, TCAM, Job, Stream, job_settings, nanoseconds, say, settings

# Milliseconds for each engine, workload and seed; the first seed, and the number of seeds; `only` is a part of
# the names of the tail-queues rows, or of the polling runs, to measure; `command` is launcher and program.
Effort = namedtuple("Effort", "ms seed seeds only command")
SEARCHES = {"PRQ": "finds receive", "UMQ": "finds message"}
# The list, COL+PNP on both storages, and the other engines of the paper.
COLPNP = [("list", "linked"), ("col-pnp", "linked"), ("col-pnp", "packed")]
COLPNP += [(engine, "linked") for engine in colpnp.ENGINES[2:]]


def ratios(ones, others):
    return [one / other for one, other in zip(ones, others) if one and other]


class Streams:
    """One stream for each seed, in a directory that is removed at the end."""

    def __init__(self, effort, make):
        self.directory = tempfile.TemporaryDirectory()
        self.all = []
        for seed in range(effort.seed, effort.seed + effort.seeds):
            self.all.append(make(f"{self.directory.name}/{seed}", seed))

    def __enter__(self):
        return self.all

    def __exit__(self, *_):
        self.directory.cleanup()


# COL+PNP


def measure_colpnp(effort):
    job = effort.command and Job(effort.command, "collectives")
    ranks_of_job = job and int(job.value(job.run({}, ["gather", 1]), "ranks"))
    numbers = Numbers()
    all_of = [(pattern, ranks, colpnp.K, COLPNP) for pattern, ranks in colpnp.applications()]
    all_of += [("gather", ranks, k, COLPNP[:3]) for ranks in colpnp.GATHER for k in colpnp.KS]
    for at, (pattern, ranks, k, engines) in enumerate(all_of, 1):
        say(f"{at} of {len(all_of)}: {pattern} on {ranks:,}")
        make = lambda place, seed: Stream.of_workload(place, pattern, ranks, seed)
        with Streams(effort, make) as streams:
            of = [settings(engine, storage, k) for engine, storage in engines]
            answers = [stream.replay(of, effort.ms) for stream in streams]
        places = [Place(pattern, ranks, "", "", engine, storage, k) for engine, storage in engines]
        if pattern != "gather":
            put_lengths(numbers, places[0], [seed[0]["counted"] for seed in answers])
        figure = "5a" if pattern == "gather" else "6-8"
        put_times(numbers, figure, places, answers)
        if pattern != "gather":
            put_overheads(numbers, places[1:3], [seed[1:3] for seed in answers])
        put_queues(numbers, "5a" if pattern == "gather" else "9", places, answers)
    for ranks in colpnp.LENGTHS:
        make = lambda place, seed: Stream.of_workload(place, "fds", ranks, seed)
        with Streams(effort, make) as streams:
            counted = [stream.replay([settings("rank-array", "linked")])[0]["counted"] for stream in streams]
        put_lengths(numbers, colpnp.place("fds", ranks, "list"), counted)
    if job:
        collectives(numbers, job, ranks_of_job, effort.seeds)
    return numbers


def basis_of_lengths(pattern):
    return "predicted" if pattern in ("radix", "gather", "allreduce") else "fitted"


def put_lengths(numbers, place, counted):
    """Adds the longest queues, and the share of collective elements."""
    for queue in colpnp.QUEUES:
        of = place._replace(queue=queue)
        basis = basis_of_lengths(place.pattern)
        queues = [counters[queue.lower()] for counters in counted]
        numbers.put("1", of, "longest", basis, [of["high_water"] for of in queues])
        shares = [of["kinds"]["collective"]["inserts"] / of["inserts"] for of in queues if of["inserts"]]
        numbers.put("1", of, "share", basis, shares)


def put_times(numbers, figure, places, answers):
    """Adds times of searches, and speedups over the list with the same seed."""
    for queue, role in SEARCHES.items():
        for traffic, collective in zip(colpnp.KINDS, (None, True, False)):
            times = [
                [nanoseconds(seed[at], role, collective) for seed in answers] for at in range(len(places))
            ]
            for at, place in enumerate(places):
                of = place._replace(queue=queue, traffic=traffic)
                numbers.put(figure, of, "ns", "measured", [time for time in times[at] if time is not None])
                if at:
                    numbers.put(figure, of, "speedup", "measured", ratios(times[0], times[at]))


def put_queues(numbers, figure, places, answers):
    for at, place in enumerate(places):
        if place.engine in ("list", "rank-array"):
            continue
        for queue in colpnp.QUEUES:
            for traffic in colpnp.KINDS[1:]:
                name = f"dedicated_{traffic.replace('-', '_')}"
                made = [seed[at]["queues"][queue.lower()][name] for seed in answers]
                put_made(numbers, figure, place._replace(queue=queue, traffic=traffic), made)


def put_made(numbers, figure, place, made, of_both=False):
    """Adds the number of queues made. Its origin is *capped* if the median equals the cap k sqrt(n); otherwise
    it is the origin of the queue lengths."""
    middle = (sorted(made)[(len(made) - 1) // 2] + sorted(made)[len(made) // 2]) / 2
    capped = middle / (2 if of_both else 1) == math.isqrt(place.k * place.k * place.ranks)
    lengths = "predicted" if of_both else basis_of_lengths(place.pattern)
    numbers.put(figure, place, "queues", "capped" if capped else lengths, made)


def put_overheads(numbers, places, answers):
    for at, place in enumerate(places):
        making = [seed[at]["making"] for seed in answers]
        numbers.put("T2", place, "overhead", "measured", [queues / searches for queues, searches in making])
        for metric, which in (("ns making queues", 0), ("ns of searches", 1)):
            numbers.put("T2", place, metric, "measured", [of[which] for of in making])


def collectives(numbers, job, ranks, rounds):
    """Measures Figures 5 and 11.

        for each operation and engine:     once with a report and FI_TCAM_TIMES: queues made, time in matching
        once for each seed:                every engine in turn, without a report: the time

        bound of any speedup = time / (time - matching of all ranks)          with the list

    An engine can save at most the time of matching, for any number of cores. If ranks share cores, the time of
    matching includes time of other ranks, which makes the bound larger, never smaller.
    """
    for figure, pattern, k, engines in colpnp.OPERATIONS:
        say(f"{pattern} through MPI on {ranks}")
        of = [job_settings(engine, "linked", k) for engine in engines]
        counted, times = [], [[] for _ in of]
        for one in of:
            with tempfile.TemporaryDirectory() as place:
                job.run(one | {"times": "on"}, [pattern], place)
                files = pathlib.Path(place).glob("*.json")
                counted.append([json.loads(file.read_text())["tagged"] for file in files])
        for _ in range(rounds):
            for one, ran in zip(of, times):
                text = job.run(one, [pattern])
                ran.append((job.value(text, "us"), job.value(text, "steps")))
        for engine, reports, ran in zip(engines, counted, times):
            place = Place(pattern, ranks, "", "", engine, "linked", k)
            put_operation(numbers, figure, place, times[0], ran, reports)


def in_matching(queue):
    """Returns the nanoseconds that a queue spent in matching."""
    parts = [queue["measured"][of] for of in ("search", "insert", "remove")]
    return sum(part[place]["ns"] for part in parts for place in ("table", "host"))


def put_operation(numbers, figure, place, lists, ran, reports):
    queues = [[report["prq"], report["umq"]] for report in reports]
    numbers.put(figure, place, "us", "measured", [us for us, _ in ran])
    if place.engine == "list":
        matching = sum(in_matching(queue) for both in queues for queue in both)
        spent = [us * steps * 1e3 for us, steps in ran]
        bounds = [time / (time - matching) for time in spent if time > matching]
        numbers.put(figure, place, "bound", "bounded", bounds)
        cores = len(os.sched_getaffinity(0))
        numbers.put(figure, place, "ranks a core", "given", [place.ranks / cores])
        for at, queue in enumerate(colpnp.QUEUES):
            longest = max(both[at]["high_water"] for both in queues)
            numbers.put(figure, place._replace(queue=queue), "longest", "measured", [longest])
        return
    faster = [one / other for (one, _), (other, _) in zip(lists, ran)]
    numbers.put(figure, place, "time speedup", "measured", faster)
    if place.engine == "rank-array":
        return
    names = ("dedicated_collective", "dedicated_point_to_point")
    made = max(([sum(of[name] for of in both) for name in names] for both in queues), key=sum)
    for traffic, of in zip(colpnp.KINDS[1:], made):
        # The cap applies to each of the two queues, and `of` counts the queues of both.
        put_made(numbers, figure, place._replace(traffic=traffic), [of], of_both=True)


# K-means

KS = (1, 2, 4, 8, 16, 32)  # clusters of Figures 8 to 10
GROUPS = (2, 10, 50, 100)  # messages of a process in the groups of Table 1: small to very large
# Queue of each group in clusterings 1 to 7 of Table 1.
CLUSTERINGS = (
    (0, 0, 1, 1),
    (0, 1, 0, 1),
    (0, 1, 1, 0),
    (0, 0, 0, 1),
    (1, 0, 0, 0),
    (0, 0, 1, 0),
    (0, 1, 0, 0),
)
# Sources of rank 0 in a step of AMG, as (number of sources, elements that each adds). A source adds an element
# for each level of the multigrid on which it is a neighbour: few sources on all levels, most on coarse levels
# only. The sum is the number of elements in *Tail queues*, Table 2, on 4096 processes.
AMG_POSTED = ((20, 7), (40, 4), (50, 2), (90, 1), (53, 1))
AMG_UNEXPECTED = ((14, 7), (30, 4), (40, 2), (60, 1), (60, 1))
RANKS = 4096


def messages(each):
    """Returns tag and source of each message: all messages of a source, then all of the next source."""
    return [(tag, source) for source, count in enumerate(each, 1) for tag in range(count)]


def operations(kind, names):
    return [(kind, *name) for name in names]


def reverse(place, each):
    """Makes a stream in which messages come before their receives. The receives take the youngest message first."""
    names = messages(each)
    step = operations(ARRIVE, names) + operations(POST, reversed(names))
    return Stream.of(place, RANKS, [step] * 8)


def amg(place, seed):
    """Makes a stream in which receives are posted and their messages come in another order; then messages
    without a receive come, and receives take them in another order."""
    rng = random.Random(seed)
    posted, unexpected = (
        messages(each for sources, each in of for _ in range(sources)) for of in (AMG_POSTED, AMG_UNEXPECTED)
    )
    steps = []
    for _ in range(32):
        step = []
        for kind, names in ((POST, posted), (ARRIVE, posted), (ARRIVE, unexpected), (POST, unexpected)):
            step += operations(kind, rng.sample(names, len(names)))
        steps.append(step)
    return Stream.of(place, RANKS, steps)


def given(path, ranks, queue_of):
    """Writes a file with the same clusters for both queues. Returns the settings that use the file."""
    of = [None, *(queue_of(source) for source in range(SENDERS))]
    head = {"format": "tcam-clusters", "version": 1, "processes": ranks, "k": 0}
    row = {"rank": 0, "prq": of, "umq": of}
    lines = [json.dumps(line, separators=(",", ":")) + "\n" for line in (head, row)]
    pathlib.Path(path).write_text("".join(lines), encoding="utf-8")
    return settings("kmeans", "linked", clusters=path)


def of_profile(stream):
    """Returns the settings of each contender by name: the list, K-means with clusters from the stream's profile, and
    both on packed queues."""
    place = stream.path.parent
    quiet = {"check": True, "stdout": subprocess.DEVNULL}
    for k in KS:
        words = [TCAM, "cluster", stream.path, f"--k={k}", f"--out={place}/clusters-{k}"]
        subprocess.run(words, **quiet)
    named = {"list linked": settings("list", "linked")}
    for k in KS:
        named[f"kmeans k={k}"] = settings("kmeans", "linked", clusters=f"{place}/clusters-{k}")
    named["list packed"] = settings("list", "packed")
    named["kmeans k=16 packed"] = settings("kmeans", "packed", clusters=f"{place}/clusters-16")
    return named


def traversed(answer, queue):
    """Returns the mean number of elements that a search of a queue traversed, or NaN without searches."""
    of = answer["counted"][queue.lower()]["traversals"]
    searches = sum(sum(of[found]) for found in ("hit", "miss"))
    return of["entries"] / searches if searches else math.nan


def put_case(cases, figure, case, streams, named, queues, effort):
    """Adds times, speedups over the first contender, and traversals."""
    names = [named(stream) for stream in streams]
    answers = [stream.replay(list(of.values()), effort.ms) for stream, of in zip(streams, names)]
    for queue in queues:
        lists = [nanoseconds(seed[0], SEARCHES[queue]) for seed in answers]
        for at, engine in enumerate(names[0]):
            times = [nanoseconds(seed[at], SEARCHES[queue]) for seed in answers]
            key = (figure, f"{case} {queue}", engine)
            cases.put((*key, "ns"), [time for time in times if time])
            cases.put((*key, "speedup"), ratios(lists, times))
            cases.put((*key, "traversed"), [traversed(seed[at], queue) for seed in answers])


def measure_kmeans(effort):
    cases = Cases()
    linked = settings("list", "linked")

    def of_given(*clusterings):
        def named(stream):
            place = stream.path.parent
            return {"list linked": linked} | {
                name: given(f"{place}/{name.replace(' ', '-')}", RANKS, queue_of)
                for name, queue_of in clusterings
            }

        return named

    for each in (10, 50):
        say(f"reverse search, M={each}")
        halves = of_given(("two queues", lambda source: int(source >= SENDERS / 2)))
        with Streams(effort, lambda place, _: reverse(place, [each] * SENDERS)) as streams:
            put_case(cases, "2", f"M={each}", streams, halves, ["UMQ"], effort)
    say("clusterings 1 to 7")
    clusterings = [("four queues", lambda source: source % 4)]
    for number, queues in enumerate(CLUSTERINGS, 1):
        clusterings.append((f"clustering {number}", lambda source, queues=queues: queues[source % 4]))
    each = [GROUPS[source % 4] for source in range(SENDERS)]
    with Streams(effort, lambda place, _: reverse(place, each)) as streams:
        put_case(cases, "3", "groups", streams, of_given(*clusterings), ["UMQ"], effort)
    for figure, case, make in (
        ("8", "AMG-like", amg),
        ("9", "LAMMPS-like", lambda place, seed: Stream.of_workload(place, "lammps", 240, seed)),
        ("10", "FDS-like", lambda place, seed: Stream.of_workload(place, "fds", 1024, seed)),
    ):
        say(case)
        with Streams(effort, make) as streams:
            put_case(cases, figure, case, streams, of_profile, colpnp.QUEUES, effort)
    return cases


# Hint-driven matching

# The list on both storages, the hash table, NewMadeleine.
HASH = {
    "list linked": ("list", "linked"),
    "list packed": ("list", "packed"),
    "hash": ("hash", "packed"),
    "newmadeleine": ("newmadeleine", "packed"),
}
IN_FLIGHT = (1, 4, 16, 64, 256, 1024, 4096)  # messages of shuffle and burst
STANDING = (0, 10, 50, 100, 200)  # receives that wait in the ping-pong (Figure 6)
BYTES = (1, 64, 1024, 8192)  # lengths of messages in the ping-pong through an MPI
THROUGH_MPI = (1, 16, 128, 1024, 4096)  # messages in flight through an MPI
PREPARED = 32_768  # messages in all steps, because the branch predictor learns a few short steps


def both_ways(names, found):
    """Returns receives and then the messages that match them, followed by messages and then their receives."""
    return [
        *operations(POST, names),
        *operations(ARRIVE, found),
        *operations(ARRIVE, names),
        *operations(POST, found),
    ]


def requests(place, count, seed):
    """Makes requests of Table I: communicator and tag up to 100, source up to 500."""
    rng = random.Random(seed)
    steps = []
    for _ in range(max(PREPARED // count, 4)):
        names = [(rng.randrange(101) << 32 | rng.randrange(101), rng.randrange(501)) for _ in range(count)]
        steps.append(both_ways(names, names))
    return Stream.of(place, 512, steps)


def in_flight(place, count, in_order, seed):
    """Makes a stream of shuffle or burst. Receives come in the order of their tags. Messages come in the same order
    if `in_order` is true (burst), and otherwise in random order (shuffle)."""
    rng = random.Random(seed)
    names = [(tag, 1) for tag in range(count)]
    steps = []
    for _ in range(max(PREPARED // count, 8)):
        steps.append(both_ways(names, names if in_order else rng.sample(names, count)))
    return Stream.of(place, 2, steps)


def behind(place, standing):
    """Makes a ping-pong behind receives that never match. These receives are posted once, before the first
    step."""
    pair = [(POST, 7, 1), (ARRIVE, 7, 1)]
    waiting = [(POST, 1 << 20 | tag, 1) for tag in range(standing)]
    return Stream.of(place, 2, [pair * 1024], waiting + pair * 64)


def put_hash(cases, figure, case, engines, answers, of):
    times = [[of(seed[at]) for seed in answers] for at in range(len(engines))]
    for engine, own in zip(engines, times):
        cases.put((figure, case, engine, "ns"), own)
        cases.put((figure, case, engine, "speedup"), ratios(times[0], own))


def measure_hash(effort):
    job = effort.command and Job(effort.command, "hints")
    if job:
        job.value(job.run({}, ["burst", 1, 1]), "ranks")
    cases = Cases()
    of_all = {name: settings(*of) for name, of in HASH.items()}
    # The paper does not compare with a list of 100,000 requests.
    tables = dict(list(of_all.items())[2:])
    for count in hash_table.REQUESTS:
        say(f"{count:,} requests")
        with Streams(effort, lambda place, seed: requests(place, count, seed)) as streams:
            answers = [stream.replay(list(tables.values()), effort.ms) for stream in streams]
        for path, role, paper in hash_table.PATHS:
            case = f"{path}, N={count}"
            put_hash(cases, "I", case, tables, answers, lambda answer: nanoseconds(answer, role))
            both = ([nanoseconds(seed[at], role) for seed in answers] for at in (1, 0))
            says = paper[1] / paper[0] if count == hash_table.TABLE else None
            cases.put(("I", case, "hash", "newmadeleine / hash"), ratios(*both), says)
    makers = [
        (figure, f"{what}, N={count}", lambda place, seed, of=(count, in_order): in_flight(place, *of, seed))
        for figure, what, in_order in (("3", "shuffle", False), ("5a", "burst", True))
        for count in IN_FLIGHT
    ]
    makers += [("6", f"behind {of}", lambda place, _, of=of: behind(place, of)) for of in STANDING]
    for figure, case, make in makers:
        say(case)
        with Streams(effort, make) as streams:
            answers = [stream.replay(list(of_all.values()), effort.ms) for stream in streams]
        pair = lambda answer: sum(nanoseconds(answer, role) for role in ("waits", "finds receive"))
        put_hash(cases, figure, case, of_all, answers, pair)
    if job:
        hints(cases, job, effort.seeds)
    return cases


def hints(cases, job, rounds):
    """Measures shuffle, burst and ping-pong through an MPI, every engine in turn."""
    runs = [
        (figure, f"{what}, N={count}", [what, count, min(max(200_000 // count, 20), 20_000)])
        for figure, what in (("3 MPI", "shuffle"), ("5a MPI", "burst"))
        for count in THROUGH_MPI
    ]
    for size in BYTES:
        for standing in STANDING:
            runs.append(("6 MPI", f"{size} B behind {standing}", ["pingpong", standing, 10_000, size]))
    for figure, case, words in runs:
        say(f"{case} through MPI")
        times = {name: [] for name in HASH}
        for _ in range(rounds):
            for name, of in HASH.items():
                times[name].append(job.value(job.run(job_settings(*of), words), "us"))
        for name, own in times.items():
            cases.put((figure, case, name, "us"), own)
            cases.put((figure, case, name, "speedup"), ratios(times["list linked"], own))


# Polling of channels

RATIOS = (1, 5, 10, 20, 50, 100, 200, 1000)  # polls of shared memory for one of the network (Figure 2)
# Channels: name, settings that force the channel, and the host of the other rank.
CHANNELS = (
    (polling.BUFFERS, {"kernel_copy": "off", "eager_size": 16384}, "near"),
    (polling.COPY, {"eager_size": 0}, "near"),
    (polling.NETWORK, {}, "far"),
)
# Gains in the paper's text.
GAINS = {
    ("4 B, near", "static:50"): 0.12,
    ("2048 B, near", "static:50"): 0.09,
    ("4 B, near", "static:1000"): 0.37,
    ("burst 200, both", "dynamic:8"): 0.45,
    ("burst 200, both", "dynamic:10"): 0.45,
}


def polling_runs():
    """Returns the runs of a round: policy or channel, settings, and arguments of the program."""
    costs, latency = ["cost", *polling.PEERS], ["latency", *polling.BYTES]
    bursts = ["discovery", *polling.BURSTS]
    # The number of polls between two sleeps of a waiting rank. One of R + 1 polls is of the network.
    looks = lambda ratio: ["looks", max(ratio, 50) + 1]
    policies = [("every", 0, costs + latency + bursts)]
    policies += [(f"static:{of}", of, (costs if of == 50 else []) + latency) for of in RATIOS]
    for history in polling.HISTORIES:
        more = costs + latency if history == 10 else []
        policies.append((f"dynamic:{history}", history, more + bursts))
    policies.append(("auto", 0, costs + latency + bursts))
    runs = [(policy, {"poll": policy}, looks(ratio) + words) for policy, ratio, words in policies]
    for channel, forced, place in CHANNELS:
        words = [*looks(0), place, "latency", *polling.SIZES, "bandwidth", *polling.SIZES]
        for size, times in polling.OVERLAPS:
            words += ["overlap", size, *times]
        runs.append((channel, forced, words))
    # Waiting ranks spin, so that the time of finding messages includes no wake-ups.
    return [(what, {"idle": "spin"} | set_to, words) for what, set_to, words in runs]


def read_polling(text, what, numbers):
    """Adds the numbers of a run by figure, case, and policy or channel."""
    is_channel = what in [channel for channel, *_ in CHANNELS]
    for line in re.findall(r"^polling mode=(.*)", text, re.MULTILINE):
        mode, *words = line.split()
        of = dict(word.split("=", 1) for word in words if "=" in word)
        size = of.get("bytes")
        if mode == "cost":
            key, value = ("1", f"{of['peers']} peers"), of["us"]
        elif mode == "latency" and is_channel:
            key, value = ("5", f"latency, {size} B"), of["us"]
        elif mode == "latency":
            key, value = ("2", f"{size} B, {of['where']}"), of["us"]
        elif mode == "discovery":
            key, value = ("4", f"burst {of['burst']}, {of['where']}"), of["us"]
        elif mode == "bandwidth":
            key, value = ("5", f"bandwidth, {size} B"), of["mb_per_s"]
        elif mode == "overlap":
            key, value = ("6", f"{size} B, {of['asked']} us"), float(of["compute_us"]) / float(of["us"])
        else:
            continue
        numbers[(*key, what)] = float(value)
    for burst in polling.BURSTS:
        of = [numbers.get(("4", f"burst {burst}, {place}", what)) for place in ("near", "far")]
        if None not in of:
            numbers["4", f"burst {burst}, both", what] = sum(of) / 2


def polling_cases(rounds):
    """Returns the medians with ranges of all rounds, and the gains over `every` in the same round."""
    cases = Cases()
    for key in dict.fromkeys(key for numbers in rounds for key in numbers):
        figure, case, what = key
        bandwidth = figure == "5" and case.startswith("bandwidth")
        metric = "MB/s" if bandwidth else "ratio" if figure == "6" else "us"
        cases.put((*key, metric), [numbers[key] for numbers in rounds if key in numbers])
        if figure in ("2", "4") and what != "every":
            every = (figure, case, "every")
            both = [(of[key], of[every]) for of in rounds if key in of and every in of]
            gains = [1 - own / other for own, other in both]
            cases.put((*key, "gain"), gains, GAINS.get((case, what)))
    return cases


def measure_polling(effort):
    job = Job(effort.command, "polling")
    text = effort.command and job.run({"idle": "spin"}, [])
    near, far = (text and job.value(text, name) for name in ("near", "far")) if text else (0, 0)
    if not near or not far:
        raise SystemExit(
            "polling needs a program on two hosts: rank 0, another rank on its host "
            f"(here {near:.0f}) and a rank on another host (here {far:.0f})"
        )
    runs = [run for run in polling_runs() if effort.only in run[0]]
    rounds = []
    for number in range(effort.seeds):
        rounds.append({})
        # Each round begins with another run, because the speed of a machine changes over time.
        first = number * len(runs) // effort.seeds
        for what, set_to, words in runs[first:] + runs[:first]:
            say(f"{what} through MPI, {number + 1} of {effort.seeds}")
            read_polling(job.run(set_to, words), what, rounds[-1])
    return polling_cases(rounds)


# Tail queues

DISTURBED = 0.03  # a turn is repeated if a thread waits for a core for a larger fraction of the turn
AGAIN = 1000  # maximum number of repeated turns of a row
OVERSUBSCRIBED = 4  # factor by which a turn with more threads than cores is longer


def processor():
    """Returns the model of the processor from /proc/cpuinfo."""
    text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
    model, family = (re.search(rf"^{of}[^:]*: (.*)", text, re.MULTILINE) for of in ("model name", "cpu family"))
    if not model:
        return f"{platform.machine()} processor"
    return model[1] + (f", family {family[1]}" if family else "")


def tail_queues_rows(only):
    """Returns the rows and applications whose names contain the text `only`. A comma is appended to each name, so
    that `,1,` selects length 1 and not length 16."""
    rows = [
        (lists, storage, lock, threads, length)
        for storage in tail_queues.STORAGES
        for lock in tail_queues.LOCKS
        for lists in tail_queues.FIGURES
        for threads in tail_queues.THREADS
        for length in tail_queues.LENGTHS
    ]
    rows = [row for row in rows if only in f"{tail_queues.row_name(*row)},"]
    applications = [of for of in tail_queues.TABLE_2 if only in f"{tail_queues.application(of)},"]
    if not rows and not applications:
        raise SystemExit(f"--only {only}: no row has this text in its name LISTS,STORAGE,LOCK,THREADS,LENGTH")
    return rows, applications


def measure_tail_queues(effort):
    rows, applications = tail_queues_rows(effort.only)
    cores = len(os.sched_getaffinity(0))
    cases = Cases()
    for metric, value in (("cores", cores), ("ms", effort.ms), ("turns", effort.seeds)):
        cases.put(("machine", processor(), "", metric), [float(value)])
    rates = {(row, of): [] for row in rows for of in tail_queues.CONTENDERS}
    again = dict.fromkeys(rows, 0)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with subprocess.Popen([BENCH, "threads"], **pipes) as bench:
        for number in range(effort.seeds if rows else 0):
            # Each round measures all rows: other programs disturb the machine for seconds, which would
            # otherwise affect all turns of a row.
            say(f"threads, {number + 1} of {effort.seeds}")
            for row, contender in rates:
                crowded = row[3] > cores
                ms = effort.ms * (OVERSUBSCRIBED if crowded else 1)
                while True:
                    print(f"{tail_queues.row_name(*row)},{contender},{ms}", file=bench.stdin)
                    rate, waited = map(float, bench.stdout.readline().split())
                    if crowded or waited < DISTURBED or again[row] == AGAIN:
                        break
                    # Another program used one of the cores: repeat the turn.
                    again[row] += 1
                rates[row, contender].append(rate)
    for row in rows:
        put_row(cases, row, {of: rates[row, of] for of in tail_queues.CONTENDERS}, again[row])
    for pattern in applications:
        say(tail_queues.application(pattern))
        put_statistics(cases, pattern, effort)
    return cases


def put_row(cases, row, rates, again):
    """Adds the rates of each contender, and the ratios of its rates to those of the one lock."""
    figure, name = tail_queues.FIGURES[row[0]], tail_queues.row_name(*row)
    for contender, own in rates.items():
        if contender != tail_queues.ONE:
            is_papers = (*row[:4], contender) == ("both", "linked", "mcs", 2, tail_queues.TAILS)
            paper = tail_queues.PAPER.get(row[4]) if is_papers else None
            cases.put((figure, name, contender, "ratio"), ratios(own, rates[tail_queues.ONE]), paper)
        cases.put((figure, name, contender, "M/s"), own)
    if again:
        metric = "disturbed" if again == AGAIN else "again"
        cases.put((figure, name, "", metric), [float(again)])


def put_statistics(cases, pattern, effort):
    """Adds the longest queues and deepest searches of a generated stream."""
    make = lambda place, seed: Stream.of_workload(place, pattern, tail_queues.RANKS, seed)
    with Streams(effort, make) as streams:
        # Both storages traverse a list alike, and packed lists are fast with thousands of elements.
        answers = [stream.replay([settings("list", "packed", 1)])[0] for stream in streams]
    for at, queue in enumerate(("PRQ", "UMQ")):
        longest = [answer["counted"][queue.lower()]["high_water"] for answer in answers]
        deepest = [answer["deepest"][at] for answer in answers]
        for metric, ours, paper in zip(
            ("longest", "deepest"), (longest, deepest), tail_queues.TABLE_2[pattern][at]
        ):
            cases.put(("T2", tail_queues.application(pattern), queue, metric), ours, float(paper))
