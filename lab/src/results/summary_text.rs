// SPDX-License-Identifier: BSD-2-Clause
//! Formats the summary of a run for the terminal.

use matching::measured::MeasuredTime;
use matching::{Histogram, NamedCounter, QueueCounters};
use nic::report::ChannelCounters;

use super::summary::{Peak, Summary};
use crate::stats::depth_quantile;
use crate::text::{Sheet, bytes, count, entries, percent, share, total, whole};

/// Returns a number with its share of `of`, such as `12,345 (98.7 %)`.
fn part_of(part: u64, of: u64) -> String {
    format!("{} ({})", whole(part), share(percent(part, of)))
}

/// Returns ` (rank 3)`, or nothing if the rank is unknown.
pub(crate) fn rank_of(peak: &Peak) -> String {
    peak.rank.map_or_else(String::new, |rank| format!(" (rank {rank})"))
}

/// Returns the whole summary: headline, table and conclusions.
pub(crate) fn of(sum: &Summary) -> String {
    let onloads = sum.of_both(|queue| queue.onloads);
    let fit = match (sum.of_both(|queue| queue.spills), sum.tagged.arrivals) {
        (_, 0) => String::new(),
        (0, _) if onloads > 0 => {
            format!(
                ": DOES NOT FIT, {} moved from the table to the host",
                count(onloads, "element")
            )
        }
        (0, _) if sum.lack().is_some() => ": all that was counted fits without a spill".to_owned(),
        (0, _) => ": all fits without a spill".to_owned(),
        _ => format!(
            ": DOES NOT FIT, {} of the elements enter the table immediately, {} promoted first",
            share(sum.immediate()),
            share(sum.promoted())
        ),
    };
    let mut lines: Vec<_> = sum.lack().into_iter().collect();
    let messages = count(sum.tagged.arrivals, "message");
    lines.push(format!("tcam: {}, {messages}, {}{fit}", sum.ranks(), sum.origin_text()));
    lines.extend(sum.mixed.clone());
    lines.push(queues(sum).table().to_string());
    lines.push(verdict("PRQ", &sum.tagged.prq, &sum.prq_peak));
    lines.push(verdict("UMQ", &sum.tagged.umq, &sum.umq_peak));
    lines.extend(
        sum.remarks
            .iter()
            .cloned()
            .chain(sum.waits_note())
            .chain(sum.endpoints_note())
            .chain(sum.scheduling_note()),
    );
    lines.extend(sum.tagged.kinds.iter().map(|(name, kind)| {
        format!(
            "{name}: {}, {}, {} matched in the table",
            count(kind.posts, "receive"),
            count(kind.arrivals, "message"),
            part_of(kind.table_matches, kind.arrivals),
        )
    }));
    lines.extend(facts(sum));
    lines.join("\n") + "\n"
}

/// Returns lines on the times of matching, the MPI's own messages and the channels, as far as there
/// are any.
pub(crate) fn facts(sum: &Summary) -> Vec<String> {
    let mut lines = Vec::new();
    if sum.modelled > 0.0 {
        lines.push(format!("Modelled time: {:.6} s of all ranks together", sum.modelled));
    }
    lines.extend(sum.tagged.latency.iter().filter(|(_, of)| of.count > 0).map(|(name, of)| {
        let [mean, median, most] = [of.mean_ns(), of.quantile_ns(0.5), of.quantile_ns(0.99)]
            .map(|ns| format!("{:.1}", ns.unwrap_or_default()));
        let waited = of.waited_ps as f64 * 1e-3 / of.count as f64;
        format!(
            "Modelled latency of {name}: mean {mean} ns, {waited:.1} ns of it waiting; median \
             {median} ns, 99 % {most} ns"
        )
    }));
    if sum.measured.ns() > 0 {
        lines.extend(measured(&sum.measured));
    }
    if sum.msg.arrivals > 0 {
        let (messages, spills) = (count(sum.msg.arrivals, "message"), whole(sum.internal_spills()));
        lines.push(format!("Untagged, of the MPI itself: {messages}, {spills} spilled"));
    }
    let channels = sum.channels.iter().filter(|(_, channel)| channel.sent > 0);
    let at_least = if sum.ranks.are_whole() { "" } else { "at least " };
    lines.extend(channels.flat_map(|(name, channel)| of_channel(name, channel, at_least)));
    if sum.at_exit > 0 {
        let reports = count(sum.at_exit as u64, "report");
        lines.push(format!("{reports} written at exit: the endpoint was never closed"));
    }
    lines
}

/// Counters that have a row even if they are 0 in both queues.
const ALWAYS: [&str; 7] =
    ["entries", "inserts", "table_matches", "host_matches", "spills", "promotions", "high_water"];

