# SPDX-License-Identifier: BSD-2-Clause
"""Renders the page on polling of channels (papers/papers.md) from its numbers alone."""

from .figure import Cases, Figure, cell, digits, held, page, ranged, verdict
from .hash_table import with_more

NOTHING = 0.1  # a smaller change is neither harm nor gain
PAST = 8192  # the paper's first size beyond the 4 KiB up to which it uses shared memory
HISTORIES = (2, 4, 8, 10, 12, 20, 50, 100, 200)  # H, the length of the history in messages (Figure 4)
BURSTS = (10, 100, 200)  # messages in a burst; the paper has the last two
BYTES = (4, 2048)  # lengths of messages in Figure 2
PEERS = (0, 1, 2, 4, 8, 16)  # peers connected over the network (Figure 1)
SIZES = (4, 64, 512, 1024, 2048, 4096, 8192, 16384, 65536, 131072, 262144, 1048576)  # bytes of Figure 5
# Bytes in Figure 6, each with the microseconds of computation.
OVERLAPS = ((4, (1, 5, 10, 50, 100)), (131072, (10, 50, 100, 500, 1000)))
BUFFERS, COPY, NETWORK = "shared buffers", "kernel copy", "network"
REASONS = [
    "Computed from `every` and `static:50` with one peer; the time includes the work of MPI_Test around a "
    "poll. With `tcp`, a poll of the network is a system call; in the paper it reads a completion queue. In "
    "both cases one poll covers all peers. The paper's 0.03 us are for RDMA, where a poll reads one location "
    "for each peer. Here all senders share one ring in shared memory.",
    "With `every`, each poll makes a system call. A poll that finds nothing returns to the MPI, which yields "
    "the core instead of polling again. This cost is a larger part of our half round trip than of the "
    "paper's, because ours is shorter.",
    "A message from the network waits until R polls of shared memory are over, and the MPI does its own work "
    "between the polls.",
    "Root answers each message before the next one is sent. A message therefore takes two half round trips, "
    "and a policy can save only polls. Far messages go through `tcp` in the kernel, which takes most of the "
    "time of near and far together. No policy makes `tcp` faster: hence *at most*. The paper's network takes "
    "about 5 us. Where far gains a few per cent here, the reason is not known, and *at most* leaves this gain "
    "out.",
    "The ratio of polls is at most H, and the polls of a spinning wait count. After a burst near, the first "
    "message far therefore waits for a few us. This happens once a burst and is short compared with `tcp`. If "
    "H is as large as the burst, the ratio is that of the previous burst: root polls the network each time "
    "during a burst near, and rarely during a burst far. The cost depends on the message at which the count "
    "of H ends, which the MPI's own messages shift.",
    "Sizes are powers of two. The kernel's copy costs system calls and the check of the other process. Shared "
    "buffers cost two copies, in caches larger than the paper's.",
    "A message of 4 bytes fits into a slot of the ring, whichever channel is forced. Shared buffers and the "
    "kernel's copy are therefore the same path at this size. The paper's adapter copies without the "
    "processor; `tcp` copies with the processors, which both hosts share here.",
]


def preface(cases):
    return (
        "# Polling of channels: the paper's figures beside ours\n\n`papers/reproduce.sh polling` writes this page "
        "and polling.csv. It runs `tests/apps/polling.c` through an MPI over two hosts: rank 0, another rank on "
        "its host (*near*) and a rank on the other host (*far*). The two ranks that are timed spin "
        "(`FI_TCAM_IDLE=spin`); all others sleep. Policies (`FI_TCAM_POLL`) and channels are measured in turn. "
        f"Each number is the median over {cases.rows[0]['runs']} rounds, followed by the range; each run reports "
        "its fastest sets. A change from `every` is that of the fastest rounds. The paper has dual Xeons of "
        "3 GHz with InfiniBand; half a round trip takes about 5 us. `make reproduce` makes two hosts on one "
        "machine (`tests/lib/two_hosts.py`), and `tcp` between them goes through the kernel. *Reproduced* means "
        "within 30 % of the paper's number.\n\n"
    )


def best(cases, *key):
    """Returns the time or rate of the fastest round, or the median of other metrics. Other programs slow the
    machine for seconds, but make no round faster. Returns None if the number is missing."""
    row = cases.get(*key)
    return row and row[{"us": "lowest", "MB/s": "highest"}.get(key[-1], "ours")]


def gain(cases, figure, case, policy):
    """Returns the gain of a policy over `every`, with its range over single rounds. Returns None if a number is
    missing."""
    rounds = cases.get(figure, case, policy, "gain")
    times = [best(cases, figure, case, of, "us") for of in (policy, "every")]
    return rounds and all(times) and (1 - times[0] / times[1], rounds["lowest"], rounds["highest"])


def poll(cases):
    """Returns the microseconds of a poll of shared memory with the MPI's own work around it, of the additional
    poll of the network, and of each further connected peer. `static:50` polls the network once in 51 polls.
    Returns None if a number is missing."""
    at = lambda policy, peers: best(cases, "1", f"{peers} peers", policy, "us")
    each, rarely = at("every", 1), at("static:50", 1)
    if each is None or rarely is None:
        return None
    look = (51 * rarely - each) / 50
    most = max(peers for peers in PEERS if at("every", peers) is not None)
    return look, each - look, (at("every", most) - each) / (max(most, 2) - 1)


