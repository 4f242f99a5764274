// SPDX-License-Identifier: BSD-2-Clause
//! `tcam replay`: traces played to another table, engine or overflow model.

use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Instant;
use std::{cmp::Reverse, sync::Arc};

use indicatif::ProgressBar;
use matching::Curve;
use matching::measured::Clock;
use matching::pool::{EntryPool, LocalPool, Share};
use nic::device::DeviceConfig;
use nic::params::Params;
use nic::replay::{Change, Replay};
use nic::report::{ContextCounters, Report};
use nic::trace::{Address, Op, Reader, Stop, Timed, TraceError};
use rayon::prelude::*;

use crate::cli;
use crate::environment::{self, Settings};
use crate::error::Error;
use crate::file;
use crate::json::{Kind, Sum};
use crate::numbers::count;
use crate::progress;
use crate::reports::{self, Endpoint, endpoint};
use crate::summary::Summary;
use crate::table;
use crate::traces::{self, Counted, Trace, TraceClock};

/// Operations from one step of the progress bar to the next.
const STEP: u64 = 1 << 16;
/// Bytes of records whose replay takes a second or more.
pub(crate) const LONG: u64 = 16 << 20;
const BAR: &str = "{bar:30} {bytes}/{total_bytes} of traces, {bytes_per_sec}, {eta} left";

/// Replays the traces and prints what was counted. Returns 1 if that is not what the
/// reports to compare with say.
pub(crate) fn replay(arguments: &cli::Replay) -> Result<u8, Error> {
    environment::note_unused();
    let mut settings = Settings::for_replay("--set", &arguments.set)?;
    settings.give_sizes(arguments.tables)?;
    settings.give("timing", "--timing", arguments.timing.as_ref())?;
    let found = traces::find(&arguments.traces, arguments.take)?;
    if let Some(directory) = &arguments.report {
        spare_runs(directory)?;
    }
    let live = arguments.against.as_deref().map(|from| reports_of(from, &found)).transpose()?;
    if holds_back(&traces::params(&found, &settings)?) {
        note_flow_control("overflow=flow-control");
    }
    arguments.json.check()?;
    let started = Instant::now();
    let counted = all(&found, &settings)?;
    let seconds = started.elapsed().as_secs_f64();
    let reports = traces::reports(&counted, &settings)?;
    for report in &reports {
        report.check().map_err(Error::Replay)?;
    }
    if let Some(directory) = &arguments.report {
        write(directory, &reports)?;
    }
    let operations: u64 = counted.iter().map(|counted| counted.operations).sum();
    let ranks = found.ranks();
    if let Some(sum) = Summary::of_traces(&reports, &ranks) {
        eprint!("{}", table::summary(&sum));
        arguments.json.write(Kind::Summary, Sum::from(&sum))?;
    }
    eprintln!(
        "{} of {} in {seconds:.2} s: {:.1} million a second",
        count(operations, "operation"),
        count(found.len() as u64, "trace"),
        operations as f64 / seconds / 1e6
    );
    match live {
        Some(live) => compare(&reports, &found, &live),
        None => Ok(0),
    }
    .map(|code| code.max(ranks.code(arguments.take.partial)))
}

/// Refuses a directory for reports that has those of a run: they may be all that is left of it.
fn spare_runs(directory: &Path) -> Result<(), Error> {
    if !directory.is_dir() {
        return Ok(());
    }
    for path in reports::old(directory)? {
        // A replay sends nothing over any channel.
        let of_run = |report: Report| !report.channels.is_empty();
        if path.extension() == Some(OsStr::new("json"))
            && reports::read_one(&path).is_ok_and(of_run)
        {
            return Err(Error::ReportsOfRun(directory.to_owned()));
        }
    }
    Ok(())
}

