// SPDX-License-Identifier: BSD-2-Clause
//! Adds up the reports of a job, collects remarks on the host engines, and makes the JSON of the
//! sum.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use matching::QueueCounters;
use matching::measured::MeasuredTime;
use nic::models;
use nic::origin::Origin;
use nic::report::{ChannelCounters, ContextCounters, Report, WrittenAt};
use serde::Serialize;

use super::origin::Interned;
use super::{Completeness, Ranks, ReportHead, origin};
use crate::text::{count, percent, total, whole};

/// Maximum number of programs or ranks that a note names. A report may contain any number of them.
pub(crate) const MAX_NAMED: usize = 16;

/// The largest number of elements of one queue, and its rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Peak {
    /// Largest number of elements at once.
    pub(crate) elements: u64,
    /// The rank, if known.
    pub(crate) rank: Option<u32>,
}

/// Version of libfabric in traces and reports of `tcam workload`.
pub(crate) const NO_LIBFABRIC: &str = "none";

/// The sum of a run's reports.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// Number of processes with a report.
    pub(crate) processes: usize,
    /// Number of reports that were written when a process exited without closing its endpoint.
    pub(crate) at_exit: usize,
    /// The ranks of these reports, and those that the job should have.
    pub(crate) ranks: Ranks,
    /// Numbers of ranks and processors of the first host with more ranks than processors; `None` if
    /// there is no such host.
    pub(crate) oversubscribed: Option<(u32, u32)>,
    /// Largest number of endpoints of a process that have operations on tagged messages.
    pub(crate) endpoints: u32,
    /// Facts about the run, from the reports.
    pub(crate) origin: Vec<origin::Line>,
    /// True if all counts are those of a replay.
    pub(crate) replayed: bool,
    /// Remarks on the host engines.
    pub(crate) remarks: Vec<String>,
    /// Reason to assume that the reports are of several runs, if there is one.
    pub(crate) mixed: Option<String>,
    /// Version of libfabric in the first report, or [`NO_LIBFABRIC`].
    pub(crate) libfabric: String,
    /// Longest time for which an endpoint was open, in seconds.
    pub(crate) seconds: f64,
    /// Seconds that the timing model charged to all ranks together.
    pub(crate) modelled: f64,
    /// Time that matching took on all ranks together, if it was measured.
    pub(crate) measured: MeasuredTime,
    /// Tagged messages: those of the program.
    pub(crate) tagged: ContextCounters,
    /// Untagged messages, which an MPI uses for itself.
    pub(crate) msg: ContextCounters,
    /// Traffic by channel: `shm`, `kernel-copy`, `copy-pipeline`, `net`, or `rma` for reads, writes
    /// and atomics.
    pub(crate) channels: BTreeMap<String, ChannelCounters>,
    /// Longest PRQ of tagged messages.
    pub(crate) prq_peak: Peak,
    /// Longest UMQ of tagged messages.
    pub(crate) umq_peak: Peak,
}

impl Summary {
    /// Returns text on the version of libfabric and the time, or `generated`.
    pub(crate) fn origin_text(&self) -> String {
        match self.libfabric.as_str() {
            NO_LIBFABRIC => "generated".to_owned(),
            version => format!("over libfabric {version} in {:.2} s", self.seconds),
        }
    }

    /// Adds up the reports of replays. `ranks` are the ranks of the traces. Returns `None` without
    /// reports.
    pub(crate) fn of_traces(reports: &[Report], ranks: &Ranks) -> Option<Self> {
        Self::of(reports).map(|sum| Self { replayed: true, ranks: ranks.clone(), ..sum })
    }

    /// Returns a sentence on missing or incomplete ranks and on a failed program, or `None` if
    /// there is nothing to say.
    pub(crate) fn lack(&self) -> Option<String> {
        self.ranks.lack(if self.replayed { "trace" } else { "report" })
    }

    /// Returns a note that the length of the UMQ depends on scheduling, if ranks share processors.
    /// Returns `None` otherwise, and if there were no unexpected messages.
    pub(crate) fn scheduling_note(&self) -> Option<String> {
        let (ranks, cores) = self.oversubscribed.filter(|_| self.tagged.umq.high_water > 0)?;
        Some(format!(
            "{} on {} take turns, so the UMQ may depend on their scheduling; repeats show its spread \
             here, not its length with a processor for each",
            count(u64::from(ranks), "rank"),
            count(u64::from(cores), "processor")
        ))
    }

