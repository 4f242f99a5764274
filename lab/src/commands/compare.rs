// SPDX-License-Identifier: BSD-2-Clause
//! `tcam compare`: one recording on several devices, side by side.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;
use matching::QueueCounters;
use nic::models::MODELS;
use serde::Serialize;

use crate::capacity::curve::{self, Replayed};
use crate::capacity::judged::{self, Judged};
use crate::capacity::need::{self, Knob, Need};
use crate::capacity::point::{Cost, Modelled};
use crate::error::Error;
use crate::file;
use crate::options::Tables;
use crate::results::json::{Json, Kind, Place};
use crate::results::ranks::Completeness;
use crate::results::summary::{Peak, Summary, spilled};
use crate::results::summary_text::rank_of;
use crate::settings::{self, Settings};
use crate::text::numbers::{bytes, count, percent, share, total, whole};
use crate::text::progress;
use crate::text::sheet::Sheet;
use crate::traces::node::Placed;
use crate::traces::take::Take;
use crate::traces::trace::Trace;
use crate::traces::{files, play};

/// Compares what devices would do with a recorded program, side by side.
///
/// Plays the traces as they were recorded, then to every device that has a name, or to
/// what --with says, and prints a line for each: what fit the table, what
/// spilled and mostly why, and what the host had to compare.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tcam compare tcam-trace
  tcam compare --timing cpu-list tcam-trace
  tcam compare --prq 512 --umq 512 tcam-trace
  tcam compare --with overflow=spill --with overflow=prefix --with overflow=sticky tcam-trace
  tcam compare --with device=alpu --with device=alpu,prq_entries=128,umq_entries=128 tcam-trace")]
pub(crate) struct Compare {
    /// A line of the comparison: parameters that are set for it, such as device=connectx or
    /// host_engine=list,queue=linked; all devices unless given.
    #[arg(long, value_name = "NAME=VALUE,...")]
    with: Vec<String>,

    #[command(flatten)]
    tables: Tables,

    /// Sets a parameter for all lines, as --prq and --umq do; what --with sets wins.
    #[arg(long, value_name = "NAME=VALUE")]
    set: Vec<String>,

    /// Costs of searches for all lines: cpu-list, cpu-hash or none.
    #[arg(long, value_name = "NAME")]
    timing: Option<String>,

    /// Writes the numbers to this file as well; - is standard output, in place of the table.
    #[arg(long, value_name = "FILE")]
    csv: Option<Place>,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    placed: Placed,

    #[command(flatten)]
    take: Take,

    /// Traces, or directories of traces.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
}

/// A line of the comparison, before it is replayed.
struct Line {
    name: String,
    settings: Settings,
}

/// Numbers of a line, for `--csv` and `--json`.
#[derive(Debug, Serialize)]
struct Row<'a> {
    what: &'a str,
    /// Ranks of a node, where messages between these were left out.
    ranks_a_node: Option<NonZeroU32>,
    prq_entries: u64,
    umq_entries: u64,
    messages: u64,
    at_once_percent: f64,
    promoted_percent: f64,
    in_table_percent: f64,
    prq_spilled_percent: f64,
    umq_spilled_percent: f64,
    prq_spills: u64,
    umq_spills: u64,
    /// Of the MPI itself.
    internal_spills: u64,
    mostly: &'a str,
    /// Entries that a linear search on the host compares for a message, without the timing
    /// model.
    host_entries_a_message: Option<f64>,
    /// Those that the host engine traverses.
    host_traversed_a_message: f64,
    /// Nanoseconds a message, of the timing model.
    matching_ns: Option<f64>,
    added_ns: Option<f64>,
    arrival_mean_ns: Option<f64>,
    arrival_median_ns: Option<f64>,
    arrival_99_percent_ns: Option<f64>,
    post_mean_ns: Option<f64>,
    post_median_ns: Option<f64>,
    post_99_percent_ns: Option<f64>,
}

/// All that `--json` tells.
#[derive(Debug, Serialize)]
struct Compared<'a> {
    title: String,
    #[serde(flatten)]
    completeness: Completeness,
    lines: Vec<Row<'a>>,
    /// What the recording needs, by rank and by NIC.
    need: Need,
    judged: Vec<Judged>,
}

