// SPDX-License-Identifier: BSD-2-Clause
//! Runs of a sweep that failed, and the error that the sweep ends with.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;

/// Number of lines of a failed program's output that are shown.
const TAIL: usize = 20;

/// A run that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The table sizes and the number of the run.
    pub(crate) which: String,
    /// The larger of both table sizes.
    pub(crate) size: usize,
    /// How the program ended.
    pub(crate) why: String,
    pub(crate) code: u8,
    pub(crate) log: PathBuf,
    /// True if the program ended with 0, but no rank wrote a report.
    pub(crate) silent: bool,
}

/// Returns the error of the sweep: all sizes that failed, with the exit code and log of the first.
pub(crate) fn failure_of(failed: &[Failure]) -> Result<u8, Error> {
    let Some(first) = failed.first() else { return Ok(0) };
    Err(Error::Program {
        what: told(failed).join("\n"),
        code: first.code,
        tail: tail(&first.log)?,
        log: first.log.clone(),
    })
}

/// Returns a line for each reason, with the runs that failed for it.
pub(crate) fn told(failed: &[Failure]) -> Vec<String> {
    let mut ways: Vec<(&str, Vec<&str>)> = Vec::new();
    for failure in failed {
        match ways.iter_mut().find(|(why, _)| *why == failure.why) {
            Some((_, which)) => which.push(&failure.which),
            None => ways.push((&failure.why, vec![&failure.which])),
        }
    }
    ways.into_iter().map(|(why, which)| format!("{}: {why}", which.join("; "))).collect()
}

/// The last lines of a log.
fn tail(log: &Path) -> Result<String, Error> {
    let text = fs::read(log).map_err(Error::io(log))?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_that_failed_is_named_and_the_first_gives_the_code() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        fs::write(&log, "why").unwrap();
        let failure = |which: &str, why: &str, code| {
            let (which, why, log) = (which.to_owned(), why.to_owned(), log.clone());
            Failure { which, size: 0, why, code, log, silent: false }
        };
        assert_eq!(failure_of(&[]).unwrap(), 0);
        let failed =
            [failure("PRQ 1", "bad", 3), failure("PRQ 2", "worse", 4), failure("PRQ 4", "bad", 3)];
        let error = failure_of(&failed).unwrap_err();
        assert!(matches!(error, Error::Program { code: 3, .. }));
        let text = error.to_string();
        assert!(text.contains("\nPRQ 1; PRQ 4: bad\nPRQ 2: worse\n"), "{text}");
        assert!(text.ends_with("why"), "{text}");
    }

    #[test]
    fn the_tail_is_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let lines: Vec<_> = (0..50).map(|line| line.to_string()).collect();
        fs::write(&log, lines.join("\n")).unwrap();
        assert!(tail(&log).unwrap().starts_with("30\n"));
        fs::write(&log, "").unwrap();
        assert_eq!(tail(&log).unwrap(), "");
    }
}
