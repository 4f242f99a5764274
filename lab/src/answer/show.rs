// SPDX-License-Identifier: BSD-2-Clause
//! Shows the facts of an answer (`facts.rs`) as text for the terminal, as a section of a page of
//! HTML, and as a picture.

use nic::plain::plain;

use super::facts::{AtSize, DeviceResult, Facts, WAY_NS};
use crate::capacity::Judged;
use crate::error::Error;
use crate::plot::{NeedOfNic, Picture};
use crate::results::summary::{POLLED, waits_note};
use crate::stats::Range;
use crate::text::html::escaped;
use crate::text::{Sheet, WIDTH, count, cut, entries, folded, html, share, whole};

/// Returns the heading and the rows of the need: a name, the need of the worst rank and the need of
/// the worst NIC.
pub(super) fn need_rows(facts: &Facts) -> [[String; 3]; 7] {
    let (rank, nic) = (&facts.rank, &facts.nic);
    let row = |name: &str, [rank, nic]: [Range<u64>; 2]| {
        [name.to_owned(), counts_text(rank), counts_text(nic)]
    };
    let at_least = if is_lower_bound(facts) { ", at least" } else { "" };
    let title = format!("Entries needed{at_least}");
    [
        [title, "peak of a rank".to_owned(), "peak of a NIC".to_owned()],
        row("receives (PRQ)", [rank.prq, nic.prq]),
        row("unexpected messages (UMQ)", [rank.umq, nic.umq]),
        row("  of these, unavoidable", [rank.umq_at_least, nic.umq_at_least]),
        row("receives of the MPI itself", [rank.internal, nic.internal]),
        row("largest sum at one moment", [rank.peak_total, nic.peak_total]),
        ["  held by".to_owned(), rank.name.clone(), nic.name.clone()],
    ]
}

/// Returns true if the program failed or operations are missing. A complete run may then need more
/// entries.
fn is_lower_bound(facts: &Facts) -> bool {
    facts.lack.is_some() || facts.exit_status.is_some_and(|status| status != 0)
}

/// Returns the devices that are products.
pub(super) fn products(facts: &Facts) -> impl Iterator<Item = &DeviceResult> {
    facts.devices.iter().filter(|device| device.model.is_product)
}

/// Returns a sentence on the devices: which hold everything, which are too small, and which leave
/// elements to the host by design. Returns `None` if no message goes through a NIC.
fn verdict(facts: &Facts) -> Option<String> {
    if facts.messages.most == 0 {
        return None;
    }
    let names = |is: &dyn Fn(&DeviceResult) -> bool| -> Vec<_> {
        products(facts).filter(|of| is(of)).map(|of| of.judged.device.clone()).collect()
    };
    let fit = names(&|of| of.suffices_in == facts.runs);
    let small = names(&|of| of.fits_in < facts.runs);
    let by_design = names(&|of| of.fits_in == facts.runs && of.suffices_in < facts.runs);
    let mut told = Vec::new();
    let everything = if is_lower_bound(facts) { "all that was recorded" } else { "everything" };
    match fit.as_slice() {
        [] => told.push("No emulated device holds everything".to_owned()),
        [one] => told.push(format!("{one} holds {everything}")),
        fit => told.push(format!("{} hold {everything}", listed(fit))),
    }
    if !small.is_empty() {
        let is = if small.len() == 1 { "is" } else { "are" };
        told.push(format!("{} {is} too small", listed(&small)));
    }
    if !by_design.is_empty() {
        let s = if by_design.len() == 1 { "s" } else { "" };
        told.push(format!("{} leave{s} elements to the host by design", listed(&by_design)));
    }
    Some(told.join(". ") + ".")
}