/// The reports to compare with, which must be of the run that was recorded.
fn reports_of(directory: &Path, traces: &[Trace]) -> Result<Vec<Report>, Error> {
    let live = reports::read(directory)?;
    let path = || directory.to_owned();
    if live.is_empty() {
        return Err(Error::Against { path: path(), why: "no report (*.json) there" });
    }
    let missing = |trace: &&Trace| !live.iter().any(|report| endpoint(report) == trace.endpoint());
    let strange: Vec<_> = traces.iter().filter(missing).collect();
    match strange.first() {
        None => Ok(live),
        Some(_) if strange.len() == traces.len() => Err(Error::Against {
            path: path(),
            why: "the reports are of another run than the traces",
        }),
        Some(trace) => {
            let (_, pid, address) = trace.endpoint();
            Err(Error::NoReportOf { pid, address })
        }
    }
}

/// Whether a device would hold messages back.
pub(crate) fn holds_back(params: &[Params]) -> bool {
    params.iter().any(|params| params.text("overflow") == "flow-control")
}

/// Says what a replay cannot do: a trace has the messages that came, not those that a sender
/// would have held back.
pub(crate) fn note_flow_control(what: &str) {
    eprintln!(
        "{what}: a replay holds no message back and fails no receive; what does not fit spills"
    );
}

/// Writes reports as the provider would: `RANK`, and `RANK.1` and so on for further
/// endpoints of a rank.
fn write(directory: &Path, reports: &[Report]) -> Result<(), Error> {
    let directory = reports::prepare(directory)?;
    let mut endpoints: BTreeMap<u32, usize> = BTreeMap::new();
    for report in reports {
        let rank = report.rank.unwrap_or(report.pid);
        let endpoint = endpoints.entry(rank).or_default();
        let name = match *endpoint {
            0 => rank.to_string(),
            further => format!("{rank}.{further}"),
        };
        *endpoint += 1;
        let at = |extension: &str| directory.join(format!("{name}.{extension}"));
        let (json, text) = (at("json"), at("txt"));
        let content =
            report.to_json().map_err(|error| Error::Report { path: json.clone(), error })?;
        file::write_first(&json, content)?;
        file::write_first(&text, report.to_string())?;
    }
    Ok(())
}

/// Says where the reports of a replay are not those of the run.
fn compare(replayed: &[Report], traces: &[Trace], live: &[Report]) -> Result<u8, Error> {
    let played: BTreeSet<_> =
        traces.iter().map(|trace| (trace.endpoint(), &*trace.header.context)).collect();
    let (mut different, mut contexts) = (0, 0);
    for report in replayed {
        let Some(other) = live.iter().find(|other| endpoint(other) == endpoint(report)) else {
            return Err(Error::NoReportOf { pid: report.pid, address: report.address.clone() });
        };
        for (name, of_replay, of_run) in
            [("tagged", &report.tagged, &other.tagged), ("msg", &report.msg, &other.msg)]
        {
            // Of a context that nothing happened in there is no trace.
            if of_run.has_operations() && !played.contains(&(endpoint(report), name)) {
                continue;
            }
            contexts += 1;
            let counters = [of_replay, of_run].map(without_times);
            if counters[0] != counters[1] {
                different += 1;
                let rank = report.rank.map_or_else(String::new, |rank| format!("rank {rank}, "));
                eprintln!("{rank}{name}:\n{}", differences(&counters));
            }
        }
    }
    if different == 0 {
        eprintln!("The replay counted what the {} reports say.", replayed.len());
    } else {
        eprintln!("{different} of {contexts} contexts differ.");
    }
    let shares = |report: &Report| report.config.get("pool").is_some_and(|pool| pool == "node");
    if different > 0 && replayed.iter().any(shares) {
        eprintln!("pool=node: which rank came first to the pool is not in the traces.");
    }
    Ok(u8::from(different > 0))
}

/// The lines of two texts that differ, of the replay and of the run.
fn differences(counters: &[ContextCounters; 2]) -> String {
    let [replay, run] = counters.each_ref().map(ToString::to_string);
    let mut text = String::new();
    for (replay, run) in replay.lines().zip(run.lines()).filter(|(replay, run)| replay != run) {
        let _ = writeln!(text, "  replay {}\n  run    {}", replay.trim(), run.trim());
    }
    if text.is_empty() {
        "  in what reports for people leave out; compare the .json files".clone_into(&mut text);
    }
    text
}

