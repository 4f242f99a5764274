// SPDX-License-Identifier: BSD-2-Clause
//! The page of `tcam answer`, for the terminal: at most 40 lines of 80 columns.

use super::facts::{Device, Facts};
use super::sentences::{device_cells, limits, need_rows, products, quote, ran};
use crate::text::page::{WIDTH, cut, folded};

/// Largest number of lines.
const LINES: usize = 40;

/// Returns the lines of the page.
pub(crate) fn lines(facts: &Facts) -> Vec<String> {
    let mut lines = vec![];
    lines.extend(facts.lack.iter().flat_map(|lack| folded(lack, 0)));
    lines.extend(folded(&format!("{}.", ran(facts)), 0).into_iter().take(3));
    lines.push(String::new());
    lines.push(row(["Entries needed", "peak of a rank", "peak of a NIC"]));
    let [rows @ .., [so, _, entries]] = need_rows(facts);
    lines.extend(rows.iter().map(|cells| row(cells.each_ref().map(String::as_str))));
    lines.extend(folded(&format!("{so} {entries}."), 0));
    lines.push(String::new());
    lines.push(device_row([
        "Device",
        "entries",
        "holds",
        "-- overflow costs --",
        "",
        "why not all",
    ]));
    lines.push(device_row(["", "a+b: a rank", "all", "host list", "list+1 us", ""]));
    lines.extend(products(facts).flat_map(|device| of_device(device, facts.runs)));
    lines.push(String::new());
    let room = LINES.saturating_sub(lines.len() + 1);
    let quote = folded(&format!("To quote: {}", quote(facts)), 0);
    let mut room = room.saturating_sub(quote.len());
    for limit in limits(facts).iter().map(|limit| folded(&format!("- {limit}"), 2)) {
        // A sentence that does not fit is left out, not cut off.
        if limit.len() <= room {
            room -= limit.len();
            lines.extend(limit);
        }
    }
    lines.push(String::new());
    lines.extend(quote);
    lines
}

fn row([name, rank, nic]: [&str; 3]) -> String {
    format!("{name:<28}{rank:>24}{nic:>26}").trim_end().to_owned()
}

/// Column of the last text of a row.
const WHY: usize = 57;

fn device_row([name, entries, holds, list, way, why]: [&str; 6]) -> String {
    // The heading of the costs is as wide as both columns of costs.
    let text = format!("{name:<17}{entries:<12}{holds:<6}{list:<11}{way:<11}{why}");
    match list.len() > 11 {
        true => format!("{name:<17}{entries:<12}{holds:<6}{list:<22}{why}"),
        false => text.trim_end().to_owned(),
    }
}

/// Returns the row of a device. Reasons that do not fit go to the next lines.
fn of_device(device: &Device, runs: usize) -> Vec<String> {
    let [name, entries, holds, cost, way] = device_cells(device, runs);
    let mut why = vec![String::new()];
    for part in device.judged.why.split("; ").filter(|part| !part.is_empty()) {
        let line = why.last_mut().expect("there is a line");
        if !line.is_empty() && line.len() + 2 + part.len() > WIDTH - WHY {
            line.push(';');
            why.push(part.to_owned());
        } else {
            *line += if line.is_empty() { "" } else { "; " };
            *line += part;
        }
    }
    let [cost, way] = [cost, way].map(|of| of.replace(" to ", "-"));
    let first = [&name, &entries, &holds, &cost, &way, &why[0]];
    let mut rows = vec![cut(&device_row(first.map(String::as_str)), WIDTH)];
    let rest = why[1..].iter().map(|part| cut(&format!("{:WHY$}{part}", ""), WIDTH));
    rows.extend(rest);
    rows
}
