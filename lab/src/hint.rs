// SPDX-License-Identifier: BSD-2-Clause
//! Makes suggestions for error messages: known words that are near an unknown one, and advice on
//! traces of other tools.

use std::ffi::OsString;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use nic::params::config::ConfigError;
use nic::params::{PARAMS, PREFIX, ParamError, Values};
use nic::report::ReportError;
use nic::trace::TraceError;
use strsim::damerau_levenshtein;

/// Products and drivers, each with the name of its emulated device, or the beginning of the names
/// of several devices.
const PRODUCTS: [(&str, &str); 12] = [
    ("slingshot", "cassini"),
    ("cxi", "cassini"),
    ("cray", "cassini"),
    ("hpe", "cassini"),
    ("infiniband", "connectx"),
    ("mellanox", "connectx"),
    ("nvidia", "connectx"),
    ("bluefield", "connectx"),
    ("mlx5", "connectx"),
    ("ucx", "connectx"),
    ("ultra", "uet"),
    ("uec", "uet"),
];
/// Minimum length of a word that is searched inside known words.
const PART: usize = 3;
/// Maximum number of staging directories that are named.
const NAMED: usize = 4;
/// First bytes of a GOAL trace in text form.
const GOAL: &[u8] = b"num_ranks ";
/// Number of bytes at the start of a file by which its format is recognised.
const HEAD: u64 = 256;

/// First part of the name of a staging directory, to which a run writes its files.
pub(crate) const STAGING: &str = ".new-";
/// Maximum number of files of a directory that are examined.
const LOOKED_AT: usize = 1000;

/// Returns the known words that contain this one. If none does, returns the nearest word as
/// [`nearest`] does. Without such a word, finds the nearest of the parts that `_` separates, and
/// returns the words that have it.
fn meant<'a>(word: &str, known: impl Iterator<Item = &'a str> + Clone) -> Vec<&'a str> {
    let word = word.to_lowercase();
    if word.len() >= PART {
        let containing: Vec<_> = known.clone().filter(|one| one.contains(&word)).collect();
        if !containing.is_empty() {
            return containing;
        }
    }
    if let Some(near) = nearest(&word, known.clone()) {
        return vec![near];
    }
    match nearest(&word, known.clone().flat_map(|one| one.split('_'))) {
        Some(near) => known.filter(|one| one.split('_').any(|part| part == near)).collect(),
        None => Vec::new(),
    }
}

/// Returns the known word that is nearest to this one. Returns `None` if more edits separate both
/// than a third of the letters of the longer word.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let nearest = known
        .map(|one| (damerau_levenshtein(word, one), one))
        .filter(|(distance, one)| *distance <= one.len().max(word.len()) / 3)
        .min();
    nearest.map(|(_, one)| one)
}

/// Returns `a`, `a or b`, or `a, b or c`.
fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} or {last}", all.join(", ")),
    }
}

/// Suggests assignments for a word that is not of the form NAME=VALUE, or gives an example if the
/// word is no value of a parameter.
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

