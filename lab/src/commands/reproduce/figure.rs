// SPDX-License-Identifier: BSD-2-Clause
//! A figure of a paper beside ours: a table for the terminal and for Markdown.

use std::fmt::Write;

use super::number::Number;
use crate::text::numbers::whole;
use crate::text::sheet::Sheet;

/// What is in a table: a text, and a range that only pages have room for.
#[derive(Clone, Debug)]
pub(super) struct Cell {
    text: String,
    range: Option<String>,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, range: None }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// A median with its range; empty where nothing was measured.
impl From<Option<&Number>> for Cell {
    fn from(number: Option<&Number>) -> Self {
        number.map_or_else(
            || "".into(),
            |number| {
                let shown =
                    |value| if number.counts() { whole(value as u64) } else { digits(value) };
                Self::shown(number.ours, [number.lowest, number.highest], shown)
            },
        )
    }
}

/// A table and what is to be said of it, before and after.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    title: &'static str,
    note: String,
    header: Vec<String>,
    rows: Vec<Vec<Cell>>,
    /// Numbered from 1.
    pub(super) footnotes: Vec<String>,
}

impl Figure {
    pub(super) fn new(
        title: &'static str,
        note: impl Into<String>,
        header: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        let header = header.into_iter().map(Into::into).collect();
        Self { title, note: note.into(), header, rows: Vec::new(), footnotes: Vec::new() }
    }

    /// Whether it has nothing to show.
    pub(super) const fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub(super) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// For people at a terminal, whose lines are short: without ranges.
    pub(super) fn terminal(&self) -> String {
        let mut sheet = Sheet::new(self.title, []);
        sheet.header.clone_from(&self.header);
        for row in &self.rows {
            sheet.row(row.iter().map(|cell| cell.text.clone()));
        }
        let mut text = format!("{}\n", sheet.terminal());
        self.put_footnotes(&mut text);
        text
    }

    /// A section of a page.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.title, self.note);
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        text += &line(&self.header);
        let _ = writeln!(text, "|{}", "---|".repeat(self.header.len()));
        for row in &self.rows {
            let cells: Vec<_> = row.iter().map(Cell::whole).collect();
            text += &line(&cells);
        }
        text.push('\n');
        self.put_footnotes(&mut text);
        if !self.footnotes.is_empty() {
            text.push('\n');
        }
        text
    }

    fn put_footnotes(&self, text: &mut String) {
        for (at, footnote) in self.footnotes.iter().enumerate() {
            let _ = writeln!(text, "{}. {footnote}", at + 1);
        }
    }
}

impl Cell {
    /// A number with its range.
    pub(super) fn ranged(ours: f64, range: [f64; 2]) -> Self {
        Self::shown(ours, range, digits)
    }

    /// The same with something behind the number.
    pub(super) fn with(self, more: &str) -> Self {
        Self { text: self.text + more, ..self }
    }

    fn shown(ours: f64, [lowest, highest]: [f64; 2], shown: impl Fn(f64) -> String) -> Self {
        let (lowest, highest) = (shown(lowest), shown(highest));
        let range = (lowest != highest).then(|| format!("{lowest} to {highest}"));
        Self { text: shown(ours), range }
    }

    fn whole(&self) -> String {
        match &self.range {
            Some(range) => format!("{} ({range})", self.text),
            None => self.text.clone(),
        }
    }
}

/// A time or a ratio with the digits that mean something.
pub(super) fn digits(value: f64) -> String {
    match value.abs() {
        0.0..0.1 => format!("{value:.4}"),
        0.1..9.95 => format!("{value:.2}"),
        9.95..99.5 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use matching::{HostEngine, Queue};

    use super::*;
    use crate::commands::reproduce::number::Place;
    use crate::workload::basis::Basis;
    use crate::workload::pattern::Pattern;

    #[test]
    fn a_figure_is_markdown_and_a_table() {
        let place = Place {
            pattern: Pattern::Fds,
            ranks: 2,
            queue: "PRQ",
            traffic: "all",
            engine: HostEngine::List,
            storage: Queue::Linked,
            k: 8,
        };
        let ours = Number::new("0", place, "ns", Basis::Measured, vec![1.0, 2.0, 3.0]);
        let mut figure = Figure::new("Fig. 0", "Nothing.", ["n", "ours"]);
        figure.row(vec!["2".into(), ours.as_ref().into()]);
        figure.footnotes.push("Not much.".to_owned());
        let expected = "## Fig. 0\n\nNothing.\n\n| n | ours |\n|---|---|\n\
                        | 2 | 2.00 (1.00 to 3.00) |\n\n1. Not much.\n\n";
        assert_eq!(figure.markdown(), expected);
        let terminal = figure.terminal();
        assert!(terminal.contains("2.00 \n") && !terminal.contains("1.00"), "{terminal}");
        assert!(terminal.ends_with("1. Not much.\n"), "{terminal}");
    }

    #[test]
    fn numbers_keep_three_digits() {
        let text = [0.00271, 0.25, 1.456, 54.32, 1234.5].map(digits);
        assert_eq!(text, ["0.0027", "0.25", "1.46", "54.3", "1234"]);
    }
}
