// SPDX-License-Identifier: BSD-2-Clause
//! `tcam sweep`: draws the capacity curve of a program, from one run or one replay for each table
//! size.

pub(crate) mod arguments;
mod of_program;
mod of_traces;
mod show;

use self::arguments::Sweep;
use crate::error::Error;

/// Sweeps the sizes of the tables over runs of the program, or over replays of its traces. Returns
/// the exit code.
pub(crate) fn sweep(arguments: &Sweep) -> Result<u8, Error> {
    match arguments.trace.is_empty() {
        true => of_program::sweep(arguments),
        false => of_traces::sweep(arguments),
    }
}
