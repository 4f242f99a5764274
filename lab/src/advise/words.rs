// SPDX-License-Identifier: BSD-2-Clause
//! Advice in words, and as a table.

use super::advice::{Advice, promises};
use super::classifier;
use super::contender::Contender;
use super::models::{Models, Question};
use super::program::Run;
use crate::text::numbers::{count, entries, share, whole};
use crate::text::sheet::Sheet;

/// The tables of a case: `tables of 512 + 512 entries`.
pub(crate) fn tables(sizes: [u64; 2]) -> String {
    match sizes {
        [0, 0] => "without tables".to_owned(),
        [prq, umq] => format!("tables of {} + {} entries", whole(prq), whole(umq)),
    }
}

/// Wildcards of all runs: `no wildcard in 3 runs`.
pub(crate) fn wildcards(runs: &[Run]) -> String {
    let all: u64 = runs.iter().map(|run| run.census.wildcards).sum();
    let of: u64 = runs.iter().map(|run| run.census.receives).sum();
    let probes: u64 = runs.iter().map(|run| run.census.open_probes).sum();
    let runs = count(runs.len() as u64, "run");
    match all {
        0 if probes > 0 => format!("{} in {runs} have a wildcard", count(probes, "probe")),
        0 => format!("no wildcard in {runs}"),
        _ => format!(
            "{} of the receives in {runs} have a wildcard",
            share(100.0 * all as f64 / of as f64)
        ),
    }
}

/// The advice in a sentence, without a table size.
pub(crate) fn sentence(runs: &[Run], advice: Option<&Advice>) -> String {
    let Some(advice) = advice else {
        return "any engine: nothing leaves the tables".to_owned();
    };
    let cells = runs.iter().filter_map(|run| run.cells.quantile(0.95)).max();
    let cells = cells.map_or_else(
        || "no search of a list finds anything".to_owned(),
        |cells| format!("95th percentile of a list {}", count(cells, "cell")),
    );
    let why = format!("{}, {cells}", wildcards(runs));
    let Advice { current, advised, saves, .. } = advice;
    if advice.keeps() {
        return match advice.confidence < 0.5 {
            true => format!("{current}, as it is: {why}; whether another engine saves 5 % is open"),
            false => format!("{current}, as it is: {why}; no other engine is expected to save 5 %"),
        };
    }
    let [least, most] = saves.map(|share| (100.0 * share).round().max(0.0));
    format!("{advised}: {why}; expect {least} to {most} % less matching time than {current}")
}

/// How sure that is, and every reason for doubt.
pub(crate) fn doubts(runs: &[Run], advice: &Advice) -> Vec<String> {
    let mut lines = vec![format!("Confidence {:.0} %", 100.0 * advice.confidence)];
    if let Some((Question { engine, against }, answer)) = advice.answer {
        let each = classifier::NAMES.iter().zip(answer.each);
        let each: Vec<_> = each.map(|(name, p)| format!("{name} {:.0} %", 100.0 * p)).collect();
        let agree = if answer.is_unanimous() { "" } else { ": THE CLASSIFIERS DISAGREE" };
        lines.push(format!(
            "{engine} saves 5 % over {against} with a probability of {}{agree}",
            each.join(", ")
        ));
    } else {
        lines.push(
            "No classifier learned of this pair: the confidence is that of the times".to_owned(),
        );
    }
    if !advice.outside.is_empty() {
        lines.push(format!(
            "OUTSIDE of the streams that the advisor learned from: {}",
            advice.outside.join(", ")
        ));
    }
    if let Some(engine) = advice.forbidden {
        lines.push(format!(
            "{engine} is predicted to be faster, but is for programs without wildcards: {}",
            wildcards(runs)
        ));
    }
    if promises(advice.advised.engine) {
        lines.push(format!(
            "{} is for programs that promise to use no wildcard: {}, which is no promise for another",
            advice.advised.engine,
            wildcards(runs)
        ));
    }
    lines
}

/// A size of the tables at which nothing spilled, in words.
pub(crate) fn size(recommended: u64, marks: [u64; 2]) -> String {
    format!(
        "Tables: {} hold all (longest PRQ {}, UMQ {})",
        entries(recommended),
        whole(marks[0]),
        whole(marks[1])
    )
}

/// A line for each contender.
pub(crate) fn sheet(runs: &[Run], current: Contender, models: &Models) -> Sheet {
    let header = [
        "engine",
        "searches on the host",
        "cells, found",
        "not found",
        "predicted us",
        "beside now",
        "measured us",
        "beside now",
    ];
    let mut sheet = Sheet::new("", header);
    let predicted = |of: Contender| {
        let each = runs.iter().map(|run| run.predicted(of, models));
        each.sum::<Option<f64>>().map(|sum| sum / runs.len() as f64)
    };
    let measured = |of: Contender| {
        let each = runs.iter().map(|run| run.counts(of)?.measured_ns);
        each.sum::<Option<f64>>().map(|sum| sum / runs.len() as f64)
    };
    let us = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), |ns| format!("{:.1}", ns * 1e-3));
    let beside = |ns: Option<f64>, now: Option<f64>| match ns.zip(now) {
        Some((ns, now)) => format!("{:.2}", ns / now),
        None => "-".to_owned(),
    };
    let mut all = Contender::all();
    all.sort_by(|one, other| {
        let time = |of: &Contender| predicted(*of).unwrap_or(f64::INFINITY);
        time(one).total_cmp(&time(other))
    });
    for of in all {
        let Some(first) = runs[0].counts(of) else { continue };
        let mut profiles = first.traversals[0].clone();
        for (sum, more) in profiles.iter_mut().zip(&first.traversals[1]) {
            sum.merge(more);
        }
        let mean = |of: &matching::Profile| {
            of.mean().map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}"))
        };
        sheet.row([
            of.to_string(),
            whole(profiles[0].count + profiles[1].count),
            mean(&profiles[0]),
            mean(&profiles[1]),
            us(predicted(of)),
            beside(predicted(of), predicted(current)),
            us(measured(of)),
            beside(measured(of), measured(current)),
        ]);
    }
    sheet
}
