// SPDX-License-Identifier: BSD-2-Clause
//! `tcam export`: writes the numbers of an experiment to files, for other programs.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::error::Error;
use crate::experiment::{Experiment, Inputs, Keep, export, operations, repeated};
use crate::file;
use crate::results::{EarlierFiles, output_directory};

/// Writes the numbers of an experiment as CSV or Parquet, for pandas and other programs.
///
/// The files are queues.csv (a line for each rank and queue), kinds.csv (also for each kind of
/// traffic), depths.csv (for each bucket of a histogram), lengths.csv (for each sample of the
/// lengths over time) and origin.csv (origin of the numbers).
///
/// From traces operations.csv has every operation with its recorded time since the run began (ns)
/// and the depth of its search. `number` counts receives as they were posted in their context, and
/// messages as they arrived there, from 0. A cancel has the number of the receive that it removed;
/// a peek, claim, discard or drop has that of the unexpected message that it found. `partner` is
/// the message that a receive matched, or the receive of a message. `traversed` is the number of
/// elements that the host engine passed. `source` and `destination` are the process's numbers of
/// its peers, `source_rank` and `destination_rank` their ranks. `thread` is the thread that did the
/// operation, `device_thread` marks a thread of the provider, and `cpu_ns` is the processor time
/// that the thread had taken (trace_sends=on). `bytes` is the length of a message, or of the buffer
/// of a receive.
///
/// From traces also come the queue statistics that LogGOPSim's tools read: PREFIX-rq-hit.data,
/// -rq-miss.data, -uq-hit.data and -uq-miss.data have a line for each rank, with `depth,time` in ns
/// of each search of the PRQ (rq) or UMQ (uq) that found something (hit) or nothing (miss).
/// -rq-max.data and -uq-max.data have the longest queue of each rank. With a shared pool, depths
/// are those of a separate table.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam export reports
  tcam export tcam-trace --out csv
  tcam export tcam-trace --out frames --parquet")]
pub(crate) struct Export {
    #[command(flatten)]
    from: Inputs,

    /// Directory for the files. Files of an earlier call that are not replaced stay; a message
    /// names them.
    #[arg(long, value_name = "DIR", default_value = "tcam-export")]
    out: PathBuf,

    /// Writes Parquet instead of CSV: the same columns, typed, and much smaller for operations.
    #[arg(long)]
    parquet: bool,

    /// Prefix of the names of LogGOPSim's files, without a path.
    #[arg(long, value_name = "PREFIX", default_value = "qstat", value_parser = name)]
    qstat: String,
}

/// Checks that a prefix has no path; the files go to the directory of `--out`.
fn name(text: &str) -> Result<String, &'static str> {
    if text.contains('/') {
        return Err("a name without a path is expected; --out is where the files go");
    }
    Ok(text.to_owned())
}

/// Writes the files. Returns 0, or 3 if results are incomplete.
pub(crate) fn export(arguments: &Export) -> Result<u8, Error> {
    let expected = "there are several files: give a directory; --parquet says of which kind";
    file::check_kind(&arguments.out, &[], expected)?;
    output_directory::check(&arguments.out)?;
    repeated::write_each(&arguments.from, Keep::Lengths, &arguments.out, |experiment, out| {
        write(arguments, experiment, out)
    })
}

/// Writes the files of one experiment. Returns the exit code.
fn write(arguments: &Export, experiment: &Experiment, out: &Path) -> Result<u8, Error> {
    let earlier = EarlierFiles::of(out, &export::NAMES, &["csv", "parquet"]);
    export::write(experiment, out, arguments.parquet)?;
    if !experiment.traces.is_empty() {
        operations::write(experiment, out, &arguments.qstat, arguments.parquet)?;
    }
    earlier.note("files");
    Ok(experiment.code(arguments.from.take))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_no_paths() {
        assert_eq!(name("qstat").as_deref(), Ok("qstat"));
        for path in ["../evil", "/tmp/evil", "evil/"] {
            assert!(name(path).is_err(), "{path}");
        }
    }
}
