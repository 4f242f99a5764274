// SPDX-License-Identifier: BSD-2-Clause
//! The ranks of a job that have a report or a trace, and the missing ranks. If ranks are missing,
//! the counts are a lower bound for the job.
//!
//! Rejected: a bit for each rank. A report may contain any rank and any number of ranks; a set has
//! no more members than there are reports.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use signal_hook::low_level::signal_name;

use crate::text::{count, whole};

/// Exit code for incomplete results without `--partial`.
pub(crate) const INCOMPLETE: u8 = 3;
/// Largest number of ranges of ranks that are named.
const NAMED: usize = 16;

/// Returns text such as `exit status 139 (SIGSEGV)` for an exit status as a shell reports it.
fn status_text(status: u8) -> String {
    let signal = status.checked_sub(128).map(i32::from).and_then(signal_name);
    let signal = signal.map_or_else(String::new, |name| format!(" ({name})"));
    format!("exit status {status}{signal}")
}

/// The ranks of a job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranks {
    /// The ranks with a report or trace, by the size of their world as they know it. A world is an
    /// `MPI_COMM_WORLD`; spawned ranks form another world, with numbers from 0.
    worlds: BTreeMap<Option<u32>, BTreeSet<u32>>,
    /// Processes without a rank in their report or trace.
    nameless: u32,
    /// Largest number of ranks that one of these processes knows of.
    nameless_of: u32,
    /// Ranks whose counts end before the end of their program.
    cut: BTreeSet<u32>,
    /// Processes without a rank whose counts end before the end of their program.
    nameless_cut: u32,
    /// True if the ranks are of several runs, so that it is unknown which are missing.
    pub(crate) mixed: bool,
    /// True if no rank is missing, because the ranks were generated, or only one was asked for.
    pub(crate) none_missing: bool,
    /// Exit status of the program as a shell reports it, if it was recorded.
    ended: Option<u8>,
}

/// Completeness of results in JSON.
#[derive(Debug, Serialize)]
pub(crate) struct Completeness {
    /// True if no rank is missing or was cut short, and all ranks are of one run.
    pub(crate) complete: bool,
    /// Ranks of the job, as far as known.
    ranks_of: u32,
    /// Missing ranks, first and last of each range.
    missing_ranks: Vec<[u32; 2]>,
    /// Ranks whose counts end before the end of their program, first and last of each range.
    cut_short_ranks: Vec<[u32; 2]>,
    /// Exit status of the program, if it was recorded.
    exit_status: Option<u8>,
}

impl Ranks {
    /// Adds a process, with its rank and the number of ranks that it knows of. Each process must be
    /// added once.
    pub(crate) fn note(&mut self, rank: Option<u32>, of: Option<u32>) {
        match rank {
            Some(rank) => {
                self.worlds.entry(of).or_default().insert(rank);
            }
            None => {
                self.nameless += 1;
                self.nameless_of = self.nameless_of.max(of.unwrap_or(0));
            }
        }
    }

    /// Returns the ranks of each world, and the size of that world.
    fn sizes(&self) -> impl Iterator<Item = (&BTreeSet<u32>, u32)> {
        self.worlds.iter().map(|(of, have)| {
            let highest = have.last().map_or(0, |rank| rank.saturating_add(1));
            (have, of.unwrap_or(0).max(highest))
        })
    }

    /// Notes that the counts of a process end before the end of its program.
    pub(crate) fn note_cut(&mut self, rank: Option<u32>) {
        match rank {
            Some(rank) => {
                self.cut.insert(rank);
            }
            None => self.nameless_cut += 1,
        }
    }

    /// Notes the exit status of the program. If parts of a run differ, the highest status counts.
    pub(crate) fn note_ended(&mut self, ended: Option<u8>) {
        self.ended = self.ended.max(ended);
    }

