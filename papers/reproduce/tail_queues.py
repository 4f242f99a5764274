# SPDX-License-Identifier: BSD-2-Clause
"""The page on tail queues: the prototype of Dosanjh, Grant, Schonbein, Bridges, CCPE 2019 (section 4.1.1,
Figures 3 to 7), and its queue statistics (Table 2) beside generated streams."""

from .colpnp import TAIL_QUEUES, UNKNOWN
from .figure import Cases, Figure, agree, cell, digits, held, page, plain, verdict, whole

THREADS = (1, 2, 4, 8)
LENGTHS = [1 << power for power in range(13)]
RANKS = 4096  # processes of Table 2
FIGURES = {"both": "3", "prq": "7"}  # of the lists where elements wait
STORAGES, LOCKS = ("linked", "packed"), ("mcs", "parking-lot")  # the paper's first
ONE, TAILS, BINNED = CONTENDERS = ("one lock", "tail queues", "binned tail queues")
# Table 2 in its order: longest queue and deepest search of PRQ and UMQ, and whether the lengths of PRQ and
# UMQ are fitted.
TABLE_2 = {"minimd": ((1, 1), (11, 8)), "amg": ((543, 543), (418, 260)), "fds": ((24, 24), (8147, 8073))}
STATISTICS = [(queue, metric) for queue in ("PRQ", "UMQ") for metric in ("longest", "deepest")]
TITLES = ["longest PRQ", "deepest search of the PRQ", "longest UMQ", "deepest search of the UMQ"]
PAPER = {1: 1.20, 32: 1.95}  # ratios of two threads by length, in the paper's text
NOTHING = 1.1  # no gain up to this ratio
AS_LARGE = 0.95  # how near to the largest gain another one is as large

ABOVE = (
    "Likely, and not profiled: with one lock each operation waits until the lock and what it protects have "
    "come from the other core. With tail queues a thread that has finished with one list mostly finds the "
    "lock of the other one free. How long a cache line takes from core to core is another time on each "
    "machine."
)
BELOW = (
    "Likely, and not profiled: the lock of the tail and both inboxes go from core to core in each operation, "
    "whichever list it searches, and two threads do not share that work. The shorter a search is beside it, "
    "the less they gain. tail-queues.md has the rates of one thread."
)
KNC = (
    "A Xeon Phi (KNC), with many slow cores, four threads each: another machine, of which nothing here tells "
    "anything."
)
SHAPE = (
    "The paper measured it on a Xeon Phi (KNC) and prints no numbers; what it says of the shape is judged. "
    "Ratios are medians over lengths; *significantly* is by more than 10 %."
)
MPICH = (
    "The paper changed MPICH 3.1.4, whose locks are in its own code. Here matching is behind libfabric and "
    "MPICH is as it is; what threads of a rank gain through MPICH and Open MPI is in measuring.md."
)
PEAK = (
    "Where the gain is largest depends on how long a search takes beside the lock's way from core to core. It "
    "is as large as the largest if it is within 5 % of it."
)
ORDER = (
    "Messages come in random order here, so that some receive takes nearly the youngest of all. The paper's "
    "programs took theirs nearer to the head of the list."
)


def row_name(lists, storage, lock, threads, length):
    return f"{lists},{storage},{lock},{threads},{length}"


def application(pattern):
    """The name of an application of Table 2 in the numbers."""
    return f"table-2,{pattern},{RANKS}"


def get(cases, lists, threads, length, contender, metric, storage="linked", lock="mcs"):
    name = row_name(lists, storage, lock, threads, length)
    return cases.get(FIGURES[lists], name, contender, metric)


def machine(cases, metric):
    return next((row["ours"] for row in cases.of("machine") if row["metric"] == metric), None)


def crowded(cases, threads):
    """`, oversubscribed` if there are more threads than cores."""
    cores = machine(cases, "cores")
    return ", oversubscribed" if cores is not None and threads > cores else ""


def made_again(cases):
    rows = {of: [row for row in cases.rows if row["metric"] == of] for of in ("again", "disturbed")}
    all_rows = rows["again"] + rows["disturbed"]
    total = lambda of: whole(sum(row["ours"] for row in of))
    sleeping = [row for row in all_rows if "parking-lot" in row["case"]]
    text = (
        "A turn in which a thread waited for a core for more than 3 % of the time, though there is one for "
        f"each, was made again: {total(all_rows)} turns in {len(all_rows)} rows. {total(sleeping)} of them are "
        "of `parking-lot`, whose threads sleep and wait for a core each time that they are woken."
    )
    if names := [row["case"] for row in rows["disturbed"]]:
        text += f" Turns were kept as they came from the 1,000th on in {'; '.join(names)}."
    return text


