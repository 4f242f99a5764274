// SPDX-License-Identifier: BSD-2-Clause
//! Suggestions for words that are not known, and for traces of other tools, which tcam does not read.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use nic::params::config::ConfigError;
use nic::params::{PARAMS, PREFIX, ParamError, RENAMED, Values};
use nic::report::ReportError;
use nic::trace::TraceError;
use strsim::damerau_levenshtein;

/// Length from which a word is searched inside other words.
const PART: usize = 3;

/// Returns the known words that contain this one, or else the nearest word if it is near enough.
fn meant<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
    let word = word.to_lowercase();
    if word.len() >= PART {
        let containing: Vec<_> = known.clone().filter(|one| one.contains(&word)).collect();
        if !containing.is_empty() {
            return containing;
        }
    }
    let nearest = known
        .map(|one| (damerau_levenshtein(&word, one), one))
        .filter(|(distance, one)| *distance <= one.len().max(word.len()) / 3)
        .min();
    nearest.map(|(_, one)| one).into_iter().collect()
}

/// Returns `a`, `a or b`, or `a, b or c`.
fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

/// Suggests assignments for a word that is not of the form NAME=VALUE.
pub(crate) fn of_setting(word: &str) -> String {
    let word = word.to_lowercase();
    let has = |values: &Values| match values {
        Values::Words(words) | Values::Set(words) => words.contains(&&*word),
        _ => false,
    };
    let params = PARAMS.iter().filter(|param| has(&param.values));
    let meant: Vec<_> = params.map(|param| format!("{}={word}", param.name)).collect();
    match meant.as_slice() {
        [] => "such as kernel=scalar".to_owned(),
        meant => format!("did you mean {}?", list(meant)),
    }
}

/// Suggests how to set a parameter that was given as an option.
pub(crate) fn of_option(
    error: &clap::Error,
    words: impl IntoIterator<Item = OsString>,
) -> Option<String> {
    let (Some(ContextValue::String(given)), ErrorKind::UnknownArgument) =
        (error.get(ContextKind::InvalidArg), error.kind())
    else {
        return None;
    };
    let words: Vec<_> = words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let option = match words.get(1)?.as_str() {
        "run" | "record" | "replay" | "sweep" | "tune" => &["--set"][..],
        "compare" => &["--set", "--with"],
        _ => return None,
    };
    let name = given.strip_prefix("--")?.replace('-', "_").to_lowercase();
    let param = PARAMS.iter().find(|param| param.name == name)?;
    let value = words.iter().enumerate().find_map(|(at, word)| {
        let rest = word.strip_prefix(given)?;
        rest.strip_prefix('=').or_else(|| words.get(at + 1).map(String::as_str))
    });
    let value = value.filter(|value| !value.starts_with('-')).unwrap_or("VALUE");
    let sets = option.iter().map(|option| format!("{option} {}={value}", param.name));
    Some(format!("{given}: a parameter is set with {}", list(&sets.collect::<Vec<_>>())))
}

