# SPDX-License-Identifier: BSD-2-Clause
"""Renders the page on COL+PNP from its numbers alone. A claim is a number in the text of the paper; its verdict is:

    candidates = medians over seeds, linked queues, at the numbers of processes of the claim
    candidates only on fewer ranks   ->  not measurable here; at most the bound
    no candidates                    ->  not measured
    queues made at some candidates   ->  keep only these candidates
    ours = the largest candidate ("up to"), or the one farthest from "about"
    queues made at no candidate      ->  algorithm inactive; differs by x, if it does
    ours within 30 %                 ->  reproduced; no test, if fitted or capped
    otherwise                        ->  differs by x, with a reason
"""

import math
from collections import namedtuple

from .colpnp_claims import APPLICATIONS, CLAIMS, GATHER, K, K_OPERATIONS, LENGTHS
from .figure import Figure, Table, agree, cell, digits, factor, page, plain, whole

ENGINES = ("list", "col-pnp", "col-list", "list-pnp", "rank-array")
QUEUES = ("PRQ", "UMQ")
KINDS = ("all", "collective", "point-to-point")
KS = (K_OPERATIONS, 2, 4, K, 16)  # k_C of gather
MAKING_STEPS = 10  # steps in which making queues is measured
# Operations that are timed through an MPI: figure, operation, k_C and k_P, engines.
OPERATIONS = (
    ("5a", "gather", K_OPERATIONS, ENGINES[:2]),
    ("5b", "allreduce", K_OPERATIONS, ENGINES[:2]),
    ("5c", "iallgather", K_OPERATIONS, ENGINES[:2]),
    ("11", "fds", K, ENGINES),
)

Place = namedtuple("Place", "pattern ranks queue traffic engine storage k")
Judged = namedtuple("Judged", "claim ours lowest highest made verdict above")

UNKNOWN = "The reason is not known."
OVERTAKEN = (
    "Here point-to-point messages overtake collective ones. In a list, a point-to-point search passes all "
    "collective elements that stand before its match; an engine that separates the kinds passes none of "
    "them. The paper's engines gain less, which suggests that few collective elements stood before the "
    "matches."
)
GONE = (
    "Here point-to-point messages overtake collective ones and have left the queue before the collective "
    "ones are searched. Separating the kinds gains nothing in a list that has only collective elements. In "
    "the paper, point-to-point elements stood between the collective ones."
)
LENGTH = (
    "The speedup grows with the length of the queue, and the length grows with n. Our speedup is below the "
    "paper's on fewer processes and above it on more (Figs. 6 to 8). The lengths in the workload are fitted, "
    "because the paper prints none."
)
NBODY_RANKS = (
    "Here each source has one collective element. Each queue of `rank-array` therefore has one collective "
    "element, while the list grows with n. The paper's collective elements were searched in shorter lists: "
    "its bars show the same gain with COL+PNP."
)
MINIAMR = (
    "The two groups of sqrt(2n) collective elements are fitted to the 74 queues on 2048 processes. If an "
    "average search of the paper were that long, the paper's gain would be larger. Most of its searches were "
    "therefore shorter than the searches for which its queues were made."
)
ONE_LIST = (
    "`col-list` leaves all point-to-point receives in one list. Here this list has n/2 receives, which is a "
    "choice of the workload. In the paper, nearly the whole gain comes from separating the kinds, so its "
    "list was shorter."
)
PARTNERS = (
    "Partners are the sources with more elements than the average source. Here they are the n/16 sources "
    "that send four messages each, which is a choice of the workload. The paper prints no counts by source."
)
STEPS = (
    "Queues are made once, so the ratio falls with the number of steps of a run. The paper does not state "
    "this number. The last column of Table 2 has the number of steps after which our ratio would equal the "
    "paper's."
)
TAIL_QUEUES = (
    "The papers contradict each other about FDS. *Tail queues* reports a PRQ of at most 24 elements on 4096 "
    "processes. COL+PNP reports speedups of 42 and 73 in the PRQ and as many queues as the cap allows; both "
    "need a long PRQ. The workload follows COL+PNP."
)
NO_ALGORITHM = (
    "A search has only a few elements, and the engines do the same work. Their times differ by a few ns."
)
FEW_RANKS = (
    "There are fewer ranks than in the paper, and they share the cores of one machine. *At most* is the "
    "largest speedup that matching can explain with queues of this length. A larger measured speedup comes "
    "from the order in which the ranks ran. See the section on Figs. 5 and 11."
)


