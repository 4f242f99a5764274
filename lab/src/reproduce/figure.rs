// SPDX-License-Identifier: BSD-2-Clause
//! A figure of a paper beside ours: a table for the terminal and for Markdown.

use std::fmt::Write;

use crate::sheet::Sheet;

/// A table and what is to be said of it.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    sheet: Sheet,
    note: &'static str,
}

impl Figure {
    pub(super) fn new<const N: usize>(
        title: &'static str,
        note: &'static str,
        header: [&str; N],
    ) -> Self {
        Self { sheet: Sheet::new(title, header), note }
    }

    pub(super) fn row(&mut self, cells: Vec<String>) {
        self.sheet.row(cells);
    }

    /// For people at a terminal.
    pub(super) fn terminal(&self) -> String {
        format!("{}\n", self.sheet.terminal())
    }

    /// A section of a page.
    pub(super) fn markdown(&self) -> String {
        let Sheet { title, header, rows } = &self.sheet;
        let mut text = format!("## {title}\n\n{}\n\n", self.note);
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        text += &line(header);
        let _ = writeln!(text, "|{}", "---|".repeat(header.len()));
        for row in rows {
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
