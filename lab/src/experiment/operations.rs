// SPDX-License-Identifier: BSD-2-Clause
//! Writes the operations of traces one by one, with the depth of their searches, as CSV or Parquet.
//! Also writes the searches in the format of LogGOPSim's queue statistics.

use std::collections::HashMap;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, SyncSender};
use std::thread;

use indicatif::ProgressBar;

use super::endpoints::Endpoints;
use super::operation::{COLUMNS, Numbers, OperationRow, Search};
use super::{Experiment, QueueKind, operation};
use crate::error::Error;
use crate::file::NewFile;
use crate::results::ColumnFile;
use crate::settings::Settings;
use crate::traces::{Player, Trace, play};

/// Rows that are sent from the replaying to the writing thread at a time.
const BATCH: usize = 4096;
/// Maximum number of batches in the channel.
const ON_THE_WAY: usize = 8;

/// Highest rank that is accepted, because LogGOPSim's files have a line for each rank up to the
/// highest.
const HIGHEST_RANK: u32 = (1 << 24) - 1;

/// Writes `operations` and LogGOPSim's files, rank by rank and context by context, and prints their
/// paths. One thread replays and another thread writes `operations`, because both tasks take about
/// the same time. Fails if a rank is above [`HIGHEST_RANK`].
pub(crate) fn write(
    experiment: &Experiment,
    out: &Path,
    prefix: &str,
    parquet: bool,
) -> Result<(), Error> {
    let mut traces: Vec<(u32, &Trace)> =
        experiment.traces.iter().map(|trace| (rank_of(experiment, trace), trace)).collect();
    traces.sort_by_key(|(rank, trace)| (*rank, trace.header.context != "tagged"));
    if let Some((rank, trace)) = traces.last().filter(|(rank, _)| *rank > HIGHEST_RANK) {
        let why = format!(
            "it is of rank {rank}, and LogGOPSim's files have a line for each rank up to the \
             highest: leave out traces of ranks above {HIGHEST_RANK}"
        );
        return Err(Error::file(&trace.path, why));
    }
    let columns = COLUMNS.map(|(name, column, _)| (name, column));
    let mut lines = ColumnFile::new(out, "operations", parquet, columns)?;
    let mut qstat = Qstat::new(out, prefix)?;
    let (sender, rows) = mpsc::sync_channel::<Vec<OperationRow<'_>>>(ON_THE_WAY);
    let bar = play::bar(&experiment.traces, 1);
    let ranks = Endpoints::ranks(&experiment.traces);
    let (played, lines) = thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for row in rows.iter().flatten() {
                lines.add(COLUMNS.map(|(_, _, get)| get(&row)))?;
            }
            Ok::<_, Error>(lines)
        });
        let played = play_all(&traces, &ranks, &mut qstat, sender, &bar);
        (played, writer.join().expect("the writing thread does not panic"))
    });
    bar.finish_and_clear();
    // If the writing thread failed, the replay ended early without an error. The error of the
    // writing thread is returned.
    let lines = lines?;
    played?;
    lines.end()?;
    qstat.end()
}

/// Replays all traces by rank, and sends their operations to the writing thread. Ends early if that
/// thread has ended.
fn play_all<'a>(
    traces: &[(u32, &'a Trace)],
    ranks: &Endpoints,
    qstat: &mut Qstat,
    sender: SyncSender<Vec<OperationRow<'a>>>,
    bar: &ProgressBar,
) -> Result<(), Error> {
    let mut to = Batch { rows: Vec::with_capacity(BATCH), sender };
    let last = traces.last().map_or(0, |(rank, _)| *rank);
    let mut rest = traces;
    for rank in 0..=last {
        let mut most = [0; 2];
        let (of_rank, others) = rest.split_at(rest.partition_point(|(of, _)| *of <= rank));
        rest = others;
        for (_, trace) in of_rank {
            let marks = play(rank, trace, ranks, &mut to, qstat, bar)?;
            for (most, mark) in most.iter_mut().zip(marks) {
                *most = mark.max(*most);
            }
        }
        qstat.end_rank(most)?;
    }
    to.send();
    Ok(())
}

/// Rows that are collected for the writing thread.
struct Batch<'a> {
    rows: Vec<OperationRow<'a>>,
    sender: SyncSender<Vec<OperationRow<'a>>>,
}

impl<'a> Batch<'a> {
    /// Adds a row. Returns false if the writing thread has ended.
    fn add(&mut self, row: OperationRow<'a>) -> bool {
        self.rows.push(row);
        self.rows.len() < BATCH || self.send()
    }

