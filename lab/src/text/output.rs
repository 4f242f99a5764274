// SPDX-License-Identifier: BSD-2-Clause
//! Printing. These macros replace the macros of the standard library, which panic if the output is
//! closed. Even then `tcam run` must end with the status of its program. Printed text may contain
//! parts that other users wrote, such as names of files. To keep commands for the terminal out,
//! control characters are printed as `?`.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

use nic::plain::is_plain;

macro_rules! print {
    ($($part:tt)*) => { $crate::text::output::out(format_args!($($part)*)) };
}

macro_rules! println {
    ($($part:tt)*) => { $crate::text::output::out(format_args!("{}\n", format_args!($($part)*))) };
}

macro_rules! eprint {
    ($($part:tt)*) => { $crate::text::output::error(format_args!($($part)*)) };
}

macro_rules! eprintln {
    ($($part:tt)*) => { $crate::text::output::error(format_args!("{}\n", format_args!($($part)*))) };
}

/// The first error of standard output or standard error.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// Prints to standard output.
pub(crate) fn out(text: Arguments<'_>) {
    put(&mut io::stdout().lock(), text);
}

/// Clears the terminal, and prints to standard output.
pub(crate) fn out_alone(text: Arguments<'_>) {
    put_behind("\x1b[H\x1b[J", &mut io::stdout().lock(), text);
}

/// Prints to standard error.
pub(crate) fn error(text: Arguments<'_>) {
    put(&mut io::stderr().lock(), text);
}

fn put(to: &mut impl Write, text: Arguments<'_>) {
    put_behind("", to, text);
}

/// Writes a command for the terminal, and then a text whose control characters are replaced. Keeps
/// the first error in [`FAILED`].
fn put_behind(command: &str, to: &mut impl Write, text: Arguments<'_>) {
    let shown = |char: char| if is_plain(char) || matches!(char, '\n' | '\t') { char } else { '?' };
    let text: String = command.chars().chain(text.to_string().chars().map(shown)).collect();
    // One write, so that lines of several processes on one pipe stay whole.
    if let Err(error) = to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        let _ = FAILED.set(error);
    }
}

/// Returns the first error of standard output or standard error, or `None` without an error.
pub(crate) fn failed() -> Option<&'static io::Error> {
    FAILED.get()
}

/// Returns the first error of standard output or standard error. Returns `None` without an error,
/// and if the error is that the reader closed the output.
pub(crate) fn incomplete() -> Option<&'static io::Error> {
    failed().filter(|error| error.kind() != ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_is_printed_is_a_command_to_the_terminal() {
        let mut printed = Vec::new();
        put(&mut printed, format_args!("{}\n\tdone \u{9b}2J\r\n", "a\x1b]0;title\x07.trace"));
        assert_eq!(printed, b"a?]0;title?.trace\n\tdone ?2J?\n");
    }
}
