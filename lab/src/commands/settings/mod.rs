// SPDX-License-Identifier: BSD-2-Clause
//! `tcam settings`: settings of a NIC's provider. From recordings it computes what to set, and
//! `--check` finds settings that do not do what they say, in the environment or in a job script. No
//! NIC is needed, and none was used to write the rules: each names the line of the source from which
//! it was read.

mod advice;
mod assignments;
mod cxi;
mod other_nics;
mod slurm;
mod stacks;
mod variables;

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use nic::trace::TraceError;
use serde::Serialize;

use self::advice::{Advice, Basis, Given, OfMode, Setting};
use self::assignments::Script;
use self::cxi::{Checked, Finding, Problem};
use self::slurm::OfSlurm;
use self::stacks::{STACKS, Stack};
use crate::capacity::list_entries::{ENTRIES, Provider};
use crate::capacity::{curve, demand};
use crate::error::Error;
use crate::options;
use crate::results::{Json, Kind, summary};
use crate::text::{count, cut, folded, whole};
use crate::traces::{Found, Placed, Take, Trace, files, repeats};

/// Source of the rules.
const SOURCE: &str = "libfabric af8ddbe, prov/cxi";

/// Prints settings of the provider cxi of HPE Slingshot (FI_CXI_...) for a recorded program, with
/// reasons; or checks those of a job script.
///
/// With TRACE, replays recordings on the matching engines of Cassini, in the order of their times.
/// Prints lines for a job script, to be read before the program is started: each setting with its
/// reason, and the behaviour of the program in each match mode. Lines with `export` change a value of
/// the stack, those with `# keep` do not. A change is optional if the program runs without it. Of
/// hangs, only those are found in which ranks wait in sends and post the receives of these sends
/// later. --nic selects another NIC. Directories that have ranks in common are repeats, and the
/// largest number of all runs counts. Without --ppn the ranks of a host share a NIC. Settings of sends
/// and event queues need recordings with `--set trace_sends=on`.
///
/// With --check, finds settings that do not do what they say. Reads the environment, or a job
/// script: NAME=VALUE before a command and after export, declare and env, setenv, and options of
/// launchers that pass a variable (-x NAME=VALUE, -genv NAME VALUE, --export=NAME=VALUE). A line has
/// the setting, what the provider makes of it, and the line of its source. One more line has the
/// memory that the provider takes for queues and buffers. Branches are not followed: the value is
/// checked at each place. Rules of several settings leave out a setting with several values, and one
/// that the script computes. A line says so. Modules, other scripts and libfabric.conf are not read.
///
/// The rules are those of the source of the provider, and were never tried on a NIC. The exit status
/// is 0 if nothing has to be changed. It is 1 if the program, with G times its need, aborts or hangs
/// without a change, or if a checked setting does not do what it says. It is 3 if ranks are missing.
#[derive(Debug, Args)]
#[command(
    override_usage = "tcam settings [OPTIONS] TRACE...\n       tcam settings --check [OPTIONS] [FILE|-]",
    after_help = "Examples:
  tcam settings --ppn 8 tcam-answer/1 tcam-answer/2 tcam-answer/3
  tcam settings --stack cray-mpich tcam-trace > slingshot.env
  tcam settings --ppn 128 --site /etc/slurm/slurm.conf --steps 2 tcam-trace
  tcam settings --check job.sh
  tcam settings --check --ppn 64 --stack shs-2.1 job.sh
  export -p | tcam settings --check -
  tcam settings --check"
)]
pub(crate) struct MakeSettings {
    /// Checks the settings of a job script (FILE), of standard input (-) or of the environment.
    #[arg(long, conflicts_with_all = ["nic", "placement", "margin", "entries", "cut_off", "partial", "max_queue", "site"])]
    check: bool,

    /// NIC whose settings are printed.
    #[arg(long, value_enum, default_value_t = Nic::Cxi)]
    nic: Nic,

