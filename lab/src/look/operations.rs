// SPDX-License-Identifier: BSD-2-Clause
//! Operations of traces, one by one, with how deep their searches went: as CSV, and
//! as the queue statistics of LogGOPSim.
//!
//! LogGOPSim (Hoefler, Schneider, Lumsdaine: "LogGOPSim: simulating large-scale
//! applications in the LogGOPS model", LSAP 2010) keeps a receive queue (rq, our PRQ)
//! and an unexpected queue (uq, our UMQ) for each rank. With `--qstat PREFIX` it
//! writes, a line a rank:
//!
//! ```text
//! PREFIX-rq-hit.data   depth,time for each search that found something, each
//! PREFIX-uq-hit.data   followed by a space; times are nanoseconds
//! PREFIX-rq-miss.data  the same of searches that found nothing
//! PREFIX-uq-miss.data
//! PREFIX-rq-max.data   the most elements at once
//! PREFIX-uq-max.data
//! ```

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use matching::{Key, SearchDepth, TagLayout};
use nic::trace::{Op, Posted};
use serde::Serialize;

use super::experiment::{Experiment, Queue};
use super::export::{Lines, csv};
use crate::environment::Settings;
use crate::error::Error;
use crate::replay::Player;
use crate::traces::Trace;

/// A line of `operations.csv`.
#[derive(Debug, Serialize)]
struct Row<'a> {
    rank: u32,
    context: &'a str,
    ns: u64,
    operation: &'static str,
    /// Peer number; nothing for any, and where there is none.
    source: Option<u32>,
    match_bits: Option<String>,
    ignore_bits: Option<String>,
    kind: Option<&'static str>,
    bytes: Option<u64>,
    /// Whether the search found an element, and the entries it compared.
    found: Option<bool>,
    depth: Option<u64>,
}

/// What the searches of one operation added: found or not, and how deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Search {
    queue: Queue,
    found: bool,
    depth: u64,
}

/// Entries compared so far.
#[derive(Clone, Copy, Debug, Default)]
struct Mark {
    hit_entries: u64,
    miss_entries: u64,
}

impl Mark {
    fn of(depth: &SearchDepth) -> Self {
        Self { hit_entries: depth.hit_entries, miss_entries: depth.miss_entries }
    }

    /// The search between two marks. One that finds something compares at least it.
    fn search(self, later: Self, queue: Queue) -> Search {
        match later.hit_entries - self.hit_entries {
            0 => Search { queue, found: false, depth: later.miss_entries - self.miss_entries },
            depth => Search { queue, found: true, depth },
        }
    }
}

/// The queue that an operation searches and counts.
fn searched(op: &Op) -> Option<Queue> {
    match op {
        Op::Post(_) | Op::PostAnyway(_) => Some(Queue::Umq),
        Op::Arrive(_) => Some(Queue::Prq),
        _ => None,
    }
}

impl<'a> Row<'a> {
    fn of(op: &Op, layout: TagLayout) -> Self {
        let mut row = Row {
            rank: 0,
            context: "",
            ns: 0,
            operation: "",
            source: None,
            match_bits: None,
            ignore_bits: None,
            kind: None,
            bytes: None,
            found: None,
            depth: None,
        };
        let mut keyed = |operation, key: &Key| {
            row.operation = operation;
            row.source = key.source.get();
            row.match_bits = Some(format!("{:#x}", key.bits));
            row.ignore_bits = Some(format!("{:#x}", key.ignore));
            let collective = layout.is_collective(key);
            row.kind = Some(if collective { "collective" } else { "point-to-point" });
        };
        match op {
            Op::Post(Posted { key, .. }) => keyed("post", key),
            Op::PostAnyway(Posted { key, .. }) => keyed("post anyway", key),
            Op::Held(Posted { key, .. }) => keyed("held", key),
            Op::Peek(key) => keyed("peek", key),
            Op::Take(key) => keyed("take", key),
            Op::Arrive(envelope) => {
                let source = matching::Source::new(envelope.source);
                keyed("arrive", &Key { bits: envelope.bits, ignore: 0, source });
                row.ignore_bits = None;
                row.bytes = Some(envelope.len);
            }
            Op::Cancel(_) => row.operation = "cancel",
            Op::Drop(_) => row.operation = "drop",
            Op::Processes(_) => row.operation = "processes",
            Op::Stop(_) => row.operation = "stop",
        }
        row
    }
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), error }
}

