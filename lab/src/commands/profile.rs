// SPDX-License-Identifier: BSD-2-Clause
//! `tcam profile`: counts the elements that each source added to the queues of each rank, for
//! `tcam cluster`.

use std::path::PathBuf;

use clap::Args;

use crate::error::Error;
use crate::experiment::{Experiment, Inputs, Keep, SourceProfile, profile};
use crate::file;
use crate::hint::quoted;

/// Writes how many elements each source added to the queues of each rank, for tcam cluster.
///
/// Elements are posted receives that waited and messages that were unexpected, in any table or
/// engine. Any-source receives are not attributed to a source. Sources are the numbers that the
/// device gives to peers, which need not be their ranks. Another run with the same MPI has the same
/// numbers.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam profile tcam-trace
  tcam profile reports --out app.profile
  tcam cluster app.profile --out app.clusters
  tcam run --set host_engine=kmeans --set clusters=$PWD/app.clusters -- mpiexec -n 64 ./app")]
pub(crate) struct MakeProfile {
    #[command(flatten)]
    from: Inputs,

    /// Output file; - is standard output.
    #[arg(long, value_name = "FILE", default_value = "tcam.profile")]
    out: PathBuf,
}

/// Writes the profile. Returns 0, or 3 if results are incomplete.
pub(crate) fn profile(arguments: &MakeProfile) -> Result<u8, Error> {
    file::check_kind(&arguments.out, &[], "a profile is written: give a name such as app.profile")?;
    profile::check_out(&arguments.out, profile::FORMAT)?;
    let experiment = Experiment::read(&arguments.from, Keep::Added)?;
    let profile = SourceProfile::of(&experiment).ok_or_else(|| {
        let why = "no element has a source: every receive is from any source, or a tcam wrote this \
                   that did not count sources yet; record the program anew";
        Error::file(&arguments.from.names[0], why)
    })?;
    let text = profile.text();
    if arguments.out.as_os_str() == "-" {
        print!("{text}");
        return Ok(experiment.code(arguments.from.take));
    }
    file::write(&arguments.out, text)?;
    if let Some(lack) = experiment.sum.lack() {
        println!("{lack}");
    }
    println!("{}", experiment.title());
    println!("\n{}", profile.sheet().terminal());
    let out = quoted(&arguments.out);
    println!("The profile is in {out}; `tcam cluster {out}` makes clusters from it");
    Ok(experiment.silent_code(arguments.from.take))
}