    #[command(flatten)]
    placed: Placed,

    /// Software whose default values are assumed for all other settings.
    #[arg(long, value_name = "STACK", default_value = STACKS[0].name, value_parser = stacks::parser())]
    stack: &'static Stack,

    /// Safety factor: settings allow G times the recorded need.
    #[arg(long, value_name = "G", default_value_t = 1.25, allow_negative_numbers = true,
        value_parser = options::number(1.0..=100.0, "a number from 1 to 100 is expected"))]
    margin: f64,

    /// List entries of an engine that the job may use, for example max_les of Slurm.
    #[arg(long, value_name = "N", default_value_t = ENTRIES, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=ENTRIES))]
    entries: u64,

    #[command(flatten)]
    slurm: OfSlurm,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    take: Take,

    /// Traces, or directories of traces. With --check: a job script, or - for standard input.
    /// Default with --check: the environment of this command.
    #[arg(value_name = "TRACE|FILE", required_unless_present = "check")]
    names: Vec<PathBuf>,
}

/// A NIC, by the software that drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
enum Nic {
    /// Cassini of HPE Slingshot, with libfabric
    Cxi,
    /// ConnectX of NVIDIA, with UCX
    Connectx,
    /// Portals 4, with mtl/portals4 of Open MPI
    #[value(name = "portals4")]
    Portals4,
}

impl Nic {
    /// Returns the name of the NIC and of its software.
    fn title(self) -> &'static str {
        match self {
            Self::Cxi => "Slingshot (cxi)",
            Self::Connectx => "ConnectX (UCX)",
            Self::Portals4 => "Portals 4 (mtl/portals4)",
        }
    }

    /// Returns the source of its rules.
    fn source(self) -> &'static str {
        match self {
            Self::Cxi => SOURCE,
            Self::Connectx => "UCX 9466d10",
            Self::Portals4 => {
                "Open MPI's mtl/portals4 and the reference implementation of Portals 4"
            }
        }
    }
}

/// The JSON of a check.
#[derive(Debug, Serialize)]
struct Report<'a> {
    stack: &'static str,
    source: &'static str,
    ranks_a_node: Option<NonZeroU32>,
    #[serde(flatten)]
    checked: &'a Checked,
}

/// The JSON of settings for a program.
#[derive(Debug, Serialize)]
struct Proposal {
    title: String,
    command: String,
    nic: Nic,
    stack: Option<&'static str>,
    source: &'static str,
    margin: f64,
    runs: usize,
    ranks: u32,
    /// Largest number of ranks that share a NIC.
    ranks_a_nic: u64,
    /// A sentence on ranks that are missing, if there are any.
    lack: Option<String>,
    /// Sentences on why numbers are lower bounds.
    lower_bounds: Vec<String>,
    #[serde(flatten)]
    advice: Advice,
}

/// Prints settings, or checks them. Returns 1 if one has to be changed, 3 if ranks are missing, and
/// 0 otherwise.
pub(crate) fn settings(arguments: &MakeSettings) -> Result<u8, Error> {
    arguments.json.check()?;
    if arguments.check { check(arguments) } else { propose(arguments) }
}

fn check(arguments: &MakeSettings) -> Result<u8, Error> {
    let MakeSettings { json, names, stack, placed, .. } = arguments;
    let script = match names.as_slice() {
        [] => Script::of_environment(),
        [path] => Script::read(path)?,
        _ => fail!("--check reads one script: give one FILE, or - for standard input"),
    };
    let ppn = placed.ppn.or(script.ranks_a_node);
    let checked = cxi::check(&script.assignments, stack.values, ppn);
    if !json.takes_output() {
        print(&checked, &script, ppn);
    }
    let report = Report { stack: stack.name, source: SOURCE, ranks_a_node: ppn, checked: &checked };
    json.write(Kind::Settings, report)?;
    let is_wrong = |finding: &Finding| finding.problem != Problem::NotChecked;
    Ok(u8::from(checked.findings.iter().any(is_wrong)))
}