/// The counts but for what a clock said.
fn without_times(counters: &ContextCounters) -> ContextCounters {
    let mut counters = counters.clone();
    counters.lengths.us.clear();
    for queue in [&mut counters.prq, &mut counters.umq] {
        queue.measured = Default::default();
    }
    counters
}

/// A bar for all traces, where their replay takes long enough to be seen.
pub(crate) fn bar(traces: &[Trace], times: usize) -> ProgressBar {
    match traces.iter().map(Trace::records).sum::<u64>().saturating_mul(times as u64) {
        0..LONG => ProgressBar::hidden(),
        length => progress::bar(length, BAR),
    }
}

/// Replays every trace, as many at a time as there are cores; those that share a
/// pool together, in the order of their times.
pub(crate) fn all(traces: &[Trace], settings: &Settings) -> Result<Vec<Counted>, Error> {
    let bar = bar(traces, 1);
    let counted = all_of_many(traces, settings, &bar);
    bar.finish_and_clear();
    counted
}

/// The same as one of several replays, which have a bar together.
pub(crate) fn all_of_many(
    traces: &[Trace],
    settings: &Settings,
    bar: &ProgressBar,
) -> Result<Vec<Counted>, Error> {
    let params = traces::params(traces, settings)?;
    if params.iter().any(|params| params.text("pool") == "node") {
        return together(traces, settings, bar);
    }
    each(traces, bar, |trace, bar| {
        let mut player = Player::new(trace, trace.device(&trace.params(settings)?)?)?;
        player.play(bar)?;
        Ok(player.counted())
    })
}

/// One trace, the counts of the table it was played to and the curves of PRQ and UMQ.
pub(crate) struct Curves {
    pub(crate) counted: Counted,
    pub(crate) curves: [Curve; 2],
}

/// Replays every trace once for the capacity curves.
pub(crate) fn curves(traces: &[Trace], settings: &Settings) -> Result<Vec<Curves>, Error> {
    let bar = bar(traces, 1);
    let curves = each(traces, &bar, |trace, bar| {
        let mut player = Player::new(trace, trace.device(&trace.params(settings)?)?)?;
        player.replay.keep_curves();
        player.play(bar)?;
        let curves = player.replay.context().curves().map(|curves| curves.map(Clone::clone));
        Ok(Curves { counted: player.counted(), curves: curves.unwrap_or_default() })
    });
    bar.finish_and_clear();
    curves
}

/// Does the same with every trace, as many at a time as there are cores.
pub(crate) fn each<T: Send>(
    traces: &[Trace],
    bar: &ProgressBar,
    work: impl Fn(&Trace, &ProgressBar) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    let results: Vec<_> = traces.par_iter().map(|trace| work(trace, bar)).collect();
    // The error of the first trace is told, whichever was met first.
    results.into_iter().collect()
}

fn note_stop(trace: &Trace, op: &Op) {
    let why = match op {
        Op::Stop(Stop::Size) => "FI_TCAM_TRACE_MAX was reached",
        Op::Stop(Stop::Disk) => "the disk was full",
        _ => return,
    };
    trace.tell(&format!("the recording ended before its program: {why}"));
}

/// A trace and what it is played to.
pub(crate) struct Player<'a> {
    trace: &'a Trace,
    reader: Reader<std::io::BufReader<fs::File>>,
    replay: Replay,
    clock: Arc<TraceClock>,
    last: u64,
    operations: u64,
}

impl<'a> Player<'a> {
    pub(crate) fn new(trace: &'a Trace, device: DeviceConfig) -> Result<Self, Error> {
        let clock = Arc::new(TraceClock::default());
        let device = DeviceConfig { clock: Some(Arc::clone(&clock) as Arc<dyn Clock>), ..device };
        let replay = Replay::new(&device).map_err(|error| Error::Replay(error.to_string()))?;
        Ok(Self { trace, reader: trace.reader()?, replay, clock, last: 0, operations: 0 })
    }

    /// The next operation, with its time since the start.
    pub(crate) fn next(&mut self) -> Result<Option<Timed>, Error> {
        let next: Option<Result<Timed, TraceError>> = self.reader.next();
        match next.transpose() {
            Err(cut @ TraceError::Cut(_)) if self.trace.take.cut_off => {
                self.trace.tell(&cut.to_string());
                Ok(None)
            }
            next => next.map_err(|error| self.trace.error(error)),
        }
    }

