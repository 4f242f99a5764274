// SPDX-License-Identifier: BSD-2-Clause
//! How a program ended, and the exit code of tcam.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Exit code of tcam's own failures after the command line was read. Every other code is that of
/// the program.
pub(crate) const OWN_FAILURE: u8 = 125;

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The signal that asked tcam to end.
    pub(crate) caught: Option<i32>,
    /// True if the program took too long and was ended for that.
    pub(crate) late: bool,
}

impl Ended {
    /// Returns the exit code: 128 + signal if tcam was asked to end, else that of the program.
    pub(crate) fn code(self) -> u8 {
        self.caught.map_or_else(|| exit_code(self.status), code_of)
    }
}

/// Returns the exit code as a shell reports it: 128 + signal for a program that a signal ended.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Returns the exit code for a signal, as a shell reports it.
pub(crate) fn code_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
