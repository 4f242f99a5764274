// SPDX-License-Identifier: BSD-2-Clause
//! `tcam show --by`: counts the elements of the queues by communicator, tag, peer, kind of traffic,
//! place in the program or phase. [`super::threads`] counts the operations of threads. A class
//! ([`ElementClass`]) is the set of elements with the same decoded match bits and the same peer.
//!
//! The name of a communicator contains a number, its ranks and the MPI's context id. Numbers follow
//! the order of the communicators' first elements, and the ranks are those that occur in the
//! elements. The context id comes last, because it means nothing to a user.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;
use strum::IntoStaticStr;

use super::fill::{Filled, Makeup, Peer};
use super::phases::Phases;
use super::sites::{CallSites, MessagePlace};
use super::{ElementClass, QueueKind, TimeWindow, fill};
use crate::error::Error;
use crate::results::columns::{TEXT, WHOLE};
use crate::results::ranks::{named, ranges};
use crate::results::{Cell, ColumnFile};
use crate::text::{Sheet, count, percent, share, whole};
use crate::traces::Trace;

/// Largest number of lines for groups.
const LINES: usize = 24;
/// Number of groups that have a line even if their share is below [`SHARE`].
const FEW: usize = 4;
/// Smallest share of the elements of a queue at its longest, in per cent, for which a further group
/// has a line.
const SHARE: f64 = 1.0;

/// Value of `--by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum By {
    /// Communicator, with a number in the order of first elements.
    Communicator,
    /// Tag and communicator, or collective operation.
    Tag,
    /// Source of a message, or the source that a receive names.
    Peer,
    /// Point-to-point, or the collective operation.
    Kind,
    /// Line of the program, or caller, that posted the receive, or that sent or received the
    /// message. Needs --sites when the program is recorded.
    Site,
    /// Time between collective operations of all ranks.
    Phase,
    /// Thread that posted receives or handled messages.
    Thread,
}

impl By {
    /// Returns the name of the group that the elements of a class belong to; empty for phases and
    /// threads.
    fn group(
        self,
        class: &ElementClass,
        communicators: &Communicators,
        sites: &CallSites,
    ) -> String {
        match self {
            Self::Communicator => communicators.name(class),
            Self::Tag => format!("{} of {}", what(class), communicators.name(class)),
            Self::Peer => peer(class.peer),
            Self::Kind => class.decoded.operation.unwrap_or("point-to-point").to_owned(),
            Self::Site => sites.name(class.place).to_owned(),
            Self::Phase | Self::Thread => String::new(),
        }
    }
}

/// Returns the name of the tag or collective operation of a class.
pub(crate) fn what(class: &ElementClass) -> String {
    match (class.decoded.operation, class.decoded.tag) {
        (Some(operation), _) => operation.to_owned(),
        (None, Some(tag)) => format!("tag {tag}"),
        (None, None) => "any tag".to_owned(),
    }
}

fn peer(peer: Peer) -> String {
    match peer {
        Peer::Rank(rank) => format!("rank {rank}"),
        Peer::Member(rank) => format!("rank {rank} of its communicator"),
        Peer::Number(number) => format!("peer {number}"),
        Peer::Any => "any source".to_owned(),
    }
}

/// Numbers of elements of a group in one queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Part {
    /// Elements at the moment when the queue was longest, on the rank with the longest queue.
    at_mark: u64,
    /// Elements that entered the queue over the run, on all ranks.
    added: u64,
}

/// A group and its elements.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Group {
    name: String,
    prq: Part,
    umq: Part,
}

/// The groups, as `--json` prints them.
#[derive(Debug, Serialize)]
pub(crate) struct Groups {
    by: &'static str,
    /// Rank of the longest PRQ, if known. The fields of the UMQ have the same meanings.
    prq_rank: Option<u32>,
    /// Largest number of elements of that PRQ.
    prq_high_water: u64,
    /// Time of that length, in seconds since the run began.
    prq_at_s: f64,
    umq_rank: Option<u32>,
    umq_high_water: u64,
    umq_at_s: f64,
    groups: Vec<Group>,
    pub(crate) readings: Vec<String>,
}

