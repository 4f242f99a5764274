// SPDX-License-Identifier: BSD-2-Clause
//! Defines the input of each check of `tcam doctor`, and its findings.

use std::ffi::OsString;

use crate::error::Error;
use crate::launch::Library;

/// The library and the command that are checked.
pub(super) struct Subject<'a> {
    pub(super) library: Result<Library, Error>,
    pub(super) command: &'a [OsString],
    /// Number of hosts that the command uses.
    pub(super) hosts: usize,
}

/// How serious a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// No problem.
    Good,
    /// Works, with a consequence that the user should know.
    Note,
    /// Keeps tcam from working.
    Bad,
}

/// One line of the diagnosis.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    pub(super) what: String,
    /// What to do about it; empty if nothing need be done.
    pub(super) advice: String,
}

/// The diagnosis.
#[derive(Debug, Default)]
pub(super) struct Findings(pub(super) Vec<Finding>);

impl Findings {
    pub(super) fn good(&mut self, what: impl Into<String>) {
        self.add(Verdict::Good, what.into(), String::new());
    }

    pub(super) fn note(&mut self, what: impl Into<String>, advice: impl Into<String>) {
        self.add(Verdict::Note, what.into(), advice.into());
    }

    pub(super) fn bad(&mut self, what: impl Into<String>, advice: impl Into<String>) {
        self.add(Verdict::Bad, what.into(), advice.into());
    }

    fn add(&mut self, verdict: Verdict, what: String, advice: String) {
        self.0.push(Finding { verdict, what, advice });
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Returns the findings of a check.
    pub(in super::super) fn found(check: impl FnOnce(&mut Findings)) -> Vec<Finding> {
        let mut findings = Findings::default();
        check(&mut findings);
        findings.0
    }

    /// Returns the verdict of a check with one finding, or `None` for a check without findings.
    pub(in super::super) fn verdict(check: impl FnOnce(&mut Findings)) -> Option<Verdict> {
        let findings = found(check);
        assert!(findings.len() <= 1, "{findings:?}");
        findings.first().map(|finding| finding.verdict)
    }

    pub(in super::super) fn words(command: &str) -> Vec<OsString> {
        command.split(' ').map(OsString::from).collect()
    }

    pub(in super::super) fn subject(command: &[OsString], hosts: usize) -> Subject<'_> {
        let library = Err(Error::Message(String::new()));
        Subject { library, command, hosts }
    }
}
