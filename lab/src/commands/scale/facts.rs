// SPDX-License-Identifier: BSD-2-Clause
//! The facts of `tcam scale`, as `--json` prints them.

use std::collections::BTreeMap;

use serde::Serialize;

use super::law::{Growth, Point};
use crate::capacity::need::{Knob, Most, Need};
use crate::error::Error;
use crate::results::summary::NO_LIBFABRIC;
use crate::settings::Settings;
use crate::traces::play;
use crate::traces::repeats::Recording;

/// Elements of a rank, or of a NIC.
type Count = fn(&Most) -> u64;

/// The counts of a page and their names.
const COUNTS: [(&str, Count); 3] = [
    ("prq", |most| most.each.prq),
    ("umq", |most| most.each.umq),
    ("at_once", |most| most.at_once.all()),
];

/// All of them.
#[derive(Debug, Serialize)]
pub(super) struct Facts {
    pub(super) program: String,
    pub(super) to: u32,
    pub(super) sizes: Vec<Size>,
    /// PRQ, UMQ and all at once, of a rank and then of a NIC.
    pub(super) needs: Vec<Scaled>,
    /// Ranks of a node do not change with the size.
    pub(super) placed: bool,
    pub(super) generated: bool,
    /// Describes missing ranks and failed programs, a sentence for each recording.
    pub(super) lacks: Vec<String>,
}

/// A number of ranks.
#[derive(Debug, Serialize)]
pub(super) struct Size {
    pub(super) ranks: u32,
    pub(super) runs: usize,
    /// NICs of the recording.
    pub(super) nics: usize,
    pub(super) command: String,
}

/// A count at all sizes.
#[derive(Debug, Serialize)]
pub(super) struct Scaled {
    /// `rank` or `nic`.
    pub(super) of: &'static str,
    /// `prq`, `umq` or `at_once`.
    pub(super) count: &'static str,
    /// Of the rank or NIC that needs most in each run.
    pub(super) needs: Vec<Point>,
    #[serde(flatten)]
    pub(super) growth: Growth,
}

impl Facts {
    pub(super) fn of(recordings: &BTreeMap<u32, Vec<Recording>>, to: u32) -> Result<Self, Error> {
        let mut needs: BTreeMap<u32, Vec<Need>> = BTreeMap::new();
        for (ranks, run) in
            recordings.iter().flat_map(|(ranks, of)| of.iter().map(move |run| (ranks, run)))
        {
            let run = &run.found;
            if run.iter().all(|trace| trace.header.context != "tagged") {
                return Err(Error::NothingTagged);
            }
            let bar = play::bar(run, 1);
            needs.entry(*ranks).or_default().push(Need::of(
                run,
                &Settings::default(),
                Knob::Pool,
                &bar,
            )?);
            bar.finish_and_clear();
        }
        let scaled = |of: &'static str, units: fn(&Need) -> &[Most]| {
            let needs = &needs;
            COUNTS.map(|(name, count)| {
                let point = |(ranks, needs): (&u32, &Vec<Need>)| {
                    let most = |need| units(need).iter().map(count).max().unwrap_or(0);
                    let each = || needs.iter().map(most);
                    let (least, most) = (each().min().unwrap_or(0), each().max().unwrap_or(0));
                    Point { ranks: *ranks, least, most }
                };
                let points: Vec<_> = needs.iter().map(point).collect();
                Scaled { of, count: name, growth: Growth::of(&points, to), needs: points }
            })
        };
        let all = || recordings.values().flatten();
        let first = all().next().expect("there is a size");
        let size = |(ranks, runs): (&u32, &Vec<Recording>)| Size {
            ranks: *ranks,
            runs: runs.len(),
            nics: needs[ranks][0].nics.len(),
            command: runs[0].found[0].header.origin.command.clone(),
        };
        let lack = |recording: &Recording| {
            let name = recording
                .name
                .as_ref()
                .map_or_else(String::new, |name| format!("{}: ", name.display()));
            recording.found.ranks().lack("trace").map(|lack| format!("{name}{lack}"))
        };
        Ok(Self {
            program: super::program(first),
            to,
            sizes: recordings.iter().map(size).collect(),
            needs: [scaled("rank", |need| &need.ranks), scaled("nic", |need| &need.nics)]
                .into_iter()
                .flatten()
                .collect(),
            placed: first.found.placed_on().is_some(),
            generated: first.found[0].header.libfabric == NO_LIBFABRIC,
            lacks: all().filter_map(lack).collect(),
        })
    }
}