class Numbers(Table):
    """The numbers of the page by place and metric, each with its origin."""

    COLUMNS = (
        "figure pattern ranks queue traffic engine storage k metric is runs ours lowest highest".split()
    )

    def __init__(self, columns=None, rows=()):
        self.by_place = {}
        super().__init__(columns or self.COLUMNS, rows)

    def add(self, row):
        super().add(row)
        key = (row["metric"], *(str(row[name]) for name in Place._fields))
        self.by_place.setdefault(key, row)

    def put(self, figure, place, metric, basis, values):
        key = dict(zip(Place._fields, place)) | {"figure": figure, "metric": metric}
        super().put([key[name] for name in self.keys], values, **{"is": basis})

    def get(self, metric, place):
        return self.by_place.get((metric, *map(str, place)))

    def ranks_of(self, metric, pattern):
        """Returns the number of ranks of the workload's first number with this metric."""
        found = (row for row in self.rows if (row["metric"], row["pattern"]) == (metric, pattern))
        return next((int(row["ranks"]) for row in found), None)

    def made(self, place):
        """Returns how many collective and point-to-point queues were made: in the named queue, or in PRQ and
        UMQ together if the place names none. Returns None if the engine makes no such queues."""
        queues = [place.queue] if place.queue else ["", *QUEUES]
        sums = []
        for traffic in KINDS[1:]:
            places = (place._replace(queue=queue, traffic=traffic) for queue in queues)
            found = [row["ours"] for row in (self.get("queues", of) for of in places) if row]
            if not found:
                return None
            sums.append(sum(found))
        return sums


def counted(row):
    """Formats a count, a time or a ratio."""
    return cell(row, whole if row and row["metric"] in ("queues", "longest") else digits)


def candidates(claim, ranks, numbers):
    for of in ranks:
        for queue in claim.queues:
            place = Place(claim.pattern, of, queue, claim.traffic, claim.engine, "linked", claim.k)
            if row := numbers.get(claim.metric, place):
                yield row, numbers.made(place)


def judge(claim, numbers):
    there = list(candidates(claim, claim.ranks, numbers))
    reached = bool(there)
    if not reached and (ranks := numbers.ranks_of(claim.metric, claim.pattern)):
        there = list(candidates(claim, [ranks], numbers))
    if not there:
        return Judged(claim, None, math.inf, 0.0, None, "not measured", None)
    lowest, highest = min(row["lowest"] for row, _ in there), max(row["highest"] for row, _ in there)
    # A claim on the number of queues is judged even if the number is 0.
    idle = [made == [0.0, 0.0] and claim.metric != "queues" for _, made in there]
    inactive = all(idle)
    if not inactive:
        there = [of for of, is_idle in zip(there, idle) if not is_idle]
    weight = lambda of: factor(of[0]["ours"], claim.paper) if claim.about else of[0]["ours"]
    row, made = max(there, key=weight)
    ours = row["ours"]
    above = None if agree(ours, claim.paper) else ours > claim.paper
    if not reached:
        place = Place(claim.pattern, row["ranks"], "", "", "list", "linked", claim.k)
        bound = numbers.get("bound", place)
        above = None
        text = "not measurable here" + (f", at most {digits(bound['highest'])}" if bound else "")
    else:
        # An engine that makes no queue has no overhead.
        if inactive and ours == 0:
            above = None
        side = "above" if above else "below"
        differs = "" if above is None else f"differs by {digits(factor(ours, claim.paper))}, {side}"
        if inactive:
            text = ", ".join(filter(None, ["algorithm inactive", differs]))
        elif differs:
            text = differs
        else:
            text = f"no test: {row['is']}" if row["is"] in ("fitted", "capped") else "reproduced"
    return Judged(claim, row, lowest, highest, made, text, above)


