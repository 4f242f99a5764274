// SPDX-License-Identifier: BSD-2-Clause
//! The page of `tcam answer`, for the terminal: at most 40 lines of 80 columns.

use nic::plain::plain;

use super::facts::{Device, Facts, Range, WAY_NS};
use crate::text::numbers::{count, entries, share, whole};
use crate::text::page::{WIDTH, cut, folded};

/// The device without limits: it is no product.
const IDEAL: &str = "ideal";
/// Most lines of it.
const LINES: usize = 40;

/// The page.
pub(super) fn lines(facts: &Facts) -> Vec<String> {
    let mut lines = vec![];
    lines.extend(facts.lack.iter().flat_map(|lack| folded(lack, 0)));
    lines.extend(folded(&format!("{}.", ran(facts)), 0).into_iter().take(3));
    lines.push(String::new());
    let (rank, nic) = (&facts.rank, &facts.nic);
    lines.push(row(["Entries needed", &worst("", &rank.name), &worst("NIC: ", &nic.name)]));
    lines.push(row(["receives (PRQ)", &told(rank.prq), &told(nic.prq)]));
    lines.push(row(["unexpected messages (UMQ)", &told(rank.umq), &told(nic.umq)]));
    lines.push(row([
        "  of these, whatever timing",
        &told(rank.umq_at_least),
        &told(nic.umq_at_least),
    ]));
    lines.push(row(["the MPI's own, besides", &told(rank.internal), &told(nic.internal)]));
    lines.push(row(["all at one moment", &told(rank.at_once), &told(nic.at_once)]));
    lines.push(format!("So a NIC needs {}.", entries(nic.at_once.most)));
    lines.push(String::new());
    lines.push(device_row([
        "Device",
        "entries",
        "holds",
        "-- overflow costs --",
        "",
        "why not all",
    ]));
    lines.push(device_row(["", "", "all", "host list", "and +1 us", ""]));
    let devices = facts.devices.iter().filter(|device| device.judged.device != IDEAL);
    lines.extend(devices.flat_map(|device| of_device(device, facts.runs)));
    lines.push(String::new());
    let room = LINES.saturating_sub(lines.len() + 1);
    let quote = folded(&format!("To quote: {}", quote(facts)), 0);
    let limits = limits(facts).into_iter().flat_map(|limit| folded(&format!("- {limit}"), 2));
    lines.extend(limits.take(room.saturating_sub(quote.len())));
    lines.push(String::new());
    lines.extend(quote);
    lines
}

/// Names the run.
fn ran(facts: &Facts) -> String {
    let Facts { command, mpi, runs, processors, hosts, .. } = facts;
    let command = if command.is_empty() { &facts.title } else { command };
    let mut told = format!("{}: {}", cut(command, 100), count(u64::from(facts.ranks), "rank"));
    if !mpi.is_empty() {
        told += &format!(" of {}", plain(mpi));
    }
    if let Some(processors) = processors {
        let a_host = if *hosts > 1 { format!(" on each of {hosts} hosts") } else { String::new() };
        told += &format!(" on {}{a_host}", count(*processors as u64, "processor"));
    }
    let status = match facts.exit_status {
        _ if facts.generated => "generated".to_owned(),
        Some(status) => format!("exit status {status}"),
        None => "exit status not recorded".to_owned(),
    };
    let messages = match facts.messages {
        Range { most: 0, .. } => "no message goes through a NIC".to_owned(),
        messages => format!("{} messages a run", told_of(messages.least, messages.most, whole)),
    };
    let seconds = |seconds| format!("{seconds:.3}");
    told + &format!(
        "; {}, {status}; {messages}; {} s",
        count(*runs as u64, "run"),
        told_of(facts.seconds.least, facts.seconds.most, seconds)
    )
}

/// `12`, or `12 to 15`.
fn told_of<T: PartialEq>(least: T, most: T, text: impl Fn(T) -> String) -> String {
    let (least, most) = (text(least), text(most));
    if least == most { most } else { format!("{least} to {most}") }
}

fn told(range: Range<u64>) -> String {
    told_of(range.least, range.most, whole)
}

fn percent(range: Range<f64>) -> String {
    match range.most {
        most if most <= 0.0 => "0".to_owned(),
        _ => {
            told_of(range.least, range.most, |of| share(of).trim_end_matches(" %").to_owned())
                + " %"
        }
    }
}

/// `worst: rank 3`
fn worst(what: &str, name: &str) -> String {
    cut(&format!("worst {what}{name}"), 24)
}

fn row([name, rank, nic]: [&str; 3]) -> String {
    format!("{name:<28}{rank:>24}{nic:>26}").trim_end().to_owned()
}

/// Column of the last text of a row.
const WHY: usize = 57;

