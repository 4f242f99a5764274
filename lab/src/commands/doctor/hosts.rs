// SPDX-License-Identifier: BSD-2-Clause
//! Checks the hosts of a command. If there are several hosts, checks that the settings let their
//! ranks reach each other. For each host, checks that its ranks see the same /dev/shm.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use nic::params::types::Net;

use super::findings::{Findings, Subject};
use super::mpi;
use crate::file;
use crate::launch::{Signals, launcher};
use crate::settings::Settings;
use crate::text::count;

/// Options of launchers that list hosts: `a,b`, `a:16,b:16`, or `a[1-4,7]` with srun.
const LISTS: &[&str] = &["-hosts", "-host", "--host", "-H", "-w", "--nodelist"];
/// Options that name a file with one host per line.
const FILES: &[&str] = &["-f", "-hostfile", "--hostfile", "-machinefile", "--machinefile"];
/// Options of srun that give the number of hosts.
const COUNTS: &[&str] = &["-N", "--nodes"];
/// The number of hosts in an allocation of Slurm.
const ALLOCATED: &str = "SLURM_JOB_NUM_NODES";

/// First word of the line that a rank prints. Some launchers put a label before it.
const BEGINS: &str = "tcam-shm ";
/// Shell command that prints the boot id of the kernel, the network namespace, and the device and
/// inode of /dev/shm. Ranks with the same kernel and namespace must see the same /dev/shm.
const PROBE: &str = "echo tcam-shm $(cat /proc/sys/kernel/random/boot_id) \
                     $(readlink /proc/self/ns/net) $(stat -Lc %d:%i /dev/shm)";
/// Maximum time that the launcher may take.
const LIMIT: Duration = Duration::from_secs(20);
/// Largest output that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// Returns the value of the first word that is one of these options, as `--name VALUE` or
/// `--name=VALUE`. Returns `None` if no word is one of them.
fn value<'a>(words: &[&'a str], names: &[&str]) -> Option<&'a str> {
    words.iter().enumerate().find_map(|(at, word)| match word.split_once('=') {
        Some((name, value)) if names.contains(&name) => Some(value),
        None if names.contains(word) => words.get(at + 1).copied(),
        _ => None,
    })
}

/// Does the same as [`value`], and also accepts a value attached to a short option, as in `-N3`.
fn value_of_srun<'a>(words: &[&'a str], names: &[&str]) -> Option<&'a str> {
    let attached = |word: &&'a str| {
        let (name, value) = word.split_at_checked(2)?;
        (names.contains(&name) && !value.is_empty()).then(|| value.trim_start_matches('='))
    };
    value(words, names).or_else(|| words.iter().find_map(attached))
}

/// Returns the number of hosts in a list of Slurm, such as `login,node[01-04,7]`. Returns `None` if
/// the list is malformed or the name of a file.
fn in_slurm_list(list: &str) -> Option<usize> {
    if list.contains('/') {
        return None;
    }
    let numbers = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? as usize + 1)
    };
    let (mut hosts, mut of_entry, mut rest) = (0_usize, 1_usize, list);
    while let Some(at) = rest.find([',', '[']) {
        if rest.as_bytes()[at] == b',' {
            hosts = hosts.saturating_add(std::mem::replace(&mut of_entry, 1));
            rest = &rest[at + 1..];
            continue;
        }
        let (ranges, behind) = rest[at + 1..].split_once(']')?;
        let named = ranges.split(',').map(numbers).sum::<Option<usize>>()?;
        of_entry = of_entry.checked_mul(named)?;
        rest = behind;
    }
    Some(hosts.saturating_add(of_entry))
}

/// Returns true if srun is the launcher.
fn is_srun(command: &[OsString]) -> bool {
    let is = |word: &OsString| Path::new(word).file_name().is_some_and(|name| name == "srun");
    launcher::in_command(command).is_none() && command.iter().any(is)
}

/// Returns the launcher with its options, without the program, which may have an option `-f` too.
/// The program is the first word that is linked to an MPI, or else the first that can be run and is
/// not the value of an option.
pub(super) fn of_launcher(command: &[OsString]) -> &[OsString] {
    let is_launcher = |word: &OsString| {
        launcher::in_command(std::slice::from_ref(word)).is_some()
            || is_srun(std::slice::from_ref(word))
    };
    let start = command.iter().position(is_launcher).map_or(0, |at| at + 1);
    let behind = &command[start..];
    let is_value = |at: usize| at > 0 && behind[at - 1].as_encoded_bytes().starts_with(b"-");
    let end = mpi::linked(behind).map(|linked| linked.at).or_else(|| {
        (0..behind.len()).find(|&at| !is_value(at) && launcher::find(&behind[at]).is_ok())
    });
    &command[start.saturating_sub(1)..start + end.unwrap_or(behind.len())]
}