def reason(judged):
    """Returns why a claim differs or cannot be judged, or None if it agrees."""
    claim, above = judged.claim, judged.above
    if judged.verdict.startswith("not measurable"):
        return FEW_RANKS
    if above is None:
        return None
    between = judged.lowest <= claim.paper <= judged.highest
    match claim.metric, claim.pattern, claim.traffic, claim.engine:
        case "overhead", *_:
            return STEPS
        case "longest", "fds", *_ if above:
            return TAIL_QUEUES
        case "queues", "fds", "point-to-point", _ if not above:
            return PARTNERS
        case "speedup", "radix", *_:
            return NO_ALGORITHM
        case "speedup", "nbody", "collective", "rank-array" if above:
            return NBODY_RANKS
        case "speedup", "miniamr", "point-to-point", _ if above:
            return OVERTAKEN
        case "speedup", "miniamr", "collective", _ if above:
            return MINIAMR
        case "speedup", "fds", "collective", "list-pnp" if not above:
            return GONE
        case "speedup", "fds", "point-to-point", "col-list" if not above:
            return ONE_LIST
        case "speedup", "fds", "point-to-point", _ if above and claim.paper < 10:
            return OVERTAKEN
        case "speedup", "nbody" | "fds", *_ if above and between:
            return LENGTH
    return UNKNOWN


def tally(judged):
    def count(start):
        return sum(of.verdict.startswith(start) for of in judged)

    unmeasured = sum(of.verdict == "not measured" for of in judged)
    return (
        f"Of {len(judged)} numbers, {count('reproduced')} are reproduced, {count('no test')} agree but are no "
        f"test, and {count('differs')} differ. In {count('algorithm')} rows the algorithm was inactive. "
        f"{count('not measurable')} numbers cannot be measured here, and {unmeasured} were not measured."
    )


def subject(claim):
    what = {"speedup": "", "time speedup": "in all"}.get(claim.metric, claim.metric)
    engine = "" if claim.engine == "list" else claim.engine
    words = [claim.pattern, engine, " or ".join(claim.queues), claim.traffic, what]
    return " ".join(filter(None, words))


def verdicts(numbers):
    judged = [judge(claim, numbers) for claim in CLAIMS]
    figure = Figure(
        "Verdicts",
        "Each row sets a number in the paper's text beside ours. Ours are measured on the paper's storage, "
        "linked queues. Unless a row says otherwise, the number is the speedup of searches over the list; *in "
        "all* is the speedup of a whole operation or program.\n\n"
        "- *reproduced*: within 30 % of the paper's number, even if one of the two is slightly faster than "
        "the list and the other one slightly slower.\n"
        "- *no test*: within 30 %, but only because the number was fitted or capped.\n"
        "- *differs by*: the larger number divided by the smaller one, and whether ours is above or below.\n"
        "- *algorithm inactive*: the engine made no queue.\n\n"
        "Ours is the largest median over the numbers of processes at which queues were made. For a number "
        "that the paper calls *about*, ours is the median farthest from it. The range covers all seeds and "
        "all numbers of processes that the paper names. *Queues* has collective + point-to-point queues. "
        f"{tally(judged)}",
        ["number", "source", "paper", "ours", "n", "queues", "origin", "verdict"],
    )
    for of in judged:
        claim, row = of.claim, of.ours
        if claim.metric in ("queues", "longest"):
            paper = whole(claim.paper)
        else:
            paper = ("about " if claim.about else "") + plain(claim.paper)
        ours = row and row | {"lowest": of.lowest, "highest": of.highest}
        made = " + ".join(map(whole, of.made)) if of.made else ""
        verdict = figure.marked(of.verdict, reason(of))
        n, basis = (row["ranks"], row["is"]) if row else ("", "")
        figure.row(subject(claim), claim.at, paper, counted(ours), n, made, basis, verdict)
    return figure


