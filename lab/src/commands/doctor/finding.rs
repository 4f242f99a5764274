// SPDX-License-Identifier: BSD-2-Clause
//! The result of a check of `tcam doctor`.

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

impl Finding {
    pub(super) fn good(what: impl Into<String>) -> Self {
        Self { verdict: Verdict::Good, what: what.into(), advice: String::new() }
    }

    pub(super) fn note(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Note, what: what.into(), advice: advice.into() }
    }

    pub(super) fn bad(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { verdict: Verdict::Bad, what: what.into(), advice: advice.into() }
    }

    pub(super) fn print(&self) {
        let mark = match self.verdict {
            Verdict::Good => "✔",
            Verdict::Note => "•",
            Verdict::Bad => "✘",
        };
        println!("{mark} {}", self.what);
        if !self.advice.is_empty() {
            println!("  → {}", self.advice);
        }
    }
}
