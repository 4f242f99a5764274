// SPDX-License-Identifier: BSD-2-Clause
//! `tcam show --against`: prints the differences between two experiments.

use std::path::{Path, PathBuf};

use clap::Args;
use matching::{NamedCounter, QueueCounters};
use nic::report::ContextCounters;
use serde::Serialize;

use crate::error::Error;
use crate::experiment::{Experiment, Inputs, Keep, QueueKind, repeated};
use crate::options::number;
use crate::results::summary::spilled;
use crate::results::{Json, Kind};
use crate::text::{Sheet, share, whole};

/// The earlier experiment.
#[derive(Debug, Args)]
pub(crate) struct Against {
    /// Prints the differences from this earlier experiment: needs, spills, search depths and
    /// parameters. The need of a single run varies with the scheduling of its ranks: compare
    /// several runs, or allow for their spread.
    #[arg(long, value_name = "DIR|FILE", conflicts_with = "by")]
    pub(super) against: Option<PathBuf>,

    /// With --against, exits with 1 if a high-water mark, the need of a NIC, the share that spills
    /// (in points) or the mean search depth grew by more than PERCENT.
    #[arg(long, value_name = "PERCENT", allow_negative_numbers = true, requires = "against",
        value_parser = number(0.0..=f64::MAX, "a number of per cent, 0 or more, is expected"))]
    pub(super) fail_above: Option<f64>,
}

/// A number that is compared between both experiments.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Difference {
    what: String,
    before: f64,
    after: f64,
    /// Change in per cent of the earlier value, or in points if both are shares. `None` if a count
    /// or mean grew from 0.
    change: Option<f64>,
    /// True if growth is a regression.
    is_cost: bool,
    #[serde(skip)]
    quantity: Quantity,
}

/// Smallest difference of two means that counts, because means are printed with one decimal.
const SHOWN_MEAN: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Quantity {
    Count,
    Share,
    Mean,
}

/// The JSON of the comparison.
#[derive(Debug, Serialize)]
struct Changes<'a> {
    before: &'a str,
    after: &'a str,
    /// True if no rank of either experiment is missing or was cut short.
    complete: bool,
    changes: &'a [Difference],
    /// Names of the numbers that grew by more than `--fail-above`.
    failed: Vec<&'a str>,
}

impl Difference {
    fn new(what: impl Into<String>, quantity: Quantity, [before, after]: [f64; 2]) -> Self {
        let change = match (quantity, before) {
            (Quantity::Mean, _) if (after - before).abs() < SHOWN_MEAN => Some(0.0),
            (Quantity::Share, _) => Some(after - before),
            (_, 0.0) if after == 0.0 => Some(0.0),
            (_, 0.0) => None,
            (..) => Some(100.0 * (after - before) / before),
        };
        Self { what: what.into(), before, after, change, is_cost: false, quantity }
    }

    /// Returns true if the number grew by more than `most` per cent, or points. Growth from 0 is
    /// more than any limit.
    fn grew_above(&self, most: f64) -> bool {
        self.is_cost && self.change.map_or(self.after > self.before, |change| change > most)
    }

    fn cells(&self) -> [String; 4] {
        let value = |of: f64| match self.quantity {
            Quantity::Count => whole(of as u64),
            Quantity::Share => share(of),
            Quantity::Mean => format!("{of:.1}"),
        };
        let change = match (self.change, self.quantity) {
            (Some(change), _) if change.abs() < 0.05 => "=".to_owned(),
            (Some(change), Quantity::Share) => format!("{change:+.1} points"),
            (Some(change), _) => format!("{change:+.1} %"),
            (None, _) => "new".to_owned(),
        };
        [self.what.clone(), value(self.before), value(self.after), change]
    }
}

/// Returns the mean number of entries that a search compared.
fn depth(of: &QueueCounters) -> f64 {
    let entries = of.search_depth.hit_entries.saturating_add(of.search_depth.miss_entries);
    entries as f64 / of.searches.max(1) as f64
}

