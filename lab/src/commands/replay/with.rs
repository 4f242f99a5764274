// SPDX-License-Identifier: BSD-2-Clause
//! `tcam replay --with`: replays recordings on several devices, and prints a line for each.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use matching::QueueCounters;
use nic::models;
use nic::plain::plain;
use serde::Serialize;

use super::arguments::Replay;
use crate::capacity::{Cost, Judged, Knob, Modelled, Need, Replayed, curve, judged, need};
use crate::error::Error;
use crate::file;
use crate::results::summary::spilled;
use crate::results::summary_text::rank_of;
use crate::results::{
    Completeness, Destination, Kind, NamedValues, Peak, Summary, columns, counters,
};
use crate::settings::Settings;
use crate::text::{Sheet, bytes, count, folded, percent, progress, share, total, whole};
use crate::traces::{Found, Trace, files, play, repeats};

/// Value of `--with` for a line of every device.
const DEVICES: &str = "devices";

/// What is printed if parameters for all lines meet those of devices.
const REPLACED: &str =
    "What --prq, --umq, --set and --timing set replaces that parameter of each device";

/// A line of the comparison, with the settings to replay.
struct Configuration {
    name: String,
    settings: Settings,
}

/// The JSON of one recording.
#[derive(Debug, Serialize)]
struct Compared {
    recording: Option<String>,
    title: String,
    #[serde(flatten)]
    completeness: Completeness,
    lines: Vec<NamedValues>,
    /// The need of each rank and of each NIC.
    need: Need,
    judged: Vec<Judged>,
}

/// Prints the comparison. Returns 0, or 3 if results are incomplete.
pub(super) fn compare(arguments: &Replay) -> Result<u8, Error> {
    let csv_output = arguments.csv == Some(Destination::Output);
    if csv_output && arguments.json.takes_output() {
        fail!("--csv - and --json -: only one of them can go to standard output");
    }
    let mut common = Settings::for_replay("--set", &arguments.set)?;
    common.give_sizes(arguments.tables)?;
    let first = if common.is_empty() { "as recorded" } else { "as set" };
    common.give("timing", "--timing", arguments.timing.as_ref())?;
    let groups = repeats::groups(&arguments.traces, arguments.take, &arguments.placed)?;
    let recordings = || groups.iter().flatten().map(|recording| &recording.found);
    let lines = lines(first, &arguments.with, &common)?;
    recordings().for_each(|found| files::note_mixed(found));
    recordings().for_each(files::note_waits);
    recordings().for_each(files::note_polled);
    // Settings that do not fit one of the recordings fail before the first replay.
    let of_line = |line: &Configuration| {
        let params = recordings().map(|found| files::params(found, &line.settings));
        params.collect::<Result<Vec<_>, _>>().map(|params| params.concat())
    };
    let params = lines.iter().map(of_line).collect::<Result<Vec<_>, _>>()?;
    if let Some(Destination::File(path)) = &arguments.csv {
        file::check(path)?;
    }
    arguments.json.check()?;
    // The costs of all lines have one unit, so that they can be compared.
    let charged = params.iter().flatten().any(curve::is_charged);
    let engines = charged.then(|| curve::engine_note(params.iter().flatten()));
    let length: u64 = recordings().flat_map(|found| found.iter()).map(Trace::records).sum();
    if length >= play::LONG {
        progress::step(&format!("{} devices, {} of traces each", lines.len(), bytes(length)));
    }
    let pools: Vec<bool> =
        (params.iter()).map(|params| params.iter().any(|of| Knob::of(of) == Knob::Pool)).collect();
    let (mut compared, mut code, mut held) = (Vec::new(), 0, BTreeSet::new());
    for group in &groups {
        let runs = group.iter().map(|recording| replayed(&lines, &recording.found, charged));
        let runs = runs.collect::<Result<Vec<_>, _>>()?;
        for ((name, of), params) in runs.iter().flat_map(|run| run.iter().zip(&params)) {
            if play::holds_back(params) && of.sum.of_both(|queue| queue.spills) > 0 {
                held.insert(name.clone());
            }
        }
        let first = compared.len();
        for (recording, run) in group.iter().zip(&runs) {
            let ranks = recording.found.ranks();
            let name =
                recording.name.as_ref().map(|name| plain(&name.display().to_string()).into_owned());
            let before = name.as_ref().map_or_else(String::new, |name| format!("{name}: "));
            ranks.lack("trace").iter().for_each(|lack| eprintln!("{before}{lack}"));
            code = code.max(ranks.code(arguments.take.partial));
            let need = |bar: &_| Need::of(&recording.found, &common, Knob::Tables, bar);
            let need = play::with_bar(&recording.found, 1, need)?;
            compared.push(Compared {
                title: curve::title(&recording.found),
                completeness: ranks.completeness(),
                lines: run
                    .iter()
                    .map(|(what, of)| record(what, of, arguments.placed.ppn, name.clone()))
                    .collect(),
                need,
                judged: (run.iter().zip(&pools))
                    .map(|((name, of), &pool)| Judged::of(name, &of.sum, pool))
                    .collect(),
                recording: name,
            });
        }
        if !arguments.json.takes_output() && !csv_output {
            let title = match group.len() {
                1 => curve::title(&group[0].found),
                all => format!("{}, the worst of {all} runs", curve::title(&group[0].found)),
            };
            println!("{}", sheet(&title, &runs, charged).terminal());
            println!("{}", foot(&runs, charged));
            for line in engines.iter().flat_map(|note| folded(note, 2)) {
                println!("{line}");
            }
            let of_group = &compared[first..];
            let lacks = group.iter().any(|of| of.found.ranks().lack("trace").is_some());
            let needs = of_group.iter().map(|of| &of.need);
            let judged: Vec<_> = of_group.iter().map(|of| &of.judged[..]).collect();
            let sentences = need::nic_sentence(needs.clone(), lacks).into_iter();
            let sentences = sentences.chain([judged::sentence(&judged)]);
            let sentences = sentences.chain(need::range_note(needs));
            let replaced = !common.is_empty() && arguments.with.iter().any(|with| with == DEVICES);
            let sentences = sentences.chain(replaced.then(|| REPLACED.to_owned()));
            for line in sentences.flat_map(|sentence| folded(&sentence, 2)) {
                println!("{line}");
            }
        }
    }
    if !held.is_empty() {
        let held: Vec<_> = held.into_iter().collect();
        play::note_flow_control(&format!("{} (overflow=flow-control)", held.join(", ")));
    }
    let csv = || columns::csv(compared.iter().flat_map(|of| &of.lines), true);
    match &arguments.csv {
        Some(Destination::File(path)) => file::write(path, csv())?,
        Some(Destination::Output) => print!("{}", String::from_utf8_lossy(&csv())),
        None => {}
    }
    arguments.json.write_each(Kind::Devices, &compared)?;
    Ok(code)
}