    /// Sends the rows. Returns false if the writing thread has ended.
    fn send(&mut self) -> bool {
        let rows = std::mem::replace(&mut self.rows, Vec::with_capacity(BATCH));
        self.sender.send(rows).is_ok()
    }
}

/// Returns the rank of a trace: the launcher's number, or else the number that the experiment gave
/// the process.
fn rank_of(experiment: &Experiment, trace: &Trace) -> u32 {
    trace.header.rank.or_else(|| experiment.number_of(&trace.endpoint())).unwrap_or(0)
}

/// Replays a trace and sends its operations. Returns the high-water marks of the PRQ and the UMQ of
/// tagged messages; zeros for another context. Ends early if the writing thread has ended.
fn play<'a>(
    rank: u32,
    trace: &'a Trace,
    ranks: &Endpoints,
    to: &mut Batch<'a>,
    qstat: &mut Qstat,
    bar: &ProgressBar,
) -> Result<[u64; 2], Error> {
    let settings = Settings::default();
    let layout = trace.layout(&trace.params(&settings)?)?;
    let tagged = trace.header.context == "tagged";
    let mut player = Player::new(trace, &settings)?;
    let mut numbers = Numbers::default();
    let mut known: HashMap<u32, Option<u32>> = HashMap::new();
    while let Some(timed) = player.next()? {
        let (ns, op) = (trace.since_ns().saturating_add(timed.0), &timed.1);
        let mut row = OperationRow::of(op, layout);
        (row.rank, row.context, row.ns) = (rank, &trace.header.context, ns);
        // Generated operations have no thread.
        if !trace.is_generated() {
            let thread = player.thread();
            (row.thread, row.device_thread) = (Some(thread.number), Some(thread.is_device));
            row.cpu_ns = thread.cpu_ns;
        }
        let mut rank_of = |peer: Option<u32>| {
            *known.entry(peer?).or_insert_with_key(|peer| match trace.is_generated() {
                true => Some(*peer),
                false => ranks.at(&trace.header.host, *player.peers().get(peer)?),
            })
        };
        row.source_rank = rank_of(row.source);
        row.destination_rank = rank_of(row.destination);
        let (element, search) = operation::step(&mut player, &timed)?;
        numbers.tell(op, element, &mut row);
        if let Some(search) = search {
            row.depth = Some(search.depth);
            row.traversed = Some(search.traversed);
            if tagged {
                qstat.add(ns, search)?;
            }
        }
        player.tick(bar);
        if !to.add(row) {
            break;
        }
    }
    let counters = player.replay().counters();
    let marks = [counters.prq.high_water, counters.umq.high_water];
    Ok(if tagged { marks } else { [0; 2] })
}

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), error }
}

/// Names of LogGOPSim's files after the prefix: searches of the PRQ and of the UMQ that found
/// something or nothing, and high-water marks.
pub(crate) const QSTAT: [&str; 6] = ["rq-hit", "rq-miss", "uq-hit", "uq-miss", "rq-max", "uq-max"];

/// LogGOPSim's files of queue statistics. Each file has a line for each rank.
pub(super) struct Qstat {
    /// Files of searches: PRQ found, PRQ not found, UMQ found, UMQ not found.
    searches: [(PathBuf, BufWriter<NewFile>); 4],
    /// Files of high-water marks: PRQ and UMQ.
    most: [(PathBuf, BufWriter<NewFile>); 2],
}

impl Qstat {
    pub(super) fn new(out: &Path, prefix: &str) -> Result<Self, Error> {
        let file = |name: &str| {
            let path = out.join(format!("{prefix}-{name}.data"));
            let file = NewFile::create(&path)?;
            Ok::<_, Error>((path, BufWriter::new(file)))
        };
        let [rq_hit, rq_miss, uq_hit, uq_miss, rq_max, uq_max] = QSTAT;
        Ok(Self {
            searches: [file(rq_hit)?, file(rq_miss)?, file(uq_hit)?, file(uq_miss)?],
            most: [file(rq_max)?, file(uq_max)?],
        })
    }

    /// Adds a search at a time in nanoseconds since the run began to the line of the current rank.
    pub(super) fn add(&mut self, ns: u64, search: Search) -> Result<(), Error> {
        let at = 2 * usize::from(search.queue == QueueKind::Umq) + usize::from(!search.found);
        let (path, file) = &mut self.searches[at];
        write!(file, "{},{ns} ", search.depth).map_err(|error| failed(path, error))
    }

