// SPDX-License-Identifier: BSD-2-Clause
//! A table with its heading, for the terminal and for pages.

use crate::table;

/// See the module.
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

    /// For people at a terminal.
    pub(crate) fn terminal(&self) -> String {
        let mut table = table::blank();
        table.set_header(&self.header);
        table.add_rows(&self.rows);
        table::align(&mut table);
        format!("{}\n{table}", self.title)
    }
}
