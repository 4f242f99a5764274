// SPDX-License-Identifier: BSD-2-Clause
//! COL+PNP: Figures 1 and 5 to 10 and Table 2 of Ghazimirsaeed, Grant, Afsahi,
//! Parallel Computing 89 (2019).

use matching::{HostEngine, Queue, QueueCounters};
use serde::{Serialize, Serializer};

use super::figure::{Figure, digits};
use super::measure::{self, Contender, Costs, Stream};
use super::{Effort, paper};
use crate::error::Error;
use crate::numbers::whole;
use crate::progress;
use crate::workload::{self, Pattern, Role};

pub(super) const PREFACE: &str = "<!-- SPDX-License-Identifier: BSD-2-Clause -->
# COL+PNP reproduced

Written by `tcam reproduce colpnp`: the tables and figures of Ghazimirsaeed, Grant, Afsahi, \
*A dynamic, unified design for dedicated message matching engines for collective and \
point-to-point communications*, Parallel Computing 89 (2019), beside ours.

The paper ran real applications over MVAPICH on clusters; here rank 0 of a generated workload \
(`tcam workload`) is replayed to a device without table entries. A time is that of a whole \
operation of the device: search, removal and accounts, 11 to 15 ns with one element in a list. \
The paper's figures are bars; its numbers are those in its text, \"up to\" over processes. Only \
ratios compare, and those roughly. Linked queues are lists as in the paper, with its theta of \
100; packed ones are arrays of fingerprints with ours, 512. LL is `list`, OMPI `rank-array`.

";

/// The list, ours on both storages, and the paper's others.
const ENGINES: [(HostEngine, Queue); 6] = [
    (HostEngine::List, Queue::Linked),
    (HostEngine::ColPnp, Queue::Packed),
    (HostEngine::ColPnp, Queue::Linked),
    (HostEngine::ColList, Queue::Linked),
    (HostEngine::ListPnp, Queue::Linked),
    (HostEngine::RankArray, Queue::Linked),
];
const LIST: usize = 0;
const PACKED: usize = 1;
const LINKED: usize = 2;
/// Whose times the paper's columns stand beside.
const PAPERS: [usize; 4] = [2, 3, 4, 5];
/// k_C and k_P of the applications.
const K: u32 = 8;

/// The two queues, who searches them and who fills them.
const QUEUES: [(&str, Role, Role); 2] =
    [("PRQ", Role::FindsReceive, Role::Waits), ("UMQ", Role::FindsMessage, Role::Unexpected)];
const KINDS: [(&str, Option<bool>); 3] =
    [("all", None), ("collective", Some(true)), ("point-to-point", Some(false))];

/// One number of a figure.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Number {
    figure: &'static str,
    pattern: String,
    ranks: u32,
    queue: &'static str,
    traffic: &'static str,
    engine: &'static str,
    storage: &'static str,
    k: u32,
    metric: &'static str,
    #[serde(serialize_with = "rounded")]
    ours: f64,
    paper: &'static str,
}

/// Four decimals: more would be noise.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands it over so")]
fn rounded<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((value * 1e4).round() / 1e4)
}

/// What was measured.
pub(super) struct Made {
    pub(super) figures: Vec<Figure>,
    pub(super) numbers: Vec<Number>,
}

/// An application on so many processes.
struct Run {
    pattern: Pattern,
    ranks: u32,
    costs: Vec<Costs>,
}

fn contenders(k: u32) -> Vec<Contender> {
    ENGINES.map(|(engine, queue)| Contender { engine, queue, k }).to_vec()
}

