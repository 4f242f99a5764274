// SPDX-License-Identifier: BSD-2-Clause
//! Origin of the counts in a report or trace: the facts that a reader needs to repeat the run.

use serde::{Deserialize, Serialize};

use crate::plain;

/// Maximum length of [`Origin::command`] in bytes.
const COMMAND: usize = 1024;

/// The run in which the counts were made.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Origin {
    /// Command line of the process.
    pub command: String,
    /// Name and version of the MPI, such as `MPICH 5.0.2`; empty without an MPI.
    pub mpi: String,
    /// Ranks of the job, if the launcher sets the number.
    pub ranks: Option<u32>,
    /// A number that all processes of one run of tcam share, computed from the paths of their
    /// reports and traces. If the user chooses these paths, several runs may share the number.
    pub job: Option<u64>,
    /// Processors of the host that are online.
    pub cores: Option<u32>,
    /// Processors that the process may run on by affinity and cpuset, such as `0-3,8`; empty if
    /// unknown. A launcher may bind each rank to different processors.
    pub processors: String,
    /// When the endpoint was opened, in seconds since 1970.
    pub started_s: u64,
}

impl Origin {
    /// Sets the command line, cut after 1,024 bytes.
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
        origin.set_command(&format!("x{}", "ä".repeat(COMMAND)));
        assert_eq!(origin.command, format!("x{} ...", "ä".repeat(COMMAND / 2 - 1)));
        let full = "x".repeat(COMMAND);
        origin.set_command(&full);
        assert_eq!(origin.command, full);
    }
}
