// SPDX-License-Identifier: BSD-2-Clause
//! The page of COL+PNP, made of its numbers alone.

use matching::{HostEngine, Queue};

use super::colpnp::{KINDS, KS, QUEUES};
use super::figure::{Cell, Figure};
use super::measure::MAKING_STEPS;
use super::number::{Number, Numbers, Place};
use super::paper::{self, K};
use super::{through_mpi, verdict};
use crate::workload::pattern::Pattern;

/// What stands above the figures.
pub(super) fn preface(numbers: &Numbers) -> String {
    format!(
        "<!-- SPDX-License-Identifier: BSD-2-Clause -->
# COL+PNP reproduced

Written by `tcam reproduce colpnp`: the tables and figures of Ghazimirsaeed, Grant, Afsahi, *A \
         dynamic, unified design for dedicated message matching engines for collective and \
         point-to-point communications*, Parallel Computing 89 (2019), beside ours.

The paper ran real applications over MVAPICH on clusters. Here rank 0 of a generated workload \
         (`tcam workload`) is replayed to a device without table entries. A time is that of a \
         whole operation of the device: search, removal and accounts, 11 to 15 ns with one \
         element in a list. The paper's figures are bars; its numbers are those in its text. Only \
         ratios compare, and those roughly. LL is `list`, OMPI `rank-array`, COL+LL `col-list`, \
         LL+PNP `list-pnp`; k_C = k_P = 8. Queues are linked lists with theta = 100 as in the \
         paper, but in the last section. Each number is the median over {} seeds, which give the \
         orders of arrival, with the range behind it.

What a figure is:

- *measured*: timed on this machine.
- *fitted*: a constant or formula of the workload, chosen so that it comes out. It confirms \
         nothing.
- *capped*: the cap k sqrt(n) itself, whatever the workload does.
- *predicted*: follows from the algorithm, without having been aimed at.
- *bounded*: a limit of what matching can explain, where the machine hides the figure itself.

",
        numbers.runs()
    )
}

/// A page of sections.
pub(super) fn of(preface: String, figures: &[Figure]) -> String {
    let page = figures.iter().fold(preface, |page, figure| page + &figure.markdown());
    page.trim_end().to_owned() + "\n"
}

/// Every section, verdicts first.
pub(super) fn figures(numbers: &Numbers) -> Vec<Figure> {
    let mut figures = vec![
        verdict::figure(numbers),
        elements(numbers),
        speedups(numbers),
        gather(numbers),
        queues(numbers),
        overhead(numbers),
    ];
    figures.extend(through_mpi::figure(numbers));
    figures.push(packed(numbers));
    figures
}

/// The applications on each number of processes.
fn applications() -> impl Iterator<Item = (Pattern, u32)> {
    paper::APPLICATIONS
        .into_iter()
        .flat_map(|(pattern, all)| all.iter().map(move |&ranks| (pattern, ranks)))
}

const fn place(pattern: Pattern, ranks: u32, engine: HostEngine) -> Place<'static> {
    Place { pattern, ranks, queue: "", traffic: "", engine, storage: Queue::Linked, k: K }
}

fn elements(numbers: &Numbers) -> Figure {
    let mut figure = Figure::new(
        "Fig. 1: what enters the queues",
        "Elements of rank 0 by kind of traffic, and the longest queue. The paper has bars of \
         averages over all processes, without numbers but for Nbody's collectives: 25,000 in the \
         PRQ, 11,000 in the UMQ, fewer than point-to-point ones. In Radix nearly all are \
         collective, in MiniAMR and FDS most. Radix has around 10 elements (section 5.3.1), and \
         here as many as recursive doubling has rounds. Of FDS on 4096 processes *Tail queues* \
         (CCPE 2019, Table 2) prints the longest queues: see the verdicts.",
        [
            "workload",
            "n",
            "PRQ collective",
            "longest PRQ",
            "is",
            "UMQ collective",
            "longest UMQ",
            "is",
        ],
    );
    let lengths = paper::LENGTHS.iter().map(|&ranks| (Pattern::Fds, ranks));
    for (pattern, ranks) in applications().chain(lengths) {
        let mut row = vec![Cell::from(pattern.name()), ranks.to_string().into()];
        for (queue, _) in QUEUES {
            let place = Place { queue, ..place(pattern, ranks, HostEngine::List) };
            let engines = [HostEngine::List, HostEngine::RankArray];
            let get = |metric| {
                let mut found = engines.iter().map(|&engine| Place { engine, ..place });
                found.find_map(|place| numbers.get(metric, place))
            };
            let share = |number: &Number| format!("{:.0} %", 100.0 * number.ours);
            let longest = get("longest");
            row.push(get("share").map_or_else(String::new, share).into());
            row.extend([longest.into(), longest.map_or("", |number| number.is.name()).into()]);
        }
        figure.row(row);
    }
    figure
}