/// Measures everything.
pub(super) fn reproduce(effort: Effort) -> Result<Made, Error> {
    let applications = paper::APPLICATIONS.into_iter();
    let of = |(pattern, ranks): (Pattern, [u32; 3])| ranks.map(|ranks| (pattern, ranks));
    let applications: Vec<_> = applications.flat_map(of).collect();
    let ks = [1, 2, 4, 8, 16];
    let steps = (applications.len() + paper::GATHER.len() * ks.len()) as u64;
    let bar = workload::progress(steps);
    let measure = |pattern: Pattern, ranks: u32, contenders: &[Contender]| {
        let message = format!("{} on {}", pattern.name(), whole(u64::from(ranks)));
        progress::step(&format!("{} of {steps}: {message}", bar.position() + 1));
        bar.set_message(message);
        let stream = Stream::new(pattern, ranks, effort.seed);
        let costs = measure::all(&stream, contenders, effort.time)?;
        bar.inc(1);
        Ok::<_, Error>(Run { pattern, ranks, costs })
    };
    let mut runs = Vec::new();
    for (pattern, ranks) in applications {
        runs.push(measure(pattern, ranks, &contenders(K))?);
    }
    let mut gathers = Vec::new();
    for (ranks, ..) in paper::GATHER {
        for k in ks {
            gathers.push((k, measure(Pattern::Gather, ranks, &contenders(k)[..=LINKED])?));
        }
    }
    bar.finish_and_clear();
    let mut numbers = Vec::new();
    let figures = vec![
        elements(&runs),
        speedups(&runs, &mut numbers),
        gather(&gathers, &mut numbers),
        queues(&runs, &mut numbers),
        overhead(&runs, &mut numbers),
    ];
    Ok(Made { figures, numbers })
}

impl Run {
    fn counters(&self, engine: usize, queue: &str) -> &QueueCounters {
        let counters = &self.costs[engine].counters;
        if queue == "PRQ" { &counters.prq } else { &counters.umq }
    }

    fn number(&self, figure: &'static str, engine: usize) -> Number {
        Number {
            figure,
            pattern: self.pattern.name(),
            ranks: self.ranks,
            queue: "",
            traffic: "",
            engine: ENGINES[engine].0.name(),
            storage: ENGINES[engine].1.name(),
            k: K,
            metric: "",
            ours: 0.0,
            paper: "",
        }
    }
}

fn elements(runs: &[Run]) -> Figure {
    let mut figure = Figure::new(
        "Fig. 1: what enters the queues",
        "Elements of rank 0 by kind of traffic, in per cent of both, and the longest queue. The \
         paper has bars of averages over all processes, without numbers but for Nbody's \
         collectives: 25,000 in the PRQ, 11,000 in the UMQ, fewer than point-to-point ones. In \
         Radix nearly all are collective, in MiniAMR and FDS most. Radix has around 10 elements \
         (section 5.3.1); *Tail queues* (CCPE 2019, Table 2) has a UMQ of 8147 for FDS on 4096 \
         processes, which is 2 n as here.",
        ["workload", "n", "PRQ collective", "longest PRQ", "UMQ collective", "longest UMQ"],
    );
    for run in runs {
        let mut row = vec![run.pattern.name(), run.ranks.to_string()];
        for (queue, ..) in QUEUES {
            let counters = run.counters(LIST, queue);
            let share = counters.kinds.collective.inserts as f64 / counters.inserts as f64;
            row.push(format!("{:.0} %", 100.0 * share));
            row.push(whole(counters.high_water));
        }
        figure.row(row);
    }
    figure
}

fn speedups(runs: &[Run], numbers: &mut Vec<Number>) -> Figure {
    let mut figure = Figure::new(
        "Figs. 6 to 8: queue search time",
        "Nanoseconds of a search in the list, and the speedups over it: ours / the paper's. \
         Point-to-point messages overtake collective ones here, so in a list they pass these \
         first, and collective elements are then searched alone.",
        [
            "workload",
            "queue",
            "traffic",
            "n",
            "`list` ns",
            "`col-pnp` packed",
            "`col-pnp` linked",
            "`col-list`",
            "`list-pnp`",
            "`rank-array`",
        ],
    );
    let mut patterns: Vec<Pattern> = runs.iter().map(|run| run.pattern).collect();
    patterns.dedup();
    for pattern in patterns {
        for (queue, role, _) in QUEUES {
            for (kind, collective) in KINDS {
                let said = paper::speedups(pattern, queue, kind);
                for run in runs.iter().filter(|run| run.pattern == pattern) {
                    let time = |engine: usize| run.costs[engine].of(role, collective);
                    let Some(list) = time(LIST) else { continue };
                    let mut row = vec![pattern.name(), queue.to_owned(), kind.to_owned()];
                    row.extend([run.ranks.to_string(), digits(list)]);
                    for engine in LIST..ENGINES.len() {
                        let ours = time(engine).unwrap_or_default();
                        let column = PAPERS.iter().position(|paper| *paper == engine);
                        let paper = column.map_or("", |column| said[column]);
                        let number = Number {
                            queue,
                            traffic: kind,
                            metric: "ns",
                            ours,
                            ..run.number("6-8", engine)
                        };
                        numbers.push(number.clone());
                        if engine != LIST {
                            let speedup = list / ours;
                            row.push(beside(&digits(speedup), paper));
                            numbers.push(Number {
                                metric: "speedup",
                                ours: speedup,
                                paper,
                                ..number
                            });
                        }
                    }
                    figure.row(row);
                }
            }
        }
    }
    figure
}

