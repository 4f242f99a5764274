// SPDX-License-Identifier: BSD-2-Clause
//! `tcam doctor`: looks for reasons that keep tcam from working on this machine.

mod findings;
mod hosts;
mod machine;
mod mpi;
mod provider;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use self::findings::{Finding, Findings, Subject, Verdict};
use crate::launch::Library;

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

/// A check, which adds its findings.
type Check = fn(&Subject<'_>, &mut Findings);

/// All checks, in the order of their findings. A wrong parameter is a reason why the provider is
/// not offered, so it comes first.
const CHECKS: [Check; 13] = [
    machine::parameters,
    provider::filter,
    provider::library,
    provider::fi_info,
    mpi::mpi,
    hosts::network,
    machine::shared_memory,
    hosts::share_memory,
    machine::directory,
    machine::kernel_copy,
    machine::processor,
    machine::peers,
    machine::cores,
];

/// Prints every finding. Returns 1 if one of them is bad, else 0.
pub(crate) fn doctor(arguments: &Doctor) -> u8 {
    let subject = Subject {
        library: Library::find(arguments.provider.as_deref()),
        command: &arguments.command,
        hosts: hosts::number(&arguments.command),
    };
    let mut findings = Findings::default();
    CHECKS.iter().for_each(|check| check(&subject, &mut findings));
    for Finding { verdict, what, advice } in &findings.0 {
        let mark = match verdict {
            Verdict::Good => "✔",
            Verdict::Note => "•",
            Verdict::Bad => "✘",
        };
        println!("{mark} {what}");
        if !advice.is_empty() {
            println!("  → {advice}");
        }
    }
    let bad = findings.0.iter().filter(|finding| finding.verdict == Verdict::Bad).count();
    if bad == 0 {
        println!("No problem was found that keeps tcam from working.");
    } else {
        println!("{bad} with ✘: fix this first, because tcam cannot work otherwise.");
    }
    u8::from(bad > 0)
}
