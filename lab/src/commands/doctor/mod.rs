// SPDX-License-Identifier: BSD-2-Clause
//! `tcam doctor`: reasons that keep tcam from working on this machine.

mod checks;
mod finding;
mod network;
mod program;
mod ranks;
mod software;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use crate::launch::library::Library;
use finding::{Finding, Verdict};

/// Prints why the provider is not found or not chosen, and what to do.
///
/// Checks the library, libfabric, the MPI of the launcher and its program, /dev/shm, the kernel's
/// copy between processes, and the environment. If the command names several hosts, it also checks
/// what these need. The launcher starts a shell instead of the program, to check whether the ranks
/// of a host share /dev/shm. Nothing is changed.
///
/// The exit code is 1 if something keeps tcam from working.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam doctor
  tcam doctor -- mpiexec -n 4 ./app
  tcam doctor -- mpiexec -hosts a,b -n 4 ./app")]
pub(crate) struct Doctor {
    /// The provider to check, or the directory that holds it.
    #[arg(long, value_name = "PATH")]
    pub(crate) provider: Option<PathBuf>,

    /// The command to be checked, with its launcher.
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Prints every finding. Returns 1 if one of them is bad, else 0.
pub(crate) fn doctor(arguments: &Doctor) -> u8 {
    let command: &[OsString] = &arguments.command;
    // A wrong parameter is a reason why the provider is not offered, so it comes first.
    let mut findings = checks::parameters();
    findings.push(checks::filter());
    match Library::find(arguments.provider.as_deref()) {
        Ok(library) => {
            findings.push(checks::loadable(&library));
            findings.push(checks::provider_path(&library));
            findings.extend(software::fi_info(&library));
        }
        Err(error) => findings.push(Finding::bad(
            format!("provider: {error}"),
            "without the library nothing else can work",
        )),
    }
    findings.extend(software::mpi(command));
    let hosts = network::hosts(command);
    findings.extend(network::network(command, hosts));
    findings.push(checks::shared_memory(command, hosts));
    findings.extend(ranks::share_memory(command));
    findings.extend(checks::directory());
    findings.push(checks::kernel_copy());
    findings.push(checks::processor());
    findings.extend(checks::peers(command));
    findings.extend(checks::cores(command, hosts));
    for finding in &findings {
        finding.print();
    }
    let bad = findings.iter().filter(|finding| finding.verdict == Verdict::Bad).count();
    if bad == 0 {
        println!("Nothing here keeps tcam from working.");
    } else {
        println!("{bad} of these must be put right first.");
    }
    u8::from(bad > 0)
}