impl Groups {
    /// Groups elements by anything except phase and thread.
    pub(crate) fn of(makeups: &[Makeup], by: By) -> Self {
        let mut parts: BTreeMap<String, [Part; 2]> = BTreeMap::new();
        let worst = QueueKind::BOTH.map(|queue| fill::worst(makeups, queue));
        let communicators = Communicators::of(makeups);
        for makeup in makeups {
            for queue in QueueKind::BOTH {
                for (class, &added) in makeup.classes.iter().zip(&makeup.of(queue).added) {
                    let group =
                        parts.entry(by.group(class, &communicators, &makeup.sites)).or_default();
                    group[queue as usize].added += added;
                }
            }
        }
        for (queue, makeup) in QueueKind::BOTH.into_iter().zip(worst) {
            let Some(makeup) = makeup else { continue };
            for (class, &at_mark) in makeup.classes.iter().zip(&makeup.of(queue).at_mark) {
                let group =
                    parts.entry(by.group(class, &communicators, &makeup.sites)).or_default();
                group[queue as usize].at_mark += at_mark;
            }
        }
        let groups = parts.into_iter().map(|(name, [prq, umq])| Group { name, prq, umq });
        let mut groups: Vec<_> = groups
            .filter(|group| group.prq != Part::default() || group.umq != Part::default())
            .collect();
        groups.sort_by_cached_key(|Group { name, prq, umq }| {
            let most_first = (prq.at_mark + umq.at_mark, prq.added + umq.added);
            (std::cmp::Reverse(most_first), padded(name))
        });
        let [prq, umq] = QueueKind::BOTH.map(|queue| {
            fill::worst(makeups, queue).map_or((None, 0, 0.0), |makeup| {
                let filled = makeup.of(queue);
                (makeup.rank, filled.mark, filled.at)
            })
        });
        Self {
            by: by.into(),
            prq_rank: prq.0,
            prq_high_water: prq.1,
            prq_at_s: prq.2,
            umq_rank: umq.0,
            umq_high_water: umq.1,
            umq_at_s: umq.2,
            groups,
            readings: readings(makeups),
        }
    }

    /// Returns the table for the terminal.
    pub(crate) fn sheet(&self) -> Sheet {
        let of = |name: &str, rank: Option<u32>| match rank {
            Some(rank) => format!("{name} of rank {rank} at its longest"),
            None => format!("{name} at its longest"),
        };
        let mut sheet = Sheet::new(
            format!("Elements by {}", self.by),
            [self.by, "", "", "", "", "PRQ, all ranks", "UMQ, all ranks"],
        );
        (sheet.header[1], sheet.header[3]) = (of("PRQ", self.prq_rank), of("UMQ", self.umq_rank));
        (sheet.header[2], sheet.header[4]) = ("share".to_owned(), "share".to_owned());
        let mut row = |name: String, prq: Part, umq: Part| {
            sheet.row([
                name,
                whole(prq.at_mark),
                share(percent(prq.at_mark, self.prq_high_water)),
                whole(umq.at_mark),
                share(percent(umq.at_mark, self.umq_high_water)),
                whole(prq.added),
                whole(umq.added),
            ]);
        };
        let lines = self.lines();
        for Group { name, prq, umq } in &self.groups[..lines] {
            row(name.clone(), *prq, *umq);
        }
        let sum = |groups: &[Group], of: fn(&Group) -> Part| {
            groups.iter().map(of).fold(Part::default(), |sum, part| Part {
                at_mark: sum.at_mark + part.at_mark,
                added: sum.added + part.added,
            })
        };
        if let Some(rest) = self.groups.get(lines..).filter(|rest| !rest.is_empty()) {
            let name = format!("{} others", whole(rest.len() as u64));
            row(name, sum(rest, |of| of.prq), sum(rest, |of| of.umq));
        }
        row("all".to_owned(), sum(&self.groups, |of| of.prq), sum(&self.groups, |of| of.umq));
        sheet
    }

