// SPDX-License-Identifier: BSD-2-Clause
//! Finds the variables that a job script sets, and the number of ranks of a node.
//!
//! ```text
//! words of the script, as a shell splits them      quotes, expansions, comments, here documents
//! NAME=VALUE before a command, after export, env   sh, bash
//! setenv NAME VALUE                                csh
//! options of launchers that pass a variable        -x, -genv, --export
//! ```
//! Nothing is run, and branches are not followed: each assignment counts. A value with an expansion
//! is known only to the shell.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::num::NonZeroU32;
use std::path::Path;

use host::regular;

use crate::error::Error;

/// Largest size of a script in bytes.
const LONGEST: u64 = 4 << 20;
/// Words before a command.
const BEFORE: [&str; 13] = [
    "then", "do", "else", "elif", "if", "while", "until", "!", "time", "exec", "nohup", "command",
    "{",
];
/// Commands that set variables to the words behind them.
const EXPORTS: [&str; 5] = ["export", "declare", "typeset", "readonly", "local"];
/// Commands with options that pass a variable, and the comments with such options.
const LAUNCHERS: [&str; 15] = [
    "srun",
    "sbatch",
    "salloc",
    "mpirun",
    "mpiexec",
    "mpiexec.hydra",
    "orterun",
    "prterun",
    "prun",
    "aprun",
    "flux",
    "jsrun",
    "qsub",
    "#SBATCH",
    "#PBS",
];

/// A variable that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) name: String,
    /// `None` if the script computes the value.
    pub(super) value: Option<String>,
    /// File and line, or `environment`.
    pub(super) place: String,
}

/// The variables that a script, or the environment, sets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) assignments: Vec<Assignment>,
    /// Number of ranks of a node, if the script names it.
    pub(super) ranks_a_node: Option<NonZeroU32>,
}

/// A word of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct ShellWord {
    text: String,
    line: usize,
    /// True if the shell replaces a part of it.
    computed: bool,
}

/// Assignments while a script is read. `None` is one that `unset` has removed.
#[derive(Default)]
struct Reading<'a> {
    name: &'a str,
    found: Vec<Option<Assignment>>,
    by_name: BTreeMap<String, Vec<usize>>,
    ranks_a_node: Option<NonZeroU32>,
}

impl Script {
    /// Returns the variables of this process.
    pub(super) fn of_environment() -> Self {
        let text = |name: std::ffi::OsString| name.to_string_lossy().into_owned();
        let assignments = std::env::vars_os().map(|(name, value)| Assignment {
            name: text(name),
            value: Some(text(value)),
            place: "environment".to_owned(),
        });
        Self { assignments: assignments.collect(), ranks_a_node: None }
    }

    /// Reads a script; `-` is standard input.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let text = if path.as_os_str() == "-" {
            let mut text = String::new();
            let input = std::io::stdin().lock().take(LONGEST + 1).read_to_string(&mut text);
            input.map_err(Error::io(path))?;
            text
        } else {
            regular::read_text(path, LONGEST).map_err(Error::io(path))?
        };
        if text.len() as u64 > LONGEST {
            return Err(Error::file(path, "longer than 4 MiB: a job script is expected"));
        }
        // The name without its directory, because each line of the output begins with it.
        let name = match path.file_name() {
            Some(name) if name != "-" => name.to_string_lossy(),
            _ => "input".into(),
        };
        Self::of(&text, &name).map_err(|why| Error::file(path, why))
    }

    /// Finds what a text sets. `name` precedes the number of a line. Fails if a quote, a parenthesis
    /// or a here document is not closed.
    fn of(text: &str, name: &str) -> Result<Self, String> {
        let mut reading = Reading { name, ..Reading::default() };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lexer = Lexer { chars: text.chars().collect(), line: 1, ..Lexer::default() };
        lexer.read()?;
        lexer.commands.iter().for_each(|command| reading.command(command));
        Ok(Self {
            assignments: reading.found.into_iter().flatten().collect(),
            ranks_a_node: reading.ranks_a_node,
        })
    }
}