/// The lines of one recording.
type Run = Vec<(String, Replayed)>;

fn replayed(lines: &[Configuration], found: &Found, charged: bool) -> Result<Run, Error> {
    let settings: Vec<_> = lines.iter().map(|line| line.settings.clone()).collect();
    let replayed = lines.iter().zip(curve::replayed(found, &settings, charged)?);
    Ok(replayed.filter_map(|(line, of)| Some((line.name.clone(), of?))).collect())
}

/// Returns the lines: first the common settings alone, then those of `--with`. The word `devices` is
/// a line for every device.
fn lines(first: &str, with: &[String], common: &Settings) -> Result<Vec<Configuration>, Error> {
    let mut lines = vec![Configuration { name: first.to_owned(), settings: common.clone() }];
    for words in with {
        if words == DEVICES {
            for model in models::specific() {
                let settings = common.with([("device", &model.name)]);
                lines.push(Configuration { name: model.name.to_owned(), settings });
            }
            continue;
        }
        let mut settings = common.clone();
        settings.merge(Settings::for_replay("--with", &assignments(words))?);
        lines.push(Configuration { name: words.clone(), settings });
    }
    Ok(lines)
}

/// Splits `a=1,b=x,y` into `a=1` and `b=x,y`. Values may contain commas.
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

fn sheet(title: &str, runs: &[Run], charged: bool) -> Sheet {
    let cost = if charged { "host adds, ns" } else { "host traverses" };
    let header = ["", "fit immediately", "PRQ spilled", "UMQ spilled", cost, "mostly for"];
    let mut sheet = Sheet::new(title, header);
    for (at, (name, _)) in runs.first().into_iter().flatten().enumerate() {
        let of_runs = || runs.iter().filter_map(|run| Some(&run.get(at)?.1));
        let most = |of: &dyn Fn(&Replayed) -> f64| of_runs().map(of).fold(0.0, f64::max);
        let worst = of_runs().max_by_key(|run| run.sum.of_both(|queue| queue.spills));
        let reason = worst.and_then(|run| main_reason(&run.sum.tagged.prq, &run.sum.tagged.umq));
        let cost = most(&|run| match run.cost {
            Cost::Modelled(Modelled { added, .. }) => added,
            Cost::Compared(_) | Cost::Traversed(_) => run.traversed,
        });
        sheet.row([
            name.clone(),
            share(100.0 - most(&|run| run.sum.spilled())),
            share(most(&|run| spilled(&run.sum.tagged.prq))),
            share(most(&|run| spilled(&run.sum.tagged.umq))),
            format!("{cost:.1}"),
            reason.map_or_else(|| "-".to_owned(), |reason| reason.to_string()),
        ]);
    }
    sheet
}

