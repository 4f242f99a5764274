// SPDX-License-Identifier: BSD-2-Clause
//! The page on polling of channels, made of its numbers alone.

use super::case::{Cases, verdict};
use super::figure::{Cell, Figure, digits};
use super::polling::{BURSTS, BYTES, CHANNELS, HISTORIES, OVERLAPS, PEERS, SIZES};

/// Less than that is no harm, and no gain.
const NOTHING: f64 = 0.1;

/// The paper's first size past the 4 KiB up to which it takes shared memory.
const PAST: f64 = 8192.0;

/// How the page begins.
pub(super) fn preface(cases: &Cases) -> String {
    let runs = cases.0.first().map_or(0, |case| case.runs);
    format!(
        "# Polling of channels: the paper's figures beside ours\n\n`tcam reproduce polling` makes \
         this page and polling.csv by `tests/apps/polling.c`, through an MPI over two hosts: rank 0, \
         another rank of its host (*near*) and one of another host (*far*). The two that are timed \
         spin (`FI_TCAM_IDLE=spin`), all others sleep. Policies (`FI_TCAM_POLL`) and channels are \
         measured in turns; each number is the median over {runs} rounds with the range behind it, of the \
         quickest sets of each run. A change from `every` is that of the quickest rounds. The paper has dual Xeons of 3 GHz with \
         InfiniBand, half a round trip of some 5 us. `make reproduce` has two hosts on one machine \
         (`tests/lib/two_hosts.py`), between which `tcp` goes through the kernel. *Reproduced* is within \
         30 %.\n\n"
    )
}

/// Every section, verdicts first.
pub(super) fn figures(cases: &Cases) -> Vec<Figure> {
    vec![
        verdicts(cases),
        costs(cases),
        latencies(cases),
        discovery(cases),
        channels(cases),
        overlap(cases),
    ]
}

/// Of the quickest round: others use the machine as well, for seconds, which makes no round quicker.
fn of(cases: &Cases, at: [&str; 4]) -> Option<f64> {
    cases.get(at).map(|case| match at[3] {
        "us" => case.lowest,
        "MB/s" => case.highest,
        _ => case.ours,
    })
}

/// What a policy gains over `every`, with the range in single rounds.
fn gain(cases: &Cases, [figure, case, policy]: [&str; 3]) -> Option<(f64, [f64; 2])> {
    let us = |policy| of(cases, [figure, case, policy, "us"]);
    let rounds = cases.get([figure, case, policy, "gain"])?;
    Some((1.0 - us(policy)? / us("every")?, [rounds.lowest, rounds.highest]))
}

/// Microseconds of a look into shared memory with what the MPI does around it, of a poll of the
/// network beside it, and of the latter for each peer met.
///
/// `static:50` asks the network once in 51 polls.
fn poll(cases: &Cases) -> Option<[f64; 3]> {
    let at = |policy, peers: u32| of(cases, ["1", &format!("{peers} peers"), policy, "us"]);
    let (each, rarely) = (at("every", 1)?, at("static:50", 1)?);
    let look = (51.0 * rarely - each) / 50.0;
    let most = PEERS.into_iter().rev().find(|&peers| at("every", peers).is_some())?;
    let a_peer = (at("every", most)? - each) / f64::from(most.max(2) - 1);
    Some([look, each - look, a_peer])
}

/// The largest gain that polling alone can bring near, and near and far together: a message near
/// costs no more than with shared memory alone, one far what it does with `every`.
fn bound(cases: &Cases, burst: u32) -> Option<[f64; 2]> {
    let every = |place| of(cases, ["4", &format!("burst {burst}, {place}"), "every", "us"]);
    let (near, far) = (every("near")?, every("far")?);
    let alone = 2.0 * of(cases, ["2", "4 B, near", "static:1000", "us"])?;
    Some([(near - alone) / near, (near - alone) / (near + far)])
}