def preface(cases):
    processor = next((row["case"] for row in cases.of("machine")), "unknown")
    ms, turns, cores = (
        "?" if value is None else plain(value)
        for value in (machine(cases, metric) for metric in ("ms", "turns", "cores"))
    )
    return (
        "# Tail queues: the paper's figures beside ours\n\n`papers/reproduce.sh tail-queues` makes this page and "
        "tail-queues.csv by threads of its own process. It repeats the prototype of section 4.1.1: so many "
        "receives and messages wait that never match; then every thread alternates, it posts a receive and "
        "hands over the message that matches it. One lock around both lists, tail queues, and tail queues with "
        "the paper's bins (one around the first 50 elements, one of the others) take turns of "
        f"{ms} ms. A number is the median over {turns} turns with the range behind it. *M/s* are million "
        "matches a second. A *ratio* is that to the one lock of the same time: 1.2 is the paper's 20 %.\n\n"
        f"Machine: {processor}, {cores} cores. With more threads than these a row is *oversubscribed*: whoever "
        "waits for a lock has to wait for a core, too, and turns take four times as long. "
        f"{made_again(cases)} The paper has two Xeons (Sandy Bridge) of eight cores each, 2.6 GHz, and a Xeon "
        "Phi (KNC). *Reproduced* is a gain whose ratio is within 30 % of the paper's.\n\n"
    )


def by_length(cases, lists, threads):
    """Ratios of tail queues by the length, on the paper's storage and locks."""
    rows = {of: get(cases, lists, threads, of, TAILS, "ratio") for of in LENGTHS}
    return {length: row["ours"] for length, row in rows.items() if row}


def median(ratios):
    """Of several lengths, the lower one of two in the middle."""
    return sorted(ratios)[(len(ratios) - 1) // 2] if ratios else None


def judge(ours, paper):
    """A verdict on a ratio of the paper, and why it is another one here."""
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
        "Matches a second of tail queues over those of one lock around both lists, on linked lists with MCS "
        "locks as in the paper, without bins. *Reproduced* is a gain whose ratio is within 30 % of the paper's; "
        "behind it stands how far it is from it. Table 2 is about rank 0 of a generated stream; *no test* is a "
        "length that was fitted to the paper's.",
        ["said in", "of", "paper", "here", "verdict"],
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
        # The last of equals.
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
    """How a number of Table 2 came about: depths follow from lengths and the order of arrival."""
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
    """A line for each list, lock, number of threads and contender, a column a length."""
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
        "Longest queues, and the most elements that a search passed with the one that it found, on "
        f"{whole(RANKS)} processes. The paper counted them in real runs, the largest over all processes. Here "
        "rank 0 of a stream of `tcam workload` is replayed to one list, two steps of each seed. Such a stream is "
        "made to have queues about as long as papers say; it has no data, no time and no algorithm of the "
        "program, and messages of a phase come in random order. So a *fitted* length confirms nothing, and a "
        "*predicted* depth tells of random order, not of the program."
    )
    figure = Figure("Table 2: queues of applications", note, ["application", "numbers", *TITLES])
    for pattern in TABLE_2:
        rows = [cases.get("T2", application(pattern), *of) for of in STATISTICS]
        if rows[0]:
            papers = [whole(row["paper"]) if row and row["paper"] else "" for row in rows]
            figure.row(pattern, "the paper's", *papers)
            figure.row(pattern, f"`tcam workload {pattern}`", *(cell(row, whole) for row in rows))
            figure.row(pattern, "ours are", *(basis(metric) for _, metric in STATISTICS))
    return figure


def figures(cases):
    rates = "M/s of two threads on linked lists with MCS locks, by the elements that wait in each list."
    matches = "Figs. 3 to 7: matches a second by threads and locks"
    of_all = (
        "Median M/s on linked lists by the elements that wait in the lists: in both, or in the PRQ only (`prq`)."
    )
    gains = "Figs. 4 to 6: the gain by threads and locks"
    medians = "Median ratios on linked lists, and the lowest of a line. The CSV has ranges."
    packed = (
        "Median ratios on packed queues (`FI_TCAM_HOST_STORAGE=packed`), in bins of such queues. None of this is the "
        "paper's, and no verdict rests on it."
    )
    all_of = [
        verdicts(cases),
        two_threads(cases, "both", "Fig. 3: two threads, both lists", rates),
        two_threads(
            cases, "prq", "Fig. 7: two threads, receives only", "The same where nothing waits in the UMQ."
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
