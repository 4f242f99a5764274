// SPDX-License-Identifier: BSD-2-Clause
//! Counts the elements of the queues by class, at the moment when a queue is longest and over the
//! run. A class is the set of elements with the same decoded match bits and the same peer.
//!
//! ```text
//! replay every trace; count each element that enters a queue by its class
//! if the queue is longer than ever before: copy the counts of all classes before the next element
//! leaves
//! ```

use std::sync::Arc;

use indicatif::ProgressBar;
use matching::{DecodedBits, Key, Source, TagLayout};
use nic::replay::Change;
use rayon::prelude::*;
use rustc_hash::FxHashMap as HashMap;

use super::endpoints::{Endpoints, tagged};
use super::rank::QueueKind;
use super::sites::CallSites;
use crate::error::Error;
use crate::settings::Settings;
use crate::traces::{Player, Trace, play};

/// Nanoseconds in a second.
const SECOND: f64 = 1e9;

/// The properties by which elements are counted. A class is the set of elements that have them in
/// common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ElementClass {
    pub(crate) decoded: DecodedBits,
    pub(crate) peer: Peer,
    /// Place in the program, see [`CallSites`]; 0 if it is unknown.
    pub(crate) place: u32,
}

/// The sender of a message, or the source that a receive waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Peer {
    Rank(u32),
    /// A rank within a communicator other than `MPI_COMM_WORLD`. Its rank in the job is unknown.
    Member(u32),
    /// The provider's number of a peer whose rank is unknown.
    Number(u32),
    Any,
}

/// Part of a run, in seconds since it began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct TimeWindow {
    pub(crate) from: f64,
    pub(crate) to: f64,
}

impl TimeWindow {
    pub(crate) const ALL: Self = Self { from: 0.0, to: f64::INFINITY };
}

/// Elements of a queue by class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filled {
    /// Largest number of elements at once.
    pub(crate) mark: u64,
    /// Time when the queue reached `mark`, in seconds since the run began.
    pub(crate) at: f64,
    /// Elements at that moment, by class number.
    pub(crate) at_mark: Vec<u64>,
    /// Elements that entered the queue in the window, by class number.
    pub(crate) added: Vec<u64>,
    /// Number of elements that entered the queue in the whole replay.
    entered: u64,
    /// Elements in the queue, by class number.
    now: Vec<u64>,
    length: u64,
    /// True if the queue is at its longest, and `at_mark` does not contain its counts yet.
    counts_pending: bool,
    /// Largest length since the last sample, if samples are taken.
    since_sample: Option<SinceSample>,
    /// Class number of each element, by number of the element.
    elements: HashMap<u64, u32>,
}

/// Length and counts at the moment since the last sample when a queue was longest.
#[derive(Clone, Debug, Default)]
struct SinceSample {
    most: u64,
    counts_pending: bool,
    counts: Vec<u64>,
}

/// Elements of the queues of a rank, by class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Makeup {
    pub(crate) rank: Option<u32>,
    pub(crate) classes: Vec<ElementClass>,
    /// Time of the first element of each class, in seconds since the run began.
    pub(crate) first: Vec<f64>,
    pub(crate) queues: [Filled; 2],
    /// The places of all ranks.
    pub(crate) sites: Arc<CallSites>,
    /// Number of operations that were replayed.
    pub(crate) operations: u64,
    /// Times of the first and the last operation, in seconds since the run began.
    pub(crate) span: [f64; 2],
}

impl Makeup {
    pub(crate) fn of(&self, queue: QueueKind) -> &Filled {
        &self.queues[queue as usize]
    }
}

impl Filled {
    fn enter(&mut self, number: u64, class: u32, at: f64) {
        let class_at = class as usize;
        for counts in [&mut self.now, &mut self.added] {
            counts.resize(counts.len().max(class_at + 1), 0);
            counts[class_at] += 1;
        }
        self.elements.insert(number, class);
        self.entered += 1;
        self.length += 1;
        if self.length > self.mark {
            (self.mark, self.at, self.counts_pending) = (self.length, at, true);
        }
        if let Some(since_sample) =
            self.since_sample.as_mut().filter(|since_sample| self.length > since_sample.most)
        {
            (since_sample.most, since_sample.counts_pending) = (self.length, true);
        }
    }

