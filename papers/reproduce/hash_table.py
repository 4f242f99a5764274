# SPDX-License-Identifier: BSD-2-Clause
"""Hint-driven matching: Table I and Figures 3, 5 and 6 of the paper, in one process and through an MPI.

    in one process, for each seed:  streams -> the list, the hash table, NewMadeleine in turns
    through an MPI, as often as there are seeds:
        tests/apps/hints.c with each engine in turn, without a report -> microseconds
"""

from .figure import Cases, Figure, cell, digits, page, ranged, verdict

REQUESTS = (1_000, 10_000, 100_000)  # of Table I; the paper does not say how many
TABLE = REQUESTS[1]  # those that its figures are compared with
# The paths of Table I: the role of their operations, and the paper's microseconds of a request with
# the hash table and with NewMadeleine.
PATHS = (
    ("fail from receive", "waits", (0.44, 0.44)),
    ("success from receive", "finds message", (0.30, 0.42)),
    ("fail from send", "unexpected", (0.44, 1.25)),
    ("success from send", "finds receive", (0.30, 0.30)),
)
REASONS = [
    "The paper's tables are uthash in MPC: 0.30 to 1.25 us a request. A receive that succeeds and a "
    "message that fails touch one table or four, here as there. A message that succeeds looks up "
    "four tables here; the paper counts one lookup for its own NewMadeleine. The paper does not say "
    "how many requests wait; 1,000 and 100,000 are on the page as well.",
    "The paper says up to 93 % for some microbenchmarks and has shuffle of up to some thousand "
    "requests; that is of the whole message through its MPI.",
    "A list whose first element matches takes 5 to 10 ns, which no table can beat: the price in the "
    "engine. The paper prints bars; through an MPI the price is in the section below.",
]


def verdicts(cases):
    note = (
        "Times of a request in the hash table and in the tables of NewMadeleine, as ratios; the "
        "gain over a linked list is 1 less the time with the hash table over that with the list. "
        "In this process."
    )
    figure = Figure("Verdicts", note, ["said in", "of", "paper", "here", "verdict"])
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
    """A row a case, a column an engine."""
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
    """A median, something behind it, and then its range."""
    if not row:
        return more
    ours = digits(row["ours"])
    return ours + more + cell(row).removeprefix(ours)


def figures(cases):
    all_of = [
        verdicts(cases),
        table(
            "Table I: time of a request",
            "Nanoseconds of an operation of the device without table entries, by path: requests with "
            "communicator and tag up to 100 and source up to 500, N of them waiting. The paper has "
            "microseconds in MPC: 0.44, 0.30, 0.44, 0.30 with the hash table, 0.44, 0.42, 1.25, 0.30 "
            "with NewMadeleine.",
            cases,
            ["I"],
            "ns",
        ),
        table(
            "Figs. 3, 5a and 6: shuffle, burst and ping-pong in the engine",
            "Nanoseconds of a message, its receive and its arrival, with N in flight or behind N "
            "receives that wait. Behind them the speedup over the linked list.",
            cases,
            ["3", "5a", "6"],
            "ns",
        ),
    ]
    if cases.of("3 MPI"):
        note = (
            "`tests/apps/hints.c` over tcam without table entries, two ranks: microseconds of a "
            "message of shuffle and burst, and half a round trip of the ping-pong, by its bytes and "
            "the receives that wait (Figure 6). Behind them the speedup over the linked list."
        )
        mpi = ["3 MPI", "5a MPI", "6 MPI"]
        all_of.append(table("The same through an MPI", note, cases, mpi, "us"))
    return all_of


def render(cases):
    return page(cases.preface("Hint-driven matching", "hash"), figures(cases))


read = Cases.read
