// SPDX-License-Identifier: BSD-2-Clause
//! `tcam settings`: settings of a NIC's provider. `--check` finds settings that do not do what they
//! say, in the environment or in a job script. No NIC is needed, and none was used to write the
//! rules: each names the line of the source from which it was read.

mod assignments;
mod cxi;
mod stacks;
mod variables;

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use self::assignments::Script;
use self::cxi::{Checked, Finding, Problem};
use self::stacks::Stack;
use crate::error::Error;
use crate::results::{Json, Kind};
use crate::text::{count, folded};
use crate::traces::node::at_least_one;

/// Source of the rules.
const SOURCE: &str = "libfabric af8ddbe, prov/cxi";

/// Checks settings of the provider cxi of HPE Slingshot (FI_CXI_...): finds those that do not do
/// what they say.
///
/// Reads the environment, or a job script: NAME=VALUE before a command and after export, declare and
/// env, setenv, and options of launchers that pass a variable (-x NAME=VALUE, -genv NAME VALUE,
/// --export=NAME=VALUE). A line has the setting, what the provider makes of it, and the line of its
/// source. One more line has the memory that the provider takes for queues and buffers.
///
/// Nothing is run, and branches are not followed: the value is checked at each place. Rules of
/// several settings leave out a setting with several values, and one that the script computes. A
/// line says so. Modules, other scripts and libfabric.conf are not read.
///
/// The exit status is 0 if each setting does what it says, and 1 if one does not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam settings --check job.sh
  tcam settings --check --ppn 64 --stack shs-2.1 job.sh
  export -p | tcam settings --check -
  tcam settings --check")]
pub(crate) struct CheckSettings {
    /// Checks the settings.
    #[arg(long, required = true)]
    check: bool,

    /// Number of ranks on a node, for the memory of a node. Default: the number that
    /// the script has, such as --ntasks-per-node.
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = at_least_one)]
    ppn: Option<NonZeroU32>,

    /// Software whose default values are assumed for all other settings.
    #[arg(long, value_enum, value_name = "STACK", default_value_t = Stack::Libfabric)]
    stack: Stack,

    #[command(flatten)]
    json: Json,

    /// A job script, or - for standard input. Default: the environment of this command.
    #[arg(value_name = "FILE|-")]
    script: Option<PathBuf>,
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

/// Checks the settings. Returns 1 if one does not do what it says, otherwise 0.
pub(crate) fn settings(arguments: &CheckSettings) -> Result<u8, Error> {
    let CheckSettings { json, script, stack, .. } = arguments;
    json.check()?;
    let script = match script {
        Some(path) => Script::read(path)?,
        None => Script::of_environment(),
    };
    let ppn = arguments.ppn.or(script.ranks_a_node);
    let checked = cxi::check(&script.assignments, stack.values(), ppn);
    if !json.takes_output() {
        print(&checked, &script, ppn);
    }
    let report =
        Report { stack: stack.name(), source: SOURCE, ranks_a_node: ppn, checked: &checked };
    json.write(Kind::Settings, report)?;
    let is_wrong = |finding: &Finding| finding.problem != Problem::NotChecked;
    Ok(u8::from(checked.findings.iter().any(is_wrong)))
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
