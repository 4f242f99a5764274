// SPDX-License-Identifier: BSD-2-Clause
//! The runs of a sweep as numbers: `sweep.csv` and `--json`.

use std::fs::File;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::need::{Knob, Need};
use super::point::{Cost, Modelled};
use super::smallest::Smallest;
use super::spread::Spread;
use super::verdict::Swept;
use crate::error::Error;
use crate::file::{self, NewFile};
use crate::results::ranks::Completeness;
use crate::results::summary::Summary;

const NAME: &str = "sweep.csv";

/// One line of `sweep.csv`: one run, or one replay.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    prq_entries: usize,
    umq_entries: usize,
    /// Entries of the pool, if that varies.
    pool_entries: Option<usize>,
    repeat: u32,
    ranks: u32,
    /// Ranks of the job.
    ranks_of: u32,
    /// Ranks whose counts end before their program.
    ranks_cut_short: u32,
    /// Ranks of a node (`--ppn`); messages between them are left out.
    ranks_a_node: Option<NonZeroU32>,
    seconds: f64,
    wall_seconds: f64,
    messages: u64,
    unexpected: u64,
    at_once_percent: f64,
    promoted_percent: f64,
    in_table_percent: f64,
    spilled_percent: f64,
    prq_inserts: u64,
    prq_table_matches: u64,
    prq_host_matches: u64,
    prq_spills: u64,
    prq_promotions: u64,
    prq_high_water: u64,
    umq_inserts: u64,
    umq_table_matches: u64,
    umq_host_matches: u64,
    umq_spills: u64,
    umq_promotions: u64,
    umq_high_water: u64,
    /// Spilled elements of the MPI itself.
    internal_spills: u64,
    /// Nanoseconds per message in the timing model; none without it.
    matching_ns: Option<f64>,
    added_ns: Option<f64>,
    added_ns_worst_rank: Option<f64>,
    /// Latencies of arrivals and posts, including waiting.
    arrival_mean_ns: Option<f64>,
    arrival_median_ns: Option<f64>,
    arrival_99_percent_ns: Option<f64>,
    post_mean_ns: Option<f64>,
    post_median_ns: Option<f64>,
    post_99_percent_ns: Option<f64>,
    /// Entries that a linear search on the host compares for a message; only from traces without
    /// the timing model.
    host_entries_a_message: Option<f64>,
    /// Entries that the host engine traverses, if the settings name one.
    host_traversed_a_message: Option<f64>,
    /// Origin of the line, from the reports.
    command: String,
    mpi: String,
    libfabric: String,
    tcam: String,
    hosts: String,
    processors: String,
    started: String,
}

/// The JSON of a sweep.
#[derive(Debug, Serialize)]
pub(crate) struct Runs<'a> {
    title: &'a str,
    #[serde(flatten)]
    completeness: Completeness,
    /// The longest queues of all runs. Tables of these sizes hold them.
    prq_high_water: u64,
    prq_high_water_rank: Option<u32>,
    umq_high_water: u64,
    umq_high_water_rank: Option<u32>,
    /// The longest queues, run by run.
    prq_needs: Spread,
    umq_needs: Spread,
    /// The kind of size that varies.
    sizes_of: Knob,
    /// The smallest size without a spill.
    needed_entries: Option<u64>,
    /// The need of each recording, by rank and by NIC.
    needs: &'a [Need],
    /// A size that holds the need and its spread.
    recommended_entries: Option<u64>,
    runs: &'a [Row],
    /// Sizes that failed, with the reason.
    failed: Vec<String>,
    /// From traces, if the table holds the oldest elements.
    smallest_tables: Vec<Smallest>,
}

impl<'a> Runs<'a> {
    pub(crate) fn new(
        title: &'a str,
        runs: &'a [Row],
        swept: &'a Swept,
        completeness: Completeness,
        failed: Vec<String>,
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
            needs: &swept.needs,
            recommended_entries: swept.recommended(),
            runs,
            failed,
            smallest_tables: Vec::new(),
        }
    }

    pub(crate) fn of_traces(
        title: &'a str,
        runs: &'a [Row],
        swept: &'a Swept,
        completeness: Completeness,
        smallest_tables: Vec<Smallest>,
    ) -> Self {
        Self { smallest_tables, ..Self::new(title, runs, swept, completeness, Vec::new()) }
    }
}

/// `sweep.csv` while a sweep runs. Each line is written when its run has ended.
pub(crate) struct Rows {
    path: PathBuf,
    writer: csv::Writer<File>,
    all: Vec<Row>,
}