/// Suggests how to set a parameter that was given as an option of a command. Returns `None` for
/// other options, and for commands that set no parameters.
pub(crate) fn of_option(command: &str, given: &str, words: &[OsString]) -> Option<String> {
    let options = match command {
        "run" | "answer" | "sweep" => &["--set"][..],
        "replay" => &["--set", "--with"],
        _ => return None,
    };
    let name = given.strip_prefix("--")?.replace('-', "_").to_lowercase();
    let param = PARAMS.iter().find(|param| param.name == name)?;
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let value = words.iter().enumerate().find_map(|(at, word)| {
        let rest = word.strip_prefix(given)?;
        rest.strip_prefix('=').or_else(|| words.get(at + 1).map(AsRef::as_ref))
    });
    let value = value.filter(|value| !value.starts_with('-')).unwrap_or("VALUE");
    let sets = options.iter().map(|option| format!("{option} {}={value}", param.name));
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

/// Returns advice on an error in a trace; empty for most errors.
pub(crate) fn of_trace(path: &Path, error: &TraceError) -> String {
    match error {
        TraceError::Cut(_) => "; --cut-off accepts the part before the cut".to_owned(),
        TraceError::Empty | TraceError::Short(_) => "; --cut-off leaves this trace out".to_owned(),
        TraceError::Foreign => foreign(path),
        _ => String::new(),
    }
}

/// Describes an error in a report.
pub(crate) fn of_report(path: &Path, error: &ReportError) -> String {
    match error {
        ReportError::Json(json) if json.is_eof() => {
            format!("not a tcam report, or cut off in the middle: {json}")
        }
        _ => format!("{error}{}", foreign(path)),
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
    let (what, near): (_, Vec<_>) = match error {
        ParamError::Name { hint, .. } if hint.starts_with("did you mean") => {
            return error.to_string();
        }
        ParamError::Name { name, .. } => {
            let near =
                meant(&name[PREFIX.len()..], PARAMS.iter().map(|param| param.name)).into_iter();
            let near = near.map(|name| format!("{PREFIX}{}", name.to_uppercase()));
            (format!("{name} is no parameter of tcam"), near.collect())
        }
        ParamError::Value { name, value, .. } => {
            let param = PARAMS.iter().find(|param| param.name.eq_ignore_ascii_case(name));
            let words = match param.map(|param| param.values) {
                Some(Values::Words(words) | Values::Set(words)) => words,
                _ => &[],
            };
            let near = match param.and_then(|param| product(param.name, value)) {
                Some(device) => {
                    words.iter().copied().filter(|name| name.starts_with(device)).collect()
                }
                None => meant(value, words.iter().copied()),
            };
            (error.to_string(), near.into_iter().map(str::to_owned).collect())
        }
    };
    match near.as_slice() {
        [] => error.to_string(),
        near => format!("{what}; did you mean {}?", list(near)),
    }
}

/// Returns the beginning of the names of a product's devices. Returns `None` for an unknown
/// product, and if `param` is not `device`.
fn product(param: &str, value: &str) -> Option<&'static str> {
    let value = value.to_lowercase();
    let mut products = PRODUCTS.iter().filter(|_| param == "device");
    products.find(|(product, _)| value.contains(product)).map(|(_, device)| *device)
}

/// Returns the subdirectories of a directory, sorted by name.
fn directories(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).into_iter().flatten().flatten().take(LOOKED_AT);
    let mut found: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

/// Returns the staging directories in a directory. If no command writes to the directory, they were
/// left by commands that were killed.
pub(crate) fn staging_in(directory: &Path) -> Vec<PathBuf> {
    let is_staging = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(STAGING))
    };
    directories(directory).into_iter().filter(is_staging).collect()
}

/// Returns advice that names the staging directories with traces or reports in a directory and its
/// subdirectories; empty for other directories.
pub(crate) fn unfinished(directory: &Path) -> String {
    let has_files = |path: &PathBuf| {
        let mut files = fs::read_dir(path).into_iter().flatten().flatten().take(LOOKED_AT);
        files.any(|entry| {
            entry.path().extension().is_some_and(|end| end == "trace" || end == "json")
        })
    };
    let below = directories(directory).into_iter().flat_map(|path| staging_in(&path));
    let found = staging_in(directory).into_iter().chain(below).filter(has_files);
    let names: Vec<_> = found.take(NAMED).map(|path| quoted(&path)).collect();
    match names.as_slice() {
        [] => String::new(),
        names => format!(
            "; {} has files of a run whose tcam was killed or still runs: give that directory",
            list(names)
        ),
    }
}

/// Returns advice for a file of another tool, or for a directory that contains one; empty for other
/// paths.
pub(crate) fn foreign(path: &Path) -> String {
    let mut files = fs::read_dir(path).into_iter().flatten().flatten().take(LOOKED_AT);
    let tool = tool(path).or_else(|| files.find_map(|entry| tool(&entry.path())));
    tool.map_or_else(String::new, |tool| {
        format!(
            "; it is of {tool}, and tcam reads only its own traces: record the program with \
             `tcam run --trace DIR -- mpiexec ...`"
        )
    })
}

/// Returns the tool that wrote a file, by its name or its first bytes, or `None` if it is unknown.
fn tool(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let ending = path.extension().unwrap_or_default().to_str()?;
    match ending {
        "goal" => Some("GOAL (LogGOPSim)"),
        "bin" | "meta" if name.starts_with("dumpi") => Some("DUMPI (SST)"),
        "otf2" | "def" | "evt" => Some("OTF2 (Score-P)"),
        "prv" | "pcf" => Some("Paraver (Extrae)"),
        "clog2" | "slog2" => Some("MPE (Jumpshot)"),
        _ => {
            let mut head = Vec::new();
            let file = host::regular::open(path).ok()?;
            file.take(HEAD).read_to_end(&mut head).ok()?;
            of_head(&head)
        }
    }
}

