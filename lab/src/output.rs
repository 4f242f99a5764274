// SPDX-License-Identifier: BSD-2-Clause
//! What is printed. These macros stand in for those of the standard library, which panic
//! where output goes nowhere: a run must end as its program does, whoever listens.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

macro_rules! print {
    ($($part:tt)*) => { $crate::output::out(format_args!($($part)*)) };
}

macro_rules! println {
    ($($part:tt)*) => { $crate::output::out(format_args!("{}\n", format_args!($($part)*))) };
}

macro_rules! eprint {
    ($($part:tt)*) => { $crate::output::error(format_args!($($part)*)) };
}

macro_rules! eprintln {
    ($($part:tt)*) => { $crate::output::error(format_args!("{}\n", format_args!($($part)*))) };
}

/// The first that failed.
static FAILED: OnceLock<io::Error> = OnceLock::new();

/// To standard output.
pub(crate) fn out(text: Arguments<'_>) {
    put(&mut io::stdout().lock(), text);
}

/// To standard error.
pub(crate) fn error(text: Arguments<'_>) {
    put(&mut io::stderr().lock(), text);
}

fn put(to: &mut impl Write, text: Arguments<'_>) {
    // In one piece: lines of several processes on one pipe stay lines.
    if let Err(error) = to.write_all(text.to_string().as_bytes()).and_then(|()| to.flush()) {
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