    fn leave(&mut self, number: u64) {
        let Some(class) = self.elements.remove(&number) else { return };
        self.settle();
        self.now[class as usize] -= 1;
        self.length -= 1;
    }

    /// Copies the counts of the present elements, if the queue is at its longest. This must precede
    /// the removal of an element.
    fn settle(&mut self) {
        if std::mem::take(&mut self.counts_pending) {
            self.at_mark.clone_from(&self.now);
        }
        if let Some(since_sample) =
            self.since_sample.as_mut().filter(|since_sample| since_sample.counts_pending)
        {
            since_sample.counts_pending = false;
            since_sample.counts.clone_from(&self.now);
        }
    }

    /// Returns the counts at the moment since the last sample when the queue was longest. The first
    /// call begins the samples and returns no counts.
    fn sample(&mut self) -> Vec<u64> {
        self.settle();
        let next = SinceSample { most: self.length, counts_pending: true, counts: Vec::new() };
        self.since_sample.replace(next).unwrap_or_default().counts
    }

    /// Begins a window: the present elements stay, but earlier lengths and additions no longer
    /// count.
    fn begin(&mut self, at: f64) {
        (self.mark, self.at, self.counts_pending) = (self.length, at, true);
        self.added.clear();
    }
}

/// Assigns numbers to the classes of a trace.
struct Classes<'a> {
    layout: TagLayout,
    host: &'a str,
    ranks: &'a Endpoints,
    numbers: HashMap<ElementClass, u32>,
    /// Class numbers by key and place, because decoding a key takes longer than a lookup.
    known: HashMap<(u64, u64, Source, u32), u32>,
}

impl Classes<'_> {
    /// Returns the class number of a key and a place. Adds a new class to `makeup`.
    fn number(
        &mut self,
        key: Key,
        place: u32,
        player: &Player<'_>,
        makeup: &mut Vec<ElementClass>,
    ) -> u32 {
        let known = (key.bits, key.ignore, key.source, place);
        if let Some(&number) = self.known.get(&known) {
            return number;
        }
        let decoded = self.layout.decode(&key);
        let peer = match (key.source.get(), decoded.source) {
            (Some(number), _) => {
                let address = player.peers().get(&number);
                let rank = address.and_then(|address| self.ranks.at(self.host, *address));
                rank.map_or(Peer::Number(number), Peer::Rank)
            }
            (None, Some(rank)) if decoded.communicator == Some(0) => Peer::Rank(rank),
            (None, Some(rank)) => Peer::Member(rank),
            (None, None) => Peer::Any,
        };
        let class = ElementClass { decoded, peer, place };
        let next = makeup.len() as u32;
        let number = *self.numbers.entry(class).or_insert_with(|| {
            makeup.push(class);
            next
        });
        self.known.insert(known, number);
        number
    }
}

/// A moment of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// The time of the operation is known, but the operation was not replayed yet.
    Before,
    After,
}

