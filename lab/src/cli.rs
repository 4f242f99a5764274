// SPDX-License-Identifier: BSD-2-Clause
//! The command line.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Parser, Subcommand};

use crate::commands::answer::MakeAnswer;
use crate::commands::cluster::MakeClusters;
use crate::commands::compare::Compare;
use crate::commands::completions::Completions;
use crate::commands::demo::Demo;
use crate::commands::devices::Devices;
use crate::commands::diff::Diff;
use crate::commands::doctor::Doctor;
use crate::commands::engines::Engines;
use crate::commands::export::Export;
use crate::commands::plot::Plot;
use crate::commands::profile::MakeProfile;
use crate::commands::record::Record;
use crate::commands::replay::Replay;
use crate::commands::report::ReportPage;
use crate::commands::run::Run;
use crate::commands::scale::Scale;
use crate::commands::stats::Stats;
use crate::commands::sweep::arguments::Sweep;
use crate::commands::tune::Tune;
use crate::commands::watch::Watch;
use crate::commands::workload::Workload;

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
    Demo(Demo),
    Run(Run),
    Record(Record),
    Replay(Replay),
    Compare(Compare),
    #[command(alias = "advise")]
    Answer(MakeAnswer),
    Scale(Scale),
    Engines(Engines),
    Sweep(Sweep),
    Tune(Tune),
    Plot(Plot),
    Stats(Stats),
    Diff(Diff),
    Export(Export),
    Report(ReportPage),
    Profile(MakeProfile),
    Cluster(MakeClusters),
    Doctor(Doctor),
    Devices(Devices),
    Watch(Watch),
    Workload(Workload),
    Completions(Completions),
}

/// Returns the first word of a command if the error is a missing `--` before it.
pub(crate) fn command_without_dashes(
    error: &clap::Error,
    words: impl IntoIterator<Item = OsString>,
) -> Option<String> {
    let (Some(ContextValue::String(word)), ErrorKind::UnknownArgument) =
        (error.get(ContextKind::InvalidArg), error.kind())
    else {
        return None;
    };
    let words: Vec<_> = words.into_iter().skip(1).collect();
    let takes_command =
        ["run", "record", "answer", "sweep", "tune", "doctor"].iter().any(|task| words[0] == *task);
    let dashes = words.iter().any(|word| word == "--");
    (takes_command && !dashes && !word.starts_with('-')).then(|| word.clone())
}

/// Returns true if the error is a sweep without a program and without traces.
pub(crate) fn lacks_what_to_sweep(
    error: &clap::Error,
    words: impl IntoIterator<Item = OsString>,
) -> bool {
    error.kind() == ErrorKind::MissingRequiredArgument
        && words.into_iter().nth(1).is_some_and(|task| task == "sweep")
}

/// Returns the option of a size whose value is missing before `--`. clap would take `--` as the
/// value, and report the words after it as unknown.
pub(crate) fn without_size(words: impl IntoIterator<Item = OsString>) -> Option<&'static str> {
    let words: Vec<_> = words.into_iter().collect();
    let end = words.iter().position(|word| word == "--")?;
    let before = words.get(end.checked_sub(1)?)?;
    ["--prq", "--umq"].into_iter().find(|option| before == option)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

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
    fn a_missing_size_is_reported() {
        for (line, option) in [
            ("tcam run --prq -- app", Some("--prq")),
            ("tcam sweep --prq 1 --umq -- app", Some("--umq")),
            ("tcam run --prq 1 -- app --prq --", None),
            ("tcam run", None),
            ("--", None),
        ] {
            assert_eq!(without_size(line.split(' ').map(OsString::from)), option, "{line}");
        }
    }

    #[test]
    fn missing_dashes_are_distinguished_from_other_mistakes() {
        for (line, word) in [
            ("tcam run mpiexec -n 2 app", Some("mpiexec")),
            ("tcam record --out x ./app", Some("./app")),
            ("tcam sweep --prq 1 mpiexec app", Some("mpiexec")),
            ("tcam tune mpiexec -n 2", Some("mpiexec")),
            ("tcam doctor mpiexec", Some("mpiexec")),
            ("tcam run --prk 1 -- app", None),
            ("tcam run x -- app", None),
            ("tcam run", None),
            ("tcam watch x", None),
            ("tcam", None),
        ] {
            let error = Cli::try_parse_from(line.split(' ')).unwrap_err();
            let words = line.split(' ').map(OsString::from);
            assert_eq!(command_without_dashes(&error, words).as_deref(), word, "{line}");
        }
    }
}
