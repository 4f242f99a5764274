#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks `tcam settings` with programs that imitate public reports about Slingshot. The expected figures
were calculated by hand, and the demand of each rank is computed again from operations.csv alone."""

import argparse
import collections
import csv
import itertools
import json
import pathlib
import re
import shutil
import subprocess
import sys

from lib import mpi as runs
from brute import Writer
from lib.checks import check, exit_code
from lib.slowness import within

PLACE = runs.TARGET / "settings-tests"
# Defaults of libfabric 2.6: the longest eager message, and the part of a longer one that is sent early.
EAGER, FIRST_PART = 16_384 + 2_049, 2_048
ENTRIES, IDS = 16_384, 65_536 - 9
# Receives that MPICH posts for itself, and those of a barrier.
OWN = 8
OWN_OR_MORE = range(OWN, OWN + 6)


def tcam(arguments, *words, codes=(0, 1)):
    command = [str(arguments.tcam), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=within(120), check=False)
    check(done.returncode in codes, f"{' '.join(command)}: {done.returncode} {done.stderr[-500:]}")
    return done


def record(arguments, name, ranks, program, *words, settings=("trace_sends=on",)):
    place = PLACE / name
    launched = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", str(ranks), str(program), *map(str, words)]
    set_all = [f"--set={one}" for one in settings]
    tcam(arguments, "run", f"--trace={place}", "--mpi=mpich", *set_all, "--", *launched, codes=(0,))
    return place


# Each rank has a NIC, or all ranks share one.
NICS = (["--ppn=1"], [])


def settings(arguments, place, *words):
    done = tcam(arguments, "settings", "--json=-", *words, place)
    return json.loads(done.stdout), done.returncode


def value(told, name):
    return next((int(of["value"]) for of in told["settings"] if of["name"] == f"FI_CXI_{name}"), None)


def mode(told):
    return next(of["value"] for of in told["settings"] if of["name"] == "FI_CXI_RX_MATCH_MODE")


def of_mode(told, name):
    return next(of for of in told["modes"] if of["mode"] == name)


def demand(arguments, place):
    """Returns the largest numbers of a rank from operations.csv: receives that wait, unexpected messages,
    bytes of these in buffers, and long sends without a receive."""
    out = place.with_name(f"{place.name}-csv")
    tcam(arguments, "show", "--format=csv", f"--out={out}", place, codes=(0,))
    with (out / "operations.csv").open(encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["ns"]))
    now, most = collections.defaultdict(collections.Counter), collections.Counter()
    unexpected, posted = {}, {}
    # The times of the sends of each pair, and the times of the posts of their receives.
    sent, received = collections.defaultdict(list), collections.defaultdict(dict)

    def change(rank, what, by):
        now[rank][what] += by
        most[what] = max(most[what], now[rank][what])

    for row in rows:
        rank, context, found = row["rank"], row["context"], row["found"] == "true"
        size, ns = int(row["bytes"] or 0), int(row["ns"])
        if row["operation"] == "send":
            sent[rank, row["destination_rank"], context].append((ns, size))
        elif row["operation"] == "arrive":
            pair = row["source_rank"], rank, context
            number = len(received[pair])
            received[pair][number] = None
            if found:
                change(rank, "receives", -1)
                received[pair][number] = posted[rank, context, row["partner"]]
            else:
                unexpected[rank, context, row["number"]] = pair, number, size
                change(rank, "unexpected", 1)
                change(rank, "bytes", size if size <= EAGER else FIRST_PART)
        elif row["operation"] == "post" and not found:
            posted[rank, context, row["number"]] = ns
            change(rank, "receives", 1)
        elif row["operation"] == "post":
            pair, number, size = unexpected.pop((rank, context, row["partner"]))
            received[pair][number] = ns
            change(rank, "unexpected", -1)
            change(rank, "bytes", -(size if size <= EAGER else FIRST_PART))
    waiting = collections.defaultdict(list)
    for pair, all_sent in sent.items():
        for number, (ns, size) in enumerate(all_sent):
            end = received[pair].get(number)
            if size > EAGER and (end is None or end > ns):
                waiting[pair[0]] += [(ns, 1)] + ([] if end is None else [(end, -1)])
    for changes in waiting.values():
        most["sends"] = max(most["sends"], *itertools.accumulate(by for _, by in sorted(changes)))
    return most


def agrees(what, told, by_hand):
    names = {"receives": "receives", "unexpected": "unexpected", "unexpected_bytes": "bytes", "open_sends": "sends"}
    theirs = {name: told["needs"][name] for name in names}
    own = {name: {"least": by_hand[of], "most": by_hand[of]} for name, of in names.items()}
    check(theirs == own, f"{what}: {theirs}, from operations.csv {own}")


def receives_before_sends(arguments, slingshot):
    """More receives than an engine has entries: mode hardware aborts, and mode hybrid matches some of them
    on the host."""
    place = record(arguments, "posted", 2, slingshot, "posted", 10_000, 64)
    told, code = settings(arguments, place, "--ppn=1", "--stack=cray-mpich")
    agrees("posted", told, demand(arguments, place))
    entries = told["list_entries"]["most"]
    check(entries - 20_001 - 3 in OWN_OR_MORE, f"posted: {entries} list entries")
    own = entries - 20_001 - 3
    hardware, hybrid = of_mode(told, "hardware"), of_mode(told, "hybrid")
    check(hardware["aborts_in"] == 1 and f"receive {ENTRIES - 3 - own + 1:,} that waits" in hardware["says"], f"{hardware}")
    # Elements of the MPI itself may have an entry at that moment or not.
    on_host = re.search(r"([\d,]+) receives \(18 %\)", hybrid["says"])
    later = int(on_host[1].replace(",", "")) if on_host else 0
    check(abs(later - (20_001 + own - (ENTRIES - 9))) <= 2, f"{hybrid}")
    check(code == 1 and mode(told) == "hybrid" and "does not help here" in f"{told['settings']}", f"{told}")
    check(value(told, "OFLOW_BUF_SIZE") == value(told, "REQ_BUF_SIZE") == 1 << 20, f"{told['settings']}")
    queues = 2 * 64 * value(told, "DEFAULT_CQ_SIZE")
    check(sum(told["bytes_a_rank"].values()) == queues + (9 << 20), f"{told['bytes_a_rank']}")
    lines = tcam(arguments, "settings", "--ppn=1", "--stack=cray-mpich", place).stdout
    check("124 MiB a rank" in " ".join(lines.replace("\n# ", " ").split()), lines)
    # The output is a part of a script, and --check accepts it.
    check(all(line.startswith(("# ", "export FI_")) for line in lines.splitlines()), lines)
    script = PLACE / "job.sh"
    script.write_text(lines)
    done = tcam(arguments, "settings", "--check", "--stack=cray-mpich", script)
    check(done.returncode == 0, done.stdout)
    # What fits without a margin does not fit with it.
    place = record(arguments, "nearly", 2, slingshot, "posted", 8_000, 64)
    for margin, expected in ((1, "hardware"), (1.25, "hybrid")):
        told, code = settings(arguments, place, "--ppn=1", f"--margin={margin}")
        check(mode(told) == expected and of_mode(told, "hardware")["aborts_in"] == 0, f"{margin}: {told['settings'][0]}")
        check(code == (expected == "hybrid"), f"{margin}: exit status {code}")
    told, _ = settings(arguments, place, "--ppn=1", "--entries=16000")
    check(of_mode(told, "hardware")["aborts_in"] == 1 and told["available"] == 16_000, f"{told['modes'][0]}")


def more_than_ids(arguments, slingshot):
    place = record(arguments, "ids", 2, slingshot, "posted", 33_000, 64)
    told, _ = settings(arguments, place, "--ppn=1")
    check(told["needs"]["receives"]["most"] - 66_001 in OWN_OR_MORE, f"{told['needs']}")
    check(f"{IDS:,} IDs" in of_mode(told, "hybrid")["says"] and mode(told) == "software", f"{told}")
    # The device itself ends the program where it would wait for ever.
    for count, ids, fails in ((33_000, IDS, True), (500, 800, True), (300, 800, False)):
        sets = ["--set=device=cassini-hybrid", *([] if ids == IDS else [f"--set=receive_ids={ids}"])]
        command = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "2", slingshot, "posted", count, "64"]
        done = tcam(arguments, "run", "--mpi=mpich", *sets, "--", *command, codes=range(256))
        says = f"{ids} receives are posted, and there is no ID for another one" in done.stderr
        check((done.returncode != 0) == says == fails, f"{count} of {ids}: {done.returncode} {done.stderr[-300:]}")


def ranks_of_an_engine(arguments, slingshot):
    """Eight ranks of a NIC: two of them share each engine."""
    for count, aborts in ((4_504, 1), (4_004, 0)):
        place = record(arguments, f"eight-{count}", 8, slingshot, "posted", count, 64)
        told, _ = settings(arguments, place)
        entries = told["list_entries"]["most"]
        least = 2 * (2 * count + 3)
        check(least <= entries <= least + 2 * OWN_OR_MORE.stop + 8, f"{count}: {entries} list entries, not {least}")
        check(of_mode(told, "hardware")["aborts_in"] == aborts, f"{count}: {told['modes'][0]}")
        # The margin is missing in both cases.
        check(mode(told) == "hybrid" and told["ranks_a_nic"] == 8, f"{count}: {told['settings'][0]}")


def unexpected_bytes(arguments, arrivals):
    for (count, size, expected), words in itertools.product(((2_400, 16_000, 16_056_320), (1_200, 100_000, 1 << 20)), NICS):
        place = PLACE / f"late-{size}"
        if words:
            record(arguments, place.name, 2, arrivals, "late", count, size, 1_500)
        told, _ = settings(arguments, place, *words)
        agrees(f"late {size}", told, demand(arguments, place))
        check(told["needs"]["unexpected"]["most"] == count, f"{size}: {told['needs']}")
        check(told["needs"]["unexpected_bytes"]["most"] == count * min(size, FIRST_PART if size > EAGER else size), f"{told['needs']}")
        check(value(told, "OFLOW_BUF_SIZE") == expected, f"{size}: {told['settings']}")
        # Rank 0 does not poll until it has posted all receives. An event is the match of each message, and
        # one or two are its arrival.
        events = told["needs"]["events_between_polls"]["most"] - count * (2 if size <= EAGER else 3)
        check(events in (0, 1) and value(told, "DEFAULT_CQ_SIZE") == 32_768, f"{size}: {told['needs']}")
        check(told["needs"]["bytes_between_polls"] == told["needs"]["unexpected_bytes"], f"{size}: {told['needs']}")
        needed = next(of["reason"] for of in told["settings"] if of["name"].endswith("OFLOW_BUF_SIZE"))
        check(("senders would wait" in needed) == (expected > 12 << 20), f"{size}: {told['settings']}")


def taken_one_by_one(arguments, slingshot):
    """A rank that polls again and again has few events between two polls, however many messages it takes."""
    place = record(arguments, "taken", 2, slingshot, "taken", 5_000, 64)
    told, _ = settings(arguments, place, "--ppn=1")
    check(told["needs"]["unexpected"]["most"] >= 5_000, f"taken: {told['needs']}")
    # A step has 100 messages, one that ends it, and those of the MPI.
    events = told["needs"]["events_between_polls"]["most"]
    check(events <= 2 * 110 and value(told, "DEFAULT_CQ_SIZE") == 32_768, f"taken: {events} events")


def sends_before_receives(arguments, slingshot):
    """All ranks send before they post receives: below a number of sends the program hangs."""
    for ranks in (2, 4):
        place = record(arguments, f"isends-{ranks}", ranks, slingshot, "isends", 2_000, 100_000)
        by_hand = demand(arguments, place)
        for words in NICS:
            told, code = settings(arguments, place, *words)
            agrees(f"isends {words}", told, by_hand)
            hangs = told["hangs"]
            check("hangs with this stack" in hangs and "up to 1,999: " in hangs and f"ranks 0-{ranks - 1} wait" in hangs, f"{told}")
            check(value(told, "DEFAULT_TX_SIZE") == 2_564 and code == 1, f"{told}")
            check(told["ranks_a_nic"] == (1 if words else ranks), f"{words}: {told['ranks_a_nic']}")
    place = record(arguments, "few", 2, slingshot, "isends", 1_000, 100_000)
    told, code = settings(arguments, place, "--ppn=1")
    check(code == 0 and "hangs with FI_CXI" in told["hangs"] and "up to 999: " in told["hangs"], f"{told}")
    check("1,000 sends" in f"{told}" and "2 % less" in f"{told['settings']}", f"{told['settings']}")
    # Receives that are posted before any message is sent: no send waits, although each rank looks for
    # messages late, after its sends.
    place = record(arguments, "before", 2, slingshot, "posted", 600, 20_000)
    told, code = settings(arguments, place, "--ppn=1")
    agrees("before", told, demand(arguments, place))
    check(told["needs"]["open_sends"]["most"] == 0 and "hangs" not in f"{told['hangs']}" and code == 0, f"{told['needs']}")
    # Without records of sends, nothing is said of them.
    place = record(arguments, "no-sends", 2, slingshot, "isends", 100, 100_000, settings=())
    told, _ = settings(arguments, place, "--ppn=1")
    check(told["needs"]["open_sends"] is None and value(told, "DEFAULT_TX_SIZE") == 1_024, f"{told}")
    check(told["needs"]["events_between_polls"] is None and value(told, "DEFAULT_CQ_SIZE") == 131_072, f"{told}")
    check(f"{told['settings']}".count("not-recorded") == 2, f"{told['settings']}")


def late_broadcasts(arguments, arrivals):
    """An engine full of unexpected messages: their rank can move them to the host."""
    place = record(arguments, "bcasts", 2, arrivals, "bcasts", 20_000, 8, 2_000)
    by_hand = demand(arguments, place)
    for words in NICS:
        told, code = settings(arguments, place, *words)
        agrees(f"bcasts {words}", told, by_hand)
        hardware, hybrid = of_mode(told, "hardware"), of_mode(told, "hybrid")
        check(hardware["aborts_in"] == 0 and hardware["flow_controls"] == 1, f"{hardware}")
        own = told["list_entries"]["most"] - told["needs"]["unexpected"]["most"] - 3
        later = told["needs"]["unexpected"]["most"] - (ENTRIES - 9 - own)
        check(f"{later:,} unexpected messages (18 %)" in hybrid["says"] and mode(told) == "hybrid", f"{hybrid}")
        # The program runs in mode hardware, too.
        check(code == 0, f"bcasts {words}: exit status {code}")


def neighbour_of_an_engine(arguments):
    """A rank that posts its first receive aborts, because a neighbour's unexpected messages have all entries
    of their engine. The neighbour itself would go on."""
    place = PLACE / "neighbour"
    place.mkdir()
    for rank in range(5):
        writer = Writer(rank, "tagged")
        writer.header |= {"libfabric": "none", "address": f"127.0.0.1:{4000 + rank}"}
        for number in range(10 if rank == 0 else 0):
            writer.put(writer.TIME, numbers=[1000 * number])
            writer.put(writer.ARRIVE, (number, 0, 1), length=8)
        if rank > 0:
            writer.put(writer.TIME, numbers=[1_000_000 + rank])
            writer.put(writer.POST, (5, 0, 1), length=8)
        writer.write(place / f"{rank}.trace")
    # Ranks 0 and 4 share an engine, on which each has three buffers.
    for entries, aborts in ((16, 1), (17, 0)):
        told, _ = settings(arguments, place, f"--entries={entries}")
        hardware = of_mode(told, "hardware")
        check(hardware["aborts_in"] == aborts and told["list_entries"]["most"] == 17, f"{entries}: {hardware}")
        if aborts:
            says = "rank 4 finds no entry for its receive 1 that waits: its engine is full (10 elements, 10 of rank 0 and 0 of rank 4)"
            check(says in hardware["says"], hardware["says"])
    (place / "3.trace").unlink()
    told, _ = settings(arguments, place, "--entries=16", "--partial")
    check(of_mode(told, "hardware")["aborts_in"] == 1, f"rank 3 is missing: {told['modes'][0]}")


def device_in_hardware_mode(arguments, slingshot, arrivals):
    """The device `cassini-hardware` fails at a receive without an entry, or moves messages to the host. Each
    of four engines has 1,024 entries."""
    launched = [str(runs.MPIS["mpich"] / "mpiexec"), "-n", "2"]
    for name, program, ends in (
        ("posted", [slingshot, "posted", "600", "64"], False),
        ("bcasts", [arrivals, "bcasts", "1500", "8", "2000"], True),
    ):
        place = PLACE / f"device-{name}"
        sets = ["--set=device=cassini-hardware", "--set=pool_entries=4096"]
        command = ["run", f"--report={place}", "--mpi=mpich", *sets, "--", *launched, *program]
        done = tcam(arguments, *command, codes=range(256))
        check((done.returncode == 0) == ends, f"{name}: {done.returncode} {done.stderr[-300:]}")
        check(("no unexpected message to move to the host" in done.stderr) != ends, f"{name}: {done.stderr[-300:]}")
        reports = [json.loads(path.read_text()) for path in place.glob("*.json")]
        most = max(report["tagged"]["prq"]["table_high_water"] for report in reports)
        moved = max(report["tagged"]["umq"]["onloads"] for report in reports)
        # Elements of the MPI itself have entries, too.
        least = 1_024 - 16 if ends else 0
        check(most <= 1_024 and least <= moved <= (1_024 if ends else 0), f"{name}: {most} receives, {moved} messages moved")
    place = record(arguments, "few-bcasts", 2, arrivals, "bcasts", 1_500, 8, 2_000)
    told, _ = settings(arguments, place, "--entries=1024")
    check(of_mode(told, "hardware")["flow_controls"] == 1, f"{told['modes'][0]}")
    needs_of_an_engine(arguments, place)


def limits_of_slurm(arguments):
    """Slurm reserves list entries for each processor of a step. 128 ranks of a node are 32 on each
    engine, whose buffers need 9 each in mode hybrid."""
    place, site = PLACE / "halo-128", PLACE / "slurm.conf"
    tcam(arguments, "workload", "halo", "--ranks=128", "--steps=2", f"--out={place}", codes=(0,))
    site.write_text("SwitchParameters=vnis=1-9,def_les=16\nNodeName=n[1-8] CPUs=128\n")
    told = settings(arguments, place)[0]
    needed = told["list_entries"]["most"]
    for words, reserved, shared, available in (
        ([], 2_048, 14_336, ENTRIES),
        (["--steps=7"], 2_048, 2_048, 4_096),
        (["--steps=8"], 2_048, 0, 2_048),
        (["--steps=8", "--cpus=8"], 128, 15_360, 15_488),
    ):
        told, _ = settings(arguments, place, f"--site={site}", *words)
        limits = told["slurm"]
        check([limits["reserved"], limits["shared"], told["available"]] == [reserved, shared, available], f"{words}: {limits} {told['available']}")
        notes = " ".join(told["notes"])
        fits = -(-5 * needed // 4) <= available
        check(mode(told) == ("hardware" if fits else "hybrid"), f"{words}: {needed} of {available}: {told['settings'][0]}")
        check(fits or "need 288 reserved entries on each engine, and 2,048 are reserved" in notes, f"{words}: {notes}")
    check("8 steps reserve 16,384" not in notes, notes)
    script = tcam(arguments, "settings", f"--site={site}", "--steps=8", place).stdout
    check("8 steps reserve 16,384 of 16,384 entries" in " ".join(script.replace("\n#", " ").split()), script)
    site.write_text("SwitchParameters=def_les=1k\n")
    for words, expected in (
        ([f"--site={site}"], "line 1: def_les=1k"),
        ([f"--site={PLACE / 'no.conf'}"], "no.conf"),
        (["--steps=2"], "--site"),
        ([f"--site={site}", "--nic=connectx"], "--site"),
        ([f"--site={site}", "--check"], "--site"),
    ):
        done = tcam(arguments, "settings", *words, place, codes=(2, 125))
        check(expected in done.stderr and not done.stdout, f"{words}: {done}")
    site.write_text("ClusterName=x\n")
    done = tcam(arguments, "settings", f"--site={site}", place, codes=(125,))
    check("--cpus" in done.stderr, f"{done}")


def needs_of_an_engine(arguments, place):
    """An engine needs as many list entries by `tcam settings` as by `tcam answer` and `tcam sweep`."""
    for words in ([], ["--ppn=1"]):
        told, _ = settings(arguments, place, *words)
        entries = told["list_entries"]["most"]
        answer = json.loads(tcam(arguments, "answer", "--json=-", *words, place).stdout)
        need = next(of["needs"][0] for of in answer["devices"] if of["device"] == "cassini-hardware")
        check(need["least"] <= 4 * entries <= need["most"], f"{words}: {entries} list entries, {need} of four engines")
        out = f"--out={PLACE / 'sweep'}"
        sweep = json.loads(tcam(arguments, "sweep", "--json=-", out, "--set=device=cassini-hardware", *words, "--trace", place).stdout)
        check(sweep["needed_entries"] == need["most"], f"{words}: {sweep['needed_entries']} by sweep, {need} by answer")


def other_nics(arguments):
    """Short receives are posted before their messages come, and long messages come before their receives."""
    for name, enable, threshold, held in (("posted", "y", 64, 20_001), ("late-16000", "n", None, 0)):
        told, code = settings(arguments, PLACE / name, "--nic=connectx")
        values = {of["name"]: of["value"] for of in told["settings"]}
        check(values["UCX_RC_MLX5_TM_ENABLE"] == values["UCX_DC_MLX5_TM_ENABLE"] == enable, f"{name}: {values}")
        size = f"{1 << (int(1.25 * held) + 1).bit_length()}" if held else None
        check(values.get("UCX_RC_MLX5_TM_LIST_SIZE") == size and code == bool(held), f"{name}: {values} {code}")
        check(values.get("UCX_TM_THRESH") == (str(threshold) if threshold else None), f"{name}: {values}")
        told, _ = settings(arguments, PLACE / name, "--nic=portals4", "--ppn=1")
        values = {of["name"]: int(of["value"]) for of in told["settings"]}
        most = {of: told["needs"][of]["most"] for of in ("receives", "unexpected", "unexpected_bytes")}
        check(values["PTL_LIM_MAX_LIST_SIZE"] == max(-(-5 * most["receives"] // 4) + 1, 1_024), f"{name}: {values}")
        check(values["PTL_LIM_MAX_UNEXPECTED_HEADERS"] == max(-(-5 * most["unexpected"] // 4) + 1, 1_024), f"{name}: {values}")
        check(values["OMPI_MCA_mtl_portals4_short_recv_num"] == 32, f"{name}: {values}")
        check("modes" not in told and "list_entries" not in told, f"{told.keys()}")
    check(most["unexpected_bytes"] == 2_400 * 2_048, f"{most}")


def several_runs_and_mistakes(arguments, slingshot):
    """Repeats are combined, and a text instead of a trace is named."""
    counts = (10, 3_000)
    places = [record(arguments, f"run-{count}/{at}", 2, slingshot, "isends", count, 30_000) for at, count in enumerate(counts)]
    done = tcam(arguments, "settings", "--json=-", "--ppn=1", *places)
    # Two command lines are two programs.
    check(len(json.loads(done.stdout)["recordings"]) == 2, done.stdout)
    again = PLACE / "again"
    place = record(arguments, "again", 2, slingshot, "isends", 10, 30_000)
    told = json.loads(tcam(arguments, "settings", "--json=-", "--ppn=1", places[0], again).stdout)
    check(told["runs"] == 2 and place == again, f"{told}")
    script = PLACE / "job.sh"
    for words, expected in (
        ([script], "--check reads job scripts"),
        ([PLACE / "nothing"], "nothing"),
        ([], "required"),
        (["--check", "--margin=2", script], "--margin"),
        (["--check", script, script], "one script"),
        (["--margin=0.5", place], "1 to 100"),
        (["--entries=16385", place], "16384"),
        (["--stack=x", place], "libfabric-2.6"),
    ):
        done = tcam(arguments, "settings", *words, codes=(2, 125))
        check(expected in done.stderr and not done.stdout, f"{words}: {done}")
    victim = next(place.glob("1.*.tagged.trace"))
    victim.unlink()
    done = tcam(arguments, "settings", place, codes=(3,))
    check("rank 1" in done.stdout, done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tcam", type=pathlib.Path, default=runs.TCAM)
    arguments = parser.parse_args()
    shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(parents=True)
    programs = runs.build("mpich")
    slingshot, arrivals = programs / "slingshot", programs / "arrivals"
    receives_before_sends(arguments, slingshot)
    more_than_ids(arguments, slingshot)
    ranks_of_an_engine(arguments, slingshot)
    unexpected_bytes(arguments, arrivals)
    taken_one_by_one(arguments, slingshot)
    sends_before_receives(arguments, slingshot)
    late_broadcasts(arguments, arrivals)
    neighbour_of_an_engine(arguments)
    device_in_hardware_mode(arguments, slingshot, arrivals)
    limits_of_slurm(arguments)
    other_nics(arguments)
    several_runs_and_mistakes(arguments, slingshot)
    return exit_code()


if __name__ == "__main__":
    sys.exit(main())
