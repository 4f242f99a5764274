// SPDX-License-Identifier: BSD-2-Clause
//! Recordings of one program by number of ranks.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::error::Error;
use crate::results::origin;
use crate::traces::node::Placed;
use crate::traces::repeats::{self, Recording};
use crate::traces::take::Take;

/// At least three numbers of ranks, with the repeats of each.
#[derive(Debug)]
pub(super) struct Sizes {
    pub(super) by_ranks: BTreeMap<u32, Vec<Recording>>,
    /// Sizes that were left out: all ranks were placed on one node, which sees no network.
    pub(super) on_one_node: Vec<u32>,
}

impl Sizes {
    /// Reads recordings from directories, and places their ranks on nodes.
    pub(super) fn find(
        names: &[PathBuf],
        take: Take,
        placed: &Placed,
        to: u32,
    ) -> Result<Self, Error> {
        let mut by_ranks: BTreeMap<_, Vec<Recording>> = BTreeMap::new();
        let names: Vec<_> = BTreeSet::from_iter(names).into_iter().cloned().collect();
        let groups = repeats::groups(&names, take)?;
        let name = |of: &Recording| of.name.clone().unwrap_or_else(|| names[0].clone());
        let first = &groups[0][0];
        if let Some(other) = groups.iter().find(|of| program(&of[0]) != program(first)) {
            return Err(Error::OtherProgram { first: name(first), second: name(&other[0]) });
        }
        for group in groups {
            let ranks = ranks(&group[0]);
            if let Some(other) = by_ranks.get(&ranks) {
                let (first, second) = (name(&other[0]), name(&group[0]));
                return Err(Error::SameSize { first, second, ranks });
            }
            let placed = group.into_iter().map(|of| of.placed(placed));
            by_ranks.insert(ranks, placed.collect::<Result<_, _>>()?);
        }
        if let Some((&largest, _)) = by_ranks.last_key_value()
            && to < largest
        {
            return Err(Error::SmallerThanRecorded { to, largest });
        }
        let (one, by_ranks): (BTreeMap<_, _>, BTreeMap<_, _>) =
            by_ranks.into_iter().partition(|(_, runs)| runs[0].found.placed_on() == Some(1));
        let on_one_node: Vec<_> = one.into_keys().collect();
        if by_ranks.len() < 3 {
            let have = listed(by_ranks.keys());
            return Err(Error::FewSizes {
                sizes: match on_one_node.as_slice() {
                    [] => have,
                    one if have.is_empty() => format!("{} on one node", listed(one)),
                    one => format!("{have}, and {} on one node", listed(one)),
                },
            });
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
    ran.unwrap_or_else(|| found.ranks().of())
}

/// Returns what recordings of all sizes have in common: the program, without arguments, and the MPI.
pub(super) fn program(recording: &Recording) -> String {
    let header = &recording.found[0].header;
    let name = origin::name_of(&header.program, &header.origin.command);
    // A generated recording has the number of ranks there.
    let name = name.split(" --ranks ").next().unwrap_or_default();
    match header.origin.mpi.as_str() {
        "" => name.to_owned(),
        mpi => format!("{name}, {mpi}"),
    }
}
