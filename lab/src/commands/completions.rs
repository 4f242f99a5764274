// SPDX-License-Identifier: BSD-2-Clause
//! `tcam completions`: prints scripts with which shells complete the command line.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, Command};
use clap_complete::{Shell, generate};

/// Prints completions of commands, options and their values for a shell.
///
/// The script goes to standard output. Put it where the shell looks for completions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam completions bash > ~/.local/share/bash-completion/completions/tcam
  tcam completions zsh > ~/.zfunc/_tcam
  tcam completions fish > ~/.config/fish/completions/tcam.fish")]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_parser = PossibleValuesParser::new(["bash", "zsh", "fish"])
        .try_map(|name| name.parse::<Shell>()))]
    shell: Shell,
}

/// Prints the script for a command line. Returns 0.
pub(crate) fn completions(arguments: &Completions, cli: &mut Command) -> u8 {
    print!("{}", script(arguments.shell, cli));
    0
}

fn script(shell: Shell, cli: &mut Command) -> String {
    let mut script = Vec::new();
    generate(shell, cli, "tcam", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_task_is_completed() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let script = script(shell, &mut Cli::command());
            for task in Cli::command().get_subcommands() {
                assert!(script.contains(task.get_name()), "{shell:?}: {}", task.get_name());
            }
            for word in ["umq", "openmpi5"] {
                assert!(script.contains(word), "{shell:?}: {word}");
            }
        }
    }
}