fn propose(arguments: &MakeSettings) -> Result<u8, Error> {
    let names: Vec<_> = arguments.names.iter().flat_map(|name| repeats::runs_in(name)).collect();
    let (take, placed) = (arguments.take, &arguments.placed);
    let mut code = 0;
    let mut proposals = Vec::new();
    let groups = repeats::groups(&names, take, placed).map_err(|error| match error {
        Error::Trace { path, error: TraceError::Foreign } => {
            message!("{}: {}; --check reads job scripts", path.display(), TraceError::Foreign)
        }
        other => other,
    });
    for group in groups? {
        let runs: Vec<_> = group.into_iter().map(|of| of.found).collect();
        for found in &runs {
            files::note_mixed(found);
        }
        let proposal = proposal(&runs, arguments)?;
        let ranks = runs.iter().map(|run| run.ranks().code(take.partial));
        let changes = proposal.advice.settings.iter().any(|of| of.is_change && of.is_needed);
        code = ranks.fold(code, u8::max).max(u8::from(changes));
        proposals.push(proposal);
    }
    if !arguments.json.takes_output() {
        for (number, proposal) in proposals.iter().enumerate() {
            let blank = if number > 0 { "\n" } else { "" };
            println!("{blank}{}", lines(proposal, placed.ppn).join("\n"));
        }
    }
    arguments.json.write_each(Kind::Settings, &proposals)?;
    Ok(code)
}

/// Returns the settings for the runs of one program, of which there is at least one.
fn proposal(runs: &[Found], arguments: &MakeSettings) -> Result<Proposal, Error> {
    let MakeSettings { stack, margin, entries, .. } = *arguments;
    let limits = match arguments.nic {
        Nic::Cxi => arguments.slurm.limits()?,
        Nic::Connectx | Nic::Portals4 => arguments.slurm.refuse()?,
    };
    let available = limits.as_ref().map_or(entries, |of| entries.min(of.available()));
    let ranks = runs.iter().map(|run| run.ranks().job_size()).max().unwrap_or(0);
    let given = Given { stack, margin, available, ranks };
    let (eager, first_part) = match arguments.nic {
        Nic::Portals4 => (other_nics::PORTALS_EAGER, other_nics::PORTALS_EAGER),
        Nic::Cxi | Nic::Connectx => (given.eager(), stack.values.rdzv_eager_size),
    };
    let provider = Provider { eager, first_part, available };
    let demands =
        runs.iter().map(|run| demand::of(run, provider)).collect::<Result<Vec<_>, Error>>()?;
    let header = &runs[0][0].header;
    let lack = runs.iter().find_map(|run| run.ranks().lack("traces"));
    let waits = runs.iter().find_map(|run| summary::waits_note(run.waited));
    let waits = waits.map(|note| format!("{note}, and so are bytes and events between polls"));
    let is_polled = runs.iter().any(|run| run.iter().any(Trace::is_polled));
    let polled = is_polled.then(|| summary::POLLED.to_owned());
    Ok(Proposal {
        title: curve::title(&runs[0]),
        command: header.origin.command.clone(),
        nic: arguments.nic,
        stack: (arguments.nic == Nic::Cxi).then_some(stack.name),
        source: arguments.nic.source(),
        margin,
        runs: runs.len(),
        ranks,
        ranks_a_nic: demands.iter().map(|of| of.endpoints_a_nic).max().unwrap_or(0),
        lack,
        lower_bounds: waits.into_iter().chain(polled).collect(),
        advice: match arguments.nic {
            Nic::Cxi => advice::of(&demands, given, limits),
            Nic::Connectx => other_nics::connectx(runs, &demands, given)?,
            Nic::Portals4 => other_nics::portals4(&demands, given),
        },
    })
}