/// Returns the tool that wrote a file that begins with these bytes.
fn of_head(head: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(head);
    let is_of_chrome =
        text.contains("\"traceEvents\"") || text.starts_with('[') && text.contains("\"ph\"");
    match head.starts_with(GOAL) {
        true => Some("GOAL (LogGOPSim)"),
        false => is_of_chrome.then_some("a trace viewer (Chrome, Perfetto)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nic::models::MODELS;
    use nic::params::Params;

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
            (value("device", "Slingshot-11"), "cassini-hardware or cassini-software?"),
            (value("device", "mlx5_0"), "did you mean connectx?"),
            (value("device", "ultra-ethernet"), "did you mean uet?"),
            (value("kernel", "AVX512"), "did you mean avx512?"),
            (value("refuse", "any_source"), "did you mean any-source?"),
            (name("PRQ_ENTRY"), "is no parameter of tcam; did you mean FI_TCAM_PRQ_ENTRIES?"),
            (name("QUEUE"), "is no parameter of tcam; did you mean FI_TCAM_HOST_STORAGE?"),
            (name("KERNELS"), "did you mean FI_TCAM_KERNEL?"),
            (name("PRG"), "is no parameter of tcam; did you mean FI_TCAM_PRQ_ENTRIES?"),
            (name("ENTRIES"), "UMQ_ENTRIES or FI_TCAM_POOL_ENTRIES?"),
        ] {
            assert!(told.ends_with(end), "{told}");
        }
    }

    #[test]
    fn reports_that_are_cut_off_are_recognised() {
        let told = |text| {
            let error = nic::report::Report::from_json(text).unwrap_err();
            of_report(Path::new("none.json"), &error)
        };
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
    fn traces_of_other_tools_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("x.txt"), "num_ranks 2\nrank 0 {").unwrap();
        fs::write(place("chrome.json"), r#"{"displayTimeUnit": "ns", "traceEvents": []}"#).unwrap();
        fs::write(place("array.json"), r#"[{"name": "MPI_Send", "ph": "X"}]"#).unwrap();
        for (name, tool) in [
            ("x.txt", "GOAL"),
            ("a.goal", "GOAL"),
            ("dumpi-2026.11.25.10.00.00-0000.bin", "DUMPI"),
            ("dumpi-2026.meta", "DUMPI"),
            ("dumpi.meta", "DUMPI"),
            ("halo.prv", "Paraver"),
            ("halo.slog2", "MPE"),
            ("chrome.json", "Chrome"),
            ("array.json", "Chrome"),
            ("traces.otf2", "OTF2"),
            ("traces/0.evt", "OTF2"),
        ] {
            let told = foreign(&place(name));
            assert!(told.contains(tool) && told.contains("tcam run --trace DIR -- "), "{told}");
        }
        let error = nic::report::Report::from_json("{}").unwrap_err();
        assert!(of_report(&place("chrome.json"), &error).contains("tcam run --trace DIR -- "));
        fs::remove_file(place("chrome.json")).unwrap();
        fs::remove_file(place("array.json")).unwrap();
        assert!(foreign(directory.path()).contains("GOAL"));
        fs::write(place("x.txt"), "num_rank").unwrap();
        for name in ["", "x.txt", "y.trace", "data.bin", "none"] {
            assert_eq!(foreign(&place(name)), "", "{name}");
        }
    }

    #[test]
    fn staging_directories_with_files_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        for name in [".new-a", "1/.new-b", "1/.new-c", "2/1/.new-d", "new-e"] {
            fs::create_dir_all(place(name)).unwrap();
        }
        assert_eq!(unfinished(directory.path()), "");
        for name in ["1/.new-b/0.7.trace", "1/.new-c/0.draft", "2/1/.new-d/0.json", "new-e/0.json"]
        {
            fs::write(place(name), "").unwrap();
        }
        let told = unfinished(directory.path());
        let named = told.contains(&format!("; {}/1/.new-b has files", directory.path().display()));
        assert!(named && !told.contains(".new-a") && !told.contains(" or /"), "{told}");
        assert_eq!(staging_in(&place("1")), [place("1/.new-b"), place("1/.new-c")]);
        assert_eq!(unfinished(&place("none")), "");
    }

    #[test]
    fn far_words_get_the_list() {
        assert!(value("device", "abacus").ends_with(MODELS[MODELS.len() - 1].name));
        assert!(value("prq_entries", "many").ends_with("from 0 to 65536"));
        assert!(name("XYZZY").contains("there are FI_TCAM_DEVICE, "));
    }
}