/// Ours and the paper's, if it has one.
fn beside(ours: &str, paper: &str) -> String {
    if paper.is_empty() { ours.to_owned() } else { format!("{ours} / {paper}") }
}

fn gather(gathers: &[(u32, Run)], numbers: &mut Vec<Number>) -> Figure {
    let mut figure = Figure::new(
        "Fig. 5a: gather, k_C from 1 to 16",
        "Nanoseconds of a search at the root and the speedup over the list. The paper's is the \
         latency of the whole MPI_Gather with k = 1, of which matching is a part.",
        [
            "n",
            "k_C",
            "queues",
            "`list` ns",
            "`col-pnp` linked ns",
            "`col-pnp` packed ns",
            "linked speedup",
            "packed speedup",
            "the paper's (queues)",
        ],
    );
    for (k, run) in gathers {
        let time = |engine: usize| run.costs[engine].of(Role::FindsReceive, None);
        let times = [LIST, LINKED, PACKED].map(|engine| time(engine).unwrap_or_default());
        let queues = run.counters(LINKED, "PRQ").dedicated_collective;
        let said = paper::GATHER.iter().find(|(ranks, ..)| *k == 1 && *ranks == run.ranks);
        let mut row = vec![run.ranks.to_string(), k.to_string(), whole(queues)];
        row.extend(times.map(digits));
        row.extend([times[0] / times[1], times[0] / times[2]].map(digits));
        row.push(said.map_or_else(String::new, |(_, faster, made)| format!("{faster} ({made})")));
        figure.row(row);
        for (engine, ours) in [LIST, LINKED, PACKED].into_iter().zip(times) {
            let number =
                Number { queue: "PRQ", traffic: "collective", k: *k, ..run.number("5a", engine) };
            numbers.push(Number { metric: "ns", ours, ..number.clone() });
            if engine != LIST {
                let paper = said.map_or("", |said| said.1);
                let speedup = times[0] / ours;
                numbers.push(Number { metric: "speedup", ours: speedup, paper, ..number.clone() });
                let made = run.counters(engine, "PRQ").dedicated_collective as f64;
                let paper = said.map_or("", |said| said.2);
                numbers.push(Number { metric: "queues", ours: made, paper, ..number });
            }
        }
    }
    figure
}

fn queues(runs: &[Run], numbers: &mut Vec<Number>) -> Figure {
    let mut figure = Figure::new(
        "Figs. 9 and 10: queues made",
        "Collective + point-to-point queues of `col-pnp` with k_C = k_P = 8, at most 8 sqrt(n) of \
         each, and the sources that `rank-array` has a queue for. The paper's are collective \
         ones; for FDS on 2048 processes its conclusion has 416 collective and 194 \
         point-to-point. Packed queues below theta = 512 are not split.",
        [
            "workload",
            "n",
            "PRQ linked",
            "UMQ linked",
            "PRQ packed",
            "UMQ packed",
            "8 sqrt(n)",
            "`rank-array`",
            "the paper's",
        ],
    );
    for run in runs {
        let paper = paper::queues(run.pattern, run.ranks);
        let mut row = vec![run.pattern.name(), run.ranks.to_string()];
        for engine in [LINKED, PACKED] {
            for (queue, ..) in QUEUES {
                let made = run.counters(engine, queue);
                let kinds = [made.dedicated_collective, made.dedicated_point_to_point];
                row.push(kinds.map(whole).join(" + "));
                for ((traffic, _), ours) in KINDS[1..].iter().copied().zip(kinds) {
                    let paper = if traffic == "collective" { paper } else { "" };
                    numbers.push(Number {
                        queue,
                        traffic,
                        metric: "queues",
                        ours: ours as f64,
                        paper,
                        ..run.number("9", engine)
                    });
                }
            }
        }
        row.push(whole(u64::from((K * K * run.ranks).isqrt())));
        row.extend([whole(u64::from(run.ranks)), paper.to_owned()]);
        figure.row(row);
    }
    figure
}

