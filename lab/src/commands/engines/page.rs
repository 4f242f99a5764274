// SPDX-License-Identifier: BSD-2-Clause
//! The page of `tcam engines`.

use super::contender::Contender;
use super::facts::{Case, Facts};
use crate::text::numbers::{count, whole};
use crate::text::sheet::{Sheet, folded};

/// Prints the page.
pub(super) fn print(facts: &Facts) {
    let mut title = format!("{}: {}", facts.title, count(facts.runs.len() as u64, "run"));
    title += &format!(", {} measured", count(facts.messages, "message"));
    if facts.measured_operations < facts.operations {
        title += &format!(
            "; the first {} of {} (--operations has more)",
            count(facts.measured_operations, "operation"),
            whole(facts.operations)
        );
    }
    lines(&title);
    for case in &facts.cases {
        println!("");
        lines(&case.reading);
        if case.uses_host() {
            println!("{}", sheet(case).table());
        }
    }
    println!("");
    for (engine, why) in Contender::left_out() {
        lines(&format!("{engine} is not measured: {why}."));
    }
}

fn lines(text: &str) {
    folded(text, 2).iter().for_each(|line| println!("{line}"));
}

fn sheet(case: &Case) -> Sheet {
    let header = [
        "host engine, storage",
        "ns a message",
        "80 % of rounds",
        "beside now",
        "80 % of rounds",
        "entries a search",
    ];
    let mut sheet = Sheet::new("", header);
    for engine in &case.engines {
        let (ns, beside) = (engine.ns_a_message, engine.beside_now);
        let now = if engine.is_now { " (now)" } else { "" };
        sheet.row([
            format!("{}{now}", engine.of),
            format!("{:.1}", ns.median),
            format!("{:.1} to {:.1}", ns.low, ns.high),
            format!("{:.2}", beside.median),
            if engine.is_now {
                "-".to_owned()
            } else {
                format!("{:.2} to {:.2}", beside.low, beside.high)
            },
            engine.traversed_a_search.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}")),
        ]);
    }
    sheet
}