    /// Ends the line of a rank, and writes its high-water marks.
    pub(super) fn end_rank(&mut self, most: [u64; 2]) -> Result<(), Error> {
        for (path, file) in &mut self.searches {
            writeln!(file).map_err(|error| failed(path, error))?;
        }
        for ((path, file), most) in self.most.iter_mut().zip(most) {
            writeln!(file, "{most}").map_err(|error| failed(path, error))?;
        }
        Ok(())
    }

    /// Moves the complete files to their names and prints their paths.
    pub(super) fn end(self) -> Result<(), Error> {
        for (path, mut file) in self.searches.into_iter().chain(self.most) {
            file.flush().map_err(Error::io(&path))?;
            file.into_inner().map_err(|error| Error::io(&path)(error.into_error()))?.keep()?;
            println!("{}", path.display());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use matching::{Key, Source};
    use nic::message::{Envelope, MultiRecv};
    use nic::trace::{Encoder, Header, Op, Posted, Sent, put_time};

    use super::*;
    use crate::experiment::{Inputs, Keep};

    /// Writes a trace of a rank, with one operation every 10 ns.
    fn put(path: &Path, rank: Option<u32>, ops: &[Op]) {
        let pid = 100 + rank.unwrap_or(99);
        let (context, layout) = ("tagged".to_owned(), "mpich".to_owned());
        let header = Header { context, layout, rank, pid, ..Header::default() };
        let mut bytes = header.to_bytes();
        let mut encoder = Encoder::default();
        for (op, at) in ops.iter().zip(1..) {
            put_time(&mut bytes, at * 10).unwrap();
            encoder.op(&mut bytes, op).unwrap();
        }
        std::fs::write(path, bytes).unwrap();
    }

    fn post(bits: u64) -> Op {
        let key = Key { bits, ignore: 0, source: Source::ANY };
        Op::Post(Posted { key, len: 32, multi: None, non_contiguous: false })
    }

    fn arrive(bits: u64) -> Op {
        Op::Arrive(Envelope { source: 5, bits, len: 8 })
    }

    #[test]
    fn the_largest_time_is_written() {
        let directory = tempfile::tempdir().unwrap();
        let (from, out) = (directory.path().join("traces"), directory.path().join("out"));
        std::fs::create_dir_all(&from).unwrap();
        std::fs::create_dir_all(&out).unwrap();
        for rank in [0, 1] {
            let (context, layout) = ("tagged".to_owned(), "mpich".to_owned());
            let (rank, pid, start_ns) = (Some(rank), 100 + rank, 10 + u64::from(rank));
            let mut bytes =
                Header { context, layout, rank, pid, start_ns, ..Header::default() }.to_bytes();
            put_time(&mut bytes, u64::MAX).unwrap();
            Encoder::default().op(&mut bytes, &arrive(2)).unwrap();
            std::fs::write(from.join(format!("{pid}.trace")), bytes).unwrap();
        }
        let sources = Inputs { names: vec![from], ..Inputs::default() };
        let experiment = Experiment::read(&sources, Keep::Lengths).unwrap();
        write(&experiment, &out, "q", false).unwrap();
        let operations = std::fs::read_to_string(out.join("operations.csv")).unwrap();
        assert_eq!(operations.matches(&u64::MAX.to_string()).count(), 2, "{operations}");
    }

    #[test]
    fn searches_are_written_one_by_one_with_a_line_for_each_rank() {
        let directory = tempfile::tempdir().unwrap();
        let (from, out) = (directory.path().join("traces"), directory.path().join("out"));
        std::fs::create_dir_all(&from).unwrap();
        std::fs::create_dir_all(&out).unwrap();
        put(
            &from.join("0.trace"),
            Some(0),
            &[post(1), post(2), arrive(2), arrive(3), arrive(4), post(4)],
        );
        put(
            &from.join("2.trace"),
            Some(2),
            &[arrive(7), Op::Peek(Key { bits: 7, ignore: 0, source: Source::ANY })],
        );
        let sources = Inputs { names: vec![from], ..Inputs::default() };
        let experiment = Experiment::read(&sources, Keep::Lengths).unwrap();
        assert!(experiment.replayed);
        assert_eq!(experiment.ranks[0].compared(), 2 + 1 + 1 + 2);
        write(&experiment, &out, "q", false).unwrap();
        let read = |name: &str| std::fs::read_to_string(out.join(name)).unwrap();
        // Rank 1 has no trace, so its lines are empty.
        assert_eq!(read("q-rq-hit.data"), "2,30 \n\n\n");
        assert_eq!(read("q-rq-miss.data"), "1,40 1,50 \n\n0,10 \n");
        assert_eq!(read("q-uq-hit.data"), "2,60 \n\n\n");
        assert_eq!(read("q-uq-miss.data"), "0,10 0,20 \n\n\n");
        assert_eq!(read("q-rq-max.data"), "2\n0\n0\n");
        assert_eq!(read("q-uq-max.data"), "2\n0\n1\n");
        let operations = read("operations.csv");
        let lines: Vec<_> = operations.lines().collect();
        assert_eq!(lines.len(), 1 + 8);
        assert_eq!(
            lines[1],
            "0,tagged,10,post,,0x1,0x0,point-to-point,32,false,0,0,0,,true,,,,,,0,,false"
        );
        assert_eq!(
            lines[3],
            "0,tagged,30,arrive,5,0x2,,point-to-point,8,true,2,0,0,1,,,,,,,0,,false"
        );
        assert_eq!(lines[8], "2,tagged,20,peek,,0x7,0x0,point-to-point,,true,,,0,,,,,,,,0,,false");
    }

    #[test]
    fn operations_name_the_receives_and_messages_they_are_about() {
        let directory = tempfile::tempdir().unwrap();
        let key = |bits| Key { bits, ignore: 0, source: Source::ANY };
        let buffer = MultiRecv { len: 64, used: 8, min: 16 };
        let several = Posted { key: key(9), len: 64, multi: Some(buffer), non_contiguous: true };
        let ops = [
            post(1),
            post(2),
            Op::Cancel(0),
            arrive(3),
            arrive(4),
            arrive(2),
            Op::Peek(key(4)),
            Op::Peek(key(5)),
            Op::Claim(key(4)),
            Op::Discard(key(4)),
            Op::Drop(0),
            Op::Drop(0),
            Op::Post(several),
            arrive(9),
            Op::Send(Sent { peer: 6, bits: 9, len: 70_000 }),
            arrive(9),
        ];
        put(&directory.path().join("0.trace"), Some(0), &ops);
        let sources = Inputs { names: vec![directory.path().to_owned()], ..Inputs::default() };
        let experiment = Experiment::read(&sources, Keep::Lengths).unwrap();
        write(&experiment, directory.path(), "q", false).unwrap();
        let mut file = csv::Reader::from_path(directory.path().join("operations.csv")).unwrap();
        let names = file.headers().unwrap().clone();
        let at = |name: &str| names.iter().position(|of| of == name).unwrap();
        let columns = ["operation", "found", "depth", "number", "partner"].map(at);
        let told: Vec<_> = file
            .records()
            .map(|line| columns.map(|column| line.as_ref().unwrap()[column].to_owned()).join(" "))
            .collect();
        let expected = [
            "post false 0 0 ",
            "post false 0 1 ",
            "cancel true  0 ",
            "arrive false 1 0 ",
            "arrive false 1 1 ",
            "arrive true 1 2 1",
            "peek true  1 ",
            "peek false   ",
            "claim true 2 1 ",
            "discard false   ",
            "drop true  0 ",
            "drop false  0 ",
            "post false 0 2 ",
            "arrive true 1 3 2",
            "send    ",
            "arrive true 1 4 2",
        ];
        assert_eq!(told, expected);
        let text = std::fs::read_to_string(directory.path().join("operations.csv")).unwrap();
        assert!(
            text.lines().nth(13).unwrap().ends_with(",64,false,0,0,2,,false,8,16,,,,0,,false"),
            "{text}"
        );
        let send = "0,tagged,150,send,,0x9,,point-to-point,70000,,,,,,,,,6,,,0,,false";
        assert_eq!(text.lines().nth(15), Some(send));
    }

    #[test]
    fn a_rank_above_any_job_is_an_error_before_a_file_is_made() {
        let directory = tempfile::tempdir().unwrap();
        put(&directory.path().join("a.trace"), Some(HIGHEST_RANK + 1), &[post(1), arrive(1)]);
        let sources = Inputs { names: vec![directory.path().to_owned()], ..Inputs::default() };
        let experiment = Experiment::read(&sources, Keep::Lengths).unwrap();
        let error = write(&experiment, directory.path(), "q", false).unwrap_err().to_string();
        assert!(error.contains("a.trace: it is of rank 16777216,"), "{error}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn traces_of_unknown_ranks_get_lines_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        put(&directory.path().join("a.trace"), None, &[post(1), arrive(1)]);
        let sources = Inputs { names: vec![directory.path().to_owned()], ..Inputs::default() };
        let experiment = Experiment::read(&sources, Keep::Lengths).unwrap();
        write(&experiment, directory.path(), "q", false).unwrap();
        let text = std::fs::read_to_string(directory.path().join("q-rq-hit.data")).unwrap();
        assert_eq!(text, "1,20 \n");
    }
}