/// The histories of which a burst takes least, and what it takes with each.
fn by_history(cases: &Cases, burst: u32) -> Vec<(u32, f64)> {
    let case = format!("burst {burst}, both");
    let us = |history: u32| of(cases, ["4", &case, &format!("dynamic:{history}"), "us"]);
    HISTORIES.into_iter().filter_map(|history| Some((history, us(history)?))).collect()
}

/// From which size on the kernel's copy is better at each size; `up` if more is better.
fn threshold(cases: &Cases, what: &str, metric: &str, up: bool) -> Option<u32> {
    let is_better = |bytes: u32| {
        let case = format!("{what}, {bytes} B");
        let [buffers, copy] =
            [CHANNELS[0].0, CHANNELS[1].0].map(|channel| of(cases, ["5", &case, channel, metric]));
        Some((copy? > buffers?) == up)
    };
    let all = SIZES.into_iter().rev();
    all.take_while(|&bytes| is_better(bytes) == Some(true)).last()
}

fn said(figure: &mut Figure, at: &str, what: &str, paper: &str, here: Cell, verdict: &str) {
    figure.row(vec![at.into(), what.into(), paper.into(), here, verdict.into()]);
}

fn held(holds: bool) -> &'static str {
    if holds { "reproduced" } else { "differs" }
}

/// Verdicts on what the paper's text says, for docs/papers.md as well.
fn verdicts(cases: &Cases) -> Figure {
    let mut figure = Figure::new(
        "Verdicts",
        "Latency and discovery are gains: the share of the time with `every` that is gone. Numbers are \
         of the quickest rounds, ranges are over gains in single rounds: others use the machine as \
         well, and make no round quicker. *No harm* is a loss of at most 10 %. *At most* is what \
         polling can explain: near as fast as with `static:1000`, far as with `every`. The best H is \
         reproduced if 8 or 10 is within 5 % of the least time. Microseconds of two machines are \
         compared as they are.",
        ["said in", "of", "paper", "here", "verdict"],
    );
    if let Some([look, network, a_peer]) = poll(cases) {
        for (what, paper, ours) in [
            ("us of an empty poll of the network [1]", 0.3, network),
            ("us more for each peer met [1]", 0.03, a_peer),
            ("us of a poll of shared memory [1]", 0.06, look),
        ] {
            said(
                &mut figure,
                "section 3.1",
                what,
                &digits(paper),
                digits(ours).into(),
                // What is lost in the noise of larger times is no factor.
                &if ours < paper / 10.0 {
                    "below, hardly any".to_owned()
                } else {
                    verdict(ours, paper)
                },
            );
        }
    }
    for (policy, case, at, paper) in [
        ("static:50", "4 B, near", "Fig. 2", 0.12),
        ("static:50", "2048 B, near", "Fig. 2", 0.09),
        ("static:1000", "4 B, near", "Fig. 2", 0.37),
        ("dynamic:10", "4 B, near", "abstract", 0.12),
        ("auto", "4 B, near", "abstract", 0.12),
    ] {
        if let Some((ours, range)) = gain(cases, ["2", case, policy]) {
            let what = format!("`{policy}`, {case}: latency [2]");
            let here = Cell::ranged(ours, range);
            said(&mut figure, at, &what, &digits(paper), here, &verdict(ours, paper));
        }
    }
    for (policy, case, paper) in [
        ("static:50", "4 B, far", "no harm"),
        ("static:50", "2048 B, far", "no harm"),
        ("static:1000", "4 B, far", "harm"),
    ] {
        if let Some((ours, range)) = gain(cases, ["2", case, policy]) {
            let holds = (ours >= -NOTHING) == (paper == "no harm");
            let what = format!("`{policy}`, {case}: latency [3]");
            said(&mut figure, "Fig. 2", &what, paper, Cell::ranged(ours, range), held(holds));
        }
    }
    discovered(cases, &mut figure);
    thresholds(cases, &mut figure);
    figure.footnotes = REASONS.map(str::to_owned).to_vec();
    figure
}

