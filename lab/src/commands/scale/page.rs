// SPDX-License-Identifier: BSD-2-Clause
//! Makes the page that `tcam scale` prints to the terminal, with lines of up to 80 characters.

use super::forecast::{Forecast, Scaled, grows};
use super::law::{Law, Point};
use crate::text::{count, folded, whole};

/// Width of a column of the table, in characters.
const CELL: usize = 11;

pub(super) fn lines(forecast: &Forecast) -> Vec<String> {
    let mut lines: Vec<_> =
        forecast.lacks.iter().take(4).flat_map(|lack| folded(lack, 2)).collect();
    let runs: usize = forecast.sizes.iter().map(|size| size.runs).sum();
    let generated = if forecast.generated { ", generated" } else { "" };
    let ran = format!(
        "{}: {} in {}{generated}.",
        forecast.program,
        count(forecast.sizes.len() as u64, "number") + " of ranks",
        count(runs as u64, "run"),
    );
    lines.extend(folded(&ran, 0));
    lines.push(String::new());
    lines.push(format!("{:>13}{:>33}{:>33}", "", "one rank needs", "one NIC needs"));
    let names = ["PRQ", "UMQ", "together"];
    lines.push(row(["ranks", "runs"], names.iter().chain(&names).map(|name| (*name).to_owned())));
    for (at, size) in forecast.sizes.iter().enumerate() {
        let cells = shown(forecast).map(|scaled| cell(scaled.needs[at]));
        lines.push(row([&whole(size.ranks.into()), &size.runs.to_string()], cells));
    }
    lines.push(String::new());
    lines.push(format!("At {}:", count(forecast.to.into(), "rank")));
    let grows = grows(&forecast.ranks_of_a_node);
    for scaled in shown(forecast).filter(|scaled| !(grows && scaled.of == "nic")) {
        lines.extend(folded(&format!("- {}", verdict(scaled, forecast)), 2));
    }
    if grows {
        let ranks: Vec<_> = forecast.ranks_of_a_node.iter().map(|of| whole(*of as u64)).collect();
        let why = format!(
            "- A NIC: no answer. It had {} ranks, more with each size, so that its need does not follow from \
             the number of ranks alone. --ppn P places P ranks on a node.",
            ranks.join(", ")
        );
        lines.extend(folded(&why, 2));
    }
    lines.push(String::new());
    lines.extend(limits(forecast).iter().flat_map(|limit| folded(&format!("- {limit}"), 2)));
    lines
}

/// Returns the counts that the page shows. Receives of the MPI itself have no count on the page;
/// they are only a part of the count "all together".
fn shown(forecast: &Forecast) -> impl Iterator<Item = &Scaled> {
    forecast.needs.iter().filter(|scaled| scaled.count != "internal")
}

fn row([ranks, runs]: [&str; 2], cells: impl Iterator<Item = String>) -> String {
    cells.fold(format!("{ranks:>8}{runs:>5}"), |row, cell| row + &format!("{cell:>CELL$}"))
}

fn cell(point: Point) -> String {
    let [least, most] = [point.least, point.most].map(whole);
    match format!("{least}-{most}") {
        _ if least == most => most,
        range if range.len() < CELL => range,
        _ => format!("to {most}"),
    }
}

/// Returns the prediction of a count as a sentence, or the reason why there is none.
fn verdict(scaled: &Scaled, forecast: &Forecast) -> String {
    let growth = &scaled.growth;
    let of = if scaled.of == "rank" { "a rank" } else { "a NIC" };
    let name = match scaled.count {
        "peak_total" => "All together".to_owned(),
        queue => queue.to_uppercase(),
    };
    let laws: Vec<_> = growth.fitting().map(Law::name).collect();
    let closest = &growth.laws[0];
    let Some([low, high]) = growth.predicts else {
        return format!(
            "{name} of {of}: no answer. No law fits; the closest, {}, misses by {:.0}. Steps, arguments \
             that differ or runs that vary may be the cause: repeat each size.",
            closest.law.name(),
            closest.misses_by.ceil(),
        );
    };
    let range =
        if low == high { whole(high) } else { format!("{} to {}", whole(low), whole(high)) };
    if growth.bracket {
        return format!("{name} of {of}: {range}, from the largest part to the sum of all");
    }
    match (laws.as_slice(), growth.refused) {
        ([law], false) => format!("{name} of {of}: {range}, {law}"),
        (laws, false) => format!("{name} of {of}: {range}, {}", laws.join(" or ")),
        (laws, true) => {
            let sizes = forecast.sizes.len();
            let fit = match laws {
                [law] => format!("{sizes} sizes, {law} within wide limits"),
                laws => format!("{sizes} sizes, {} laws fit ({})", laws.len(), laws.join(", ")),
            };
            let next = match growth.apart_at {
                Some(ranks) => format!("Record {} to separate them", count(ranks.into(), "rank")),
                None if forecast.has_single_runs() => {
                    "Record each size three times, and larger ones".to_owned()
                }
                None => "Record larger sizes".to_owned(),
            };
            format!("{name} of {of}: no answer. {fit}: {range}. {next}.")
        }
    }
}

fn limits(forecast: &Forecast) -> Vec<String> {
    let mut limits = vec![
        "A law fits if it passes through the range of each size, widened by its width, by 2 entries or \
         by 2 %. A prediction has all curves of all laws that fit."
            .to_owned(),
    ];
    if forecast.has_single_runs() {
        limits.push(
            "One run of a size shows no spread. It is taken from other sizes, or UMQ and all together \
             may differ by 25 %: record each size three times."
                .to_owned(),
        );
    }
    if forecast.placed {
        limits.push(
            "Ranks were placed on nodes, and messages inside a node were left out.".to_owned(),
        );
    }
    if !forecast.on_one_node.is_empty() {
        let sizes: Vec<_> = forecast.on_one_node.iter().map(|size| whole((*size).into())).collect();
        limits.push(format!("Left out, all ranks on one node: {} ranks.", sizes.join(", ")));
    }
    let mut commands = forecast.sizes.iter().map(|size| &size.command);
    let first = commands.next();
    if commands.any(|command| Some(command) != first) {
        limits.push("Arguments differ between the sizes: the growth includes theirs.".to_owned());
    }
    limits.push("All together includes receives that the MPI posts for itself.".to_owned());
    limits
}
