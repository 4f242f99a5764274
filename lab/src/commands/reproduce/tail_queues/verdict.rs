// SPDX-License-Identifier: BSD-2-Clause
//! Verdicts on what the paper on tail queues says, computed from the numbers alone.

use super::super::case::{Case, Cases, verdict};
use super::super::figure::{Cell, Figure, digits};
use super::super::reasons;
use super::{APPLICATIONS, Lists, PAPERS, Row, Which, application, get, is_crowded, lengths};
use crate::text::numbers::whole;
use crate::workload::basis::{Basis, agree};
use crate::workload::pattern::Pattern;

/// What is no gain.
const NOTHING: f64 = 1.1;
/// How near to the largest gain another one is as large.
const AS_LARGE: f64 = 0.95;

/// Ratios of tail queues by the length, on the paper's storage and locks.
fn by_length(cases: &Cases, lists: Lists, threads: u32) -> Vec<(u32, f64)> {
    let (storage, lock) = PAPERS;
    let ratio = |length| {
        let row = Row { lists, storage, lock, threads, length };
        Some((length, get(cases, row, Which::TailQueues, "ratio")?.ours))
    };
    lengths().filter_map(ratio).collect()
}

fn largest(ratios: &[(u32, f64)]) -> Option<(u32, f64)> {
    ratios.iter().copied().max_by(|one, other| one.1.total_cmp(&other.1))
}

/// Of several lengths, the lower one of two in the middle.
fn median(ratios: &[(u32, f64)]) -> Option<f64> {
    let mut sorted: Vec<_> = ratios.iter().map(|&(_, ratio)| ratio).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

/// A line of the verdicts; what it rests on is a footnote.
struct Said<'a> {
    at: &'a str,
    of: &'a str,
    paper: &'a str,
    here: Cell,
    verdict: String,
    reason: Option<&'static str>,
}

fn said(figure: &mut Figure, line: Said<'_>) {
    let Said { at, of, paper, here, mut verdict, reason } = line;
    if let Some(reason) = reason {
        let known = figure.footnotes.iter().position(|footnote| footnote == reason);
        let number = known.unwrap_or_else(|| {
            figure.footnotes.push(reason.to_owned());
            figure.footnotes.len() - 1
        });
        verdict += &format!(" [{}]", number + 1);
    }
    figure.row(vec![at.into(), of.into(), paper.into(), here, verdict.into()]);
}

fn held(holds: bool) -> String {
    if holds { "reproduced" } else { "differs" }.to_owned()
}

/// What becomes of a ratio of the paper, and why it is another one here.
fn judge(ours: f64, paper: f64) -> (String, Option<&'static str>) {
    let text = match () {
        () if ours <= 1.0 => "differs: no gain".to_owned(),
        () if agree(ours, paper) => format!("reproduced, {:+.0} %", 100.0 * (ours / paper - 1.0)),
        () => verdict(ours, paper),
    };
    let reason = match () {
        () if ours > paper && !agree(ours, paper) => Some(ABOVE),
        () if ours < paper => Some(BELOW),
        () => None,
    };
    (text, reason)
}

const ABOVE: &str = "Likely, and not profiled: with one lock each operation waits until the lock and what it \
    protects have come from the other core. With tail queues a thread that has finished with one \
    list mostly finds the lock of the other one free. How long a cache line takes from core to \
    core is another time on each machine.";
const BELOW: &str = "Likely, and not profiled: the lock of the tail and both inboxes go from core to core in each \
    operation, whichever list it searches, and two threads do not share that work. The shorter a \
    search is beside it, the less they gain. tail-queues.md has the rates of one thread.";
const KNC: &str = "A Xeon Phi (KNC), with many slow cores, four threads each: another machine, of \
    which nothing here tells anything.";
const SHAPE: &str = "The paper measured it on a Xeon Phi (KNC) and prints no numbers; what it says of \
    the shape is judged. Ratios are medians over lengths; *significantly* is by more than 10 %.";
const MPICH: &str = "The paper changed MPICH 3.1.4, whose locks are in its own code. Here matching is \
    behind libfabric and MPICH is as it is; what threads of a rank gain through MPICH and Open MPI is \
    in measuring.md.";
const PEAK: &str = "Where the gain is largest depends on how long a search takes beside the lock's way \
    from core to core. It is as large as the largest if it is within 5 % of it.";
const ORDER: &str = "Messages come in random order here, so that some receive takes nearly the \
    youngest of all. The paper's programs took theirs nearer to the head of the list.";

