// SPDX-License-Identifier: BSD-2-Clause
//! `tcam completions`: what shells need to complete its words.

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::generate;
use clap_complete::shells::{Bash, Fish, Zsh};

use crate::cli::Cli;

/// Prints what a shell needs to complete tasks, options and their values.
///
/// Everything is on standard output: put it where your shell looks for completions.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam completions bash > ~/.local/share/bash-completion/completions/tcam
  tcam completions zsh > ~/.zfunc/_tcam
  tcam completions fish > ~/.config/fish/completions/tcam.fish")]
pub(crate) struct Completions {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Prints the script. Returns 0.
pub(crate) fn completions(arguments: &Completions) -> u8 {
    print!("{}", script(arguments.shell));
    0
}

fn script(shell: Shell) -> String {
    let (mut cli, mut script) = (Cli::command(), Vec::new());
    match shell {
        Shell::Bash => generate(Bash, &mut cli, "tcam", &mut script),
        Shell::Zsh => generate(Zsh, &mut cli, "tcam", &mut script),
        Shell::Fish => generate(Fish, &mut cli, "tcam", &mut script),
    }
    String::from_utf8_lossy(&script).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_is_completed() {
        for shell in Shell::value_variants() {
            let script = script(*shell);
            for task in Cli::command().get_subcommands() {
                assert!(script.contains(task.get_name()), "{shell:?}: {}", task.get_name());
            }
            for word in ["umq", "openmpi5"] {
                assert!(script.contains(word), "{shell:?}: {word}");
            }
        }
    }
}
