// SPDX-License-Identifier: BSD-2-Clause
//! The command line.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    answer, cluster, compare, completions, demo, devices, diff, doctor, engines, export, plot,
    profile, record, replay, report, run, scale, stats, sweep, tune, watch, workload,
};
use crate::hint;

/// How large must the match table of a NIC be for this MPI program?
///
/// tcam runs unmodified MPI programs over a libfabric provider that emulates the tag-matching unit
/// of a NIC: a bounded table of posted receives (PRQ) and a bounded table of unexpected messages
/// (UMQ). Elements that do not fit spill to the host.
#[derive(Debug, Parser)]
#[command(name = "tcam", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) task: Task,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    Demo(demo::Demo),
    Run(run::Run),
    Record(record::Record),
    Replay(replay::Replay),
    Compare(compare::Compare),
    #[command(alias = "advise")]
    Answer(answer::MakeAnswer),
    Scale(scale::Scale),
    Engines(engines::Engines),
    Sweep(sweep::arguments::Sweep),
    Tune(tune::Tune),
    Plot(plot::Plot),
    Stats(stats::Stats),
    Diff(diff::Diff),
    Export(export::Export),
    Report(report::ReportPage),
    Profile(profile::MakeProfile),
    Cluster(cluster::MakeClusters),
    Doctor(doctor::Doctor),
    Devices(devices::Devices),
    Watch(watch::Watch),
    Workload(workload::Workload),
    Completions(completions::Completions),
}

/// Returns a clearer message than that of clap for some mistakes in the command line; `None` for
/// other mistakes.
pub(crate) fn explained(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let dashes = words.iter().position(|word| word == "--");
    // If the size is missing, clap takes `--` as the size, and rejects a word after it as unknown.
    let before = dashes.and_then(|at| words.get(at.checked_sub(1)?)?.to_str());
    if let Some(option @ ("--prq" | "--umq")) = before {
        return Some(format!("{option}: a size is expected before `--`"));
    }
    let command = match words.get(1)?.to_str()? {
        "advise" => "answer",
        command => command,
    };
    let takes_program = ["run", "record", "answer", "sweep", "tune", "doctor"].contains(&command);
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::ValueValidation, Some(ContextValue::String(option))) => {
            no_number(error, option)
        }
        (ErrorKind::MissingRequiredArgument, _) if command == "sweep" => Some(
            "sweep needs a program, `tcam sweep -- mpiexec -n 4 ./app`, or what was recorded of \
             one, `tcam sweep --trace DIR`"
                .to_owned(),
        ),
        (ErrorKind::UnknownArgument, Some(ContextValue::String(option)))
            if option.starts_with('-') =>
        {
            hint::of_option(command, option, words).or_else(|| {
                let known = error.get(ContextKind::SuggestedArg).is_some();
                (takes_program && !known).then(|| unknown(command, option, words))?
            })
        }
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word))) => {
            (takes_program && dashes.is_none()).then(|| without_dashes(word))
        }
        _ => None,
    }
}

/// Explains a value that is no whole number; clap would print the error of the standard library.
fn no_number(error: &clap::Error, option: &str) -> Option<String> {
    let number = error.source()?.downcast_ref::<ParseIntError>()?;
    let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue) else {
        return None;
    };
    matches!(number.kind(), IntErrorKind::Empty | IntErrorKind::InvalidDigit).then(|| {
        format!("{option}: `{value}` is no whole number; digits without a sign are expected")
    })
}

fn without_dashes(word: &str) -> String {
    format!("`--` is missing before the command: tcam ... -- {word} ...")
}