/// LogGOPSim's files.
struct Qstat {
    /// rq hit, rq miss, uq hit, uq miss.
    searches: [(PathBuf, BufWriter<File>); 4],
    /// rq, uq.
    most: [(PathBuf, BufWriter<File>); 2],
}

impl Qstat {
    fn new(out: &Path, prefix: &str) -> Result<Self, Error> {
        let file = |name: &str| {
            let path = out.join(format!("{prefix}-{name}.data"));
            let file = File::create(&path).map_err(Error::io(&path))?;
            Ok::<_, Error>((path, BufWriter::new(file)))
        };
        Ok(Self {
            searches: [file("rq-hit")?, file("rq-miss")?, file("uq-hit")?, file("uq-miss")?],
            most: [file("rq-max")?, file("uq-max")?],
        })
    }

    fn add(&mut self, ns: u64, search: Search) -> Result<(), Error> {
        let at = 2 * usize::from(search.queue == Queue::Umq) + usize::from(!search.found);
        let (path, file) = &mut self.searches[at];
        write!(file, "{},{ns} ", search.depth).map_err(|error| failed(path, error))
    }

    /// Ends the line of a rank.
    fn end_rank(&mut self, most: [u64; 2]) -> Result<(), Error> {
        for (path, file) in &mut self.searches {
            writeln!(file).map_err(|error| failed(path, error))?;
        }
        for ((path, file), most) in self.most.iter_mut().zip(most) {
            writeln!(file, "{most}").map_err(|error| failed(path, error))?;
        }
        Ok(())
    }

    fn end(self) -> Result<(), Error> {
        for (path, mut file) in self.searches.into_iter().chain(self.most) {
            file.flush().map_err(Error::io(&path))?;
            println!("{}", path.display());
        }
        Ok(())
    }
}

/// Writes `operations.csv` and LogGOPSim's files. Operations of the contexts of a rank
/// come one context after the other.
pub(super) fn write(experiment: &Experiment, out: &Path, prefix: &str) -> Result<(), Error> {
    let mut traces: Vec<(u32, &Trace)> =
        experiment.traces.iter().map(|trace| (rank_of(experiment, trace), trace)).collect();
    traces.sort_by_key(|(rank, trace)| (*rank, trace.header.context != "tagged"));
    let path = out.join("operations.csv");
    let mut lines = csv(&path)?;
    let mut qstat = Qstat::new(out, prefix)?;
    let last = traces.last().map_or(0, |(rank, _)| *rank);
    let mut rest = traces.as_slice();
    for rank in 0..=last {
        let mut most = [0; 2];
        let (of_rank, others) = rest.split_at(rest.partition_point(|(of, _)| *of <= rank));
        rest = others;
        for (_, trace) in of_rank {
            let marks = play(rank, trace, &mut lines, &mut qstat)?;
            for (most, mark) in most.iter_mut().zip(marks) {
                *most = mark.max(*most);
            }
        }
        qstat.end_rank(most)?;
    }
    lines.end()?;
    qstat.end()
}

/// The rank of a trace: as the launcher told it, or the number that stands for it.
fn rank_of(experiment: &Experiment, trace: &Trace) -> u32 {
    trace.header.rank.or_else(|| experiment.number_of(&trace.endpoint())).unwrap_or(0)
}

/// Writes the operations of a trace; the high-water marks of its queues if they are
/// those of MPI.
fn play(
    rank: u32,
    trace: &Trace,
    lines: &mut Lines<'_>,
    qstat: &mut Qstat,
) -> Result<[u64; 2], Error> {
    let device = trace.device(&trace.params(&Settings::default())?)?;
    let layout = device.prq.engine_config.layout;
    let tagged = trace.header.context == "tagged";
    let mut player = Player::new(trace, device)?;
    while let Some((ns, op)) = player.next()? {
        let mut row = Row { rank, context: &trace.header.context, ns, ..Row::of(&op, layout) };
        let queue = searched(&op);
        let mark = |player: &Player<'_>, queue: Queue| {
            Mark::of(player.replay().context().search_depths()[queue as usize])
        };
        let before = queue.map(|queue| mark(&player, queue));
        player.step((ns, op));
        if let (Some(queue), Some(before)) = (queue, before) {
            let search = before.search(mark(&player, queue), queue);
            (row.found, row.depth) = (Some(search.found), Some(search.depth));
            if tagged {
                qstat.add(ns, search)?;
            }
        }
        lines.add(row)?;
    }
    let counters = player.replay().counters();
    let marks = [counters.prq.high_water, counters.umq.high_water];
    Ok(if tagged { marks } else { [0; 2] })
}
