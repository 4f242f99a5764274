// SPDX-License-Identifier: BSD-2-Clause
//! Several recordings of one program: repeats of a measurement, not more ranks.
//!
//! Directories are repeats if a rank stands in two of them; otherwise they are parts of one run,
//! such as those of two hosts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use nic::origin::Origin;
use nic::trace::Header;

use super::files::{self, Found};
use super::node::Placed;
use super::take::Take;
use crate::error::Error;

/// The recordings named, each by itself and once, with their ranks on nodes.
///
/// # Errors
/// They are of different programs, or of the same processes.
pub(crate) fn find(names: &[PathBuf], take: Take, placed: &Placed) -> Result<Vec<Found>, Error> {
    each(names, take)?.into_iter().map(|found| found.placed(placed)).collect()
}

fn each(names: &[PathBuf], take: Take) -> Result<Vec<Found>, Error> {
    if names.len() < 2 || !names.iter().all(|name| name.is_dir()) {
        return Ok(vec![files::find(names, take)?]);
    }
    let each = names.iter().map(|name| files::find(std::slice::from_ref(name), take));
    let each = each.collect::<Result<Vec<_>, _>>()?;
    let ranks = |found: &Found| found.iter().filter_map(|trace| trace.header.rank).collect();
    if !overlap(each.iter().map(ranks)) {
        return Ok(vec![files::find(names, take)?]);
    }
    let told = each.iter().map(|found| {
        let Header { program, origin, .. } = &found[0].header;
        Measured::of(program, origin)
    });
    check(names, &told.collect::<Vec<_>>())?;
    let mut processes = BTreeMap::new();
    for trace in each.iter().flat_map(|found| found.iter()) {
        let of = (trace.endpoint(), &trace.header.context, &trace.header.program);
        if let Some(first) = processes.insert(of, &trace.path) {
            let (first, second) = (first.clone(), trace.path.clone());
            return Err(Error::SameEndpoint { first, second });
        }
    }
    Ok(each)
}

/// The recordings named, each with the directory that it is alone in. Repeats of one run are together,
/// in order; recordings of other programs or of other numbers of ranks are apart.
pub(crate) fn groups(names: &[PathBuf], take: Take) -> Result<Vec<Vec<Recording>>, Error> {
    let alone = |name: &PathBuf| {
        files::find(std::slice::from_ref(name), take)
            .map(|found| Recording { name: Some(name.clone()), found })
    };
    let ranks = |of: &Recording| of.found.iter().filter_map(|trace| trace.header.rank).collect();
    let each = match names.len() > 1 && names.iter().all(|name| name.is_dir()) {
        true => names.iter().map(alone).collect::<Result<Vec<_>, _>>()?,
        false => Vec::new(),
    };
    let together = || Ok(vec![vec![Recording { name: None, found: files::find(names, take)? }]]);
    if !overlap(each.iter().map(ranks)) {
        return together();
    }
    let mut processes = BTreeSet::new();
    let mut traces = each.iter().flat_map(|of| of.found.iter());
    if !traces.all(|trace| {
        processes.insert((
            trace.endpoint(),
            trace.header.context.clone(),
            trace.header.program.clone(),
        ))
    }) {
        return together();
    }
    let mut groups: Vec<Vec<Recording>> = Vec::new();
    for recording in each {
        let same = groups.iter_mut().find(|group| group[0].measured() == recording.measured());
        match same {
            Some(group) => group.push(recording),
            None => groups.push(vec![recording]),
        }
    }
    Ok(groups)
}

/// The name of the directory of the first of some recordings, if several were named.
pub(crate) fn name_of(group: &[Recording]) -> Option<String> {
    let name = group[0].name.as_ref()?;
    Some(name.file_name().unwrap_or_default().display().to_string())
}

/// Traces of one run, and the directory that they are alone in, if several were named.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) name: Option<PathBuf>,
    pub(crate) found: Found,
}

impl Recording {
    /// The same with its ranks on nodes.
    pub(crate) fn placed(self, placed: &Placed) -> Result<Self, Error> {
        Ok(Self { found: self.found.placed(placed)?, ..self })
    }

    fn measured(&self) -> Measured<'_> {
        let Header { program, origin, .. } = &self.found[0].header;
        Measured::of(program, origin)
    }
}

/// What must be the same for runs to be repeats.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Measured<'a> {
    program: &'a str,
    command: &'a str,
    mpi: &'a str,
    ranks: Option<u32>,
}

impl<'a> Measured<'a> {
    pub(crate) fn of(program: &'a str, origin: &'a Origin) -> Self {
        // Generated ones tell the seed there, which is what varies.
        let program = program.split(" --seed ").next().unwrap_or(program);
        Self { program, command: &origin.command, mpi: &origin.mpi, ranks: origin.ranks }
    }
}

/// Refuses runs of different programs.
pub(crate) fn check(names: &[PathBuf], measured: &[Measured<'_>]) -> Result<(), Error> {
    match measured.iter().position(|of| *of != measured[0]) {
        None => Ok(()),
        Some(other) => {
            Err(Error::NoRepeats { first: names[0].clone(), second: names[other].clone() })
        }
    }
}

/// Whether a number stands in two of these.
pub(crate) fn overlap(sets: impl Iterator<Item = BTreeSet<u32>>) -> bool {
    let mut all = BTreeSet::new();
    for set in sets {
        let before = all.len();
        let of_set = set.len();
        all.extend(set);
        if all.len() < before + of_set {
            return true;
        }
    }
    false
}

/// What the highest of some runs says of the next one: all orders of as many and one more are
/// equally likely, if nothing changed between them.
pub(crate) fn exceeded(runs: usize) -> String {
    format!("another run exceeds the highest of {runs} with probability at most 1/{}", runs + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_in_two_recordings_make_them_repeats() {
        let sets = |of: &[&[u32]]| overlap(of.iter().map(|set| set.iter().copied().collect()));
        assert!(!sets(&[&[0, 1], &[2, 3], &[]]));
        assert!(sets(&[&[0, 1], &[2], &[1]]));
    }
}