/// Returns lines of a script: settings, and comments.
fn lines(proposal: &Proposal, ppn: Option<NonZeroU32>) -> Vec<String> {
    let Proposal { title, command, nic, stack, runs, ranks, ranks_a_nic, lack, advice, .. } =
        proposal;
    let lower_bounds = &proposal.lower_bounds;
    let Advice { needs, settings, notes, cassini } = advice;
    let mut lines = Vec::new();
    let mut tell = |text: &str| {
        lines.extend(folded(text, 2).iter().map(|line| format!("# {line}")));
    };
    let command = if command.is_empty() { title } else { command };
    lack.iter().for_each(|lack| tell(lack));
    lower_bounds.iter().for_each(|why| tell(&format!("{why}.")));
    let stack = stack.map_or_else(String::new, |stack| format!("; defaults of {stack}"));
    tell(&format!(
        "{}: {}: {}, {} on each NIC, {}{stack}.",
        nic.title(),
        cut(command, 100),
        count((*ranks).into(), "rank"),
        whole(*ranks_a_nic),
        count(*runs as u64, "run")
    ));
    if let Some(of) = cassini {
        of.hangs.iter().for_each(|hangs| tell(&format!("{hangs}.")));
        let available = whole(of.available);
        tell(&format!("List entries of an engine: needs {} of {available}", needs.list_entries));
    }
    tell(&format!("Receives that wait at a rank: {}", needs.receives));
    tell(&format!("Unexpected messages of a rank: {}", needs.unexpected));
    if let Some(of) = cassini {
        let open = needs.open_sends.map_or_else(|| "not recorded".to_owned(), |of| of.to_string());
        tell(&format!("Long sends of a rank without a receive: {open}"));
        of.modes.iter().for_each(|OfMode { mode, says, .. }| tell(&format!("Mode {mode} {says}.")));
    }
    for Setting { name, value, is_change, is_needed, basis, reason } in settings {
        let basis = match basis {
            Basis::EachRun | Basis::NotRecorded => "",
            Basis::LargestRun => " (runs differ: the largest counts)",
        };
        lines.push(match is_change {
            true => format!("export {name}={value}"),
            false => format!("# keep {name}={value}"),
        });
        let optional = if *is_change && !is_needed { "Optional: " } else { "" };
        let reason = folded(&format!("{optional}{reason}{basis}."), 0);
        lines.extend(reason.iter().map(|line| format!("#   {line}")));
    }
    let mut tell = |text: &str| {
        lines.extend(folded(text, 2).iter().map(|line| format!("# {line}")));
    };
    notes.iter().for_each(|note| tell(&format!("{note}.")));
    cassini.iter().for_each(|of| tell(&of.memory_sentence(ppn)));
    tell(&format!("The rules are those of {}, and were never tried on a NIC.", nic.source()));
    lines
}

fn print(checked: &Checked, script: &Script, ppn: Option<NonZeroU32>) {
    let is_ours = |name: &str| name.starts_with(variables::PREFIX);
    let ours = script.assignments.iter().filter(|of| is_ours(&of.name)).count() as u64;
    if ours == 0 {
        println!("No variable FI_CXI_... is set.");
    }
    for Finding { place, name, value, says, source, .. } in &checked.findings {
        let value = value.as_ref().map_or_else(String::new, |value| format!("={value}"));
        let source = if source.is_empty() { String::new() } else { format!(" ({source})") };
        let line = format!("{place}: {name}{value}: {says}{source}.");
        folded(&line, 2).iter().for_each(|line| println!("{line}"));
    }
    if checked.findings.is_empty() && ours > 0 {
        println!("{} checked: nothing to change.", count(ours, "setting"));
    }
    folded(&checked.memory.sentence(ppn), 2).iter().for_each(|line| println!("{line}"));
    if !checked.findings.is_empty() {
        println!("The lines are those of {SOURCE}. The rules were never tried on a NIC.");
    }
}
