// SPDX-License-Identifier: BSD-2-Clause
//! A file beside the traces with what the ranks of a recorded run do not know.

use std::fs;
use std::path::Path;
use std::thread::available_parallelism;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::file;

/// The file in a directory of traces.
const NAME: &str = "launch";

/// How a run was started and how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// Exit status of the launcher, 128 + signal if it was killed.
    pub(crate) exit_status: u8,
    /// Processors that the launcher could run on, by affinity and control group.
    pub(crate) processors: Option<usize>,
}

impl Launch {
    /// Writes what is known of a run that ended like this. Its ranks had the processors of this
    /// process, unless the launcher gave them fewer.
    pub(crate) fn write(directory: &Path, exit_status: u8) -> Result<(), Error> {
        let processors = available_parallelism().ok().map(usize::from);
        let text = serde_json::to_string(&Self { exit_status, processors }).map_err(Error::Json)?;
        file::write(&directory.join(NAME), text)
    }

    /// Reads it; earlier versions wrote none.
    pub(super) fn read(directory: &Path) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(directory.join(NAME)).ok()?).ok()
    }
}