/// Returns the table of both queues: each counter that is not 0, with its share, and search depths.
pub(crate) fn queues(sum: &Summary) -> Sheet {
    let both = [&sum.tagged.prq, &sum.tagged.umq];
    let mut table =
        Sheet::new("Queues", ["", "posted receives (PRQ)", "unexpected messages (UMQ)"]);
    let mut row = |name: &str, of: [String; 2]| table.row([name.to_owned()].into_iter().chain(of));
    let matched = |of: &QueueCounters| total([of.table_matches, of.host_matches]);
    for NamedCounter { name, text, get, .. } in QueueCounters::COUNTERS {
        if both.iter().all(|&of| get(of) == 0) && !ALWAYS.contains(name) {
            continue;
        }
        row(
            text,
            [0, 1].map(|at| match *name {
                "spills" | "promotions" => part_of(get(both[at]), both[at].inserts),
                "table_matches" | "host_matches" => part_of(get(both[at]), matched(both[at])),
                "misses" => part_of(get(both[at]), both[at].searches),
                "high_water" => {
                    let peak = [&sum.prq_peak, &sum.umq_peak][at];
                    whole(peak.elements) + &rank_of(peak)
                }
                _ => whole(get(both[at])),
            }),
        );
        if *name == "inserts" {
            let immediate = |of: &QueueCounters| of.inserts.saturating_sub(of.spills);
            row("in the table immediately", both.map(|of| part_of(immediate(of), of.inserts)));
        }
    }
    let depths = both.map(|of| depth(&of.search_depth.hit, of.high_water));
    row("search depth, about 50 / 99 %", depths);
    table
}

/// Returns the lines of a channel, such as `shm` or `net`: its traffic and, if it was polled, the
/// results of the polls. `at_least` comes before the number of messages. The draft of a rank may be
/// older than its traces, so its channels may have fewer messages than the tables.
fn of_channel(name: &str, channel: &ChannelCounters, at_least: &str) -> Vec<String> {
    let (what, unit) = match name {
        "rma" => ("Reads, writes and atomics".to_owned(), "operation"),
        name => (format!("Channel {name}"), "message"),
    };
    let messages = count(channel.sent, unit);
    let sent = format!("{what}: {at_least}{messages}, {}", bytes(channel.sent_bytes));
    if channel.polls == 0 {
        return vec![sent];
    }
    let empty = share(percent(channel.empty_polls, channel.polls));
    let polls = count(channel.polls, "poll");
    let found = channel.polls.saturating_sub(channel.empty_polls).max(1);
    let waited = channel.discovery_ns as f64 / found as f64 / 1e3;
    vec![
        format!("{sent}; {empty} of {polls} found nothing"),
        format!("    messages that the others found had waited at most {waited:.1} us on average"),
    ]
}

/// Returns the lines on the time that matching took in searches, insertions and removals, and on
/// the overhead of the host's queues.
fn measured(time: &MeasuredTime) -> Vec<String> {
    let MeasuredTime { search, insert, remove, .. } = time;
    let part = |ns| share(percent(ns, time.ns()));
    let mut lines = vec![format!(
        "Time in matching, measured: {:.6} s of all ranks together; searches {} in tables and {} on \
         hosts, insertions {} and {}, removals {} and {}",
        time.ns() as f64 * 1e-9,
        part(search.table.ns),
        part(search.host.ns),
        part(insert.table.ns),
        part(insert.host.ns),
        part(remove.table.ns),
        part(remove.host.ns),
    )];
    lines.extend(time.overhead().map(|(insertion, dedicate)| {
        format!(
            "On hosts, for each second of searches: {insertion:.4} s of insertions, {dedicate:.4} s \
             of them to make queues"
        )
    }));
    lines
}