    /// Returns a note that the UMQ is a lower bound, because senders waited for room at their
    /// receivers; `None` if none did.
    pub(crate) fn waits_note(&self) -> Option<String> {
        waits_note(self.channels.values().fold(0, |sum, channel| total([sum, channel.waited])))
    }

    /// Returns a note that the need of a NIC is the sum over the endpoints of a rank, if a rank has
    /// several endpoints; otherwise `None`.
    pub(crate) fn endpoints_note(&self) -> Option<String> {
        (self.endpoints > 1).then(|| {
            format!(
                "Ranks have up to {} endpoints, each with tables of its own: high-water marks are those \
                 of one, and add up on a NIC that they share",
                self.endpoints
            )
        })
    }

    /// Returns the number of ranks as text, see [`Ranks::count`]. If the ranks are complete and did
    /// not fail, returns the number of processes.
    pub(crate) fn ranks(&self) -> String {
        match self.ranks.are_whole() && !self.ranks.has_failed() {
            // Ranks of several programs may have equal numbers, so their processes are counted.
            true => count(self.processes as u64, "rank"),
            false => self.ranks.count(),
        }
    }

    /// Adds up reports. Returns `None` without reports.
    pub(crate) fn of(reports: &[Report]) -> Option<Self> {
        let mut adding = Adding::default();
        reports.iter().for_each(|report| adding.add(report));
        adding.sum().map(|(sum, _)| sum)
    }

    /// Returns the sum of a counter over the PRQ and the UMQ of tagged messages.
    pub(crate) fn of_both(&self, of: fn(&QueueCounters) -> u64) -> u64 {
        total([of(&self.tagged.prq), of(&self.tagged.umq)])
    }

    /// Returns the share of the messages that a table matched, in per cent.
    pub(crate) fn in_table(&self) -> f64 {
        percent(self.of_both(|queue| queue.table_matches), self.tagged.arrivals)
    }

    /// Returns the share of the elements that got an entry of their table when they were added, in
    /// per cent; 100 without elements.
    pub(crate) fn immediate(&self) -> f64 {
        100.0 - self.spilled()
    }

    /// Returns the share of the elements that went to the host and entered their table later, in
    /// per cent.
    pub(crate) fn promoted(&self) -> f64 {
        percent(self.of_both(|queue| queue.promotions), self.of_both(|queue| queue.inserts))
    }

    /// Returns the number of elements of the MPI itself that spilled to the host.
    pub(crate) fn internal_spills(&self) -> u64 {
        total([self.msg.prq.spills, self.msg.umq.spills])
    }

    /// Returns the share of the elements that spilled, in per cent. An element spills if it goes to
    /// the host because its table is full or the device does not take it.
    pub(crate) fn spilled(&self) -> f64 {
        percent(self.of_both(|queue| queue.spills), self.of_both(|queue| queue.inserts))
    }
}

/// Returns a note that the UMQ is a lower bound, because `waited` messages waited for room at their
/// receivers; `None` if that is 0.
pub(crate) fn waits_note(waited: u64) -> Option<String> {
    let times = count(waited, "time");
    (waited > 0).then(|| format!("Senders waited for room {times}: the UMQ is a lower bound"))
}

/// Adds up reports one by one, and keeps only their heads.
#[derive(Debug, Default)]
pub(crate) struct Adding {
    sum: Summary,
    heads: Vec<ReportHead>,
    shared: Interned,
    remarks: Remarks,
    /// Processes whose counts end before the end of their program, by host and process id.
    cut: BTreeSet<(Arc<str>, u32)>,
}

