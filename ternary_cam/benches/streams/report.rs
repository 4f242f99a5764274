// SPDX-License-Identifier: BSD-2-Clause
//! Writes the results to files: a CSV file with every number, and a Markdown page with tables and a
//! description of the machine.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::instructions::DEPTHS;
use crate::measure::Row;

/// All measurements.
#[derive(Default)]
pub(crate) struct Report {
    /// `(stream, depth, competitor, ns a pair)`.
    times: Vec<(&'static str, usize, &'static str, f64)>,
    instructions: Vec<(&'static str, [f64; DEPTHS.len()])>,
}

impl Report {
    pub(crate) fn add(&mut self, stream: &'static str, depth: usize, row: &Row) {
        let cells = row.cells().filter_map(|(name, ns)| Some((stream, depth, name, ns?)));
        self.times.extend(cells);
    }

    pub(crate) fn add_instructions(&mut self, stream: &'static str, counts: [f64; DEPTHS.len()]) {
        self.instructions.push((stream, counts));
    }

    /// Writes `ternary_cam-results.csv` and `ternary_cam-results.md`.
    pub(crate) fn write(&self, directory: &Path) -> std::io::Result<()> {
        fs::write(directory.join("ternary_cam-results.csv"), self.csv())?;
        fs::write(directory.join("ternary_cam-results.md"), self.page())
    }

    fn csv(&self) -> String {
        let mut csv = String::from("stream,depth,competitor,unit,value\n");
        for (stream, depth, competitor, ns) in &self.times {
            writeln!(csv, "{stream},{depth},{competitor},ns,{ns:.2}").expect("to a string");
        }
        for (stream, counts) in &self.instructions {
            for (depth, count) in DEPTHS.iter().zip(counts) {
                writeln!(csv, "{stream},{depth},table,instructions,{count:.1}")
                    .expect("to a string");
            }
        }
        csv
    }

    fn page(&self) -> String {
        let mut page = format!(
            "# ternary_cam: measured\n\n\
             `cargo bench -p tcam-ternary-cam -- --report ../papers` writes this page. \
             [ternary_cam-results.csv](ternary_cam-results.csv) has the numbers.\n\n\
             {}\n\nNanoseconds a pair (insert + match + remove; in `miss` the search alone). Each \
             number is from the fastest of several runs in several passes. \
             `ternary_cam/benches/streams/stream.rs` documents the streams.\n",
            machine()
        );
        let mut columns: Vec<&str> = Vec::new();
        for (_, _, competitor, _) in &self.times {
            if !columns.contains(competitor) {
                columns.push(competitor);
            }
        }
        writeln!(page, "\n| stream | depth | {} |", columns.join(" | ")).expect("to a string");
        writeln!(page, "|---|---:|{}", "---:|".repeat(columns.len())).expect("to a string");
        let mut rows: Vec<(&str, usize)> = self.times.iter().map(|time| (time.0, time.1)).collect();
        rows.dedup();
        for (stream, depth) in rows {
            let cell = |column: &&str| {
                self.times
                    .iter()
                    .find(|time| (time.0, time.1, time.2) == (stream, depth, column))
                    .map_or_else(|| "-".to_owned(), |time| format!("{:.1}", time.3))
            };
            let cells: Vec<String> = columns.iter().map(cell).collect();
            writeln!(page, "| {stream} | {depth} | {} |", cells.join(" | ")).expect("to a string");
        }
        if !self.instructions.is_empty() {
            page.push_str("\nInstructions of a pair in the table (callgrind):\n\n| stream |");
            for depth in DEPTHS {
                write!(page, " depth {depth} |").expect("to a string");
            }
            writeln!(page, "\n|---|{}", "---:|".repeat(DEPTHS.len())).expect("to a string");
            for (stream, counts) in &self.instructions {
                let cells: Vec<String> = counts.iter().map(|count| format!("{count:.0}")).collect();
                writeln!(page, "| {stream} | {} |", cells.join(" | ")).expect("to a string");
            }
        }
        page
    }
}

/// Returns a line with processor, number of cores, Linux version and load average.
fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = read("/proc/cpuinfo");
    let field = |name: &str| {
        cpuinfo
            .lines()
            .find(|line| line.starts_with(name))
            .and_then(|line| line.split(": ").nth(1))
            .unwrap_or("unknown")
            .to_owned()
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = read("/proc/loadavg");
    format!(
        "Machine: {} (family {}, model {}), {cores} cores, shared; Linux {}; load average {}.",
        field("model name"),
        field("cpu family"),
        field("model\t"),
        read("/proc/sys/kernel/osrelease").trim(),
        load.split(' ').next().unwrap_or("unknown")
    )
}