/// Explains an option that a command with a program does not have: it may be misspelt, or belong to
/// a launcher without `--` before it.
fn unknown(command: &str, option: &str, words: &[OsString]) -> Option<String> {
    let before = words.iter().skip(2).take_while(|word| *word != "--");
    let mut before = before.map_while(|word| word.to_str()).take_while(|word| *word != option);
    let is_launcher = |word: &&str| {
        let name = word.rsplit('/').next().unwrap_or(word);
        ["mpiexec", "mpirun", "srun", "prun", "orterun", "aprun"]
            .iter()
            .any(|launcher| name.starts_with(launcher))
    };
    if let Some(launcher) = before.find(is_launcher) {
        return Some(without_dashes(launcher));
    }
    let cli = Cli::command();
    let options = cli.find_subcommand(command)?.get_arguments();
    let options: Vec<_> = options.filter_map(clap::Arg::get_long).collect();
    let meant = hint::nearest(option.trim_start_matches('-'), options.iter().copied());
    Some(match meant {
        Some(name) => format!("{option}: no such option; did you mean --{name}?"),
        None => format!(
            "{option}: no such option (`tcam {command} --help` lists them); options of the program go \
             behind `--`"
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn words_after_the_dashes_are_the_command() {
        let cli = Cli::parse_from(["tcam", "run", "--prq", "7", "--", "mpiexec", "--prq", "8"]);
        let Task::Run(run) = cli.task else { panic!("not run: {cli:?}") };
        assert_eq!(run.tables.prq, Some(7));
        assert_eq!(run.command, ["mpiexec", "--prq", "8"]);
    }

    #[test]
    fn invalid_sizes_get_the_range() {
        for line in [
            "tcam run --prq -1 -- app",
            "tcam run --umq 1k -- app",
            "tcam replay --prq 65537 traces",
            "tcam replay --umq=-1 traces",
            "tcam record --prq 65537 -- app",
            "tcam compare --umq -1 traces",
            "tcam replay --prq -1,3 traces",
            "tcam run --prq -x -- app",
            "tcam sweep --prq -1,3 -- app",
            "tcam sweep --umq -64,...,8 -- app",
            "tcam sweep --prq -1 -- app",
            "tcam sweep --prq 64,1k -- app",
            "tcam sweep --umq -1 -- app",
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{line}: {error}");
            assert!(error.to_string().contains("0 to 65536"), "{line}: {error}");
        }
        assert!(Cli::try_parse_from(["tcam", "run", "--prq", "65536", "--", "app"]).is_ok());
    }

    #[test]
    fn invalid_numbers_are_value_errors() {
        for line in [
            "tcam sweep --repeat -1 -- app",
            "tcam tune --rounds -1 -- app",
            "tcam tune --rounds 2 -- app",
            "tcam sweep --timeout -1 -- app",
            "tcam sweep --timeout 0 -- app",
            "tcam sweep --timeout NaN -- app",
            "tcam record --max -1 -- app",
            "tcam watch --interval -1",
            "tcam watch --count -1",
            "tcam scale a b c --to -1",
            "tcam workload fds --out x --ranks -1",
            "tcam workload fds --out x --rank -1,3",
            "tcam workload fds --out x --seed -1",
            "tcam workload fds --out x --steps -1",
            "tcam workload fds --out x --messages -1",
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ValueValidation, "{line}: {error}");
        }
    }

    #[test]
    fn mistakes_are_explained() {
        let set = |told: &str| Some(format!(": a parameter is set with {told}"));
        let number = |what: &str| {
            Some(format!("{what} is no whole number; digits without a sign are expected"))
        };
        let size = |option: &str| Some(format!("{option}: a size is expected before `--`"));
        let dashes = |word: &str| {
            Some(format!("`--` is missing before the command: tcam ... -- {word} ..."))
        };
        for (line, end) in [
            ("run --prq -- app", size("--prq")),
            ("sweep --prq 1 --umq -- app", size("--umq")),
            ("run --prk 1 -- app --prq --", None),
            ("run", None),
            ("sweep", Some("`tcam sweep --trace DIR`".to_owned())),
            ("run mpiexec -n 2 app", dashes("mpiexec")),
            ("record --out x ./app", dashes("./app")),
            ("sweep --prq 1 mpiexec app", dashes("mpiexec")),
            ("tune mpiexec -n 2", dashes("mpiexec")),
            ("doctor mpiexec", dashes("mpiexec")),
            ("run --prk 1 -- app", None),
            ("run x -- app", None),
            ("watch x", None),
            ("run --device connectx -- app", set("--set device=connectx")),
            ("compare --device=alpu x", set("--set device=alpu or --with device=alpu")),
            ("replay x --host-engine", set("--set host_engine=VALUE")),
            ("sweep --overflow --out x -- app", set("--set overflow=VALUE")),
            ("stats --device alpu x", None),
            ("run --devices alpu -- app", Some("program go behind `--`".to_owned())),
            ("answer --pnp 4 -- mpiexec app", Some("did you mean --ppn?".to_owned())),
            ("answer --ppn 4 mpiexec -n 8 app", dashes("mpiexec")),
            ("scale a b c --to abc", number("--to <RANKS>: `abc`")),
            ("scale a b c --to 0", None),
            ("tune --rounds 2.5 -- app", number("--rounds <N>: `2.5`")),
            ("advise --device connectx -- app", set("--set device=connectx")),
            ("advise --ppn 4 mpiexec -n 8 app", dashes("mpiexec")),
        ] {
            let words: Vec<_> =
                ["tcam"].into_iter().chain(line.split(' ')).map(OsString::from).collect();
            let error = Cli::try_parse_from(&words).unwrap_err();
            let found = explained(&error, &words);
            assert_eq!(found.is_some(), end.is_some(), "{line}: {found:?}");
            assert!(found.unwrap_or_default().ends_with(&end.unwrap_or_default()), "{line}");
        }
        let error = Cli::try_parse_from(["tcam"]).unwrap_err();
        assert_eq!(explained(&error, &["tcam".into()]), None);
        assert_eq!(explained(&error, &["--".into()]), None);
    }
}
