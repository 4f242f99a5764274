#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Computes the figures of `tcam answer`, `tcam replay --with` and `tcam sweep` by other means: from
operations.csv alone, with two lists in MPI order, and the costs of docs/devices.md. The traces are
generated ones and recordings in tests/data. `cargo test -p tcam-lab` runs this script."""

import argparse
import collections
import pathlib
import shutil
import sys
import time

import brute
import need
from lib import mpi as runs
from lib.brute_force import Context, brute_force
from lib.checks import check, exit_code
from need import tcam

QUEUES = ("prq", "umq")
LARGEST = 65536
# Match bits that an MPI ignores for its protocols; a receive that ignores others is one from any tag.
PROTOCOL = {"mpich": 0xC0_0000_0000_0000, "opaque": 0}
# What docs/devices.md has in its table: entries of PRQ and UMQ, and what Context is given. A device
# with a pool for 65,536 elements holds all of these traces.
DEVICES = {
    "cassini-hybrid": ((LARGEST, LARGEST), {}),
    "cassini-hardware": ((LARGEST, LARGEST), {}),
    "cassini-software": ((0, 0), {}),
    "connectx": ((1023, 0), {"model": "prefix", "refuse": ("any-source", "non-contiguous"), "below": 1024}),
    "portals4-ref": ((1024, 1024), {}),
    "alpu": ((256, 256), {}),
    "uet": ((LARGEST, 0), {"refuse": ("any-tag",)}),
    "ideal": ((LARGEST, LARGEST), {}),
}
# Devices with a pool, and the entries of each rank for buffers.
POOLS = {"cassini-hybrid": 9, "cassini-hardware": 3}
ENGINES = 4
# Device of a comparison with tables so small that most of these traces overflow.
SMALL = ((5, 3), {})


def near(ours, theirs):
    if isinstance(ours, float) and theirs is not None:
        return abs(ours - theirs) <= 1e-9 * max(abs(ours), 1)
    return ours == theirs


def agree(what, theirs, ours):
    """Checks the fields of a record that `ours` has."""
    for name, value in ours.items():
        check(near(value, theirs[name]), f"{what}: {name} is {theirs[name]}, by hand {value}")


def percent(part, whole):
    return 100 * part / whole if whole else 0.0


def told_share(percent):
    """Returns a share in whole per cent, of which only 0 and 100 are written as such."""
    if 0 < percent < 1:
        return "< 1 %"
    return "> 99 %" if 99 < percent < 100 else f"{percent:.0f} %"


def cost_of_search(entries):
    """Returns the cost in ns of a search of this many entries with cpu-list."""
    points = [(0, 0.0), (64, 64 * 2.7), (1024, 1024 * 4.5), (8192, 8192 * 5.1)]
    for (before, least), (after, most) in zip(points, points[1:]):
        if entries <= after:
            return least + (most - least) * (entries - before) / (after - before)
    return entries * 5.1


def cost_of_overflow(queue, way):
    """Returns the cost in ns that overflow has in a queue. `way`: with 500 ns to the host and 500 ns
    back."""
    ways = 1000 * len(queue.host_searches) if way and queue.entries else 0
    searches = sum(map(cost_of_search, queue.host_searches))
    return searches + ways + 3 * queue.counts["spills"] + 22 * queue.counts["promotions"]


class Replay:
    """The contexts of all ranks after a replay, and the figures that follow from them."""

    def __init__(self, traces, entries, model="spill", **limits):
        self.entries = entries
        limits |= {"tag_bits": ~traces.protocol}
        self.all = brute_force(traces.operations, entries, model, **limits)
        self.tagged = [of for (_, name), of in self.all.items() if name == "tagged"]
        self.own = [of for (_, name), of in self.all.items() if name != "tagged"]

    def count(self, queue, name):
        return sum(getattr(of, queue).counts[name] for of in self.tagged)

    def both(self, name):
        return sum(self.count(queue, name) for queue in QUEUES)

    def reasons(self):
        return sum((getattr(of, queue).reasons for of in self.tagged for queue in QUEUES), collections.Counter())

    def of_mpi(self, name):
        return sum(getattr(of, queue).counts[name] for of in self.own for queue in QUEUES)

    def messages(self):
        return sum(of.arrived for of in self.tagged)

    def compared(self):
        return sum(getattr(of, queue).host_entries for of in self.tagged for queue in QUEUES) / self.messages()

    def shares(self):
        """Returns the figures that a line of compare and one of sweep have in common."""
        found = {
            "messages": self.messages(),
            "immediate_percent": 100 - percent(self.both("spills"), self.both("inserts")),
            "promoted_percent": percent(self.both("promotions"), self.both("inserts")),
            "in_table_percent": percent(self.both("table_matches"), self.messages()),
            "internal_spills": self.of_mpi("spills"),
        }
        return found | {f"{queue}_spills": self.count(queue, "spills") for queue in QUEUES}

    def costs(self, way=False):
        """Returns the cost in ns that overflow has on each rank."""
        costs = collections.Counter()
        for (rank, name), of in self.all.items():
            if name == "tagged":
                costs[rank] += sum(cost_of_overflow(getattr(of, queue), way) for queue in QUEUES)
        return costs


class Traces:
    """Traces in a directory, with their operations."""

    def __init__(self, arguments, place, layout, times):
        self.place, self.times, self.protocol = place, times, PROTOCOL[layout]
        self.operations = brute.exported(arguments, place)
        self.done = need.history(self.operations, times)
        self.ranks = 1 + max(int(row["rank"]) for row in self.operations)
        self.seconds = max(int(row["ns"]) for row in self.operations) * 1e-9
        self.replays = {}

    def replay(self, entries, **limits):
        key = entries, *limits.items()
        if key not in self.replays:
            self.replays[key] = Replay(self, entries, **limits)
        return self.replays[key]


def judgement(replay, pool):
    """Returns the figures of a judgement, and its sentence."""
    spills, own = replay.both("spills"), replay.of_mpi("spills") if pool else 0
    why, design = [], 0
    for queue in QUEUES:
        of = sum((getattr(context, queue).reasons for context in replay.tagged), collections.Counter())
        design += of["disabled"] + of["refused"] + of["short"]
        why += [f"has no {queue.upper()}"] if of["disabled"] else []
        why += [f"refuses {of['refused']:,} receive{'s' * (of['refused'] != 1)}"] if of["refused"] else []
        why += [f"small buffers: {of['short']:,}"] if of["short"] else []
    rest = {name: of for name, of in replay.reasons().items() if name not in ("disabled", "refused", "short")}
    overflowed = spills + own - design
    if overflowed:
        most = max(rest, key=lambda name: (rest[name], name))
        share = percent(overflowed, replay.both("inserts") + (replay.of_mpi("inserts") if pool else 0))
        why.append(f"{'behind spilled' if most == 'order' else most.replace('_', ' ')}: {overflowed:,} ({told_share(share)})")
    return {"suffices": spills + own == 0, "by_design": design, "overflowed": overflowed, "why": "; ".join(why)}


def latencies(traces, entries):
    """Returns the latencies of arrivals and posts in ns, as "The model" in docs/devices.md has them."""
    found, contexts, busy = {"arrival": [], "post": []}, {}, collections.Counter()
    for row in traces.operations:
        key = row["rank"], row["context"]
        context = contexts.setdefault(key, Context(entries, "spill", ()))
        queues = context.prq, context.umq

        def spent(queues=queues):
            return sum(cost_of_overflow(queue, False) for queue in queues)

        before = spent()
        for queue in queues:
            queue.host_searches.clear()
        before = spent()
        context.play(row)
        at, cost = int(row["ns"]), spent() - before
        if row["operation"] not in ("processes", "held") and (cost or row["operation"] != "cancel"):
            busy[key] = max(at, busy[key]) + cost
            kind = {"arrive": "arrival", "post": "post", "post anyway": "post"}.get(row["operation"])
            if kind and row["context"] == "tagged":
                found[kind].append(busy[key] - at)
    return found


def compared(arguments, what, traces):
    """Checks the lines of `tcam replay --with`, with and without costs, and its judgements."""
    small = ["--with=device=alpu,prq_entries=5,umq_entries=3"]
    for timed, words in ((False, []), (True, ["--timing=cpu-list"])):
        words = ["--json=-", "--set=host_engine=list", *words]
        told = [tcam(arguments, "replay", *words, *more, traces.place) for more in (["--with=devices"], small)]
        lines = told[0]["lines"][1:] + told[1]["lines"][1:]
        judged = told[0]["judged"][1:] + told[1]["judged"][1:]
        names = [*DEVICES, small[0].removeprefix("--with=")]
        check([line["what"] for line in lines] == names, f"{what}: {lines}")
        for name, line, judgment, (entries, limits) in zip(names, lines, judged, [*DEVICES.values(), SMALL]):
            replay = traces.replay(entries, **limits)
            ours = replay.shares() | {"ranks_a_node": None}
            for queue in QUEUES:
                ours[f"{queue}_spilled_percent"] = percent(replay.count(queue, "spills"), replay.count(queue, "inserts"))
            if name not in POOLS:
                ours |= dict(zip(("prq_entries", "umq_entries"), entries))
            reasons = replay.reasons()
            most = max(reasons, key=lambda reason: (reasons[reason], reason), default="")
            ours["mostly"] = most.replace("_", " ")
            a_message = sum(replay.costs().values()) / replay.messages()
            ours |= {"matching_ns": a_message, "added_ns": a_message} if timed else {"matching_ns": None}
            ours["host_traversed_a_message"] = replay.compared()
            ours["host_entries_a_message"] = None if timed else replay.compared()
            agree(f"{what}, compare {name}", line, ours)
            agree(f"{what}, judgement of {name}", judgment, judgement(replay, name in POOLS))
    # Quantiles are means of buckets 3 % wide.
    for kind, all_of in latencies(traces, SMALL[0]).items():
        all_of.sort()
        mean = sum(all_of) / len(all_of)
        check(abs(line[f"{kind}_mean_ns"] - mean) < 1e-6 * mean + 1e-3, f"{what}: {kind} {line}, not {mean} ns")
        for name, share in (("median", 0.5), ("99_percent", 0.99)):
            at, theirs = share * len(all_of), line[f"{kind}_{name}_ns"]
            least, most = all_of[max(int(at) - 1, 0)], all_of[min(int(at) + 1, len(all_of) - 1)]
            check(0.96 * least <= theirs <= 1.04 * most, f"{what}: {kind} {name} {theirs}, not {least} to {most} ns")


def longest(contexts, queue):
    """Returns the length of the longest queue, and its rank."""
    lengths = [(getattr(of, queue).counts["high_water"], rank) for (rank, name), of in contexts.items() if name == "tagged"]
    most = max(length for length, _ in lengths)
    return most, {rank for length, rank in lengths if length == most}


def sizes_around(entries):
    """Returns the sizes of a sweep around a need."""
    powers = {1 << bit for bit in range(17)}
    most = min(power for power in powers if power >= entries)
    least = min(power for power in powers if power >= max(entries // 16, 1))
    sizes = {power for power in powers if least <= power <= min(2 * most, LARGEST)}
    quarters = {-(-entries * quarters // 4) for quarters in (1, 2, 3)}
    quarters -= {size for size in quarters if any(8 * abs(size - power) <= size for power in sizes)}
    return sorted({0, entries, *sizes, *quarters})


def swept(arguments, what, traces):
    """Checks the rows of `tcam sweep`, the sizes that it chooses, and the smallest tables."""
    out = f"--out={need.PLACE / 'sweep'}"
    told = tcam(arguments, "sweep", "--json=-", out, "--trace", traces.place)
    timed = tcam(arguments, "sweep", "--json=-", out, "--timing=cpu-list", "--set=host_engine=list", "--trace", traces.place)
    all_of = traces.replay((LARGEST, LARGEST))
    peaks = {queue: longest(all_of.all, queue) for queue in QUEUES}
    needed = max(most for most, _ in peaks.values())
    for queue, (most, ranks) in peaks.items():
        check(told[f"{queue}_high_water"] == most, f"{what}: {queue} of {told[f'{queue}_high_water']}, not {most}")
        check(told[f"{queue}_high_water_rank"] in ranks, f"{what}: {queue} of {told[f'{queue}_high_water_rank']}, not {ranks}")
        agree(f"{what}, sweep", told[f"{queue}_needs"], {"min": most, "median": float(most), "max": most, "runs": 1})
    power = next(1 << bit for bit in range(17) if 1 << bit >= needed)
    agree(f"{what}, sweep", told, {"needed_entries": needed, "recommended_entries": power, "sizes_of": "tables"})
    agree(f"{what}, sweep", told["needs"][0], {"tables": [most for most, _ in peaks.values()]})
    check([run["prq_entries"] for run in told["runs"]] == sizes_around(needed), f"{what}: sizes of {told['runs']}")
    for run, of_time in zip(told["runs"], timed["runs"]):
        size = run["prq_entries"]
        replay = traces.replay((size, size))
        ours = replay.shares() | {"umq_entries": size, "pool_entries": None, "ranks": len({rank for rank, _ in replay.all})}
        ours["unexpected"] = replay.count("umq", "inserts")
        ours["spilled_percent"] = percent(replay.both("spills"), replay.both("inserts"))
        for queue in QUEUES:
            for name in ("inserts", "table_matches", "host_matches", "spills", "promotions"):
                ours[f"{queue}_{name}"] = replay.count(queue, name)
            ours[f"{queue}_high_water"] = peaks[queue][0]
        agree(f"{what}, sweep at {size}", run, ours | {"host_entries_a_message": replay.compared()})
        costs, arrived = replay.costs(), collections.Counter()
        for (rank, name), of in replay.all.items():
            arrived[rank] += of.arrived if name == "tagged" else 0
        a_message = sum(costs.values()) / replay.messages()
        ours |= {"matching_ns": a_message, "added_ns": a_message}
        ours["added_ns_worst_rank"] = float(max(cost / max(arrived[rank], 1) for rank, cost in costs.items()))
        agree(f"{what}, costs at {size}", of_time, ours)
    smallest_tables(what, traces, told["smallest_tables"])


def smallest_tables(what, traces, told):
    """Checks the smallest tables with which at most some share of the elements spills."""

    def spills(size, queue, of):
        replay = traces.replay((size, size))
        names = {"collective": ["collective"], "point-to-point": ["", "point-to-point", "rma"]}
        kinds = [("spills", kind) for kind in names[of]] if of in names else ["spills"]
        contexts = [context for (rank, name), context in replay.all.items()
                    if name == "tagged" and (not of.startswith("rank") or of == f"rank {rank}")]  # fmt: skip
        each = [sum(getattr(context, queue).counts[kind] for kind in kinds) for context in contexts]
        return each if of == "worst rank" else [sum(each)]

    shares = {"no_spill": 0, "spilled_1_percent": 0.01, "spilled_5_percent": 0.05, "spilled_10_percent": 0.1}
    for line in told:
        without = spills(0, line["queue"], line["of"])
        for name, share in shares.items():

            def fits(size, line=line, without=without, share=share):
                return all(of <= share * all_of for of, all_of in zip(spills(size, line["queue"], line["of"]), without))

            size = line[name]
            check(fits(size) and (size == 0 or not fits(size - 1)), f"{what}: {name} of {line} is {size}")
    names = [line["of"] for line in told]
    check(names[:8] == [of for of in ("worst rank", "all ranks", "collective", "point-to-point") for _ in QUEUES], str(names))
    check(len(set(names[8:])) == traces.ranks, f"{what}: {names}")


def late(traces):
    """Returns the longest UMQ of a rank and of all ranks if each message came when it, or a later one
    of its source, was first needed, as the decision on unavoidable messages defines it."""
    contexts, at_nic = collections.defaultdict(list), sorted(
        range(len(traces.operations)), key=lambda at: int(traces.operations[at]["ns"])
    )  # fmt: skip
    place = {at: number for number, at in enumerate(at_nic)}
    for at, row in enumerate(traces.operations):
        if row["context"] == "tagged":
            contexts[row["rank"]].append((place[at], row))
    of_rank, changes = 0, []
    for rows in contexts.values():
        messages, mine = [], []
        for at, row in rows:
            what, found = row["operation"], row["found"] == "true"
            if what == "arrive":
                # source, first needed, removed
                messages.append([row["source"], at, at] if found else [row["source"], None, None])
                continue
            number = row["partner"] if what in ("post", "post anyway") else row["number"]
            if what in ("post", "post anyway", "peek", "claim", "discard", "drop") and found:
                message = messages[int(number)]
                message[1] = at if message[1] is None and what != "drop" else message[1]
                message[2] = message[2] if what == "peek" else at
        for number, (source, _, left) in enumerate(messages):
            needed = [first for of, first, _ in messages[number:] if of == source and first is not None]
            if needed and (left is None or min(needed) < left):
                mine += [(min(needed), 1)] + ([(left, -1)] if left is not None else [])
        of_rank = max(of_rank, peak_of(mine))
        changes += mine
    return of_rank, peak_of(changes)


def peak_of(changes):
    now = most = 0
    for _, change in sorted(changes):
        now += change
        most = max(most, now)
    return most


def divided(traces, buffers):
    """Returns the range of a pool that four engines divide, of which each rank uses one, with entries
    for the buffers of each rank."""
    units = collections.defaultdict(need.Unit)
    now = collections.Counter()
    for of in traces.done:
        unit = of.rank
        now[unit] += sum(change for _, _, change in of.changes)
        if of.changes:
            units[unit].add(now[unit], of)
    # Ranks get engines in turn.
    ranges = []
    for engine in range(ENGINES):
        mine = {unit: of for unit, of in units.items() if unit % ENGINES == engine}
        if mine:
            least, most = need.peak(mine.values())
            alone = max(max(of.values) for of in mine.values())
            own = buffers * len({of.rank for of in traces.done if of.rank % ENGINES == engine})
            ranges.append((max(least, alone) + own, most + own))
    return {name: ENGINES * max(of) for name, of in zip(("least", "most"), zip(*ranges))}


def answered(arguments, what, traces):
    """Checks the figures of `tcam answer` for one recording on one host."""
    told = tcam(arguments, "answer", "--json=-", f"--plot={need.PLACE / 'answer.svg'}", traces.place)
    least, most = need.needs(traces.done, traces.ranks, 0, "block")[0]["peak_total"].values()
    messages, seconds = traces.replay((0, 0)).messages(), traces.seconds
    ours = {"messages": messages, "seconds": seconds}
    agree(f"{what}, answer", told | {name: told[name]["most"] for name in ours}, ours | {"ranks": traces.ranks, "nodes": None})
    of_rank, of_nic = late(traces)
    check(told["rank"]["umq_at_least"]["most"] == of_rank, f"{what}: {told['rank']}, not {of_rank}")
    if traces.times == "generated":
        check(told["nic"]["umq_at_least"]["most"] == of_nic, f"{what}: {told['nic']}, not {of_nic}")
    check(told["nic"]["peak_total"] == {"least": least, "most": most}, f"{what}: {told['nic']}, not {least} to {most}")
    check([of["device"] for of in told["devices"]] == list(DEVICES), f"{what}: {told['devices']}")
    for device, (entries, limits) in zip(told["devices"], DEVICES.values()):
        replay, pool = traces.replay(entries, **limits), device["device"] in POOLS
        ours = judgement(replay, pool)
        unbounded = traces.replay(tuple(LARGEST if size else 0 for size in entries), **limits)
        needs = [max(getattr(of, queue).counts["table_high_water"] for of in unbounded.tagged) for queue in QUEUES]
        needs = [divided(traces, POOLS[device["device"]])] if pool else [{"least": need, "most": need} for need in needs]
        ours |= {"unit": "NIC" if pool else "rank", "entries": [LARGEST] if pool else list(entries), "needs": needs}
        fits = not ours["overflowed"] or all(need["most"] <= size for need, size in zip(needs, ours["entries"]))
        ours |= {"suffices_in": int(ours["suffices"]), "fits_in": int(fits)}
        for way, name in ((False, "cpu_list_percent"), (True, "with_way_percent")):
            value = float(max(replay.costs(way).values())) * 1e-7 / seconds
            agree(f"{what}, {device['device']} {name}", device[name], {"least": value, "most": value})
        agree(f"{what}, answer for {device['device']}", device, ours)
    # A pool of all ranks: without a spill it is that of the need.
    sizes = [of["entries"] for of in told["sizes"]]
    power = next(1 << bit for bit in range(30) if 1 << bit >= most)
    check(sizes == [size for size in sizes_around(most) if 0 < size <= power], f"{what}: {sizes} around {most}")
    for of in told["sizes"]:
        fits = of["immediate_percent"]["least"] == 100
        check(fits >= (of["entries"] >= most), f"{what}: {of} of {most}")
        check((of["with_way_percent"]["most"] == 0) == (of["cpu_list_percent"]["most"] == 0), f"{what}: {of}")
        check(of["cpu_list_percent"]["most"] == 0 or not fits or of["entries"] < most, f"{what}: {of}")


def moments(arguments, what, traces):
    """Checks the needs of each rank and of the NIC at the moment when they held most."""
    told = tcam(arguments, "show", "--json=-", traces.place)["need"]
    now, mosts = collections.Counter(), collections.defaultdict(lambda: (0, 0.0, {}))
    for of in traces.done:
        for kind, _, change in of.changes:
            now[of.rank, kind] += change
            now["nic", kind] += change
        for unit in (of.rank, "nic"):
            held = {kind: now[unit, kind] for kind in need.KINDS}
            if sum(held.values()) > mosts[unit][0]:
                mosts[unit] = sum(held.values()), of.ns * 1e-9, held
    units = [(of["ranks"][0], of) for of in told["ranks"]]
    check(sorted(rank for rank, _ in units) == list(range(traces.ranks)), f"{what}: {units}")
    check([of["peak_total"]["most"] for _, of in units] == sorted((of["peak_total"]["most"] for _, of in units), reverse=True), f"{what}: order")
    for unit, of in [*units, ("nic", told["nics"][0])]:
        most, at, held = mosts[unit]
        if unit != "nic" or traces.times == "generated":
            check(of["peak_total"] == {"least": most, "most": most}, f"{what}: {unit} {of}, not {most}")
            agree(f"{what}, moment of {unit}", of | of["at_peak"], held | {"at_s": at})
    check(told["uncertain_ns"] == (2 * need.ERROR if traces.times == "exact" else 0), f"{what}: {told['uncertain_ns']}")


def figures(arguments, what, traces):
    compared(arguments, what, traces)
    swept(arguments, what, traces)
    answered(arguments, what, traces)
    moments(arguments, what, traces)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    parser.add_argument("--place", type=pathlib.Path, default=runs.TARGET / "figures-tests")
    arguments = parser.parse_args()
    brute.PLACE = need.PLACE = arguments.place
    shutil.rmtree(arguments.place, ignore_errors=True)
    cases = [("seed-1", "opaque", "generated"), ("lulesh-27", "mpich", "exact")]
    for name, layout, times in cases:
        started, place = time.monotonic(), arguments.place / name
        if times == "generated":
            need.generate(place, int(name.removeprefix("seed-")))
        else:
            shutil.unpack_archive(need.DATA / f"{name}.tar.xz", arguments.place)
        traces = Traces(arguments, place, layout, times)
        figures(arguments, name, traces)
        if times == "generated":
            need.judge(arguments, name, place, [(2, "cyclic")], times)
        print(f"  {name}: {time.monotonic() - started:.1f} s", flush=True)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