/// Returns the line on the NIC that needs most, if all ranks of a host share one. Returns `None` if
/// one of the experiments has no traces.
fn nic_need(both: [&Experiment; 2]) -> Result<Option<Difference>, Error> {
    let [Some(before), Some(after)] = [both[0].need()?, both[1].need()?] else { return Ok(None) };
    let both = [before, after].map(|need| need.nic().peak_total.most as f64);
    let line = Difference::new("entries of the NIC that needs most", Quantity::Count, both);
    Ok(Some(Difference { is_cost: true, ..line }))
}

fn lines(both: [&Experiment; 2]) -> Vec<Difference> {
    let counts = |of: fn(&Experiment) -> u64| both.map(|experiment| of(experiment) as f64);
    let mut lines = vec![
        Difference::new("ranks", Quantity::Count, counts(|of| of.ranks.len() as u64)),
        Difference::new("receives", Quantity::Count, counts(|of| of.sum.tagged.posts)),
        Difference::new("messages", Quantity::Count, counts(|of| of.sum.tagged.arrivals)),
        Difference::new("unexpected", Quantity::Count, counts(|of| of.sum.tagged.unexpected)),
    ];
    for NamedCounter { name, text, get, .. } in ContextCounters::<QueueCounters>::COUNTERS {
        let both = both.map(|experiment| get(&experiment.sum.tagged) as f64);
        if both[0] != both[1] && !["posts", "arrivals", "unexpected"].contains(name) {
            lines.push(Difference::new(*text, Quantity::Count, both));
        }
    }
    for queue in QueueKind::BOTH {
        let mut line = |name: &str, quantity, is_cost, value: &dyn Fn(&QueueCounters) -> f64| {
            let both = both.map(|experiment| value(queue.of(&experiment.sum.tagged)));
            let line = Difference::new(format!("{} {name}", queue.name()), quantity, both);
            lines.push(Difference { is_cost, ..line });
        };
        line("high-water mark", Quantity::Count, true, &|queue| queue.high_water as f64);
        line("spilled", Quantity::Share, true, &spilled);
        line("promoted from there", Quantity::Count, false, &|queue| queue.promotions as f64);
        line("mean search depth", Quantity::Mean, true, &depth);
        let rest = QueueCounters::COUNTERS.iter();
        let rest = rest.filter(|of| !["entries", "high_water", "promotions"].contains(&of.name));
        for NamedCounter { text, get, .. } in rest {
            let [before, after] = both.map(|of| get(queue.of(&of.sum.tagged)));
            if before != after {
                line(text, Quantity::Count, false, &|queue| get(queue) as f64);
            }
        }
    }
    lines
}

/// Prints the differences. Returns 1 if a number grew by more than `--fail-above`, otherwise 3 if
/// results are incomplete, otherwise 0.
pub(super) fn show(
    earlier: &Path,
    later: &Inputs,
    fail_above: Option<f64>,
    json: &Json,
) -> Result<u8, Error> {
    json.check()?;
    if repeated::apart(later, Keep::Shown)?.is_some() {
        fail!("--against: two runs are compared, so give one later run, not {}", later.names.len());
    }
    let before = Experiment::read(&Inputs::one(earlier, later.take), Keep::Shown)?;
    let after = Experiment::read(later, Keep::Shown)?;
    let mut lines = lines([&before, &after]);
    lines.extend(nic_need([&before, &after])?);
    let grew = |line: &&Difference| fail_above.is_some_and(|most| line.grew_above(most));
    let failed: Vec<_> = lines.iter().filter(grew).map(|line| line.what.as_str()).collect();
    let incomplete = [&before, &after].map(|of| of.sum.ranks.code(later.take.partial));
    let (names, whole) = ([before.title(), after.title()], incomplete == [0, 0]);
    let changes = Changes {
        before: &names[0],
        after: &names[1],
        complete: whole,
        changes: &lines,
        failed: failed.clone(),
    };
    json.write(Kind::Difference, changes)?;
    for (path, of) in [(earlier, &before), (&later.names[0], &after)] {
        if let Some(lack) = of.sum.lack() {
            eprintln!("{}: {lack}", path.display());
        }
    }
    if !json.takes_output() {
        println!("{} -> {}", names[0], names[1]);
        let mut sheet = Sheet::new("", ["", "before", "after", "change"]);
        lines.iter().for_each(|line| sheet.row(line.cells()));
        println!("{}", sheet.table());
        for (name, [before, after]) in origins([&before, &after]) {
            println!("{name}: {before} before, {after} after");
        }
        for (name, before, after) in configuration(&before, &after) {
            println!("FI_TCAM_{}: {before} before, {after} after", name.to_uppercase());
        }
    }
    if let (Some(most), false) = (fail_above, failed.is_empty()) {
        eprintln!("tcam: more than {most} % more: {}", failed.join(", "));
        return Ok(1);
    }
    Ok(incomplete.into_iter().max().unwrap_or(0))
}

