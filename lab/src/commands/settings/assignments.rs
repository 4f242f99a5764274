// SPDX-License-Identifier: BSD-2-Clause
//! Finds the variables that a job script sets, and the number of ranks of a node.
//!
//! ```text
//! words of the script, as a shell splits them    quotes, backslashes, comments, here documents
//! NAME=VALUE, in any place                       NAME=VALUE cmd, export, env, mpirun -x
//! --export=NAME=VALUE,...                        srun
//! setenv NAME VALUE, -genv NAME VALUE            csh, mpiexec
//! ```
//! Nothing is run. A value with `$` or a backtick is known only to the shell.

use std::io::Read as _;
use std::num::NonZeroU32;
use std::path::Path;

use host::regular;

use crate::error::Error;

/// Largest size of a script in bytes.
const LONGEST: u64 = 4 << 20;

/// A variable that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Assignment {
    pub(super) name: String,
    /// `None` if the script computes the value.
    pub(super) value: Option<String>,
    /// File and line, or `environment`.
    pub(super) place: String,
}

/// What a script, or the environment, sets.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    pub(super) assignments: Vec<Assignment>,
    /// Number of ranks of a node, if the script names it.
    pub(super) ranks_a_node: Option<NonZeroU32>,
}

/// A word of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Word {
    text: String,
    line: usize,
    /// True if the shell replaces a part of it.
    computed: bool,
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

    /// Finds what a text sets. `name` precedes the number of a line. Fails if a quote or a here
    /// document is not closed.
    fn of(text: &str, name: &str) -> Result<Self, String> {
        let mut script = Self::default();
        for command in commands(text)? {
            script.add(&command, name);
        }
        Ok(script)
    }

    fn add(&mut self, command: &[Word], name: &str) {
        let place = |word: &Word| format!("{name}:{}", word.line);
        let mut words = command.iter().peekable();
        while let Some(word) = words.next() {
            let next = words.peek().copied();
            let option = word.text.trim_start_matches('-');
            match (word.text.as_str(), next) {
                ("setenv" | "-genv" | "-env", Some(named)) if is_name(&named.text) => {
                    let value = command.iter().skip_while(|of| *of != named).nth(1);
                    let value = value.filter(|value| !value.computed);
                    self.assignments.push(Assignment {
                        name: named.text.clone(),
                        value: value.map(|value| value.text.clone()),
                        place: place(word),
                    });
                    continue;
                }
                ("unset" | "unsetenv", _) => {
                    let gone: Vec<_> = command.iter().map(|word| word.text.as_str()).collect();
                    self.assignments.retain(|of| !gone.contains(&of.name.as_str()));
                    return;
                }
                _ => {}
            }
            if let Some(list) = word.text.strip_prefix("--export=") {
                list.split(',').for_each(|part| self.assign(part, word, &place(word)));
            } else {
                self.assign(word.text.trim_start_matches("--env="), word, &place(word));
            }
            let per_node = ["ntasks-per-node", "tasks-per-node", "ppn", "map-by=ppr"];
            let number = match option.split_once('=') {
                Some((name, number)) if per_node.contains(&name) => Some(number),
                None if option != word.text && per_node.contains(&option) => {
                    next.map(|next| next.text.as_str())
                }
                // PBS: select=4:ncpus=64:mpiprocs=64
                _ => word.text.split(':').find_map(|part| part.strip_prefix("mpiprocs=")),
            };
            if let Some(number) = number.and_then(|number| number.parse().ok()) {
                self.ranks_a_node = Some(number);
            }
        }
    }

    /// Adds an assignment, if a part of a word is one.
    fn assign(&mut self, part: &str, word: &Word, place: &str) {
        let Some((name, value)) = part.split_once('=').filter(|(name, _)| is_name(name)) else {
            return;
        };
        self.assignments.push(Assignment {
            name: name.to_owned(),
            value: (!word.computed).then(|| value.to_owned()),
            place: place.to_owned(),
        });
    }
}

/// Returns true for the name of a variable in capital letters.
fn is_name(text: &str) -> bool {
    let is_part = |char: char| char.is_ascii_uppercase() || char.is_ascii_digit() || char == '_';
    text.starts_with(|char: char| char.is_ascii_uppercase()) && text.chars().all(is_part)
}