    /// Writes a line for each group to `by-WHAT` in a directory, as CSV or Parquet.
    pub(crate) fn write(&self, out: &Path, parquet: bool) -> Result<(), Error> {
        let numbers = ["prq_at_mark", "prq_added", "umq_at_mark", "umq_added"];
        let columns = [(self.by, TEXT)].into_iter().chain(numbers.map(|name| (name, WHOLE)));
        let mut lines = ColumnFile::new(out, &format!("by-{}", self.by), parquet, columns)?;
        for Group { name, prq, umq } in &self.groups {
            let numbers = [prq.at_mark, prq.added, umq.at_mark, umq.added].map(Cell::from);
            lines.add([Cell::from(name.as_str())].into_iter().chain(numbers))?;
        }
        lines.end()
    }

    /// Returns the number of groups that have a line: at least [`FEW`] and at most [`LINES`], up to
    /// the last group with a share of [`SHARE`] of a queue.
    fn lines(&self) -> usize {
        let most = self.groups.len().min(LINES);
        let has_share = |group: &Group| {
            percent(group.prq.at_mark, self.prq_high_water) >= SHARE
                || percent(group.umq.at_mark, self.umq_high_water) >= SHARE
        };
        let shown = self.groups[..most].iter().rposition(has_share).map_or(0, |last| last + 1);
        // A line `1 others` takes as much room as that group itself.
        match self.groups.len() - shown.max(FEW).min(most) {
            1 => self.groups.len(),
            _ => shown.max(FEW).min(most),
        }
    }
}

/// Returns a name whose numbers have equally many digits, so that `tag 9` is sorted before `tag 10`.
fn padded(name: &str) -> String {
    let parts = name.split_inclusive(|of: char| !of.is_ascii_digit());
    parts.map(|part| format!("{part:0>21}")).collect()
}

/// Elements of a group, and their sources and tags, for a sentence on the largest group.
#[derive(Debug, Default)]
struct GroupSources {
    count: u64,
    ranks: BTreeSet<u32>,
    /// Ranks within communicators other than `MPI_COMM_WORLD`.
    members: BTreeSet<u32>,
    /// Numbers of peers whose ranks are not known.
    numbers: BTreeSet<u32>,
    /// True if some elements are receives from any source.
    any: bool,
    tags: BTreeSet<i64>,
    /// True if some elements are receives of any tag.
    any_tag: bool,
}

impl GroupSources {
    fn add(&mut self, class: &ElementClass, count: u64) {
        self.count += count;
        match class.peer {
            Peer::Rank(rank) => drop(self.ranks.insert(rank)),
            Peer::Member(rank) => drop(self.members.insert(rank)),
            Peer::Number(number) => drop(self.numbers.insert(number)),
            Peer::Any => self.any = true,
        }
        if class.decoded.operation.is_none() {
            self.tags.extend(class.decoded.tag);
            self.any_tag |= class.decoded.tag.is_none();
        }
    }
}