def bound(cases, burst):
    """Returns the largest gain that polling can bring near, and near and far together: a near message is as
    fast as with shared memory alone, and a far message is as slow as with `every`. Returns None if a number is
    missing."""
    near, far = (best(cases, "4", f"burst {burst}, {at}", "every", "us") for at in ("near", "far"))
    alone = best(cases, "2", "4 B, near", "static:1000", "us")
    if None in (near, far, alone):
        return None
    return {"near": (near - 2 * alone) / near, "both": (near - 2 * alone) / (near + far)}


def threshold(cases, what, metric, up):
    """Returns the smallest size from which the kernel's copy is always better than shared buffers, or None.
    If `up` is true, larger numbers are better."""
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
        "Latency and discovery are gains: the share of the time with `every` that a policy saves. Gains are "
        "those of the fastest rounds, because other programs use the machine and make no round faster. Ranges "
        "are over the gains in single rounds. *No harm* is a loss of at most 10 %. *At most* is the gain that "
        "polling can explain: near as fast as with `static:1000`, far as fast as with `every`. The best H is "
        "reproduced if H = 8 or H = 10 is within 5 % of the shortest time. Microseconds are compared although "
        "the machines differ.",
        ["source", "number", "paper", "here", "verdict"],
    )
    figure.footnotes = REASONS
    if costs := poll(cases):
        look, network, a_peer = costs
        for what, paper, ours in (
            ("us of an empty poll of the network [1]", 0.3, network),
            ("us more for each connected peer [1]", 0.03, a_peer),
            ("us of a poll of shared memory [1]", 0.06, look),
        ):
            # A difference within the noise of larger times gives no factor.
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
    """Adds the verdicts on message discovery."""
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
    """Adds the verdicts on thresholds between channels."""
    if not cases.of("5"):
        return
    for what, metric, up in (("latency", "us", False), ("bandwidth", "MB/s", True)):
        of = f"{what}: bytes from which the kernel's copy is better than shared buffers [6]"
        ours = threshold(cases, what, metric, up)
        found = verdict(ours, PAST) if ours else held(False)
        figure.row("Fig. 5", of, "8192 (the size after 4096)", ours or "never", found)
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
    """Makes a figure with a row for each case and a column for each policy or channel."""
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
        "Fig. 1: the cost of a poll that finds nothing",
        "Microseconds of an MPI_Test of a receive that no rank sends to, by the number of connected peers on the "
        "other host. `static:50` polls the network once in 51 tests. `dynamic:10` and `auto` poll it each time "
        "while no message comes near. The paper has the costs of the network and of shared memory by the size "
        "of the system.",
        "1",
        ["us"],
    )


def gained(cases, figure, case, policy):
    """Formats microseconds, followed by the change from `every`."""
    change = gain(cases, figure, case, policy)
    more = f", {-100 * change[0]:+.0f} %" if change else ""
    return with_more(cases.get(figure, case, policy, "us"), more)


def latencies(cases):
    columns = [f"{size} B, {place}" for place in ("near", "far") for size in BYTES]
    figure = Figure(
        "Fig. 2: latency by policy",
        "Microseconds of half a round trip, and the change from `every` in %, while the network is open. Near "
        "messages use shared memory, far messages use the network. The paper plots R = 1 to 200 and mentions "
        "R = 1000 in the text.",
        ["policy", *columns],
    )
    for policy in cases.engines("2"):
        figure.row(f"`{policy}`", *(gained(cases, "2", case, policy) for case in columns))
    return figure


def discovery(cases):
    figure = Figure(
        "Figs. 3 and 4: message discovery",
        "Near and far send bursts of 4-byte messages to root in turn. Root receives from any source and answers "
        "each message. The numbers are microseconds for each message, from the first message of a burst to its "
        "last answer, and the change from `every` in %. *Both* is the mean of near and far in a round.",
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
        "Microseconds of half a round trip, and MB/s with windows of 16 messages. `FI_TCAM_KERNEL_COPY=off` with "
        "`FI_TCAM_EAGER_SIZE=16384` forces shared buffers. `FI_TCAM_EAGER_SIZE=0` forces the kernel's copy, "
        "except for messages that fit into a slot of the ring. Ranks on two hosts force the network.",
        "5",
        ["us", "MB/s"],
    )


def overlap(cases):
    return table(
        cases,
        "Fig. 6: overlap of computation and communication",
        "Time of the computation alone divided by the time of an exchange, by bytes and microseconds of "
        "computation. An exchange is MPI_Isend, MPI_Irecv, computation with an MPI_Iprobe every 100 us, and "
        "MPI_Waitall. 1 means that the computation hides all communication. The paper's network is a loopback "
        "through the adapter of one host.",
        "6",
        ["ratio"],
    )


def figures(cases):
    return [of(cases) for of in (verdicts, costs, latencies, discovery, channels, overlap)]


def render(cases):
    return page(preface(cases), figures(cases))


read = Cases.read