/// Returns text such as `a`, `a and b`, or `a, b and c`.
fn listed(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

/// Heading of the columns of [`device_cells`].
const DEVICE: [&str; 7] =
    ["device", "table of", "entries", "needed", "holds all", "search", "+1 us"];

/// Returns whether a device holds all elements. `part` is a device that leaves elements to the host
/// by design, and is not too small for the others. `no` is too small, `1/3` is too small in two of
/// three runs.
pub(crate) fn holds(device: &DeviceResult, facts: &Facts) -> String {
    match device.fits_in {
        _ if device.entries.iter().all(|&entries| entries == 0) => "none".to_owned(),
        all if all == facts.runs && device.suffices_in < all => "part".to_owned(),
        all if all == facts.runs => "yes".to_owned(),
        0 => "no".to_owned(),
        some => format!("{some}/{}", facts.runs),
    }
}

/// Returns the cells of a device without the reason: name, what has the entries, entries, entries
/// needed, whether it holds all elements, and both costs. A need of several runs is the largest.
pub(super) fn device_cells(device: &DeviceResult, facts: &Facts) -> [String; 7] {
    let DeviceResult { judged, cpu_list_percent, with_way_percent, .. } = device;
    let joined = |sizes: Vec<u64>| match device.entries.iter().all(|&entries| entries == 0) {
        true => "-".to_owned(),
        false => sizes.into_iter().map(whole).collect::<Vec<_>>().join("+"),
    };
    let cost = |of: &Range<f64>| if facts.generated { "-".to_owned() } else { percent(*of) };
    let [cost, way] = [cpu_list_percent, with_way_percent].map(cost);
    [
        judged.device.clone(),
        device.unit.to_owned(),
        joined(device.entries.clone()),
        joined(device.needs.iter().map(|need| need.most).collect()),
        holds(device, facts),
        cost,
        way,
    ]
}

/// Returns text such as `8 ranks`, or `1 of 27 ranks` if traces of some were generated.
fn ranks_of(facts: &Facts) -> String {
    match facts.generated && facts.ranks < facts.ranks_of {
        true => format!("{} of {} ranks", whole(facts.ranks.into()), whole(facts.ranks_of.into())),
        false => count(u64::from(facts.ranks), "rank"),
    }
}

/// Returns a description of the runs: command, ranks, processors, exit status, messages and time.
pub(super) fn ran(facts: &Facts) -> String {
    let Facts { command, mpi, runs, processors, hosts, .. } = facts;
    let command = if command.is_empty() { &facts.title } else { command };
    let mut text = format!("{}: {}", cut(command, 100), ranks_of(facts));
    if !mpi.is_empty() {
        text += &format!(" of {}", plain(mpi));
    }
    if let Some(processors) = processors {
        let a_host = if *hosts > 1 { format!(" on each of {hosts} hosts") } else { String::new() };
        text += &format!(" on {}{a_host}", count(*processors as u64, "processor"));
    }
    let status = match facts.exit_status {
        _ if facts.generated => "generated".to_owned(),
        Some(status) => format!("exit status {status}"),
        None => "exit status not recorded".to_owned(),
    };
    let messages = match facts.messages {
        Range { most: 0, .. } if facts.nodes == Some(1) => {
            "all ranks are on one node, and no message goes through a NIC".to_owned()
        }
        Range { most: 0, .. } => "no message goes through a NIC".to_owned(),
        messages => {
            let between = if facts.nodes.is_some() { " between nodes" } else { "" };
            let messages = range_text(messages.least, messages.most, whole);
            format!("{messages} messages{between} a run")
        }
    };
    text += &format!("; {}, {status}; {messages}", count(*runs as u64, "run"));
    if facts.generated {
        return text;
    }
    let seconds = |seconds| format!("{seconds:.3}");
    text + &format!("; {} s", range_text(facts.seconds.least, facts.seconds.most, seconds))
}

/// Returns text such as `12`, or `12 to 15` if the values differ as text.
fn range_text<T: PartialEq>(least: T, most: T, text: impl Fn(T) -> String) -> String {
    let (least, most) = (text(least), text(most));
    if least == most { most } else { format!("{least} to {most}") }
}

fn counts_text(range: Range<u64>) -> String {
    range.to_string()
}

fn percent(range: Range<f64>) -> String {
    let [least, most] =
        [range.least, range.most].map(|of| share(of).trim_end_matches(" %").to_owned());
    match (range.most <= 0.0, least == most) {
        (true, _) => "0".to_owned(),
        (false, true) => format!("{most} %"),
        // A lower bound such as `< 0.01` would be too wide for the column.
        (false, false) if range.least <= 0.0 || least.starts_with('<') => format!("0 to {most} %"),
        (false, false) => format!("{least} to {most} %"),
    }
}

/// Seconds of a run below which its start is a large part.
const SHORT: f64 = 0.2;

/// Returns a sentence on the moment at which messages arrive.
fn arrival_note(facts: &Facts) -> String {
    let text = match facts.polled {
        0 if facts.hosts > 1 => {
            "A message arrives when it comes, even while its receiver computes; a message of \
             another host may arrive up to 10 us late"
        }
        0 => "A message arrives when it is sent, even while its receiver computes",
        polled if polled < facts.runs => {
            return format!(
                "In {polled} of {} runs messages arrived when their receivers polled: at a NIC, more \
                 messages would be unexpected.",
                facts.runs
            );
        }
        _ => POLLED,
    };
    format!("{text}.")
}

/// Returns the limits of the answer that a reader must know, one per item.
fn limits(facts: &Facts) -> Vec<String> {
    let mut limits: Vec<String> = facts.order.iter().cloned().collect();
    if facts.generated {
        limits.push("The times of a generated recording are invented: no costs are given.".into());
    } else {
        limits.push(
            "Costs are modelled shares of the run's time on the rank that pays most, without \
             overlap. A rank that waits for others may pay for them, too."
                .into(),
        );
    }
    if facts.crowded {
        limits.push(
            "Ranks share processors: with a processor each, UMQ, time and costs may differ.".into(),
        );
    }
    if !facts.generated {
        limits.push(arrival_note(facts));
    }
    limits.extend(waits_note(facts.waited).map(|note| note + "."));
    limits
}

/// Returns what explains the figures, and what a reader may do next, one per item. The most
/// important item is first.
fn hints(facts: &Facts) -> Vec<String> {
    let mut hints = Vec::new();
    if facts.runs == 1 {
        hints.push("One run shows no spread: record three.".into());
    }
    hints.push(match facts.nodes {
        None => "All ranks of a host share one NIC, which also gets the messages within the host. \
                 --ppn P: a NIC has P ranks, and gets the messages between nodes only."
            .into(),
        Some(1) => "One node is assumed: messages within a node are left out.".into(),
        Some(nodes) => format!("{nodes} nodes are assumed: messages within a node are left out."),
    });
    hints.extend(facts.fills.iter().map(|fill| format!("{fill}.")));
    hints.extend(facts.shares.iter().map(|note| format!("{note}.")));
    if !facts.generated {
        hints.push(format!(
            "The costs are those of searches in a list on the host. +1 us adds an assumed {} us for each \
             message that a table passes to the host.",
            2 * WAY_NS / 1000
        ));
    }
    if !facts.generated && facts.seconds.most < SHORT {
        hints.push(
            "Much of so short a run is its start: the costs of a longer one are higher.".into(),
        );
    }
    for DeviceResult { model, .. } in facts.devices.iter().filter(|of| !of.judged.suffices) {
        if model.resends && !facts.generated {
            hints.push(format!(
                "{}: the costs lack the time to send a message again if it found no receive.",
                model.name
            ));
        }
        match &facts.in_hardware_mode {
            Some(ends) if model.spilling_mode().is_some() => {
                hints.insert(0, format!("{} {ends}. Here it spills.", model.name));
            }
            _ if model.holds_back() => {
                hints.push(format!("{} would hold senders back; here it spills.", model.name));
            }
            _ => {}
        }
    }
    hints.push(
        "`tcam settings` prints from the same recordings what to set on Slingshot, ConnectX and \
         Portals 4. Its advice on sends needs recordings with `--set trace_sends=on`."
            .into(),
    );
    hints
}

/// Returns what the columns and rows of the answer mean, one per item.
fn legend(facts: &Facts) -> Vec<String> {
    let mut legend = vec![
        "a+b: tables for receives and for unexpected messages. A pool is for both, and for buffers \
         of the provider; engines that divide it need a larger one. Part: the device refuses \
         elements or lacks a table by design, and is not too small for the others."
            .to_owned(),
        "Unavoidable: caused by the order in which each rank sent and received, at any timing."
            .to_owned(),
    ];
    if facts.nic.internal.most > 0 {
        let own = "The MPI's receives take entries of a pool; tables a+b have others for them.";
        legend.push(own.to_owned());
    }
    legend
}

/// Returns a paragraph for a paper or a tender.
pub(super) fn quote(facts: &Facts) -> String {
    let command = if facts.command.is_empty() { &facts.program } else { &facts.command };
    let mut ranks = ranks_of(facts);
    if !facts.mpi.is_empty() {
        ranks += &format!(" of {}", plain(&facts.mpi));
    }
    if let Some(processors) = facts.processors.filter(|_| facts.crowded) {
        ranks += &format!(" ({})", count(processors as u64, "processor"));
    }
    let program = cut(command, 60);
    if facts.messages.most == 0 {
        return format!("No message of {program} on {ranks} goes through a NIC.");
    }
    let holding = products(facts).filter(|of| of.suffices_in == facts.runs);
    let holding: Vec<_> = holding.map(|of| of.judged.device.clone()).collect();
    let hold = match (holding.as_slice(), is_lower_bound(facts)) {
        ([_], false) => "holds all",
        (_, false) => "hold all",
        (_, true) => "held that",
    };
    let holding = match holding.as_slice() {
        [] => "No emulated device holds all".to_owned(),
        names => format!("Of the emulated devices {} {hold}", listed(names)),
    };
    let nic = &facts.nic;
    let (up_to, lack) = match facts.exit_status {
        Some(status) if status != 0 => {
            ("at least", format!("The program failed (exit status {status}). "))
        }
        _ if is_lower_bound(facts) => ("at least", "The recording is incomplete. ".to_owned()),
        _ => ("up to", String::new()),
    };
    let polled =
        if facts.polled > 0 { " Messages arrived when their receivers polled." } else { "" };
    let own = match nic.internal.most {
        0 => String::new(),
        own => format!(" (up to {} of them the MPI's own)", whole(own)),
    };
    format!(
        "{lack}{program} on {ranks} needed {up_to} {} for the receives of a rank and {} for its unexpected \
         messages, and {} at one moment for a NIC of {}{own}, in {} (tcam {}). {holding}.{polled}",
        entries(facts.rank.prq.most),
        whole(facts.rank.umq.most),
        counts_text(nic.peak_total),
        nic.name,
        count(facts.runs as u64, "run"),
        env!("CARGO_PKG_VERSION"),
    )
}

/// Returns the title of a page that contains only answers.
pub(crate) fn title(all: &[Facts]) -> String {
    all.iter().map(|facts| facts.title.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns the answer as a section of HTML.
pub(crate) fn section(facts: &Facts) -> Result<String, Error> {
    let mut text = facts.lack.as_deref().map_or_else(String::new, html::lack);
    text += &paragraph(&format!("{}.", ran(facts)));
    text += &verdict(facts).map_or_else(String::new, |verdict| paragraph(&verdict));
    let [[title, rank, nic], rows @ .., [_, of_rank, of_nic]] = need_rows(facts);
    let mut needs = Sheet::new(title, ["", &rank, &nic]);
    rows.into_iter().for_each(|cells| needs.row(cells));
    text += &html::table(&needs);
    text +=
        &paragraph(&format!("The largest sums are those of {of_rank} and of a NIC of {of_nic}."));
    if let Some(picture) = drawn(facts) {
        let reading = "A NIC whose ranks share that many entries for all that they hold: what of the \
                       receives and unexpected messages enters the table immediately, and the share of \
                       the run's time that the overflow costs. Points are the worst run, bars the \
                       range of the runs.";
        text += &html::figure(&picture.svg()?, "Need and cost of overflow", reading);
    }
    let mut devices =
        Sheet::new("Devices, and their cost on the host in per cent of the run's time", DEVICE);
    let mut left = Vec::new();
    for device in products(facts) {
        devices.row(device_cells(device, facts));
        left.extend(left_to_host(device));
    }
    text += &html::table(&devices);
    text += &html::list(left);
    text += &html::list(limits(facts).into_iter().chain(hints(facts)).chain(legend(facts)));
    text += &format!("<blockquote>{}</blockquote>\n", paragraph(&quote(facts)));
    let heading = match facts.ranks_a_nic {
        Some(ranks) => format!("Answer for {} of a NIC", count(ranks.get().into(), "rank")),
        None => "Answer".to_owned(),
    };
    Ok(html::section(&heading, &text))
}

/// Returns a table with a column for each number of ranks of a NIC.
pub(crate) fn by_placement(all: &[Facts]) -> Sheet {
    let title = "Entries needed with P ranks of a NIC, and whether a device holds all, with its cost \
                 on the host (+1 us each) in per cent of the run's time";
    let is_least = all.iter().any(is_lower_bound);
    let title =
        if is_least { title.replacen("needed", "needed at least", 1) } else { title.to_owned() };
    let mut sheet = Sheet { title, ..Sheet::default() };
    let mut row = |name: &str, cell: &dyn Fn(&Facts) -> String| {
        let cells = all.iter().map(cell);
        sheet.rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    };
    let ppn = |of: &Facts| of.ranks_a_nic.map_or_else(String::new, |ranks| ranks.to_string());
    row("P", &ppn);
    row("nodes", &|of| of.nodes.map_or_else(String::new, |nodes| whole(nodes as u64)));
    row("messages a run", &|of| counts_text(of.messages));
    row("needed by a NIC", &|of| counts_text(of.nic.peak_total));
    row("receives of a rank", &|of| counts_text(of.rank.prq));
    row("unexpected messages", &|of| counts_text(of.rank.umq));
    for device in all.first().into_iter().flat_map(products) {
        let name = device.judged.device.as_str();
        row(name, &|facts| {
            let Some(of) = products(facts).find(|of| of.judged.device == name) else {
                return String::new();
            };
            match of.with_way_percent {
                _ if facts.messages.most == 0 => "-".to_owned(),
                Range { most, .. } if most > 0.0 && !facts.generated => {
                    format!("{}, {}", holds(of, facts), share(most))
                }
                _ => holds(of, facts),
            }
        });
    }
    sheet.header = sheet.rows.remove(0);
    sheet
}

/// Returns the lines for the terminal of several placements of one program.
pub(crate) fn lines_by_placement(all: &[Facts]) -> Vec<String> {
    let Some(first) = all.first() else { return Vec::new() };
    let mut lines: Vec<_> = first.lack.iter().flat_map(|lack| folded(lack, 0)).collect();
    let command = if first.command.is_empty() { &first.title } else { &first.command };
    let of =
        if first.mpi.is_empty() { String::new() } else { format!(" of {}", plain(&first.mpi)) };
    let runs = count(first.runs as u64, "run");
    let program = format!("{}: {}{of}, {runs}.", cut(command, 100), ranks_of(first));
    lines.extend(folded(&program, 0));
    let sheet = by_placement(all);
    lines.extend(folded(&format!("{}.", sheet.title), 0));
    lines.extend(sheet.table().to_string().lines().map(str::to_owned));
    let item = |text: String| folded(&format!("- {text}"), 2);
    lines.extend(limits(first).into_iter().flat_map(item));
    lines.push("With one number, --ppn prints the whole page.".to_owned());
    lines
}

/// Returns the picture, or `None` if no NICs of other sizes were replayed for it.
pub(crate) fn drawn(facts: &Facts) -> Option<Picture<'static>> {
    let sizes = &facts.sizes;
    let ranges = |of: fn(&AtSize) -> &Range<f64>| {
        sizes.iter().map(of).map(|range| (range.least, range.most)).collect()
    };
    let need = NeedOfNic {
        need: facts.nic.peak_total.most,
        sizes: sizes.iter().map(|of| of.entries as usize).collect(),
        immediate: ranges(|of| &of.immediate_percent),
        list: ranges(|of| &of.cpu_list_percent),
        with_way: ranges(|of| &of.with_way_percent),
    };
    let title = format!("{}: need of a NIC of {}", facts.title, facts.nic.name);
    (!sizes.is_empty()).then(|| need.picture(title))
}

fn paragraph(text: &str) -> String {
    format!("<p>{}</p>\n", escaped(text))
}

/// Number of lines on the terminal beyond which hints, sentences of the legend and empty lines are
/// left out.
const LINES: usize = 40;
/// What is printed if hints or sentences of the legend were left out.
const MORE: &str = "There are more notes: --html FILE writes a page with all of them.";

/// Returns the lines for the terminal.
pub(crate) fn lines(facts: &Facts) -> Vec<String> {
    let mut lines = vec![];
    lines.extend(facts.lack.iter().flat_map(|lack| folded(lack, 0)));
    lines.extend(folded(&format!("{}.", ran(facts)), 0).into_iter().take(3));
    lines.extend(verdict(facts).iter().flat_map(|verdict| folded(verdict, 0)));
    lines.push(String::new());
    lines.extend(need_rows(facts).iter().map(|cells| row(cells.each_ref().map(String::as_str))));
    lines.push(String::new());
    let [_, of, entries, needs, _, search, way] = DEVICE;
    let [search, way] = [search, way].map(|cost| format!("{cost}, %"));
    lines.push(device_row(["Device", of, entries, needs, "holds", &search, &way]));
    lines.extend(products(facts).flat_map(|device| of_device(device, facts)));
    lines.push(String::new());
    let item = |text: String| folded(&format!("- {text}"), 2);
    lines.extend(limits(facts).into_iter().flat_map(item));
    let quote = folded(&format!("To quote: {}", quote(facts)), 0);
    let mut room = LINES.saturating_sub(lines.len() + 1 + quote.len());
    let mut more: Vec<_> = hints(facts).into_iter().chain(legend(facts)).map(item).collect();
    if more.iter().map(Vec::len).sum::<usize>() > room {
        // A sentence that does not fit is left out, not cut off.
        more.retain(|item| {
            let fits = item.len() < room;
            room -= if fits { item.len() } else { 0 };
            fits
        });
        if room > 0 {
            more.push(item(MORE.to_owned()));
        }
    }
    lines.extend(more.concat());
    lines.push(String::new());
    lines.extend(quote);
    let mut excess = lines.len().saturating_sub(LINES);
    lines.retain(|line| {
        let stays = excess == 0 || !line.is_empty();
        excess -= usize::from(!stays);
        stays
    });
    lines
}

fn row([name, rank, nic]: [&str; 3]) -> String {
    let [rank, nic] = [rank, nic].map(|text| cut(text, 25));
    format!("{name:<28}{rank:>25}{nic:>26}").trim_end().to_owned()
}

fn device_row([name, of, entries, needs, holds, list, way]: [&str; 7]) -> String {
    let line = format!("{name:<17}{of:<9}{entries:<12}{needs:<14}{holds:<6}{list:<11}{way}");
    line.trim_end().to_owned()
}

/// Returns the lines of a device, and below it what it leaves to the host.
fn of_device(device: &DeviceResult, facts: &Facts) -> Vec<String> {
    let [name, of, entries, needs, holds, cost, way] = device_cells(device, facts);
    let [cost, way] = [cost, way].map(|of| narrow(&of));
    let first = [&name, &of, &entries, &needs, &holds, &cost, &way];
    let mut rows = vec![cut(&device_row(first.map(String::as_str)), WIDTH)];
    // A missing table is visible in the row.
    let why = device.judged.why.split("; ").filter(|part| !part.starts_with("has no "));
    let why = why.collect::<Vec<_>>().join("; ");
    if !why.is_empty() {
        rows.extend(folded(&format!("  left to the host: {why}"), 4));
    }
    rows
}

/// Returns a sentence on what a device leaves to the host, or `None` if it leaves nothing.
fn left_to_host(device: &DeviceResult) -> Option<String> {
    let Judged { device, why, .. } = &device.judged;
    (!why.is_empty()).then(|| format!("{device} leaves to the host: {why}."))
}

/// Returns a share or a range of shares without the unit, which is in the heading of the column. If
/// a range is as wide as the column, its least share is rounded down.
fn narrow(share: &str) -> String {
    match share.trim_end_matches(" %").split_once(" to ") {
        None => share.trim_end_matches(" %").to_owned(),
        Some((least, most)) if least.len() + most.len() > 8 => {
            format!("{}-{most}", least.split('.').next().unwrap_or_default())
        }
        Some((least, most)) => format!("{least}-{most}"),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use nic::models::{self, NicModel};

    use super::super::facts::Needed;
    use super::*;
    use crate::capacity::Judged;
    use crate::commands::workload::tests::write_to;
    use crate::traces::{Take, files};

    #[test]
    fn shares_are_as_narrow_as_their_column() {
        let told = |least, most| narrow(&percent(Range { least, most }));
        assert_eq!(told(0.0, 0.0), "0");
        assert_eq!(told(2.46, 2.46), "2.5");
        assert_eq!(told(10.94, 99.96), "10-99.96");
        assert_eq!(told(10.04, 16.04), "10.0-16.0");
        assert_eq!(told(0.001, 0.002), "< 0.01");
        assert_eq!(told(0.001, 0.012), "0-0.01");
        assert_eq!(told(0.0, 0.2), "0-0.2");
    }
    /// A page on which every note that concerns its figures is needed.
    fn with_all_notes() -> Facts {
        fn range<T>(least: T, most: T) -> Range<T> {
            Range { least, most }
        }
        let needed = || Needed {
            name: "ranks 0-3, 8-11, 16-19 and 1,020 more".into(),
            prq: range(44_448, 44_455),
            umq: range(44_448, 44_455),
            umq_at_least: range(44_448, 44_455),
            internal: range(8, 64),
            peak_total: range(44_650, 46_650),
        };
        let device = |name: &str, entries: &[u64], why: &str| DeviceResult {
            unit: if entries.len() == 1 { "NIC" } else { "rank" },
            needs: match entries {
                [_] => vec![range(52_388, 52_392)],
                _ => [44_455, 44_455].map(Into::into).into(),
            },
            model: *models::named(name).unwrap(),
            judged: Judged {
                device: name.into(),
                suffices: false,
                by_design: 1,
                overflowed: 1,
                why: why.into(),
            },
            entries: entries.to_vec(),
            suffices_in: 0,
            fits_in: 0,
            cpu_list_percent: range(10.04, 99.96),
            with_way_percent: range(10.04, 99.96),
        };
        Facts {
            title: "fds_gather".into(),
            program: "fds_gather".into(),
            command: "fds_gather --steps 4".into(),
            mpi: "MPICH 5.0.2".into(),
            ranks: 1_032,
            ranks_of: 1_032,
            hosts: 2,
            processors: Some(64),
            crowded: true,
            generated: false,
            exit_status: Some(0),
            runs: 1,
            messages: range(1_234_567, 1_234_567),
            seconds: range(0.1, 0.1),
            ranks_a_nic: None,
            nodes: None,
            rank: needed(),
            nic: needed(),
            fills: vec![
                "4 of 8 in the PRQ of rank 5 are of communicator 4 (ranks 0-15, id 6), of 4 tags \
                 from 16385 to 28673, from ranks 1 and 9, at 0.471 s"
                    .into(),
            ],
            devices: vec![
                device("cassini-hybrid", &[65_536], ""),
                device("cassini-hardware", &[65_536], ""),
                device("cassini-software", &[0, 0], "has no PRQ; has no UMQ"),
                device("connectx", &[1_023, 0], "small buffers: 1,163; has no UMQ"),
                device("portals4-ref", &[1_024, 1_024], "table full: 1,520; behind: 12,345"),
                device("alpu", &[256, 256], "table full: 1,520; behind: 12,345"),
                device("uet", &[65_536, 0], "has no UMQ"),
            ],
            sizes: vec![],
            order: Some(
                "A NIC's need is a range because the order of ranks within 1,234 us is unknown: \
                 hosts have different clocks."
                    .into(),
            ),
            lack: None,
            polled: 1,
            waited: 1_234_567,
            in_hardware_mode: None,
            shares: Some(
                "Ranks have up to 16 endpoints, each with tables of its own: high-water marks are \
                 those of one, and add up on a NIC that they share"
                    .into(),
            ),
        }
    }

    #[test]
    fn a_new_device_needs_no_other_code() {
        let directory = tempfile::tempdir().unwrap();
        write_to(directory.path());
        let found = files::find(&[directory.path().to_owned()], Take::default()).unwrap();
        let mine = NicModel::new(
            "mine",
            &[
                ("prq_entries", "512"),
                ("umq_entries", "512"),
                ("overflow", "flow-control"),
                ("pool", "node"),
                ("pool_entries", "30"),
                ("pool_engines", "3"),
            ],
        );
        let facts = Facts::of(&[&found], [&mine], false).unwrap();
        let needed = facts.devices[0].needs[0].most;
        assert!(needed.is_multiple_of(3) && needed > facts.nic.peak_total.most, "{needed}");
        let page = lines(&facts).join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
        for told in [format!("mine NIC 30 {needed} no"), "mine would hold senders back".into()] {
            assert!(page.contains(&told), "{told}: {page}");
        }
    }

    #[test]
    fn a_page_has_at_most_forty_lines_and_every_limit() {
        let mut facts = with_all_notes();
        facts.devices[3].judged.why += "; refuses 77 receives; behind spilled: 98";
        let lines = lines(&facts);
        let page = lines.join("\n");
        assert!(lines.len() <= LINES, "{} lines:\n{page}", lines.len());
        assert!(lines.iter().all(|line| line.len() <= WIDTH), "{page}");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for limit in limits(&facts).into_iter().chain([quote(&facts)]) {
            assert!(words(&page).contains(&words(&limit)), "no {limit}:\n{page}");
        }
    }

    #[test]
    fn the_columns_of_a_page_are_aligned() {
        let lines = lines(&with_all_notes());
        let line = |part: &str| {
            let line = lines.iter().find(|line| line.contains(part));
            line.unwrap_or_else(|| panic!("no {part}: {lines:#?}"))
        };
        let both = "44,448 to 44,455";
        for (name, rank, nic) in [
            ("Entries needed", "peak of a rank", "peak of a NIC"),
            ("receives (PRQ)", both, both),
            ("unexpected messages (UMQ)", both, both),
            ("  of these, unavoidable", both, both),
            ("receives of the MPI itself", "8 to 64", "8 to 64"),
        ] {
            assert_eq!(*line(name), format!("{name:<28}{rank:>25}{nic:>26}").trim_end());
        }
        for (line, columns) in [
            (line("Device "), &[(0, "Device "), (17, "table of"), (26, "entries")][..]),
            (
                line("Device "),
                &[(38, "needed"), (52, "holds"), (58, "search, %"), (69, "+1 us, %")],
            ),
            (line("uet  "), &[(17, "rank"), (26, "65,536+0"), (38, "44,455+44,455"), (52, "no")]),
            (line("left to the host: small buffers: 1,163"), &[(2, "left")]),
        ] {
            for &(at, text) in columns {
                assert!(line[at..].starts_with(text), "{text} in {line}");
            }
        }
    }

    fn changed(change: fn(&mut Facts)) -> Facts {
        let mut facts = with_all_notes();
        change(&mut facts);
        facts
    }

    fn suffices(facts: &mut Facts, name: &str) {
        let device = facts.devices.iter_mut().find(|of| of.judged.device == name).unwrap();
        (device.judged.suffices, device.suffices_in) = (true, facts.runs);
        device.fits_in = facts.runs;
    }

    #[test]
    fn the_verdict_names_each_device_once() {
        let told = |change| verdict(&changed(change)).unwrap();
        fn by_design(facts: &mut Facts, at: usize) {
            facts.devices[at].fits_in = facts.runs;
        }
        assert_eq!(
            told(|_| {}),
            "No emulated device holds everything. cassini-hybrid, cassini-hardware, \
             cassini-software, connectx, portals4-ref, alpu and uet are too small."
        );
        assert_eq!(
            told(|of| {
                for name in ["cassini-hybrid", "cassini-hardware", "portals4-ref"] {
                    suffices(of, name);
                }
                by_design(of, 2);
                by_design(of, 3);
                of.devices.truncate(6);
            }),
            "cassini-hybrid, cassini-hardware and portals4-ref hold everything. alpu is too small. \
             cassini-software and connectx leave elements to the host by design."
        );
        let told = told(|of| {
            of.exit_status = Some(1);
            of.devices.truncate(3);
            suffices(of, "cassini-hybrid");
            suffices(of, "cassini-hardware");
            by_design(of, 2);
        });
        let told: Vec<_> = told.split(". ").collect();
        assert_eq!(told[0], "cassini-hybrid and cassini-hardware hold all that was recorded");
        assert_eq!(told[1], "cassini-software leaves elements to the host by design.");
        assert_eq!(verdict(&changed(|of| of.messages.most = 0)), None);
    }

    #[test]
    fn each_sentence_has_its_condition() {
        let text = |change| {
            let facts = changed(change);
            [vec![ran(&facts)], limits(&facts), hints(&facts), legend(&facts)].concat().join("\n")
        };
        // A part of the text, a change after which it is there, and changes after which it is not.
        type Case = (&'static str, fn(&mut Facts), &'static [fn(&mut Facts)]);
        let cases: [Case; 26] = [
            ("4 of 8 in the PRQ of rank 5", |_| {}, &[|of| of.fills.clear()]),
            ("A NIC's need is a range", |_| {}, &[|of| of.order = None]),
            ("are invented: no costs", |of| of.generated = true, &[|_| {}]),
            ("Costs are modelled", |_| {}, &[|of| of.generated = true]),
            ("Ranks share processors", |_| {}, &[|of| of.crowded = false]),
            (
                "Messages arrived when",
                |_| {},
                &[|of| of.runs = 2, |of| of.polled = 0, |of| of.generated = true],
            ),
            ("In 1 of 2 runs messages", |of| of.runs = 2, &[|_| {}]),
            (
                "up to 10 us late",
                |of| of.polled = 0,
                &[|_| {}, |of| (of.polled, of.hosts) = (0, 1)],
            ),
            ("when it is sent", |of| (of.polled, of.hosts) = (0, 1), &[|of| of.polled = 0]),
            ("room 1,234,567 times: the UMQ is a lower bound.", |_| {}, &[|of| of.waited = 0]),
            ("Ranks have up to 16 endpoints", |_| {}, &[|of| of.shares = None]),
            ("an assumed 1 us", |_| {}, &[|of| of.generated = true]),
            ("All ranks of a host", |_| {}, &[|of| of.nodes = Some(1)]),
            ("One node is assumed", |of| of.nodes = Some(1), &[|_| {}, |of| of.nodes = Some(2)]),
            ("2 nodes are assumed", |of| of.nodes = Some(2), &[|_| {}, |of| of.nodes = Some(1)]),
            ("One run shows no spread", |_| {}, &[|of| of.runs = 2]),
            (
                "Much of so short a run",
                |_| {},
                &[|of| of.seconds.most = 0.2, |of| of.generated = true],
            ),
            ("uet: the costs lack", |_| {}, &[|of| suffices(of, "uet"), |of| of.generated = true]),
            ("cassini-hardware would", |_| {}, &[|of| suffices(of, "cassini-hardware")]),
            ("The MPI's receives take", |_| {}, &[|of| of.nic.internal.most = 0]),
            (
                "64 processors on each of 2 hosts",
                |_| {},
                &[|of| of.hosts = 1, |of| of.processors = None],
            ),
            (
                "exit status not recorded",
                |of| of.exit_status = None,
                &[|_| {}, |of| of.generated = true],
            ),
            ("1,234,567 messages between nodes", |of| of.nodes = Some(2), &[|_| {}]),
            ("no message goes through a NIC", |of| of.messages.most = 0, &[|_| {}]),
            (
                "all ranks are on one node",
                |of| (of.messages.most, of.nodes) = (0, Some(1)),
                &[|of| of.messages.most = 0, |of| (of.messages.most, of.nodes) = (0, Some(2))],
            ),
            (
                "1 of 27 ranks",
                |of| (of.ranks, of.ranks_of, of.generated) = (1, 27, true),
                &[
                    |of| (of.ranks, of.ranks_of) = (1, 27),
                    |of| (of.ranks, of.ranks_of, of.generated) = (27, 27, true),
                ],
            ),
        ];
        for (part, with, without) in cases {
            assert!(text(with).contains(part), "no {part}: {}", text(with));
            for without in without {
                assert!(!text(*without).contains(part), "{part}: {}", text(*without));
            }
        }
        assert_eq!(
            ran(&with_all_notes()),
            "fds_gather --steps 4: 1,032 ranks of MPICH 5.0.2 on 64 processors on each of 2 hosts; \
             1 run, exit status 0; 1,234,567 messages a run; 0.100 s"
        );
        assert!(
            ran(&changed(|of| of.generated = true))
                .ends_with("1 run, generated; 1,234,567 messages a run")
        );
        assert!(ran(&changed(|of| of.command.clear())).starts_with("fds_gather: "));
    }

    #[test]
    fn the_quote_has_the_figures_and_the_failure() {
        assert_eq!(
            quote(&with_all_notes()),
            format!(
                "fds_gather --steps 4 on 1,032 ranks of MPICH 5.0.2 (64 processors) needed up to 44,455 entries for \
                 the receives of a rank and 44,455 for its unexpected messages, and 44,650 to 46,650 \
                 at one moment for a NIC of ranks 0-3, 8-11, 16-19 and 1,020 more (up to 64 of them \
                 the MPI's own), in 1 run (tcam {}). No emulated device holds all. Messages arrived \
                 when their receivers polled.",
                env!("CARGO_PKG_VERSION")
            )
        );
        for (change, part) in [
            (
                (|of| of.crowded = false) as fn(&mut Facts),
                "on 1,032 ranks of MPICH 5.0.2 needed up to",
            ),
            (|of| of.exit_status = Some(3), "The program failed (exit status 3). fds_gather"),
            (|of| of.exit_status = Some(3), "needed at least 44,455"),
            (|of| of.exit_status = None, "needed up to 44,455"),
            (|of| of.lack = Some("no rank 3".into()), "The recording is incomplete. fds_gather"),
            (|of| suffices(of, "alpu"), "Of the emulated devices alpu holds all"),
            (|of| (suffices(of, "alpu"), of.lack = Some("x".into())).1, "alpu held that."),
            (|of| of.polled = 0, "No emulated device holds all."),
            (|of| of.nic.internal.most = 0, "and 1,020 more, in 1 run"),
            (
                |of| of.messages.most = 0,
                "No message of fds_gather --steps 4 on 1,032 ranks of MPICH",
            ),
        ] {
            let quote = quote(&changed(change));
            assert!(quote.contains(part), "no {part}: {quote}");
        }
        assert!(quote(&changed(|of| of.polled = 0)).ends_with("all."));
    }

    #[test]
    fn rows_have_the_figures_of_their_device_and_need() {
        let row = |change: fn(&mut Facts), at: usize| {
            let facts = changed(change);
            of_device(&facts.devices[at], &facts)
        };
        assert_eq!(
            row(|_| {}, 3),
            [
                "connectx         rank     1,023+0     44,455+44,455 no    10-99.96   10-99.96",
                "  left to the host: small buffers: 1,163",
            ]
        );
        assert_eq!(
            row(|of| of.generated = true, 0),
            ["cassini-hybrid   NIC      65,536      52,392        no    -          -"]
        );
        let software = row(|_| {}, 2);
        assert!(
            software[0].starts_with("cassini-software rank     -           -             none")
        );
        assert_eq!(software.len(), 1);
        for (change, holds) in [
            ((|of| suffices(of, "cassini-hybrid")) as fn(&mut Facts), "yes"),
            (|of| (suffices(of, "cassini-hybrid"), of.runs = 2).1, "1/2"),
        ] {
            let facts = changed(change);
            assert_eq!(device_cells(&facts.devices[0], &facts)[4], holds);
        }
        assert_eq!(
            products(&changed(|of| of.devices[0].model = *models::named("ideal").unwrap())).count(),
            6
        );
        let rows = need_rows(&with_all_notes());
        assert_eq!(rows[4], ["receives of the MPI itself", "8 to 64", "8 to 64"]);
        assert_eq!(rows[5][1], "44,650 to 46,650");
        assert_eq!(rows[6][2], "ranks 0-3, 8-11, 16-19 and 1,020 more");
        assert_eq!(rows[0][0], "Entries needed");
        let failed = changed(|of| of.exit_status = Some(1));
        assert_eq!(need_rows(&failed)[0][0], "Entries needed, at least");
    }

    #[test]
    fn placements_have_a_column_each() {
        let all: Vec<_> = [4, 8]
            .map(|ranks| {
                let mut facts = changed(|of| suffices(of, "alpu"));
                (facts.ranks_a_nic, facts.nodes) = (NonZeroU32::new(ranks), Some(64));
                facts.nic.peak_total = (100 * u64::from(ranks)).into();
                facts
            })
            .into();
        let sheet = by_placement(&all);
        let row = |name: &str| {
            let found = sheet.rows.iter().find(|row| row[0] == name);
            found.unwrap_or_else(|| panic!("no {name}"))[1..].join(" ")
        };
        assert_eq!(sheet.header, ["P", "4", "8"]);
        assert_eq!((row("nodes"), row("needed by a NIC")), ("64 64".into(), "400 800".into()));
        assert_eq!(row("receives of a rank"), ["44,448 to 44,455"; 2].join(" "));
        assert_eq!(row("alpu"), ["yes, 99.96 %"; 2].join(" "));
        assert_eq!(row("connectx"), ["no, 99.96 %"; 2].join(" "));
        let lines = lines_by_placement(&all);
        assert_eq!(lines[0], "fds_gather --steps 4: 1,032 ranks of MPICH 5.0.2, 1 run.");
        assert!(lines.iter().any(|line| line.starts_with("- A NIC's need is a range")));
        assert!(section(&all[1]).unwrap().contains("Answer for 8 ranks of a NIC"));
    }

    #[test]
    fn a_section_has_the_page_and_its_picture() {
        let size = |entries| AtSize {
            entries,
            immediate_percent: Range { least: 1.0, most: 2.0 },
            cpu_list_percent: Range { least: 3.0, most: 4.0 },
            with_way_percent: Range { least: 5.0, most: 6.0 },
        };
        let mut facts = changed(|of| of.lack = Some("no trace of rank 3".into()));
        assert!(drawn(&facts).is_none());
        let without = section(&facts).unwrap();
        facts.sizes = vec![size(64), size(128)];
        let page = section(&facts).unwrap();
        assert!(drawn(&facts).is_some() && page.contains("<svg") && !without.contains("<svg"));
        let parts = [
            "no trace of rank 3",
            "<p>fds_gather",
            "are too small",
            "Entries needed",
            "<svg",
            "1,024+1,024",
            "<li>",
            "table full: 1,520",
            "<blockquote>",
        ];
        let places: Vec<_> = parts.iter().map(|part| page.find(part)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
        assert!(page.contains(&paragraph(&quote(&facts))));
        assert_eq!(title(&[facts, with_all_notes()]), "fds_gather, fds_gather");
    }
}