fn overhead(runs: &[Run], numbers: &mut Vec<Number>) -> Figure {
    let mut figure = Figure::new(
        "Table 2: overhead over search time",
        "What adding an element costs more than with the list (profiling, finding its queue), \
         over the time of a search, in both queues. Below zero the list adds more slowly, \
         presumably since its searches empty the caches.",
        ["workload", "n", "`col-pnp` linked", "`col-pnp` packed", "the paper's"],
    );
    for run in runs {
        let paper = paper::overhead(run.pattern, run.ranks);
        let mut row = vec![run.pattern.name(), run.ranks.to_string()];
        for engine in [LINKED, PACKED] {
            let mut sums = (0.0, 0.0);
            for (_, search, add) in QUEUES {
                let time = |engine: usize, role| run.costs[engine].of(role, None);
                sums.0 += time(engine, add).unwrap_or_default();
                sums.0 -= time(LIST, add).unwrap_or_default();
                sums.1 += time(engine, search).unwrap_or_default();
            }
            let ours = sums.0 / sums.1;
            row.push(digits(ours));
            numbers.push(Number { metric: "overhead", ours, paper, ..run.number("T2", engine) });
        }
        for engine in [LIST, LINKED, PACKED] {
            for (queue, _, add) in QUEUES {
                let ours = run.costs[engine].of(add, None).unwrap_or_default();
                let metric = "ns to add";
                numbers.push(Number { queue, metric, ours, ..run.number("T2", engine) });
            }
        }
        row.push(paper.to_owned());
        figure.row(row);
    }
    figure
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn runs() -> Vec<Run> {
        let run = |pattern: Pattern, ranks: u32| {
            let stream = Stream::new(pattern, ranks, 1);
            let costs = measure::all(&stream, &contenders(K), Duration::from_millis(1)).unwrap();
            Run { pattern, ranks, costs }
        };
        vec![run(Pattern::Miniamr, 512), run(Pattern::Fds, 512)]
    }

    #[test]
    fn ours_stands_beside_the_papers() {
        let (runs, mut numbers) = (runs(), Vec::new());
        let page = [
            elements(&runs),
            speedups(&runs, &mut numbers),
            queues(&runs, &mut numbers),
            overhead(&runs, &mut numbers),
        ]
        .map(|figure| figure.markdown())
        .join("");
        assert!(page.contains("| fds | 512 | 83 % | 1,534 | 87 % | 1,023 |"), "{page}");
        for paper in [" / 1.46 ", " / 42 (80) ", " / 71 ", "0.0027", "0.0192"] {
            assert!(page.contains(paper), "{paper} is missing: {page}");
        }
        let speedup = |number: &&Number| {
            (number.metric, number.pattern.as_str(), number.queue, number.engine)
                == ("speedup", "fds", "PRQ", "col-pnp")
        };
        // Elsewhere a debug build tells nothing; here a list of 1,534 is searched.
        assert!(numbers.iter().filter(speedup).all(|number| number.ours > 2.0));
    }

    #[test]
    fn the_queues_of_gather_are_the_papers() {
        for (ranks, _, made) in paper::GATHER {
            let stream = Stream::new(Pattern::Gather, ranks, 1);
            let linked = contenders(1)[LINKED];
            let costs = measure::all(&stream, &[linked], Duration::from_millis(1)).unwrap();
            assert_eq!(costs[0].counters.prq.dedicated_collective.to_string(), made);
        }
    }
}
