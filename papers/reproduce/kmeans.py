# SPDX-License-Identifier: BSD-2-Clause
"""Renders the page on K-means: Figures 2, 3 and 8 to 10 of Ghazimirsaeed, Afsahi: *Accelerating MPI
Message Matching by a Data Clustering Strategy*, on generated streams.

    for each stream, for each seed:
        elements that each source added -> K-means, k = 1 to 32 -> clusters
        every engine in turn -> nanoseconds of a search; number of traversed elements
"""

from .figure import Cases, Figure, cell, digits, page, verdict

SENDERS = 128  # sending processes in Figures 2 and 3; the paper does not state their number

# Numbers in the paper's text: each is the largest over its values of k and of n.
CLAIMS = (
    ("Fig. 8", "AMG-like PRQ", 2.2),
    ("Fig. 8", "AMG-like UMQ", 1.5),
    ("Fig. 9", "LAMMPS-like PRQ", 1.37),
    ("Fig. 9", "LAMMPS-like UMQ", 1.0),
    ("Fig. 10", "FDS-like PRQ", 2.0),
    ("Fig. 10", "FDS-like UMQ", 2.0),
)
REASONS = [
    "The paper prints neither the lengths of the queues nor the number of elements that each source added. "
    "AMG-like has the lengths of *Tail queues*, Table 2, for 4096 processes; its sources are neighbours on "
    "few or many levels. LAMMPS-like and FDS-like are `tcam workload lammps` and `fds`. The gain of K-means "
    "depends on how unequal the sources are. Sources that add equally many elements stay in one queue for "
    "every k.",
    "Here the orders of arrival are random. The paper's programs matched nearer to the head of the "
    "list, so that a shorter queue gained less.",
    "LAMMPS-like queues have 15 and 6 elements: a search of the list takes about as long as finding "
    "the queue. The paper states this of its UMQ, too.",
    "FDS-like gathers everything on rank 0, as in the paper. The paper's speedup of 2 is for 1024 "
    "processes with 8 and 16 clusters.",
]


def best(cases, case):
    """Returns the row of the number of clusters with the largest speedup on linked lists; of equal speedups,
    the last row. Returns None if there is no row."""
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
        "The largest speedup of searches over one list, for k = 2 to 32. Lists are linked, as in the "
        "paper. The footnotes give the reasons for differences."
    )
    figure = Figure("Verdicts", note, ["source", "queue", "paper", "here", "with", "verdict"])
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
        f"{SENDERS} processes send to rank 0, which then receives the youngest message first. *ns* is "
        "the time of a search with the removal, in the device without table entries. The paper "
        "prints bars without numbers. In these bars two queues are faster than one, clusterings 3 and 4 "
        "are faster than four queues, and clustering 5 is about as fast as one queue."
    )
    title = "Figs. 2 and 3: reverse search, and clusterings 1 to 7"
    applications = (
        "Searches in one list of all elements, in linked queues of k clusters, and in packed queues. "
        "*Traversed* is the number of elements that a search passed."
    )
    return [
        verdicts(cases),
        table(title, note, cases, ["2", "3"]),
        table("Figs. 8 to 10: applications", applications, cases, ["8", "9", "10"]),
    ]


def render(cases):
    return page(cases.preface("K-means", "kmeans"), figures(cases))


read = Cases.read