/// Verdicts on what the paper's text says, for docs/papers.md as well.
pub(super) fn verdicts(cases: &Cases) -> Figure {
    let mut figure = Figure::new(
        "Verdicts",
        "Matches a second of tail queues over those of one lock around both lists, on linked lists with \
         MCS locks as in the paper, without bins. *Reproduced* is a gain whose ratio is within 30 % of \
         the paper's; behind it stands how far it is from it. Table 2 is about rank 0 of a generated \
         stream; *no test* is a length that was fitted to the paper's.",
        ["said in", "of", "paper", "here", "verdict"],
    );
    let two = by_length(cases, Lists::Both, 2);
    for length in [1, 32] {
        let (storage, lock) = PAPERS;
        let row = Row { lists: Lists::Both, storage, lock, threads: 2, length };
        let Some(case) = get(cases, row, Which::TailQueues, "ratio") else { continue };
        let Some(paper) = case.paper else { continue };
        let (verdict, reason) = judge(case.ours, paper);
        let of = format!("two threads, length {length}");
        let about = if length == 1 { "" } else { "close to " };
        let paper = format!("{about}{}", digits(paper));
        let here = Some(case).into();
        said(&mut figure, Said { at: "Fig. 3", of: &of, paper: &paper, here, verdict, reason });
    }
    if let (Some((best, most)), Some(&(_, of_32))) =
        (largest(&two), two.iter().find(|(length, _)| *length == 32))
    {
        said(
            &mut figure,
            Said {
                at: "Fig. 3",
                of: "two threads: length of the largest gain",
                paper: "32",
                here: format!("{best}: {}", digits(most)).into(),
                verdict: held(of_32 >= AS_LARGE * most),
                reason: Some(PEAK),
            },
        );
        said(
            &mut figure,
            Said {
                at: "Figs. 4 to 6",
                of: "largest gain on KNC",
                paper: "close to 2.5, near 128",
                here: format!("two threads, {best}: {}", digits(most)).into(),
                verdict: "no verdict".to_owned(),
                reason: Some(KNC),
            },
        );
    }
    by_threads(cases, &mut figure);
    receives_only(cases, &two, &mut figure);
    said(
        &mut figure,
        Said {
            at: "Fig. 8",
            of: "message rate of MPICH, with bins",
            paper: "1.07",
            here: "".into(),
            verdict: "not measured".to_owned(),
            reason: Some(MPICH),
        },
    );
    statistics(cases, &mut figure);
    figure
}

/// What the paper says of more threads on KNC: at length 128, where its gain is largest.
fn by_threads(cases: &Cases, figure: &mut Figure) {
    let (storage, lock) = PAPERS;
    let rate = |threads| {
        let row = Row { lists: Lists::Both, storage, lock, threads, length: 128 };
        get(cases, row, Which::TailQueues, "M/s").map(|case| case.ours)
    };
    for (at, threads, paper) in [("Fig. 5", 4, "less"), ("Fig. 6", 8, "about as much")] {
        if let (Some(two), Some(more)) = (rate(2), rate(threads)) {
            let here = format!("{} to {} M/s at length 128", digits(more), digits(two));
            said(
                figure,
                Said {
                    at,
                    of: &format!("{threads} threads beside two, on KNC"),
                    paper,
                    here: (here + if is_crowded(cases, threads) { ", oversubscribed" } else { "" })
                        .into(),
                    verdict: "no verdict".to_owned(),
                    reason: Some(KNC),
                },
            );
        }
    }
}

/// Figure 7.
fn receives_only(cases: &Cases, both: &[(u32, f64)], figure: &mut Figure) {
    let receives = by_length(cases, Lists::Prq, 2);
    let (Some(receives), Some(both)) = (median(&receives), median(both)) else { return };
    for (of, paper, here, holds) in [
        ("two threads, receives only: gain", "significant", digits(receives), receives > NOTHING),
        (
            "two threads, receives only beside both lists",
            "smaller",
            format!("{} to {}", digits(receives), digits(both)),
            receives < both,
        ),
    ] {
        let (at, here, verdict) = ("Fig. 7", here.into(), held(holds));
        said(figure, Said { at, of, paper, here, verdict, reason: Some(SHAPE) });
    }
}

/// Queue and metric of a column of Table 2, its name, and which of the fitted lengths it is.
pub(super) const STATISTICS: [(&str, &str, &str, usize); 4] = [
    ("PRQ", "longest", "longest PRQ", 0),
    ("PRQ", "deepest", "deepest search of the PRQ", 0),
    ("UMQ", "longest", "longest UMQ", 1),
    ("UMQ", "deepest", "deepest search of the UMQ", 1),
];

/// How a number of Table 2 came about: depths follow from lengths and the order of arrival.
pub(super) fn basis(pattern: Pattern, metric: &str, queue: usize) -> Basis {
    if metric == "longest" { pattern.paper().basis[queue] } else { Basis::Predicted }
}

