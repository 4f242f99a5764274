// SPDX-License-Identifier: BSD-2-Clause
//! Tail queues: the prototype of Dosanjh, Grant, Schonbein, Bridges, CCPE 2019 (section 4.1.1,
//! Figures 3 to 7), and its queue statistics (Table 2) beside generated streams.
//!
//! ```text
//! as often as there are seeds:
//!     for each storage and lock, both lists or receives only, each number of threads and length:
//!         a turn of one lock, of tail queues, of binned ones; again if others disturbed it
//!         ratio = matches a second / those of the one lock in the same round
//! for each application of Table 2, for each seed:
//!     the stream of rank 0 -> a list -> longest queues, deepest searches
//! ```
//!
//! A turn in which a thread waited for a core, though there is one for each, is made again: somebody
//! else had it. A turn of more threads than cores takes four times as long: whoever waits for a
//! lock has to wait for a core, too. Rounds go through all rows, as others use a machine for seconds.

pub(super) mod page;
mod turn;
mod verdict;

use std::thread;
use std::time::Duration;

use matching::tail_queues::{Binning, Locks, Mcs, OneLock, ParkingLot, TailQueues};
use matching::{EngineConfig, HostEngine, Kernel, Linked, Packed, Queue, Queues, Scanner};
use strum::{IntoStaticStr, VariantArray};

use super::case::{Case, Cases};
use super::colpnp::{Effort, seeds};
use super::measure::{self, Contender, Stream};
use crate::error::Error;
use crate::launch::signals::Signals;
use crate::text::progress;
use crate::workload::pattern::Pattern;
use turn::{Standing, Turn, turn};

/// Part of a turn in which a thread waits for a core that disturbs it.
const DISTURBED: f64 = 0.03;
/// Turns of a row that are made again at most.
const AGAIN: u32 = 1000;
/// How much longer a turn of more threads than cores is.
const OVERSUBSCRIBED: u32 = 4;

/// Threads of the figures.
pub(super) const THREADS: [u32; 4] = [1, 2, 4, 8];
/// Lengths of the queues are 1, 2, 4 and so on up to two to the power of this one.
const LONGEST: u32 = 12;
/// Processes of Table 2.
pub(super) const RANKS: u32 = 4096;
/// The applications of Table 2, in its order.
pub(super) const APPLICATIONS: [Pattern; 3] = [Pattern::Minimd, Pattern::Amg, Pattern::Fds];

/// The figure of what is said of the machine, and of how much was measured there.
pub(super) const MACHINE: &str = "machine";

/// Where elements wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Lists {
    /// In both (Figures 3 to 6).
    Both,
    /// In the PRQ only (Figure 7).
    Prq,
}

/// What protects the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub(super) enum Held {
    Mcs,
    ParkingLot,
}

/// The paper's own storage and locks.
pub(super) const PAPERS: (Queue, Held) = (Queue::Linked, Held::Mcs);

/// What takes turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray)]
pub(super) enum Which {
    OneLock,
    TailQueues,
    Binned,
}

/// A row of the prototype.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) lists: Lists,
    pub(super) storage: Queue,
    pub(super) lock: Held,
    pub(super) threads: u32,
    pub(super) length: u32,
}

/// Lengths of the queues.
pub(super) fn lengths() -> impl Iterator<Item = u32> + Clone {
    (0..=LONGEST).map(|power| 1 << power)
}

impl Lists {
    /// The figure of its numbers.
    pub(super) const fn figure(self) -> &'static str {
        match self {
            Self::Both => "3",
            Self::Prq => "7",
        }
    }
}

impl Held {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Mcs => Mcs::NAME,
            Self::ParkingLot => ParkingLot::NAME,
        }
    }
}

impl Which {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::OneLock => "one lock",
            Self::TailQueues => "tail queues",
            Self::Binned => "binned tail queues",
        }
    }
}

impl Row {
    /// What `--only` chooses it by.
    pub(super) fn name(self) -> String {
        let Self { lists, storage, lock, threads, length } = self;
        let lists: &str = lists.into();
        format!("{lists},{},{},{threads},{length}", storage.name(), lock.name())
    }

