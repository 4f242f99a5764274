// SPDX-License-Identifier: BSD-2-Clause
//! `tcam show --by thread`: counts the operations of each thread on the tables of its rank, and
//! the depth of their searches.
//!
//! ```text
//! replay every trace of tagged messages in the recorded order
//! count each operation and its search for the thread that did the operation
//! ```

use std::collections::BTreeMap;

use indicatif::ProgressBar;
use nic::trace::Op;
use serde::Serialize;

use super::operation::Search;
use super::{QueueKind, TimeWindow, endpoints, operation};
use crate::error::Error;
use crate::settings::Settings;
use crate::text::{Sheet, count, percent, share, whole};
use crate::traces::{Player, Trace, play};

/// Largest number of lines for threads.
const LINES: usize = 24;
/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// Searches of one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct Searched {
    searches: u64,
    matches: u64,
    /// Entries that searches of a list in the order of age would have compared.
    compared: u64,
    /// Largest number of these entries in one search.
    most_compared: u64,
    /// Elements traversed in the queues of the host engine.
    host_traversed: u64,
}

impl Searched {
    fn add(&mut self, search: Search) {
        self.merge(&Self {
            searches: 1,
            matches: u64::from(search.found),
            compared: search.depth,
            most_compared: search.depth,
            host_traversed: search.traversed,
        });
    }

    fn merge(&mut self, other: &Self) {
        self.searches += other.searches;
        self.matches += other.matches;
        self.compared += other.compared;
        self.most_compared = self.most_compared.max(other.most_compared);
        self.host_traversed += other.host_traversed;
    }

    /// Returns the cells of a table: matches, their share of the searches, entries compared (mean
    /// and most), and mean elements traversed on the host.
    fn cells(&self) -> [String; 5] {
        let mean = |sum: u64| match self.searches {
            0 => "-".to_owned(),
            searches => format!("{:.1}", sum as f64 / searches as f64),
        };
        [
            whole(self.matches),
            share(percent(self.matches, self.searches)),
            mean(self.compared),
            whole(self.most_compared),
            mean(self.host_traversed),
        ]
    }
}

/// Operations of a thread, and their searches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
struct ThreadCounts {
    /// Receives that were posted.
    posts: u64,
    /// Receives that were held back before they were posted.
    held: u64,
    /// Messages that arrived.
    arrivals: u64,
    /// Probes of unexpected messages, including those that take one.
    probes: u64,
    cancels: u64,
    /// Unexpected messages that were dropped.
    drops: u64,
    /// Messages that were sent, if these are recorded.
    sends: u64,
    prq: Searched,
    umq: Searched,
}

impl ThreadCounts {
    fn count(&mut self, op: &Op) {
        match op {
            Op::Post(_) | Op::PostAnyway(_) => self.posts += 1,
            Op::Held(_) => self.held += 1,
            Op::Arrive(_) => self.arrivals += 1,
            Op::Peek(_) | Op::Claim(_) | Op::Discard(_) => self.probes += 1,
            Op::Cancel(_) => self.cancels += 1,
            Op::Drop(_) => self.drops += 1,
            Op::Send(_) => self.sends += 1,
            Op::Processes(_) | Op::Stop(_) => {}
        }
    }

    fn merge(&mut self, other: &Self) {
        self.posts += other.posts;
        self.held += other.held;
        self.arrivals += other.arrivals;
        self.probes += other.probes;
        self.cancels += other.cancels;
        self.drops += other.drops;
        self.sends += other.sends;
        self.prq.merge(&other.prq);
        self.umq.merge(&other.umq);
    }

    fn operations(&self) -> u64 {
        let Self { posts, held, arrivals, probes, cancels, drops, sends, .. } = self;
        posts + held + arrivals + probes + cancels + drops + sends
    }
}

/// A thread of a rank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Thread {
    rank: Option<u32>,
    #[serde(skip)]
    host: String,
    pid: u32,
    thread: u32,
    /// True for a thread of the provider.
    device_thread: bool,
    #[serde(flatten)]
    counts: ThreadCounts,
}

impl Thread {
    fn name(&self) -> String {
        let of = match self.rank {
            Some(rank) => format!("rank {rank}"),
            None => format!("process {}", self.pid),
        };
        let device = if self.device_thread { " (device)" } else { "" };
        format!("{of}, thread {}{device}", self.thread)
    }
}

/// The JSON of `--by thread`.
#[derive(Debug, Serialize)]
pub(crate) struct Threads {
    by: &'static str,
    threads: Vec<Thread>,
    pub(crate) readings: Vec<String>,
}

