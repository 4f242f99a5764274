// SPDX-License-Identifier: BSD-2-Clause
//! Tables with a title and headings, for the terminal and for pages of HTML; and text that is
//! folded into lines.

use comfy_table::{CellAlignment, ColumnConstraint, Table, TableComponent, Width, presets};
use nic::plain::plain;

/// Number of characters in a line of a terminal. If a table is wider, its columns move together,
/// and then names in the first column are wrapped.
pub(crate) const WIDTH: usize = 80;
/// Smallest width to which the first column is narrowed.
const NAME: usize = 12;

/// A table with its title.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sheet {
    pub(crate) title: String,
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Sheet {
    pub(crate) fn new<const N: usize>(title: impl Into<String>, header: [&str; N]) -> Self {
        let header = header.map(str::to_owned).to_vec();
        Self { title: title.into(), header, rows: Vec::new() }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<_> = cells.into_iter().collect();
        assert_eq!(cells.len(), self.header.len(), "a cell for each column");
        self.rows.push(cells);
    }

    /// Returns the table with its title, for the terminal.
    pub(crate) fn terminal(&self) -> String {
        format!("{}\n{}", self.title, self.table())
    }

    /// Returns the table without its title. All columns except the first contain numbers and are
    /// aligned to the right. The header does not make a column wider than its longest word or cell.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::UTF8_HORIZONTAL_ONLY);
        for part in [
            TableComponent::HorizontalLines,
            TableComponent::MiddleIntersections,
            TableComponent::LeftBorderIntersections,
            TableComponent::RightBorderIntersections,
        ] {
            table.remove_style(part);
        }
        let widest = |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max();
        let header = self.header.iter().enumerate();
        table.set_header(header.map(|(at, name)| wrapped(name, widest(at).unwrap_or(0))));
        table.add_rows(&self.rows);
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        // At least one blank remains between two columns.
        for blanks in [(1, 0), (0, 0)] {
            if width_of(&table) > WIDTH {
                table.column_iter_mut().for_each(|column| _ = column.set_padding(blanks));
            }
        }
        let names = widest(0).unwrap_or(0);
        let narrow = names.saturating_sub(width_of(&table).saturating_sub(WIDTH));
        if narrow < names
            && narrow >= NAME
            && let Some(column) = table.column_mut(0)
        {
            column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(narrow as u16)));
        }
        table
    }
}

fn width_of(table: &Table) -> usize {
    table.to_string().lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

/// Wraps words into lines of this width, or of the width of the longest word if that is larger.
fn wrapped(text: &str, width: usize) -> String {
    let len = |word: &str| word.chars().count();
    let width = text.split(' ').map(len).max().unwrap_or(0).max(width);
    let mut lines = String::new();
    let mut used = 0;
    for word in text.split(' ') {
        if used > 0 {
            let fits = used + 1 + len(word) <= width;
            lines.push(if fits { ' ' } else { '\n' });
            used = if fits { used + 1 } else { 0 };
        }
        lines.push_str(word);
        used += len(word);
    }
    lines
}

/// Returns a text without control characters. A text of more than `width` characters is cut to
/// `width`, of which the last three are `...`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    let text = plain(text);
    match text.chars().count() {
        fits if fits <= width => text.into_owned(),
        _ => text.chars().take(width - 3).chain("...".chars()).collect(),
    }
}

/// Folds a text into lines of up to [`WIDTH`] characters, and cuts a word that is longer than a
/// line. The first line keeps its leading blanks, and the others are indented by `indent` blanks.
pub(crate) fn folded(text: &str, indent: usize) -> Vec<String> {
    let blanks = text.len() - text.trim_start().len();
    let mut lines = vec![" ".repeat(blanks)];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is a line");
        if !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{}{}", " ".repeat(indent), cut(word, WIDTH - indent)));
            continue;
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line.push_str(&cut(word, WIDTH));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_wrapped_where_a_table_is_wider_than_a_terminal() {
        let mut sheet = Sheet::new("", ["tag", "PRQ", "share", "UMQ", "share", "all", "all"]);
        let numbers = ["1,234,567", "100.0 %", "1,234,567", "100.0 %", "12,345", "12,345"];
        let name = "allreduce of communicator 496";
        sheet.row(std::iter::once(name).chain(numbers).map(str::to_owned));
        let text = sheet.table().to_string();
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("1,234,567") && text.contains("allreduce of"), "{text}");
        let mut sheet = Sheet::new("", ["rank"; 9]);
        sheet.row(["1,234,567"; 9].map(str::to_owned));
        let text = sheet.table().to_string();
        assert!(text.lines().all(|line| line.chars().count() == 89), "{text}");
    }

    #[test]
    fn headers_are_wrapped_and_cells_are_not() {
        assert_eq!(wrapped("matched in the table", 7), "matched\nin the\ntable");
        assert_eq!(wrapped("matched in the table", 10), "matched in\nthe table");
        assert_eq!(wrapped("rank", 1), "rank");
        assert_eq!(wrapped("", 9), "");
        let mut sheet = Sheet::new("Title", ["", "entries compared"]);
        sheet.row(["all ranks of all hosts", "12"].map(str::to_owned));
        let text = sheet.terminal();
        assert!(text.contains("all ranks of all hosts         12"), "{text}");
        assert_eq!(text.lines().count(), 7, "{text}");
    }
}