impl Reading<'_> {
    /// Adds what a command sets.
    fn command(&mut self, words: &[ShellWord]) {
        let mut words = words;
        while let [first, rest @ ..] = words {
            let is_before = BEFORE.contains(&first.text.as_str());
            if !self.assign(&first.text, first) && !is_before {
                break;
            }
            let options = rest.iter().take_while(|word| word.text.starts_with('-')).count();
            words = if is_before { &rest[options..] } else { rest };
        }
        let [command, rest @ ..] = words else { return };
        match command.text.rsplit('/').next().unwrap_or_default() {
            of if EXPORTS.contains(&of) => rest.iter().for_each(|word| {
                self.assign(&word.text, word);
            }),
            "env" => {
                let mut rest = rest;
                while let [option, others @ ..] = rest
                    && option.text.starts_with('-')
                {
                    let takes_word =
                        ["-u", "--unset", "-C", "--chdir"].contains(&option.text.as_str());
                    rest = others.get(usize::from(takes_word)..).unwrap_or_default();
                }
                self.command(rest);
            }
            "setenv" => {
                if let [name, value, ..] = rest {
                    self.set(&name.text, (!value.computed).then(|| value.text.clone()), name.line);
                }
            }
            "unset" | "unsetenv" => {
                for at in rest.iter().filter_map(|word| self.by_name.remove(&word.text)).flatten() {
                    self.found[at] = None;
                }
            }
            of => {
                if LAUNCHERS.contains(&of) {
                    self.options(rest);
                }
                let is_env = |word: &ShellWord| word.text.rsplit('/').next() == Some("env");
                if let Some(at) = rest.iter().position(is_env) {
                    self.command(&rest[at..]);
                }
            }
        }
    }

    /// Adds what the options of a launcher pass.
    fn options(&mut self, words: &[ShellWord]) {
        for (at, word) in words.iter().enumerate() {
            let (option, inside) = match word.text.split_once('=') {
                Some((option, value)) if option.starts_with('-') => (option, Some(value)),
                _ => (word.text.as_str(), None),
            };
            let next = words.get(at + 1);
            let (value, of) = match (inside, next) {
                (Some(value), _) => (value, word),
                (None, Some(next)) => (next.text.as_str(), next),
                (None, None) => continue,
            };
            match option {
                "--export" | "-v" => value.split(',').for_each(|part| {
                    self.assign(part, of);
                }),
                "-x" | "-e" | "-E" => {
                    self.assign(value, of);
                }
                "-genv" | "--genv" | "-env" | "--env" => {
                    if self.assign(value, of) {
                        continue;
                    }
                    if let Some(value) = words.get(at + 2) {
                        let text = (!value.computed).then(|| value.text.clone());
                        self.set(&of.text, text, of.line);
                    }
                }
                "--ntasks-per-node" | "--tasks-per-node" | "-ppn" | "--ppn" => self.per_node(value),
                // Open MPI: ppr:64:node
                "--map-by" => {
                    let number = value.strip_prefix("ppr:").and_then(|of| of.strip_suffix(":node"));
                    number.into_iter().for_each(|number| self.per_node(number));
                }
                // PBS: select=4:ncpus=128:mpiprocs=64, or nodes=4:ppn=64
                "-l" => value.split(':').for_each(|part| {
                    let number =
                        part.strip_prefix("mpiprocs=").or_else(|| part.strip_prefix("ppn="));
                    number.into_iter().for_each(|number| self.per_node(number));
                }),
                _ => {}
            }
        }
    }

    fn per_node(&mut self, number: &str) {
        self.ranks_a_node = number.trim_end().parse().ok().or(self.ranks_a_node);
    }

    /// Adds an assignment, if a part of a word is one. Returns true if it is one.
    fn assign(&mut self, part: &str, word: &ShellWord) -> bool {
        let Some((name, value)) = part.split_once('=') else { return false };
        // What `+=` appends to may be set elsewhere.
        let appends = name.strip_suffix('+');
        let is_computed = word.computed || appends.is_some();
        let name = appends.unwrap_or(name);
        if !is_name(name) {
            return false;
        }
        self.set(name, (!is_computed).then(|| value.to_owned()), word.line);
        true
    }

    fn set(&mut self, name: &str, value: Option<String>, line: usize) {
        if !is_name(name) {
            return;
        }
        self.by_name.entry(name.to_owned()).or_default().push(self.found.len());
        let place = format!("{}:{line}", self.name);
        self.found.push(Some(Assignment { name: name.to_owned(), value, place }));
    }
}

/// Returns true for the name of a variable.
fn is_name(text: &str) -> bool {
    let is_part = |char: char| char.is_ascii_alphanumeric() || char == '_';
    text.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && text.chars().all(is_part)
}