    fn standing(self) -> Standing {
        let messages = if self.lists == Lists::Both { self.length } else { 0 };
        Standing { receives: self.length, messages }
    }

    /// One turn.
    fn turn(self, which: Which, time: Duration, stops: &mut impl FnMut() -> bool) -> Turn {
        let packed = || {
            let scanner = Scanner::new(Kernel::best()).expect("this processor has its best kernel");
            Packed::new(&EngineConfig::default(), scanner)
        };
        match (self.storage, self.lock) {
            (Queue::Linked, Held::Mcs) => self.on::<_, Mcs>(which, time, Linked::default, stops),
            (Queue::Linked, Held::ParkingLot) => {
                self.on::<_, ParkingLot>(which, time, Linked::default, stops)
            }
            (Queue::Packed, Held::Mcs) => self.on::<_, Mcs>(which, time, packed, stops),
            (Queue::Packed, Held::ParkingLot) => {
                self.on::<_, ParkingLot>(which, time, packed, stops)
            }
        }
    }

    fn on<Q: Queues + Send, L: Locks>(
        self,
        which: Which,
        time: Duration,
        make: impl Fn() -> Q,
        stops: &mut impl FnMut() -> bool,
    ) -> Turn {
        let (standing, threads) = (self.standing(), self.threads);
        let tails = |binning| TailQueues::<Q, L>::new(binning, &make);
        match which {
            Which::OneLock => turn(OneLock::<Q, L>::new(&make), standing, threads, time, stops),
            Which::TailQueues => turn(tails(Binning::OFF), standing, threads, time, stops),
            Which::Binned => turn(tails(Binning::PAPER), standing, threads, time, stops),
        }
    }
}

/// Every row.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = Vec::new();
    // The paper's first.
    for storage in [Queue::Linked, Queue::Packed] {
        for &lock in Held::VARIANTS {
            for &lists in Lists::VARIANTS {
                for threads in THREADS {
                    let row = |length| Row { lists, storage, lock, threads, length };
                    rows.extend(lengths().map(row));
                }
            }
        }
    }
    rows
}

/// What an application of Table 2 is called in the numbers.
pub(super) fn application(pattern: Pattern) -> String {
    format!("table-2,{},{RANKS}", pattern.name())
}

/// What is measured: all, or what has this text in its name.
fn chosen(only: Option<&str>) -> Result<(Vec<Row>, Vec<Pattern>), Error> {
    // A comma at the end tells a length from the beginning of another one.
    let is = |name: String| only.is_none_or(|only| format!("{name},").contains(only));
    let rows: Vec<_> = rows().into_iter().filter(|row| is(row.name())).collect();
    let applications: Vec<_> =
        APPLICATIONS.into_iter().filter(|&pattern| is(application(pattern))).collect();
    match only {
        Some(only) if rows.is_empty() && applications.is_empty() => {
            Err(Error::NoRow { only: only.to_owned() })
        }
        _ => Ok((rows, applications)),
    }
}

/// Measures what is chosen, up to a signal.
pub(super) fn measure(
    effort: Effort,
    only: Option<&str>,
    signals: &mut Signals,
) -> Result<Cases, Error> {
    let (rows, applications) = chosen(only)?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut cases = Cases::default();
    let processor = processor();
    let mut put = |metric, value| cases.put([MACHINE, &processor, "", metric], None, vec![value]);
    put("cores", cores as f64);
    put("ms", effort.time.as_secs_f64() * 1e3);
    put("turns", f64::from(effort.seeds));
    let rounds = if rows.is_empty() { 0 } else { effort.seeds as usize };
    let steps = (rows.len() * rounds + applications.len()) as u64;
    let bar = progress::bar(steps, "{bar:30} {percent} %, {elapsed} passed, {eta} left, {msg}");
    let mut measured: Vec<_> = rows.into_iter().map(Measured::new).collect();
    for round in 1..=rounds {
        progress::step(&format!("threads, {round} of {rounds}"));
        for of in &mut measured {
            bar.set_message(of.row.name());
            of.round(effort.time, cores, signals)?;
            bar.inc(1);
        }
    }
    measured.into_iter().for_each(|of| of.put(&mut cases));
    for pattern in applications {
        progress::step(&application(pattern));
        bar.set_message(application(pattern));
        put_statistics(&mut cases, pattern, effort, signals)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(cases)
}

/// Model of the processor, as the kernel has it.
fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        line.split_once(": ").map(|(_, value)| value.to_owned())
    };
    match (field("model name"), field("cpu family")) {
        (Some(model), Some(family)) => format!("{model}, family {family}"),
        (Some(model), None) => model,
        _ => format!("{} processor", std::env::consts::ARCH),
    }
}