/// The claims on message discovery.
fn discovered(cases: &Cases, figure: &mut Figure) {
    let bounds = bound(cases, 200);
    let at_most = |at: usize| {
        bounds.map_or_else(String::new, |bounds| format!(", at most {}", digits(bounds[at])))
    };
    for (place, bound) in [("both", at_most(1)), ("near", at_most(0)), ("far", String::new())] {
        let case = format!("burst 200, {place}");
        let Some((ours, range)) = gain(cases, ["4", &case, "dynamic:10"]) else { continue };
        let (paper, verdict) = match place {
            "both" => ("up to 0.45", verdict(ours, 0.45)),
            _ => ("", String::new()),
        };
        let verdict = verdict + &bound;
        let what = format!("`dynamic:10`, {case}: discovery [4]");
        let here = Cell::ranged(ours, range);
        said(figure, "Fig. 4", &what, paper, here, verdict.trim_start_matches(", "));
    }
    let all = by_history(cases, 200);
    let least = all.iter().min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some(&(best, us)) = least {
        let near_best =
            |of: u32| all.iter().any(|&(history, time)| history == of && time <= us * 1.05);
        let text = format!("{best}: {} us", digits(us));
        let verdict = held(near_best(8) || near_best(10));
        said(figure, "Fig. 4", "burst 200, both: best H [5]", "8 to 10", text.into(), verdict);
    }
    for (burst, place) in [(100, "both"), (200, "both"), (100, "near"), (200, "near")] {
        let case = format!("burst {burst}, {place}");
        let us = |history: u32| of(cases, ["4", &case, &format!("dynamic:{history}"), "us"]);
        if let (Some(same), Some(ten)) = (us(burst), us(10)) {
            let what = format!("{case}: `dynamic:{burst}` over `dynamic:10` [5]");
            let (ratio, more) = (same / ten, held(same / ten > 1.0 + NOTHING));
            said(figure, "section 3.3", &what, "significantly more", digits(ratio).into(), more);
        }
    }
}

/// The claims on thresholds between channels.
fn thresholds(cases: &Cases, figure: &mut Figure) {
    for (what, metric, up) in [("latency", "us", false), ("bandwidth", "MB/s", true)] {
        if cases.of("5").next().is_none() {
            return;
        }
        let what_of =
            format!("{what}: bytes from which the kernel's copy is better than shared buffers [6]");
        let ours = threshold(cases, what, metric, up);
        let text = ours.map_or_else(|| "never".to_owned(), |bytes| bytes.to_string());
        let verdict =
            ours.map_or_else(|| held(false).to_owned(), |bytes| verdict(f64::from(bytes), PAST));
        said(figure, "Fig. 5", &what_of, "8192, past 4096", text.into(), &verdict);
    }
    let [buffers, copy, network] = CHANNELS.map(|(channel, ..)| channel);
    for ((bytes, times), [more, less]) in [
        (OVERLAPS[0], [buffers, network]),
        (OVERLAPS[0], [network, copy]),
        (OVERLAPS[1], [network, copy]),
        (OVERLAPS[1], [copy, buffers]),
    ] {
        let case = format!("{bytes} B, {} us", times[0]);
        let ratio = |channel| of(cases, ["6", &case, channel, "ratio"]);
        if let (Some(of_more), Some(of_less)) = (ratio(more), ratio(less)) {
            let what = format!("{case}: overlap, {more} over {less} [7]");
            let text = format!("{} over {}", digits(of_more), digits(of_less));
            said(figure, "Fig. 6", &what, "more", text.into(), held(of_more > of_less));
        }
    }
}

