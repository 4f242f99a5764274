// SPDX-License-Identifier: BSD-2-Clause
//! How a program ended, and what tcam exits with.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// Exit code of tcam's own failures, once the command line is read; every other code is the
/// program's.
pub(crate) const OWN_FAILURE: u8 = 125;

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The signal that tcam was to end with.
    pub(crate) caught: Option<i32>,
    /// It took longer than it may, and was ended for that.
    pub(crate) late: bool,
}

impl Ended {
    /// What to exit with: 128 + signal if tcam was to end.
    pub(crate) fn code(self) -> u8 {
        self.caught.map_or_else(|| exit_code(self.status), code_of)
    }
}

/// Exit code as a shell tells it: 128 + signal for a program that was killed.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Exit code for a signal, as a shell tells it.
pub(crate) fn code_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}
