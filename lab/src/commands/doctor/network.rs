// SPDX-License-Identifier: BSD-2-Clause
//! Checks of a command that starts ranks on several hosts.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

use super::finding::Finding;
use super::program;
use crate::file;
use crate::launch::launcher;
use crate::settings::Settings;
use crate::text::numbers::count;

/// Options of launchers that list hosts: `a,b` or `a:16,b:16`.
const LISTS: &[&str] = &["-hosts", "-host", "--host", "-H", "-w", "--nodelist"];
/// Options that name a file with one host per line.
const FILES: &[&str] = &["-f", "-hostfile", "--hostfile", "-machinefile", "--machinefile"];
/// Options of srun that give the number of hosts.
const COUNTS: &[&str] = &["-N", "--nodes"];
/// The number of hosts in an allocation of Slurm.
const ALLOCATED: &str = "SLURM_JOB_NUM_NODES";

/// The value of the first of these options, `--name VALUE` or `--name=VALUE`.
fn value<'a>(words: &[&'a str], names: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| match word.split_once('=') {
        Some((name, value)) if names.contains(&name) => Some(value),
        None if names.contains(word) => words.get(at + 1).copied(),
        _ => None,
    })
}

/// Returns true if srun is the launcher.
fn is_srun(command: &[OsString]) -> bool {
    let is = |word: &OsString| Path::new(word).file_name().is_some_and(|name| name == "srun");
    launcher::in_command(command).is_none() && command.iter().any(is)
}

/// Returns the launcher with its options, without the program, which may have an option `-f` too.
/// The program is the first word that is linked to an MPI, or else the first that can be run and is
/// not the value of an option.
fn of_launcher(command: &[OsString]) -> &[OsString] {
    let is_launcher = |word: &OsString| {
        launcher::in_command(std::slice::from_ref(word)).is_some()
            || is_srun(std::slice::from_ref(word))
    };
    let start = command.iter().position(is_launcher).map_or(0, |at| at + 1);
    let behind = &command[start..];
    let is_value = |at: usize| at > 0 && behind[at - 1].as_encoded_bytes().starts_with(b"-");
    let end = program::position(behind).or_else(|| {
        (0..behind.len()).find(|&at| !is_value(at) && launcher::find(&behind[at]).is_ok())
    });
    &command[..start + end.unwrap_or(behind.len())]
}

/// Returns the number of hosts that the options of a launcher name.
fn named(command: &[OsString], read: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let words: Vec<_> = command.iter().filter_map(|word| word.to_str()).collect();
    let distinct = |names: &mut dyn Iterator<Item = &str>| {
        let name = |entry: &str| entry.split(':').next().unwrap_or_default().trim().to_owned();
        names.map(name).filter(|name| !name.is_empty()).collect::<BTreeSet<_>>().len()
    };
    if is_srun(command)
        && let Some(nodes) = value(&words, COUNTS)
    {
        // `2-4` means at least two.
        return nodes.split('-').next()?.parse().ok();
    }
    if let Some(list) = value(&words, LISTS) {
        return Some(distinct(&mut list.split(',')));
    }
    let text = read(value(&words, FILES)?)?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    Some(distinct(&mut lines.filter_map(|line| line.split_whitespace().next())))
}

/// Returns the number of hosts that a command uses, as its options or Slurm give it; otherwise 1.
pub(super) fn hosts(command: &[OsString]) -> usize {
    let starts = is_srun(command) || launcher::in_command(command).is_some();
    let named = named(of_launcher(command), |path| {
        host::regular::read_text(path.as_ref(), file::LONGEST).ok()
    });
    let allocated = || std::env::var(ALLOCATED).ok()?.parse().ok();
    named.or_else(|| allocated().filter(|_| starts)).unwrap_or(1)
}

/// Checks what a job on several hosts needs. Returns nothing for one host.
pub(super) fn network(command: &[OsString], hosts: usize) -> Vec<Finding> {
    if hosts < 2 {
        return Vec::new();
    }
    let mut findings = vec![Finding::note(
        format!("network: ranks on {}", count(hosts as u64, "host")),
        "the provider, the program and the DIR of reports must have the same path on all; \
         docs/clusters.md says more",
    )];
    let Ok(params) = Settings::default().check() else { return findings };
    findings.push(reach(params.text("net")));
    findings.extend(pmi(command));
    findings
}