/// Splits a script into its commands, and these into words. A comment `#SBATCH` or `#PBS` is a
/// command.
fn commands(text: &str) -> Result<Vec<Vec<Word>>, String> {
    let (mut all, mut command, mut word) = (Vec::new(), Vec::new(), None::<Word>);
    let (mut line, mut chars) = (1, text.chars().peekable());
    // Ends of the here documents that begin after this line.
    let mut documents: Vec<String> = Vec::new();
    while let Some(char) = chars.next() {
        let start =
            |word: &mut Option<Word>| _ = word.get_or_insert(Word { line, ..Word::default() });
        match char {
            '\\' => match chars.next() {
                Some('\n') => line += 1,
                Some(char) => {
                    start(&mut word);
                    word.as_mut().expect("it was started").text.push(char);
                }
                None => {}
            },
            '\'' | '"' => {
                start(&mut word);
                let word = word.as_mut().expect("it was started");
                let began = line;
                loop {
                    match chars.next() {
                        None => {
                            return Err(format!(
                                "line {began}: a quote is not closed: is the file cut off?"
                            ));
                        }
                        Some(end) if end == char => break,
                        Some('\\') if char == '"' => word.text.extend(chars.next()),
                        Some(inside) => {
                            line += usize::from(inside == '\n');
                            word.computed |= char == '"' && matches!(inside, '$' | '`');
                            word.text.push(inside);
                        }
                    }
                }
            }
            '#' if word.is_none() => {
                let mut comment = String::new();
                while let Some(&next) = chars.peek().filter(|next| **next != '\n') {
                    comment.push(next);
                    chars.next();
                }
                let directive = ["SBATCH", "PBS"].iter().find_map(|of| comment.strip_prefix(of));
                let words = directive.into_iter().flat_map(str::split_whitespace);
                let words = words.map(|text| Word { text: text.to_owned(), line, computed: false });
                all.push(words.collect());
            }
            '<' if chars.peek() == Some(&'<') => {
                chars.next();
                let mut end = String::new();
                let is_end = |char: &char| !char.is_whitespace() && !";|&<>()".contains(*char);
                while let Some(char) =
                    chars.next_if(|char| is_end(char) || end.is_empty() && *char == ' ')
                {
                    end.push(char);
                }
                let end = end.trim().trim_start_matches('-').replace(['\'', '"', '\\'], "");
                // Three signs are a here string, which has no further lines.
                documents.extend((!end.is_empty()).then_some(end));
            }
            ' ' | '\t' | '\r' => command.extend(word.take()),
            '\n' | ';' | '&' | '|' | '(' | ')' | '{' | '}'
                if char == '\n' || word.is_none() || ";&|".contains(char) =>
            {
                command.extend(word.take());
                all.push(std::mem::take(&mut command));
                if char == '\n' {
                    line += 1;
                    for end in documents.drain(..) {
                        let mut found = false;
                        while chars.peek().is_some() && !found {
                            let mut text = String::new();
                            while let Some(char) = chars.next_if(|char| *char != '\n') {
                                text.push(char);
                            }
                            chars.next();
                            line += 1;
                            found = text.trim() == end;
                        }
                        if !found {
                            return Err(format!(
                                "no end {end} of a here document: is the file cut off?"
                            ));
                        }
                    }
                }
            }
            char => {
                start(&mut word);
                let word = word.as_mut().expect("it was started");
                word.computed |= matches!(char, '$' | '`');
                word.text.push(char);
            }
        }
    }
    command.extend(word);
    all.push(command);
    all.retain(|command| !command.is_empty());
    Ok(all)
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
            "setenv FI_X 1",
            "if true; then FI_X=1; fi",
            "a && export FI_X=1 || b",
            "export FI_X=\\\n1",
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
        assert_eq!(of("FI_X=1\nunset FI_X\n# FI_Y=1\nx=FI_Z=1\necho a=1"), []);
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
    fn the_ranks_of_a_node_are_found() {
        let of = |text| Script::of(text, "").unwrap().ranks_a_node.map(NonZeroU32::get);
        for text in [
            "#SBATCH --ntasks-per-node=64",
            "#SBATCH --ntasks-per-node 64 -N 2",
            "srun --ntasks-per-node=64 ./app",
            "mpiexec -ppn 64 ./app",
            "#PBS -l select=4:ncpus=128:mpiprocs=64",
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
