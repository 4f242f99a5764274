# SPDX-License-Identifier: BSD-2-Clause
"""The page on *Efficient Polling of Multiple Channels in MPI*, made of its numbers alone."""

from .figure import Cases, Figure, cell, digits, held, page, ranged, verdict
from .hash_table import with_more

NOTHING = 0.1  # less than that is no harm, and no gain
PAST = 8192  # the paper's first size past the 4 KiB up to which it takes shared memory
HISTORIES = (2, 4, 8, 10, 12, 20, 50, 100, 200)  # the history of messages (Figure 4)
BURSTS = (10, 100, 200)  # messages of a burst; the paper has the last two
BYTES = (4, 2048)  # of Figure 2
PEERS = (0, 1, 2, 4, 8, 16)  # peers met over the network (Figure 1)
SIZES = (4, 64, 512, 1024, 2048, 4096, 8192, 16384, 65536, 131072, 262144, 1048576)  # bytes of Figure 5
# Bytes of Figure 6, each with microseconds of computation.
OVERLAPS = ((4, (1, 5, 10, 50, 100)), (131072, (10, 50, 100, 500, 1000)))
BUFFERS, COPY, NETWORK = "shared buffers", "kernel copy", "network"
REASONS = [
    "From `every` and `static:50` with one peer, with what MPI_Test does around a poll. With `tcp` a "
    "poll of the network is a call to the kernel, in the paper a look at a completion queue; either "
    "is one for all peers. The paper's 0.03 us are of RDMA, where each peer has a place of its own to "
    "look at. Shared memory has one ring here, whoever sends.",
    "With `every` each poll makes a call to the kernel, and one that finds nothing goes back to the "
    "MPI, which yields the core, instead of looking again. In half a round trip that is as short as "
    "here, it is a larger part than in the paper's.",
    "What comes over the network meanwhile waits until R looks into shared memory are over, with the "
    "MPI's own work between them.",
    "Root answers each message before the next one is sent: a message takes two half round trips, and "
    "nothing but a poll can be saved of them. Far, both go through the kernel's `tcp`, which takes "
    "most of the time of near and far together and which no policy makes quicker: hence *at most*. "
    "The paper's network takes some 5 us. Where far gains a few per cent here, the reason is not "
    "known; *at most* leaves it out.",
    "A ratio is at most H, and the looks of a poll that spins count: after a burst near the first "
    "message far waits for some us, once a burst, which is little beside `tcp`. Where H is as large "
    "as the burst, the ratio is that of the burst before: root asks the network each time near, and "
    "hardly ever far. How much that costs depends on where in a burst the count of H ends, as MPI's "
    "own messages shift it.",
    "Sizes are powers of two. The kernel's copy takes its calls and the check of the other process; "
    "shared buffers take two copies, in caches larger than the paper's.",
    "4 bytes lie in a slot of the ring however the channel is forced, so that shared buffers and the "
    "kernel's copy are one path there. The paper's adapter copies by itself; `tcp` copies with the "
    "processors, which both hosts share here.",
]


def preface(cases):
    return (
        "# Polling of channels: the paper's figures beside ours\n\n`papers/reproduce.sh polling` makes this page "
        "and polling.csv by `tests/apps/polling.c`, through an MPI over two hosts: rank 0, another rank of "
        "its host (*near*) and one of another host (*far*). The two that are timed spin "
        "(`FI_TCAM_IDLE=spin`), all others sleep. Policies (`FI_TCAM_POLL`) and channels are measured in "
        f"turns; each number is the median over {cases.rows[0]['runs']} rounds with the range behind it, of "
        "the quickest sets of each run. A change from `every` is that of the quickest rounds. The paper has "
        "dual Xeons of 3 GHz with InfiniBand, half a round trip of some 5 us. `make reproduce` has two hosts "
        "on one machine (`tests/lib/two_hosts.py`), between which `tcp` goes through the kernel. *Reproduced* "
        "is within 30 %.\n\n"
    )


def best(cases, *key):
    """Of the quickest round: other programs use the machine for seconds, and make no round quicker."""
    row = cases.get(*key)
    return row and row[{"us": "lowest", "MB/s": "highest"}.get(key[-1], "ours")]


def gain(cases, figure, case, policy):
    """The gain of a policy over `every`, with the range in single rounds."""
    rounds = cases.get(figure, case, policy, "gain")
    times = [best(cases, figure, case, of, "us") for of in (policy, "every")]
    return rounds and all(times) and (1 - times[0] / times[1], rounds["lowest"], rounds["highest"])