/// Operations by number of the thread. The flag is true for a thread of the provider.
type CountsByThread = BTreeMap<u32, (bool, ThreadCounts)>;

impl Threads {
    /// Counts the operations in traces within a window. Fails for generated traces, which contain
    /// no threads.
    pub(crate) fn of(
        traces: &[Trace],
        window: TimeWindow,
        bar: &ProgressBar,
    ) -> Result<Self, Error> {
        let tagged = endpoints::tagged(traces);
        let by_trace = play::each(&tagged, bar, |trace, bar| play(trace, window, bar))?;
        // A thread has the same number in all traces of its process.
        let mut threads: BTreeMap<_, Thread> = BTreeMap::new();
        for (trace, by_thread) in tagged.iter().zip(by_trace) {
            let (host, pid, rank) = (&trace.header.host, trace.header.pid, trace.header.rank);
            for (thread, (device_thread, counts)) in by_thread {
                let none = || Thread {
                    rank,
                    host: host.clone(),
                    pid,
                    thread,
                    device_thread,
                    counts: ThreadCounts::default(),
                };
                let key = (rank.is_none(), rank, host.clone(), pid, thread);
                threads.entry(key).or_insert_with(none).counts.merge(&counts);
            }
        }
        let threads: Vec<_> = threads.into_values().collect();
        let readings = readings(&threads);
        Ok(Self { by: "thread", threads, readings })
    }

    /// Returns the tables for the terminal.
    pub(crate) fn sheets(&self) -> Vec<Sheet> {
        let (shown, others) = self.shown();
        let mut all = ThreadCounts::default();
        self.threads.iter().for_each(|thread| all.merge(&thread.counts));
        let mut rows: Vec<_> = shown.iter().map(|thread| (thread.name(), thread.counts)).collect();
        if let Some((count, counts)) = others {
            rows.push((format!("{} others", whole(count)), counts));
        }
        rows.push(("all".to_owned(), all));
        let sends = all.sends > 0;
        let mut posts = Sheet::new(
            "Receives by thread, and what they found in the UMQ",
            [
                "thread",
                "receives",
                "matched",
                "share",
                "compared, mean",
                "most",
                "on host, mean",
                "probes",
                "cancels",
            ],
        );
        let mut arrivals = Sheet::new(
            "Messages by thread, and what they found in the PRQ",
            ["thread", "messages", "matched", "share", "compared, mean", "most", "on host, mean"],
        );
        arrivals.header.extend(sends.then(|| "sent".to_owned()));
        for (name, counts) in rows {
            let of_umq = [name.clone(), whole(counts.posts)].into_iter().chain(counts.umq.cells());
            posts.row(of_umq.chain([counts.probes, counts.cancels].map(whole)));
            let of_prq = [name, whole(counts.arrivals)].into_iter().chain(counts.prq.cells());
            arrivals.row(of_prq.chain(sends.then(|| whole(counts.sends))));
        }
        vec![posts, arrivals]
    }

    /// Returns the [`LINES`] threads with the most operations, in the order of ranks and threads.
    /// Also returns the number and the sum of the other threads, or `None` if there are none. A
    /// single other thread is among the first, because its line takes as much room as the sum.
    fn shown(&self) -> (Vec<&Thread>, Option<(u64, ThreadCounts)>) {
        let mut order: Vec<usize> = (0..self.threads.len()).collect();
        order.sort_by_key(|&at| std::cmp::Reverse(self.threads[at].counts.operations()));
        let most = if order.len() == LINES + 1 { LINES + 1 } else { LINES };
        let rest = order.split_off(order.len().min(most));
        order.sort_unstable();
        let mut others = ThreadCounts::default();
        rest.iter().for_each(|&at| others.merge(&self.threads[at].counts));
        let others = (!rest.is_empty()).then_some((rest.len() as u64, others));
        (order.into_iter().map(|at| &self.threads[at]).collect(), others)
    }
}

/// Returns the results as sentences.
fn readings(threads: &[Thread]) -> Vec<String> {
    let mut processes: BTreeMap<(Option<u32>, &str, u32), u64> = BTreeMap::new();
    for thread in threads {
        *processes.entry((thread.rank, &thread.host, thread.pid)).or_default() += 1;
    }
    let most = processes.values().max().copied().unwrap_or(0);
    if most < 2 {
        return vec!["No process used its tables with more than one thread".to_owned()];
    }
    let several = processes.values().filter(|&&threads| threads > 1).count();
    let mut readings = vec![format!(
        "{} of {} used their tables with several threads, at most {}",
        whole(several as u64),
        count_of_processes(processes.len() as u64),
        whole(most)
    )];
    let of = |of: fn(&ThreadCounts) -> u64, device: bool| -> u64 {
        let own = threads.iter().filter(|thread| !device || thread.device_thread);
        own.map(|thread| of(&thread.counts)).sum()
    };
    if threads.iter().any(|thread| thread.device_thread) {
        let arrivals = |counts: &ThreadCounts| counts.arrivals;
        readings.push(format!(
            "Device threads of the provider handled {} of {}",
            whole(of(arrivals, true)),
            count(of(arrivals, false), "message")
        ));
    }
    readings
}

