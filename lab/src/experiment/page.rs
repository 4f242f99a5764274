// SPDX-License-Identifier: BSD-2-Clause
//! One page of HTML that needs nothing else: no script, no file beside it, no network.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use nic::plain::plain;

use super::by::{self, By, Groups};
use super::fill::Makeup;
use super::material::Material;
use super::outcome::Experiment;
use super::rank::Queue;
use super::repeated::{self, Repeated};
use super::sources::Sources;
use super::{figures, sheets};
use crate::capacity::need::{self, Need};
use crate::error::Error;
use crate::results::summary::Peak;
use crate::results::summary_text;
use crate::text::numbers::{count, share};
use crate::text::sheet::Sheet;
use crate::traces::trace::Trace;

/// Ranks in the table of a page.
const RANKS: usize = 32;

const STYLE: &str = include_str!("page.css");

/// Words of the page.
const WORDS: [(&str, &str); 8] = [
    ("table", "the match table of the NIC: bounded, searched by hardware"),
    ("host", "the queue in software behind it, for what does not fit"),
    ("PRQ", "posted receives; a message that arrives searches it"),
    (
        "UMQ",
        "unexpected messages, which no receive waited for; a receive that is posted searches it",
    ),
    ("high-water mark", "most elements at once: a table of that size would have held everything"),
    (
        "spill",
        "an element that goes to the host, since the table has no room for it or the device does not take it",
    ),
    ("promotion", "an element that moves from the host into an entry that became free"),
    (
        "search depth",
        "entries that a linear search in age order compares, table first and then host",
    ),
];

/// The page.
pub(crate) fn of(experiment: &Experiment) -> Result<String, Error> {
    let (summary, sections) = parts(experiment)?;
    Ok(whole(&experiment.title(), &summary, &sections))
}

/// The page of several recordings, one after the other. Repeats of one run begin with their spread.
pub(crate) fn of_several(from: &Sources, experiments: &[Experiment]) -> Result<String, Error> {
    let names = from.names.iter().map(|name| plain(&name.display().to_string()).into_owned());
    let mut sections = String::new();
    for (name, experiment) in names.zip(experiments) {
        let (summary, of) = parts(experiment)?;
        let title = escaped(&format!("{name}: {}", experiment.title()));
        let _ = write!(sections, "<section>\n<h1>{title}</h1>\n{summary}</section>\n{of}");
    }
    if !repeated::are_repeats(experiments) {
        let title = format!("{} recordings", experiments.len());
        return Ok(whole(&title, "", &sections));
    }
    let repeated = Repeated::of(from, experiments);
    let [spread, next] = repeated.readings().map(|reading| escaped(&reading));
    let summary =
        format!("{}<ul>\n<li>{spread}</li>\n<li>{next}</li>\n</ul>\n", html(&repeated.sheet()));
    Ok(whole(repeated.title(), &summary, &sections))
}

/// Summary and sections of an experiment.
fn parts(experiment: &Experiment) -> Result<(String, String), Error> {
    // Drawn first: this plays the traces, and tells those that are not whole.
    let material = Material::of(experiment)?;
    let figures = figures::all(experiment, &material);
    let makeups = &material.makeups;
    let mut page = String::new();
    for figure in figures {
        let (heading, reading) = (escaped(figure.heading), escaped(figure.reading));
        let named = format!("<svg role=\"img\" aria-label=\"{heading}\" ");
        let svg = figure.svg()?.replacen("<svg ", &named, 1);
        let _ = write!(
            page,
            "<section>\n<h2>{heading}</h2>\n<figure>\n{svg}<figcaption>{reading}</figcaption>\n\
             </figure>\n</section>\n"
        );
    }
    page += "<section>\n<h2>Tables</h2>\n";
    for sheet in sheets::all(experiment, Some(RANKS)) {
        page += &html(&sheet);
    }
    if !makeups.is_empty() {
        for kind in [By::Tag, By::Peer] {
            page += &html(&Groups::of(makeups, kind).sheet());
        }
    }
    page += "</section>\n<section>\n<h2>Configuration</h2>\n";
    page += &html(&configuration(experiment));
    page += "</section>\n";
    Ok((summary(experiment, makeups, experiment.need()?.as_ref()), page))
}