def poll(cases):
    """Microseconds of a look into shared memory with the MPI's own work around it, of a poll of the
    network beside it, and of the latter for each peer met. `static:50` asks the network once in 51 polls."""
    at = lambda policy, peers: best(cases, "1", f"{peers} peers", policy, "us")
    each, rarely = at("every", 1), at("static:50", 1)
    if each is None or rarely is None:
        return None
    look = (51 * rarely - each) / 50
    most = max(peers for peers in PEERS if at("every", peers) is not None)
    return look, each - look, (at("every", most) - each) / (max(most, 2) - 1)


def bound(cases, burst):
    """The largest gain that polling alone can bring near, and near and far together: a message near costs
    no more than with shared memory alone, one far as much as with `every`."""
    near, far = (best(cases, "4", f"burst {burst}, {at}", "every", "us") for at in ("near", "far"))
    alone = best(cases, "2", "4 B, near", "static:1000", "us")
    if None in (near, far, alone):
        return None
    return {"near": (near - 2 * alone) / near, "both": (near - 2 * alone) / (near + far)}


def threshold(cases, what, metric, up):
    """The size from which on the kernel's copy is better at each size; `up` if more is better."""
    found = None
    for size in reversed(SIZES):
        case = f"{what}, {size} B"
        buffers, copy = (best(cases, "5", case, channel, metric) for channel in (BUFFERS, COPY))
        if buffers is None or copy is None or (copy > buffers) != up:
            break
        found = size
    return found


def verdicts(cases):
    figure = Figure(
        "Verdicts",
        "Latency and discovery are gains: the share of the time with `every` that is gone. Numbers are of the "
        "quickest rounds, ranges are over gains in single rounds: others use the machine as well, and make no "
        "round quicker. *No harm* is a loss of at most 10 %. *At most* is what polling can explain: near as "
        "fast as with `static:1000`, far as with `every`. The best H is reproduced if 8 or 10 is within 5 % of "
        "the least time. Microseconds of two machines are compared as they are.",
        ["said in", "of", "paper", "here", "verdict"],
    )
    figure.footnotes = REASONS
    if costs := poll(cases):
        look, network, a_peer = costs
        for what, paper, ours in (
            ("us of an empty poll of the network [1]", 0.3, network),
            ("us more for each peer met [1]", 0.03, a_peer),
            ("us of a poll of shared memory [1]", 0.06, look),
        ):
            # A difference that is lost in the noise of larger times is no factor.
            found = "below, hardly any" if ours < paper / 10 else verdict(ours, paper)
            figure.row("section 3.1", what, digits(paper), digits(ours), found)
    for policy, case, at, paper in (
        ("static:50", "4 B, near", "Fig. 2", 0.12),
        ("static:50", "2048 B, near", "Fig. 2", 0.09),
        ("static:1000", "4 B, near", "Fig. 2", 0.37),
        ("dynamic:10", "4 B, near", "abstract", 0.12),
        ("auto", "4 B, near", "abstract", 0.12),
    ):
        if ours := gain(cases, "2", case, policy):
            what = f"`{policy}`, {case}: latency [2]"
            figure.row(at, what, digits(paper), ranged(*ours), verdict(ours[0], paper))
    for policy, case, paper in (
        ("static:50", "4 B, far", "no harm"),
        ("static:50", "2048 B, far", "no harm"),
        ("static:1000", "4 B, far", "harm"),
    ):
        if ours := gain(cases, "2", case, policy):
            found = held((ours[0] >= -NOTHING) == (paper == "no harm"))
            figure.row("Fig. 2", f"`{policy}`, {case}: latency [3]", paper, ranged(*ours), found)
    discovered(cases, figure)
    thresholds(cases, figure)
    return figure


def discovered(cases, figure):
    """The claims on message discovery."""
    bounds = bound(cases, 200) or {}
    for place in ("both", "near", "far"):
        case = f"burst 200, {place}"
        ours = gain(cases, "4", case, "dynamic:10")
        if not ours:
            continue
        found = [verdict(ours[0], 0.45)] if place == "both" else []
        found += [f"at most {digits(bounds[place])}"] if place in bounds else []
        paper = "up to 0.45" if place == "both" else ""
        what = f"`dynamic:10`, {case}: discovery [4]"
        figure.row("Fig. 4", what, paper, ranged(*ours), ", ".join(found))
    times = {of: best(cases, "4", "burst 200, both", f"dynamic:{of}", "us") for of in HISTORIES}
    times = {history: us for history, us in times.items() if us is not None}
    if times:
        least = min(times, key=times.get)
        near_best = any(times.get(of, 1e99) <= 1.05 * times[least] for of in (8, 10))
        here = f"{least}: {digits(times[least])} us"
        figure.row("Fig. 4", "burst 200, both: best H [5]", "8 to 10", here, held(near_best))
    for burst, place in ((100, "both"), (200, "both"), (100, "near"), (200, "near")):
        case = f"burst {burst}, {place}"
        same, ten = (best(cases, "4", case, f"dynamic:{of}", "us") for of in (burst, 10))
        if same is not None and ten is not None:
            what = f"{case}: `dynamic:{burst}` over `dynamic:10` [5]"
            more = held(same / ten > 1 + NOTHING)
            figure.row("section 3.3", what, "significantly more", digits(same / ten), more)