/// Verdicts on Table 2.
fn statistics(cases: &Cases, figure: &mut Figure) {
    for pattern in APPLICATIONS {
        for (queue, metric, what, at) in STATISTICS {
            let case = cases.get(["T2", &application(pattern), queue, metric]);
            let Some((case, paper)) = case.and_then(|case| Some((case, case.paper?))) else {
                continue;
            };
            let basis = basis(pattern, metric, at);
            let agrees = agree(case.ours, paper);
            let verdict = match basis {
                Basis::Fitted if agrees => format!("no test: {}", basis.name()),
                _ => verdict(case.ours, paper),
            };
            let reason = match (agrees, pattern, queue) {
                (true, ..) => None,
                (_, Pattern::Fds, "PRQ") => Some(reasons::TAIL_QUEUES),
                (_, _, _) if case.ours > paper && metric == "deepest" => Some(ORDER),
                _ => Some(reasons::UNKNOWN),
            };
            said(
                figure,
                Said {
                    at: "Table 2",
                    of: &format!("{}, {what}", pattern.name()),
                    paper: &whole(paper as u64),
                    here: counted(case),
                    verdict,
                    reason,
                },
            );
        }
    }
}

/// A count with its range.
pub(super) fn counted(case: &Case) -> Cell {
    let [ours, lowest, highest] =
        [case.ours, case.lowest, case.highest].map(|value| whole(value as u64));
    if lowest == highest { ours.into() } else { format!("{ours} ({lowest} to {highest})").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of the paper's storage and locks with these ratios at lengths.
    fn cases(ratios: &[(Lists, u32, f64)]) -> Cases {
        let mut cases = Cases::default();
        let (storage, lock) = PAPERS;
        for &(lists, length, ratio) in ratios {
            let row = Row { lists, storage, lock, threads: 2, length };
            let at = [lists.figure(), &row.name(), Which::TailQueues.name(), "ratio"];
            let paper = super::super::paper(row, Which::TailQueues);
            cases.put(at, paper, vec![ratio]);
        }
        cases
    }

    fn verdict_of(cases: &Cases, line: &str) -> String {
        let page = verdicts(cases).markdown();
        let row = page.lines().find(|row| row.contains(line)).unwrap_or_else(|| panic!("{page}"));
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        cells[4].split(" [").next().unwrap().to_owned()
    }

    #[test]
    fn a_ratio_that_is_no_gain_is_not_reproduced() {
        for (ours, text, explained) in [
            (0.99, "differs: no gain", true),
            (1.20, "reproduced, +0 %", false),
            (1.02, "reproduced, -15 %", true),
            (2.4, "above, by 2.00", true),
        ] {
            let (verdict, reason) = judge(ours, 1.2);
            assert_eq!((verdict.as_str(), reason.is_some()), (text, explained));
        }
    }

    #[test]
    fn the_largest_gain_is_where_it_is_nearly_reached() {
        let all = |of_128| {
            cases(&[(Lists::Both, 1, 1.2), (Lists::Both, 32, 1.9), (Lists::Both, 128, of_128)])
        };
        assert_eq!(verdict_of(&all(1.95), "length of the largest gain"), "reproduced");
        assert_eq!(verdict_of(&all(2.85), "length of the largest gain"), "differs");
        assert_eq!(verdict_of(&all(2.85), "on KNC"), "no verdict");
        assert_eq!(verdict_of(&all(2.85), "MPICH"), "not measured");
    }

    #[test]
    fn receives_only_gain_less_than_both_lists() {
        let of = |receives| {
            cases(&[(Lists::Both, 32, 1.9), (Lists::Prq, 32, receives), (Lists::Prq, 64, receives)])
        };
        assert_eq!(verdict_of(&of(1.4), "only: gain"), "reproduced");
        assert_eq!(verdict_of(&of(1.4), "beside both"), "reproduced");
        assert_eq!(verdict_of(&of(1.05), "only: gain"), "differs");
        assert_eq!(verdict_of(&of(2.0), "beside both"), "differs");
    }

    #[test]
    fn fitted_lengths_are_no_test() {
        let mut cases = Cases::default();
        let name = application(Pattern::Amg);
        cases.put(["T2", &name, "UMQ", "longest"], Some(418.0), vec![418.0]);
        cases.put(["T2", &name, "UMQ", "deepest"], Some(260.0), vec![390.0, 400.0]);
        assert_eq!(verdict_of(&cases, "longest UMQ"), "no test: fitted");
        assert_eq!(verdict_of(&cases, "deepest search of the UMQ"), "above, by 1.52");
    }
}
