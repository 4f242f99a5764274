# SPDX-License-Identifier: BSD-2-Clause
"""Renders the page on tail queues: the prototype of Dosanjh, Grant, Schonbein, Bridges, CCPE 2019 (section
4.1.1, Figures 3 to 7), and the paper's queue statistics (Table 2) beside those of generated streams."""

from .colpnp import TAIL_QUEUES, UNKNOWN
from .figure import Cases, Figure, agree, cell, digits, held, page, plain, verdict, whole

THREADS = (1, 2, 4, 8)
LENGTHS = [1 << power for power in range(13)]
RANKS = 4096  # number of processes in Table 2
FIGURES = {"both": "3", "prq": "7"}  # the figure of each choice of lists in which elements wait
STORAGES, LOCKS = ("linked", "packed"), ("mcs", "parking-lot")  # the first of each is the paper's
ONE, TAILS, BINNED = CONTENDERS = ("one lock", "tail queues", "binned tail queues")
# Table 2 in its order: longest queue and deepest search of the PRQ, then of the UMQ.
TABLE_2 = {"minimd": ((1, 1), (11, 8)), "amg": ((543, 543), (418, 260)), "fds": ((24, 24), (8147, 8073))}
STATISTICS = [(queue, metric) for queue in ("PRQ", "UMQ") for metric in ("longest", "deepest")]
TITLES = ["longest PRQ", "deepest search of the PRQ", "longest UMQ", "deepest search of the UMQ"]
PAPER = {1: 1.20, 32: 1.95}  # ratios of two threads by length, in the paper's text
NOTHING = 1.1  # a ratio up to this one is no significant gain
AS_LARGE = 0.95  # a gain of at least this fraction of the largest gain counts as equally large

ABOVE = (
    "The likely reason, which was not profiled: with one lock, each operation waits until the lock and the "
    "data that it protects have come from the other core. With tail queues, a thread that has finished with "
    "one list mostly finds the lock of the other list free. The time that a cache line takes from core to "
    "core depends on the machine."
)
BELOW = (
    "The likely reason, which was not profiled: the lock of the tail and both inboxes go from core to core in "
    "each operation, whichever list it searches. Two threads do not share that work. The shorter a search is "
    "compared with that work, the less they gain. tail-queues.md has the rates of one thread."
)
KNC = (
    "The paper's machine is a Xeon Phi (KNC) with many slow cores of four threads each. Nothing that is "
    "measured here applies to it."
)
SHAPE = (
    "The paper measured this on a Xeon Phi (KNC) and prints no numbers, so only its statement on the shape is "
    "judged. Ratios are medians over lengths. *Significant* is a gain of more than 10 %."
)
MPICH = (
    "The paper changed MPICH 3.1.4, which has the locks in its own code. Here matching is behind libfabric, "
    "and MPICH is unchanged. measuring.md has the gain of several threads of a rank through MPICH and Open MPI."
)
PEAK = (
    "The length of the largest gain depends on the time of a search compared with the time that the lock takes "
    "from core to core. A gain within 5 % of the largest one counts as equally large."
)
ORDER = (
    "Here messages come in random order, so one of the receives takes nearly the youngest message of all. The "
    "paper's programs matched nearer to the head of the list."
)


def row_name(lists, storage, lock, threads, length):
    return f"{lists},{storage},{lock},{threads},{length}"


def application(pattern):
    """Returns the name that an application of Table 2 has in the CSV file."""
    return f"table-2,{pattern},{RANKS}"


def get(cases, lists, threads, length, contender, metric, storage="linked", lock="mcs"):
    name = row_name(lists, storage, lock, threads, length)
    return cases.get(FIGURES[lists], name, contender, metric)


def machine(cases, metric):
    return next((row["ours"] for row in cases.of("machine") if row["metric"] == metric), None)


def crowded(cases, threads):
    """Returns `, oversubscribed` if there are more threads than cores, and otherwise an empty text."""
    cores = machine(cases, "cores")
    return ", oversubscribed" if cores is not None and threads > cores else ""


def made_again(cases):
    rows = {of: [row for row in cases.rows if row["metric"] == of] for of in ("again", "disturbed")}
    all_rows = rows["again"] + rows["disturbed"]
    total = lambda of: whole(sum(row["ours"] for row in of))
    sleeping = [row for row in all_rows if "parking-lot" in row["case"]]
    text = (
        "A turn was repeated if a thread waited for a core for more than 3 % of the time although each thread has "
        f"a core. This repeated {total(all_rows)} turns in {len(all_rows)} rows. {total(sleeping)} of them are of "
        "`parking-lot`, whose threads sleep and wait for a core after each wake-up."
    )
    if names := [row["case"] for row in rows["disturbed"]]:
        text += f" A row repeats at most 1,000 turns; these rows reached the limit: {'; '.join(names)}."
    return text