/// What was measured of a row.
struct Measured {
    row: Row,
    /// Million matches a second, by contender and round.
    rates: [Vec<f64>; Which::VARIANTS.len()],
    /// Turns that were made again.
    again: u32,
}

impl Measured {
    fn new(row: Row) -> Self {
        Self { row, rates: Default::default(), again: 0 }
    }

    /// A turn of each contender, up to a signal.
    fn round(&mut self, time: Duration, cores: usize, signals: &mut Signals) -> Result<(), Error> {
        let crowded = self.row.threads as usize > cores;
        let time = time * if crowded { OVERSUBSCRIBED } else { 1 };
        for (rates, &which) in self.rates.iter_mut().zip(Which::VARIANTS) {
            loop {
                let stops = &mut || signals.caught().is_some();
                let Turn { rate, waited } = self.row.turn(which, time, stops);
                if signals.caught().is_some() {
                    return Err(Error::Interrupted);
                }
                if crowded || waited < DISTURBED || self.again == AGAIN {
                    rates.push(rate);
                    break;
                }
                self.again += 1;
            }
        }
        Ok(())
    }

    /// Rates, and ratios to the one lock.
    fn put(self, cases: &mut Cases) {
        let Self { row, rates, again } = self;
        let (figure, name) = (row.lists.figure(), row.name());
        let one_lock = rates[0].clone();
        for (rates, &which) in rates.into_iter().zip(Which::VARIANTS) {
            let at = |metric| [figure, name.as_str(), which.name(), metric];
            if which != Which::OneLock {
                let ratios = rates.iter().zip(&one_lock).map(|(rate, one)| rate / one).collect();
                cases.put(at("ratio"), paper(row, which), ratios);
            }
            cases.put(at("M/s"), None, rates);
        }
        if again > 0 {
            let metric = if again == AGAIN { "disturbed" } else { "again" };
            cases.put([figure, &name, "", metric], None, vec![f64::from(again)]);
        }
    }
}

/// What the paper's text has for two threads, on its own lists and locks.
pub(super) fn paper(row: Row, which: Which) -> Option<f64> {
    let Row { lists, storage, lock, threads, length } = row;
    let is_papers = (lists, storage, lock, threads, which)
        == (Lists::Both, Queue::Linked, Held::Mcs, 2, Which::TailQueues);
    match length {
        1 if is_papers => Some(1.20),
        32 if is_papers => Some(1.95),
        _ => None,
    }
}

/// What is said of the machine.
pub(super) fn machine(cases: &Cases, metric: &str) -> Option<f64> {
    cases.of(MACHINE).find(|case| case.metric == metric).map(|case| case.ours)
}

/// Whether there are more threads than cores.
pub(super) fn is_crowded(cases: &Cases, threads: u32) -> bool {
    machine(cases, "cores").is_some_and(|cores| f64::from(threads) > cores)
}

/// A number of a row.
pub(super) fn get<'a>(cases: &'a Cases, row: Row, which: Which, metric: &str) -> Option<&'a Case> {
    cases.get([row.lists.figure(), &row.name(), which.name(), metric])
}

