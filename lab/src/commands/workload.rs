// SPDX-License-Identifier: BSD-2-Clause
//! `tcam workload`: generates traces of single ranks, for any number of ranks, from the queue
//! lengths that papers report on applications.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use matching::TagLayout;
use nic::config::DeviceConfig;
use nic::origin::Origin;
use nic::params::Params;
use nic::replay::Replay;
use nic::report::ContextCounters;
use nic::trace::{Encoder, End, HEADER, Header, Op, STATE, WORD, put_time, state};

use crate::error::Error;
use crate::launch::{Signals, signals};
use crate::results::StagingDirectory;
use crate::results::summary::NO_LIBFABRIC;
use crate::text::{Sheet, count, progress, whole};
use crate::traces::files;
use crate::workload::pattern::{Flight, Pattern, params};
use crate::workload::stream::Receiver;

/// Generates traces like those of large machines.
///
/// Writes the operations of some ranks of an application, as FI_TCAM_TRACE would record them.
/// Prints how long their queues became, next to the figures of papers. For each length it prints
/// its origin: fitted (constants chosen so that the length comes out), predicted (by the algorithm)
/// or given. Memory depends on the queues, not on the number of ranks. Traces of one seed are
/// equal.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam workload fds --ranks 4096 --out fds-traces
  tcam workload halo --ranks 512 --rank 0,255 --steps 100 --seed 7 --out halo-traces
  tcam workload pingpong --messages 200 --bytes 8192 --out pingpong-traces
tests/apps/patterns.c does most of the patterns with MPI.")]
pub(crate) struct Workload {
    /// Communication pattern of an application.
    #[arg(value_enum)]
    pub(crate) pattern: Pattern,

    /// Ranks of the machine, 2 to 65536. The default depends on the pattern.
    #[arg(long, value_name = "N", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(2..=65_536))]
    pub(crate) ranks: Option<u32>,

    /// Seed of the orders of arrival.
    #[arg(long, value_name = "S", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) seed: u64,

    /// Ranks to write traces of; `all-that-matter` is rank 0, which gathers all messages or is like
    /// all other ranks.
    #[arg(
        long,
        value_name = "R,...",
        default_value = "all-that-matter",
        allow_hyphen_values = true
    )]
    pub(crate) rank: RankList,

    /// Steps of the application.
    #[arg(long, value_name = "K", default_value_t = 10, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) steps: u32,

    /// Messages in flight of shuffle, burst and reverse (default 1024), or receives that wait in a
    /// pingpong, 0 to 1000000 (default 100). No other pattern takes it.
    #[arg(long, value_name = "M", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub(crate) messages: Option<u32>,

    /// Bytes of each message of the same patterns (default 256).
    #[arg(long, value_name = "B", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(0..=1 << 30))]
    pub(crate) bytes: Option<u64>,

    /// Directory for the traces, `RANK.PID.PORT.tagged.trace`; it must not contain traces yet.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
}

/// Value of `--rank`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankList(Vec<u32>);

impl std::str::FromStr for RankList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "all-that-matter" {
            return Ok(Self(vec![0]));
        }
        let number = |word: &str| {
            word.parse().map_err(|_| format!("{word:?} is no rank: 0,7,15 or all-that-matter"))
        };
        let mut ranks = text.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
        ranks.sort_unstable();
        ranks.dedup();
        Ok(Self(ranks))
    }
}

/// Nanoseconds from one operation to the next in the traces. No count depends on this time.
const PACE: u64 = 100;
/// Operations between two updates of the progress bar.
const TICK: u64 = 1 << 16;
const BAR: &str = "{bar:30} {pos}/{len} steps, {elapsed} passed, {left}, {msg}";
/// Largest difference from a paper's figure that counts as agreement: 30 % of the paper's figure.
const TOLERANCE: f64 = 0.3;

