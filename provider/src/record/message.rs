// SPDX-License-Identifier: BSD-2-Clause
//! Messages for the user on the error output.

use std::{
    fmt,
    io::{self, Write},
};

/// Prints a message to the error output, with a line feed.
pub(super) fn print(message: fmt::Arguments<'_>) {
    // If the error output is closed, there is no other place for the message.
    let _ = write_once(&mut io::stderr(), message);
}

/// Writes a message in one call, so that the messages of several ranks do not mix. `eprintln!`
/// makes a call for each part of its text.
fn write_once(output: &mut impl Write, message: fmt::Arguments<'_>) -> io::Result<()> {
    output.write_all(format!("{message}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_call() {
        struct Calls(Vec<String>);
        impl Write for Calls {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.push(String::from_utf8_lossy(bytes).into_owned());
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut calls = Calls(Vec::new());
        let (name, error) = ("x", 28);
        write_once(&mut calls, format_args!("tcam: {name}: error {error}")).unwrap();
        assert_eq!(calls.0, ["tcam: x: error 28\n"]);
    }
}