/// The statistics of PRQ and UMQ in Table 2: longest queue, deepest search.
pub(super) const fn table_2(pattern: Pattern) -> Option<[[f64; 2]; 2]> {
    match pattern {
        Pattern::Minimd => Some([[1.0, 1.0], [11.0, 8.0]]),
        Pattern::Amg => Some([[543.0, 543.0], [418.0, 260.0]]),
        Pattern::Fds => Some([[24.0, 24.0], [8147.0, 8073.0]]),
        _ => None,
    }
}

/// Queues of a generated stream, by seeds.
fn put_statistics(
    cases: &mut Cases,
    pattern: Pattern,
    effort: Effort,
    signals: &mut Signals,
) -> Result<(), Error> {
    // Both storages traverse a list alike, and this one is quick with thousands.
    let list = Contender::new(HostEngine::List, Queue::Packed, 1);
    let mut counted = Vec::new();
    for seed in seeds(effort) {
        if signals.caught().is_some() {
            return Err(Error::Interrupted);
        }
        counted.push(measure::extremes(&Stream::new(pattern, RANKS, seed), &list)?);
    }
    let name = application(pattern);
    let said = table_2(pattern);
    for (at, queue) in ["PRQ", "UMQ"].into_iter().enumerate() {
        for (which, metric) in ["longest", "deepest"].into_iter().enumerate() {
            let ours = counted.iter().map(|counted| counted[at][which] as f64).collect();
            let paper = said.map(|said| said[at][which]);
            cases.put(["T2", &name, queue, metric], paper, ours);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_a_part_of_their_name() {
        let of = |only| {
            let (rows, applications) = chosen(Some(only)).unwrap();
            (rows.len(), applications.len())
        };
        assert_eq!(of("both,linked,mcs,2,1,"), (1, 0));
        assert_eq!(of("linked,mcs,2,"), (2 * 13, 0));
        assert_eq!(of("table-2"), (0, 3));
        let (rows, applications) = chosen(None).unwrap();
        assert_eq!((rows.len(), applications.len()), (2 * 2 * 2 * 4 * 13, 3));
        assert!(matches!(chosen(Some("both,linked,mcs,3")), Err(Error::NoRow { .. })));
    }

    #[test]
    fn a_row_has_rates_and_ratios_of_its_turns() {
        let mut signals = Signals::catch().unwrap();
        let mut cases = Cases::default();
        let mut rows = rows().into_iter();
        let row = rows.find(|row| row.threads == 2 && row.length == 32).unwrap();
        // As if there were one core: nothing is made again.
        let mut measured = Measured::new(row);
        for _ in 0..2 {
            measured.round(Duration::from_millis(1), 1, &mut signals).unwrap();
        }
        measured.put(&mut cases);
        let get = |which: Which, metric| cases.get(["3", &row.name(), which.name(), metric]);
        let rate = |which| get(which, "M/s").map(|case| (case.runs, case.lowest > 0.0));
        assert!(Which::VARIANTS.iter().all(|&which| rate(which) == Some((2, true))));
        let ratio = get(Which::TailQueues, "ratio").unwrap();
        assert_eq!((ratio.paper, ratio.runs), (Some(1.95), 2));
        assert_eq!(get(Which::OneLock, "ratio"), None);
    }

    #[test]
    fn the_statistics_of_streams_are_those_of_a_list() {
        let effort = Effort { time: Duration::from_millis(1), seed: 1, seeds: 2 };
        let mut signals = Signals::catch().unwrap();
        let mut cases = Cases::default();
        for pattern in [Pattern::Minimd, Pattern::Amg] {
            put_statistics(&mut cases, pattern, effort, &mut signals).unwrap();
        }
        let of = |pattern, queue, metric| {
            cases.get(["T2", &application(pattern), queue, metric]).map(|case| case.ours)
        };
        assert_eq!(of(Pattern::Minimd, "PRQ", "longest"), Some(1.0));
        assert_eq!(of(Pattern::Minimd, "PRQ", "deepest"), Some(1.0));
        assert_eq!(of(Pattern::Amg, "UMQ", "longest"), Some(418.0));
        // Of messages that come in another order than their receives.
        assert!(of(Pattern::Amg, "PRQ", "deepest").unwrap() > 500.0);
    }
}
