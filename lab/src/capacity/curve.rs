// SPDX-License-Identifier: BSD-2-Clause
//! Computes the capacity curve of traces: the counts and the cost at each table size.
//!
//! With the overflow model `spill`, one pass over a trace gives the counts at every table size
//! (`matching::Curve`). With another overflow model, or with the timing model, each size needs a
//! replay.

use std::collections::BTreeSet;

use indicatif::ProgressBar;
use matching::timing::Costs;
use matching::{Overflow, Traversals};
use nic::config;
use nic::lengths::Lengths;
use nic::params::{Params, types::PoolOwner};
use nic::report::ContextCounters;

use super::{Cost, Knob, Modelled, Need, Point, Sizes, Swept, rows};
use crate::error::Error;
use crate::results::{NamedValues, Ranks, Summary, origin};
use crate::settings::Settings;
use crate::traces::{Counted, Curves, Found, counted, play};

/// Returns the points of traces at sizes from 0 to beyond their need, on the recorded device.
/// Returns `None` without traces, or if the table of this device does not always hold the oldest
/// elements.
pub(crate) fn points(found: &Found, bar: &ProgressBar) -> Result<Option<Swept>, Error> {
    let settings = Settings::default();
    let Some(first) = found.first() else { return Ok(None) };
    if !is_plain(&first.params(&settings)?) {
        return Ok(None);
    }
    let need = Need::of(found, &settings, Knob::Tables, bar)?;
    let passed = play::curves(found, &settings, bar)?;
    let sizes = Sizes::around(need.size(Knob::Tables).unwrap_or(0));
    let pairs: Vec<_> = sizes.0.into_iter().map(|size| (size, size)).collect();
    let sums = sums_of(&pairs, &passed, &settings, &found.ranks())?;
    let scheduling_note = scheduling_note(std::slice::from_ref(&sums));
    let (points, _) = points_of(&pairs, &[sums], Knob::Tables);
    Ok(Some(Swept { needs: vec![need], ..Swept::of_runs(points, Knob::Tables, scheduling_note) }))
}

/// Returns true if the timing model is on.
pub(crate) fn is_charged(params: &Params) -> bool {
    config::costs(params) != Costs::default()
}

/// Returns a note on the host engines whose costs were modelled, because the costs `cpu-list` are
/// those of an MPI library only with the engine `list`.
pub(crate) fn engine_note<'a>(params: impl Iterator<Item = &'a Params>) -> String {
    let engines: BTreeSet<_> = params.map(|params| params.text("host_engine")).collect();
    let names = engines.into_iter().collect::<Vec<_>>().join(", ");
    let list = match names.as_str() {
        "list" => "",
        _ => {
            " (--set host_engine=list is that of MPI libraries with one list, as in `tcam answer`)"
        }
    };
    format!("the host's costs are modelled for the engine {names}{list}")
}

/// Returns true if the table always holds the oldest elements.
pub(crate) fn is_plain(params: &Params) -> bool {
    params.overflow == Overflow::Spill
        && params.pool == PoolOwner::Endpoint
        && params.refuse.is_empty()
        && params.refuse_below == 0
}

/// The counts of a recording and the mean cost of a message at each size. An element is `None` if
/// there are no traces.
pub(crate) type Sums = Vec<Option<(Summary, Cost)>>;

/// Returns a note if ranks of a recording shared processors; otherwise `None`.
pub(crate) fn scheduling_note(played: &[Sums]) -> Option<String> {
    played.iter().flatten().flatten().find_map(|(sum, _)| sum.scheduling_note())
}

/// Returns the points of the curve and the rows of `sweep.csv`. `played` has, for each recording,
/// the counts at all sizes.
pub(crate) fn points_of(
    pairs: &[(usize, usize)],
    played: &[Sums],
    knob: Knob,
) -> (Vec<Point>, Vec<NamedValues>) {
    let (mut points, mut rows) = (Vec::new(), Vec::new());
    for (at, &(prq, umq)) in pairs.iter().enumerate() {
        let of = played.iter().filter_map(|sums| sums[at].as_ref());
        let (sums, mut costs): (Vec<_>, Vec<_>) =
            of.map(|(sum, cost)| (sum.clone(), *cost)).unzip();
        for (repeat, (sum, cost)) in (1..).zip(sums.iter().zip(&costs)) {
            rows.push(rows::row(knob, (prq, umq), repeat, 0.0, sum, Some(*cost)));
        }
        if !sums.is_empty() {
            // The cost is that of the recording with the median cost. A mean would be the cost of
            // no recording.
            costs.sort_by(|one, other| one.value().total_cmp(&other.value()));
            let cost = Some(costs[costs.len() / 2]);
            let point = match knob {
                Knob::Tables => Point::of(prq, umq, &sums),
                Knob::Pool => Point::of_pool(prq, &sums),
            };
            points.push(Point { cost, ..point });
        }
    }
    (points, rows)
}