def thresholds(cases, figure):
    """The claims on thresholds between channels."""
    if not cases.of("5"):
        return
    for what, metric, up in (("latency", "us", False), ("bandwidth", "MB/s", True)):
        of = f"{what}: bytes from which the kernel's copy is better than shared buffers [6]"
        ours = threshold(cases, what, metric, up)
        found = verdict(ours, PAST) if ours else held(False)
        figure.row("Fig. 5", of, "8192, past 4096", ours or "never", found)
    for (size, times), more, less in (
        (OVERLAPS[0], BUFFERS, NETWORK),
        (OVERLAPS[0], NETWORK, COPY),
        (OVERLAPS[1], NETWORK, COPY),
        (OVERLAPS[1], COPY, BUFFERS),
    ):
        case = f"{size} B, {times[0]} us"
        ratios = [best(cases, "6", case, channel, "ratio") for channel in (more, less)]
        if None not in ratios:
            what = f"{case}: overlap, {more} over {less} [7]"
            here = " over ".join(map(digits, ratios))
            figure.row("Fig. 6", what, "more", here, held(ratios[0] > ratios[1]))


def table(cases, title, note, of, metrics):
    """A row a case, a column for each policy or channel."""
    engines = cases.engines(of)
    figure = Figure(title, note, ["case", *engines])
    for case in cases.cases(of):
        cells = []
        for engine in engines:
            rows = (cases.get(of, case, engine, metric) for metric in metrics)
            cells.append(cell(next(filter(None, rows), None)))
        figure.row(case, *cells)
    return figure


def costs(cases):
    return table(
        cases,
        "Fig. 1: what a poll costs that finds nothing",
        "Microseconds of an MPI_Test of a receive that nobody sends to, by the peers of the other host that "
        "root has met. `static:50` asks the network once in 51 tests, `dynamic:10` and `auto` each time, as "
        "long as nothing comes near. The paper has the network and shared memory by the size of the system.",
        "1",
        ["us"],
    )


def gained(cases, figure, case, policy):
    """Microseconds and the change from `every` behind them."""
    change = gain(cases, figure, case, policy)
    more = f", {-100 * change[0]:+.0f} %" if change else ""
    return with_more(cases.get(figure, case, policy, "us"), more)


def latencies(cases):
    columns = [f"{size} B, {place}" for place in ("near", "far") for size in BYTES]
    figure = Figure(
        "Fig. 2: latency by the policy",
        "Microseconds of half a round trip and, in %, the change from `every`, while the network is open: near "
        "over shared memory, far over the network. The paper draws R = 1 to 200 and tells of 1000.",
        ["policy", *columns],
    )
    for policy in cases.engines("2"):
        figure.row(f"`{policy}`", *(gained(cases, "2", case, policy) for case in columns))
    return figure


def discovery(cases):
    figure = Figure(
        "Figs. 3 and 4: message discovery",
        "Near and far send bursts of messages of 4 bytes to root in turn; root receives from any source and "
        "answers each. Microseconds from a burst's first message to its last answer, for a message, and the "
        "change from `every` in %. *Both* is the mean of near and far in a round.",
        ["burst", "policy", "both", "near", "far"],
    )
    for burst in BURSTS:
        for policy in cases.engines("4"):
            places = (f"burst {burst}, {place}" for place in ("both", "near", "far"))
            figure.row(burst, f"`{policy}`", *(gained(cases, "4", case, policy) for case in places))
    return figure


def channels(cases):
    return table(
        cases,
        "Fig. 5: latency and bandwidth by channel",
        "Microseconds of half a round trip, and MB/s of windows of 16 messages. Shared buffers are forced by "
        "`FI_TCAM_KERNEL_COPY=off` and `FI_TCAM_EAGER_SIZE=16384`, the kernel's copy by `FI_TCAM_EAGER_SIZE=0` "
        "(messages that a slot of the ring holds stay in it), the network by ranks on two hosts.",
        "5",
        ["us", "MB/s"],
    )


def overlap(cases):
    return table(
        cases,
        "Fig. 6: overlap of computation and communication",
        "Time of the computation alone over the time of an exchange (MPI_Isend, MPI_Irecv, computation with an "
        "MPI_Iprobe every 100 us, MPI_Waitall) by bytes and microseconds of computation. 1 is all of the "
        "communication hidden. The paper's network is a loop through the adapter of one host.",
        "6",
        ["ratio"],
    )


def figures(cases):
    return [of(cases) for of in (verdicts, costs, latencies, discovery, channels, overlap)]


def render(cases):
    return page(preface(cases), figures(cases))


read = Cases.read