/// Returns the facts about the runs that differ, except for the time at which they began.
fn origins(both: [&Experiment; 2]) -> Vec<(&'static str, [String; 2])> {
    let value = |of: &Experiment, name: &str| {
        let line = of.sum.origin.iter().find(|(other, _)| *other == name);
        line.map_or_else(|| "unknown".to_owned(), |(_, value)| value.clone())
    };
    let names = ["program", "command", "hosts", "processors", "MPI", "libfabric", "tcam"];
    let both = names.map(|name| (name, both.map(|of| value(of, name))));
    both.into_iter().filter(|(_, [before, after])| before != after).collect()
}

/// Returns the parameters that differ, from the first rank of each experiment.
fn configuration(before: &Experiment, after: &Experiment) -> Vec<(String, String, String)> {
    let [before, after] = [before, after].map(|of| &*of.heads[0].config);
    let value = |of: Option<&String>| of.map_or_else(|| "unknown".to_owned(), Clone::clone);
    let mut names: Vec<_> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    // Different places of the output do not count as a difference.
    let differs = |name: &&String| {
        before.get(*name) != after.get(*name) && !["report", "trace"].contains(&name.as_str())
    };
    let names = names.into_iter().filter(differs);
    names.map(|name| (name.clone(), value(before.get(name)), value(after.get(name)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::outcome::tests::experiment;

    #[test]
    fn growth_counts_only_for_costs() {
        let line = |quantity, before, after| {
            let line = Difference::new("x", quantity, [before, after]);
            Difference { is_cost: true, ..line }
        };
        for (line, change, above) in [
            (line(Quantity::Count, 100.0, 109.0), "+9.0 %", false),
            (line(Quantity::Count, 100.0, 111.0), "+11.0 %", true),
            (line(Quantity::Count, 100.0, 50.0), "-50.0 %", false),
            (line(Quantity::Count, 0.0, 1.0), "new", true),
            (line(Quantity::Count, 0.0, 0.0), "=", false),
            (line(Quantity::Share, 0.0, 12.5), "+12.5 points", true),
            (line(Quantity::Share, 50.0, 55.0), "+5.0 points", false),
            (line(Quantity::Mean, 0.02, 0.04), "=", false),
            (line(Quantity::Mean, 0.1, 1.0), "+900.0 %", true),
        ] {
            assert_eq!(line.cells()[3], change);
            assert_eq!(line.grew_above(10.0), above, "{line:?}");
        }
        assert!(!Difference::new("messages", Quantity::Count, [1.0, 9.0]).grew_above(10.0));
    }

    #[test]
    fn the_same_experiment_has_not_changed() {
        let same = experiment(4, 64);
        let lines = lines([&same, &same]);
        assert!(lines.iter().all(|line| line.cells()[3] == "="), "{lines:?}");
        assert_eq!(lines.len(), 4 + 2 * 4);
        assert_eq!(configuration(&same, &same), []);
    }

    #[test]
    fn each_counter_that_differs_has_a_line() {
        let before = experiment(1, 64);
        for NamedCounter { name, text, place, .. } in QueueCounters::COUNTERS {
            let mut after = experiment(1, 64);
            *place(&mut after.sum.tagged.umq) += 7;
            let lines = lines([&before, &after]);
            let changed: Vec<_> = lines.iter().filter(|line| line.change != Some(0.0)).collect();
            // The size of a table is a parameter, which is compared apart from the counts.
            let is_there = changed.iter().any(|line| line.what == format!("UMQ {text}"));
            assert_eq!(is_there, *name != "entries", "{name}: {changed:?}");
        }
    }
}
