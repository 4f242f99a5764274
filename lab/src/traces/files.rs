// SPDX-License-Identifier: BSD-2-Clause
//! Traces on the disk, and what they are replayed to.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::net::SocketAddrV4;
use std::num::NonZeroU32;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once, OnceLock};

use clap::Args;
use matching::measured::Clock;
use matching::timing::{Costs, Pace, Timing};
use matching::{HostEngine, TagLayout};
use nic::clusters::{self, Own};
use nic::config;
use nic::config::{DeviceConfig, Promise};
use nic::params::Params;
use nic::replay::Replay;
use nic::report::{ContextCounters, FORMAT, Report, VERSION, WrittenAt};
use nic::timings::COSTS;
use nic::trace::{Address, HEADER, Header, Reader, Stop, TraceError};

use super::node::{Nodes, Remote};
use crate::error::Error;
use crate::results::ranks::Ranks;
use crate::results::reports::{self, Endpoint};
use crate::results::summary::{self, NO_LIBFABRIC, Source};
use crate::settings::Settings;

/// A trace on the disk.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    pub(crate) path: PathBuf,
    pub(crate) header: Header,
    /// Bytes of the window and of records.
    pub(crate) bytes: u64,
    pub(crate) take: Take,
    /// Its process was ended in the middle of it, or runs still.
    unfinished: bool,
    /// Why the recording ended before its program, if it did.
    stop: Option<Stop>,
    /// Why it is not whole, once that was noticed.
    cut: Arc<OnceLock<String>>,
    /// Receives have their lengths.
    tells_lengths: bool,
    /// Which ranks share a node, where that matters.
    nodes: Option<Arc<Nodes>>,
}

/// Traces that were found, and what is known beside them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    traces: Vec<Trace>,
    /// Ranks of traces without a beginning, which were left out.
    left_out: Vec<Option<u32>>,
    /// Reports in the directories named of endpoints that did nothing: there is no trace of them, and
    /// none is missing.
    quiet: Vec<Report>,
}

impl Deref for Found {
    type Target = [Trace];

    fn deref(&self) -> &[Trace] {
        &self.traces
    }
}

impl Found {
    /// Which ranks these are, and which there should be. What was cut off is known once the traces
    /// were played.
    pub(crate) fn ranks(&self) -> Ranks {
        let mut ranks = Ranks::default();
        let mut processes = BTreeSet::new();
        for trace in &self.traces {
            let Header { host, pid, rank, origin, libfabric, .. } = &trace.header;
            if processes.insert((host, pid)) {
                ranks.note(*rank, origin.ranks);
            }
            if !trace.is_whole() {
                ranks.note_cut(*rank);
            }
            if libfabric == NO_LIBFABRIC {
                ranks.note_generated();
            }
        }
        self.left_out.iter().for_each(|rank| ranks.note_cut(*rank));
        let runs: BTreeSet<_> =
            self.traces.iter().filter_map(|trace| trace.header.origin.job).collect();
        if runs.len() > 1 {
            ranks.note_mixed();
        }
        for Report { host, pid, rank, origin, .. } in &self.quiet {
            if processes.insert((host, pid)) {
                ranks.note(*rank, origin.ranks);
            }
        }
        ranks
    }
}

/// Which traces are taken, and how much of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args)]
pub(crate) struct Take {
    /// Takes traces that were cut off, up to there, and leaves out those without a beginning.
    #[arg(long)]
    pub(crate) cut_off: bool,

    /// Ends a replay, with an error, in which a queue has more elements. Each takes 150 to 250
    /// bytes; as many traces are replayed at a time as there are cores.
    #[arg(long, value_name = "N", default_value_t = MAX_QUEUE)]
    pub(crate) max_queue: usize,

    /// Takes what there is where ranks are missing or were cut short; otherwise the exit code is 3.
    #[arg(long)]
    pub(crate) partial: bool,