def preface(numbers):
    return f"""<!-- SPDX-License-Identifier: BSD-2-Clause -->
# COL+PNP reproduced

`papers/reproduce.sh colpnp` writes this page. It sets the tables and figures of Ghazimirsaeed, Grant, Afsahi, \
*A dynamic, unified design for dedicated message matching engines for collective and point-to-point \
communications*, Parallel Computing 89 (2019), beside ours.

The paper ran real applications over MVAPICH on clusters. Here rank 0 of a generated workload (`tcam \
workload`) is replayed to a device without table entries. A time is that of a whole operation of the device: \
search, removal and statistics. With one element in a list it is 11 to 15 ns. The paper's figures are bars; \
this page quotes the numbers in its text. Only ratios can be compared, and only roughly. LL is `list`, OMPI is \
`rank-array`, COL+LL is `col-list`, and LL+PNP is `list-pnp`. k_C = k_P = 8. Queues are linked lists with \
theta = 100 as in the paper, except in the last section. Each number is the median over \
{numbers.rows[0]["runs"]} seeds, followed by the range. A seed gives the order of arrival.

A number has one of these origins:

- *measured*: timed on this machine.
- *fitted*: a constant or formula of the workload, chosen to give this number. It confirms nothing.
- *capped*: the cap k sqrt(n) itself, independent of the workload.
- *predicted*: follows from the algorithm; the workload was not fitted to it.
- *bounded*: the largest number that matching can explain, where other effects on the machine hide the number \
itself.

"""


def place(pattern, ranks, engine):
    return Place(pattern, ranks, "", "", engine, "linked", K)


def applications():
    return [(pattern, n) for pattern, ranks in APPLICATIONS.items() for n in ranks]


def elements(numbers):
    header = "workload, n, PRQ collective, longest PRQ, origin, UMQ collective, longest UMQ, origin".split(", ")
    figure = Figure(
        "Fig. 1: elements that enter the queues",
        "Share of collective elements at rank 0, and the longest queue. The paper shows bars of averages over "
        "all processes. It prints numbers only for the collective elements of Nbody: 25,000 in the PRQ and "
        "11,000 in the UMQ, fewer than the point-to-point elements. In Radix nearly all elements are "
        "collective, in MiniAMR and FDS most are. Radix has around 10 elements in the paper (section 5.3.1); "
        "here it has one for each round of recursive doubling. *Tail queues* (CCPE 2019, Table 2) prints the "
        "longest queues of FDS on 4096 processes: see the verdicts.",
        header,
    )
    for pattern, ranks in applications() + [("fds", n) for n in LENGTHS]:
        cells = [pattern, ranks]
        for queue in QUEUES:
            of = place(pattern, ranks, "list")._replace(queue=queue)
            share, longest = (
                numbers.get(metric, of) or numbers.get(metric, of._replace(engine="rank-array"))
                for metric in ("share", "longest")
            )
            cells.append(f"{100 * share['ours']:.0f} %" if share else "")
            cells += [counted(longest), longest["is"] if longest else ""]
        figure.row(*cells)
    return figure


def searches():
    """Yields the place of each row of figures 6 to 8, and its first cells: application, queue, kind of traffic,
    number of processes."""
    for pattern, all_ranks in APPLICATIONS.items():
        for queue in QUEUES:
            for traffic in KINDS:
                for ranks in all_ranks:
                    of = place(pattern, ranks, "list")._replace(queue=queue, traffic=traffic)
                    yield of, [pattern, queue, traffic, ranks]