/// The reason for which most elements of both queues spilled, and its share in per cent.
struct MainReason {
    reason: &'static str,
    per_cent: f64,
}

impl std::fmt::Display for MainReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.per_cent {
            100.0 => f.write_str(self.reason),
            per_cent => write!(f, "{} ({})", self.reason, share(per_cent)),
        }
    }
}

fn main_reason(prq: &QueueCounters, umq: &QueueCounters) -> Option<MainReason> {
    let both = prq.block_reasons.iter().zip(umq.block_reasons.iter());
    let most = both.map(|((reason, prq), (_, umq))| (total([prq, umq]), reason)).max()?;
    let (elements, reason) = most;
    let per_cent = percent(elements, total([prq.spills, umq.spills]));
    (elements > 0).then_some(MainReason { reason, per_cent })
}

/// Returns the lines below the table: the meaning of the cost column, the numbers that are the same
/// for all devices, and how likely another run exceeds the worst of several runs.
fn foot(runs: &[Run], charged: bool) -> String {
    let unit = match charged {
        true => "host adds: what spilled elements cost a message, on average, as modelled",
        false => "host traverses: entries that the engine's searches pass there, a message",
    };
    let firsts = || runs.iter().filter_map(|run| Some(&run.first()?.1.sum));
    let longest = |of: fn(&Summary) -> &Peak| {
        let peak = firsts().map(of).cloned().fold(Peak::default(), Peak::highest);
        format!("{}{}", whole(peak.elements), rank_of(&peak))
    };
    let mut foot = format!(
        "{unit}\n{}; longest PRQ {}, UMQ {}",
        count(firsts().map(|sum| sum.tagged.arrivals).max().unwrap_or(0), "message"),
        longest(|sum| &sum.prq_peak),
        longest(|sum| &sum.umq_peak),
    );
    if runs.len() > 1 {
        foot += &format!("\n{}", repeats::exceeded(runs.len()));
    }
    foot
}

/// Returns the numbers of a line, for `--csv` and `--json`.
fn record(
    what: &str,
    Replayed { sum, cost, traversed }: &Replayed,
    ranks_a_node: Option<NonZeroU32>,
    recording: Option<String>,
) -> NamedValues {
    let (prq, umq) = (&sum.tagged.prq, &sum.tagged.umq);
    let modelled = cost.modelled();
    let mut record = NamedValues::default();
    record.put("what", what.to_owned());
    record.put("ranks_a_node", ranks_a_node.map(NonZeroU32::get));
    record.put("prq_entries", prq.entries);
    record.put("umq_entries", umq.entries);
    record.put("messages", sum.tagged.arrivals);
    record.put("immediate_percent", sum.immediate());
    record.put("promoted_percent", sum.promoted());
    record.put("in_table_percent", sum.in_table());
    record.put("prq_spilled_percent", spilled(prq));
    record.put("umq_spilled_percent", spilled(umq));
    counters::put(&mut record, "prq", prq);
    counters::put(&mut record, "umq", umq);
    record.put("internal_spills", sum.internal_spills());
    record.put("mostly", main_reason(prq, umq).map_or("", |main| main.reason));
    record.put("host_entries_a_message", modelled.is_none().then(|| cost.value()));
    record.put("host_traversed_a_message", *traversed);
    record.put("matching_ns", modelled.map(|of| of.matching));
    record.put("added_ns", modelled.map(|of| of.added));
    Modelled::put_latencies(modelled.as_ref(), &mut record);
    record.put("recording", recording);
    record
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
    fn devices_are_a_line_each() {
        let names = |with: &[&str]| -> Vec<_> {
            let with: Vec<_> = with.iter().map(|&words| words.to_owned()).collect();
            let lines = lines("as recorded", &with, &Settings::default()).unwrap();
            lines.into_iter().map(|line| line.name).collect()
        };
        let all = names(&["devices", "overflow=spill"]);
        assert_eq!(all[..2], ["as recorded", "cassini-hybrid"]);
        assert_eq!(
            (all.len(), &*all[all.len() - 1]),
            (models::specific().count() + 2, "overflow=spill")
        );
        assert_eq!(names(&["device=alpu"]), ["as recorded", "device=alpu"]);
    }

    #[test]
    fn the_main_reason_is_printed_with_its_share() {
        let queue = &sample(0, 10, 25).tagged.prq;
        assert_eq!(main_reason(queue, queue).unwrap().to_string(), "table full");
        let mut other = queue.clone();
        other.block_reasons.table_full = 0;
        other.block_reasons.refused = 15;
        let small = QueueCounters { spills: 5, ..QueueCounters::default() };
        assert_eq!(main_reason(&other, &small).unwrap().to_string(), "refused (75.0 %)");
        let none = QueueCounters::default();
        assert!(main_reason(&none, &none).is_none());
    }
}