def preface(cases):
    processor = next((row["case"] for row in cases.of("machine")), "unknown")
    ms, turns, cores = (
        "?" if value is None else plain(value)
        for value in (machine(cases, metric) for metric in ("ms", "turns", "cores"))
    )
    return (
        "# Tail queues: the paper's figures beside ours\n\n`papers/reproduce.sh tail-queues` writes this page and "
        "tail-queues.csv. All threads belong to one process. The measurement repeats the prototype of section "
        "4.1.1. *Length* elements that never match wait in both lists, or in the PRQ only. Every thread alternately "
        "posts a receive and delivers the message that matches it. Three variants take turns of "
        f"{ms} ms: one lock around both lists, tail queues, and tail queues with the paper's bins (one for the "
        "first 50 elements, one for the others). A number is the median over "
        f"{turns} turns, followed by the range. *M/s* are million matches a second. A *ratio* compares with the "
        "one lock in the same round: 1.2 is the paper's 20 %.\n\n"
        f"Machine: {processor}, {cores} cores. With more threads than cores a row is *oversubscribed*: a thread "
        "that waits for a lock also waits for a core, and turns take four times as long. "
        f"{made_again(cases)} The paper has two Xeons (Sandy Bridge) of eight cores each, 2.6 GHz, and a Xeon "
        "Phi (KNC). *Reproduced* is a gain whose ratio is within 30 % of the paper's.\n\n"
    )


def by_length(cases, lists, threads):
    """Returns the ratios of tail queues by length, on the paper's storage and locks."""
    rows = {of: get(cases, lists, threads, of, TAILS, "ratio") for of in LENGTHS}
    return {length: row["ours"] for length, row in rows.items() if row}