impl Adding {
    pub(crate) fn add(&mut self, report: &Report) {
        let sum = &mut self.sum;
        let head = self.shared.head(report);
        let process = (Arc::clone(&head.host), head.pid);
        if report.written_at == WrittenAt::Running && self.cut.insert(process) {
            sum.ranks.note_cut(report.rank);
        }
        if report.libfabric == NO_LIBFABRIC {
            sum.ranks.none_missing = true;
        }
        sum.at_exit += usize::from(report.written_at == WrittenAt::Exit);
        sum.seconds = sum.seconds.max(report.elapsed_s);
        sum.modelled += report.modelled_s();
        sum.measured.merge(&report.measured());
        sum.tagged.merge(&report.tagged);
        sum.msg.merge(&report.msg);
        for (name, channel) in &report.channels {
            sum.channels.entry(name.clone()).or_default().merge_counters(channel);
        }
        sum.prq_peak.raise(report.tagged.prq.high_water, report.rank);
        sum.umq_peak.raise(report.tagged.umq.high_water, report.rank);
        self.remarks.add(report);
        self.heads.push(head);
    }

    pub(crate) fn heads(&self) -> &[ReportHead] {
        &self.heads
    }

    /// Sorts the heads by rank, because reports are read in the order of file names.
    pub(crate) fn sort(&mut self) {
        self.heads.sort_by(|one, other| {
            let key = |of: &ReportHead| (of.rank, of.pid);
            key(one).cmp(&key(other)).then_with(|| one.host.cmp(&other.host))
        });
    }

    /// Returns the sum and the head of each report, or `None` if no report was added.
    pub(crate) fn sum(self) -> Option<(Summary, Vec<ReportHead>)> {
        let Self { mut sum, heads, remarks, .. } = self;
        sum.libfabric = heads.first()?.libfabric.to_string();
        let mut processes = BTreeSet::new();
        let mut endpoints: BTreeMap<(&str, u32), u32> = BTreeMap::new();
        for head in &heads {
            if processes.insert((&*head.host, head.pid)) {
                sum.ranks.note(head.rank, ranks_of(head));
            }
            if head.has_tagged {
                *endpoints.entry((&head.host, head.pid)).or_default() += 1;
            }
        }
        sum.endpoints = endpoints.into_values().max().unwrap_or(0);
        sum.processes = processes.len();
        sum.oversubscribed = oversubscribed(&heads, &processes);
        sum.origin = origin::lines(&heads);
        sum.remarks = remarks.sentences();
        sum.mixed = mixed(&heads.iter().map(source).collect::<Vec<_>>());
        // Spawned ranks are of the same job, but know another number of ranks. If a report does not
        // name its job, spawned ranks are recognised because two processes have the same rank
        // number.
        let jobs: BTreeSet<_> = heads.iter().map(|head| head.origin.job).collect();
        let sizes: BTreeSet<_> = heads.iter().filter_map(|head| head.origin.ranks).collect();
        let numbers: BTreeSet<_> = heads.iter().filter_map(|head| head.rank).collect();
        sum.ranks.mixed = jobs.iter().flatten().count() > 1
            || jobs.contains(&None) && sizes.len() > 1 && processes.len() == numbers.len();
        Some((sum, heads))
    }
}

/// Returns the numbers of ranks and processors of the first host with more ranks than processors,
/// or `None` if there is no such host.
fn oversubscribed(heads: &[ReportHead], processes: &BTreeSet<(&str, u32)>) -> Option<(u32, u32)> {
    let mut hosts: BTreeMap<&str, u32> = BTreeMap::new();
    for (host, _) in processes {
        *hosts.entry(host).or_default() += 1;
    }
    let processors = origin::processors(heads);
    heads.iter().find_map(|head| {
        let (ranks, cores) = (hosts.get(&*head.host)?, processors.get(&*head.host)?);
        (ranks > cores).then_some((*ranks, *cores))
    })
}

/// Returns the number of ranks that a process knows of: the launcher's number or, for a process
/// with a rank, the number of addresses that its MPI gave. Returns `None` if both are unknown.
fn ranks_of(head: &ReportHead) -> Option<u32> {
    let addresses = Some(head.processes).filter(|number| *number > 0);
    head.origin.ranks.or(head.rank.and(addresses))
}

/// The process of a report or a trace.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessOrigin<'a> {
    pub(crate) program: &'a str,
    pub(crate) host: &'a str,
    pub(crate) pid: u32,
    pub(crate) rank: Option<u32>,
    pub(crate) origin: &'a Origin,
}

