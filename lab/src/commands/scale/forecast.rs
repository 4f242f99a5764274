// SPDX-License-Identifier: BSD-2-Clause
//! Finds the recordings of one program by number of ranks, and makes the forecast for another
//! number of ranks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::Serialize;

use super::law::{Growth, Point, SHARE};
use crate::capacity::{Knob, Need, PeakNeed, need};
use crate::error::Error;
use crate::results::origin;
use crate::results::summary::NO_LIBFABRIC;
use crate::settings::Settings;
use crate::stats::Range;
use crate::traces::{Found, Placed, Recording, Take, play, repeats};

/// Returns the number of elements of a rank, or of a NIC.
type Count = fn(&PeakNeed) -> Range<u64>;

/// The counts of the page: the name of the count, the count, and the share by which the count of
/// another run may differ.
const COUNTS: [(&str, Count, f64); 4] = [
    ("prq", |most| most.each.prq, SHARE),
    ("umq", |most| most.each.umq, TIMED),
    ("internal", |most| most.each.internal, SHARE),
    ("peak_total", |most| most.peak_total, TIMED),
];

/// Share by which counts that depend on timing are assumed to differ, if no size has several runs.
const TIMED: f64 = 0.25;

/// The numbers of the page.
#[derive(Debug, Serialize)]
pub(super) struct Forecast {
    pub(super) program: String,
    pub(super) to: u32,
    pub(super) sizes: Vec<RecordedSize>,
    /// Sizes that were left out, because all ranks were placed on one node.
    pub(super) on_one_node: Vec<u32>,
    /// PRQ, UMQ, receives of the MPI itself, and all elements together: first of a rank, then of a
    /// NIC.
    pub(super) needs: Vec<Scaled>,
    pub(super) placed: bool,
    /// Number of ranks on the fullest node, by size. If it changes with the size, the need of a NIC
    /// does not follow from the number of ranks alone, and is not predicted.
    pub(super) ranks_of_a_node: Vec<usize>,
    pub(super) generated: bool,
    /// Describes missing ranks and failed programs, a sentence for each recording.
    pub(super) lacks: Vec<String>,
}

/// A number of ranks.
#[derive(Debug, Serialize)]
pub(super) struct RecordedSize {
    pub(super) ranks: u32,
    pub(super) runs: usize,
    pub(super) command: String,
}

/// A count at all sizes.
#[derive(Debug, Serialize)]
pub(super) struct Scaled {
    /// `rank` or `nic`.
    pub(super) of: &'static str,
    /// `prq`, `umq`, `internal` or `peak_total`.
    pub(super) count: &'static str,
    /// Need of the rank or NIC that needs most, by size.
    pub(super) needs: Vec<Point>,
    #[serde(flatten)]
    pub(super) growth: Growth,
}

impl Forecast {
    /// Returns true if a program was recorded only once at some size; false for generated
    /// recordings.
    pub(super) fn has_single_runs(&self) -> bool {
        !self.generated && self.sizes.iter().any(|size| size.runs == 1)
    }

    pub(super) fn of(sizes: &RecordingsBySize, to: u32) -> Result<Self, Error> {
        let recordings = &sizes.by_ranks;
        let mut needs: BTreeMap<u32, Vec<Need>> = BTreeMap::new();
        for (&ranks, runs) in recordings {
            for Recording { found, .. } in runs {
                if found.iter().all(|trace| trace.header.context != "tagged") {
                    return Err(Error::NothingTagged);
                }
                let need = |bar: &_| Need::of(found, &Settings::default(), Knob::Pool, bar);
                let need = play::with_bar(found, 1, need)?;
                needs.entry(ranks).or_default().push(need);
            }
        }
        let first = sizes.recordings().next().expect("there is a size");
        let generated = first.found[0].header.libfabric == NO_LIBFABRIC;
        let on_a_node =
            |runs: &Vec<Recording>| runs.iter().map(|run| most_on_a_node(&run.found)).max();
        let ranks_of_a_node: Vec<_> =
            recordings.values().map(|runs| on_a_node(runs).unwrap_or(0)).collect();
        let scaled = |of: &'static str, units: fn(&Need) -> &[PeakNeed]| {
            let needs = &needs;
            let mut all = COUNTS.map(|(name, count, share)| {
                let share = if generated { SHARE } else { share };
                let points = points(needs, share, |need| need::largest(units(need), count));
                let mut growth = Growth::of(&points, to);
                if share == TIMED {
                    growth.widen();
                }
                Scaled { of, count: name, growth, needs: points }
            });
            let [parts @ .., peak_total] = &mut all;
            if peak_total.needs.iter().any(Point::varies) || peak_total.growth.refused {
                peak_total.growth.bracket(&parts.each_ref().map(|part| &part.growth));
            }
            if of == "nic" && grows(&ranks_of_a_node) {
                all.iter_mut().for_each(|scaled| scaled.growth.withhold());
            }
            all
        };
        let size = |(ranks, runs): (&u32, &Vec<Recording>)| RecordedSize {
            ranks: *ranks,
            runs: runs.len(),
            command: runs[0].found[0].header.origin.command.clone(),
        };
        let lack = |recording: &Recording| {
            let lack = recording.found.ranks().lack("trace")?;
            let name = recording.name.as_ref();
            Some(name.map_or_else(|| lack.clone(), |name| format!("{}: {lack}", name.display())))
        };
        Ok(Self {
            program: program(first),
            to,
            on_one_node: sizes.on_one_node.clone(),
            sizes: recordings.iter().map(size).collect(),
            needs: [scaled("rank", |need| &need.ranks), scaled("nic", |need| &need.nics)]
                .into_iter()
                .flatten()
                .collect(),
            ranks_of_a_node,
            placed: first.found.placed_on().is_some(),
            generated,
            lacks: sizes.recordings().filter_map(lack).collect(),
        })
    }
}

