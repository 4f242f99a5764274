// SPDX-License-Identifier: BSD-2-Clause
//! The command line.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::{
    answer, cluster, completions, demo, devices, doctor, replay, run, scale, settings, show, sweep,
    workload,
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
    Doctor(doctor::Doctor),
    Devices(devices::Devices),
    Run(run::Run),
    Answer(answer::MakeAnswer),
    Replay(replay::arguments::Replay),
    Sweep(sweep::arguments::Sweep),
    Show(show::Show),
    Scale(scale::Scale),
    Settings(settings::MakeSettings),
    Workload(workload::Workload),
    #[command(hide = true)]
    Cluster(cluster::MakeClusters),
    #[command(hide = true)]
    Completions(completions::Completions),
}

/// Names of other commands for the same questions, with what to type instead.
const OTHER_NAMES: [(&str, &str); 13] = [
    ("advise", "`tcam answer` does that"),
    ("compare", "`tcam replay --with devices TRACE` does that"),
    ("diff", "`tcam show --against EARLIER LATER` does that"),
    ("engines", "`tcam replay --time TRACE` does that"),
    ("export", "`tcam show --format csv TRACE` does that"),
    ("plot", "`tcam show --format plot TRACE` does that"),
    ("profile", "`tcam cluster TRACE` does that"),
    ("record", "`tcam run --trace DIR -- COMMAND` does that"),
    ("report", "`tcam show --format html TRACE` does that"),
    ("stats", "`tcam show TRACE` does that"),
    ("top", "`tcam show --live` does that"),
    (
        "tune",
        "it left tcam. fi_tcam(7) explains eager_size, kernel_copy and net_eager_size, and \
         papers/reproduce.sh polling measures them",
    ),
    ("watch", "`tcam show --live` does that"),
];

/// Returns a clearer message than that of clap for some mistakes in the command line; `None` for
/// other mistakes.
pub(crate) fn explained(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let dashes = words.iter().position(|word| word == "--");
    // If the size is missing, clap takes `--` as the size, and rejects a word after it as unknown.
    let before = dashes.and_then(|at| words.get(at.checked_sub(1)?)?.to_str());
    if let Some(option @ ("--prq" | "--umq")) = before {
        return Some(format!("{option}: a size is expected before `--`"));
    }
    let command = words.get(1)?.to_str()?;
    if let Some((name, now)) = OTHER_NAMES.iter().find(|(name, _)| *name == command) {
        return Some(format!("tcam has no command {name}: {now}"));
    }
    let takes_program = ["run", "answer", "sweep", "doctor"].contains(&command);
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
        let cli = Cli::command();
        let names: Vec<_> = cli.get_subcommands().map(clap::Command::get_name).collect();
        for (name, now) in OTHER_NAMES {
            assert!(!names.contains(&name), "{name}");
            if let Some(command) = now.strip_prefix("`tcam ") {
                assert!(names.contains(&command.split([' ', '`']).next().unwrap()), "{now}");
            }
        }
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
            "tcam run --trace x --prq 65537 -- app",
            "tcam replay --with devices --umq -1 traces",
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
            "tcam sweep --timeout -1 -- app",
            "tcam sweep --timeout 0 -- app",
            "tcam sweep --timeout NaN -- app",
            "tcam run --trace x --max -1 -- app",
            "tcam show --live --interval -1",
            "tcam show --live --count -1",
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
            ("run --trace x ./app", dashes("./app")),
            ("sweep --prq 1 mpiexec app", dashes("mpiexec")),
            ("doctor mpiexec", dashes("mpiexec")),
            ("run --prk 1 -- app", None),
            ("run x -- app", None),
            ("show --liv x", None),
            ("run --device connectx -- app", set("--set device=connectx")),
            ("replay --device=alpu x", set("--set device=alpu or --with device=alpu")),
            ("replay x --host-engine", set("--set host_engine=VALUE or --with host_engine=VALUE")),
            ("sweep --overflow --out x -- app", set("--set overflow=VALUE")),
            ("show --device alpu x", None),
            ("run --devices alpu -- app", Some("program go behind `--`".to_owned())),
            ("answer --pnp 4 -- mpiexec app", Some("did you mean --ppn?".to_owned())),
            ("answer --ppn 4 mpiexec -n 8 app", dashes("mpiexec")),
            ("scale a b c --to abc", number("--to <RANKS>: `abc`")),
            ("scale a b c --to 0", None),
            ("answer --device connectx -- app", set("--set device=connectx")),
            ("tune x", Some("papers/reproduce.sh polling measures them".to_owned())),
            ("stats x", Some("`tcam show TRACE` does that".to_owned())),
            ("record --out x -- app", Some("-- COMMAND` does that".to_owned())),
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