/// Returns the reason to assume that reports or traces are of several runs, whose counts cannot be
/// added up. Returns `None` if there is no such reason.
pub(crate) fn mixed(of: &[ProcessOrigin<'_>]) -> Option<String> {
    let programs: BTreeSet<&str> = of.iter().map(|source| source.program).collect();
    if programs.len() > 1 {
        let programs: Vec<_> = programs.into_iter().take(MAX_NAMED).collect();
        return Some(format!(
            "These are several programs, whose counts tell nothing together: {}",
            programs.join(", ")
        ));
    }
    // Ranks that one job has spawned begin with 0 again.
    let job = of.first().and_then(|first| first.origin.job);
    if job.is_some() && of.iter().all(|source| source.origin.job == job) {
        return None;
    }
    let mut processes = BTreeMap::new();
    let twice = of.iter().find_map(|ProcessOrigin { host, pid, rank, .. }| {
        let (rank, process) = ((*rank)?, (*host, *pid));
        let other = processes.insert(rank, process).filter(|other| *other != process)?;
        Some(format!("Rank {rank} was processes {} and {pid}: several runs?", other.1))
    });
    if twice.is_some() {
        return twice;
    }
    let runs: BTreeSet<u64> = of.iter().filter_map(|source| source.origin.job).collect();
    if runs.len() > 1 {
        return Some(format!(
            "These are of {} runs, whose counts tell nothing together",
            runs.len()
        ));
    }
    let sizes: BTreeSet<u32> = of.iter().filter_map(|source| source.origin.ranks).collect();
    if let (Some(least), Some(most)) = (sizes.first(), sizes.last())
        && least != most
    {
        return Some(format!("These are of jobs of {least} and of {most} ranks: several runs"));
    }
    let starts = || of.iter().map(|source| source.origin.started_s).filter(|at| *at > 0);
    let (first, last) = (starts().min()?, starts().max()?);
    (last - first > START).then(|| {
        format!("The last of these began {} s after the first: several runs?", last - first)
    })
}

/// Longest time in seconds that the ranks of a job may take to start.
const START: u64 = 30;

fn source(head: &ReportHead) -> ProcessOrigin<'_> {
    let ReportHead { program, host, pid, rank, origin, .. } = head;
    ProcessOrigin { program, host, pid: *pid, rank: *rank, origin }
}

impl Peak {
    /// Raises the peak. Of ranks with equal peaks the lowest is kept, in any order of the calls. An
    /// unknown rank is below all others.
    fn raise(&mut self, elements: u64, rank: Option<u32>) {
        if elements > self.elements || elements == self.elements && elements > 0 && rank < self.rank
        {
            *self = Self { elements, rank };
        }
    }

    /// Returns the higher of two peaks; `self` if they are equal.
    pub(crate) fn highest(self, other: Self) -> Self {
        if other.elements > self.elements { other } else { self }
    }
}

/// Returns the share of one queue's elements that spilled, in per cent.
pub(crate) fn spilled(queue: &QueueCounters) -> f64 {
    percent(queue.spills, queue.inserts)
}

/// Largest number of different remarks that are taken from reports, because a report may contain
/// anything.
const MOST: usize = 8;

/// A note that messages arrived when their receivers polled.
pub(crate) const POLLED: &str = "Messages arrived when their receivers polled (FI_TCAM_ARRIVAL=poll): \
                                 at a NIC, more messages would be unexpected";

/// Returns true if the configuration of a report or a trace says that messages arrived when their
/// receivers polled. Returns false for a generated recording.
pub(crate) fn is_polled(config: &BTreeMap<String, String>, libfabric: &str) -> bool {
    libfabric != NO_LIBFABRIC && config.get("arrival").is_some_and(|arrival| arrival == "poll")
}

/// Collects remarks from reports, and the counts from which further remarks are made.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    /// The different remarks of the reports.
    said: Vec<String>,
    any_source: u64,
    any_tag: u64,
    unclustered: u64,
    /// True if messages arrived when their receivers polled.
    polled: bool,
    /// Devices that had spills.
    devices: BTreeSet<String>,
}