/// Returns true if the number of ranks of a node changes with the size.
pub(super) fn grows(ranks_of_a_node: &[usize]) -> bool {
    ranks_of_a_node.iter().any(|ranks| *ranks != ranks_of_a_node[0])
}

fn most_on_a_node(found: &Found) -> usize {
    let mut nodes: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for trace in found.iter() {
        nodes.entry(trace.host()).or_default().insert((trace.header.rank, trace.header.pid));
    }
    nodes.values().map(BTreeSet::len).max().unwrap_or(0)
}

/// Returns a count at all sizes. The need at a size with one run may differ as much as between the
/// runs of another size, or by `share` if no size has several runs.
fn points(
    needs: &BTreeMap<u32, Vec<Need>>,
    share: f64,
    count: impl Fn(&Need) -> Range<u64>,
) -> Vec<Point> {
    let point = |(ranks, needs): (&u32, &Vec<Need>)| {
        let Range { least, most } = Range::over(needs.iter().map(&count));
        Point { ranks: *ranks, least, most, share: SHARE }
    };
    let mut points: Vec<_> = needs.iter().map(point).collect();
    let runs = || needs.values().map(Vec::len);
    let repeated = points.iter().zip(runs()).filter(|(_, runs)| *runs > 1);
    let varies = repeated
        .map(|(point, _)| (point.most - point.least) as f64 / point.most.max(1) as f64)
        .reduce(f64::max);
    let single = points.iter_mut().zip(runs()).filter(|(_, runs)| *runs == 1);
    single.for_each(|(point, _)| point.share = varies.unwrap_or(share).max(SHARE));
    points
}

/// Recordings at three or more numbers of ranks, with the repeats of each.
#[derive(Debug)]
pub(super) struct RecordingsBySize {
    pub(super) by_ranks: BTreeMap<u32, Vec<Recording>>,
    /// Sizes that were left out, because all ranks were placed on one node. The NIC of that node
    /// sees no message.
    pub(super) on_one_node: Vec<u32>,
}

impl RecordingsBySize {
    /// Reads recordings from directories, and places their ranks on nodes. Fails if they are of
    /// different programs, if two have the same number of ranks but different command lines, if
    /// fewer than three sizes remain, or if `to` is below a recorded size.
    pub(super) fn find(
        names: &[PathBuf],
        take: Take,
        placed: &Placed,
        to: u32,
    ) -> Result<Self, Error> {
        let mut by_ranks: BTreeMap<_, Vec<Recording>> = BTreeMap::new();
        let names: Vec<_> = BTreeSet::from_iter(names).into_iter().cloned().collect();
        let groups = repeats::groups(&names, take, placed)?;
        let name = |of: &Recording| of.name.as_ref().unwrap_or(&names[0]).display().to_string();
        let first = &groups[0][0];
        if let Some(other) = groups.iter().find(|of| program(&of[0]) != program(first)) {
            fail!(
                "{} and {} are of different programs or MPI libraries; give recordings of one \
                 program",
                name(first),
                name(&other[0])
            );
        }
        for group in groups {
            let ranks = ranks(&group[0]);
            if let Some(other) = by_ranks.get(&ranks) {
                fail!(
                    "{} and {} both have {ranks} ranks and are no repeats: their command lines \
                     differ. Leave one of them out",
                    name(&other[0]),
                    name(&group[0])
                );
            }
            by_ranks.insert(ranks, group);
        }
        if let Some((&largest, _)) = by_ranks.last_key_value()
            && to < largest
        {
            fail!("--to {to}: a recording has {largest} ranks; give that number or a larger one");
        }
        let (one, by_ranks): (BTreeMap<_, _>, BTreeMap<_, _>) =
            by_ranks.into_iter().partition(|(_, runs)| runs[0].found.placed_on() == Some(1));
        let on_one_node: Vec<_> = one.into_keys().collect();
        if by_ranks.len() < 3 {
            let have = listed(by_ranks.keys());
            let sizes = match on_one_node.as_slice() {
                [] => have,
                one if have.is_empty() => format!("{} on one node", listed(one)),
                one => format!("{have}, and {} on one node", listed(one)),
            };
            fail!(
                "growth can be computed only from recordings with at least three different numbers \
                 of ranks, each in its own directory; these have {sizes}. Record the program with \
                 more numbers of ranks"
            );
        }
        Ok(Self { by_ranks, on_one_node })
    }

    pub(super) fn recordings(&self) -> impl Iterator<Item = &Recording> {
        self.by_ranks.values().flatten()
    }
}

fn listed<'a>(sizes: impl IntoIterator<Item = &'a u32>) -> String {
    sizes.into_iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns the number of ranks that ran, which may be more than were recorded.
fn ranks(recording: &Recording) -> u32 {
    let found = &recording.found;
    let ran = found.iter().filter_map(|trace| trace.header.origin.ranks).max();
    ran.unwrap_or_else(|| found.ranks().job_size())
}

/// Returns the program, without arguments, and the MPI, which must be the same for all sizes.
fn program(recording: &Recording) -> String {
    let header = &recording.found[0].header;
    let name = origin::name_of(&header.program, &header.origin.command);
    // The program of a generated recording contains the number of ranks.
    let name = name.split(" --ranks ").next().unwrap_or_default();
    match header.origin.mpi.as_str() {
        "" => name.to_owned(),
        mpi => format!("{name}, {mpi}"),
    }
}