const REASONS: [&str; 7] = [
    "From `every` and `static:50` with one peer, with what MPI_Test does around a poll. With `tcp` a \
     poll of the network is a call to the kernel, in the paper a look at a completion queue; either \
     is one for all peers. The paper's 0.03 us are of RDMA, where each peer has a place of its own to \
     look at. Shared memory has one ring here, whoever sends.",
    "With `every` each poll makes a call to the kernel, and one that finds nothing goes back to the \
     MPI, which yields the core, instead of looking again. In half a round trip that is as short as \
     here, it is a larger part than in the paper's.",
    "What comes over the network meanwhile waits until R looks into shared memory are over, with the \
     MPI's own work between them.",
    "Root answers each message before the next one is sent: a message takes two half round trips, and \
     nothing but a poll can be saved of them. Far, both go through the kernel's `tcp`, which takes \
     most of the time of near and far together and which no policy makes quicker: hence *at most*. \
     The paper's network takes some 5 us. Where far gains a few per cent here, the reason is not \
     known; *at most* leaves it out.",
    "A ratio is at most H, and the looks of a poll that spins count: after a burst near the first \
     message far waits for some us, once a burst, which is little beside `tcp`. Where H is as large \
     as the burst, the ratio is that of the burst before: root asks the network each time near, and \
     hardly ever far. How much that costs depends on where in a burst the count of H ends, as MPI's \
     own messages shift it.",
    "Sizes are powers of two. The kernel's copy takes its calls and the check of the other process; \
     shared buffers take two copies, in caches larger than the paper's.",
    "4 bytes lie in a slot of the ring however the channel is forced, so that shared buffers and the \
     kernel's copy are one path there. The paper's adapter copies by itself; `tcp` copies with the \
     processors, which both hosts share here.",
];

/// A table with a row a case and a column for each policy or channel.
fn table(cases: &Cases, title: &'static str, note: &str, figure: &str, metrics: &[&str]) -> Figure {
    let engines = cases.engines(figure);
    let header = ["case"].into_iter().chain(engines.iter().copied());
    let mut table = Figure::new(title, note, header);
    for case in cases.cases(figure) {
        let cell = |engine: &&str| {
            metrics.iter().find_map(|metric| cases.get([figure, case, engine, metric])).into()
        };
        table.row([Cell::from(case)].into_iter().chain(engines.iter().map(cell)).collect());
    }
    table
}

fn costs(cases: &Cases) -> Figure {
    table(
        cases,
        "Fig. 1: what a poll costs that finds nothing",
        "Microseconds of an MPI_Test of a receive that nobody sends to, by the peers of the other \
         host that root has met. `static:50` asks the network once in 51 tests, `dynamic:10` and \
         `auto` each time, as long as nothing comes near. The paper has the network and shared \
         memory by the size of the system.",
        "1",
        &["us"],
    )
}

/// Microseconds and the change from `every` behind them.
fn gained(cases: &Cases, at: [&str; 3]) -> Cell {
    let [figure, case, policy] = at;
    let change = |(gain, _): (f64, _)| format!(", {:+.0} %", -100.0 * gain);
    let more = gain(cases, at).map(change).unwrap_or_default();
    Cell::from(cases.get([figure, case, policy, "us"])).with(&more)
}

fn latencies(cases: &Cases) -> Figure {
    let places = ["near", "far"];
    let columns: Vec<_> = places
        .into_iter()
        .flat_map(|place| BYTES.map(|bytes| format!("{bytes} B, {place}")))
        .collect();
    let mut table = Figure::new(
        "Fig. 2: latency by the policy",
        "Microseconds of half a round trip and, in %, the change from `every`, while the network is \
         open: near over shared memory, far over the network. The paper draws R = 1 to 200 and \
         tells of 1000.",
        ["policy".to_owned()].into_iter().chain(columns.iter().cloned()),
    );
    for policy in cases.engines("2") {
        let cells = columns.iter().map(|case| gained(cases, ["2", case, policy]));
        table.row([format!("`{policy}`").into()].into_iter().chain(cells).collect());
    }
    table
}

