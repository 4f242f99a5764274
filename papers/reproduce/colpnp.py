# SPDX-License-Identifier: BSD-2-Clause
"""The page of COL+PNP, made of its numbers alone.

    candidates = medians over seeds, linked queues, at the processes of the claim
    none there, some on fewer ranks  ->  not measurable here; no more than the bound
    none at all                      ->  not measured
    where queues were made           ->  only these candidates
    ours = the largest candidate ("up to"), or the one farthest from "about"
    no queue made at any             ->  algorithm inactive; differs by x, if it does
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
# Operations that are timed through an MPI: the figure, k_C and k_P, the engines.
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
    "Point-to-point messages overtake collective ones here: in a list each passes all collective elements "
    "that stand before it, in engines that tell the kinds apart none. The paper's gain less, which suggests "
    "that few collective elements stood before them."
)
GONE = (
    "Point-to-point messages overtake collective ones here and are gone when these are searched: a list of "
    "collective elements alone gains nothing from telling the kinds apart. In the paper they stood in "
    "between."
)
LENGTH = (
    "The speedup grows with the queue, and the queue with n: ours is below the paper's on fewer processes "
    "and above on more (Figs. 6 to 8). The workload's lengths are fitted, and the paper prints none."
)
NBODY_RANKS = (
    "Each source has one collective element here, so that every queue of `rank-array` has one, while the "
    "list grows with n. The paper's collective elements were searched in shorter lists: its bars have the "
    "same gain with COL+PNP."
)
MINIAMR = (
    "The two groups of sqrt(2n) collective elements are fitted to the 74 queues on 2048 processes. An "
    "average search that long would gain more than the paper's did: most of its searches were shorter than "
    "those that its queues were made for."
)
ONE_LIST = (
    "`col-list` leaves all point-to-point receives in one list, here n/2 of them, a choice of the workload. "
    "The paper gains nearly all by telling the kinds apart: it has fewer."
)
PARTNERS = (
    "Partners are the sources with more elements than the average one: here the n/16 that send four "
    "messages each, a choice of the workload. The paper prints no counts by source."
)
STEPS = (
    "Queues are made once, and the ratio falls with the steps of a run, of which the paper tells nothing: "
    "the last column of Table 2 has the number at which ours would be the paper's."
)
TAIL_QUEUES = (
    "The papers contradict each other: *Tail queues* has a PRQ of 24 at most in FDS on 4096 processes, "
    "COL+PNP speedups of 42 and 73 in its PRQ and as many queues as the cap allows, for which long ones are "
    "needed. The workload follows COL+PNP."
)
NO_ALGORITHM = (
    "Some ns more or less of a search of a few elements, in which the engines do the same."
)
FEW_RANKS = (
    "Fewer ranks than the paper's, which share the cores of one machine. *At most* is what matching could "
    "explain with queues of this length; what is measured beyond it is who ran when. See the section on "
    "Figs. 5 and 11."
)


class Numbers(Table):
    """The numbers of the page by place, metric and basis."""

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
        """Ranks of the first number with this metric of a workload."""
        found = (row for row in self.rows if (row["metric"], row["pattern"]) == (metric, pattern))
        return next((int(row["ranks"]) for row in found), None)

    def made(self, place):
        """Collective and point-to-point queues, of both queues if the place names none. None where an
        engine has no such queues."""
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
    """A count or a time or a ratio."""
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
    # A number of queues counts also where it is 0.
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
    """Why a claim differs or cannot be judged. None for all others."""
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
        f"Of {len(judged)} numbers {count('reproduced')} are reproduced, {count('no test')} agree but are no "
        f"test, {count('differs')} differ, in {count('algorithm')} rows the algorithm was inactive, "
        f"{count('not measurable')} cannot be measured here, {unmeasured} were not measured."
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
        "Each number in the paper's text beside ours on the paper's own storage, linked queues. "
        "*Reproduced* is within 30 % of the paper's, also where one of them is a little faster than the "
        "list and the other a little slower; *no test* the same because it was fitted or capped; otherwise "
        'it *differs by* the larger over the smaller. "Up to" is the largest median over processes at '
        'which queues were made, "about" the median farthest from it; the range is over the processes that '
        "the paper says it of and all seeds. Where no queue was made the *algorithm* was *inactive*. Queues "
        "are collective + point-to-point ones. Where nothing else is said the number is the speedup of "
        f"searches over the list; *in all* that of a whole operation or program. {tally(judged)}",
        ["what", "said in", "paper", "ours", "n", "queues", "is", "verdict"],
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

Written by `papers/reproduce.sh colpnp`: the tables and figures of Ghazimirsaeed, Grant, Afsahi, *A dynamic, \
unified design for dedicated message matching engines for collective and point-to-point communications*, \
Parallel Computing 89 (2019), beside ours.

The paper ran real applications over MVAPICH on clusters. Here rank 0 of a generated workload (`tcam \
workload`) is replayed to a device without table entries. A time is that of a whole operation of the device: \
search, removal and accounts, 11 to 15 ns with one element in a list. The paper's figures are bars; its \
numbers are those in its text. Only ratios compare, and those roughly. LL is `list`, OMPI `rank-array`, \
COL+LL `col-list`, LL+PNP `list-pnp`; k_C = k_P = 8. Queues are linked lists with theta = 100 as in the paper, \
but in the last section. Each number is the median over {numbers.rows[0]["runs"]} seeds, which give the orders \
of arrival, with the range behind it.

What a figure is:

- *measured*: timed on this machine.
- *fitted*: a constant or formula of the workload, chosen so that it comes out. It confirms nothing.
- *capped*: the cap k sqrt(n) itself, whatever the workload does.
- *predicted*: follows from the algorithm, without having been aimed at.
- *bounded*: a limit of what matching can explain, where the machine hides the figure itself.

"""


