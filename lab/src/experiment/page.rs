// SPDX-License-Identifier: BSD-2-Clause
//! Makes the page of HTML of `tcam show --format html`. The page needs no other file, no script and no network.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use nic::plain::plain;

use super::fill::Makeup;
use super::{
    By, Experiment, Groups, Inputs, Material, QueueKind, Repeated, by, figures, repeated, sheets,
};
use nic::models;

use crate::answer::facts::Facts;
use crate::answer::show::section;
use crate::capacity::{Need, need};
use crate::error::Error;
use crate::results::{Peak, Summary, summary_text};
use crate::text::html::escaped;
use crate::text::{Sheet, count, entries, html, share, whole as number};
use crate::traces::{Placed, Trace};

/// Largest number of ranks in the tables of a page.
const RANKS: usize = 32;

/// Explanations of the terms.
const WORDS: [(&str, &str); 8] = [
    ("table", "the match table of the NIC: bounded, searched by hardware"),
    ("host", "the queue in software behind it, for what does not fit"),
    ("PRQ", "posted receives; a message that arrives searches it"),
    (
        "UMQ",
        "unexpected messages, which no receive waited for; a receive that is posted searches it",
    ),
    (
        "high-water mark",
        "most elements at the same time: a table of that size would have held everything",
    ),
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

/// Returns the page of an experiment.
pub(crate) fn of(experiment: &Experiment, placed: &Placed) -> Result<String, Error> {
    let sections = answer(&[experiment], placed)? + &parts(experiment)?;
    Ok(whole(&experiment.title(), &lack(experiment), &sections))
}

/// Returns the answer for recordings of one program, by default for the placement for which they
/// were recorded. If a recording has no traces of tagged messages, the section contains only the
/// need that the reports show.
fn answer(runs: &[&Experiment], placed: &Placed) -> Result<String, Error> {
    let is_tagged =
        |run: &&Experiment| run.traces.iter().any(|trace| trace.header.context == "tagged");
    if runs.iter().all(is_tagged) {
        let placed = placed.or_from_record(runs[0].traces.run.as_ref());
        let traces = runs.iter().map(|run| run.traces.clone().placed(&placed));
        let traces = traces.collect::<Result<Vec<_>, _>>()?;
        let facts = Facts::of(&traces.iter().collect::<Vec<_>>(), models::specific(), true)?;
        let rest = match facts.nodes {
            Some(_) => {
                "<p>The tables and pictures below have all messages, as if all ranks shared one NIC.</p>\n"
            }
            None => "",
        };
        return Ok(section(&facts)? + rest);
    }
    let lines = runs.iter().flat_map(|run| need_of_reports(run)).chain([
        "Which devices suffice, what overflow costs and the need of a NIC at one moment take a \
         recording: tcam answer -- mpiexec ..., or tcam run --trace DIR."
            .to_owned(),
    ]);
    Ok(html::section("Answer", &html::list(lines)))
}

/// Returns the need that reports show: the exact need of a rank and, if there is one host, two
/// bounds of the need of its NIC.
fn need_of_reports(experiment: &Experiment) -> Vec<String> {
    let Summary { prq_peak, umq_peak, .. } = &experiment.sum;
    let mut lines = vec![format!(
        "The tables of a rank need {} for receives and {} for unexpected messages.",
        entries(prq_peak.elements),
        entries(umq_peak.elements)
    )];
    let hosts: BTreeSet<_> = experiment.heads.iter().map(|head| &head.host).collect();
    if hosts.len() == 1 {
        // The queues may be longest at different moments, so the need lies between the largest mark
        // and the sum of all marks.
        let most = [&experiment.sum.tagged.prq, &experiment.sum.tagged.umq];
        let least = most.map(|queue| queue.high_water).into_iter().max().unwrap_or(0);
        let sum = experiment.ranks.iter().fold(0_u64, |sum, rank| sum.saturating_add(rank.marks));
        lines.push(format!(
            "A NIC of all ranks needs between {} and {} for the messages of the program.",
            number(least),
            entries(sum)
        ));
    }
    lines
}

/// Returns the page of several recordings, one after the other. If they are repeats of one run, the
/// page begins with their spread and one answer for all.
pub(crate) fn of_several(
    from: &Inputs,
    experiments: &[Experiment],
    placed: &Placed,
) -> Result<String, Error> {
    let names = from.names.iter().map(|name| plain(&name.display().to_string()).into_owned());
    let (mut sections, are_repeats) = (String::new(), repeated::are_repeats(experiments));
    for (name, experiment) in names.zip(experiments) {
        let (lack, of) = (lack(experiment), parts(experiment)?);
        let title = escaped(&format!("{name}: {}", experiment.title()));
        let answer = if are_repeats { String::new() } else { answer(&[experiment], placed)? };
        let _ = write!(sections, "<section>\n<h1>{title}</h1>\n{lack}</section>\n{answer}{of}");
    }
    if !are_repeats {
        let title = format!("{} recordings", experiments.len());
        return Ok(whole(&title, "", &sections));
    }
    let repeated = Repeated::of(from, experiments);
    let summary = html::table(&repeated.sheet()) + &html::list(repeated.readings());
    let sections = answer(&experiments.iter().collect::<Vec<_>>(), placed)? + &sections;
    Ok(whole(&repeated.title, &summary, &sections))
}

/// Returns the sections of an experiment after its answer.
fn parts(experiment: &Experiment) -> Result<String, Error> {
    // The traces are replayed first, because the replay finds which traces are cut off.
    let material = Material::of(experiment)?;
    let figures = figures::all(experiment, &material);
    let makeups = &material.makeups;
    let summary = summary(experiment, makeups, experiment.need()?.as_ref());
    let mut page = html::section("Summary", &summary);
    for figure in figures {
        let drawn = html::figure(&figure.picture.svg()?, figure.heading, figure.reading);
        page += &html::section(figure.heading, &drawn);
    }
    let mut tables = sheets::all(experiment, Some(RANKS));
    if !makeups.is_empty() {
        let by_site = makeups.iter().any(|makeup| !makeup.sites.is_empty()).then_some(By::Site);
        let all = [By::Tag, By::Peer].into_iter().chain(by_site);
        tables.extend(all.map(|by| Groups::of(makeups, by).sheet()));
    }
    page += &html::section("Tables", &tables.iter().map(html::table).collect::<String>());
    Ok(page + &html::section("Configuration", &html::table(&configuration(experiment))))
}

/// Returns the whole page around these sections.
fn whole(title: &str, summary: &str, sections: &str) -> String {
    let words = WORDS.map(|(word, meaning)| format!("<dt>{word}</dt><dd>{meaning}</dd>\n"));
    let reading = format!(
        "<dl>\n{}</dl>\n<p>Counts are those of MPI's tagged messages and exact. Times are those of the \
         emulation on the machine it ran on, not of a NIC.</p>\n",
        words.concat()
    );
    html::page(
        title,
        summary,
        &(sections.to_owned() + &html::section("How to read this", &reading)),
    )
}

/// Returns a paragraph on missing ranks or a failed program; empty if there is nothing to say.
fn lack(experiment: &Experiment) -> String {
    experiment.lack().map_or_else(String::new, |lack| html::lack(&lack))
}

/// Returns a few sentences on the recording.
fn summary(experiment: &Experiment, makeups: &[Makeup], need: Option<&Need>) -> String {
    let sum = &experiment.sum;
    let mut lines = vec![format!(
        "{} and {}, {}; {} of the elements fit their table immediately, {} were promoted first.",
        count(sum.tagged.posts, "receive"),
        count(sum.tagged.arrivals, "message"),
        sum.origin_text(),
        share(sum.immediate()),
        share(sum.promoted()),
    )];
    for (queue, peak) in QueueKind::BOTH.iter().zip([&sum.prq_peak, &sum.umq_peak]) {
        lines.push(verdict(experiment, *queue, peak));
    }
    lines.extend(need::nic_sentence(need, experiment.lack().is_some()).map(|line| line + "."));
    lines.extend(by::readings(makeups).into_iter().map(|reading| reading + "."));
    lines.extend(sum.waits_note().map(|note| note + "."));
    lines.extend(sum.endpoints_note().map(|note| note + "."));
    lines.extend(sum.scheduling_note().map(|note| note + "."));
    lines.extend(sum.mixed.clone());
    let cut = experiment.traces.iter().filter_map(Trace::cut).collect::<BTreeSet<_>>();
    lines.extend(
        cut.into_iter().map(|why| {
            format!("Incomplete traces, of which only the existing part is shown: {why}.")
        }),
    );
    html::list(lines)
}

fn verdict(experiment: &Experiment, queue: QueueKind, peak: &Peak) -> String {
    let text = summary_text::verdict(queue.name(), queue.of(&experiment.sum.tagged), peak);
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ") + "."
}

/// Returns the facts about the run and the parameters. If ranks have different values of a
/// parameter, each value has its number of reports.
fn configuration(experiment: &Experiment) -> Sheet {
    let mut values: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for head in &experiment.heads {
        for (name, value) in &*head.config {
            *values.entry(name).or_default().entry(value).or_default() += 1;
        }
    }
    let rows = values.into_iter().map(|(name, values)| {
        let texts: Vec<_> = match values.len() {
            1 => values.keys().map(|value| (*value).to_owned()).collect(),
            _ => values.iter().map(|(value, of)| format!("{value} ({of}×)")).collect(),
        };
        vec![format!("FI_TCAM_{}", name.to_uppercase()), texts.join(", ")]
    });
    let mut all: Vec<_> = (experiment.sum.origin.iter())
        .map(|(name, value)| vec![(*name).to_owned(), value.clone()])
        .collect();
    all.extend(rows);
    Sheet {
        title: "Run and parameters, as the ranks reported them".to_owned(),
        header: vec!["name".to_owned(), "value".to_owned()],
        rows: all,
    }
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
        let page = of(&experiment, &Placed::default()).unwrap();
        for part in ["a&lt;b&gt;&amp;c on 256 ranks", "col-pnp (255×), list (1×)", "PRQ overflowed"]
        {
            assert!(page.contains(part), "{part}");
        }
        for part in ["<script", "<link", "<img", "@import", "url(", "src="] {
            assert!(!page.contains(part), "{part}");
        }
        // The only addresses are the names of SVG namespaces.
        let addresses = page.matches("http").count();
        assert_eq!(addresses, page.matches("xmlns=\"http://www.w3.org/2000/svg\"").count());
        for tag in ["section", "figure", "svg", "table", "tr", "td", "th", "ul", "dl", "main"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }
}