    pub(crate) fn step(&mut self, timed: Timed) -> Result<(), Error> {
        self.step_and_tell(timed, |_| {})
    }

    /// The same, telling what changed in the queues.
    #[inline]
    pub(crate) fn step_and_tell(
        &mut self,
        (time, op): Timed,
        tell: impl FnMut(Change),
    ) -> Result<(), Error> {
        note_stop(self.trace, &op);
        self.clock.set(time);
        self.replay.play_and_tell(&op, tell);
        self.last = time;
        self.operations += 1;
        let context = self.replay.context();
        for (queue, elements) in [("PRQ", context.posted()), ("UMQ", context.unexpected())] {
            if elements > self.trace.take.max_queue {
                return Err(self.too_long(queue));
            }
        }
        Ok(())
    }

    #[cold]
    fn too_long(&self, queue: &'static str) -> Error {
        let Trace { path, header, take, .. } = self.trace;
        let of =
            header.rank.map_or(format!("process {}", header.pid), |rank| format!("rank {rank}"));
        Error::QueueTooLong { path: path.clone(), queue, of, limit: take.max_queue }
    }

    /// Where the peers are that were named up to now.
    pub(crate) fn peers(&self) -> &BTreeMap<u32, Address> {
        self.reader.peers()
    }

    /// What it is played to.
    pub(crate) fn replay(&self) -> &Replay {
        &self.replay
    }

    /// Plays all.
    fn play(&mut self, bar: &ProgressBar) -> Result<(), Error> {
        let mut told = 0;
        while let Some(timed) = self.next()? {
            self.step(timed)?;
            if self.operations.is_multiple_of(STEP) {
                bar.inc(self.reader.taken() - told);
                told = self.reader.taken();
            }
        }
        bar.inc(self.reader.taken() - told);
        Ok(())
    }

    fn counted(&self) -> Counted {
        Counted {
            trace: self.trace.clone(),
            counters: self.replay.counters(),
            operations: self.operations,
            seconds: self.last as f64 * 1e-9,
        }
    }
}

/// Replays traces whose endpoints share the pool of their host.
fn together(
    traces: &[Trace],
    settings: &Settings,
    bar: &ProgressBar,
) -> Result<Vec<Counted>, Error> {
    let mut hosts: Vec<(String, LocalPool)> = Vec::new();
    let mut members: Vec<(Endpoint, Arc<dyn EntryPool>)> = Vec::new();
    let mut players = Vec::new();
    for trace in traces {
        let params = trace.params(settings)?;
        let header = &trace.header;
        let key = trace.endpoint();
        if !hosts.iter().any(|(host, _)| *host == header.host) {
            hosts.push((header.host.clone(), LocalPool::new(number(&params, "pool_entries"))));
        }
        if !members.iter().any(|(member, _)| *member == key) {
            let pool = hosts.iter().find(|(host, _)| *host == header.host).map(|(_, pool)| pool);
            let share = Share {
                reserved: number(&params, "pool_reserved"),
                max: number(&params, "pool_max"),
            };
            let member = pool.and_then(|pool| pool.join(share).ok()).ok_or(Error::Pool)?;
            members.push((key.clone(), Arc::new(member)));
        }
        let mut device = trace.device(&params)?;
        device.pool =
            members.iter().find(|(member, _)| *member == key).map(|(_, pool)| Arc::clone(pool));
        players.push(Player::new(trace, device)?);
    }
    // The earliest next operation of all traces; its place breaks ties.
    let mut queue = BinaryHeap::new();
    let mut next: Vec<Option<Timed>> = Vec::new();
    for (at, player) in players.iter_mut().enumerate() {
        let first = player.next()?;
        let start = player.trace.header.start_ns;
        queue.extend(first.map(|(time, _)| Reverse((start.saturating_add(time), at))));
        next.push(first);
    }
    while let Some(Reverse((_, at))) = queue.pop() {
        let player = &mut players[at];
        if let Some(timed) = next[at].take() {
            player.step(timed)?;
        }
        let before = player.reader.taken();
        next[at] = player.next()?;
        bar.inc(player.reader.taken() - before);
        let start = player.trace.header.start_ns;
        queue.extend(next[at].map(|(time, _)| Reverse((start.saturating_add(time), at))));
    }
    Ok(players.iter().map(Player::counted).collect())
}