    /// Returns true if the program is known to have failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed().is_some()
    }

    /// Returns text on how the program ended, if it failed; otherwise `None`.
    fn failed(&self) -> Option<String> {
        self.ended.filter(|status| *status != 0).map(status_text)
    }

    /// Returns the exit code for the case that nothing else failed: [`INCOMPLETE`], or 0 if the
    /// results are complete or `partial` accepts incomplete results.
    pub(crate) fn code(&self, partial: bool) -> u8 {
        if partial || self.are_whole() { 0 } else { INCOMPLETE }
    }

    /// Returns the number of ranks with a report or trace.
    pub(crate) fn present(&self) -> u32 {
        let have = self.worlds.values().map(|have| have.len() as u32);
        have.fold(self.nameless, u32::saturating_add)
    }

    /// Returns the number of ranks of the job, as far as it is known.
    pub(crate) fn job_size(&self) -> u32 {
        let known = self.sizes().map(|(_, of)| of).fold(0, u32::saturating_add);
        let known = known.max(self.nameless_of);
        if self.none_missing { self.present() } else { known.max(self.present()) }
    }

    /// Returns true if no rank is missing or was cut short, and all ranks are of one run.
    pub(crate) fn are_whole(&self) -> bool {
        self.present() == self.job_size() && self.cut_short() == 0 && !self.mixed
    }

    /// Returns the number of ranks whose counts end before the end of their program.
    pub(crate) fn cut_short(&self) -> u32 {
        (self.cut.len() as u32).saturating_add(self.nameless_cut)
    }

    /// Returns the missing ranks, first and last of each range; empty if their numbers are unknown.
    fn missing(&self) -> Vec<[u32; 2]> {
        if self.none_missing || self.nameless > 0 {
            return Vec::new();
        }
        let mut ranges = Vec::new();
        for (have, of) in self.sizes() {
            let mut next = 0;
            for &rank in have.iter().chain([&of]) {
                if rank > next {
                    ranges.push([next, rank - 1]);
                }
                next = rank.saturating_add(1);
            }
        }
        ranges
    }

    /// Returns text such as `8 ranks`, `3 of 8 ranks`, `8 ranks, 1 cut short` or `8 ranks, FAILED
    /// (exit status 1)`.
    pub(crate) fn count(&self) -> String {
        let cut = match self.cut_short() {
            0 => String::new(),
            cut => format!(", {} cut short", whole(u64::from(cut))),
        };
        let failed = self.failed().map_or_else(String::new, |how| format!(", FAILED ({how})"));
        self.present_text() + &cut + &failed
    }

    fn present_text(&self) -> String {
        let of = count(u64::from(self.job_size()), "rank");
        match self.job_size() - self.present() {
            0 => of,
            _ => format!("{} of {of}", whole(u64::from(self.present()))),
        }
    }

    /// Returns a sentence on missing or incomplete ranks and on a failed program, or `None` if
    /// there is nothing to say. `source` is the kind of file that ranks lack: a report or a trace.
    pub(crate) fn lack(&self, source: &str) -> Option<String> {
        if self.are_whole() {
            return self.failed().map(|how| {
                format!("FAILED, the program ended with {how}: it may not have done all its work")
            });
        }
        let mut lacks = Vec::new();
        if self.present() < self.job_size() {
            let missing = self.missing();
            let of = match missing.as_slice() {
                [] => String::new(),
                ranges => format!(": no {source} of {}", named(ranges)),
            };
            lacks.push(format!("{}{of}", self.present_text()));
        }
        if self.cut_short() > 0 {
            let of = match ranges(&self.cut).as_slice() {
                [] => count(u64::from(self.cut_short()), "nameless rank"),
                ranges => named(ranges),
            };
            lacks.push(format!("the counts of {of} were cut short"));
        }
        if self.mixed {
            lacks.push("ranks of several runs".to_owned());
        }
        lacks.extend(self.failed().map(|how| format!("the program ended with {how}")));
        Some(format!("INCOMPLETE, {}; every count is a lower bound", lacks.join("; ")))
    }

    /// Returns the completeness for JSON.
    pub(crate) fn completeness(&self) -> Completeness {
        Completeness {
            complete: self.are_whole(),
            ranks_of: self.job_size(),
            missing_ranks: self.missing(),
            cut_short_ranks: ranges(&self.cut),
            exit_status: self.ended,
        }
    }
}

/// Returns the first and the last number of each range of consecutive numbers.
pub(crate) fn ranges(of: &BTreeSet<u32>) -> Vec<[u32; 2]> {
    let mut ranges: Vec<[u32; 2]> = Vec::new();
    for &rank in of {
        match ranges.last_mut() {
            Some([_, last]) if last.checked_add(1) == Some(rank) => *last = rank,
            _ => ranges.push([rank, rank]),
        }
    }
    ranges
}