fn count_of_processes(number: u64) -> String {
    format!("{} process{}", whole(number), if number == 1 { "" } else { "es" })
}

/// Counts the operations of each thread of a trace within a window.
fn play(trace: &Trace, window: TimeWindow, bar: &ProgressBar) -> Result<CountsByThread, Error> {
    if trace.is_generated() {
        let why =
            "it was generated, not recorded, so it does not contain the threads of its operations";
        return Err(Error::file(&trace.path, why));
    }
    let mut player = Player::new(trace, &Settings::default())?;
    let since = trace.since_ns();
    let mut by_thread = CountsByThread::new();
    while let Some(timed) = player.next()? {
        let op = &timed.1;
        let at = (since + timed.0) as f64 / SECOND;
        if at > window.to {
            break;
        }
        let thread = player.thread();
        let (_, search) = operation::step(&mut player, &timed)?;
        if at >= window.from && !matches!(op, Op::Processes(_) | Op::Stop(_)) {
            let (_, counts) = by_thread
                .entry(thread.number)
                .or_insert((thread.is_device, ThreadCounts::default()));
            counts.count(op);
            match search {
                Some(search) if search.queue == QueueKind::Prq => counts.prq.add(search),
                Some(search) => counts.umq.add(search),
                None => {}
            }
        }
        player.tick(bar);
    }
    Ok(by_thread)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use matching::{Key, Source};
    use nic::message::Envelope;
    use nic::trace::{self, Encoder, Header, Posted, put_thread, put_time};

    use super::*;
    use crate::experiment::{Experiment, Inputs, Keep};

    /// The turn of a thread: its number, true for a thread of the provider, and its operation.
    type Turn<'a> = (u32, bool, &'a [Op]);

    /// Writes a trace of a rank, with one operation every second.
    fn put(path: &Path, rank: u32, turns: &[Turn<'_>]) {
        let (context, layout) = ("tagged".to_owned(), "mpich".to_owned());
        // Traces of a rank are of endpoints of one process.
        let (pid, address) = (100 + rank, path.display().to_string());
        let header =
            Header { context, layout, rank: Some(rank), pid, address, ..Header::default() };
        let (mut bytes, mut encoder) = (header.to_bytes(), Encoder::default());
        let mut seconds = 0;
        for &(number, is_device, ops) in turns {
            let thread = trace::Thread { number, is_device, cpu_ns: None };
            put_thread(&mut bytes, thread).unwrap();
            for op in ops {
                put_time(&mut bytes, seconds * 1_000_000_000).unwrap();
                encoder.op(&mut bytes, op).unwrap();
                seconds += 1;
            }
        }
        std::fs::write(path, bytes).unwrap();
    }

    fn key(bits: u64) -> Key {
        Key { bits, ignore: 0, source: Source::ANY }
    }

    fn post(bits: u64) -> Op {
        Op::Post(Posted { key: key(bits), len: 32, multi: None, non_contiguous: false })
    }

    fn arrive(bits: u64) -> Op {
        Op::Arrive(Envelope { source: 5, bits, len: 8 })
    }

    fn of(directory: &Path, window: TimeWindow) -> Result<Threads, Error> {
        let sources = Inputs { names: vec![directory.to_owned()], ..Inputs::default() };
        let experiment = Experiment::read(&sources, Keep::Lengths).unwrap();
        Threads::of(&experiment.traces, window, &ProgressBar::hidden())
    }

    #[test]
    fn a_thread_has_its_operations_in_all_traces_of_its_process() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let turns: [Turn<'_>; 4] = [
            (0, false, &[post(1), post(2)]),
            (1, true, &[arrive(2), arrive(3), arrive(4)]),
            (0, false, &[post(4), Op::Peek(key(3)), Op::Cancel(0)]),
            (2, false, &[Op::Claim(key(9)), Op::Discard(key(3)), arrive(7)]),
        ];
        put(&at("0.trace"), 0, &turns);
        put(&at("1.trace"), 0, &[(2, false, &[post(5)])]);
        put(&at("2.trace"), 1, &[(0, false, &[arrive(5)])]);
        let threads = of(directory.path(), TimeWindow::ALL).unwrap();
        let searched = |[searches, matches, compared, most_compared]: [u64; 4]| Searched {
            searches,
            matches,
            compared,
            most_compared,
            host_traversed: 0,
        };
        let thread = |rank: u32, thread, device_thread, counts| Thread {
            rank: Some(rank),
            host: String::new(),
            pid: 100 + rank,
            thread,
            device_thread,
            counts,
        };
        // The last post finds the second of two messages. The claim finds nothing, and is not
        // counted as a search.
        let first = ThreadCounts {
            posts: 3,
            probes: 1,
            cancels: 1,
            umq: searched([3, 1, 2, 2]),
            ..ThreadCounts::default()
        };
        let device =
            ThreadCounts { arrivals: 3, prq: searched([3, 1, 4, 2]), ..ThreadCounts::default() };
        let third = ThreadCounts {
            posts: 1,
            arrivals: 1,
            probes: 2,
            umq: searched([2, 1, 1, 1]),
            prq: searched([1, 0, 0, 0]),
            ..ThreadCounts::default()
        };
        let other =
            ThreadCounts { arrivals: 1, prq: searched([1, 0, 0, 0]), ..ThreadCounts::default() };
        assert_eq!(
            threads.threads,
            [
                thread(0, 0, false, first),
                thread(0, 1, true, device),
                thread(0, 2, false, third),
                thread(1, 0, false, other)
            ]
        );
        assert_eq!(
            threads.readings,
            [
                "1 of 2 processes used their tables with several threads, at most 3",
                "Device threads of the provider handled 3 of 5 messages"
            ]
        );
        let [posts, arrivals] = &threads.sheets()[..] else { panic!("two sheets") };
        let row = ["rank 0, thread 1 (device)", "3", "1", "33.3 %", "1.3", "2", "0.0"];
        assert_eq!(arrivals.rows[1], row);
        assert_eq!(arrivals.rows.last().unwrap()[..3], ["all", "5", "1"]);
        assert_eq!(posts.rows[0][..3], ["rank 0, thread 0", "3", "1"]);
        // Only the turn of the device thread is in the window.
        let part = of(directory.path(), TimeWindow { from: 2.0, to: 4.0 }).unwrap();
        assert_eq!(part.threads, [thread(0, 1, true, device)]);
        assert!(part.readings[0].starts_with("No process used"), "{:?}", part.readings);
    }

    #[test]
    fn processes_of_two_hosts_with_one_pid_are_two() {
        let thread = |host: &str, thread| Thread {
            rank: None,
            host: host.to_owned(),
            pid: 7,
            thread,
            device_thread: false,
            counts: ThreadCounts::default(),
        };
        assert_eq!(
            readings(&[thread("a", 0), thread("b", 0)]),
            ["No process used its tables with more than one thread"]
        );
        assert_eq!(
            readings(&[thread("a", 0), thread("a", 1), thread("b", 0)]),
            ["1 of 2 processes used their tables with several threads, at most 2"]
        );
    }

    #[test]
    fn the_busiest_threads_are_shown_and_the_rest_is_summed() {
        let directory = tempfile::tempdir().unwrap();
        let sheet = |count: usize| {
            let lists: Vec<Vec<Op>> = (0..count).map(|at| vec![arrive(1); 1 + at % 9]).collect();
            let turns: Vec<Turn<'_>> =
                (0..).zip(&lists).map(|(number, ops)| (number, false, &ops[..])).collect();
            put(&directory.path().join("0.trace"), 0, &turns);
            of(directory.path(), TimeWindow::ALL).unwrap().sheets().remove(1)
        };
        let rows = sheet(LINES + 1).rows;
        assert_eq!((rows.len(), rows[LINES][0].as_str()), (LINES + 2, "rank 0, thread 24"));
        let sheet = sheet(LINES + 3);
        assert_eq!(sheet.rows.len(), LINES + 2);
        // Three threads have one message each.
        assert_eq!(sheet.rows[LINES][..2], ["3 others", "3"]);
        assert_eq!(sheet.rows[0][0], "rank 0, thread 1");
    }

    #[test]
    fn a_generated_trace_has_no_threads() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("generated");
        crate::commands::workload::tests::write_to(&out);
        let error = of(&out, TimeWindow::ALL).unwrap_err().to_string();
        assert!(error.contains("it was generated"), "{error}");
    }
}