impl Remarks {
    pub(super) fn add(&mut self, report: &Report) {
        for remark in &report.remarks {
            if self.said.len() < MOST && !self.said.contains(remark) {
                self.said.push(remark.clone());
            }
        }
        self.polled |= is_polled(&report.config, &report.libfabric);
        let tagged = &report.tagged;
        self.any_source = total([self.any_source, tagged.broken_promises.any_source]);
        self.any_tag = total([self.any_tag, tagged.broken_promises.any_tag]);
        for queue in [&tagged.prq, &tagged.umq] {
            self.unclustered = total([self.unclustered, queue.unclustered]);
            if let Some(device) = report.config.get("device").filter(|_| queue.spills > 0) {
                self.devices.insert(device.clone());
            }
        }
    }

    /// Returns each remark as a sentence.
    pub(super) fn sentences(self) -> Vec<String> {
        let Self { said: mut remarks, any_source, any_tag, unclustered, polled, devices } = self;
        if polled {
            remarks.push(POLLED.to_owned());
        }
        if any_source > 0 || any_tag > 0 {
            remarks.push(format!(
                "BROKEN PROMISES: {} from any source, {} of any tag, though FI_TCAM_ASSERT \
                 excludes them; they were matched in order",
                count(any_source, "receive"),
                whole(any_tag)
            ));
        }
        if unclustered > 0 {
            let elements = count(unclustered, "element");
            remarks.push(format!("{elements} of sources that no cluster names"));
        }
        let modes = devices.iter().filter_map(|of| Some((of, models::named(of)?.spilling_mode()?)));
        for (device, mode) in modes {
            let mode = mode.name;
            remarks.push(format!(
                "{device} holds senders back and fails where its tables are full; {mode} goes on \
                 and matches on the host: --set device={mode}"
            ));
        }
        remarks
    }
}

/// The sum of all ranks.
#[derive(Debug, Serialize)]
pub(crate) struct Sum<'a> {
    ranks: usize,
    #[serde(flatten)]
    completeness: Completeness,
    /// Number of reports that were written at exit, because the endpoint was never closed.
    written_at_exit: usize,
    /// Reason to assume that the reports are of several runs, if there is one.
    mixed: Option<&'a str>,
    /// Remarks on the host engines.
    remarks: &'a [String],
    libfabric: &'a str,
    /// Facts about the run, from the reports.
    origin: BTreeMap<&'a str, &'a str>,
    elapsed_s: f64,
    immediate_percent: f64,
    promoted_percent: f64,
    in_table_percent: f64,
    spilled_percent: f64,
    prq_high_water_rank: Option<u32>,
    umq_high_water_rank: Option<u32>,
    tagged: &'a ContextCounters,
    msg: &'a ContextCounters,
    channels: &'a BTreeMap<String, ChannelCounters>,
}