/// Returns text such as `rank 3` or `ranks 0-3 and 6`.
pub(crate) fn named(ranges: &[[u32; 2]]) -> String {
    let one = |[first, last]: &[u32; 2]| match last - first {
        0 => first.to_string(),
        _ => format!("{first}-{last}"),
    };
    let mut words: Vec<_> = ranges.iter().take(NAMED).map(one).collect();
    let others: u64 =
        ranges.iter().skip(NAMED).map(|[first, last]| u64::from(last - first) + 1).sum();
    if others > 0 {
        words.push(count(others, "other"));
    }
    let s = if matches!(ranges, [[first, last]] if first == last) { "" } else { "s" };
    match words.split_last() {
        Some((last, [])) => format!("rank{s} {last}"),
        Some((last, all)) => format!("rank{s} {} and {last}", all.join(", ")),
        None => "no rank".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(have: impl IntoIterator<Item = u32>, of: Option<u32>) -> Ranks {
        let mut ranks = Ranks::default();
        have.into_iter().for_each(|rank| ranks.note(Some(rank), of));
        ranks
    }

    #[test]
    fn ranks_above_the_highest_are_missing_too() {
        assert_eq!(ranks(0..8, Some(8)).lack("report"), None);
        assert_eq!(ranks(0..8, None).lack("report"), None);
        let some = ranks([1, 2, 5], Some(16));
        assert_eq!(some.count(), "3 of 16 ranks");
        assert_eq!(
            some.lack("report").unwrap(),
            "INCOMPLETE, 3 of 16 ranks: no report of ranks 0, 3-4 and 6-15; every count is a lower \
             bound"
        );
        assert_eq!(some.missing(), [[0, 0], [3, 4], [6, 15]]);
        // If the number of ranks is unknown, only the gaps are missing.
        assert_eq!(ranks([0, 3], None).missing(), [[1, 2]]);
        // More ranks than the job has, as of several programs.
        assert_eq!(ranks(0..4, Some(2)).lack("report"), None);
        // Spawned ranks do not replace ranks of the same numbers.
        let mut spawned = ranks(0..2, Some(2));
        (1..4).for_each(|rank| spawned.note(Some(rank), Some(4)));
        assert_eq!((spawned.count().as_str(), spawned.missing()), ("5 of 6 ranks", vec![[0, 0]]));
    }

    #[test]
    fn counts_that_were_cut_short_are_incomplete() {
        let mut all = ranks(0..3, Some(3));
        all.note_cut(Some(1));
        assert_eq!(
            all.lack("trace").unwrap(),
            "INCOMPLETE, the counts of rank 1 were cut short; every count is a lower bound"
        );
        assert_eq!(all.count(), "3 ranks, 1 cut short");
        let mut nameless = Ranks::default();
        nameless.note(None, None);
        nameless.note(None, Some(4));
        assert_eq!(
            nameless.lack("report").unwrap(),
            "INCOMPLETE, 2 of 4 ranks; every count is a lower bound"
        );
        nameless.note_cut(None);
        assert!(
            nameless
                .lack("report")
                .unwrap()
                .contains("the counts of 1 nameless rank were cut short")
        );
    }

    #[test]
    fn a_failed_program_is_reported_first_and_in_titles() {
        let mut all = ranks(0..2, Some(2));
        all.note_ended(None);
        all.note_ended(Some(0));
        assert_eq!((all.lack("trace"), all.count().as_str()), (None, "2 ranks"));
        all.note_ended(Some(1));
        assert_eq!(
            all.lack("trace").unwrap(),
            "FAILED, the program ended with exit status 1: it may not have done all its work"
        );
        assert_eq!(all.count(), "2 ranks, FAILED (exit status 1)");
        assert_eq!(all.completeness().exit_status, Some(1));
        assert_eq!(all.code(false), 0, "the counts are complete");
        let mut some = ranks([1], Some(2));
        some.note_ended(Some(139));
        assert_eq!(
            some.lack("report").unwrap(),
            "INCOMPLETE, 1 of 2 ranks: no report of rank 0; the program ended with exit status 139 \
             (SIGSEGV); every count is a lower bound"
        );
    }

    #[test]
    fn many_and_absurd_ranks_are_named_in_a_line() {
        let odd = ranks((0..100).map(|rank| 2 * rank), Some(u32::MAX));
        assert!(odd.lack("report").unwrap().contains("29, 31 and 4,294,967,179 others"));
        let last = ranks([u32::MAX], None);
        assert_eq!((last.job_size(), last.missing()), (u32::MAX, vec![[0, u32::MAX - 1]]));
        let mut made = ranks([5], Some(9));
        made.none_missing = true;
        assert_eq!((made.lack("trace"), made.job_size()), (None, 1));
    }
}