    /// Ranks of a node, see [`Ppn`].
    #[arg(skip)]
    pub(crate) ppn: Option<NonZeroU32>,
}

/// For commands that replay traces alone.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Ppn {
    /// Plays what a NIC would see with so many ranks on a node: messages between these, and the
    /// receives that name them, are left out, and a pool is theirs. Receives from any source stay until they are
    /// answered. Ranks of a node are consecutive.
    #[arg(long, value_name = "P", allow_negative_numbers = true)]
    pub(crate) ppn: Option<NonZeroU32>,
}

impl Default for Take {
    fn default() -> Self {
        Self { cut_off: false, max_queue: MAX_QUEUE, partial: false, ppn: None }
    }
}

/// That lengths are missing is said once.
static NO_LENGTHS: Once = Once::new();
/// So is that clusters are of another job.
static OTHER_JOB: Once = Once::new();

/// A gigabyte, or a file of 62 KB: records say how often they repeat.
pub(crate) const MAX_QUEUE: usize = 4_000_000;

/// Files in a directory that end in `.trace`.
fn trace_files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).map_err(Error::io(directory))? {
        let path = entry.map_err(Error::io(directory))?.path();
        // A directory may be named so: what `tcam record --out app.trace` made.
        if path.extension() == Some(OsStr::new("trace")) && !path.is_dir() {
            files.push(path);
        }
    }
    Ok(files)
}

/// The traces of an earlier run, damaged ones as well. A file of another kind is an
/// error now, not after the run.
pub(crate) fn old(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let files = trace_files(directory)?;
    for path in &files {
        if let Err(Error::Trace { error: error @ TraceError::Foreign, path }) = reader(path) {
            return Err(Error::Trace { path, error });
        }
    }
    Ok(files)
}

/// The traces named, and those in the directories named, in order. If that is allowed they may
/// be cut off and are played up to there; those without a whole header are left out, and told.
pub(crate) fn find(names: &[PathBuf], take: Take) -> Result<Found, Error> {
    let (mut paths, mut quiet) = (Vec::new(), Vec::new());
    for name in names {
        if name.is_dir() {
            paths.extend(trace_files(name)?);
            // What cannot be read tells nothing.
            let reports = reports::read(name).unwrap_or_default();
            let did_nothing =
                |report: &Report| !report.tagged.has_operations() && !report.msg.has_operations();
            quiet.extend(reports.into_iter().filter(did_nothing));
        } else {
            paths.push(name.clone());
        }
    }
    paths.sort();
    paths.dedup();
    let (mut traces, mut left_out) = (Vec::new(), Vec::new());
    for path in paths {
        match Trace::open(path, take) {
            Err(Error::Trace {
                path,
                error: error @ (TraceError::Empty | TraceError::Short(_)),
            }) if take.cut_off => {
                eprintln!("{}: {error}; left out", path.display());
                // RANK.PID.PORT.CONTEXT.trace.
                let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
                left_out.push(name.split('.').next().and_then(|rank| rank.parse().ok()));
            }
            trace => traces.push(trace?),
        }
    }
    if traces.is_empty() {
        return Err(Error::NoTraces(names.first().cloned().unwrap_or_default()));
    }
    let mut contexts = BTreeMap::new();
    for trace in &traces {
        let context = (trace.endpoint(), trace.header.context.clone());
        if let Some(first) = contexts.insert(context, trace) {
            let (first, second) = (first.path.clone(), trace.path.clone());
            return Err(Error::SameEndpoint { first, second });
        }
    }
    if let Some(ppn) = take.ppn {
        let nodes = Arc::new(nodes(&traces, ppn)?);
        traces.iter_mut().for_each(|trace| trace.nodes = Some(Arc::clone(&nodes)));
    }
    Ok(Found { traces, left_out, quiet })
}

