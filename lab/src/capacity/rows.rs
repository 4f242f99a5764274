// SPDX-License-Identifier: BSD-2-Clause
//! Writes the runs of a sweep as numbers, to `sweep.csv` and with `--json`.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::smallest::Smallest;
use super::{Cost, Knob, Modelled, Need, Swept};
use crate::error::Error;
use crate::file;
use crate::results::{Cell, Completeness, NamedValues, Summary, columns, counters};
use crate::stats::Variation;

const NAME: &str = "sweep.csv";
/// Name of the column with the number of ranks of a node (`--ppn`).
pub(crate) const RANKS_A_NODE: &str = "ranks_a_node";

/// The JSON of a sweep.
#[derive(Debug, Serialize)]
pub(crate) struct Runs {
    title: String,
    #[serde(flatten)]
    completeness: Completeness,
    /// Largest lengths of the queues in all runs, with their ranks. Tables of these sizes hold all
    /// elements that the device takes.
    prq_high_water: u64,
    prq_high_water_rank: Option<u32>,
    umq_high_water: u64,
    umq_high_water_rank: Option<u32>,
    /// Spread of the largest lengths from run to run.
    prq_needs: Variation,
    umq_needs: Variation,
    /// The kind of size that varies.
    sizes_of: Knob,
    /// The smallest size without a spill; `None` if no size is enough.
    needed_entries: Option<u64>,
    /// The need of each recording, by rank and by NIC.
    needs: Vec<Need>,
    /// A power of two that holds the need and its spread; `None` if no size is enough, or if the
    /// power of two exceeds the largest table.
    recommended_entries: Option<u64>,
    runs: Vec<NamedValues>,
    /// Sizes that failed, with the reason.
    failed: Vec<String>,
    /// The smallest tables. Empty unless they were computed from traces, on a device whose table
    /// always holds the oldest elements.
    smallest_tables: Vec<Smallest>,
}

impl Runs {
    pub(crate) fn new(
        title: String,
        runs: Vec<NamedValues>,
        swept: Swept,
        completeness: Completeness,
        failed: Vec<String>,
        smallest_tables: Vec<Smallest>,
    ) -> Self {
        let [prq, umq] = swept.peaks();
        let [prq_needs, umq_needs] = swept.spreads();
        Self {
            title,
            completeness,
            prq_high_water: prq.elements,
            prq_high_water_rank: prq.rank,
            umq_high_water: umq.elements,
            umq_high_water_rank: umq.rank,
            prq_needs,
            umq_needs,
            sizes_of: swept.knob,
            needed_entries: swept.needs(),
            recommended_entries: swept.recommended(),
            needs: swept.needs,
            runs,
            failed,
            smallest_tables,
        }
    }
}

/// `sweep.csv` while a sweep runs. Each line is written when its run has ended.
pub(crate) struct Rows {
    path: PathBuf,
    file: File,
    pub(crate) all: Vec<NamedValues>,
}

impl Rows {
    pub(crate) fn create(out: &Path) -> Result<Self, Error> {
        let path = out.join(NAME);
        Ok(Self { file: file::begin(&path)?, path, all: Vec::new() })
    }

    pub(crate) fn put(&mut self, row: NamedValues) -> Result<(), Error> {
        let line = columns::csv([&row], self.all.is_empty());
        self.all.push(row);
        self.file.write_all(&line).map_err(Error::io(&self.path))
    }
}

/// Writes `sweep.csv` with the rows of all replays.
pub(crate) fn write(out: &Path, rows: &[NamedValues]) -> Result<(), Error> {
    file::write(&out.join(NAME), columns::csv(rows, true))
}

/// Counts that depend on the host engine.
const OF_ENGINE: [&str; 6] = [
    "dedicated_collective",
    "dedicated_point_to_point",
    "unclustered",
    "host_traversed",
    "host_in_a_list",
    "modelled_ns",
];

