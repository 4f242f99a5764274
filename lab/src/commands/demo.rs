// SPDX-License-Identifier: BSD-2-Clause
//! `tcam demo`: compiles an MPI program, whose source is a part of tcam, and runs `tcam answer` on
//! it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{Args, FromArgMatches};

use super::answer::{self, MakeAnswer};
use crate::error::Error;
use crate::launch::signals::ProgramInput;
use crate::launch::{Signals, bundled, launcher, signals};
use crate::results::output_directory;

const SOURCES: [(&str, &str); 2] = [
    ("fds_gather.c", include_str!("../../../tests/apps/fds_gather.c")),
    ("check.h", include_str!("../../../tests/apps/check.h")),
];
/// C compilers that an `mpicc` may call.
const C_COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

/// Runs `tcam answer` on a small MPI program that tcam compiles: the first command to try.
///
/// Compiles a program that communicates as a fire simulation does: every rank sends to rank 0. Then
/// runs `tcam answer` on it, which records the program three times and prints the page.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam demo
  tcam demo --ranks 8 --mpicc /opt/mpich/bin/mpicc")]
pub(crate) struct Demo {
    /// Ranks of the program, on two nodes.
    #[arg(long, value_name = "N", default_value_t = 32, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(2..1000))]
    ranks: u32,

    /// Compiler of the MPI. The default is the mpicc in PATH, or in the directory of tcam. The
    /// mpiexec in the same directory starts the program.
    #[arg(long, value_name = "PATH")]
    mpicc: Option<PathBuf>,

    /// Directory for the source, the program, the recordings, answer.html and answer.png.
    #[arg(long, value_name = "DIR", default_value = "tcam-demo")]
    out: PathBuf,
}

/// Compiles the program and runs `tcam answer` on it. Returns the exit code of `tcam answer`. If a
/// signal ends the compilation, returns the exit code of the signal.
pub(crate) fn demo(arguments: &Demo) -> Result<u8, Error> {
    let mpicc = compiler(arguments.mpicc.as_deref())?;
    let mpiexec = mpicc.with_file_name("mpiexec");
    launcher::find_to_start(mpiexec.as_os_str())?;
    let out = &arguments.out;
    output_directory::make(out)?;
    eprintln!("tcam: compiling {} with {}", out.join(SOURCES[0].0).display(), mpicc.display());
    let mut signals = Signals::catch()?;
    let log = out.join("compile.log");
    let made = bundled::compile(&SOURCES, &mpicc, out, &log, &mut signals);
    let made = made.map_err(|error| match has_c_compiler() {
        true => error,
        false => message!(
            "{error}\nthere is no C compiler in PATH: install one (package gcc), or, without root:\n  \
             pip install ziglang\n  export MPICH_CC=\"python3 -m ziglang cc\" OMPI_CC=\"python3 -m ziglang cc\""
        ),
    })?;
    let Some(program) = made else {
        return Ok(signals.caught().map_or(0, signals::code_of));
    };
    drop(signals);
    let words = words(arguments, mpiexec, program);
    let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    eprintln!("tcam: {}", shown.join(" "));
    let mut command = parsed(&words)?;
    command.input = ProgramInput::None;
    let (code, is_drawn) = answer::print(&command)?;
    if is_drawn {
        eprintln!(
            "tcam: the picture is {}, the page {}",
            out.join("answer.png").display(),
            out.join("answer.html").display()
        );
    }
    Ok(code)
}

/// Returns the command line of `tcam answer`.
fn words(arguments: &Demo, mpiexec: PathBuf, program: PathBuf) -> Vec<OsString> {
    let out = &arguments.out;
    let number = |number: u32| OsString::from(number.to_string());
    vec![
        "tcam".into(),
        "answer".into(),
        "--ppn".into(),
        number(arguments.ranks.div_ceil(2)),
        "--out".into(),
        out.into(),
        "--html".into(),
        out.join("answer.html").into(),
        "--plot".into(),
        out.join("answer.png").into(),
        "--".into(),
        mpiexec.into(),
        "-n".into(),
        number(arguments.ranks),
        program.into(),
    ]
}

fn parsed(words: &[OsString]) -> Result<MakeAnswer, Error> {
    let command = MakeAnswer::augment_args(clap::Command::new("tcam answer"));
    let matches = command.try_get_matches_from(&words[1..]);
    matches
        .and_then(|matches| MakeAnswer::from_arg_matches(&matches))
        .map_err(|error| Error::Message(error.to_string()))
}

/// Returns the given compiler. If none is given, returns the `mpicc` in PATH, or else the one in
/// the directory of this program.
fn compiler(given: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(path) = given {
        return launcher::find_to_start(path.as_os_str());
    }
    let beside = || bundled::compiler_beside(&std::env::current_exe().ok()?);
    bundled::compiler_in_path().or_else(beside).ok_or_else(|| {
        message!(
            "no mpicc in PATH nor in the directory of tcam: `tcam demo` compiles an MPI program; \
             install an MPI, such as `pip install mpich`, or give its compiler with --mpicc PATH"
        )
    })
}

/// Returns true if a C compiler is in PATH.
fn has_c_compiler() -> bool {
    C_COMPILERS.iter().any(|name| launcher::find(OsStr::new(name)).is_ok())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        demo: Demo,
    }

    #[test]
    fn the_command_line_is_one_of_answer() {
        for ranks in ["2", "7", "32"] {
            let demo = Line::parse_from(["demo", "--out", "a b", "--ranks", ranks]).demo;
            let answer = parsed(&words(&demo, "/bin/mpiexec".into(), "a b/fds_gather".into()));
            assert!(answer.unwrap().runs_a_program(), "{ranks}");
        }
    }

    #[test]
    fn a_compiler_that_is_given_must_exist() {
        let error = compiler(Some(Path::new("./nosuchcc"))).unwrap_err().to_string();
        assert!(error.contains("./nosuchcc"), "{error}");
    }
}