fn discovery(cases: &Cases) -> Figure {
    let mut table = Figure::new(
        "Figs. 3 and 4: message discovery",
        "Near and far send bursts of messages of 4 bytes to root in turn; root receives from any \
         source and answers each. Microseconds from a burst's first message to its last answer, for \
         a message, and the change from `every` in %. *Both* is the mean of near and far in a round.",
        ["burst", "policy", "both", "near", "far"],
    );
    for burst in BURSTS {
        for policy in cases.engines("4") {
            let cell =
                |place: &str| gained(cases, ["4", &format!("burst {burst}, {place}"), policy]);
            let head = [burst.to_string().into(), format!("`{policy}`").into()];
            table.row(head.into_iter().chain(["both", "near", "far"].map(cell)).collect());
        }
    }
    table
}

fn channels(cases: &Cases) -> Figure {
    table(
        cases,
        "Fig. 5: latency and bandwidth by channel",
        "Microseconds of half a round trip, and MB/s of windows of 16 messages. Shared buffers are \
         forced by `FI_TCAM_KERNEL_COPY=off` and `FI_TCAM_EAGER_SIZE=16384`, the kernel's copy by \
         `FI_TCAM_EAGER_SIZE=0` (messages that a slot of the ring holds stay in it), the network by \
         ranks on two hosts.",
        "5",
        &["us", "MB/s"],
    )
}

fn overlap(cases: &Cases) -> Figure {
    table(
        cases,
        "Fig. 6: overlap of computation and communication",
        "Time of the computation alone over the time of an exchange (MPI_Isend, MPI_Irecv, \
         computation with an MPI_Iprobe every 100 us, MPI_Waitall) by bytes and microseconds of \
         computation. 1 is all of the communication hidden. The paper's network is a loop through \
         the adapter of one host.",
        "6",
        &["ratio"],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cases(numbers: &[([&str; 3], f64)]) -> Cases {
        let mut cases = Cases::default();
        for &([figure, case, policy], us) in numbers {
            cases.put([figure, case, policy, "us"], None, vec![us, 2.0 * us, 3.0 * us]);
            cases.put([figure, case, policy, "gain"], None, vec![0.0, 0.5]);
        }
        cases
    }

    #[test]
    fn gains_and_bounds_are_of_the_quickest_rounds() {
        let cases = cases(&[
            (["2", "4 B, near", "static:1000"], 1.0),
            (["4", "burst 200, near", "every"], 4.0),
            (["4", "burst 200, near", "dynamic:10"], 3.0),
            (["4", "burst 200, far", "every"], 16.0),
        ]);
        let near = gain(&cases, ["4", "burst 200, near", "dynamic:10"]);
        assert_eq!(near, Some((0.25, [0.0, 0.5])));
        assert_eq!(bound(&cases, 200), Some([0.5, 0.1]));
        assert_eq!(bound(&cases, 100), None);
    }

    #[test]
    fn a_poll_is_told_from_the_looks_around_it() {
        // 0.1 us a look and 0.5 a poll of the network, which is asked once in 51.
        let numbers = [("every", 0.6), ("static:50", 0.1 + 0.5 / 51.0)];
        let cases = cases(&numbers.map(|(policy, us)| (["1", "1 peers", policy], us)));
        let [look, network, a_peer] = poll(&cases).unwrap();
        assert!((look - 0.1).abs() < 1e-3 && (network - 0.5).abs() < 1e-3 && a_peer == 0.0);
    }

    #[test]
    fn the_threshold_is_where_it_stays_better() {
        let mut cases = Cases::default();
        for bytes in SIZES {
            let case = format!("latency, {bytes} B");
            // Quicker at 64 bytes, and from 16 KiB on.
            let copy = if bytes == 64 || bytes >= 16_384 { 1.0 } else { 3.0 };
            cases.put(["5", &case, CHANNELS[0].0, "us"], None, vec![2.0]);
            cases.put(["5", &case, CHANNELS[1].0, "us"], None, vec![copy]);
        }
        assert_eq!(threshold(&cases, "latency", "us", false), Some(16_384));
        assert_eq!(threshold(&cases, "bandwidth", "MB/s", true), None);
    }
}