/// Each row of figures 6 to 8: an application, a queue, a kind of traffic, processes.
fn searches() -> Vec<(Place<'static>, [Cell; 4])> {
    let mut rows = Vec::new();
    for (pattern, all) in paper::APPLICATIONS {
        for (queue, _) in QUEUES {
            for (traffic, _) in KINDS {
                for &ranks in all {
                    let place = Place { queue, traffic, ..place(pattern, ranks, HostEngine::List) };
                    let ranks = ranks.to_string();
                    let cells = [pattern.name().into(), queue.into(), traffic.into(), ranks.into()];
                    rows.push((place, cells));
                }
            }
        }
    }
    rows
}

fn speedups(numbers: &Numbers) -> Figure {
    let mut figure = Figure::new(
        "Figs. 6 to 8: queue search time",
        "Nanoseconds of a search in the list, and the speedups over it, measured. Point-to-point \
         messages overtake collective ones here, so in a list they pass these first, and \
         collective elements are then searched alone. The steps in which queues are made are \
         left out here; Table 2 has them.",
        [
            "workload",
            "queue",
            "traffic",
            "n",
            "`list` ns",
            "`col-pnp`",
            "`col-list`",
            "`list-pnp`",
            "`rank-array`",
        ],
    );
    for (place, cells) in searches() {
        let Some(list) = numbers.get("ns", place) else { continue };
        let mut row = cells.to_vec();
        row.push(Some(list).into());
        let engines =
            [HostEngine::ColPnp, HostEngine::ColList, HostEngine::ListPnp, HostEngine::RankArray];
        for engine in engines {
            row.push(numbers.get("speedup", Place { engine, ..place }).into());
        }
        figure.row(row);
    }
    figure
}

/// COL+PNP of gather, by k_C.
fn gathers() -> impl Iterator<Item = Place<'static>> {
    paper::GATHER.iter().flat_map(|&ranks| {
        KS.iter().map(move |&k| {
            let of = place(Pattern::Gather, ranks, HostEngine::ColPnp);
            Place { queue: "PRQ", traffic: "collective", k, ..of }
        })
    })
}

fn gather(numbers: &Numbers) -> Figure {
    let mut figure = Figure::new(
        "Fig. 5a: gather, k_C from 1 to 16",
        "Nanoseconds of a search at the root and the speedup over the list, measured. The paper's \
         1.5, 2.4 and 5.4 are latencies of the whole MPI_Gather with k = 1, of which matching is \
         a part: they compare with what is measured through MPI only.",
        ["n", "k_C", "queues", "are", "`list` ns", "`col-pnp` ns", "speedup"],
    );
    for place in gathers() {
        let list = numbers.get("ns", Place { engine: HostEngine::List, ..place });
        let queues = numbers.get("queues", place);
        figure.row(vec![
            place.ranks.to_string().into(),
            place.k.to_string().into(),
            queues.into(),
            queues.map_or("", |number| number.is.name()).into(),
            list.into(),
            numbers.get("ns", place).into(),
            numbers.get("speedup", place).into(),
        ]);
    }
    figure
}

/// Collective + point-to-point queues.
fn both_kinds(numbers: &Numbers, place: Place<'_>) -> Cell {
    let made = KINDS[1..].iter().map(|&(traffic, _)| {
        let number = numbers.get("queues", Place { traffic, ..place })?;
        let count = crate::text::numbers::whole(number.ours as u64);
        Some(if number.is == crate::workload::basis::Basis::Capped { count + "\\*" } else { count })
    });
    made.collect::<Option<Vec<_>>>().map_or_else(String::new, |made| made.join(" + ")).into()
}

