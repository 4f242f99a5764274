# SPDX-License-Identifier: BSD-2-Clause
"""Measures streams with `tcam replay --time`. Converts the counters and times of the engines to the numbers that models
learn from."""

import collections
import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
# Kinds of work of an engine, whose amounts are equal in every replay. Cells are the elements that a search traverses
# in the host's queues. They are counted by their position in the search, because a cell costs more if the search
# exceeds a level of the cache.
WORK = (
    "streams operations host_inserts host_removals host_found host_not_found cells_8 cells_128 cells_2048 "
    "cells_beyond host_span queue_steps dedicated table_inserts table_removals table_searches turns jumps"
).split()
CELLS = {"cells_8": (0, 8), "cells_128": (8, 128), "cells_2048": (128, 2048), "cells_beyond": (2048, math.inf)}
MOMENTS = ("mean", "deviation", "variance", "quartile_1", "quartile_2", "quartile_3")
# The inputs of the classifiers. The first twelve features are those of the paper.
FEATURES = [f"{what}_{of}" for what in ("cells", "bytes") for of in MOMENTS] + (
    "cells_not_found share_not_found share_on_host share_wildcards share_collective sources host_high_water "
    "share_turns share_jumps"
).split()

# A stream. `costs` has (nanoseconds, work) by (engine, queue).
Sample = collections.namedtuple("Sample", "name kind features costs")


def middles(profile):
    """Yields (middle, count) of the buckets: one for each value below 32, then 16 for each power of two."""
    for low, count in profile["buckets"]:
        yield low + ((1 << max(low.bit_length() - 5, 0)) - 1) // 2, count


def moments(*profiles):
    """Returns mean, deviation, variance and quartiles of all profiles together, or zeros if they are empty."""
    count, total, squares = (sum(of[what] for of in profiles) for what in ("count", "sum", "squares"))
    if count == 0:
        return [0.0] * len(MOMENTS)
    variance = (squares * count - total * total) / count**2
    values = sorted(bucket for profile in profiles for bucket in middles(profile))
    up_to = np.cumsum([count for _, count in values])
    quartiles = [values[np.searchsorted(up_to, math.ceil(count * part / 4))][0] for part in (1, 2, 3)]
    return [total / count, math.sqrt(variance), variance, *quartiles]


def work_of(counters, census):
    work = dict.fromkeys(WORK, 0.0) | {"streams": 1, "turns": census["turns"], "jumps": census["jumps"]}
    work["operations"] = counters["posts"] + counters["arrivals"] + counters["peeks"]
    for queue in (counters["prq"], counters["umq"]):
        found, not_found = queue["traversals"]["found"], queue["traversals"]["not_found"]
        inserts = queue["spills"] + queue["onloads"]
        removals = queue["host_matches"] + queue["host_cancels"] + queue["promotions"] - queue["host_kept"]
        levels = sum(map(len, queue["dedicated_levels"].values()))
        work["host_inserts"] += inserts
        work["host_removals"] += removals
        work["host_found"] += found["count"]
        work["host_not_found"] += not_found["count"]
        # An element costs more if the elements are far apart in memory.
        work["host_span"] += (inserts + removals) * math.log1p(queue["host_high_water"] / 64)
        work["queue_steps"] += (found["count"] + not_found["count"]) * levels
        work["dedicated"] += queue["dedicated_collective"] + queue["dedicated_point_to_point"]
        work["table_inserts"] += queue["inserts"] + queue["promotions"] - queue["spills"]
        gone = queue["table_matches"] + queue["table_cancels"] + queue["onloads"] - queue["table_kept"]
        work["table_removals"] += gone
        work["table_searches"] += queue["searches"] if queue["entries"] else 0
        for cells, count in (*middles(found), *middles(not_found)):
            for name, (low, high) in CELLS.items():
                work[name] += (min(max(cells, low), high) - low) * count
    return np.array([work[name] for name in WORK])