/// Returns sentences on ranks without places, and a sentence for each queue that had elements at known
/// places. This sentence names the place of most elements at the moment when the queue was longest.
/// Also returns sentences on the places whose lines are unknown.
fn site_readings(makeups: &[Makeup]) -> (Vec<String>, Vec<String>) {
    let Some(sites) = makeups.first().map(|makeup| &makeup.sites) else {
        return Default::default();
    };
    if sites.is_empty() {
        return (sites.lacking.clone(), sites.notes.clone());
    }
    let of_queue = |queue| {
        let makeup = fill::worst(makeups, queue)?;
        let filled = makeup.of(queue);
        let mut places: BTreeMap<&str, u64> = BTreeMap::new();
        for (class, &count) in makeup.classes.iter().zip(&filled.at_mark) {
            *places.entry(sites.name(class.place)).or_default() += count;
        }
        let (name, most) = places.iter().max_by_key(|(_, count)| **count).filter(|of| *of.1 > 0)?;
        let (element, did) = match (queue, sites.messages) {
            (QueueKind::Prq, _) => ("receive", "posted"),
            (QueueKind::Umq, MessagePlace::Sent) => ("message", "sent"),
            (QueueKind::Umq, MessagePlace::Taken) => ("message", "received"),
        };
        let rank = makeup.rank.map_or_else(String::new, |rank| format!(" of rank {rank}"));
        let others = places.values().filter(|count| **count > 0).count() as u64 - 1;
        let others = match others {
            0 => String::new(),
            1 if filled.mark - most == 1 => ", and the other at another place".to_owned(),
            1 => ", and the others at another place".to_owned(),
            _ => format!(", and the others at {}", count(others, "other place")),
        };
        let of = match (*most, filled.mark) {
            (1, 1) => format!("The only {element}"),
            (2, 2) => format!("Both {element}s"),
            (most, mark) if most == mark => format!("All {} {element}s", whole(mark)),
            (most, mark) => format!("{} of the {} {element}s", whole(most), whole(mark)),
        };
        let were = if *most == 1 { "was" } else { "were" };
        Some(format!(
            "{of} in the {}{rank} at its longest {were} {did} by {name}{others}",
            queue.name(),
        ))
    };
    let of_queues = QueueKind::BOTH.into_iter().filter_map(of_queue);
    (sites.lacking.iter().cloned().chain(of_queues).collect(), sites.notes.clone())
}

/// Returns a sentence for each queue that had elements. The sentence names the largest group of the
/// elements at the moment when the queue was longest. If places were recorded, the sentences on
/// them come first.
pub(crate) fn readings(makeups: &[Makeup]) -> Vec<String> {
    let communicators = Communicators::of(makeups);
    let (sites, notes) = site_readings(makeups);
    let of_tags = QueueKind::BOTH.into_iter().filter_map(|queue| {
        let makeup = fill::worst(makeups, queue)?;
        let filled = makeup.of(queue);
        let most = |by: By| {
            let mut groups: BTreeMap<String, GroupSources> = BTreeMap::new();
            for (class, &count) in makeup.classes.iter().zip(&filled.at_mark) {
                if count > 0 {
                    groups
                        .entry(by.group(class, &communicators, &makeup.sites))
                        .or_default()
                        .add(class, count);
                }
            }
            groups.into_iter().max_by_key(|(_, group)| group.count)
        };
        let (mut name, mut group) = most(By::Tag)?;
        // If no tag has half of the elements, for example because a program numbers its
        // messages with tags, the sentence names the largest communicator.
        if group.count * 2 < filled.mark {
            (name, group) = most(By::Communicator)?;
            name = match (group.tags.first(), group.tags.last()) {
                (Some(first), Some(last)) if first != last => {
                    let any = if group.any_tag { " and any tag" } else { "" };
                    let tags = group.tags.len();
                    format!("of {name}, of {tags} tags from {first} to {last}{any},")
                }
                _ => format!("of {name}"),
            };
        }
        let GroupSources { count, ranks, members, numbers, any, .. } = group;
        let mut from = Vec::new();
        if !ranks.is_empty() {
            from.push(named(&ranges(&ranks)));
        }
        if !members.is_empty() {
            from.push(format!("{} of that communicator", named(&ranges(&members))));
        }
        if !numbers.is_empty() {
            from.push(named(&ranges(&numbers)).replace("rank", "peer"));
        }
        from.extend(any.then(|| "any source".to_owned()));
        let from = format!(" from {}", from.join(" and "));
        let rank = makeup.rank.map_or_else(String::new, |rank| format!(" of rank {rank}"));
        let (of, are) = match (count, filled.mark) {
            (1, 1) => ("The only element".to_owned(), "is"),
            (1, mark) => (format!("1 of {}", whole(mark)), "is"),
            (count, mark) => (format!("{} of {}", whole(count), whole(mark)), "are"),
        };
        Some(format!("{of} in the {}{rank} {are} {name}{from}, {}", queue.name(), moment(filled)))
    });
    sites.into_iter().chain(of_tags).chain(notes).collect()
}