/// Replays a trace up to the end of a window, and counts the elements of its queues within the
/// window. `each` is called before and after every operation, with its time and the counts.
fn play(
    trace: &Trace,
    ranks: &Endpoints,
    sites: &Arc<CallSites>,
    window: TimeWindow,
    bar: &ProgressBar,
    mut each: impl FnMut(f64, Moment, &mut Makeup),
) -> Result<Makeup, Error> {
    let settings = Settings::default();
    let layout = trace.layout(&trace.params(&settings)?)?;
    let mut player = Player::new(trace, &settings)?;
    let mut makeup =
        Makeup { rank: trace.header.rank, sites: Arc::clone(sites), ..Makeup::default() };
    let mut places = sites.in_trace(trace)?;
    let (host, numbers, known) =
        (trace.header.host.as_str(), HashMap::default(), HashMap::default());
    let mut classes = Classes { layout, host, ranks, numbers, known };
    let since = trace.since_ns();
    let mut begun = window == TimeWindow::ALL;
    let mut changes = Vec::new();
    while let Some(timed) = player.next()? {
        let at = (since + timed.0) as f64 / SECOND;
        if makeup.operations == 0 {
            makeup.span[0] = at;
        }
        makeup.span[1] = at;
        if at > window.to {
            break;
        }
        if !begun && at >= window.from {
            begun = true;
            makeup.queues.iter_mut().for_each(|queue| queue.begin(window.from));
        }
        each(at, Moment::Before, &mut makeup);
        changes.clear();
        places.note(&timed.1, player.site(), player.peers());
        player.step_with_changes(&timed, |change| changes.push(change))?;
        for change in &changes {
            match *change {
                Change::Posted(number, key) => {
                    let class = classes.number(key, places.posted(), &player, &mut makeup.classes);
                    makeup.queues[QueueKind::Prq as usize].enter(number, class, at);
                }
                Change::Matched(number) => makeup.queues[QueueKind::Prq as usize].leave(number),
                Change::Kept(number, envelope) => {
                    let source = Source::new(envelope.source);
                    let key = Key { bits: envelope.bits, ignore: 0, source };
                    let class =
                        classes.number(key, places.kept(number), &player, &mut makeup.classes);
                    makeup.queues[QueueKind::Umq as usize].enter(number, class, at);
                }
                Change::Taken(number) => makeup.queues[QueueKind::Umq as usize].leave(number),
                Change::Found(_) => {}
            }
        }
        makeup.first.resize(makeup.classes.len(), at);
        makeup.operations += 1;
        each(at, Moment::After, &mut makeup);
        player.tick(bar);
    }
    if !begun {
        makeup.queues.iter_mut().for_each(|queue| queue.begin(window.from));
    }
    makeup.queues.iter_mut().for_each(Filled::settle);
    Ok(makeup)
}

/// Returns the elements of the queues of each rank, from its trace of tagged messages.
pub(crate) fn of(
    traces: &[Trace],
    window: TimeWindow,
    bar: &ProgressBar,
) -> Result<Vec<Makeup>, Error> {
    let (ranks, sites) = (Endpoints::ranks(traces), CallSites::of(traces)?);
    play::each(&tagged(traces), bar, |trace, bar| {
        play(trace, &ranks, &sites, window, bar, |_, _, _| {})
    })
}

/// Returns the makeup whose queue became longest, or `None` without makeups.
pub(crate) fn worst(makeups: &[Makeup], queue: QueueKind) -> Option<&Makeup> {
    worst_at(makeups, queue).map(|at| &makeups[at])
}

/// Returns the index of the makeup whose queue became longest, or `None` without makeups.
pub(crate) fn worst_at(makeups: &[Makeup], queue: QueueKind) -> Option<usize> {
    // Of equal marks, `rev` makes `max_by_key` return the first.
    (0..makeups.len()).rev().max_by_key(|&at| makeups[at].of(queue).mark)
}

/// Lengths of the queues of one rank over time, by class.
#[derive(Clone, Debug, Default)]
pub(crate) struct Series {
    pub(crate) classes: Vec<ElementClass>,
    /// Times of the samples, in seconds since the run began.
    pub(crate) at: Vec<f64>,
    /// For each sample, the elements by number of the class when the queue was longest since the
    /// sample before.
    pub(crate) counts: [Vec<Vec<u64>>; 2],
}

/// Approximate number of samples of a series without pauses. Each pause adds two.
const SAMPLES: u64 = 400;

