// SPDX-License-Identifier: BSD-2-Clause
//! The page of `tcam answer`, for the terminal: at most 40 lines of 80 columns.

use nic::plain::plain;

use super::facts::{Device, Facts, Range, WAY_NS};
use crate::text::numbers::{count, entries, share, whole};

/// Columns of the page.
const WIDTH: usize = 80;
/// Most lines of it.
const LINES: usize = 40;

/// The page.
pub(super) fn lines(facts: &Facts) -> Vec<String> {
    let mut lines = vec![];
    lines.extend(facts.lack.iter().flat_map(|lack| folded(lack, 0)));
    lines.extend(folded(&format!("{}.", ran(facts)), 0).into_iter().take(3));
    lines.push(String::new());
    lines.push(row(["Entries needed", &cut(&facts.rank.name, 20), &cut(&facts.nic.name, 20)]));
    lines.push(row(["", "", "of one NIC"]));
    let (rank, nic) = (&facts.rank, &facts.nic);
    lines.push(row(["receives (PRQ)", &told(rank.prq), &told(nic.prq)]));
    lines.push(row(["unexpected messages (UMQ)", &told(rank.umq), &told(nic.umq)]));
    lines.push(row([
        "  by order alone, at least",
        &told(rank.umq_at_least),
        &told(nic.umq_at_least),
    ]));
    lines.push(row(["receives of the MPI itself", &told(rank.internal), &told(nic.internal)]));
    lines.push(row(["all at one moment", &told(rank.at_once), &told(nic.at_once)]));
    lines.push(String::new());
    let way = format!("+{} us", 2 * WAY_NS / 1000);
    lines.push(device_row("Device", "holds", "cost of", "overflow", ""));
    lines.push(device_row("", "all", "a list", &way, "why it does not hold all"));
    lines.extend(facts.devices.iter().map(|device| of_device(device, facts.runs)));
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
    let messages = facts.messages;
    told + &format!(
        "; {}, {status}; {} messages in {}",
        count(*runs as u64, "run"),
        told_of(messages.least, messages.most, whole),
        told_of(facts.seconds.least, facts.seconds.most, |seconds| format!("{seconds:.3}")) + " s"
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

fn row([name, rank, nic]: [&str; 3]) -> String {
    format!("{name:<28}{rank:>22}{nic:>24}").trim_end().to_owned()
}

fn device_row(name: &str, holds: &str, cost: &str, way: &str, why: &str) -> String {
    let text = format!("{name:<17}{holds:<8}{cost:<12}{way:<13}{why}");
    cut(text.trim_end(), WIDTH)
}

fn of_device(device: &Device, runs: usize) -> String {
    let Device { judged, suffices_in, cpu_list_percent, with_way_percent } = device;
    let holds = match *suffices_in {
        all if all == runs => "yes".to_owned(),
        0 => "no".to_owned(),
        some => format!("{some} of {runs}"),
    };
    let [cost, way] = [cpu_list_percent, with_way_percent].map(|cost| percent(*cost));
    device_row(
        &judged.device,
        &holds,
        &cost.replace(" to ", "-"),
        &way.replace(" to ", "-"),
        &judged.why,
    )
}

/// What limits the answer.
fn limits(facts: &Facts) -> Vec<String> {
    let mut limits = Vec::new();
    if facts.crowded {
        limits.push(
            "Ranks share processors: the UMQ, its spread and the time of the run are the \
             scheduler's as well. A run with a processor for each rank is a better basis."
                .to_owned(),
        );
    }
    if facts.runs == 1 {
        limits.push("One run shows no spread: give three, or --repeat 3.".to_owned());
    }
    limits.push(match facts.nodes {
        None => "A NIC is that of a host where ranks ran, and sees all their messages; --ppn P \
                 places P ranks on a node and leaves out what these send each other."
            .to_owned(),
        Some(nodes) => format!(
            "Ranks were placed on {}; the order of messages stays that of the recording.",
            count(nodes as u64, "node")
        ),
    });
    limits.push(
        "By order alone: each message comes when a receive or a probe needs it, or one behind it \
         of its source. What is above that is timing."
            .to_owned(),
    );
    limits.push(
        format!(
            "Costs are shares of the run's time on the rank that pays most, modelled without overlap: \
             searches of a list on the host (cpu-list), and with {} ns more for the way from the NIC \
             to the host and back, which is an assumption.",
            whole(2 * WAY_NS)
        ),
    );
    if facts.holds_back {
        limits.push(
            "cassini-hardware: a replay holds no sender back; what does not fit spills.".to_owned(),
        );
    }
    limits
}

/// A paragraph for a paper or a tender.
fn quote(facts: &Facts) -> String {
    let names = |suffices: bool| {
        let named = facts.devices.iter().filter(|of| (of.suffices_in == facts.runs) == suffices);
        named.map(|of| of.judged.device.as_str()).collect::<Vec<_>>()
    };
    let holding = match names(true).as_slice() {
        [] => "No emulated device holds all".to_owned(),
        names => format!("Of the emulated devices {} hold all", names.join(", ")),
    };
    let nic = &facts.nic;
    let most = nic.at_once.most;
    let lack = match facts.exit_status {
        Some(status) if status != 0 => format!(" The program failed (exit status {status})."),
        _ => String::new(),
    };
    format!(
        "{} on {} needed at most {} for the receives of a rank and {} for its unexpected messages, and \
         {} at one moment for a NIC of {}, of the MPI itself up to {}, in {} (tcam {}). \
         {holding}.{lack}",
        cut(&facts.program, 40),
        count(u64::from(facts.ranks), "rank"),
        entries(facts.rank.prq.most),
        whole(facts.rank.umq.most),
        whole(most),
        nic.name,
        whole(nic.internal.most),
        count(facts.runs as u64, "run"),
        env!("CARGO_PKG_VERSION"),
    )
}

/// A text without control characters, no longer than this.
fn cut(text: &str, width: usize) -> String {
    let text = plain(text);
    match text.chars().count() {
        fits if fits <= width => text.into_owned(),
        _ => text.chars().take(width - 3).chain("...".chars()).collect(),
    }
}

/// Folds a text into lines of the page. All but the first are indented.
fn folded(text: &str, indent: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if !line.trim().is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines.push(format!("{}{}", " ".repeat(indent), cut(word, WIDTH - indent)));
            continue;
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line.push_str(&cut(word, WIDTH));
    }
    lines
}