/// Returns text such as `at 1.351 s`.
pub(crate) fn moment(filled: &Filled) -> String {
    format!("at {:.3} s", filled.at)
}

/// The need of a phase: the largest length of each queue, and the rank that had it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct PhaseNeed {
    number: usize,
    from_s: f64,
    /// End of the phase; `None` if it lasts to the end of the recording.
    to_s: Option<f64>,
    prq_high_water: u64,
    prq_rank: Option<u32>,
    umq_high_water: u64,
    umq_rank: Option<u32>,
    /// Elements that entered the queues of all ranks.
    added: u64,
}

/// Returns the need of each phase.
pub(crate) fn needed_in(traces: &[Trace], phases: &Phases) -> Result<Vec<PhaseNeed>, Error> {
    let windows = &phases.windows;
    let needed = fill::needed(traces, windows, &phases.ends)?;
    let worst = |phase: usize, queue: QueueKind| {
        let marks = needed.iter().map(|of| (of.needed[phase][queue as usize].0, of.rank));
        // Of equal marks, `rev` makes `max_by_key` return the first.
        let (mark, rank) = marks.rev().max_by_key(|(mark, _)| *mark).unwrap_or_default();
        (mark, rank.filter(|_| mark > 0))
    };
    let phases = windows.iter().enumerate().map(|(number, window)| {
        let (prq_high_water, prq_rank) = worst(number, QueueKind::Prq);
        let (umq_high_water, umq_rank) = worst(number, QueueKind::Umq);
        let added = needed.iter().flat_map(|of| of.needed[number]).map(|(_, added)| added).sum();
        PhaseNeed {
            number,
            from_s: window.from,
            to_s: Some(window.to).filter(|to| to.is_finite()),
            prq_high_water,
            prq_rank,
            umq_high_water,
            umq_rank,
            added,
        }
    });
    Ok(phases.collect())
}

/// Returns the table of the [`LINES`] phases that need most, in the order of time.
pub(crate) fn sheet_of(phases: &[PhaseNeed]) -> Sheet {
    let header = ["phase", "from, s", "to, s", "PRQ mark", "rank", "UMQ mark", "rank", "added"];
    let title = "Phases between collective operations of all ranks, in seconds since the run began";
    let mut sheet = Sheet::new(title, header);
    let mut shown: Vec<_> = phases.iter().collect();
    let need = |phase: &PhaseNeed| phase.prq_high_water.max(phase.umq_high_water);
    shown.sort_by_key(|phase| (std::cmp::Reverse(need(phase)), phase.number));
    shown.truncate(LINES);
    shown.sort_by_key(|phase| phase.number);
    if shown.len() < phases.len() {
        sheet.title += &format!(": the {LINES} of {} that need most", whole(phases.len() as u64));
    }
    let rank = |rank: Option<u32>| rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
    for phase in shown {
        sheet.row([
            phase.number.to_string(),
            format!("{:.3}", phase.from_s),
            phase.to_s.map_or_else(|| "end".to_owned(), |to| format!("{to:.3}")),
            whole(phase.prq_high_water),
            rank(phase.prq_rank),
            whole(phase.umq_high_water),
            rank(phase.umq_rank),
            whole(phase.added),
        ]);
    }
    sheet
}

/// Returns a note on a run with a single phase.
pub(crate) fn notes_of(phases: &[PhaseNeed]) -> Vec<String> {
    let mut notes = Vec::new();
    if phases.len() == 1 {
        notes.push(
            "No collective operation was recognised that all ranks took part in: all is one phase"
                .to_owned(),
        );
    }
    notes
}

/// Returns a note on the window, or `None` if it is the whole run.
pub(crate) fn window_note(window: TimeWindow) -> Option<String> {
    let to = if window.to.is_finite() { format!("{} s", window.to) } else { "the end".to_owned() };
    (window != TimeWindow::ALL)
        .then(|| format!("From {} s to {to} since the run began", window.from))
}