/// Returns the number of ranks on this host, assuming that the command spreads them evenly over its
/// hosts. Returns `None` if the command does not give the number of ranks.
pub(super) fn ranks_here(subject: &Subject<'_>) -> Option<usize> {
    let ranks = launcher::ranks(of_launcher(subject.command))?;
    Some(ranks.div_ceil(subject.hosts.max(1)))
}

/// Returns the number of hosts that the options of a launcher name, or `None` if they name no host.
/// `read` returns the text of a file of hosts.
fn named(command: &[OsString], read: impl Fn(&str) -> Option<String>) -> Option<usize> {
    let words: Vec<_> = command.iter().filter_map(|word| word.to_str()).collect();
    let distinct = |names: &mut dyn Iterator<Item = &str>| {
        let name = |entry: &str| entry.split(':').next().unwrap_or_default().trim().to_owned();
        names.map(name).filter(|name| !name.is_empty()).collect::<BTreeSet<_>>().len()
    };
    if is_srun(command) {
        // `2-4` means at least two.
        let nodes =
            value_of_srun(&words, COUNTS).map(|nodes| nodes.split('-').next()?.parse().ok());
        return nodes.unwrap_or_else(|| in_slurm_list(value_of_srun(&words, LISTS)?));
    }
    if let Some(list) = value(&words, LISTS) {
        return Some(distinct(&mut list.split(',')));
    }
    let text = read(value(&words, FILES)?)?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
    Some(distinct(&mut lines.filter_map(|line| line.split_whitespace().next())))
}

/// Returns the number of hosts that a command uses. The options of the launcher give it. If they do
/// not, the allocation of Slurm does, but only for a command with a launcher. Otherwise returns 1.
pub(super) fn number(command: &[OsString]) -> usize {
    let starts = is_srun(command) || launcher::in_command(command).is_some();
    let named = named(of_launcher(command), |path| {
        host::regular::read_text(path.as_ref(), file::LONGEST).ok()
    });
    let allocated = || std::env::var(ALLOCATED).ok()?.parse().ok();
    named.or_else(|| allocated().filter(|_| starts)).unwrap_or(1)
}

/// Checks what a job on several hosts needs. Adds no finding for one host.
pub(super) fn network(subject: &Subject<'_>, findings: &mut Findings) {
    if subject.hosts < 2 {
        return;
    }
    findings.note(
        format!("network: ranks on {}", count(subject.hosts as u64, "host")),
        "the provider, the program and the DIR of reports must have the same path on all; \
         docs/clusters.md says more",
    );
    let Ok(params) = Settings::default().check() else { return };
    judge_network(params.net, findings);
    if is_srun(subject.command)
        && let Some(program) = mpi::linked(subject.command)
    {
        let words = of_launcher(subject.command).iter().filter_map(|word| word.to_str());
        let given = value(&words.collect::<Vec<_>>(), &["--mpi"]).map(str::to_owned);
        let given = given.or_else(|| std::env::var("SLURM_MPI_TYPE").ok());
        judge_pmi(program.library, given.as_deref(), findings);
    }
}

/// Checks that `FI_TCAM_NET` lets ranks reach other hosts.
fn judge_network(net: Net, findings: &mut Findings) {
    match net {
        Net::Off => findings.bad(
            "network: FI_TCAM_NET=off reaches no other host",
            "unset it, or set FI_TCAM_NET=tcp",
        ),
        Net::Auto | Net::Tcp => findings.good("network: other hosts are reached over TCP"),
    }
}

/// Checks that the option `--mpi` of srun fits the program's MPI.
fn judge_pmi(library: &str, given: Option<&str>, findings: &mut Findings) {
    let wanted = match library {
        "Open MPI" => "pmix",
        "Cray MPICH" => "cray_shasta",
        _ => "pmi2",
    };
    if given.is_some_and(|given| given.starts_with(wanted)) {
        return findings
            .good(format!("network: srun starts ranks of {library} with --mpi={wanted}"));
    }
    let given = given.unwrap_or("its default");
    findings.note(
        format!("network: the program is of {library}, and srun takes {given} for --mpi"),
        format!("srun --mpi={wanted}; with another one each rank may be alone in its job"),
    );
}

/// Checks that the ranks of a host see the same /dev/shm. The launcher starts a shell for each rank
/// instead of the program. The shell prints the identity of /dev/shm as the rank sees it. Adds no
/// finding if fewer than two ranks answer.
pub(super) fn share_memory(subject: &Subject<'_>, findings: &mut Findings) {
    if let Some(text) = probed(subject.command) {
        judge_memory(&text, findings);
    }
}

