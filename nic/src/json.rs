// SPDX-License-Identifier: BSD-2-Clause
//! JSON for programs and people: one line per field, and arrays of numbers on one line.

use std::io;

use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

/// Formats the value as JSON.
///
/// # Errors
/// The errors of the value's `Serialize`.
pub(crate) fn to_string(value: &impl Serialize) -> serde_json::Result<String> {
    let mut text = Vec::new();
    let lines = Lines(PrettyFormatter::new());
    value.serialize(&mut Serializer::with_formatter(&mut text, lines))?;
    Ok(String::from_utf8(text).expect("JSON is written as UTF-8"))
}

/// Puts each field of an object on its own line, and each array on one line.
struct Lines(PrettyFormatter<'static>);

impl Formatter for Lines {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { to.write_all(b", ") }
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object(to)
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object(to)
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        to: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(to, first)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.begin_object_value(to)
    }

    fn end_object_value<W: ?Sized + io::Write>(&mut self, to: &mut W) -> io::Result<()> {
        self.0.end_object_value(to)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    #[test]
    fn arrays_are_on_one_line() {
        let value = BTreeMap::from([("a", vec![1, 2, 3]), ("b", vec![])]);
        let text = super::to_string(&value).unwrap();
        assert_eq!(text, "{\n  \"a\": [1, 2, 3],\n  \"b\": []\n}");
        assert_eq!(super::to_string(&BTreeMap::<String, u8>::new()).unwrap(), "{}");
    }
}