fn number(params: &Params, name: &str) -> u32 {
    u32::try_from(params.number(name)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::tests::sample;
    use nic::report::ChannelCounters;
    use nic::trace::Header;

    #[test]
    fn reports_of_a_run_are_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        spare_runs(&place.join("none")).unwrap();
        spare_runs(place).unwrap();
        let mut report = sample(0, 10, 25);
        write(place, &[report.clone()]).unwrap();
        spare_runs(place).unwrap();
        report.channels.insert("shm".to_owned(), ChannelCounters::default());
        write(place, &[report]).unwrap();
        assert!(matches!(spare_runs(place), Err(Error::ReportsOfRun(_))));
    }

    #[test]
    fn only_what_differs_is_told() {
        let [one, other] = [25, 24].map(|posts| sample(0, 10, posts).tagged);
        let text = differences(&[one, other]);
        assert!(text.contains("replay 25 receives posted, 25 messages arrived"), "{text}");
        assert!(text.contains("  run    24 receives posted, 24 messages arrived"), "{text}");
        assert!(!text.contains("promotions"), "{text}");
    }

    #[test]
    fn reports_of_another_run_are_told_before_the_replay() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let report = sample(0, 10, 25);
        let trace = |name: &str, pid| {
            let context = "tagged".to_owned();
            let header = Header { host: report.host.clone(), pid, context, ..Header::default() };
            fs::write(place.join(name), header.to_bytes()).unwrap();
        };
        trace("0.trace", report.pid);
        let read = || {
            reports_of(place, &traces::find(&[place.to_owned()], traces::Take::default()).unwrap())
        };
        assert!(read().unwrap_err().to_string().ends_with("no report (*.json) there"));
        let put = |report: &Report| {
            fs::write(place.join("0.json"), report.to_json().unwrap()).unwrap();
        };
        put(&Report { pid: 7, ..report.clone() });
        assert!(read().unwrap_err().to_string().contains("of another run than the traces"));
        put(&report);
        assert_eq!(read().unwrap().len(), 1);
        trace("1.trace", 8);
        assert!(read().unwrap_err().to_string().starts_with("no report of process 8"));
    }

    #[test]
    fn a_queue_that_grows_too_long_ends_the_replay() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x.trace");
        let header = Header { rank: Some(3), layout: "mpich".to_owned(), ..Header::default() };
        let envelope = nic::device::Envelope { source: 1, bits: 2, len: 0 };
        let mut bytes = header.to_bytes();
        nic::trace::Encoder::default().op(&mut bytes, &Op::Arrive(envelope)).unwrap();
        bytes.extend(nic::trace::again(99).to_le_bytes());
        fs::write(&path, bytes).unwrap();
        let play = |max_queue| {
            let take = traces::Take { max_queue, ..Default::default() };
            let found = traces::find(std::slice::from_ref(&path), take).unwrap();
            let settings = Settings::default();
            (
                all(&found, &settings).map(|of| of.len()),
                curves(&found, &settings).map(|of| of.len()),
            )
        };
        assert!(matches!(play(100), (Ok(1), Ok(1))));
        let (one, other) = play(99);
        for error in [one.unwrap_err(), other.unwrap_err()] {
            let expected = "x.trace: the UMQ of rank 3 has more than 99 elements";
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn two_endpoints_of_a_rank_have_a_report_each() {
        let directory = tempfile::tempdir().unwrap();
        let other = Report { address: "127.0.0.1:2".to_owned(), ..sample(0, 10, 4) };
        write(directory.path(), &[sample(0, 10, 25), other, sample(1, 10, 7)]).unwrap();
        assert_eq!(reports::read(directory.path()).unwrap().len(), 3);
        assert!(directory.path().join("0.1.txt").is_file());
    }
}