/// Prints the comparison. Returns 0.
pub(crate) fn compare(arguments: &Compare) -> Result<u8, Error> {
    settings::note_unused();
    let csv_output = arguments.csv == Some(Place::Output);
    if csv_output && arguments.json.takes_output() {
        return Err(Error::OneOutput);
    }
    let mut common = Settings::for_replay("--set", &arguments.set)?;
    common.give_sizes(arguments.tables)?;
    let first = if common.is_empty() { "as recorded" } else { "as set" };
    common.give("timing", "--timing", arguments.timing.as_ref())?;
    let found = files::find(&arguments.traces, arguments.take)?.placed(&arguments.placed)?;
    let lines = lines(first, &arguments.with, &common)?;
    if let Some(mixed) = files::mixed(&found) {
        eprintln!("{mixed}");
    }
    // What is wrong with one of them is said before the first replay.
    let params: Result<Vec<_>, _> =
        lines.iter().map(|line| files::params(&found, &line.settings)).collect();
    let params = params?;
    if let Some(Place::File(path)) = &arguments.csv {
        file::check(path)?;
    }
    arguments.json.check()?;
    let held: Vec<_> = lines
        .iter()
        .zip(&params)
        .filter(|(_, params)| play::holds_back(params))
        .map(|(line, _)| line.name.as_str())
        .collect();
    if !held.is_empty() {
        play::note_flow_control(&format!("{} (overflow=flow-control)", held.join(", ")));
    }
    // One unit for all lines, or they could not be compared.
    let charged = params.iter().flatten().any(curve::is_charged);
    let length: u64 = found.iter().map(Trace::records).sum();
    if length >= play::LONG {
        progress::step(&format!("{} devices, {} of traces each", lines.len(), bytes(length)));
    }
    let settings: Vec<_> = lines.iter().map(|line| line.settings.clone()).collect();
    let replayed: Vec<_> = (lines.iter().zip(curve::replayed(&found, &settings, charged)?))
        .filter_map(|(line, of)| Some((line.name.as_str(), of?)))
        .collect();
    let bar = play::bar(&found, 1);
    let need = Need::of(&found, &common, Knob::Pool, &bar)?;
    bar.finish_and_clear();
    let pools = params.iter().map(|params| params.iter().any(|of| Knob::of(of) == Knob::Pool));
    let judged: Vec<_> = replayed
        .iter()
        .zip(pools)
        .map(|((name, of), pool)| Judged::of(name, &of.sum, pool))
        .collect();
    let title = curve::title(&found);
    let ranks = found.ranks();
    if let Some(lack) = ranks.lack("trace") {
        eprintln!("{lack}");
    }
    if !arguments.json.takes_output() && !csv_output {
        println!("{}", sheet(&title, &replayed, charged).terminal());
        if let Some((_, first)) = replayed.first() {
            println!("{}", foot(&first.sum, charged));
        }
        need::told_of_nic([&need]).iter().for_each(|line| println!("{line}"));
        println!("{}", judged::sentence(&judged));
    }
    let rows: Vec<_> =
        replayed.iter().map(|(what, of)| Row::of(what, of, arguments.placed.ppn)).collect();
    match &arguments.csv {
        Some(Place::File(path)) => file::write(path, csv(&rows)?)?,
        Some(Place::Output) => print!("{}", csv(&rows)?),
        None => {}
    }
    let completeness = ranks.completeness();
    arguments
        .json
        .write(Kind::Compare, Compared { title, completeness, lines: rows, need, judged })?;
    Ok(ranks.code(arguments.take.partial))
}

/// What is compared: first what all lines have, then all devices or what was asked for.
fn lines(first: &str, with: &[String], common: &Settings) -> Result<Vec<Line>, Error> {
    let mut lines = vec![Line { name: first.to_owned(), settings: common.clone() }];
    if with.is_empty() {
        // `generic` has the parameters of no device.
        for model in MODELS.iter().filter(|model| !model.sets.is_empty()) {
            let mut settings = common.clone();
            settings.set("device", &model.name);
            lines.push(Line { name: model.name.to_owned(), settings });
        }
    }
    for words in with {
        let mut settings = common.clone();
        settings.merge(Settings::for_replay("--with", &assignments(words))?);
        lines.push(Line { name: words.clone(), settings });
    }
    Ok(lines)
}

/// `a=1,b=x,y` as `a=1` and `b=x,y`: values may have commas, too.
fn assignments(words: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for word in words.split(',') {
        match found.last_mut() {
            Some(last) if !word.contains('=') => {
                last.push(',');
                last.push_str(word);
            }
            _ => found.push(word.to_owned()),
        }
    }
    found
}

fn sheet(title: &str, replayed: &[(&str, Replayed)], charged: bool) -> Sheet {
    let cost = if charged { "host adds, ns" } else { "host traverses" };
    let header = ["", "fit at once", "PRQ spilled", "UMQ spilled", cost, "mostly for"];
    let mut sheet = Sheet::new(title, header);
    for (name, Replayed { sum, cost, traversed }) in replayed {
        let (prq, umq) = (&sum.tagged.prq, &sum.tagged.umq);
        let cost = match cost {
            Cost::Modelled(Modelled { added, .. }) => added,
            Cost::Compared(_) => traversed,
        };
        sheet.row([
            (*name).to_owned(),
            share(sum.at_once()),
            share(spilled(prq)),
            share(spilled(umq)),
            format!("{cost:.1}"),
            mostly(prq, umq).map_or_else(|| "-".to_owned(), |reason| reason.to_string()),
        ]);
    }
    sheet
}

/// The reason that most elements of both queues spilled for.
struct Mostly {
    reason: &'static str,
    per_cent: f64,
}

