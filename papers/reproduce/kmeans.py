# SPDX-License-Identifier: BSD-2-Clause
"""K-means: Figures 2, 3 and 8 to 10 of Ghazimirsaeed, Afsahi: *Accelerating MPI Message Matching by a
Data Clustering Strategy*, on generated streams.

    for each stream, for each seed:
        elements that each source added -> K-means, k = 1 to 32 -> clusters
        every engine in turns -> nanoseconds of a search; traversals, counted
"""

from .figure import Cases, Figure, cell, digits, page, verdict

SENDERS = 128  # processes that send in Figures 2 and 3; the paper names none

# Numbers in the paper's text: the largest over its k and processes.
CLAIMS = (
    ("Fig. 8", "AMG-like PRQ", 2.2),
    ("Fig. 8", "AMG-like UMQ", 1.5),
    ("Fig. 9", "LAMMPS-like PRQ", 1.37),
    ("Fig. 9", "LAMMPS-like UMQ", 1.0),
    ("Fig. 10", "FDS-like PRQ", 2.0),
    ("Fig. 10", "FDS-like UMQ", 2.0),
)
REASONS = [
    "The paper prints neither lengths nor who added how much. AMG-like has the lengths of *Tail "
    "queues*, Table 2, for 4096 processes, from sources that are neighbours on few or many levels; "
    "LAMMPS-like and FDS-like are `tcam workload lammps` and `fds`. What K-means gains follows from "
    "how unequal sources are: sources that add equally stay in one queue, whatever k.",
    "The orders of arrival here are random. The paper's programs matched nearer to the head of the "
    "list, so that a shorter queue gained them less.",
    "LAMMPS-like queues have 15 and 6 elements: a search of the list takes about as long as finding "
    "the queue. The paper says the same of its UMQ.",
    "FDS-like: everything is gathered on rank 0, as the paper has it; its speedup of 2 is of 1024 "
    "processes, with 8 and 16 clusters.",
]


def best(cases, case):
    """The fastest number of clusters on the paper's lists; the last of equals."""
    rows = [
        row
        for row in cases.rows
        if (row["case"], row["metric"]) == (case, "speedup")
        and row["engine"].startswith("kmeans")
        and not row["engine"].endswith("packed")
        and row["engine"] != "kmeans k=1"
    ]
    return max(reversed(rows), key=lambda row: row["ours"], default=None)


def verdicts(cases):
    note = (
        "Up to so much faster searches than in one list, over k = 2 to 32. Lists are linked, as the "
        "paper's."
    )
    figure = Figure("Verdicts", note, ["said in", "of", "paper", "here", "with", "verdict"])
    for at, case, paper in CLAIMS:
        row = best(cases, case)
        found = (row["engine"], verdict(row["ours"], paper)) if row else ("", "")
        figure.row(at, case, digits(paper), cell(row), *found)
    figure.footnotes = REASONS
    return figure


def table(title, note, cases, figures):
    header = ["figure", "case", "queues", "ns", "speedup", "traversed"]
    figure = Figure(title, note, header)
    for of in figures:
        for case in cases.cases(of):
            for engine in cases.engines(of):
                cells = [cell(cases.get(of, case, engine, metric)) for metric in header[3:]]
                figure.row(f"Fig. {of}", case, engine, *cells)
    return figure


def figures(cases):
    note = (
        f"{SENDERS} processes send to rank 0, which then receives the youngest message first. ns is "
        "the time of a search with the removal, by the device without table entries. The paper "
        "prints bars without numbers: two queues are faster, clusterings 3 and 4 beat four queues, "
        "clustering 5 is as one queue."
    )
    title = "Figs. 2 and 3: reverse search, and clusterings 1 to 7"
    applications = (
        "Searches in lists of all, in linked queues of k clusters, and in packed ones. *Traversed* are "
        "the elements that a search passed."
    )
    return [
        verdicts(cases),
        table(title, note, cases, ["2", "3"]),
        table("Figs. 8 to 10: applications", applications, cases, ["8", "9", "10"]),
    ]


def render(cases):
    return page(cases.preface("K-means", "kmeans"), figures(cases))


read = Cases.read
