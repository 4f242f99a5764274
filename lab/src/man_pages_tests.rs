// SPDX-License-Identifier: BSD-2-Clause
//! Checks the generated sections of both man pages: the parameters of the provider, and the
//! commands with their options. The long texts of commands and their examples are only in `--help`.
//! `TCAM_WRITE_MAN=1 cargo test -p tcam-lab man_pages` generates them anew.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use clap::builder::PossibleValue;
use clap::{Arg, Command, CommandFactory};
use nic::params::{PARAMS, PREFIX};

use crate::cli::Cli;

const BEGIN: &str = ".\\\" begin generated\n";
const END: &str = ".\\\" end generated\n";

/// Compares the generated part of a page with this text. If TCAM_WRITE_MAN is set, replaces that
/// part instead.
fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("no begin of the generated part");
    let (old, after) = rest.split_once(END).expect("no end of the generated part");
    if std::env::var_os("TCAM_WRITE_MAN").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}{text}{END}{after}")).unwrap();
    } else {
        let line = text.lines().zip(old.lines()).find(|(new, old)| new != old);
        assert!(old == text, "docs/{name}: renew it with TCAM_WRITE_MAN=1; {line:?}");
    }
}

/// Escapes a text for roff. Texts in backticks are bold.
fn roff(text: &str) -> String {
    let mut escaped = String::new();
    for (at, part) in text.replace('\\', "\\e").replace('-', "\\-").split('`').enumerate() {
        let _ =
            if at % 2 == 1 { write!(escaped, "\\fB{part}\\fP") } else { write!(escaped, "{part}") };
    }
    escaped
}

/// Returns paragraphs with one sentence in each line.
fn sentences(text: &str) -> String {
    let lines = |paragraph: &str| {
        let words = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        roff(&words).replace(". ", ".\n") + "\n"
    };
    text.split("\n\n").map(lines).collect::<Vec<_>>().join(".PP\n")
}

/// Splits a sentence such as `auto: the kernel copies.` into the value or values and their
/// description. Returns `None` for other sentences.
fn value(sentence: &str) -> Option<(&str, &str)> {
    let (values, text) = sentence.split_once(": ")?;
    let is_value = |word: &str| word.starts_with(char::is_lowercase) && !word.contains(' ');
    values.split(", ").all(is_value).then_some((values, text))
}

/// Renders descriptions of values as an indented list below a parameter or option. Text after the
/// list belongs to the parameter again.
fn list(values: &[(impl AsRef<str>, impl AsRef<str>)]) -> String {
    let mut list = String::new();
    for (value, text) in values {
        let _ = writeln!(list, ".TP\n.B {}\n{}", value.as_ref(), text.as_ref());
    }
    if list.is_empty() { list } else { format!(".RS\n{list}.RE\n.IP\n") }
}

/// Renders the help of a parameter. The sentences about each value come last.
fn help(text: &str) -> String {
    let mut page = String::new();
    let mut values: Vec<(&str, String)> = Vec::new();
    let text = sentences(text);
    for sentence in text.lines() {
        match (value(sentence), values.last_mut()) {
            (Some((value, text)), _) => values.push((value, text.to_owned())),
            (None, Some((_, text))) => *text += &format!("\n{sentence}"),
            (None, None) => page += &format!("{sentence}\n"),
        }
    }
    page + &list(&values)
}

fn parameters() -> String {
    let mut page = String::new();
    for param in PARAMS {
        let default = if param.default.is_empty() { "none" } else { param.default };
        let values = roff(&format!("Values: {}; default: {default}.", param.values.describe()));
        let name = param.name.to_uppercase();
        let _ = write!(page, ".TP\n.B {PREFIX}{name}\n{}{values}\n", help(param.help));
    }
    page
}

/// Renders the head and the text of an option or argument, without the commands that have it.
fn option(arg: &Arg) -> (String, String) {
    let names = arg.get_value_names().unwrap_or_default();
    let value = names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
    let value = roff(&value);
    let takes_value = arg.get_action().takes_values();
    let head = match arg.get_long() {
        Some(long) if takes_value => format!(".BI \\-\\-{} \" {value}\"\n", roff(long)),
        Some(long) => format!(".B \\-\\-{}\n", roff(long)),
        None => format!(".I {value}\n"),
    };
    let help = arg.get_long_help().or_else(|| arg.get_help()).unwrap().to_string();
    let mut text = sentences(help.trim_end_matches('.'));
    text.insert(text.len() - 1, '.');
    let values = if takes_value { arg.get_possible_values() } else { Vec::new() };
    let names = || values.iter().map(|value| roff(value.get_name()));
    let texts: Vec<_> = values.iter().filter_map(PossibleValue::get_help).collect();
    if texts.len() == values.len() {
        let texts = texts.iter().map(|text| format!("{}.", roff(&text.to_string())));
        text += &list(&names().zip(texts).collect::<Vec<_>>());
    } else {
        let _ = writeln!(text, "Values: {}.", names().collect::<Vec<_>>().join(", "));
    }
    if let [default] = arg.get_default_values()
        && takes_value
    {
        let _ = writeln!(text, "Default: {}.", roff(&default.to_string_lossy()));
    }
    (head, text)
}

/// Returns the options of a command, except `--help`.
fn options(command: &Command) -> impl Iterator<Item = (String, String)> {
    command.get_arguments().filter(|arg| arg.get_id() != "help").map(option)
}

fn commands() -> String {
    let mut cli = Cli::command();
    cli.build();
    let commands: Vec<_> = cli.get_subcommands().filter(|one| one.get_name() != "help").collect();
    let mut users: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    for command in &commands {
        for option in options(command) {
            users.entry(option).or_default().push(command.get_name());
        }
    }
    let mut page = ".SH COMMANDS\n".to_owned();
    for command in &commands {
        let usage = (*command).clone().render_usage().to_string();
        let usage = roff(&usage.trim_start_matches("Usage: ").replace("\n      ", " |"));
        let about = command.get_long_about().or_else(|| command.get_about()).unwrap().to_string();
        let about = sentences(&format!("{}.", about.trim_end_matches('.')));
        let _ = write!(page, ".SS {usage}\n{about}");
        for (head, text) in options(command) {
            if users[&(head.clone(), text.clone())].len() == 1 {
                let _ = write!(page, ".TP\n{head}{}", text.trim_end_matches(".IP\n"));
            }
        }
    }
    page.push_str(".SH OPTIONS OF SEVERAL COMMANDS\n");
    for ((head, text), commands) in users.iter().filter(|(_, commands)| commands.len() > 1) {
        let _ = write!(page, ".TP\n{head}{text}({})\n", commands.join(", "));
    }
    page
}

#[test]
fn man_pages_have_the_parameters_and_the_commands() {
    check("fi_tcam.7", &parameters());
    check("tcam.1", &commands());
}

#[test]
fn man_pages_name_no_unknown_parameter() {
    for page in [include_str!("../../docs/fi_tcam.7"), include_str!("../../docs/tcam.1")] {
        let page = page.replace('\\', "");
        for word in page.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')) {
            let bare = word.strip_prefix(PREFIX).unwrap_or_default().to_lowercase();
            assert!(bare.is_empty() || PARAMS.iter().any(|param| param.name == bare), "{word}");
        }
    }
}