/// Returns the counts of tables of each size, from the curves of one pass. The cost of a message is
/// the number of entries that a linear search compares on the host.
pub(crate) fn sums_of(
    pairs: &[(usize, usize)],
    passed: &[Curves],
    settings: &Settings,
    ranks: &Ranks,
) -> Result<Sums, Error> {
    let mut sums = Vec::new();
    for &(prq, umq) in pairs {
        let mut compared = 0;
        let counted: Vec<Counted> = passed
            .iter()
            .map(|Curves { counted, curves: [of_prq, of_umq] }| {
                if counted.trace.header.context == "tagged" {
                    compared += of_prq.host_entries(prq) + of_umq.host_entries(umq);
                }
                let (prq, umq) = (
                    of_prq.counters(&counted.counters.prq, prq),
                    of_umq.counters(&counted.counters.umq, umq),
                );
                let kinds = ContextCounters::kinds_of(&prq, &umq);
                // Lengths over time need a replay at this size.
                let lengths = Lengths::default();
                let counters =
                    ContextCounters { prq, umq, kinds, lengths, ..counted.counters.clone() };
                Counted { counters, ..counted.clone() }
            })
            .collect();
        let sum = sum_of(&counted, settings, ranks)?;
        sums.push(sum.map(|sum| {
            let cost = Cost::Compared(compared as f64 / messages(&sum));
            (sum, cost)
        }));
    }
    Ok(sums)
}

/// Replays traces at each of some sizes. Returns the counts and the mean cost of a message:
/// modelled time if `charged` is true, otherwise entries traversed if the settings name a host
/// engine, otherwise entries compared.
pub(crate) fn replays(
    pairs: &[(usize, usize)],
    found: &Found,
    settings: &Settings,
    charged: bool,
    knob: Knob,
) -> Result<Sums, Error> {
    let sizes: Vec<_> = pairs.iter().map(|&pair| knob.set(settings, pair)).collect();
    let replayed = replayed(found, &sizes, charged)?;
    let cost = |of: &Replayed| match charged || !names_engine(settings) {
        true => of.cost,
        false => Cost::Traversed(of.traversed),
    };
    Ok(replayed.into_iter().map(|of| of.map(|of| (of.sum.clone(), cost(&of)))).collect())
}

/// Returns true if the settings name a host engine. For another engine than the list, the number of
/// entries that a linear search compares is no measure of the cost.
pub(crate) fn names_engine(settings: &Settings) -> bool {
    ["host_engine", "host_storage"].iter().any(|name| settings.get(name).is_some())
}

/// The summary of a replay of traces, and the mean cost of a message.
pub(crate) struct Replayed {
    pub(crate) sum: Summary,
    pub(crate) cost: Cost,
    /// Mean number of elements that the host engine traverses for a message.
    pub(crate) traversed: f64,
}

/// Replays traces with each of some settings. If `charged` is true, the cost is that of the timing
/// model, otherwise the number of entries that a linear search compares on the host. Each result is
/// `None` without traces.
pub(crate) fn replayed(
    found: &Found,
    settings: &[Settings],
    charged: bool,
) -> Result<Vec<Option<Replayed>>, Error> {
    let play = |bar: &_| play::all_to_each(found, settings, bar);
    let counted = play::with_bar(found, settings.len(), play);
    let of = |counted: &[Counted], settings: &Settings| {
        let Some(sum) = sum_of(counted, settings, &found.ranks())? else { return Ok(None) };
        let a_message = |of: fn(&Traversals) -> u64| {
            let [prq, umq] = [&sum.tagged.prq, &sum.tagged.umq].map(|of| &of.traversals);
            (of(prq).saturating_add(of(umq))) as f64 / messages(&sum)
        };
        let cost = match charged {
            true => Cost::Modelled(Modelled::of(&sum, counted)),
            false => Cost::Compared(a_message(|of| of.in_a_list)),
        };
        let traversed = a_message(|of| of.entries);
        Ok(Some(Replayed { sum, cost, traversed }))
    };
    counted?.iter().zip(settings).map(|(counted, settings)| of(counted, settings)).collect()
}

fn messages(sum: &Summary) -> f64 {
    sum.tagged.arrivals.max(1) as f64
}