/// Largest number of ranges of ranks in a name. A longer list is replaced by the number of ranks.
const RANGES: usize = 2;

/// Names of communicators by context id.
#[derive(Debug, Default)]
pub(crate) struct Communicators(BTreeMap<u32, String>);

/// Facts about a communicator from its elements: the time of the first one in seconds, and the
/// ranks.
struct Members {
    first: f64,
    ranks: BTreeSet<u32>,
}

impl Communicators {
    /// Names the communicators of the elements of some ranks.
    pub(crate) fn of<'a>(makeups: impl IntoIterator<Item = &'a Makeup>) -> Self {
        let mut seen: BTreeMap<u32, Members> = BTreeMap::new();
        for makeup in makeups {
            for (class, &first) in makeup.classes.iter().zip(&makeup.first) {
                let Some(id) = class.decoded.communicator.filter(|id| *id > 0) else { continue };
                let of = seen.entry(id).or_insert(Members { first, ranks: BTreeSet::new() });
                of.first = of.first.min(first);
                of.ranks.extend(makeup.rank);
                if let Peer::Rank(rank) = class.peer {
                    of.ranks.insert(rank);
                }
            }
        }
        let mut seen: Vec<_> = seen.into_iter().collect();
        seen.sort_by(|(_, a), (_, b)| a.first.total_cmp(&b.first));
        let named = seen.into_iter().zip(1..).map(|((id, Members { ranks, .. }), number)| {
            let ranges = ranges(&ranks);
            let ranks = match ranges.len() {
                0 => String::new(),
                few if few <= RANGES => format!("{}, ", named(&ranges)),
                _ => format!("{}, ", count(ranks.len() as u64, "rank")),
            };
            (id, format!("communicator {number} ({ranks}id {id})"))
        });
        Self(named.collect())
    }

    /// Returns the name of the communicator of a class.
    pub(crate) fn name(&self, class: &ElementClass) -> String {
        match class.decoded.communicator {
            Some(0) => "MPI_COMM_WORLD".to_owned(),
            Some(id) => self.0.get(&id).cloned().unwrap_or_else(|| format!("communicator id {id}")),
            None => "any communicator".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use matching::DecodedBits;

    use super::*;

    #[test]
    fn numbers_in_names_are_sorted_by_value() {
        let mut names = ["tag 10 of world", "tag 9", "tag 9 of world", "tag 100", "rank 2", "tag"];
        names.sort_by_cached_key(|name| padded(name));
        assert_eq!(
            names,
            ["rank 2", "tag", "tag 9", "tag 9 of world", "tag 10 of world", "tag 100"]
        );
    }

    fn class(tag: i64, peer: Peer) -> ElementClass {
        let decoded =
            DecodedBits { communicator: Some(0), tag: Some(tag), source: None, operation: None };
        ElementClass { decoded, peer, place: 0 }
    }

    fn makeup(rank: u32, counts: &[u64]) -> Makeup {
        let peers = [Peer::Rank(1), Peer::Rank(2), Peer::Any];
        let classes = peers.into_iter().zip([7, 7, 9]).map(|(peer, tag)| class(tag, peer));
        let mut makeup =
            Makeup { rank: Some(rank), classes: classes.collect(), ..Makeup::default() };
        let filled = &mut makeup.queues[0];
        (filled.mark, filled.at) = (counts.iter().sum(), 1.5);
        (filled.at_mark, filled.added) =
            (counts.to_vec(), counts.iter().map(|of| of * 2).collect());
        makeup
    }

    #[test]
    fn groups_are_of_the_worst_rank_and_additions_of_all() {
        let makeups = [makeup(0, &[5, 3, 2]), makeup(1, &[1, 1, 1])];
        let groups = Groups::of(&makeups, By::Tag);
        assert_eq!((groups.prq_rank, groups.prq_high_water), (Some(0), 10));
        let told: Vec<_> = groups.groups.iter().map(|of| (of.name.as_str(), of.prq)).collect();
        assert_eq!(
            told,
            [
                ("tag 7 of MPI_COMM_WORLD", Part { at_mark: 8, added: 20 }),
                ("tag 9 of MPI_COMM_WORLD", Part { at_mark: 2, added: 6 })
            ]
        );
        assert_eq!(
            groups.readings,
            ["8 of 10 in the PRQ of rank 0 are tag 7 of MPI_COMM_WORLD from ranks 1-2, at 1.500 s"]
        );
        let by_peer = Groups::of(&makeups, By::Peer);
        assert_eq!(by_peer.groups.len(), 3);
        assert_eq!(by_peer.sheet().rows.last().unwrap()[1], "10");
        assert_eq!(Groups::of(&[], By::Kind).groups, []);
    }

    #[test]
    fn many_small_groups_share_a_line() {
        let group = |tag: u64, at_mark| Group {
            name: format!("tag {tag}"),
            prq: Part { at_mark, added: 1 },
            umq: Part::default(),
        };
        let lines = |marks: &[u64]| {
            let sum = marks.iter().sum();
            let groups = (0..).zip(marks).map(|(tag, &mark)| group(tag, mark)).collect();
            let all = Groups { groups, prq_high_water: sum, ..Groups::of(&[], By::Tag) };
            all.sheet().rows.iter().map(|row| row[0].clone()).collect::<Vec<_>>()
        };
        assert_eq!(lines(&[1; 523])[3..], ["tag 3", "519 others", "all"]);
        assert_eq!(lines(&[&[900, 90][..], &[1; 9]].concat())[3..], ["tag 3", "7 others", "all"]);
        assert_eq!(lines(&[20; 30])[23..], ["tag 23", "6 others", "all"]);
        assert_eq!(lines(&[20; 25])[24..], ["tag 24", "all"]);
        assert_eq!(lines(&[1; 5]), ["tag 0", "tag 1", "tag 2", "tag 3", "tag 4", "all"]);
    }

    #[test]
    fn open_tags_and_communicators_are_named_any() {
        let decoded =
            DecodedBits { communicator: Some(8), tag: None, source: None, operation: None };
        let open = ElementClass { decoded, peer: Peer::Number(3), place: 0 };
        let group = |by: By| by.group(&open, &Communicators::default(), &CallSites::default());
        assert_eq!(group(By::Tag), "any tag of communicator id 8");
        assert_eq!(group(By::Peer), "peer 3");
        assert_eq!(group(By::Kind), "point-to-point");
    }

    #[test]
    fn names_have_the_order_of_appearance_and_the_ranks() {
        let class = |communicator, peer| {
            let decoded = DecodedBits { communicator, tag: Some(1), source: None, operation: None };
            ElementClass { decoded, peer, place: 0 }
        };
        let makeup = |rank, classes: &[(ElementClass, f64)]| Makeup {
            rank: Some(rank),
            classes: classes.iter().map(|of| of.0).collect(),
            first: classes.iter().map(|of| of.1).collect(),
            ..Makeup::default()
        };
        let (late, early) = (class(Some(8), Peer::Rank(5)), class(Some(496), Peer::Any));
        let world = class(Some(0), Peer::Any);
        let makeups = [
            makeup(0, &[(world, 0.0), (late, 2.0)]),
            makeup(1, &[(early, 1.0)]),
            makeup(2, &[(early, 3.0), (late, 0.5)]),
            makeup(3, &[(late, 4.0)]),
        ];
        let names = Communicators::of(&makeups);
        assert_eq!(names.name(&late), "communicator 1 (4 ranks, id 8)");
        assert_eq!(names.name(&early), "communicator 2 (ranks 1-2, id 496)");
        assert_eq!(names.name(&world), "MPI_COMM_WORLD");
        assert_eq!(names.name(&class(None, Peer::Any)), "any communicator");
    }
}