def place(pattern, ranks, engine):
    return Place(pattern, ranks, "", "", engine, "linked", K)


def applications():
    return [(pattern, n) for pattern, ranks in APPLICATIONS.items() for n in ranks]


def elements(numbers):
    header = "workload, n, PRQ collective, longest PRQ, is, UMQ collective, longest UMQ, is".split(", ")
    figure = Figure(
        "Fig. 1: what enters the queues",
        "Elements of rank 0 by kind of traffic, and the longest queue. The paper has bars of averages over "
        "all processes, without numbers but for Nbody's collectives: 25,000 in the PRQ, 11,000 in the UMQ, "
        "fewer than point-to-point ones. In Radix nearly all are collective, in MiniAMR and FDS most. Radix "
        "has around 10 elements (section 5.3.1), and here as many as recursive doubling has rounds. Of FDS "
        "on 4096 processes *Tail queues* (CCPE 2019, Table 2) prints the longest queues: see the verdicts.",
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
    """Each row of figures 6 to 8: an application, a queue, a kind of traffic, processes."""
    for pattern, all_ranks in APPLICATIONS.items():
        for queue in QUEUES:
            for traffic in KINDS:
                for ranks in all_ranks:
                    of = place(pattern, ranks, "list")._replace(queue=queue, traffic=traffic)
                    yield of, [pattern, queue, traffic, ranks]


def speedups(numbers):
    figure = Figure(
        "Figs. 6 to 8: queue search time",
        "Nanoseconds of a search in the list, and the speedups over it, measured. Point-to-point messages "
        "overtake collective ones here, so in a list they pass these first, and collective elements are then "
        "searched alone. The steps in which queues are made are left out here; Table 2 has them.",
        ["workload", "queue", "traffic", "n", "`list` ns", *(f"`{engine}`" for engine in ENGINES[1:])],
    )
    for of, cells in searches():
        if row := numbers.get("ns", of):
            engines = [of._replace(engine=engine) for engine in ENGINES[1:]]
            faster = [counted(numbers.get("speedup", engine)) for engine in engines]
            figure.row(*cells, counted(row), *faster)
    return figure


def gathers():
    """COL+PNP of gather, by k_C."""
    for ranks in GATHER:
        for k in KS:
            yield Place("gather", ranks, "PRQ", "collective", "col-pnp", "linked", k)


def gather(numbers):
    figure = Figure(
        "Fig. 5a: gather, k_C from 1 to 16",
        "Nanoseconds of a search at the root and the speedup over the list, measured. The paper's 1.5, 2.4 "
        "and 5.4 are latencies of the whole MPI_Gather with k = 1, of which matching is a part: they compare "
        "with what is measured through MPI only.",
        ["n", "k_C", "queues", "are", "`list` ns", "`col-pnp` ns", "speedup"],
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
    """Collective + point-to-point queues."""
    rows = [numbers.get("queues", of._replace(traffic=traffic)) for traffic in KINDS[1:]]
    if not all(rows):
        return ""
    return " + ".join(whole(row["ours"]) + ("\\*" if row["is"] == "capped" else "") for row in rows)


def queues(numbers):
    figure = Figure(
        "Figs. 9 and 10: queues made",
        "Collective + point-to-point queues of `col-pnp`, at most 8 sqrt(n) of each: those with a \\* are "
        "*capped*, the others follow from the lengths, fitted or predicted as these are. `rank-array` has a "
        "queue for each source.",
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
        "Time of the insertions that make queues (reading the profile or counting sources, making the queues, "
        "placing the elements that waited for one) over the time of all searches, from the first operation "
        f"on, in both queues, as `FI_TCAM_TIMES=on` reports it; measured in {MAKING_STEPS} steps. Queues are "
        "made once, so that the ratio falls with the length of a run, which the paper does not tell of its "
        "own: the last column is the number of steps after which ours would be the paper's.",
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
    """What was measured through an MPI, if anything was."""
    ranks = numbers.ranks_of("ranks a core", OPERATIONS[0][1])
    if not ranks:
        return []
    share = numbers.get(
        "ranks a core", Place(OPERATIONS[0][1], ranks, "", "", "list", "linked", OPERATIONS[0][2])
    )
    figure = Figure(
        "Figs. 5 and 11, through an MPI",
        "`tests/apps/collectives.c` over tcam without table entries, engines in turn, on "
        f"{ranks} ranks, {share['ours']:.0f} to a core: microseconds of an operation (of one of 16 "
        "MPI_Iallgather at once, of a step of fds), measured, and the speedup over the list. The paper has "
        "1024 to 4096 processes on a cluster, with a core for each. Here most of what is timed is who runs "
        "when, and the range says how much of a speedup that hides. *At most* is *bounded*: the time over "
        "what would be left of it without any matching, which is all that an engine can explain with queues "
        "of this length; what is measured beyond it is who ran when. It is empty where all ranks together "
        "spent more time in matching than the operation took. Ranges are over runs.",
        "said in, operation, engine, us, speedup, at most, queues, longest PRQ, longest UMQ".split(", "),
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
        "What packed queues add",
        "The same engine on arrays of fingerprints (`FI_TCAM_HOST_STORAGE=packed`, the default), with our theta = "
        "512, up to which no queue is made and an array is searched. None of this is the paper's, and no "
        "verdict rests on it. Speedups over the linked list, measured, and over linked `col-pnp`.",
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