/// Which ranks share a node, by the addresses of those that recorded.
fn nodes(traces: &[Trace], ppn: NonZeroU32) -> Result<Nodes, Error> {
    let mut ranks = HashMap::new();
    for trace in traces {
        let Some(rank) = trace.header.rank else {
            return Err(Error::NoRankForNode { path: trace.path.clone() });
        };
        let at = trace.header.address.parse::<SocketAddrV4>();
        if let Ok(at) = at {
            ranks.insert(Address { ip: (*at.ip()).into(), port: at.port() }, rank);
        }
        if !trace.is_generated() && !trace.reader()?.tells_peers() {
            return Err(Error::NoPeersForNode { path: trace.path.clone() });
        }
    }
    let known: BTreeSet<_> = traces.iter().filter_map(|trace| trace.header.rank).collect();
    let of = traces.iter().filter_map(|trace| trace.header.origin.ranks).max().unwrap_or(0);
    if traces.iter().any(|trace| !trace.is_generated()) && (known.len() as u32) < of {
        return Err(Error::RanksMissingForNode { known: known.len(), of });
    }
    Ok(Nodes::new(ppn, ranks))
}

/// Why these may be traces of several runs, whose counts tell nothing together.
pub(crate) fn mixed(traces: &[Trace]) -> Option<String> {
    let sources = traces.iter().map(|trace| {
        let Header { program, host, pid, rank, origin, .. } = &trace.header;
        Source { program, host, pid: *pid, rank: *rank, origin }
    });
    summary::mixed(&sources.collect::<Vec<_>>())
}

/// The parameters of each trace, see [`Trace::params`].
pub(crate) fn params(traces: &[Trace], settings: &Settings) -> Result<Vec<Params>, Error> {
    traces.iter().map(|trace| trace.params(settings)).collect()
}

impl Trace {
    fn open(path: PathBuf, take: Take) -> Result<Self, Error> {
        let meta = fs::metadata(&path).map_err(Error::io(&path))?;
        // To open a pipe would wait for who writes to it.
        if !meta.is_file() {
            return Err(Error::NoFile { path });
        }
        let len = meta.len();
        let reader = reader(&path)?;
        let header = reader.header().clone();
        let bytes = len.saturating_sub(HEADER as u64);
        let (unfinished, stop) = (reader.is_unfinished(), reader.stop());
        let (cut, nodes, tells_lengths) = (Arc::default(), None, reader.tells_lengths());
        Ok(Self { path, header, bytes, take, unfinished, stop, cut, tells_lengths, nodes })
    }

