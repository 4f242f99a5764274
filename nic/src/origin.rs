// SPDX-License-Identifier: BSD-2-Clause
//! Where counts come from: what a reader needs to know to repeat the run, in reports and traces.

use serde::{Deserialize, Serialize};

use crate::plain;

/// Bytes of [`Origin::command`] that are kept.
const COMMAND: usize = 1024;

/// What the process that counted says of its run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// Its command line.
    pub command: String,
    /// What its MPI calls itself, such as `MPICH 5.0.2`; nothing outside of MPI.
    pub mpi: String,
    /// Ranks of the job, when the launcher tells.
    pub ranks: Option<u32>,
    /// The same for all processes of one run of tcam, and for no others: from where they write their
    /// reports and traces to. By hand that is the same from run to run.
    pub job: Option<u64>,
    /// Processors of the host that are online.
    pub cores: Option<u32>,
    /// The processors that it may run on, such as `0-3,8`, by affinity and cpuset; empty if unknown.
    /// A launcher may bind each rank to others.
    pub processors: String,
    /// When the endpoint was opened, seconds since 1970.
    pub started_s: u64,
}

impl Origin {
    /// Sets the command line, of which a long one is cut.
    pub fn set_command(&mut self, words: &str) {
        let mut end = words.len().min(COMMAND);
        while !words.is_char_boundary(end) {
            end -= 1;
        }
        words[..end].clone_into(&mut self.command);
        if end < words.len() {
            self.command += " ...";
        }
    }

    pub(crate) fn make_plain(&mut self) {
        plain::make_plain([&mut self.command, &mut self.mpi, &mut self.processors]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_commands_are_cut_at_a_letter() {
        let mut origin = Origin::default();
        origin.set_command("app --x");
        assert_eq!(origin.command, "app --x");
        origin.set_command(&"ä".repeat(COMMAND));
        assert_eq!(origin.command.chars().count(), COMMAND / 2 + 4);
    }
}
