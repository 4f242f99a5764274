// SPDX-License-Identifier: BSD-2-Clause
//! Several recordings of one program: repeats of a measurement, not more ranks.
//!
//! Directories are repeats if a rank stands in two of them; otherwise they are parts of one run,
//! such as those of two hosts.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::error::Error;
use crate::traces::{self, Found, Take};

/// The recordings named, each by itself.
pub(crate) fn find(names: &[PathBuf], take: Take) -> Result<Vec<Found>, Error> {
    if names.len() < 2 || !names.iter().all(|name| name.is_dir()) {
        return Ok(vec![traces::find(names, take)?]);
    }
    let each = names.iter().map(|name| traces::find(std::slice::from_ref(name), take));
    let each = each.collect::<Result<Vec<_>, _>>()?;
    let ranks = |found: &Found| found.iter().filter_map(|trace| trace.header.rank).collect();
    if overlap(each.iter().map(ranks)) { Ok(each) } else { Ok(vec![traces::find(names, take)?]) }
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
