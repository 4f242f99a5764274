// SPDX-License-Identifier: BSD-2-Clause
//! Measures the time per pair of every competitor: the fastest of several runs. In each pass, the
//! competitors run one after the other.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use ternary_cam::{Cam, Kernel, Table};

use crate::competitors::{FullScan, List, PerPeer, Ucx};
use crate::instructions;
use crate::matcher::Matcher;
use crate::stream::{Shape, Stream};

/// Columns, in the order printed. The first three are [`Table`] with each kernel, the next three
/// are [`Cam`]; `scan` is a full ternary scan with AVX-512.
const COMPETITORS: &[&str] = &[
    "avx512",
    "avx2",
    "scalar",
    "cam-avx512",
    "cam-avx2",
    "cam-scalar",
    "list",
    "per-peer",
    "ucx",
    "scan",
];

/// The command line.
pub(crate) struct Options {
    pub(crate) depths: Vec<usize>,
    /// Part of the names of the streams to run; empty for all.
    pub(crate) only: String,
    /// Directory for `ternary_cam-results.csv` and `.md`.
    pub(crate) report: Option<PathBuf>,
    /// Run the table for this many rounds without timing, so that callgrind can count instructions.
    pub(crate) rounds: Option<usize>,
    /// Count instructions.
    pub(crate) instructions: bool,
    /// Number of measurements of every row.
    pub(crate) passes: usize,
    /// Time for each competitor in each row of a pass.
    budget: Duration,
    /// Competitors to run; empty for all.
    competitors: Vec<String>,
}

impl Options {
    pub(crate) fn from_args(mut args: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut options = Self {
            depths: vec![1, 4, 16, 64, 256, 1024, 4096, 5120, 8192],
            only: String::new(),
            report: None,
            rounds: None,
            instructions: true,
            passes: 3,
            budget: Duration::from_millis(10),
            competitors: Vec::new(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            let number = |text: &str| text.parse().map_err(|_| format!("{text} is not a number"));
            match arg.as_str() {
                // Passed by `cargo bench` to every benchmark.
                "--bench" => {}
                "--only" => options.only = value()?,
                "--report" => options.report = Some(value()?.into()),
                "--no-instructions" => options.instructions = false,
                instructions::CHILD => options.rounds = Some(number(&value()?)?),
                "--depths" => {
                    options.depths = value()?.split(',').map(number).collect::<Result<_, _>>()?;
                }
                "--passes" => options.passes = number(&value()?)?.max(1),
                "--ms" => options.budget = Duration::from_millis(number(&value()?)? as u64),
                "--competitors" => {
                    options.competitors = value()?.split(',').map(str::to_owned).collect();
                }
                _ => {
                    return Err(format!(
                        "unknown option {arg}: expected --only, --depths, --competitors, --passes, \
                         --ms, --report or --no-instructions"
                    ));
                }
            }
        }
        Ok(options)
    }

    fn wants(&self, competitor: &str) -> bool {
        self.competitors.is_empty() || self.competitors.iter().any(|name| name == competitor)
    }
}

/// Runs the table without timing.
pub(crate) fn run_only(stream: &Stream, rounds: usize) {
    let live = stream.standing.len() + stream.entries.len();
    let mut table = Table::new(live.max(4096), Kernel::best()).expect("a stream's depth fits");
    stream.prepare(&mut table);
    for _ in 0..rounds {
        stream.round(&mut table);
    }
}

/// Nanoseconds per pair of every competitor; `None` if it cannot run or was not selected.
pub(crate) struct Row(Vec<Option<f64>>);

impl Row {
    pub(crate) fn measure(stream: &Stream, options: &Options) -> Self {
        let live = stream.standing.len() + stream.entries.len();
        let sources = 16 + live + 1024;
        let run = |competitor: &&str| -> Option<f64> {
            if !options.wants(competitor) {
                return None;
            }
            match *competitor {
                "list" => Some(time(stream, List::new(live), options)),
                "per-peer" => Some(time(stream, PerPeer::new(live, sources), options)),
                "ucx" => Some(time(stream, Ucx::new(live, stream.unexpected), options)),
                "scan" => Some(time(stream, FullScan::new(live)?, options)),
                table => {
                    let kernel = |name: &str| name.parse::<Kernel>().expect("a kernel's name");
                    let capacity = live.max(4096);
                    Some(match table.strip_prefix("cam-") {
                        Some(name) => time(stream, Cam::new(capacity, kernel(name)).ok()?, options),
                        None => time(stream, Table::new(capacity, kernel(table)).ok()?, options),
                    })
                }
            }
        };
        Self(COMPETITORS.iter().map(run).collect())
    }

    /// Keeps the lower time of each competitor. If `other` is `None`, keeps this row.
    pub(crate) fn or_quicker(mut self, other: Option<Self>) -> Self {
        for (ns, other) in self.0.iter_mut().zip(other.into_iter().flat_map(|other| other.0)) {
            *ns = ns.zip(other).map(|(ns, other)| ns.min(other));
        }
        self
    }

    pub(crate) fn cells(&self) -> impl Iterator<Item = (&'static str, Option<f64>)> + '_ {
        COMPETITORS.iter().copied().zip(self.0.iter().copied())
    }
}

/// Returns the names of the columns.
pub(crate) fn header() -> String {
    COMPETITORS.iter().map(|name| format!("{name:>16}")).collect()
}

impl std::fmt::Display for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let table = self.0.iter().take(3).flatten().next().copied();
        for ns in &self.0 {
            match (ns, table) {
                (Some(ns), Some(table)) => write!(f, "{ns:>9.1} {:>5.1}x", ns / table)?,
                (Some(ns), None) => write!(f, "{ns:>9.1}       ")?,
                (None, _) => write!(f, "{:>16}", "-")?,
            }
        }
        Ok(())
    }
}

/// Returns nanoseconds per pair: the minimum of at least three runs, each of which takes a fraction
/// of the budget. It is the minimum, because other load only ever adds time.
fn time<M: Matcher>(stream: &Stream, mut matcher: M, options: &Options) -> f64 {
    stream.prepare(&mut matcher);
    stream.round(&mut matcher);
    let start = Instant::now();
    stream.round(&mut matcher);
    let once = start.elapsed().max(Duration::from_nanos(20));
    let rounds = (options.budget / 16).div_duration_f64(once).ceil().max(1.0) as usize;
    let mut best = f64::INFINITY;
    let start = Instant::now();
    for run in 0.. {
        if run >= 3 && start.elapsed() > options.budget {
            break;
        }
        let lap = Instant::now();
        for _ in 0..rounds {
            std::hint::black_box(stream).round(&mut matcher);
        }
        best = best.min(lap.elapsed().as_nanos() as f64);
    }
    debug_assert!(stream.shape != Shape::Batch || stream.standing.is_empty());
    best / (rounds * stream.pairs()) as f64
}