fn queues(numbers: &Numbers) -> Figure {
    let mut figure = Figure::new(
        "Figs. 9 and 10: queues made",
        "Collective + point-to-point queues of `col-pnp`, at most 8 sqrt(n) of each: those with a \
         \\* are *capped*, the others follow from the lengths, fitted or predicted as these \
         are. `rank-array` has a queue for each source.",
        ["workload", "n", "PRQ", "UMQ", "8 sqrt(n)", "`rank-array`"],
    );
    for (pattern, ranks) in applications() {
        let place = place(pattern, ranks, HostEngine::ColPnp);
        figure.row(vec![
            pattern.name().into(),
            ranks.to_string().into(),
            both_kinds(numbers, Place { queue: "PRQ", ..place }),
            both_kinds(numbers, Place { queue: "UMQ", ..place }),
            (K * K * ranks).isqrt().to_string().into(),
            ranks.to_string().into(),
        ]);
    }
    figure
}

fn overhead(numbers: &Numbers) -> Figure {
    let mut figure = Figure::new(
        "Table 2: overhead over search time",
        format!(
            "Time of the insertions that make queues (reading the profile or counting sources, \
             making the queues, placing the elements that waited for one) over the time of all searches, from the first operation \
             on, in both queues, as `FI_TCAM_TIMES=on` reports it; measured in {MAKING_STEPS} \
             steps. Queues are made once, so that the ratio falls with the length of a run, which \
             the paper does not tell of its own: the last column is the number of steps after \
             which ours would be the paper's."
        ),
        ["workload", "n", "ms making queues", "ms of searches", "ratio", "the paper's", "steps"],
    );
    for (pattern, ranks) in applications() {
        let place = place(pattern, ranks, HostEngine::ColPnp);
        let get = |metric| numbers.get(metric, place);
        let ms =
            |metric| get(metric).map_or_else(String::new, |of| format!("{:.3}", of.ours / 1e6));
        let said = paper::CLAIMS.iter().find(|claim| {
            (claim.metric, claim.pattern, claim.ranks) == ("overhead", pattern, &[ranks][..])
        });
        let ratio = get("overhead");
        let steps = said.zip(ratio).filter(|(_, ratio)| ratio.ours > 0.0).map(|(said, ratio)| {
            (MAKING_STEPS as f64 * ratio.ours / said.figure).ceil().to_string()
        });
        figure.row(vec![
            pattern.name().into(),
            ranks.to_string().into(),
            ms("ns making queues").into(),
            ms("ns of searches").into(),
            ratio.into(),
            said.map_or_else(String::new, |said| said.figure.to_string()).into(),
            steps.unwrap_or_default().into(),
        ]);
    }
    figure
}

fn packed(numbers: &Numbers) -> Figure {
    let mut figure = Figure::new(
        "What packed queues add",
        "The same engine on arrays of fingerprints (`FI_TCAM_QUEUE=packed`, the default), with \
         our theta = 512, up to which no queue is made and an array is searched. None of this is \
         the paper's, and no verdict rests on it. Speedups over the linked list, measured, and \
         over linked `col-pnp`.",
        ["workload", "queue", "traffic", "n", "ns", "over `list`", "over `col-pnp`", "queues"],
    );
    let gathers = gathers().map(|place| {
        let ranks = format!("{}, k_C = {}", place.ranks, place.k);
        (place, ["gather".into(), "PRQ".into(), "collective".into(), ranks.into()])
    });
    for (place, cells) in searches().into_iter().chain(gathers) {
        let linked = Place { engine: HostEngine::ColPnp, storage: Queue::Linked, ..place };
        let place = Place { storage: Queue::Packed, ..linked };
        let Some(ours) = numbers.get("ns", place) else { continue };
        let over = numbers.get("ns", linked).map(|linked| linked.ours / ours.ours);
        let mut row = cells.to_vec();
        row.extend([
            Some(ours).into(),
            numbers.get("speedup", place).into(),
            over.map_or_else(String::new, super::figure::digits).into(),
            both_kinds(numbers, place),
        ]);
        figure.row(row);
    }
    figure
}