/// Quotes a path for the command line of a shell.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |letter: char| letter.is_alphanumeric() || "_-./,:=@%+".contains(letter);
    if !text.is_empty() && text.chars().all(plain) {
        return text.into_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Returns what can be done about an error in a trace.
pub(crate) fn of_trace(path: &Path, error: &TraceError) -> String {
    match error {
        TraceError::Cut(_) => "; with --cut-off what is before is taken".to_owned(),
        TraceError::Foreign => of_other_tool(path),
        _ => String::new(),
    }
}

/// Describes an error in a report.
pub(crate) fn of_report(error: &ReportError) -> String {
    match error {
        ReportError::Json(json) if json.is_eof() => {
            format!("not a tcam report, or cut off in the middle: {json}")
        }
        _ => error.to_string(),
    }
}

/// Describes an error in a file of settings.
pub(crate) fn of_config(error: &ConfigError) -> String {
    match error {
        ConfigError::Param { line, error } => format!("line {line}: {}", explained(error)),
        _ => error.to_string(),
    }
}

/// Describes an error in a parameter, with a suggestion if there is a near word.
pub(crate) fn explained(error: &ParamError) -> String {
    match error {
        ParamError::Name { name, .. } => {
            if RENAMED.iter().any(|(old, _)| old == name) {
                return error.to_string();
            }
            let names = meant(name, PARAMS.iter().map(|param| param.name));
            let names: Vec<_> =
                names.iter().map(|name| format!("{PREFIX}{}", name.to_uppercase())).collect();
            if names.is_empty() {
                return error.to_string();
            }
            format!("{PREFIX}{name} is no parameter of tcam; did you mean {}?", list(&names))
        }
        ParamError::Value { name, value, .. } => {
            let param = PARAMS.iter().find(|param| param.name.eq_ignore_ascii_case(name));
            let words = match param.map(|param| param.values) {
                Some(Values::Words(words) | Values::Set(words)) => words,
                _ => &[],
            };
            let words: Vec<_> =
                meant(value, words.iter().copied()).into_iter().map(str::to_owned).collect();
            if words.is_empty() {
                return error.to_string();
            }
            format!("{error}; did you mean {}?", list(&words))
        }
    }
}

/// First bytes of a GOAL trace in text form.
const GOAL: &[u8] = b"num_ranks ";

/// Largest number of files of a directory that are examined.
const LOOKED_AT: usize = 1000;

/// Returns advice for a file of another tool, or for a directory that contains one; empty for
/// others.
pub(crate) fn of_other_tool(path: &Path) -> String {
    let mut files = fs::read_dir(path).into_iter().flatten().flatten().take(LOOKED_AT);
    let tool = tool(path).or_else(|| files.find_map(|entry| tool(&entry.path())));
    tool.map_or_else(String::new, |tool| {
        format!(
            "; it is of {tool}, and tcam reads only its own traces: record the program with \
             `tcam record -- mpiexec ...`"
        )
    })
}

/// Returns the tool that wrote a file, by its name or its first bytes.
fn tool(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let ending = path.extension().unwrap_or_default().to_str()?;
    match ending {
        "goal" => Some("GOAL (LogGOPSim)"),
        "bin" | "meta" if name.starts_with("dumpi-") => Some("DUMPI (SST)"),
        "otf2" | "def" | "evt" => Some("OTF2 (Score-P)"),
        _ => {
            let mut head = [0; GOAL.len()];
            let read = host::regular::open(path).and_then(|mut file| file.read_exact(&mut head));
            (read.is_ok() && head == GOAL).then_some("GOAL (LogGOPSim)")
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use nic::params::Params;

    use super::*;
    use crate::cli::Cli;

    fn value(name: &str, value: &str) -> String {
        let set = |of: &str| (of == name).then(|| value.to_owned());
        explained(&Params::from_lookup(set).unwrap_err())
    }

    fn name(name: &str) -> String {
        explained(&Params::check_names([format!("{PREFIX}{name}")]).unwrap_err())
    }

    #[test]
    fn near_words_are_suggested() {
        for (told, end) in [
            (
                value("device", "cassini"),
                "did you mean cassini-hybrid, cassini-hardware or cassini-software?",
            ),
            (value("device", "conectx"), "did you mean connectx?"),
            (value("kernel", "AVX512"), "did you mean avx512?"),
            (value("refuse", "any_source"), "did you mean any-source?"),
            (name("PRQ_ENTRY"), "is no parameter of tcam; did you mean FI_TCAM_PRQ_ENTRIES?"),
            (name("QUEUE"), "is no parameter of tcam; did you mean FI_TCAM_HOST_STORAGE?"),
            (name("KERNELS"), "did you mean FI_TCAM_KERNEL?"),
            (name("ENTRIES"), "UMQ_ENTRIES or FI_TCAM_POOL_ENTRIES?"),
        ] {
            assert!(told.ends_with(end), "{told}");
        }
    }

    #[test]
    fn reports_that_are_cut_off_are_recognised() {
        let told = |text| of_report(&nic::report::Report::from_json(text).unwrap_err());
        for cut in ["{", "{\n", "{\"format\""] {
            assert!(told(cut).contains("cut off in the middle: EOF"), "{}", told(cut));
        }
        assert!(told("{}").contains("missing field"));
    }

    #[test]
    fn paths_are_quoted_where_a_shell_would_part_them() {
        let quoted = |path: &str| quoted(Path::new(path));
        assert_eq!(quoted("../tr-1/a.b"), "../tr-1/a.b");
        assert_eq!(quoted("tr 1"), "'tr 1'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$HOME"), "'$HOME'");
    }

    #[test]
    fn values_without_a_name_get_theirs() {
        assert_eq!(of_setting("Connectx"), "did you mean device=connectx?");
        assert_eq!(of_setting("sticky"), "did you mean overflow=sticky?");
        assert_eq!(of_setting("xyzzy"), "such as kernel=scalar");
    }

    #[test]
    fn parameters_given_as_options_get_a_hint() {
        for (line, told) in [
            ("run --device connectx -- app", Some("--set device=connectx")),
            ("compare --device=alpu x", Some("--set device=alpu or --with device=alpu")),
            ("replay x --host-engine", Some("--set host_engine=VALUE")),
            ("sweep --overflow --out x -- app", Some("--set overflow=VALUE")),
            ("stats --device alpu x", None),
            ("run --devices alpu -- app", None),
            ("run app", None),
        ] {
            let words = || ["tcam"].into_iter().chain(line.split(' '));
            let error = Cli::try_parse_from(words()).unwrap_err();
            let found = of_option(&error, words().map(OsString::from));
            let end = told.map(|told| format!(": a parameter is set with {told}"));
            assert_eq!(found.is_some(), end.is_some(), "{line}: {found:?}");
            assert!(found.unwrap_or_default().ends_with(&end.unwrap_or_default()), "{line}");
        }
    }

    #[test]
    fn far_words_get_the_list() {
        assert!(value("device", "abacus").ends_with("alpu, uet, ideal"));
        assert!(value("prq_entries", "many").ends_with("from 0 to 65536"));
        assert!(name("XYZZY").contains("there are FI_TCAM_DEVICE, "));
    }

    #[test]
    fn traces_of_other_tools_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("x.txt"), "num_ranks 2\nrank 0 {").unwrap();
        for (name, tool) in [
            ("x.txt", "GOAL"),
            ("a.goal", "GOAL"),
            ("dumpi-2026.11.25.10.00.00-0000.bin", "DUMPI"),
            ("dumpi-2026.meta", "DUMPI"),
            ("traces.otf2", "OTF2"),
            ("traces/0.evt", "OTF2"),
        ] {
            let told = of_other_tool(&place(name));
            assert!(told.contains(tool) && told.contains("tcam record -- "), "{told}");
        }
        assert!(of_other_tool(directory.path()).contains("GOAL"));
        fs::write(place("x.txt"), "num_rank").unwrap();
        for name in ["", "x.txt", "y.trace", "data.bin", "none"] {
            assert_eq!(of_other_tool(&place(name)), "", "{name}");
        }
    }
}
