// SPDX-License-Identifier: BSD-2-Clause
//! The page on tail queues, made of its numbers alone.

use matching::Queue;
use strum::VariantArray;

use super::super::case::{Case, Cases};
use super::super::figure::{Cell, Figure, digits};
use super::verdict::{STATISTICS, basis, counted, verdicts};
use super::{
    APPLICATIONS, Held, Lists, MACHINE, PAPERS, RANKS, Row, THREADS, Which, application, get,
    is_crowded, lengths, machine,
};
use crate::text::numbers::whole;

/// How the page begins.
pub(crate) fn preface(cases: &Cases) -> String {
    let processor = cases.of(MACHINE).next().map_or("unknown", |case| case.case.as_str());
    let of = |metric| machine(cases, metric).map_or_else(|| "?".to_owned(), |of| of.to_string());
    format!(
        "# Tail queues: the paper's figures beside ours\n\n`tcam reproduce tail-queues` makes this \
         page and tail-queues.csv by threads of its own process. It repeats the prototype of section \
         4.1.1: so many receives and messages wait that never match; then every thread alternates, it \
         posts a receive and hands over the message that matches it. One lock around both lists, tail \
         queues, and tail queues with the paper's bins (one around the first 50 elements, one of the \
         others) take turns of {ms} ms. A number is the median over {turns} turns with the range behind \
         it. *M/s* are million matches a second. A *ratio* is that to the one lock of the same time: 1.2 \
         is the paper's 20 %.\n\nMachine: {processor}, {cores} cores. With more threads than these a row \
         is *oversubscribed*: whoever waits for a lock has to wait for a core, too, and turns take four \
         times as long. {again} The paper has two Xeons (Sandy Bridge) of eight cores each, 2.6 GHz, and \
         a Xeon Phi (KNC). *Reproduced* is a gain whose ratio is within 30 % of the paper's.\n\n",
        ms = of("ms"),
        turns = of("turns"),
        cores = of("cores"),
        again = made_again(cases),
    )
}

/// Turns that were made again.
fn made_again(cases: &Cases) -> String {
    let of = |metric| cases.0.iter().filter(move |case| case.metric == metric);
    let all: Vec<_> = of("again").chain(of("disturbed")).collect();
    let sum = |rows: &[&Case]| whole(rows.iter().map(|case| case.ours).sum::<f64>() as u64);
    let lock = Held::ParkingLot.name();
    let sleeping: Vec<_> = all.iter().copied().filter(|case| case.case.contains(lock)).collect();
    let mut text = format!(
        "A turn in which a thread waited for a core for more than 3 % of the time, though there is one \
         for each, was made again: {} turns in {} rows. {} of them are of `{lock}`, whose threads sleep \
         and wait for a core each time that they are woken.",
        sum(&all),
        all.len(),
        sum(&sleeping),
    );
    let rows: Vec<_> = of("disturbed").map(|case| case.case.as_str()).collect();
    if !rows.is_empty() {
        text +=
            &format!(" Turns were kept as they came from the 1,000th on in {}.", rows.join("; "));
    }
    text
}

/// Every section that has numbers, verdicts first.
pub(crate) fn figures(cases: &Cases) -> Vec<Figure> {
    let all = [
        verdicts(cases),
        two_threads(
            cases,
            Lists::Both,
            "Fig. 3: two threads, both lists",
            "M/s of two threads on linked lists with MCS locks, by the elements that wait in each list.",
        ),
        two_threads(
            cases,
            Lists::Prq,
            "Fig. 7: two threads, receives only",
            "The same where nothing waits in the UMQ.",
        ),
        throughput(cases),
        ratios(
            cases,
            Queue::Linked,
            "Figs. 4 to 6: the gain by threads and locks",
            "Median ratios on linked lists, and the lowest of a line. The CSV has ranges.",
        ),
        ratios(
            cases,
            Queue::Packed,
            "Packed queues",
            "Median ratios on packed queues (`FI_TCAM_QUEUE=packed`), in bins of such queues. None of \
             this is the paper's, and no verdict rests on it.",
        ),
        table_2(cases),
    ];
    all.into_iter().filter(|figure| !figure.is_empty()).collect()
}

/// A figure of two threads.
fn two_threads(cases: &Cases, lists: Lists, title: &'static str, note: &str) -> Figure {
    let header =
        ["length", "one lock", "tail queues", "with bins", "ratio", "ratio with bins", "paper"];
    let mut table = Figure::new(title, note, header);
    let (storage, lock) = PAPERS;
    for length in lengths() {
        let row = Row { lists, storage, lock, threads: 2, length };
        if get(cases, row, Which::OneLock, "M/s").is_none() {
            continue;
        }
        let cell = |which, metric| Cell::from(get(cases, row, which, metric));
        let paper = get(cases, row, Which::TailQueues, "ratio").and_then(|case| case.paper);
        table.row(vec![
            length.to_string().into(),
            cell(Which::OneLock, "M/s"),
            cell(Which::TailQueues, "M/s"),
            cell(Which::Binned, "M/s"),
            cell(Which::TailQueues, "ratio"),
            cell(Which::Binned, "ratio"),
            paper.map_or_else(String::new, digits).into(),
        ]);
    }
    table
}

/// How many threads, and whether there is a core for each.
fn threads_of(cases: &Cases, threads: u32) -> String {
    let more = if is_crowded(cases, threads) { ", oversubscribed" } else { "" };
    format!("{threads}{more}")
}

