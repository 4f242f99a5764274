// SPDX-License-Identifier: BSD-2-Clause
//! What is printed. These macros stand in for those of the standard library, which panic
//! where output goes nowhere: a run must end as its program does, whoever listens. What they
//! print may have been written by others, the names of files as well, and commands nothing to
//! a terminal.

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

/// The first that failed.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// To standard output.
pub(crate) fn out(text: Arguments<'_>) {
    put(&mut io::stdout().lock(), text);
}

/// The same on a terminal that has nothing else.
pub(crate) fn out_alone(text: Arguments<'_>) {
    put_behind("\x1b[H\x1b[J", &mut io::stdout().lock(), text);
}

/// To standard error.
pub(crate) fn error(text: Arguments<'_>) {
    put(&mut io::stderr().lock(), text);
}

fn put(to: &mut impl Write, text: Arguments<'_>) {
    put_behind("", to, text);
}

fn put_behind(command: &str, to: &mut impl Write, text: Arguments<'_>) {
    let shown = |char: char| if is_plain(char) || matches!(char, '\n' | '\t') { char } else { '?' };
    let text: String = command.chars().chain(text.to_string().chars().map(shown)).collect();
    // In one piece: lines of several processes on one pipe stay lines.
    if let Err(error) = to.write_all(text.as_bytes()).and_then(|()| to.flush()) {
        let _ = FAILED.set(error);
    }
}

/// Why output did not get where it should, if it did not.
pub(crate) fn failed() -> Option<&'static io::Error> {
    FAILED.get()
}

/// Why output is not complete, if somebody still waits for it.
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