def median(ratios):
    """Returns the median, or the lower one of two ratios in the middle. Returns None without ratios."""
    return sorted(ratios)[(len(ratios) - 1) // 2] if ratios else None


def judge(ours, paper):
    """Returns the verdict on a ratio of the paper, and a reason. The reason is None if ours equals the paper's
    ratio, or is higher within the tolerance."""
    same = agree(ours, paper)
    if ours <= 1:
        text = "differs: no gain"
    elif same:
        text = f"reproduced, {100 * (ours / paper - 1):+.0f} %"
    else:
        text = verdict(ours, paper)
    return text, ABOVE if ours > paper and not same else BELOW if ours < paper else None


def verdicts(cases):
    figure = Figure(
        "Verdicts",
        "A ratio is the matches a second of tail queues divided by those of one lock around both lists. It is "
        "measured on linked lists with MCS locks as in the paper, without bins. *Reproduced* is a gain whose ratio "
        "is within 30 % of the paper's, followed by its distance in %. Table 2 is about rank 0 of a generated "
        "stream. *No test* is a length that was fitted to the paper's.",
        ["source", "number", "paper", "here", "verdict"],
    )

    def said(at, of, paper, here, found, reason):
        figure.row(at, of, paper, here, figure.marked(found, reason))

    two = by_length(cases, "both", 2)
    for length, about in ((1, ""), (32, "close to ")):
        row = get(cases, "both", 2, length, TAILS, "ratio")
        if row and row["paper"]:
            of, paper = f"two threads, length {length}", about + digits(row["paper"])
            said("Fig. 3", of, paper, cell(row), *judge(row["ours"], row["paper"]))
    if 32 in two:
        # Of equally large gains, the one at the greatest length.
        longest = max(reversed(two), key=two.get)
        most = f"{longest}: {digits(two[longest])}"
        found = held(two[32] >= AS_LARGE * two[longest])
        said("Fig. 3", "two threads: length of the largest gain", "32", most, found, PEAK)
        paper, here = "close to 2.5, near 128", f"two threads, {most}"
        said("Figs. 4 to 6", "largest gain on KNC", paper, here, "no verdict", KNC)
    for at, threads, paper in (("Fig. 5", 4, "less"), ("Fig. 6", 8, "about as much")):
        rows = [get(cases, "both", of, 128, TAILS, "M/s") for of in (threads, 2)]
        if all(rows):
            rates = " to ".join(digits(row["ours"]) for row in rows)
            here = f"{rates} M/s at length 128{crowded(cases, threads)}"
            said(at, f"{threads} threads beside two, on KNC", paper, here, "no verdict", KNC)
    receives = median(by_length(cases, "prq", 2).values())
    both = median(two.values())
    if receives and both:
        of, here = "two threads, receives only: gain", digits(receives)
        said("Fig. 7", of, "significant", here, held(receives > NOTHING), SHAPE)
        of, here = "two threads, receives only beside both lists", f"{here} to {digits(both)}"
        said("Fig. 7", of, "smaller", here, held(receives < both), SHAPE)
    said("Fig. 8", "message rate of MPICH, with bins", "1.07", "", "not measured", MPICH)
    for pattern in TABLE_2:
        for (queue, metric), title in zip(STATISTICS, TITLES):
            row = cases.get("T2", application(pattern), queue, metric)
            if not row or not row["paper"]:
                continue
            ours, paper = row["ours"], row["paper"]
            same = agree(ours, paper)
            found = "no test: fitted" if same and basis(metric) == "fitted" else verdict(ours, paper)
            if same:
                reason = None
            elif (pattern, queue) == ("fds", "PRQ"):
                reason = TAIL_QUEUES
            else:
                reason = ORDER if ours > paper and metric == "deepest" else UNKNOWN
            said("Table 2", f"{pattern}, {title}", whole(paper), cell(row, whole), found, reason)
    return figure


def basis(metric):
    """Returns the origin of a number in Table 2. Depths follow from the lengths and the order of arrival."""
    return "fitted" if metric == "longest" else "predicted"


def two_threads(cases, lists, title, note):
    header = ["length", "one lock", "tail queues", "with bins", "ratio", "ratio with bins", "paper"]
    figure = Figure(title, note, header)
    for length in LENGTHS:
        of = lambda contender, metric: get(cases, lists, 2, length, contender, metric)
        if not of(ONE, "M/s"):
            continue
        rates = [cell(of(contender, "M/s")) for contender in CONTENDERS]
        ratios = [of(contender, "ratio") for contender in (TAILS, BINNED)]
        paper = digits(ratios[0]["paper"]) if ratios[0] and ratios[0]["paper"] else ""
        figure.row(length, *rates, *map(cell, ratios), paper)
    return figure


def by_lengths(cases, title, note, storage, contenders, metric):
    """Makes a figure with a row for each list, lock, number of threads and contender, and a column for each
    length."""
    with_lowest = metric == "ratio"
    header = ["lists", "lock", "threads", "queues", *map(str, LENGTHS)]
    figure = Figure(title, note, header + ["lowest"] * with_lowest)
    for lists in FIGURES:
        for lock in LOCKS:
            for threads in THREADS:
                for contender in contenders:
                    of = (lists, threads)
                    rows = [get(cases, *of, n, contender, metric, storage, lock) for n in LENGTHS]
                    values = [row["ours"] for row in rows if row]
                    if not values:
                        continue
                    cells = [digits(row["ours"]) if row else "" for row in rows]
                    cells += [digits(min(values))] * with_lowest
                    figure.row(lists, lock, f"{threads}{crowded(cases, threads)}", contender, *cells)
    return figure


def table_2(cases):
    note = (
        f"Longest queues and deepest searches on {whole(RANKS)} processes. The depth of a search counts the "
        "elements that it passed and the element that it found. The paper counted them in real runs and reports "
        "the largest over all processes. Here rank 0 of a stream of `tcam workload` is replayed to one list, with "
        "two steps of each seed. Such a stream has queues about as long as those in papers. It has no data, no "
        "timing and no algorithm of the program, and the messages of a phase come in random order. A *fitted* "
        "length therefore confirms nothing, and a *predicted* depth describes random order, not the program."
    )
    figure = Figure("Table 2: queues of applications", note, ["application", "numbers", *TITLES])
    for pattern in TABLE_2:
        rows = [cases.get("T2", application(pattern), *of) for of in STATISTICS]
        if rows[0]:
            papers = [whole(row["paper"]) if row and row["paper"] else "" for row in rows]
            figure.row(pattern, "the paper's", *papers)
            figure.row(pattern, f"`tcam workload {pattern}`", *(cell(row, whole) for row in rows))
            figure.row(pattern, "origin of ours", *(basis(metric) for _, metric in STATISTICS))
    return figure


def figures(cases):
    rates = "M/s of two threads on linked lists with MCS locks, by the number of elements that wait in each list."
    receives = (
        "M/s of two threads on linked lists with MCS locks, by the number of receives that wait in the PRQ. No "
        "message waits in the UMQ."
    )
    matches = "Figs. 3 to 7: matches a second by threads and locks"
    of_all = (
        "Median M/s on linked lists, by the number of elements that wait: in each of both lists (`both`), or in "
        "the PRQ only (`prq`)."
    )
    gains = "Figs. 4 to 6: the gain by threads and locks"
    medians = "Median ratios on linked lists, and the lowest ratio of each row. The CSV file has the ranges."
    packed = (
        "Median ratios on packed queues (`FI_TCAM_HOST_STORAGE=packed`); bins consist of such queues. Packed "
        "queues are not in the paper, and no verdict rests on them."
    )
    all_of = [
        verdicts(cases),
        two_threads(cases, "both", "Fig. 3: two threads, both lists", rates),
        two_threads(
            cases, "prq", "Fig. 7: two threads, receives only", receives
        ),
        by_lengths(cases, matches, of_all, "linked", CONTENDERS, "M/s"),
        by_lengths(cases, gains, medians, "linked", CONTENDERS[1:], "ratio"),
        by_lengths(cases, "Packed queues", packed, "packed", CONTENDERS[1:], "ratio"),
        table_2(cases),
    ]
    return [figure for figure in all_of if figure.rows]


def render(cases):
    return page(preface(cases), figures(cases))


read = Cases.read