/// A table with a line for each list, lock, number of threads and contender, a column a length.
fn by_lengths(
    cases: &Cases,
    (title, note): (&'static str, &str),
    storage: Queue,
    contenders: &[Which],
    metric: &str,
) -> Figure {
    let with_lowest = metric == "ratio";
    let header = ["lists", "lock", "threads", "queues"].map(str::to_owned).into_iter();
    let header = header.chain(lengths().map(|length| length.to_string()));
    let mut table =
        Figure::new(title, note, header.chain(with_lowest.then(|| "lowest".to_owned())));
    for &lists in Lists::VARIANTS {
        for &lock in Held::VARIANTS {
            for (threads, &which) in pairs(contenders) {
                let values = lengths().map(|length| {
                    let row = Row { lists, storage, lock, threads, length };
                    get(cases, row, which, metric).map(|case| case.ours)
                });
                let values: Vec<_> = values.collect();
                let lowest = values.iter().flatten().copied().min_by(f64::total_cmp);
                if lowest.is_none() {
                    continue;
                }
                let cell = |value: Option<f64>| value.map_or_else(String::new, digits).into();
                let mut cells: Vec<Cell> = vec![
                    <&str>::from(lists).into(),
                    lock.name().into(),
                    threads_of(cases, threads).into(),
                    which.name().into(),
                ];
                cells.extend(values.into_iter().map(cell));
                cells.extend(with_lowest.then(|| cell(lowest)));
                table.row(cells);
            }
        }
    }
    table
}

/// Each number of threads with each contender.
fn pairs(contenders: &[Which]) -> impl Iterator<Item = (u32, &Which)> {
    THREADS.into_iter().flat_map(move |threads| contenders.iter().map(move |of| (threads, of)))
}

fn throughput(cases: &Cases) -> Figure {
    let title = "Figs. 3 to 7: matches a second by threads and locks";
    let note = "Median M/s on linked lists by the elements that wait in the lists: in both, or in the \
                PRQ only (`prq`).";
    by_lengths(cases, (title, note), Queue::Linked, Which::VARIANTS, "M/s")
}

fn ratios(cases: &Cases, storage: Queue, title: &'static str, note: &str) -> Figure {
    let contenders = [Which::TailQueues, Which::Binned];
    by_lengths(cases, (title, note), storage, &contenders, "ratio")
}

fn table_2(cases: &Cases) -> Figure {
    let note = format!(
        "Longest queues, and the most elements that a search passed with the one that it found, on {} \
         processes. The paper counted them in real runs, the largest over all processes. Here rank 0 of \
         a stream of `tcam workload` is replayed to one list, two steps of each seed. Such a stream is \
         made to have queues about as long as papers say; it has no data, no time and no algorithm of \
         the program, and messages of a phase come in random order. So a *fitted* length confirms \
         nothing, and a *predicted* depth tells of random order, not of the program.",
        whole(u64::from(RANKS))
    );
    let header =
        ["application", "numbers"].into_iter().chain(STATISTICS.map(|(_, _, what, _)| what));
    let mut table = Figure::new("Table 2: queues of applications", note, header);
    for pattern in APPLICATIONS {
        let name = application(pattern);
        if cases.get(["T2", &name, "PRQ", "longest"]).is_none() {
            continue;
        }
        let row = |what: String, cell: &dyn Fn((&str, &str, usize)) -> Cell| {
            let cells = STATISTICS.map(|(queue, metric, _, at)| cell((queue, metric, at)));
            [pattern.name().into(), what.into()].into_iter().chain(cells).collect()
        };
        table.row(row("the paper's".to_owned(), &|(queue, metric, _)| {
            let paper = cases.get(["T2", &name, queue, metric]).and_then(|case| case.paper);
            paper.map_or_else(String::new, |paper| whole(paper as u64)).into()
        }));
        table.row(row(format!("`tcam workload {}`", pattern.name()), &|(queue, metric, _)| {
            let case = cases.get(["T2", &name, queue, metric]);
            case.map_or_else(|| "".into(), counted)
        }));
        table.row(row("ours are".to_owned(), &|(_, metric, at)| {
            basis(pattern, metric, at).name().into()
        }));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_what_was_measured() {
        let row = Row {
            lists: Lists::Both,
            storage: Queue::Linked,
            lock: Held::ParkingLot,
            threads: 4,
            length: 8,
        };
        let mut cases = Cases::default();
        cases.put([MACHINE, "a processor", "", "cores"], None, vec![2.0]);
        for (which, metric, value) in [
            (Which::OneLock, "M/s", 2.0),
            (Which::TailQueues, "M/s", 3.0),
            (Which::TailQueues, "ratio", 1.5),
        ] {
            let at = [row.lists.figure(), &row.name(), which.name(), metric];
            cases.put(at, None, vec![value]);
        }
        let text = |figure: &Figure| figure.markdown();
        let pages: Vec<_> = figures(&cases).iter().map(text).collect();
        // Verdicts, matches a second, ratios.
        assert_eq!(pages.len(), 3);
        let line = "| both | parking-lot | 4, oversubscribed | tail queues |  |  |  | 1.50 |";
        assert!(pages[2].contains(line) && pages[2].contains("|  | 1.50 |\n"), "{}", pages[2]);
        assert!(preface(&cases).contains("Machine: a processor, 2 cores."));
    }

    #[test]
    fn turns_that_were_made_again_are_said() {
        let mut cases = Cases::default();
        cases.put(["3", "both,linked,mcs,2,8", "", "again"], None, vec![4.0]);
        cases.put(["7", "prq,linked,parking-lot,2,8", "", "disturbed"], None, vec![1000.0]);
        let text = made_again(&cases);
        assert!(
            text.contains(": 1,004 turns in 2 rows. 1,000 of them are of `parking-lot`"),
            "{text}"
        );
        assert!(text.ends_with("on in prq,linked,parking-lot,2,8."), "{text}");
    }
}