impl<'a> From<&'a Summary> for Sum<'a> {
    fn from(sum: &'a Summary) -> Self {
        Self {
            ranks: sum.processes,
            completeness: sum.ranks.completeness(),
            written_at_exit: sum.at_exit,
            mixed: sum.mixed.as_deref(),
            remarks: &sum.remarks,
            libfabric: &sum.libfabric,
            origin: sum.origin.iter().map(|(name, value)| (*name, value.as_str())).collect(),
            elapsed_s: sum.seconds,
            immediate_percent: sum.immediate(),
            promoted_percent: sum.promoted(),
            in_table_percent: sum.in_table(),
            spilled_percent: sum.spilled(),
            prq_high_water_rank: sum.prq_peak.rank,
            umq_high_water_rank: sum.umq_peak.rank,
            tagged: &sum.tagged,
            msg: &sum.msg,
            channels: &sum.channels,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::results::json::is_ours;
    use crate::results::reports::tests::sample;
    use crate::results::{Json, Kind};

    fn config<const N: usize>(values: [(&str, &str); N]) -> BTreeMap<String, String> {
        values.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn of(reports: &[Report]) -> Vec<String> {
        let mut remarks = Remarks::default();
        reports.iter().for_each(|report| remarks.add(report));
        remarks.sentences()
    }

    #[test]
    fn each_remark_occurs_once() {
        let arrival = |arrival| config([("arrival", arrival)]);
        let mut report = Report {
            remarks: vec!["odd clusters".to_owned()],
            config: arrival("nic"),
            ..Report::default()
        };
        report.tagged.broken_promises.any_source = 1;
        report.tagged.umq.unclustered = 2;
        let remarks = of(&[report.clone(), report]);
        assert_eq!(
            remarks,
            [
                "odd clusters",
                "BROKEN PROMISES: 2 receives from any source, 0 of any tag, though FI_TCAM_ASSERT \
                 excludes them; they were matched in order",
                "4 elements of sources that no cluster names",
            ]
        );
        assert_eq!(of(&[Report { config: arrival("nic"), ..Report::default() }]), [""; 0]);
        let report = Report { config: arrival("poll"), ..Report::default() };
        assert_eq!(of(&[report.clone(), report.clone()]), [POLLED]);
        let generated = Report { libfabric: NO_LIBFABRIC.to_owned(), ..report };
        assert_eq!(of(&[generated]), [""; 0]);
    }

    #[test]
    fn ranks_take_turns_if_a_host_has_more_of_them_than_processors() {
        let turns = |hosts: &[&str], processors: &str| {
            let mut shared = Interned::default();
            let heads: Vec<_> = (hosts.iter().zip(0..))
                .map(|(host, rank)| {
                    let mut report = sample(rank, 1, 1);
                    (report.host, report.pid) = ((*host).to_owned(), rank);
                    report.origin.processors = processors.to_owned();
                    shared.head(&report)
                })
                .collect();
            let processes = heads.iter().map(|head| (&*head.host, head.pid)).collect();
            oversubscribed(&heads, &processes)
        };
        assert_eq!(turns(&["a", "a"], "0-1"), None);
        assert_eq!(turns(&["a", "a", "a"], "0-1"), Some((3, 2)));
        assert_eq!(turns(&["a", "b", "a", "b"], "0-1"), None);
        assert_eq!(turns(&["a", "b", "b"], "0"), Some((2, 1)));
    }

    #[test]
    fn the_mode_of_a_device_that_would_do_is_named() {
        let report = |device: &str, posts| Report {
            config: config([("arrival", "nic"), ("device", device)]),
            ..sample(0, 4, posts)
        };
        let remarks = of(&[report("cassini-hardware", 9), report("cassini-hardware", 8)]);
        assert!(remarks.len() == 1 && remarks[0].ends_with("--set device=cassini-hybrid"));
        let fits = [report("cassini-hardware", 4), report("cassini-hybrid", 9), report("alpu", 9)];
        assert_eq!(of(&fits), [""; 0]);
    }

    #[test]
    fn waits_of_all_channels_are_added() {
        let channel = |waited| ChannelCounters { waited, ..ChannelCounters::default() };
        let report = |shm, net| Report {
            channels: BTreeMap::from([("shm".into(), channel(shm)), ("net".into(), channel(net))]),
            ..sample(0, 4, 9)
        };
        assert_eq!(Summary::of(&[report(0, 0)]).unwrap().waits_note(), None);
        assert_eq!(report(1, 2).waited(), 3);
        let note = Summary::of(&[report(1, 2), report(1997, 0)]).unwrap().waits_note().unwrap();
        let expected = "Senders waited for room 2,000 times: the UMQ is a lower bound";
        assert_eq!(note, expected);
        assert!(waits_note(1).unwrap().starts_with("Senders waited for room 1 time"));
    }

    #[test]
    fn a_sum_has_the_names_of_reports() {
        let reports = [sample(0, 10, 25), sample(1, 10, 4)];
        let sum = Summary::of(&reports).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sum.json");
        let json = Json::file(Some(&path)).unwrap();
        json.check().unwrap();
        assert!(!path.exists(), "the check writes no file");
        json.write(Kind::Summary, Sum::from(&sum)).unwrap();
        let value = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(is_ours(&text) && !is_ours(&reports[0].to_json().unwrap()));
        let written = value(&text);
        assert_eq!(written["format"], "tcam-summary");
        assert_eq!((&written["ranks"], &written["tagged"]["arrivals"]), (&json!(2), &json!(29)));
        assert_eq!(written["tagged"]["prq"]["spills"], 15);
        assert_eq!(written["prq_high_water_rank"], 0);
        let report = value(&reports[0].to_json().unwrap());
        let names = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let mut of_report = names(&report["tagged"]);
        of_report.retain(|name| name != "lengths");
        assert_eq!(names(&written["tagged"]), of_report);
        assert_eq!(names(&written["tagged"]["umq"]), names(&report["tagged"]["umq"]));
    }
}
