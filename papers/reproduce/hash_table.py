# SPDX-License-Identifier: BSD-2-Clause
"""Renders the page on *Hint-driven matching*: Table I and Figures 3, 5 and 6, in one process and through an
MPI.

    in one process, for each seed:  streams -> the list, the hash table, NewMadeleine in turn
    through an MPI, once for each seed:
        tests/apps/hints.c with each engine in turn, without a report -> microseconds
"""

from .figure import Cases, Figure, cell, digits, page, ranged, verdict

REQUESTS = (1_000, 10_000, 100_000)  # waiting requests in Table I; the paper does not state their number
TABLE = REQUESTS[1]  # the number that is compared with the paper
# The paths of Table I: name, role of the operations, and the paper's microseconds of a request with the hash
# table and with NewMadeleine.
PATHS = (
    ("fail from receive", "waits", (0.44, 0.44)),
    ("success from receive", "finds message", (0.30, 0.42)),
    ("fail from send", "unexpected", (0.44, 1.25)),
    ("success from send", "finds receive", (0.30, 0.30)),
)
REASONS = [
    "The paper uses uthash in MPC, with 0.30 to 1.25 us a request. A receive that succeeds and a message "
    "that fails access one table with `hash` and four with NewMadeleine, in the paper and here. A message "
    "that succeeds accesses four tables of NewMadeleine here; the paper counts one lookup for its "
    "NewMadeleine. The paper does not state how many requests wait; this page also has 1,000 and 100,000.",
    "The paper states up to 93 % for some microbenchmarks, and its shuffle has up to some thousand "
    "requests. Its gain is that of the whole message through its MPI.",
    "If the first element of a list matches, the list takes 5 to 10 ns, and no table is faster than that. "
    "This is the overhead in the engine. The section below has the overhead through an MPI. The paper prints "
    "bars.",
]


def verdicts(cases):
    note = (
        "Measured in the engine, without an MPI. *NewMadeleine over hash* is the ratio of the times of a "
        "request. A *gain* of g over the linked list means that the hash table takes 1 - g of the time of "
        "the list."
    )
    figure = Figure("Verdicts", note, ["source", "number", "paper", "here", "verdict"])
    for path, *_ in PATHS:
        row = cases.get("I", f"{path}, N={TABLE}", "hash", "newmadeleine / hash")
        if row and row["paper"]:
            what, paper = f"{path}: NewMadeleine over hash [1]", row["paper"]
            figure.row("Table I", what, digits(paper), cell(row), verdict(row["ours"], paper))
    for at, of, what, case, paper in (
        ("section I", "3", "shuffle of 1024: gain over the list [2]", "shuffle, N=1024", 0.93),
        ("section IV.D", "5a", "burst of 1024: gain over the list [3]", "burst, N=1024", None),
    ):
        row = cases.get(of, case, "hash", "speedup")
        if row:
            gain, *ends = (1 - 1 / row[name] for name in ("ours", "lowest", "highest"))
            if paper:
                says, found = digits(paper), verdict(gain, paper)
            else:
                says, found = '"significant overhead"', "reproduced" if gain < 0 else "differs"
            figure.row(at, what, says, ranged(gain, *ends), found)
    figure.footnotes = REASONS
    return figure


def table(title, note, cases, figures, metric):
    """Makes a figure with a row for each case and a column for each engine."""
    engines = cases.engines(figures[0])
    figure = Figure(title, note, ["figure", "case", *engines])
    for of in figures:
        for case in cases.cases(of):
            cells = []
            for engine in engines:
                faster = cases.get(of, case, engine, "speedup") if engine != engines[0] else None
                more = f", {digits(faster['ours'])}x" if faster else ""
                row = cases.get(of, case, engine, metric)
                cells.append(with_more(row, more))
            figure.row(of.removesuffix(" MPI"), case, *cells)
    return figure


def with_more(row, more):
    """Formats a median, then the text `more`, then the range."""
    if not row:
        return more
    ours = digits(row["ours"])
    return ours + more + cell(row).removeprefix(ours)


def figures(cases):
    all_of = [
        verdicts(cases),
        table(
            "Table I: time of a request",
            "Nanoseconds of an operation of the device without table entries, by path. Requests have "
            "communicators and tags up to 100 and sources up to 500; N requests wait. The paper's times in "
            "MPC are, in this order, 0.44, 0.30, 0.44 and 0.30 us with the hash table, and 0.44, 0.42, 1.25 "
            "and 0.30 us with NewMadeleine. Behind our times of NewMadeleine stands the speedup over `hash`.",
            cases,
            ["I"],
            "ns",
        ),
        table(
            "Figs. 3, 5a and 6: shuffle, burst and ping-pong in the engine",
            "Nanoseconds of a message (posting its receive and its arrival), with N messages in flight or "
            "behind N receives that wait. Behind each time stands the speedup over the linked list.",
            cases,
            ["3", "5a", "6"],
            "ns",
        ),
    ]
    if cases.of("3 MPI"):
        note = (
            "`tests/apps/hints.c` runs on two ranks over tcam without table entries. The table has the "
            "microseconds of a message in shuffle and burst. For the ping-pong (Figure 6) it has half a "
            "round trip, by the bytes of the message and the number of receives that wait. Behind each time "
            "stands the speedup over the linked list."
        )
        mpi = ["3 MPI", "5a MPI", "6 MPI"]
        all_of.append(table("Figs. 3, 5a and 6 through an MPI", note, cases, mpi, "us"))
    return all_of


def render(cases):
    return page(cases.preface("Hint-driven matching", "hash"), figures(cases))


read = Cases.read
