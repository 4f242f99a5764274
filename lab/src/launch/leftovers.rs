// SPDX-License-Identifier: BSD-2-Clause
//! Finds the counters of ranks that were ended before they wrote a report. These counters are the
//! last values that `tcam show --live` would have shown.
//!
//! An endpoint has its counters in its segment, a file in shared memory. A process that finds the
//! segment of a dead endpoint removes it, unless the job of the endpoint is claimed. A claim is a
//! locked file ([`host::names::claim_of`]) that `tcam` holds during a run.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use host::directory::{self, Directory};
use host::live::Live;
use host::names::{claim_of, job_of};
use host::owner::remove_if_dead;
use nic::report::LiveContext;

use super::endpoints::{counts, left_by, sum};
use crate::results::reports::PATTERN;
use crate::text::{Sheet, count, whole};

/// Maximum time to wait for ranks that are ending.
const ENDING: Duration = Duration::from_secs(2);

/// Maximum number of ranks in the table.
const LINES: usize = 16;

/// The segments that the ranks of a run leave in `/dev/shm`. While the claim exists, other
/// processes do not remove these segments, although they remove other segments of dead processes.
/// Dropping this value removes the segments of processes that have ended.
#[derive(Debug)]
pub(crate) struct Leftovers {
    job: u64,
    /// The locked file of the claim. `None` if it could not be made; then other processes may
    /// remove the segments before this one reads them.
    claim: Option<File>,
}

impl Leftovers {
    /// Makes the claim for a run, before the run starts. The ranks of the run write their reports
    /// to the directory `place`.
    pub(crate) fn claim(place: &Path) -> Self {
        let job = job_of(&place.join(PATTERN).to_string_lossy());
        Self { job, claim: lock_claim(&claim_of(job)).ok() }
    }

    /// Returns a table of the counters of ranks that were ended. Returns `None` if none of them
    /// counted a tagged receive or message, or if the counters cannot be read. Waits up to
    /// [`ENDING`] for ranks that are ending.
    pub(crate) fn counted(&self) -> Option<String> {
        // The table is only printed next to another error, so its own error is ignored.
        let left = left_by(self.job, ENDING).ok()?;
        let has_counted = |live: &Live| live.tagged.posts > 0 || live.tagged.arrivals > 0;
        left.iter().any(has_counted).then(|| table(&left))
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        // Some processes may still be ending. The next process that needs space removes their
        // segments.
        let _ = left_by(self.job, Duration::ZERO);
        if let (Some(_), Ok(directory)) = (self.claim.take(), Directory::open()) {
            let _ = directory.remove(&claim_of(self.job));
        }
    }
}

/// Creates the file of a claim and locks it. Fails if a living process holds the claim.
fn lock_claim(name: &str) -> io::Result<File> {
    match directory::create_locked(name) {
        // A killed process leaves its claim behind.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let _ = remove_if_dead(&Directory::open()?, name);
            directory::create_locked(name)
        }
        claimed => claimed,
    }
}

fn table(left: &[Live]) -> String {
    let header = [
        "rank", "receives", "messages", "unexp.", "table", "host", "spilled", "PRQ mark",
        "UMQ mark",
    ];
    let mut sheet = Sheet::new("", header);
    for live in left.iter().take(LINES) {
        let rank = live.rank.map_or_else(|| "-".to_owned(), |rank| rank.to_string());
        sheet.row([rank].into_iter().chain(cells(&live.tagged)));
    }
    if left.len() > LINES {
        sheet.row((0..header.len()).map(|_| "...".to_owned()));
    }
    if left.len() > 1 {
        let all = sum(left.iter().map(|live| live.tagged));
        sheet.row(["all".to_owned()].into_iter().chain(cells(&all)));
    }
    format!(
        "What {} had counted at the last update before they ended:\n{}\n",
        count(left.len() as u64, "endpoint"),
        sheet.table()
    )
}

fn cells(of: &LiveContext) -> impl Iterator<Item = String> {
    let marks = [of.prq.high_water, of.umq.high_water];
    counts(of).into_iter().chain(marks).map(whole)
}

#[cfg(test)]
mod tests {
    use matching::Tallies;

    use super::*;

    #[test]
    fn ranks_are_summed_and_marks_are_not() {
        let live = |rank| {
            let queue =
                Tallies { table_matches: 5, spills: 2, high_water: 7, ..Tallies::default() };
            let tagged = LiveContext { posts: 10, prq: queue, ..LiveContext::default() };
            Live { rank: Some(rank), tagged, ..Live::default() }
        };
        let words = |text: &str, line: &str| -> Vec<String> {
            let line = text.lines().find(|text| text.trim_start().starts_with(line)).unwrap();
            line.split_whitespace().map(str::to_owned).collect()
        };
        let text = table(&[live(0), live(1)]);
        assert!(text.starts_with("What 2 endpoints had counted"));
        assert_eq!(words(&text, "1")[1..], ["10", "0", "0", "5", "0", "2", "7", "0"]);
        assert_eq!(words(&text, "all")[1..], ["20", "0", "0", "10", "0", "4", "7", "0"]);
        assert!(!table(&[live(0)]).contains("all"));
        let many: Vec<_> = (0..20).map(live).collect();
        assert!(table(&many).contains("...") && !table(&many).contains(" 16 "));
    }

    #[test]
    fn no_table_is_printed_without_leftovers() {
        assert_eq!(Leftovers::claim(Path::new("/nowhere/of/this/name")).counted(), None);
    }
}