/// Generates the traces and prints the lengths of the queues. Returns 0, or the exit code of a
/// signal.
pub(crate) fn workload(arguments: &Workload) -> Result<u8, Error> {
    let pattern = arguments.pattern;
    let ranks = arguments.ranks.unwrap_or(pattern.paper().1);
    check(arguments, ranks)?;
    let params = params(ranks, &[])?;
    let mut signals = Signals::catch()?;
    let staging = StagingDirectory::inside_any(&arguments.out, &[])?;
    let steps = arguments.rank.0.len() as u64 * u64::from(arguments.steps);
    let progress = progress::bar(steps, BAR);
    let mut made = Vec::new();
    for &rank in &arguments.rank.0 {
        let receiver = Receiver { rank, ranks };
        let path = staging.path().join(format!("{rank}.{}.0.tagged.trace", rank + 1));
        made.push((rank, write(arguments, receiver, &params, &path, &progress, &mut signals)?));
        if let Some(signal) = signals.caught() {
            progress.finish_and_clear();
            eprintln!("tcam: ended by {}; no trace is left", signals::name_of(signal));
            return Ok(signals::code_of(signal));
        }
    }
    staging.keep(&["trace"])?;
    progress.finish_and_clear();
    print!("{}", summary(pattern, ranks, arguments.steps, &made));
    println!("Traces: {}", arguments.out.display());
    Ok(0)
}

/// Checks that the arguments fit each other and the directory.
fn check(arguments: &Workload, ranks: u32) -> Result<(), Error> {
    let Workload { pattern, rank, messages, bytes, out, .. } = arguments;
    let name = pattern.name();
    for (option, given) in [("--messages", messages.is_some()), ("--bytes", bytes.is_some())] {
        if given && !pattern.takes_messages() {
            fail!(
                "{option}: {name} takes --ranks, --rank, --seed and --steps; shuffle, burst, \
                 reverse and pingpong have {option}"
            );
        }
    }
    if *messages == Some(0) && *pattern != Pattern::Pingpong {
        fail!(
            "--messages 0: {name} has messages in flight; pingpong may have no receive that waits"
        );
    }
    for &rank in &rank.0 {
        if rank >= ranks {
            let last = ranks - 1;
            fail!("--rank {rank}: there are {ranks} ranks, 0 to {last}");
        }
        if !pattern.reaches(rank) {
            fail!("--rank {rank}: {name} sends it nothing, only rank 0 receives");
        }
    }
    if out.is_dir() && !files::trace_files(out)?.is_empty() {
        let out = out.display();
        fail!("{out}: there are traces in it; give another directory with --out");
    }
    Ok(())
}

/// Writes the trace of a rank, and replays the operations to count the lengths of the queues. A
/// signal ends both after a step of the application. Returns the counters of the replay.
fn write(
    arguments: &Workload,
    receiver: Receiver,
    params: &Params,
    path: &Path,
    progress: &ProgressBar,
    signals: &mut Signals,
) -> Result<ContextCounters, Error> {
    let Workload { pattern, seed, steps, messages, bytes, .. } = *arguments;
    let usual = pattern.usual_flight();
    let flight = Flight {
        messages: messages.unwrap_or(usual.messages),
        bytes: bytes.unwrap_or(usual.bytes),
    };
    let Receiver { rank, ranks } = receiver;
    let header = Header {
        window: 0,
        sites: false,
        context: "tagged".to_owned(),
        tcam: env!("CARGO_PKG_VERSION").to_owned(),
        libfabric: NO_LIBFABRIC.to_owned(),
        host: "generated".to_owned(),
        pid: rank + 1,
        rank: Some(rank),
        address: "0.0.0.0:0".to_owned(),
        program: format!("workload {} --ranks {ranks} --seed {seed}", pattern.name()),
        origin: Origin { ranks: Some(ranks), ..Origin::default() },
        start_ns: 0,
        start_clock_ns: 0,
        layout: TagLayout::Mpich.name().to_owned(),
        config: params.recorded(),
    };
    // Only lengths of queues and numbers of messages are shown. A replay without tables gives the
    // same numbers, and is faster.
    let on_host = self::params(ranks, &[("prq_entries", "0"), ("umq_entries", "0")])?;
    let mut replay = Replay::new(&DeviceConfig::from_params(&on_host, TagLayout::Mpich))?;
    let file = File::create_new(path).map_err(Error::io(path))?;
    let mut file = BufWriter::with_capacity(1 << 18, file);
    let mut written = file.write_all(&header.to_bytes());
    let has_failed = Cell::new(written.is_err());
    let (mut encoder, mut operations) = (Encoder::default(), 0_u64);
    let mut keep = |op: &Op| {
        if has_failed.get() {
            return;
        }
        replay.play(op);
        written = put_time(&mut file, operations * PACE).and_then(|()| encoder.op(&mut file, op));
        has_failed.set(written.is_err());
        operations += 1;
        if operations.is_multiple_of(TICK) {
            progress.set_message(format!("{} operations", whole(operations)));
        }
    };
    keep(&Op::Processes(ranks));
    for step in 0..steps {
        pattern.play(receiver, step, flight, seed, |op| keep(&op));
        progress.inc(1);
        if has_failed.get() || signals.caught().is_some() {
            break;
        }
    }
    written.and_then(|()| mark_end(&mut file)).map_err(Error::io(path))?;
    Ok(replay.counters())
}