fn device_row([name, entries, holds, list, way, why]: [&str; 6]) -> String {
    // The heading of the costs is as wide as both.
    let text = format!("{name:<17}{entries:<12}{holds:<6}{list:<11}{way:<11}{why}");
    match list.len() > 11 {
        true => format!("{name:<17}{entries:<12}{holds:<6}{list:<22}{why}"),
        false => text.trim_end().to_owned(),
    }
}

/// The row of a device; what does not fit of the reason goes to the next line.
fn of_device(device: &Device, runs: usize) -> Vec<String> {
    let Device { judged, suffices_in, cpu_list_percent, with_way_percent, .. } = device;
    let holds = match *suffices_in {
        all if all == runs => "yes".to_owned(),
        0 => "no".to_owned(),
        some => format!("{some} of {runs}"),
    };
    let sizes: Vec<_> = device.entries.iter().map(|&entries| whole(entries)).collect();
    let [cost, way] = [cpu_list_percent, with_way_percent].map(|cost| percent(*cost));
    let mut why = vec![String::new()];
    for part in judged.why.split("; ").filter(|part| !part.is_empty()) {
        let line = why.last_mut().expect("there is one");
        if !line.is_empty() && line.len() + 2 + part.len() > WIDTH - WHY {
            line.push(';');
            why.push(part.to_owned());
        } else {
            *line += if line.is_empty() { "" } else { "; " };
            *line += part;
        }
    }
    let first = [
        &judged.device,
        &sizes.join("+"),
        &holds,
        &cost.replace(" to ", "-"),
        &way.replace(" to ", "-"),
        &why[0],
    ];
    let mut rows = vec![cut(&device_row(first.map(String::as_str)), WIDTH)];
    let rest = why[1..].iter().map(|part| cut(&format!("{:WHY$}{part}", ""), WIDTH));
    rows.extend(rest);
    rows
}

/// What limits the answer.
fn limits(facts: &Facts) -> Vec<String> {
    let mut limits = Vec::new();
    if facts.crowded {
        limits.push(
            "Ranks share processors, which distorts the UMQ, its spread, the time of the run and so \
             the shares of it: better run with a processor for each rank."
                .to_owned(),
        );
    }
    if facts.runs == 1 {
        limits.push("One run shows no spread: give three, or --repeat 3.".to_owned());
    }
    limits.push(match facts.nodes {
        None => {
            "Each host has one NIC here, which also gets the messages within the host; --ppn P \
                 places P ranks on a node, and leaves out the messages within it."
                .to_owned()
        }
        Some(nodes) => format!(
            "{} assumed: messages within one are left out, others keep their order.",
            match nodes {
                1 => "One node is".to_owned(),
                nodes => format!("{nodes} nodes are"),
            }
        ),
    });
    limits.push(
        "Whatever timing: as if each message came as late as its receive or probe, and the order \
         of its sender, allow."
            .to_owned(),
    );
    limits.push(format!(
        "Costs are modelled shares of the run's time, on the rank that pays most, as if nothing \
         overlapped: searches of a list on the host; and +1 us, {} ns for the way from the NIC to \
         the host and back of each message that it hands over (an assumption).",
        whole(2 * WAY_NS)
    ));
    let spills = |of: &Device| of.judged.device == "cassini-hardware" && !of.judged.suffices;
    if facts.holds_back && facts.devices.iter().any(spills) {
        limits.push("cassini-hardware would hold senders back; here it spills.".to_owned());
    }
    limits
}

/// A paragraph for a paper or a tender.
fn quote(facts: &Facts) -> String {
    let holding = facts.devices.iter().filter(|of| of.suffices_in == facts.runs);
    let holding = holding.map(|of| of.judged.device.as_str()).filter(|device| *device != IDEAL);
    let holding = match holding.collect::<Vec<_>>().as_slice() {
        [] => "No emulated device holds all".to_owned(),
        names => format!("Of the emulated devices {} hold all", names.join(", ")),
    };
    let nic = &facts.nic;
    let (up_to, lack) = match facts.exit_status {
        Some(status) if status != 0 => {
            ("at least", format!(" The program failed (exit status {status})."))
        }
        _ => ("up to", String::new()),
    };
    format!(
        "{} on {} needed {up_to} {} for the receives of a rank and {} for its unexpected messages, and \
         {} at one moment for a NIC of {} (up to {} of them the MPI's own), in {} (tcam {}). \
         {holding}.{lack}",
        cut(&facts.program, 40),
        count(u64::from(facts.ranks), "rank"),
        entries(facts.rank.prq.most),
        whole(facts.rank.umq.most),
        whole(nic.at_once.most),
        nic.name,
        whole(nic.internal.most),
        count(facts.runs as u64, "run"),
        env!("CARGO_PKG_VERSION"),
    )
}