/// Replays a trace and returns its series. `makeup` is the makeup of the trace from an earlier
/// replay.
pub(crate) fn series(
    traces: &[Trace],
    trace: &Trace,
    makeup: &Makeup,
    bar: &ProgressBar,
) -> Result<Series, Error> {
    let every = makeup.operations.div_ceil(SAMPLES).max(1);
    let pause = (makeup.span[1] - makeup.span[0]) / SAMPLES as f64;
    let mut series = Series::default();
    let mut last = makeup.span[0];
    let ranks = Endpoints::ranks(traces);
    let mut played =
        play(trace, &ranks, &makeup.sites, TimeWindow::ALL, bar, |at, moment, makeup| {
            let mut sample = |at| {
                series.at.push(at);
                for (to, queue) in series.counts.iter_mut().zip(&mut makeup.queues) {
                    to.push(queue.sample());
                }
            };
            if moment == Moment::After {
                if makeup.operations.is_multiple_of(every) {
                    sample(at);
                }
                return;
            }
            let before = std::mem::replace(&mut last, at);
            if makeup.operations == 0 || at - before > pause {
                // Without samples at both ends of a pause, the elements that come after it would be
                // shown during it.
                sample(before);
                sample(at);
            }
        })?;
    series.at.push(played.span[1]);
    for (to, queue) in series.counts.iter_mut().zip(&mut played.queues) {
        to.push(queue.sample());
    }
    series.classes = played.classes;
    Ok(series)
}

/// Largest number of elements at once, and number of elements that entered, for each queue of a
/// rank in a phase.
pub(crate) type PhaseNeeds = [(u64, u64); 2];

/// The needs of a rank in each phase.
#[derive(Clone, Debug)]
pub(crate) struct RankNeeds {
    pub(crate) rank: Option<u32>,
    pub(crate) needed: Vec<PhaseNeeds>,
}

/// Returns the needs of each rank in each of the phases. A trace enters the next phase after the
/// operation that its list in `ends` names, or by time if this list is empty.
pub(crate) fn needed(
    traces: &[Trace],
    phases: &[TimeWindow],
    ends: &[Vec<u64>],
) -> Result<Vec<RankNeeds>, Error> {
    let (ranks, tagged, sites) = (Endpoints::ranks(traces), tagged(traces), Arc::default());
    let of_trace = |trace: &Trace, ends: &[u64], bar: &ProgressBar| {
        let mut needed: Vec<PhaseNeeds> = vec![Default::default(); phases.len()];
        let (mut phase, mut before) = (0, [(0, 0); 2]);
        let makeup = play(trace, &ranks, &sites, TimeWindow::ALL, bar, |at, moment, makeup| {
            if moment == Moment::Before {
                return;
            }
            let is_over = |phase: usize| match ends {
                [] => phases.get(phase).is_some_and(|window| at > window.to),
                ends => ends.get(phase).is_some_and(|end| makeup.operations > *end),
            };
            while is_over(phase) {
                phase += 1;
            }
            let Some(of) = needed.get_mut(phase) else { return };
            for ((of, before), queue) in of.iter_mut().zip(&mut before).zip(&makeup.queues) {
                // Elements that are present when a phase begins count in the phase, too.
                of.0 = of.0.max(before.0).max(queue.length);
                of.1 += queue.entered - before.1;
                *before = (queue.length, queue.entered);
            }
        })?;
        Ok(RankNeeds { rank: makeup.rank, needed })
    };
    play::with_bar(&tagged, 1, |bar| {
        let each = tagged.par_iter().zip(ends).map(|(trace, ends)| of_trace(trace, ends, bar));
        each.collect::<Vec<_>>().into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_kept_when_a_queue_is_longest() {
        let mut queue = Filled::default();
        for (number, class) in [(0, 0), (1, 1), (2, 1)] {
            queue.enter(number, class, number as f64);
        }
        queue.leave(0);
        queue.enter(3, 2, 3.0);
        queue.leave(9);
        assert_eq!((queue.mark, queue.at, queue.at_mark.as_slice()), (3, 2.0, &[1, 2][..]));
        queue.enter(4, 2, 4.0);
        assert_eq!(queue.at, 4.0);
        queue.settle();
        assert_eq!((queue.mark, queue.at_mark.as_slice()), (4, &[0, 2, 2][..]));
        assert_eq!(queue.added, [1, 2, 2]);
        queue.leave(1);
        queue.begin(5.0);
        queue.settle();
        assert_eq!((queue.mark, queue.at, queue.at_mark.as_slice()), (3, 5.0, &[0, 1, 2][..]));
        assert!(queue.added.is_empty());
    }
}
