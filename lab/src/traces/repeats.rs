// SPDX-License-Identifier: BSD-2-Clause
//! Finds out whether several directories of traces are repeats of one run, or parts of one run.
//!
//! They are repeats if two directories contain the same rank. Otherwise they are parts of one run,
//! such as the directories of two hosts.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use nic::origin::Origin;
use nic::trace::Header;

use super::{Found, Placed, Take, files};
use crate::error::Error;
use crate::results::RunRecord;

/// Finds the recordings and places their ranks on nodes. Repeats of one run form a group, in the
/// order of `names`. Recordings of other programs or other numbers of ranks form other groups. If
/// no rank is in two directories, or if a directory is named twice, there is one recording of all
/// traces. Fails if one directory is a copy of another.
pub(crate) fn groups(
    names: &[PathBuf],
    take: Take,
    placed: &Placed,
) -> Result<Vec<Vec<Recording>>, Error> {
    let each = apart(names, take)?.filter(|each| !have_same_process(each));
    let Some(each) = each else {
        let found = files::find(names, take)?.placed(placed)?;
        return Ok(vec![vec![Recording { name: None, found }]]);
    };
    let mut groups: Vec<Vec<Recording>> = Vec::new();
    for Recording { name, found } in each {
        let recording = Recording { name, found: found.placed(placed)? };
        let same = groups.iter_mut().find(|group| group[0].measured() == recording.measured());
        match same {
            Some(group) => group.push(recording),
            None => groups.push(vec![recording]),
        }
    }
    Ok(groups)
}

/// Returns the directories of the recordings that an earlier `tcam answer` made in a directory.
/// Returns the directory itself if it contains traces or no such recording.
pub(crate) fn runs_in(name: &Path) -> Vec<PathBuf> {
    let numbered = (1..).map(|number: u32| name.join(number.to_string()));
    let runs: Vec<_> = numbered.take_while(|run| RunRecord::beside(run).is_some()).collect();
    let has_none = |name: &Path| files::trace_files(name).is_ok_and(|found| found.is_empty());
    if runs.is_empty() || !has_none(name) { vec![name.to_owned()] } else { runs }
}

/// Reads each directory as a recording. Returns `None` if no rank is in two directories, because
/// then the directories are parts of one run. Also returns `None` if `names` are not several
/// directories.
fn apart(names: &[PathBuf], take: Take) -> Result<Option<Vec<Recording>>, Error> {
    if names.len() < 2 || !names.iter().all(|name| name.is_dir()) {
        return Ok(None);
    }
    let alone = |name: &PathBuf| {
        let found = files::find(std::slice::from_ref(name), take)?;
        Ok(Recording { name: Some(name.clone()), found })
    };
    let each = names.iter().map(alone).collect::<Result<Vec<_>, Error>>()?;
    let ranks = |of: &Recording| of.found.iter().filter_map(|trace| trace.header.rank).collect();
    Ok(overlap(each.iter().map(ranks)).then_some(each))
}

/// Returns true if two traces are of the same context of an endpoint. Then a directory was named
/// twice, or one directory is a copy of another and not a repeat.
fn have_same_process(recordings: &[Recording]) -> bool {
    let mut processes = BTreeSet::new();
    let mut traces = recordings.iter().flat_map(|of| of.found.iter());
    traces.any(|trace| {
        !processes.insert((trace.endpoint(), &trace.header.context, &trace.header.program))
    })
}

/// Returns the name of the directory of the first recording, or `None` if there is one recording of
/// all traces.
pub(crate) fn name_of(group: &[Recording]) -> Option<String> {
    let name = group[0].name.as_ref()?;
    Some(name.file_name().unwrap_or_default().display().to_string())
}

/// Traces of one run.
#[derive(Debug)]
pub(crate) struct Recording {
    /// The directory of the traces; `None` if there is one recording of all traces.
    pub(crate) name: Option<PathBuf>,
    pub(crate) found: Found,
}

impl Recording {
    fn measured(&self) -> Measured<'_> {
        let Header { program, origin, .. } = &self.found[0].header;
        Measured::of(program, origin)
    }
}

/// The properties that repeats have in common.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Measured<'a> {
    program: &'a str,
    command: &'a str,
    mpi: &'a str,
    ranks: Option<u32>,
}

impl<'a> Measured<'a> {
    pub(crate) fn of(program: &'a str, origin: &'a Origin) -> Self {
        // The program of a generated recording contains the seed, which varies between repeats.
        let program = program.split(" --seed ").next().unwrap_or(program);
        Self { program, command: &origin.command, mpi: &origin.mpi, ranks: origin.ranks }
    }
}

/// Returns true if two of these sets have a number in common.
pub(crate) fn overlap(sets: impl Iterator<Item = BTreeSet<u32>>) -> bool {
    let mut all = BTreeSet::new();
    sets.flatten().any(|rank| !all.insert(rank))
}

/// Returns a sentence with the probability that another run exceeds the highest of this number of
/// runs. If nothing changes between runs, all orders of the runs and the next one are equally
/// likely.
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