def speedups(numbers):
    figure = Figure(
        "Figs. 6 to 8: queue search time",
        "Nanoseconds of a search in the list, and the speedups over the list. All are measured. Here "
        "point-to-point messages overtake collective ones: in a list, their searches first pass the "
        "collective elements, which are later searched alone. The steps in which queues are made are left "
        "out here; Table 2 has them.",
        ["workload", "queue", "traffic", "n", "`list` ns", *(f"`{engine}`" for engine in ENGINES[1:])],
    )
    for of, cells in searches():
        if row := numbers.get("ns", of):
            engines = [of._replace(engine=engine) for engine in ENGINES[1:]]
            faster = [counted(numbers.get("speedup", engine)) for engine in engines]
            figure.row(*cells, counted(row), *faster)
    return figure


def gathers():
    """Yields the places of COL+PNP in gather, by number of processes and k_C."""
    for ranks in GATHER:
        for k in KS:
            yield Place("gather", ranks, "PRQ", "collective", "col-pnp", "linked", k)


def gather(numbers):
    figure = Figure(
        "Fig. 5a: gather, k_C from 1 to 16",
        "Nanoseconds of a search at the root and the speedup over the list, both measured. The paper's 1.5, "
        "2.4 and 5.4 are speedups of a whole MPI_Gather with k = 1, of which matching is only a part. They "
        "can be compared only with the numbers that are measured through an MPI.",
        ["n", "k_C", "queues", "origin", "`list` ns", "`col-pnp` ns", "speedup"],
    )
    for of in gathers():
        queues = numbers.get("queues", of)
        figure.row(
            of.ranks,
            of.k,
            counted(queues),
            queues["is"] if queues else "",
            counted(numbers.get("ns", of._replace(engine="list"))),
            counted(numbers.get("ns", of)),
            counted(numbers.get("speedup", of)),
        )
    return figure


def both_kinds(numbers, of):
    """Formats the numbers of collective + point-to-point queues; a \\* marks a capped number. Returns an empty
    text if a number is missing."""
    rows = [numbers.get("queues", of._replace(traffic=traffic)) for traffic in KINDS[1:]]
    if not all(rows):
        return ""
    return " + ".join(whole(row["ours"]) + ("\\*" if row["is"] == "capped" else "") for row in rows)


def queues(numbers):
    figure = Figure(
        "Figs. 9 and 10: queues made",
        "Collective + point-to-point queues of `col-pnp`, at most 8 sqrt(n) of each kind. Numbers with a \\* "
        "are *capped*. The others follow from the lengths of Fig. 1 and have the same origin. `rank-array` "
        "has one queue for each source.",
        ["workload", "n", "PRQ", "UMQ", "8 sqrt(n)", "`rank-array`"],
    )
    for pattern, ranks in applications():
        of = place(pattern, ranks, "col-pnp")
        made = [both_kinds(numbers, of._replace(queue=queue)) for queue in QUEUES]
        figure.row(pattern, ranks, *made, math.isqrt(K * K * ranks), ranks)
    return figure


def overheads(numbers):
    header = ["workload", "n", "ms making queues", "ms of searches", "ratio", "the paper's", "steps"]
    figure = Figure(
        "Table 2: overhead over search time",
        "The ratio is the time of the insertions that make queues over the time of all searches in both "
        "queues, from the first operation on. Such an insertion reads the profile or counts the sources, "
        "makes the queues, and places the elements that waited for a queue. `FI_TCAM_TIMES=on` reports both "
        f"times. They are measured in {MAKING_STEPS} steps. Queues are made once, so the ratio falls with the "
        "length of a run, which the paper does not state. The last column is the number of steps after which "
        "our ratio would equal the paper's.",
        header,
    )
    for pattern, ranks in applications():
        of = place(pattern, ranks, "col-pnp")
        rows = (numbers.get(metric, of) for metric in ("ns making queues", "ns of searches"))
        times = [f"{row['ours'] / 1e6:.3f}" if row else "" for row in rows]
        key = ("overhead", pattern, (ranks,))
        papers = (one.paper for one in CLAIMS if (one.metric, one.pattern, one.ranks) == key)
        paper, ratio = next(papers), numbers.get("overhead", of)
        steps = math.ceil(MAKING_STEPS * ratio["ours"] / paper) if ratio and ratio["ours"] > 0 else ""
        figure.row(pattern, ranks, *times, counted(ratio), plain(paper), steps)
    return figure


