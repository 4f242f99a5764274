// SPDX-License-Identifier: BSD-2-Clause
//! A figure of a paper beside ours: a table for the terminal and for Markdown.

use std::fmt::Write;

use crate::table;

/// A table with its heading and what is to be said of it.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub(super) title: &'static str,
    pub(super) note: &'static str,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Figure {
    pub(super) fn new<const N: usize>(
        title: &'static str,
        note: &'static str,
        header: [&str; N],
    ) -> Self {
        Self { title, note, header: header.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.header.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// For people at a terminal.
    pub(super) fn terminal(&self) -> String {
        let mut table = table::blank();
        table.set_header(&self.header);
        table.add_rows(&self.rows);
        table::align(&mut table);
        format!("{}\n{table}\n", self.title)
    }

    /// A section of a page.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}\n\n", self.title, self.note);
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        text += &line(&self.header);
        let _ = writeln!(text, "|{}", "---|".repeat(self.header.len()));
        for row in &self.rows {
            text += &line(row);
        }
        text.push('\n');
        text
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
    use super::*;

    #[test]
    fn a_figure_is_markdown() {
        let mut figure = Figure::new("Fig. 0", "Nothing.", ["n", "ours"]);
        figure.row(vec!["2".to_owned(), "1.0".to_owned()]);
        let expected = "## Fig. 0\n\nNothing.\n\n| n | ours |\n|---|---|\n| 2 | 1.0 |\n\n";
        assert_eq!(figure.markdown(), expected);
    }

    #[test]
    fn numbers_keep_three_digits() {
        let text = [0.00271, 0.25, 1.456, 54.32, 1234.5].map(digits);
        assert_eq!(text, ["0.0027", "0.25", "1.46", "54.3", "1234"]);
    }
}