def features_of(counters, census):
    """Returns the features from the counters of a list. All but shares are logarithms, ln(1 + x)."""
    queues, kinds = (counters["prq"], counters["umq"]), counters["kinds"]
    found, not_found = ([of["traversals"][what] for of in queues] for what in ("found", "not_found"))
    missed = sum(of["count"] for of in not_found)
    searched = missed + sum(of["count"] for of in found)
    shares = [
        (missed, searched),
        (searched, sum(of["searches"] for of in queues)),
        (census["wildcards"], census["receives"]),
        (kinds["collective"]["arrivals"], counters["arrivals"]),
        (census["turns"], counters["posts"] + counters["arrivals"]),
        (census["jumps"], counters["arrivals"]),
    ]
    shares = [part / max(whole, 1) for part, whole in shares]
    numbers = [*moments(*found), *moments(counters["sizes"]), moments(*not_found)[0]]
    numbers += [census["sources"], max(of["host_high_water"] for of in queues)]
    logs = np.log1p(numbers)
    return np.round([*logs[:13], *shares[:4], *logs[13:], *shares[4:]], 6)


def census_of(operations):
    """Counts turns (operations whose kind or result differs from the previous operation), jumps (matches that are
    no neighbours of the previous match) and sources."""
    before, found, sources, turns, jumps = None, {}, set(), 0, 0
    for row in operations:
        operation = row["operation"]
        matches = operation in ("post", "arrive")
        now = (operation, row["found"]) if matches else None
        turns, before = turns + (now != before), now
        if matches and row["partner"]:
            jumps += abs(int(row["partner"]) - found.get(operation, 0)) > 1
            found[operation] = int(row["partner"])
        if operation == "arrive":
            sources.add(row["source"])
    return {"turns": turns, "jumps": jumps, "sources": len(sources)}


def run(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


def measure(tcam, name, kind, trace, entries, processes=1):
    """Returns the sample of a trace with median times over several processes. Returns None if no element spills
    to the host, because the engines are then not measured."""
    with tempfile.TemporaryDirectory() as place:
        run(tcam, "show", "--format=csv", "--partial", f"--out={place}", trace)
        with open(f"{place}/operations.csv") as file:
            census = census_of(csv.DictReader(file))
    words = ("--partial", f"--prq={entries}", f"--umq={entries}", "--operations=1000000000", "--json=-", trace)
    facts = [json.loads(run(tcam, "replay", "--time", *words)) for _ in range(processes)]
    census |= {of: facts[0][of] for of in ("receives", "wildcards")}
    costs, times = {}, collections.defaultdict(list)
    for of in (of for fact in facts for of in fact["cases"][0]["engines"]):
        contender = of["engine"], of["queue"]
        times[contender].append(of["ns_a_message"]["median"] * facts[0]["messages"])
        costs[contender] = np.median(times[contender]), work_of(of["counters"], census)
        if contender == ("list", "linked"):
            features = features_of(of["counters"], census)
    is_measured = all(ns > 0 for ns, _ in costs.values())
    return Sample(name, kind, features, dict(sorted(costs.items()))) if is_measured else None


def read():
    """Yields the samples of the training set."""
    costs = collections.defaultdict(dict)
    with (HERE / "costs.csv").open() as file:
        for row in csv.DictReader(file):
            work = np.array([float(row[of]) for of in WORK])
            costs[row["name"]][row["engine"], row["queue"]] = float(row["ns"]), work
    with (HERE / "samples.csv").open() as file:
        for row in csv.DictReader(file):
            features = np.array([float(row[of]) for of in FEATURES])
            yield Sample(row["name"], row["kind"], features, costs[row["name"]])


def write(samples):
    with (HERE / "samples.csv").open("w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("name", "kind", *FEATURES))
        writer.writerows((of.name, of.kind, *(f"{number:.10g}" for number in of.features)) for of in samples)
    with (HERE / "costs.csv").open("w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("name", "engine", "queue", "ns", *WORK))
        for sample in samples:
            for of, (ns, work) in sample.costs.items():
                writer.writerow((sample.name, *of, round(ns), *(f"{number:.10g}" for number in work.round(1))))