/// Runs [`PROBE`] in place of the program. Returns the output of the ranks, or `None` if the
/// command has no known launcher or no program that is linked to an MPI.
fn probed(command: &[OsString]) -> Option<String> {
    launcher::in_command(command)?;
    let at = mpi::linked(command)?.at;
    let directory = tempfile::tempdir().ok()?;
    let output = directory.path().join("ranks");
    let mut start = Command::new(&command[0]);
    start.args(command[..at].iter().skip(1)).args(["sh", "-c", PROBE]);
    start.stdin(Stdio::null()).stdout(file::begin(&output).ok()?).stderr(Stdio::null());
    Signals::catch().ok()?.wait(&mut start, "the probe of /dev/shm", Some(LIMIT)).ok()?;
    host::regular::read_text(&output, LONGEST).ok()
}

/// Judges the output of the ranks. Adds no finding for fewer than two ranks, and if a line is
/// malformed.
fn judge_memory(text: &str, findings: &mut Findings) {
    let mut hosts: BTreeMap<_, BTreeSet<&str>> = BTreeMap::new();
    let mut ranks = 0;
    for line in text.lines().filter_map(|line| Some(line.split_once(BEGINS)?.1)) {
        let words: Vec<_> = line.split(' ').collect();
        let [kernel, network, memory] = words[..] else { return };
        hosts.entry((kernel, network)).or_default().insert(memory);
        ranks += 1;
    }
    if ranks < 2 {
        return;
    }
    let ranks = count(ranks, "rank");
    match hosts.into_values().map(|memories| memories.len()).max() {
        Some(most @ 2..) => findings.bad(
            format!("{ranks}: those of one host see {most} different /dev/shm"),
            "they cannot send to one another: have their containers share /dev/shm, docker run \
             --ipc=host, or -v /dev/shm:/dev/shm",
        ),
        _ => findings.good(format!("{ranks}: those of one host see the same /dev/shm")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::findings::Verdict;
    use super::super::findings::tests::{subject, verdict, words};
    use super::*;

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
            ("srun -N3 -n6 app", Some(3)),
            ("srun -w node[01-04,7],login app", Some(6)),
            ("srun --nodelist=r[1-2]n[1-3] app", Some(6)),
            ("srun -w node[4-1] app", None),
            ("srun -w ./nodes app", None),
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
        assert_eq!(number(&words("mpiexec -n 2 sh -hosts a,b")), 1);
        assert_eq!(number(&words("mpiexec -hosts a,b -n 2 sh -hosts a")), 2);
    }

    #[test]
    fn one_host_needs_no_network() {
        let words = words("mpiexec -n 4 app");
        assert_eq!(verdict(|findings| network(&subject(&words, 1), findings)), None);
    }

    #[test]
    fn a_network_that_is_off_reaches_nobody() {
        for (net, expected) in
            [(Net::Auto, Verdict::Good), (Net::Tcp, Verdict::Good), (Net::Off, Verdict::Bad)]
        {
            assert_eq!(verdict(|findings| judge_network(net, findings)), Some(expected), "{net:?}");
        }
    }

    #[test]
    fn srun_speaks_with_the_mpi_of_the_program() {
        for (library, given, expected) in [
            ("MPICH or Intel MPI", Some("pmi2"), Verdict::Good),
            ("MPICH or Intel MPI", None, Verdict::Note),
            ("Open MPI", Some("pmix_v4"), Verdict::Good),
            ("Open MPI", Some("pmi2"), Verdict::Note),
            ("Cray MPICH", Some("cray_shasta"), Verdict::Good),
        ] {
            let judged = verdict(|findings| judge_pmi(library, given, findings));
            assert_eq!(judged, Some(expected), "{library} {given:?}");
        }
    }

    #[test]
    fn ranks_of_one_host_must_see_the_same_memory() {
        for (lines, expected) in [
            ("tcam-shm k n 1:1\n[1] tcam-shm k n 1:1\nother", Some(Verdict::Good)),
            ("tcam-shm k n 1:1\ntcam-shm k n 2:1", Some(Verdict::Bad)),
            // Other hosts, and containers with separate networks.
            ("tcam-shm k n 1:1\ntcam-shm l n 2:1\ntcam-shm k m 3:1", Some(Verdict::Good)),
            ("tcam-shm k n 1:1", None),
            ("tcam-shm k n\ntcam-shm k n", None),
            ("", None),
        ] {
            assert_eq!(verdict(|findings| judge_memory(lines, findings)), expected, "{lines}");
        }
    }
}