    /// What leaves out the messages of ranks of the same node, where that is wanted.
    pub(crate) fn remote(&self) -> Option<Remote<'_>> {
        let (nodes, rank) = (self.nodes.as_deref()?, self.header.rank?);
        Some(Remote::new(nodes, rank, self.is_generated()))
    }

    pub(crate) fn is_generated(&self) -> bool {
        self.header.libfabric == NO_LIBFABRIC
    }

    /// Where its process ran, or would have.
    pub(crate) fn host(&self) -> (String, Option<u32>) {
        let node = self.nodes.as_ref().zip(self.header.rank).map(|(nodes, rank)| nodes.of(rank));
        (self.header.host.clone(), node)
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        (self.header.host.clone(), self.header.pid, self.header.address.clone())
    }

    /// Bytes of records, but for those of the window: a short recording leaves it nearly empty.
    pub(crate) fn records(&self) -> u64 {
        self.bytes.saturating_sub(u64::from(self.header.window))
    }

    pub(crate) fn reader(&self) -> Result<Reader<File>, Error> {
        reader(&self.path)
    }

    /// Says why it is not whole, once however often it is played.
    pub(crate) fn tell(&self, why: &str) {
        if self.cut.set(why.to_owned()).is_ok() {
            eprintln!("{}: {why}", self.path.display());
        }
    }

    /// Why it is not whole, if that was noticed as it was played.
    pub(crate) fn cut(&self) -> Option<&str> {
        self.cut.get().map(String::as_str)
    }

    /// Whether it has all that was asked, as far as that was noticed.
    pub(crate) fn is_whole(&self) -> bool {
        !self.unfinished && self.stop.is_none() && self.cut().is_none()
    }

    /// Whether the recording ended since there was no room for it.
    pub(crate) fn found_no_room(&self) -> bool {
        self.stop == Some(Stop::Disk)
    }

    pub(crate) fn error(&self, error: TraceError) -> Error {
        Error::Trace { path: self.path.clone(), error }
    }

    /// The parameters it was recorded with, but for those set here.
    pub(crate) fn params(&self, settings: &Settings) -> Result<Params, Error> {
        // Devices and timings set parameters, which were recorded with their values, too.
        let (device, timing) = (settings.get("device"), settings.get("timing"));
        let recorded = |name: &str| match (device, name) {
            // The kernel is of the machine, not of the experiment.
            (Some(_), _) | (None, "kernel") => None,
            (None, _) if timing.is_some() && COSTS.contains(&name) => None,
            (None, _) => self.header.config.get(name).cloned(),
        };
        let set = |name: &str| settings.get(name).map(str::to_owned);
        Ok(Params::from_lookup(|name| set(name).or_else(|| recorded(name)))?)
    }

    /// How match bits are laid out, with these parameters.
    pub(crate) fn layout(&self, params: &Params) -> Result<TagLayout, Error> {
        let layout = match params.text("tag_layout") {
            "auto" => self.header.layout.parse(),
            name => name.parse(),
        };
        layout.map_err(|_| Error::Layout {
            path: self.path.clone(),
            layout: self.header.layout.clone(),
        })
    }

    /// Its clusters in a file; none, and that is told, if the file is of another job.
    fn clusters(&self, file: &str) -> Result<Option<Own>, Error> {
        let path = Path::new(file);
        let Header { rank, origin, .. } = &self.header;
        let mut opened = host::regular::open(path).map_err(Error::io(path))?;
        let read = clusters::read(&mut opened, rank.unwrap_or(0), origin.ranks);
        match read {
            Ok(own) => Ok(Some(own)),
            Err(error) if error.is_other_job() => {
                OTHER_JOB.call_once(|| {
                    eprintln!("{file}: {error}; every source is in the default cluster");
                });
                Ok(None)
            }
            Err(error) => Err(Error::Clusters { path: path.to_owned(), error }),
        }
    }

    /// The device of these parameters. Costs are counted, time does not pass.
    pub(crate) fn device(&self, params: &Params) -> Result<DeviceConfig, Error> {
        let layout = self.layout(params)?;
        let mut config = DeviceConfig::from_params(params, layout);
        (config.prq.depths, config.umq.depths) = (true, true);
        config.times = false;
        if self.header.context != "tagged" {
            // Of the MPI itself, which promises nothing.
            config.promise = Promise::default();
        }
        if config.prq.engine == HostEngine::Kmeans {
            config.clusters = self.clusters(params.text("clusters"))?;
        }
        if !self.tells_lengths && config.refuse.below > 0 {
            NO_LENGTHS.call_once(|| eprintln!("{}", Error::NoLengths { path: self.path.clone() }));
            config.refuse.below = 0;
        }
        let costs = config::costs(params);
        if costs != Costs::default() {
            config.timing = Some(Timing { costs, pace: Arc::new(NoTime) });
        }
        Ok(config)
    }
}

fn reader(path: &Path) -> Result<Reader<File>, Error> {
    let file = File::open(path).map_err(Error::io(path))?;
    Reader::new(file).map_err(|error| Error::Trace { path: path.to_owned(), error })
}

/// The time of a trace.
#[derive(Debug, Default)]
pub(crate) struct TraceClock(AtomicU64);