def of_mpi(numbers):
    """Returns a list with the section on numbers that were measured through an MPI, or an empty list if there
    are no such numbers."""
    ranks = numbers.ranks_of("ranks a core", OPERATIONS[0][1])
    if not ranks:
        return []
    share = numbers.get(
        "ranks a core", Place(OPERATIONS[0][1], ranks, "", "", "list", "linked", OPERATIONS[0][2])
    )
    figure = Figure(
        "Figs. 5 and 11, through an MPI",
        "`tests/apps/collectives.c` runs over tcam without table entries, with each engine in turn, on "
        f"{ranks} ranks, {share['ours']:.0f} to a core. *us* are the measured microseconds of an operation: "
        "for iallgather of one of 16 MPI_Iallgather at once, for fds of a step. *Speedup* is over the list. "
        "The paper has 1024 to 4096 processes on a cluster, with a core for each. Here most of the time "
        "depends on the order in which ranks get a core. The ranges, which are over runs, show how large a "
        "speedup that can hide. *At most* is *bounded*: the time divided by the time that would remain without "
        "any matching. With queues of this length an engine cannot gain more; a larger measured speedup comes "
        "from the order in which the ranks ran. *At most* is empty if all ranks together spent more time in "
        "matching than the operation took.",
        "source, operation, engine, us, speedup, at most, queues, longest PRQ, longest UMQ".split(", "),
    )
    for said, pattern, k, engines in OPERATIONS:
        for engine in engines:
            of = Place(pattern, ranks, "", "", engine, "linked", k)
            made = numbers.made(of)
            figure.row(
                f"Fig. {said}",
                pattern,
                f"`{engine}`",
                *(counted(numbers.get(metric, of)) for metric in ("us", "time speedup", "bound")),
                " + ".join(map(whole, made)) if made else "",
                *(counted(numbers.get("longest", of._replace(queue=queue))) for queue in QUEUES),
            )
    return [figure]


def packed(numbers):
    header = ["workload", "queue", "traffic", "n", "ns", "over `list`", "over `col-pnp`", "queues"]
    figure = Figure(
        "Packed queues",
        "The engine `col-pnp` on arrays of fingerprints (`FI_TCAM_HOST_STORAGE=packed`, the default) with our "
        "theta = 512. Up to theta elements the engine makes no queue and searches one array. Packed queues are "
        "not in the paper, and no verdict rests on them. The speedups are measured, over the linked list and "
        "over linked `col-pnp`.",
        header,
    )
    by_k = [(of, ["gather", "PRQ", "collective", f"{of.ranks}, k_C = {of.k}"]) for of in gathers()]
    for of, cells in [*searches(), *by_k]:
        linked = of._replace(engine="col-pnp", storage="linked")
        of = linked._replace(storage="packed")
        if row := numbers.get("ns", of):
            other = numbers.get("ns", linked)
            over = digits(other["ours"] / row["ours"]) if other else ""
            faster = counted(numbers.get("speedup", of))
            figure.row(*cells, counted(row), faster, over, both_kinds(numbers, of))
    return figure


def figures(numbers):
    return [
        verdicts(numbers),
        elements(numbers),
        speedups(numbers),
        gather(numbers),
        queues(numbers),
        overheads(numbers),
        *of_mpi(numbers),
        packed(numbers),
    ]


def render(numbers):
    return page(preface(numbers), figures(numbers))


read = Numbers.read