/// Checks that other hosts can be reached.
fn reach(net: &str) -> Finding {
    if net == "off" {
        return Finding::bad(
            "network: FI_TCAM_NET=off reaches no other host",
            "unset it, or set FI_TCAM_NET=tcp",
        );
    }
    Finding::good("network: other hosts are reached over TCP".to_owned())
}

/// Checks that the `--mpi` of srun is that of the program's MPI.
fn pmi(command: &[OsString]) -> Option<Finding> {
    if !is_srun(command) {
        return None;
    }
    let words: Vec<_> = of_launcher(command).iter().filter_map(|word| word.to_str()).collect();
    let given = value(&words, &["--mpi"]).map(str::to_owned);
    let given = given.or_else(|| std::env::var("SLURM_MPI_TYPE").ok());
    judge_pmi(program::linked_to(command)?, given.as_deref())
}

fn judge_pmi(library: &str, given: Option<&str>) -> Option<Finding> {
    let wanted = if library.contains("Open MPI") { "pmix" } else { "pmi2" };
    let fits = given.is_some_and(|given| given.starts_with(wanted));
    Some(if fits {
        Finding::good(format!("network: srun starts ranks of {library} with --mpi={wanted}"))
    } else {
        let given = given.unwrap_or("its default");
        Finding::note(
            format!("network: the program is of {library}, and srun takes {given} for --mpi"),
            format!("srun --mpi={wanted}; with another one each rank may be alone in its job"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    fn words(command: &str) -> Vec<OsString> {
        command.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn hosts_are_counted_from_options_of_launchers() {
        let file = |path: &str| {
            (path == "list").then(|| "a slots=4 # the first\n\n# none\nb:4\na:2\n".to_owned())
        };
        for (command, hosts) in [
            ("mpiexec -n 4 app", None),
            ("mpiexec -hosts a:2,b:2 -n 4 app", Some(2)),
            ("mpiexec -hosts a,a -n 4 app", Some(1)),
            ("mpirun --host=a:2,b,c app", Some(3)),
            ("mpiexec -f list app", Some(2)),
            ("mpirun --hostfile none app", None),
            ("srun -N 3 -n 6 app", Some(3)),
            ("srun --nodes=2-4 app", Some(2)),
            ("srun -w a,b,c app", Some(3)),
            ("mpiexec -N 3 app", None),
        ] {
            assert_eq!(named(&words(command), file), hosts, "{command}");
        }
    }

    #[test]
    fn options_of_the_program_are_not_those_of_the_launcher() {
        for (command, end) in [
            ("mpiexec -n 2 sh -f list", "2"),
            ("timeout 60 mpiexec -f list -n 2 sh -hosts a,b", "2"),
            ("srun --mpi=pmi2 -N 2 sh -N 7", "2"),
            ("mpiexec -launcher-exec sh -hosts a,b -n 2 no-such-program", "no-such-program"),
            ("sh -f list", "sh"),
        ] {
            let words = words(command);
            let last = of_launcher(&words).last().and_then(|word| word.to_str());
            assert_eq!(last.unwrap_or("sh"), end, "{command}");
        }
        assert_eq!(hosts(&words("mpiexec -n 2 sh -hosts a,b")), 1);
        assert_eq!(hosts(&words("mpiexec -hosts a,b -n 2 sh -hosts a")), 2);
    }

    #[test]
    fn one_host_needs_no_network() {
        assert!(network(&words("mpiexec -n 4 app"), 1).is_empty());
    }

    #[test]
    fn a_network_that_is_off_reaches_nobody() {
        for (net, verdict) in
            [("auto", Verdict::Good), ("tcp", Verdict::Good), ("off", Verdict::Bad)]
        {
            assert_eq!(reach(net).verdict, verdict, "{net}");
        }
    }

    #[test]
    fn srun_speaks_with_the_mpi_of_the_program() {
        for (library, given, verdict) in [
            ("MPICH or Intel MPI", Some("pmi2"), Verdict::Good),
            ("MPICH or Intel MPI", None, Verdict::Note),
            ("Open MPI", Some("pmix_v4"), Verdict::Good),
            ("Open MPI", Some("pmi2"), Verdict::Note),
        ] {
            assert_eq!(judge_pmi(library, given).unwrap().verdict, verdict, "{library} {given:?}");
        }
    }
}