/// Returns a sentence that a queue overflowed, was held back or did not overflow. If elements
/// spilled, a second line has the reasons.
pub(crate) fn verdict(name: &str, queue: &QueueCounters, peak: &Peak) -> String {
    let rank = rank_of(peak);
    if queue.spills == 0 && queue.onloads > 0 {
        return format!(
            "{name} did not spill, but {} found no entry, and {} moved to the host; high-water mark \
             {}{rank}",
            count(queue.held_back, "element"),
            count(queue.onloads, "element"),
            whole(peak.elements)
        );
    }
    if queue.spills == 0 && queue.held_back > 0 {
        return format!(
            "{name} did not spill, but {} found no entry and {} held back; high-water mark {}{rank}",
            count(queue.held_back, "element"),
            if queue.held_back == 1 { "was" } else { "were" },
            whole(peak.elements)
        );
    }
    if queue.spills == 0 {
        return format!("{name} did not overflow; high-water mark {}{rank}", whole(peak.elements));
    }
    let spilled = count(queue.spills, "element");
    let what = match queue.entries {
        0 => format!("{name} has no table: {spilled} went to the host"),
        _ if unfit(queue) == queue.spills => format!("{name} spilled {spilled} before it was full"),
        _ => format!("{name} overflowed: {spilled} spilled"),
    };
    let reasons = &queue.block_reasons;
    // The queue left its table before the table was full, or because the other queue of the context
    // overflowed.
    let left = reasons.preemptive > 0 || reasons.sticky > 0 && reasons.table_full == 0;
    let size = match unfit(queue) {
        0 if left => "its table was left before it was full".to_owned(),
        0 => format!("{} would have held all{rank}", entries(peak.elements)),
        // Elements with these reasons followed older elements to the host. The older elements may
        // be among `unfit`.
        _ if reasons.sticky > 0 || reasons.order > 0 => {
            "a larger table would not have held all of them".to_owned()
        }
        _ => {
            let refused = total([reasons.refused, reasons.short]);
            let no_entry = total([reasons.pool_share, reasons.pool_empty]);
            let parts = [
                (refused, "the device does not accept"),
                (no_entry, "the pool of the NIC had no entry for"),
            ];
            let parts = parts.iter().filter(|(of, _)| *of > 0);
            let parts: Vec<_> =
                parts.map(|(of, why)| format!("{why} {} of them", whole(*of))).collect();
            parts.join(", ")
        }
    };
    format!("{what}; {size}\n  not in the table: {}", reasons_text(queue))
}

/// Returns the number of elements that no table would have held, whatever its size.
fn unfit(queue: &QueueCounters) -> u64 {
    let reasons = &queue.block_reasons;
    total([reasons.refused, reasons.short, reasons.pool_share, reasons.pool_empty])
}

/// Returns the reasons why elements went to the host, each with its number of elements and of
/// collective elements.
fn reasons_text(queue: &QueueCounters) -> String {
    let collective = queue.kinds.collective.block_reasons.iter();
    let named: Vec<_> = queue
        .block_reasons
        .iter()
        .zip(collective)
        .filter(|((_, all), _)| *all > 0)
        .map(|((reason, all), (_, collective))| {
            format!("{reason} {} ({} collective)", whole(all), whole(collective))
        })
        .collect();
    named.join(", ")
}