/// Returns the summary of the counts, or `None` without traces. Fails if counts do not add up.
fn sum_of(
    counted: &[Counted],
    settings: &Settings,
    ranks: &Ranks,
) -> Result<Option<Summary>, Error> {
    let reports = counted::reports(counted, settings)?;
    for report in &reports {
        report.check().map_err(Error::Replay)?;
    }
    Ok(Summary::of_traces(&reports, ranks))
}

/// Returns the title: the program, its ranks and nodes, and whether a trace was cut off. `found`
/// has at least one trace.
pub(crate) fn title(found: &Found) -> String {
    let header = &found[0].header;
    let name = origin::name_of(&header.program, &header.origin.command);
    let whole = found.iter().all(|trace| trace.cut().is_none());
    let replayed = if whole { "replayed" } else { "replayed as far as it was recorded" };
    let nodes = found.placed_on().map_or_else(String::new, |nodes| match nodes {
        1 => ", all on one node".to_owned(),
        _ => format!(" on {nodes} nodes"),
    });
    format!("{name} on {}{nodes}, {replayed}", found.ranks().count())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use matching::Key;
    use nic::message::Envelope;
    use nic::trace::{Encoder, Header, Op, Posted, put_time};

    use super::*;
    use crate::commands::workload;
    use crate::traces::{Take, files};
    use crate::workload::pattern::Pattern;

    /// Returns the costs of a rank's traces under each of some settings, with the timing `cpu-list`
    /// by default.
    fn costs(path: PathBuf, settings: &[&[&str]]) -> Vec<Modelled> {
        let found = files::find(&[path], Take::default()).unwrap();
        let of = |words: &&[&str]| {
            let words: Vec<_> = words.iter().map(|&word| word.to_owned()).collect();
            let mut settings = Settings::for_replay("--set", &words).unwrap();
            settings.give("timing", "--timing", Some(&"cpu-list".to_owned())).unwrap();
            settings
        };
        let settings: Vec<_> = settings.iter().map(of).collect();
        let replayed = replayed(&found, &settings, true).unwrap();
        let cost = |of: Option<Replayed>| match of.unwrap().cost {
            Cost::Modelled(modelled) => modelled,
            _ => unreachable!("the timing model is on"),
        };
        replayed.into_iter().map(cost).collect()
    }

    #[test]
    fn a_stream_that_spills_costs_more_though_all_is_promoted_first() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("stream.trace");
        let [context, layout] = ["tagged", "mpich"].map(str::to_owned);
        let header = Header { rank: Some(0), context, layout, ..Header::default() };
        let (mut bytes, mut encoder) = (header.to_bytes(), Encoder::default());
        put_time(&mut bytes, 0).unwrap();
        for _ in 0..2000 {
            let envelope = Envelope { source: 1, bits: 2, len: 8 };
            encoder.op(&mut bytes, &Op::Arrive(envelope)).unwrap();
        }
        put_time(&mut bytes, 1_000_000_000).unwrap();
        for _ in 0..2000 {
            let key = Key { bits: 2, ignore: 0, source: matching::Source::new(1) };
            let post = Posted { key, len: 8, multi: None, non_contiguous: false };
            encoder.op(&mut bytes, &Op::Post(post)).unwrap();
        }
        fs::write(&path, bytes).unwrap();
        let [small, large] = costs(path, &[&["umq_entries=64"], &["umq_entries=4096"]])[..] else {
            unreachable!("there are two settings");
        };
        assert_eq!((large.matching, large.added), (0.0, 0.0));
        // 1,936 of 2,000 elements spill, and are promoted before they match.
        assert!((small.added - 0.968 * (3.0 + 22.0)).abs() < 1e-9, "{small:?}");
        assert!(small.arrivals[2] > large.arrivals[2] && small.posts[0] > large.posts[0]);
    }

    #[test]
    fn engines_of_fds_are_in_the_order_of_the_paper() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("fds");
        workload::tests::write_pattern(Pattern::Fds, 512, 6, &out);
        let engines =
            ["list", "list-pnp", "col-list", "col-pnp"].map(|name| format!("host_engine={name}"));
        let settings = engines.each_ref().map(|engine| {
            ["prq_entries=0", "umq_entries=0", "host_storage=linked", "theta=100", engine]
        });
        let settings: Vec<&[&str]> = settings.iter().map(|words| &words[..]).collect();
        let costs: Vec<_> = costs(out, &settings).iter().map(|of| of.matching).collect();
        assert!(costs.windows(2).all(|pair| pair[0] > pair[1]), "{costs:?}");
        assert!(costs[0] > 5.0 * costs[3], "{costs:?}");
    }
}