/// Writes into the header that the trace is complete, and the number of its words.
fn mark_end(file: &mut BufWriter<File>) -> io::Result<()> {
    let words = (file.stream_position()? - HEADER as u64) / WORD as u64;
    file.seek(SeekFrom::Start((HEADER - STATE) as u64))?;
    file.write_all(state(words, End::Closed(0)).map(u32::to_le_bytes).as_flattened())?;
    file.flush()
}

/// Returns a table of the queues of the ranks next to those of the paper. A line for each number
/// that contradicts the paper follows.
fn summary(pattern: Pattern, ranks: u32, steps: u32, made: &[(u32, ContextCounters)]) -> String {
    let (paper, _) = pattern.paper();
    let said = |text: &str| if text.is_empty() { "not said".to_owned() } else { text.to_owned() };
    let header = ["", "messages", "collective", "unexpected", "longest PRQ", "longest UMQ"];
    let mut sheet = Sheet::new("", header);
    for (rank, counters) in made {
        sheet.row([
            format!("rank {rank}"),
            whole(counters.arrivals),
            whole(counters.kinds.collective.arrivals),
            whole(counters.unexpected),
            whole(counters.prq.high_water),
            whole(counters.umq.high_water),
        ]);
    }
    let of = match paper.ranks {
        0 => "the paper's".to_owned(),
        ranks => format!("the paper's, {} ranks", whole(u64::from(ranks))),
    };
    let blank = String::new;
    sheet.row([of, blank(), blank(), blank(), said(paper.prq), said(paper.umq)]);
    let [prq, umq] = paper.basis.map(|basis| basis.name().to_owned());
    sheet.row(["our values are".to_owned(), blank(), blank(), blank(), prq, umq]);
    let mut text = format!(
        "{} on {}, {}\n{}\nPaper: {}\n",
        pattern.name(),
        count(u64::from(ranks), "rank"),
        count(u64::from(steps), "step"),
        sheet.table(),
        paper.source
    );
    let longest =
        |queue: fn(&ContextCounters) -> u64| made.iter().map(|(_, made)| queue(made)).max();
    for (name, ours, theirs) in [
        ("PRQ", longest(|made| made.prq.high_water), paper.prq),
        ("UMQ", longest(|made| made.umq.high_water), paper.umq),
    ] {
        if let (Some(ours), Ok(figure)) = (ours, theirs.parse::<u32>())
            && ranks == paper.ranks
            && !agrees(ours as f64, figure.into())
        {
            text += &format!(
                "Contradicts the paper: longest {name} {} here, {theirs} there\n",
                whole(ours)
            );
        }
    }
    text
}

/// Returns true if our figure agrees with the paper's.
fn agrees(ours: f64, paper: f64) -> bool {
    (ours - paper).abs() <= TOLERANCE * paper
}

#[cfg(test)]
pub(crate) mod tests {
    use std::fs;

    use super::*;
    use nic::trace::Reader;

    fn arguments(pattern: Pattern, rank: &str, out: &Path) -> Workload {
        let rank = rank.parse().unwrap();
        let out = out.to_owned();
        Workload {
            pattern,
            ranks: Some(16),
            seed: 3,
            rank,
            steps: 4,
            messages: None,
            bytes: None,
            out,
        }
    }

    /// Writes traces of two ranks of a halo exchange.
    pub(crate) fn write_to(out: &Path) {
        workload(&arguments(Pattern::Halo, "0,5", out)).unwrap();
    }

    /// Writes the trace of rank 0 of a pattern.
    pub(crate) fn write_pattern(pattern: Pattern, ranks: u32, steps: u32, out: &Path) {
        let ranks = Some(ranks);
        workload(&Workload { ranks, steps, ..arguments(pattern, "0", out) }).unwrap();
    }