/// Returns the approximate median and 99th percentile of a histogram of depths. `longest` is the
/// largest length of the queue.
fn depth(histogram: &Histogram, longest: u64) -> String {
    if histogram.total() == 0 {
        return "-".to_owned();
    }
    let [half, most] = [500, 990].map(|share| whole(depth_quantile(histogram, share, longest)));
    format!("{half} / {most}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capacity::Point;
    use crate::results::reports::tests::sample;
    use matching::BlockReasons;
    use nic::report::{Report, WrittenAt};

    #[test]
    fn a_report_may_say_anything() {
        let mut report = sample(0, 10, u64::MAX);
        report.rank = Some(u32::MAX);
        report.channels.insert(
            "shm".to_owned(),
            ChannelCounters {
                sent: u64::MAX,
                sent_bytes: u64::MAX,
                received: u64::MAX,
                received_bytes: u64::MAX,
                waited: u64::MAX,
                polls: u64::MAX,
                empty_polls: u64::MAX,
                discovery_ns: u64::MAX,
            },
        );
        report.tagged.bytes = u64::MAX;
        for queue in [&mut report.tagged.prq, &mut report.tagged.umq] {
            queue.held_back = u64::MAX;
            queue.modelled.table_ps = u64::MAX;
            queue.modelled.host_ps = u64::MAX;
        }
        let deep = format!("[{}]", vec![u64::MAX.to_string(); 33].join(","));
        report.tagged.prq.search_depth.hit = serde_json::from_str(&deep).unwrap();
        report.msg = report.tagged.clone();
        let text = report.to_json().unwrap();
        let reports = [(); 2].map(|()| Report::from_json(&text).unwrap());
        let sum = Summary::of(&reports).unwrap();
        let text = of(&sum);
        assert!(text.starts_with("INCOMPLETE, 1 of 4,294,967,295 ranks: no report of"), "{text}");
        let shares = Point::of(10, 10, &[sum.clone(), sum]);
        assert!((0.0..=100.0).contains(&shares.immediate()));
        // Reports must not have more buckets than there are depths.
        let deeper = format!("[{}]", vec!["1"; 99].join(","));
        report.tagged.prq.search_depth.hit = serde_json::from_str(&deeper).unwrap();
        let error = Report::from_json(&report.to_json().unwrap()).unwrap_err().to_string();
        assert!(error.contains("99 of 33 buckets"), "{error}");
    }

    #[test]
    fn overflow_and_its_absence_are_printed() {
        let sum = Summary::of(&[sample(0, 10, 25), sample(1, 10, 4)]).unwrap();
        let text = of(&sum);
        assert!(text.contains("2 ranks, 29 messages, over libfabric 2.5 in "), "{text}");
        let line = "PRQ overflowed: 15 elements spilled; 25 entries would have held all (rank 0)";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("\n  not in the table: table full 15 (0 collective)\n"), "{text}");
        assert!(text.contains("UMQ did not overflow; high-water mark 0\n"), "{text}");
    }

    #[test]
    fn channels_of_ranks_that_were_cut_short_are_a_lower_bound() {
        let mut report = sample(0, 10, 4);
        let channel = ChannelCounters { sent: 6, sent_bytes: 48, ..Default::default() };
        report.channels.insert("shm".to_owned(), channel);
        let line = |report: &Report| {
            let text = of(&Summary::of(std::slice::from_ref(report)).unwrap());
            text.lines().find(|line| line.starts_with("Channel")).unwrap().to_owned()
        };
        assert_eq!(line(&report), "Channel shm: 6 messages, 48 B");
        report.written_at = WrittenAt::Running;
        assert_eq!(line(&report), "Channel shm: at least 6 messages, 48 B");
    }

    #[test]
    fn elements_that_no_table_would_hold_are_separate() {
        let mut report = sample(0, 10, 25);
        let queue = &mut report.tagged.prq;
        queue.block_reasons.table_full = 7;
        queue.block_reasons.refused = 8;
        let text = verdict("PRQ", queue, &Peak { elements: 25, rank: Some(0) });
        let expected = "PRQ overflowed: 15 elements spilled; the device does not accept 8 of them\n  \
                        not in the table: table full 7 (0 collective), refused 8 (0 collective)";
        assert_eq!(text, expected);
        // The counters do not show how many elements followed the refused elements.
        for (sticky, order) in [(7, 0), (0, 7)] {
            let mut queue = queue.clone();
            queue.block_reasons = BlockReasons { refused: 8, sticky, order, ..Default::default() };
            let text = verdict("PRQ", &queue, &Peak { elements: 25, rank: Some(0) });
            assert!(text.contains("; a larger table would not have held all of them\n"), "{text}");
        }
        let text = verdict("UMQ", &sample(0, 0, 1).tagged.prq, &Peak { elements: 1, rank: None });
        assert!(text.starts_with("UMQ has no table: 1 element went to the host; 1 entry would"));
    }

    #[test]
    fn measured_time_is_printed_if_there_is_any() {
        use matching::measured::{ByPlace, Spent};
        let places = |table, host| {
            let spent = |ns| Spent { count: 1, ns };
            ByPlace { table: spent(table), host: spent(host) }
        };
        let mut sum = Summary::of(&[sample(0, 10, 25)]).unwrap();
        assert!(!of(&sum).contains("measured"));
        sum.measured = MeasuredTime {
            search: places(1_000_000, 400_000),
            insert: places(300_000, 100_000),
            remove: places(100_000, 100_000),
            dedicate: Spent { count: 1, ns: 1000 },
        };
        let text = of(&sum);
        let line = "Time in matching, measured: 0.002000 s of all ranks together; searches 50.0 % in \
                    tables and 20.0 % on hosts, insertions 15.0 % and 5.0 %, removals 5.0 % and 5.0 %\n\
                    On hosts, for each second of searches: 0.2500 s of insertions, 0.0025 s of them \
                    to make queues\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn depths_are_spread_within_buckets() {
        let mut histogram = Histogram::default();
        assert_eq!(depth(&histogram, 5000), "-");
        for _ in 0..98 {
            histogram.record(1);
        }
        histogram.record(100);
        histogram.record(2000);
        assert_eq!(depth(&histogram, 5000), "1 / 127");
        assert_eq!(depth(&histogram, 100), "1 / 100");
        let told = [0, 980, 981, 1000].map(|share| depth_quantile(&histogram, share, 1500));
        assert_eq!(told, [1, 1, 70, 1500]);
        assert_eq!(depth_quantile(&Histogram::default(), 500, 1500), 0);
        // Every depth once: the median is in the middle, not at the end of its bucket.
        let mut even = Histogram::default();
        (1..=138).for_each(|depth| even.record(depth));
        assert_eq!(depth(&even, 138), "69 / 137");
    }
}