impl std::fmt::Display for Mostly {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.per_cent {
            100.0 => f.write_str(self.reason),
            per_cent => write!(f, "{} ({})", self.reason, share(per_cent)),
        }
    }
}

fn mostly(prq: &QueueCounters, umq: &QueueCounters) -> Option<Mostly> {
    let both = prq.block_reasons.iter().zip(umq.block_reasons.iter());
    let most = both.map(|((reason, prq), (_, umq))| (total([prq, umq]), reason)).max()?;
    let (elements, reason) = most;
    let per_cent = percent(elements, total([prq.spills, umq.spills]));
    (elements > 0).then_some(Mostly { reason, per_cent })
}

/// What the columns mean, and what no device changes.
fn foot(sum: &Summary, charged: bool) -> String {
    let unit = match charged {
        true => "host adds: what spilled elements cost a message, on average, as modelled",
        false => "host traverses: entries that the engine's searches pass there, a message",
    };
    let longest = |peak: &Peak| format!("{}{}", whole(peak.elements), rank_of(peak));
    format!(
        "{unit}\n{}; longest PRQ {}, UMQ {}",
        count(sum.tagged.arrivals, "message"),
        longest(&sum.prq_peak),
        longest(&sum.umq_peak),
    )
}

impl<'a> Row<'a> {
    fn of(
        what: &'a str,
        Replayed { sum, cost, traversed }: &Replayed,
        ranks_a_node: Option<NonZeroU32>,
    ) -> Self {
        let (prq, umq) = (&sum.tagged.prq, &sum.tagged.umq);
        let modelled = match cost {
            Cost::Modelled(modelled) => Some(modelled),
            Cost::Compared(_) => None,
        };
        Self {
            what,
            ranks_a_node,
            prq_entries: prq.entries,
            umq_entries: umq.entries,
            messages: sum.tagged.arrivals,
            at_once_percent: sum.at_once(),
            promoted_percent: sum.promoted(),
            in_table_percent: sum.in_table(),
            prq_spilled_percent: spilled(prq),
            umq_spilled_percent: spilled(umq),
            prq_spills: prq.spills,
            umq_spills: umq.spills,
            internal_spills: sum.internal_spills(),
            mostly: mostly(prq, umq).map_or("", |mostly| mostly.reason),
            host_entries_a_message: modelled.is_none().then(|| cost.value()),
            host_traversed_a_message: *traversed,
            matching_ns: modelled.map(|modelled| modelled.matching),
            added_ns: modelled.map(|modelled| modelled.added),
            arrival_mean_ns: modelled.and_then(|modelled| modelled.arrivals[0]),
            arrival_median_ns: modelled.and_then(|modelled| modelled.arrivals[1]),
            arrival_99_percent_ns: modelled.and_then(|modelled| modelled.arrivals[2]),
            post_mean_ns: modelled.and_then(|modelled| modelled.posts[0]),
            post_median_ns: modelled.and_then(|modelled| modelled.posts[1]),
            post_99_percent_ns: modelled.and_then(|modelled| modelled.posts[2]),
        }
    }
}

/// The lines as CSV.
fn csv(lines: &[Row<'_>]) -> Result<String, Error> {
    let mut csv = csv::Writer::from_writer(Vec::new());
    for line in lines {
        csv.serialize(line).map_err(Error::NoCsv)?;
    }
    let bytes = csv.into_inner().map_err(|error| Error::NoCsv(error.into_error().into()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::reports::tests::sample;

    #[test]
    fn values_may_have_commas() {
        assert_eq!(assignments("device=alpu"), ["device=alpu"]);
        let words = assignments("refuse=any-source,non-contiguous,prq_entries=7");
        assert_eq!(words, ["refuse=any-source,non-contiguous", "prq_entries=7"]);
    }

    #[test]
    fn all_devices_unless_asked_for() {
        let names = |with: &[&str]| -> Vec<_> {
            let with: Vec<_> = with.iter().map(|&words| words.to_owned()).collect();
            let lines = lines("as recorded", &with, &Settings::default()).unwrap();
            lines.into_iter().map(|line| line.name).collect()
        };
        assert_eq!(names(&[])[..2], ["as recorded", "cassini-hybrid"]);
        assert_eq!(names(&[]).len(), MODELS.len());
        assert_eq!(names(&["device=alpu"]), ["as recorded", "device=alpu"]);
    }

    #[test]
    fn the_commonest_reason_is_told_with_its_share() {
        let queue = &sample(0, 10, 25).tagged.prq;
        assert_eq!(mostly(queue, queue).unwrap().to_string(), "table full");
        let mut other = queue.clone();
        other.block_reasons.table_full = 0;
        other.block_reasons.refused = 15;
        let small = QueueCounters { spills: 5, ..QueueCounters::default() };
        assert_eq!(mostly(&other, &small).unwrap().to_string(), "refused (75.0 %)");
        let none = QueueCounters::default();
        assert!(mostly(&none, &none).is_none());
    }
}