/// All around the sections.
fn whole(title: &str, summary: &str, sections: &str) -> String {
    let title = escaped(title);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>tcam: {title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <header><h1>{title}</h1>\n{summary}</header>\n<main>\n{sections}\
         <section>\n<h2>How to read this</h2>\n<dl>\n"
    );
    for (word, meaning) in WORDS {
        let _ = writeln!(page, "<dt>{word}</dt><dd>{meaning}</dd>");
    }
    let _ = write!(
        page,
        "</dl>\n<p>Counts are those of MPI's tagged messages and exact. Times are those of the \
         emulation on the machine it ran on, not of a NIC.</p>\n</section>\n</main>\n\
         <footer>tcam {}</footer>\n</body>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    page
}

/// What is to be known first.
fn summary(experiment: &Experiment, makeups: &[Makeup], need: Option<&Need>) -> String {
    let sum = &experiment.sum;
    let mut lines = vec![format!(
        "{} and {}, {}; {} of the elements fit their table at once, {} were promoted first.",
        count(sum.tagged.posts, "receive"),
        count(sum.tagged.arrivals, "message"),
        sum.way(),
        share(sum.at_once()),
        share(sum.promoted()),
    )];
    for (queue, peak) in Queue::BOTH.iter().zip([&sum.prq_peak, &sum.umq_peak]) {
        lines.push(verdict(experiment, *queue, peak));
    }
    lines.extend(need::told_of_nic(need).map(|line| line + "."));
    lines.extend(by::readings(makeups).into_iter().map(|reading| reading + "."));
    lines.extend(sum.shares().map(|shares| shares + "."));
    lines.extend(sum.turns().map(|turns| turns + "."));
    lines.extend(sum.mixed.clone());
    let cut = experiment.traces.iter().filter_map(Trace::cut).collect::<BTreeSet<_>>();
    lines.extend(cut.into_iter().map(|why| format!("Of traces, only what they have: {why}.")));
    let items =
        lines.iter().fold(String::new(), |items, line| items + "<li>" + &escaped(line) + "</li>\n");
    let lack = experiment
        .lack()
        .map_or_else(String::new, |lack| format!("<p class=\"lack\">{}</p>\n", escaped(&lack)));
    format!("{lack}<ul>\n{items}</ul>\n")
}

fn verdict(experiment: &Experiment, queue: Queue, peak: &Peak) -> String {
    let text = summary_text::verdict(queue.name(), queue.of(&experiment.sum.tagged), peak);
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ") + "."
}

/// Parameters, and whose, where not all ranks had the same.
fn configuration(experiment: &Experiment) -> Sheet {
    let mut values: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for head in &experiment.heads {
        for (name, value) in &*head.config {
            *values.entry(name).or_default().entry(value).or_default() += 1;
        }
    }
    let rows = values.into_iter().map(|(name, values)| {
        let told: Vec<_> = match values.len() {
            1 => values.keys().map(|value| (*value).to_owned()).collect(),
            _ => values.iter().map(|(value, of)| format!("{value} ({of}×)")).collect(),
        };
        vec![format!("FI_TCAM_{}", name.to_uppercase()), told.join(", ")]
    });
    let mut all: Vec<_> = (experiment.sum.origin.iter())
        .map(|(name, value)| vec![(*name).to_owned(), value.clone()])
        .collect();
    all.extend(rows);
    Sheet {
        title: "As the ranks told it".to_owned(),
        header: vec!["name".to_owned(), "value".to_owned()],
        rows: all,
    }
}

fn html(sheet: &Sheet) -> String {
    let cells = |tag: &str, cells: &[String]| {
        cells
            .iter()
            .fold(String::new(), |row, cell| format!("{row}<{tag}>{}</{tag}>", escaped(cell)))
    };
    let mut text = format!(
        "<div class=\"sheet\"><table>\n<caption>{}</caption>\n<thead><tr>{}</tr></thead>\n<tbody>\n",
        escaped(&sheet.title),
        cells("th", &sheet.header)
    );
    for row in &sheet.rows {
        let _ = writeln!(text, "<tr>{}</tr>", cells("td", row));
    }
    text + "</tbody>\n</table></div>\n"
}

/// Text that is no markup.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::outcome::tests::experiment;

    #[test]
    fn the_page_stands_alone_and_is_closed() {
        let mut experiment = experiment(256, 512);
        for (at, head) in experiment.heads.iter_mut().enumerate() {
            head.program = "/opt/a<b>&c".into();
            let value = if at == 0 { "list" } else { "col-pnp" };
            let config = [("host_engine".to_owned(), value.to_owned())];
            head.config = BTreeMap::from(config).into();
        }
        let page = of(&experiment).unwrap();
        for part in ["a&lt;b&gt;&amp;c on 256 ranks", "col-pnp (255×), list (1×)", "PRQ overflowed"]
        {
            assert!(page.contains(part), "{part}");
        }
        for part in ["<script", "<link", "<img", "@import", "url(", "src="] {
            assert!(!page.contains(part), "{part}");
        }
        // The only addresses are names of the SVG language.
        let addresses = page.matches("http").count();
        assert_eq!(addresses, page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
        for tag in ["section", "figure", "svg", "table", "tr", "td", "th", "ul", "dl", "main"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