    #[test]
    fn ranks_are_numbers_or_those_that_matter() {
        let ranks = |text: &str| text.parse::<RankList>();
        assert_eq!(ranks("all-that-matter"), Ok(RankList(vec![0])));
        assert_eq!(ranks("7,0,7"), Ok(RankList(vec![0, 7])));
        assert!(ranks("0,-1").unwrap_err().contains("\"-1\" is no rank"));
    }

    #[test]
    fn traces_can_be_read_and_are_those_of_the_seed() {
        let place = tempfile::tempdir().unwrap();
        let traces = ["one", "two"].map(|name| {
            let out = place.path().join(name);
            workload(&arguments(Pattern::Halo, "0,5", &out)).unwrap();
            fs::read(out.join("5.6.0.tagged.trace")).unwrap()
        });
        assert_eq!(traces[0], traces[1]);
        let reader = Reader::new(&traces[0][..]).unwrap();
        assert_eq!((reader.header().rank, reader.header().layout.as_str()), (Some(5), "mpich"));
        assert_eq!(reader.header().config["nprocs"], "16");
        let ops: Vec<_> = reader.map(|timed| timed.unwrap().1).collect();
        let posts = ops.iter().filter(|op| matches!(op, Op::Post(_))).count();
        assert_eq!((ops[0], ops.len()), (Op::Processes(16), 1 + 2 * posts));
    }

    #[test]
    fn contradictions_to_the_paper_are_printed() {
        let place = tempfile::tempdir().unwrap();
        let params = params(64, &[]).unwrap();
        let mut arguments = arguments(Pattern::Fds, "0", place.path());
        arguments.steps = 1;
        let path = place.path().join("trace");
        let receiver = Receiver { rank: 0, ranks: 64 };
        let (bar, mut signals) = (ProgressBar::hidden(), Signals::catch().unwrap());
        let made = write(&arguments, receiver, &params, &path, &bar, &mut signals).unwrap();
        let text = |ranks| summary(Pattern::Fds, ranks, 1, &[(0, made.clone())]);
        assert!(text(64).contains("fitted") && !text(64).contains("Contradicts"), "{}", text(64));
        let contradicts = "Contradicts the paper: longest PRQ 190 here, 24 there\n";
        assert!(text(4096).contains(contradicts), "{}", text(4096));
    }

    #[test]
    fn thirty_per_cent_of_the_papers_figure_is_agreement() {
        let of = [(1.29, 1.0), (0.71, 1.0), (1.31, 1.0), (0.69, 1.0)];
        assert_eq!(of.map(|(ours, paper)| agrees(ours, paper)), [true, true, false, false]);
    }

    #[test]
    fn invalid_arguments_are_errors() {
        let place = tempfile::tempdir().unwrap();
        let error = |pattern, rank| {
            workload(&arguments(pattern, rank, place.path())).unwrap_err().to_string()
        };
        assert_eq!(error(Pattern::Fds, "16"), "--rank 16: there are 16 ranks, 0 to 15");
        let unreached = error(Pattern::Gather, "3");
        assert_eq!(unreached, "--rank 3: gather sends it nothing, only rank 0 receives");
        let bytes = Workload { bytes: Some(5), ..arguments(Pattern::Halo, "0", place.path()) };
        let told = workload(&bytes).unwrap_err().to_string();
        assert!(told.starts_with("--bytes: halo takes --ranks, --rank, "), "{told}");
        let messages = Workload { messages: Some(5), bytes: None, ..bytes };
        let told = workload(&messages).unwrap_err().to_string();
        assert!(told.starts_with("--messages: halo takes --ranks, --rank, "), "{told}");
        let none = Workload { messages: Some(0), ..arguments(Pattern::Burst, "0", place.path()) };
        assert!(workload(&none).unwrap_err().to_string().starts_with("--messages 0: burst has "));
        let messages = Workload { pattern: Pattern::Burst, ..messages };
        workload(&Workload { out: place.path().join("burst"), ..messages }).unwrap();
        workload(&arguments(Pattern::Gather, "0", place.path())).unwrap();
        assert!(error(Pattern::Gather, "0").contains("there are traces in it"));
    }
}
