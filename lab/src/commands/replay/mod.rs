// SPDX-License-Identifier: BSD-2-Clause
//! `tcam replay`: replays traces on another table, engine or overflow model, or on several.

pub(crate) mod arguments;
mod once;
mod time;
mod with;

use self::arguments::Replay;
use crate::error::Error;
use crate::settings;

/// Replays the traces. Returns 3 if results are incomplete, otherwise 1 if counts differ from the
/// reports of `--against`, otherwise 0.
pub(crate) fn replay(arguments: &Replay) -> Result<u8, Error> {
    if arguments.operations.is_some() && !arguments.time {
        fail!("--operations: goes only with --time");
    }
    if arguments.csv.is_some() && arguments.with.is_empty() {
        fail!("--csv: goes only with --with");
    }
    settings::note_unused();
    if arguments.time {
        return time::engines(arguments);
    }
    if !arguments.with.is_empty() {
        return with::compare(arguments);
    }
    once::replay(arguments)
}