impl TraceClock {
    /// So many nanoseconds after the start.
    pub(crate) fn set(&self, now: u64) {
        self.0.store(now, Ordering::Relaxed);
    }
}

impl Clock for TraceClock {
    fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Time that does not pass.
#[derive(Debug)]
struct NoTime;

impl Pace for NoTime {
    fn spend(&self, _picoseconds: u64) {}
}

/// What was counted for one trace.
#[derive(Clone, Debug)]
pub(crate) struct Counted {
    pub(crate) trace: Trace,
    pub(crate) counters: ContextCounters,
    pub(crate) operations: u64,
    /// From the first record to the last.
    pub(crate) seconds: f64,
}

/// A report for each endpoint.
pub(crate) fn reports(counted: &[Counted], settings: &Settings) -> Result<Vec<Report>, Error> {
    let mut endpoints: BTreeMap<Endpoint, Vec<&Counted>> = BTreeMap::new();
    for counted in counted {
        endpoints.entry(counted.trace.endpoint()).or_default().push(counted);
    }
    let reports: Result<Vec<_>, _> =
        endpoints.into_values().map(|contexts| report(&contexts, settings)).collect();
    let mut reports = reports?;
    reports.sort_by_key(|report| (report.rank, report.pid));
    Ok(reports)
}

/// The report of an endpoint, of which there is one trace at least.
fn report(contexts: &[&Counted], settings: &Settings) -> Result<Report, Error> {
    let Counted { trace, .. } = contexts[0];
    let (header, params) = (&trace.header, trace.params(settings)?);
    let context = |name: &str| {
        let of = contexts.iter().find(|of| of.trace.header.context == name);
        match of {
            Some(of) => Ok(of.counters.clone()),
            // There is no trace of a context that nothing happened in.
            None => Replay::new(&trace.device(&params)?)
                .map(|replay| replay.counters())
                .map_err(|error| Error::Replay(error.to_string())),
        }
    };
    Ok(Report {
        format: FORMAT.to_owned(),
        version: VERSION,
        tcam: env!("CARGO_PKG_VERSION").to_owned(),
        libfabric: header.libfabric.clone(),
        host: header.host.clone(),
        pid: header.pid,
        rank: header.rank,
        address: header.address.clone(),
        program: header.program.clone(),
        origin: header.origin.clone(),
        written_at: match contexts.iter().all(|of| of.trace.is_whole()) {
            true => WrittenAt::Close,
            false => WrittenAt::Running,
        },
        elapsed_s: contexts.iter().fold(0.0, |longest, of| of.seconds.max(longest)),
        config: params.recorded(),
        tagged: context("tagged")?,
        msg: context("msg")?,
        ..Report::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_window_has_no_records() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, window: u32, more: usize| {
            let path = directory.path().join(name);
            let mut bytes = Header { window, ..Header::default() }.to_bytes();
            bytes.resize(bytes.len() + more, 0);
            fs::write(&path, bytes).unwrap();
            Trace::open(path, Take::default()).unwrap()
        };
        assert_eq!(put("0.trace", 4096, 4096).records(), 0);
        assert_eq!(put("1.trace", 4096, 3 * 4096).records(), 2 * 4096);
        assert_eq!(put("2.trace", 0, 40).records(), 40);
    }

    #[test]
    fn earlier_traces_are_found_whole_or_not_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: &[u8]| fs::write(directory.path().join(name), bytes).unwrap();
        let whole = Header::default().to_bytes();
        put("0.trace", &whole);
        put("1.trace", &whole[..100]);
        put("2.trace", b"");
        put("notes.txt", b"not ours");
        let mut found = old(directory.path()).unwrap();
        found.sort();
        assert_eq!(
            found,
            ["0.trace", "1.trace", "2.trace"].map(|name| directory.path().join(name))
        );
        put("other.trace", b"GPS");
        assert!(old(directory.path()).unwrap_err().to_string().contains("other.trace"));
    }
}