/// Splits a script into commands, and these into words. A comment `#SBATCH` or `#PBS` is a command.
#[derive(Default)]
struct Lexer {
    chars: Vec<char>,
    at: usize,
    line: usize,
    /// Ends of the here documents that begin after this line, and whether tabs before them count.
    documents: Vec<(String, bool)>,
    word: Option<ShellWord>,
    command: Vec<ShellWord>,
    commands: Vec<Vec<ShellWord>>,
}

impl Lexer {
    fn next(&mut self) -> Option<char> {
        let char = *self.chars.get(self.at)?;
        self.at += 1;
        self.line += usize::from(char == '\n');
        Some(char)
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next_if(&mut self, is: impl Fn(char) -> bool) -> Option<char> {
        self.peek().filter(|char| is(*char))?;
        self.next()
    }

    fn word(&mut self) -> &mut ShellWord {
        let line = self.line;
        self.word.get_or_insert(ShellWord { line, ..ShellWord::default() })
    }

    fn end_word(&mut self) {
        self.command.extend(self.word.take());
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.command.is_empty() {
            self.commands.push(std::mem::take(&mut self.command));
        }
    }

    fn read(&mut self) -> Result<(), String> {
        while let Some(char) = self.next() {
            match char {
                '\\' => match self.next() {
                    Some('\n') | None => {}
                    Some(char) => self.word().text.push(char),
                },
                '\'' | '"' => self.quote(char)?,
                '$' | '`' => self.expansion(char)?,
                '#' if self.word.is_none() => self.comment(),
                '(' if self.word.as_ref().is_some_and(|word| word.text.ends_with('=')) => {
                    self.word().computed = true;
                    self.parentheses(1)?;
                }
                '(' if self.word.is_none() && self.next_if(|char| char == '(').is_some() => {
                    self.parentheses(2)?;
                }
                '<' if self.next_if(|char| char == '<').is_some() => self.document(),
                '<' | '>' => {
                    self.end_word();
                    while self.next_if(|char| "<>&|".contains(char)).is_some() {}
                    self.word().text.push(char);
                    self.end_word();
                }
                ' ' | '\t' => self.end_word(),
                ';' | '&' | '|' | '(' | ')' => self.end_command(),
                '\n' => {
                    self.end_command();
                    self.skip_documents()?;
                }
                char => self.word().text.push(char),
            }
        }
        self.end_command();
        Ok(())
    }

    /// Reads a quote to its end, into the word.
    fn quote(&mut self, quote: char) -> Result<(), String> {
        let began = self.line;
        self.word();
        loop {
            match self.next() {
                None => return Err(open("a quote", began)),
                Some(char) if char == quote => return Ok(()),
                Some('\\') if quote == '"' => match self.next() {
                    Some('\n') | None => {}
                    Some(char) => {
                        if !"$`\"\\".contains(char) {
                            self.word().text.push('\\');
                        }
                        self.word().text.push(char);
                    }
                },
                Some(char @ ('$' | '`')) if quote == '"' => self.expansion(char)?,
                Some(char) => self.word().text.push(char),
            }
        }
    }

    /// Reads an expansion, or a quote `$'...'`.
    fn expansion(&mut self, char: char) -> Result<(), String> {
        let began = self.line;
        if char == '$' && self.next_if(|char| char == '\'').is_some() {
            loop {
                match self.next() {
                    None => return Err(open("a quote", began)),
                    Some('\'') => return Ok(()),
                    Some('\\') => {
                        let char = self.next();
                        self.word().text.extend(char);
                    }
                    Some(char) => self.word().text.push(char),
                }
            }
        }
        let word = self.word();
        word.computed = true;
        word.text.push(char);
        match char {
            '$' if self.next_if(|char| char == '(').is_some() => self.parentheses(1),
            '$' if self.next_if(|char| char == '{').is_some() => self.skip_to('}'),
            '`' => self.skip_to('`'),
            _ => Ok(()),
        }
    }

    /// Skips to a character that is not in quotes.
    fn skip_to(&mut self, end: char) -> Result<(), String> {
        let began = self.line;
        loop {
            match self.next() {
                None => return Err(open(&format!("a part that ends with {end}"), began)),
                Some(char) if char == end => return Ok(()),
                Some(char) => self.skip_quoted(char)?,
            }
        }
    }

    /// Skips to the end of parentheses, of which `depth` are open.
    fn parentheses(&mut self, mut depth: usize) -> Result<(), String> {
        let began = self.line;
        while depth > 0 {
            match self.next() {
                None => return Err(open("a parenthesis", began)),
                Some('(') => depth += 1,
                Some(')') => depth -= 1,
                Some(char) => self.skip_quoted(char)?,
            }
        }
        Ok(())
    }

    /// Skips what a character inside of an expansion quotes.
    fn skip_quoted(&mut self, char: char) -> Result<(), String> {
        let began = self.line;
        match char {
            '\\' => drop(self.next()),
            '\'' => while self.next().ok_or_else(|| open("a quote", began))? != '\'' {},
            '"' => loop {
                match self.next().ok_or_else(|| open("a quote", began))? {
                    '"' => break,
                    '\\' => drop(self.next()),
                    '$' if self.next_if(|char| char == '(').is_some() => self.parentheses(1)?,
                    _ => {}
                }
            },
            _ => {}
        }
        Ok(())
    }

    fn comment(&mut self) {
        let (mut comment, line) = ("#".to_owned(), self.line);
        while let Some(char) = self.next_if(|char| char != '\n') {
            comment.push(char);
        }
        let words = comment.split_whitespace();
        let words = words.map(|text| ShellWord {
            text: text.to_owned(),
            line,
            computed: text.contains('$'),
        });
        self.commands.extend(
            ["#SBATCH ", "#PBS "].iter().any(|of| comment.starts_with(of)).then(|| words.collect()),
        );
    }

    /// Reads the word behind `<<`, which ends a here document. Skips the third sign of a here
    /// string.
    fn document(&mut self) {
        self.end_word();
        if self.next_if(|char| char == '<').is_some() {
            return;
        }
        let tabs = self.next_if(|char| char == '-').is_some();
        while self.next_if(|char| char == ' ' || char == '\t').is_some() {}
        let mut end = String::new();
        while let Some(char) =
            self.next_if(|char| !char.is_whitespace() && !";|&<>()".contains(char))
        {
            end.push(char);
        }
        self.documents.push((end.replace(['\'', '"', '\\'], ""), tabs));
    }

    fn skip_documents(&mut self) -> Result<(), String> {
        for (end, tabs) in std::mem::take(&mut self.documents) {
            loop {
                if self.peek().is_none() {
                    return Err(format!("no end {end} of a here document: is the file cut off?"));
                }
                let mut line = String::new();
                while let Some(char) = self.next_if(|char| char != '\n') {
                    line.push(char);
                }
                self.next();
                let line = if tabs { line.trim_start_matches('\t') } else { &line };
                if line.trim_end_matches('\r') == end {
                    break;
                }
            }
        }
        Ok(())
    }
}

fn open(what: &str, line: usize) -> String {
    format!("line {line}: {what} is not closed: is the file cut off?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(String, Option<String>, String)> {
        let script = Script::of(text, "job.sh").unwrap();
        let of = |of: Assignment| (of.name, of.value, of.place.replace("job.sh:", ""));
        script.assignments.into_iter().map(of).collect()
    }

    fn set(name: &str, value: &str, line: &str) -> (String, Option<String>, String) {
        (name.to_owned(), Some(value.to_owned()), line.to_owned())
    }

    #[test]
    fn each_way_to_set_a_variable_is_found() {
        for text in [
            "export FI_X=1",
            "FI_X=1 ./app",
            "FI_X='1'",
            "export FI_X=\"1\" # FI_Y=2",
            "env FI_X=1 srun ./app",
            "srun --export=ALL,FI_X=1 ./app",
            "mpirun -x FI_X=1 ./app",
            "mpiexec --env=FI_X=1 ./app",
            "mpiexec -genv FI_X 1 -n 4 ./app",
            "mpiexec --env FI_X 1 -n 4 ./app",
            "setenv FI_X 1",
            "if true; then FI_X=1; fi",
            "a && export FI_X=1 || b",
            "export FI_X=\\\n1",
            "srun -n 4 env -u FI_Y FI_X=1 ./app",
            "timeout 60 env FI_X=1 ./app",
            "time -p FI_X=1 ./app",
            "mpiexec -genv FI_X=1 -n 4 ./app",
        ] {
            assert_eq!(of(text), [set("FI_X", "1", "1")], "{text}");
        }
        assert_eq!(
            of("FI_X=1\n\nexport FI_Y=2 FI_Z='a b'")[1..],
            [set("FI_Y", "2", "3"), set("FI_Z", "a b", "3")]
        );
        assert_eq!(
            of("export FI_X=$Y; FI_Z=\"a`b`\"; FI_W='$Y'"),
            [
                ("FI_X".to_owned(), None, "1".to_owned()),
                ("FI_Z".to_owned(), None, "1".to_owned()),
                set("FI_W", "$Y", "1"),
            ]
        );
        assert_eq!(of("FI_X=1\nunset FI_X\n# FI_Y=1\nx-y=FI_Z=1\necho a=1"), []);
    }

    #[test]
    fn here_documents_and_quotes_are_skipped() {
        let text = "cat <<'EOF' >x\nexport FI_X=1 don't\nEOF\nFI_Y=2 <<< FI_Z\nFI_W=3\necho 'a\nb'\nFI_V=4";
        assert_eq!(of(text), [set("FI_Y", "2", "4"), set("FI_W", "3", "5"), set("FI_V", "4", "8")]);
        let error = |text| Script::of(text, "").unwrap_err();
        assert_eq!(
            error("FI_X=1\necho 'a\nb"),
            "line 2: a quote is not closed: is the file cut off?"
        );
        assert!(error("cat <<EOF\na").starts_with("no end EOF of a here document"));
    }

    #[test]
    fn a_script_is_split_as_a_shell_does() {
        for text in [
            "A=$((1 << 20)); FI_X=1",
            "(( SIZE << 2 > 5 )) && export FI_X=1",
            "MSG=$'it\\'s'; export FI_X=1",
            "echo \"$(echo \"don't\")\"; FI_X=1",
            "cat <<  EOF; FI_X=1\ndon't\nEOF",
            "cat <<-EOF; FI_X=1\n\tdon't\n\tEOF",
            "cat <<EOF; FI_X=1\n  EOF\ndon't\nEOF",
            "(export FI_X=1)",
            "FI_X=1>out",
            "\u{feff}FI_X=1",
            "export FI_X=\"\\\n1\"",
            "FI_X=1 \r",
            "srun --export ALL,FI_X=1 ./app --opt FI_Y=2",
            "#PBS -v FI_X=1",
            "f() { export FI_X=1; }",
            "case $1 in a) export FI_X=1;; esac",
            "grep FI_Y=1 x; printf 'FI_Z=%s\\n' 1; FI_X=1",
            "echo do not unset FI_X; FI_X=1",
            "A=(1 'don' 2) FI_X=1",
            "nohup env -i FI_X=1 ./app",
        ] {
            let found: Vec<_> = of(text).into_iter().filter(|of| of.0.starts_with("FI_")).collect();
            assert!(
                found.len() == 1 && found[0].0 == "FI_X" && found[0].1.as_deref() == Some("1"),
                "{text}: {found:?}"
            );
        }
        let two = of("mpiexec -env FI_X 1 ./a : -env FI_X 2 ./b");
        assert_eq!(two, [set("FI_X", "1", "1"), set("FI_X", "2", "1")]);
        assert_eq!(of("#PBS -v FI_X=1,FI_Y=2"), [set("FI_X", "1", "1"), set("FI_Y", "2", "1")]);
        // A backslash at the end of a line within quotes counts as a line.
        assert_eq!(of("echo \"a\\\nb\"\nFI_X=1"), [set("FI_X", "1", "3")]);
        assert!(Script::of("A=$(b", "").unwrap_err().contains("a parenthesis is not closed"));
    }

    #[test]
    fn long_scripts_take_no_longer_for_each_line() {
        let lines: String = (0..100_000).map(|at| format!("A{at}=1\nunset A{at}\n")).collect();
        assert_eq!(of(&lines), []);
        let one = "mpiexec ".to_owned() + &"-env A 1 ".repeat(100_000);
        assert_eq!(of(&one).len(), 100_000);
    }

    #[test]
    fn the_ranks_of_a_node_are_found() {
        let of = |text| Script::of(text, "").unwrap().ranks_a_node.map(NonZeroU32::get);
        for text in [
            "#SBATCH --ntasks-per-node=64",
            "#SBATCH --ntasks-per-node 64 -N 2",
            "srun --ntasks-per-node=64 ./app",
            "mpiexec -ppn 64 ./app",
            "#PBS -l select=4:ncpus=128:mpiprocs=64",
            "#PBS -l nodes=4:ppn=64",
            "mpirun --map-by ppr:64:node ./app",
        ] {
            assert_eq!(of(text), Some(64), "{text}");
        }
        for text in
            ["# --ntasks-per-node=64", "#SBATCH -N 2", "srun --ntasks-per-node=$P ./app", "--ppn=0"]
        {
            assert_eq!(of(text), None, "{text}");
        }
    }
}