/// Returns a line of `sweep.csv`: one run, or one replay with its cost.
pub(crate) fn row(
    knob: Knob,
    (prq, umq): (usize, usize),
    repeat: u32,
    wall_seconds: f64,
    sum: &Summary,
    cost: Option<Cost>,
) -> NamedValues {
    let tagged = &sum.tagged;
    let mut row = NamedValues::default();
    let (prq_entries, umq_entries, pool_entries) = match knob {
        Knob::Tables => (prq as u64, umq as u64, None),
        Knob::Pool => (tagged.prq.entries, tagged.umq.entries, Some(prq as u64)),
    };
    row.put("prq_entries", prq_entries);
    row.put("umq_entries", umq_entries);
    // The size of the pool, if that varies.
    row.put("pool_entries", pool_entries);
    row.put("repeat", repeat);
    row.put("ranks", sum.ranks.present());
    row.put("ranks_of", sum.ranks.job_size());
    row.put("ranks_cut_short", sum.ranks.cut_short());
    // The caller sets this value if ranks are placed on nodes. Messages within a node are then left
    // out.
    row.put(RANKS_A_NODE, Cell::Missing);
    row.put("seconds", sum.seconds);
    row.put("wall_seconds", wall_seconds);
    row.put("messages", tagged.arrivals);
    row.put("unexpected", tagged.unexpected);
    row.put("immediate_percent", sum.immediate());
    row.put("promoted_percent", sum.promoted());
    row.put("in_table_percent", sum.in_table());
    row.put("spilled_percent", sum.spilled());
    counters::put(&mut row, "prq", &tagged.prq);
    counters::put(&mut row, "umq", &tagged.umq);
    // With costs in compared entries, the counts may be those of one pass for all sizes, which has
    // no host engine.
    if matches!(cost, Some(Cost::Compared(_))) {
        for name in OF_ENGINE {
            row.set(&format!("prq_{name}"), Cell::Missing);
            row.set(&format!("umq_{name}"), Cell::Missing);
        }
    }
    row.put("internal_spills", sum.internal_spills());
    let modelled = cost.and_then(Cost::modelled);
    row.put("matching_ns", modelled.map(|of| of.matching));
    row.put("added_ns", modelled.map(|of| of.added));
    row.put("added_ns_worst_rank", modelled.map(|of| of.worst));
    Modelled::put_latencies(modelled.as_ref(), &mut row);
    let (compared, traversed) = match cost {
        Some(Cost::Compared(entries)) => (Some(entries), None),
        Some(Cost::Traversed(entries)) => (None, Some(entries)),
        _ => (None, None),
    };
    row.put("host_entries_a_message", compared);
    row.put("host_traversed_a_message", traversed);
    for name in ["command", "mpi", "libfabric", "tcam", "hosts", "processors", "started"] {
        let fact = sum.origin.iter().find(|(of, _)| of.eq_ignore_ascii_case(name));
        row.put(name, fact.map_or_else(String::new, |(_, value)| value.clone()));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::reports::tests::sample;

    fn of(knob: Knob, cost: Option<Cost>) -> NamedValues {
        let sum = Summary::of(&[sample(0, 4, 9), sample(1, 4, 4)]).unwrap();
        row(knob, (64, 32), 3, 1.5, &sum, cost)
    }

    fn read(out: &Path) -> Vec<Vec<String>> {
        let text = std::fs::read_to_string(out.join(NAME)).unwrap();
        text.lines().map(|line| line.split(',').map(str::to_owned).collect()).collect()
    }

    #[test]
    fn lines_are_written_one_by_one_and_once_with_names() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path();
        let mut rows = Rows::create(out).unwrap();
        assert!(read(out).is_empty());
        for count in 1..4 {
            rows.put(of(Knob::Tables, None)).unwrap();
            let lines = read(out);
            assert_eq!((rows.all.len(), lines.len()), (count, count + 1));
            assert_eq!(lines[0][0], "prq_entries");
            assert!(lines[1..].iter().all(|line| line[0] == "64" && line[1] == "32"));
            assert!(lines.iter().all(|line| line.len() == lines[0].len()));
        }
        let written = std::fs::read(out.join(NAME)).unwrap();
        write(out, &rows.all).unwrap();
        assert_eq!(std::fs::read(out.join(NAME)).unwrap(), written);
        assert!(Rows::create(&out.join("none")).is_err());
    }

    #[test]
    fn a_line_has_the_values_of_its_kind() {
        let values = |knob, cost| serde_json::to_value(of(knob, cost)).unwrap();
        let modelled = Modelled { matching: 7.0, added: 5.0, worst: 6.0, ..Modelled::default() };
        let costs = [
            ("matching_ns", Cost::Modelled(modelled), 7.0),
            ("host_entries_a_message", Cost::Compared(2.5), 2.5),
            ("host_traversed_a_message", Cost::Traversed(3.5), 3.5),
        ];
        for (name, cost, value) in costs {
            let line = values(Knob::Tables, Some(cost));
            assert_eq!(line[name], value);
            for (other, _, _) in costs.iter().filter(|(other, _, _)| *other != name) {
                assert!(line[*other].is_null(), "{other} with {name}");
            }
            assert_eq!(line["added_ns_worst_rank"].as_f64().is_some(), name == "matching_ns");
            let has_engine = name != "host_entries_a_message";
            assert_eq!(line["umq_host_traversed"].as_u64().is_some(), has_engine);
            assert!(line["umq_misses"].is_u64());
        }
        let tables = values(Knob::Tables, None);
        assert_eq!((&tables["prq_entries"], &tables["umq_entries"]), (&64.into(), &32.into()));
        assert!(tables["pool_entries"].is_null());
        assert_eq!((&tables["repeat"], &tables["ranks"]), (&3.into(), &2.into()));
        let pool = values(Knob::Pool, None);
        assert_eq!((&pool["prq_entries"], &pool["pool_entries"]), (&4.into(), &64.into()));
    }
}