impl Rows {
    pub(crate) fn create(out: &Path) -> Result<Self, Error> {
        let path = out.join(NAME);
        let writer = csv::Writer::from_writer(file::begin(&path)?);
        Ok(Self { path, writer, all: Vec::new() })
    }

    pub(crate) fn put(&mut self, row: Row) -> Result<(), Error> {
        self.writer
            .serialize(&row)
            .map_err(|error| Error::Csv { path: self.path.clone(), error })?;
        self.all.push(row);
        self.writer.flush().map_err(Error::io(&self.path))
    }

    /// Returns all rows that were put.
    pub(crate) fn all(&self) -> &[Row] {
        &self.all
    }
}

/// Writes `sweep.csv` of replays at once.
pub(crate) fn write(out: &Path, rows: &[Row]) -> Result<(), Error> {
    let path = out.join(NAME);
    let failed = |error| Error::Csv { path: path.clone(), error };
    let mut csv = csv::Writer::from_writer(NewFile::create(&path)?);
    for row in rows {
        csv.serialize(row).map_err(failed)?;
    }
    csv.into_inner().map_err(|error| Error::io(&path)(error.into_error()))?.keep()
}

impl Row {
    pub(crate) fn of(
        knob: Knob,
        (prq, umq): (usize, usize),
        repeat: u32,
        wall_seconds: f64,
        sum: &Summary,
    ) -> Self {
        let (posted, unexpected) = (&sum.tagged.prq, &sum.tagged.umq);
        let (prq, umq, pool_entries) = match knob {
            Knob::Tables => (prq, umq, None),
            Knob::Pool => (posted.entries as usize, unexpected.entries as usize, Some(prq)),
        };
        let told = |name| {
            let line = sum.origin.iter().find(|(of, _)| *of == name);
            line.map_or_else(String::new, |(_, value)| value.clone())
        };
        Self {
            prq_entries: prq,
            umq_entries: umq,
            pool_entries,
            repeat,
            ranks: sum.ranks.told(),
            ranks_of: sum.ranks.of(),
            ranks_cut_short: sum.ranks.cut_short(),
            ranks_a_node: None,
            seconds: sum.seconds,
            wall_seconds,
            messages: sum.tagged.arrivals,
            unexpected: sum.tagged.unexpected,
            at_once_percent: sum.at_once(),
            promoted_percent: sum.promoted(),
            in_table_percent: sum.in_table(),
            spilled_percent: sum.spilled(),
            prq_inserts: posted.inserts,
            prq_table_matches: posted.table_matches,
            prq_host_matches: posted.host_matches,
            prq_spills: posted.spills,
            prq_promotions: posted.promotions,
            prq_high_water: posted.high_water,
            umq_inserts: unexpected.inserts,
            umq_table_matches: unexpected.table_matches,
            umq_host_matches: unexpected.host_matches,
            umq_spills: unexpected.spills,
            umq_promotions: unexpected.promotions,
            umq_high_water: unexpected.high_water,
            internal_spills: sum.internal_spills(),
            matching_ns: None,
            added_ns: None,
            added_ns_worst_rank: None,
            arrival_mean_ns: None,
            arrival_median_ns: None,
            arrival_99_percent_ns: None,
            post_mean_ns: None,
            post_median_ns: None,
            post_99_percent_ns: None,
            host_entries_a_message: None,
            host_traversed_a_message: None,
            command: told("command"),
            mpi: told("MPI"),
            libfabric: told("libfabric"),
            tcam: told("tcam"),
            hosts: told("hosts"),
            processors: told("processors"),
            started: told("started"),
        }
    }

    pub(crate) fn set_nodes(&mut self, ranks: Option<NonZeroU32>) {
        self.ranks_a_node = ranks;
    }

    /// Returns the row with the cost of matching.
    pub(crate) fn with(self, cost: Cost) -> Self {
        match cost {
            Cost::Modelled(Modelled { matching, added, worst, arrivals, posts, .. }) => Self {
                matching_ns: Some(matching),
                added_ns: Some(added),
                added_ns_worst_rank: Some(worst),
                arrival_mean_ns: arrivals[0],
                arrival_median_ns: arrivals[1],
                arrival_99_percent_ns: arrivals[2],
                post_mean_ns: posts[0],
                post_median_ns: posts[1],
                post_99_percent_ns: posts[2],
                ..self
            },
            Cost::Compared(entries) => Self { host_entries_a_message: Some(entries), ..self },
            Cost::Traversed(entries) => Self { host_traversed_a_message: Some(entries), ..self },
        }
    }
}
