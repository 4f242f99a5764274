// SPDX-License-Identifier: BSD-2-Clause
//! Formats a report for people.

use std::fmt;

use matching::measured::MeasuredTime;
use matching::timing::ModelledTime;
use matching::{Profile, QueueCounters, Traversals};

use super::{BrokenPromises, ContextCounters, KindTraffic, Report, WrittenAt};
use crate::plain::plain;

impl fmt::Display for Report {
    /// Formats the report as a table for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rank = self.rank.map_or_else(String::new, |rank| format!("rank {rank}, "));
        // The author of the report chose these texts, so they may contain anything.
        let [tcam, libfabric, program, address] =
            [&self.tcam, &self.libfabric, &self.program, &self.address].map(|text| plain(text));
        let pid = self.pid;
        writeln!(f, "tcam {tcam} on libfabric {libfabric}: {rank}pid {pid}")?;
        let context = self
            .context
            .map_or_else(String::new, |index| format!(" (context {index} of a scalable endpoint)"));
        write!(f, "{program} at {address}{context}, {:.3} s", self.elapsed_s)?;
        match self.modelled_s() {
            0.0 => writeln!(f)?,
            modelled => writeln!(f, ", of which {modelled:.6} s are modelled time")?,
        }
        if self.written_at == WrittenAt::Running {
            writeln!(f, "CUT SHORT: the process ended with this endpoint open, or it still runs")?;
        }
        let matching = self.measured().ns();
        if matching > 0 {
            writeln!(f, "{:.6} s in matching, as measured", matching as f64 * 1e-9)?;
        }
        for remark in &self.remarks {
            writeln!(f, "{remark}")?;
        }
        for (name, context) in [("tagged", &self.tagged), ("msg", &self.msg)] {
            if context.posts > 0 || context.arrivals > 0 {
                write!(f, "\n{name}: {context}")?;
            }
        }
        writeln!(
            f,
            "\n{:<16}{:>14}{:>18}{:>14}{:>18}",
            "channel", "sent", "bytes", "received", "bytes"
        )?;
        for (name, channel) in &self.channels {
            let name = plain(name);
            writeln!(
                f,
                "{name:<16}{:>14}{:>18}{:>14}{:>18}",
                channel.sent, channel.sent_bytes, channel.received, channel.received_bytes
            )?;
            if channel.waited > 0 {
                writeln!(f, "  {} messages waited for room at their receivers", channel.waited)?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for ContextCounters {
    /// Formats the counters as a table for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} receives posted, {} messages arrived ({} bytes), {} unexpected, {} probes",
            self.posts, self.arrivals, self.bytes, self.unexpected, self.peeks
        )?;
        let BrokenPromises { any_source, any_tag } = self.broken_promises;
        if !self.broken_promises.is_empty() {
            writeln!(
                f,
                "  BROKEN PROMISES: {any_source} receives from any source, {any_tag} of any tag"
            )?;
        }
        let (prq, umq) = (&self.prq, &self.umq);
        writeln!(f, "  {:<22}{:>16}{:>16}", "queue", "PRQ", "UMQ")?;
        for (name, prq, umq) in [
            ("table entries", prq.entries, umq.entries),
            ("inserted", prq.inserts, umq.inserts),
            ("matched in the table", prq.table_matches, umq.table_matches),
            ("matched on the host", prq.host_matches, umq.host_matches),
            ("not matched", prq.misses, umq.misses),
            ("spills", prq.spills, umq.spills),
            ("promotions", prq.promotions, umq.promotions),
            ("held back", prq.held_back, umq.held_back),
            ("high water, table", prq.table_high_water, umq.table_high_water),
            ("high water, host", prq.host_high_water, umq.host_high_water),
            ("high water, both", prq.high_water, umq.high_water),
        ] {
            writeln!(f, "  {name:<22}{prq:>16}{umq:>16}")?;
        }
        if prq.modelled != ModelledTime::default() || umq.modelled != ModelledTime::default() {
            let us = |ps: u64| ps as f64 * 1e-6;
            for (name, prq, umq) in [
                ("modelled us, table", prq.modelled.table_ps, umq.modelled.table_ps),
                ("modelled us, host", prq.modelled.host_ps, umq.modelled.host_ps),
                ("modelled us, transfer", prq.modelled.way_ps, umq.modelled.way_ps),
                ("modelled us, spilled", prq.modelled.spill_ps, umq.modelled.spill_ps),
                ("modelled us, promoted", prq.modelled.promote_ps, umq.modelled.promote_ps),
            ] {
                writeln!(f, "  {name:<22}{:>16.3}{:>16.3}", us(prq), us(umq))?;
            }
        }
        write!(f, "{}", self.latency)?;
        write_measured(f, prq, umq)?;
        if prq.traversals.entries > 0 || umq.traversals.entries > 0 {
            for (name, prq, umq) in [
                ("traversed on the host", prq.traversals.entries, umq.traversals.entries),
                ("traversed in one list", prq.traversals.in_a_list, umq.traversals.in_a_list),
            ] {
                writeln!(f, "  {name:<22}{prq:>16}{umq:>16}")?;
            }
            for (name, of) in [
                ("per search, found", (|of| &of.found) as fn(&Traversals) -> &Profile),
                ("per search, not found", |of| &of.not_found),
            ] {
                let [prq, umq] = [prq, umq].map(|queue| typical(of(&queue.traversals)));
                writeln!(f, "  {name:<22}{prq:>16}{umq:>16}")?;
            }
        }
        if self.sizes.count > 0 {
            writeln!(f, "  {:<22}{:>16}", "bytes of a message", typical(&self.sizes))?;
        }
        let kinds = &self.kinds;
        writeln!(f, "  {:<22}{:>16}{:>16}", "traffic", "collective", "point-to-point")?;
        for (name, of) in [
            ("receives posted", (|kind| kind.posts) as fn(&KindTraffic) -> u64),
            ("messages arrived", |kind| kind.arrivals),
            ("matched in the table", |kind| kind.table_matches),
            ("matched on the host", |kind| kind.host_matches),
        ] {
            let (collective, rest) = (of(&kinds.collective), of(&kinds.point_to_point));
            writeln!(f, "  {name:<22}{collective:>16}{rest:>16}")?;
        }
        for (queue, counters) in [("PRQ", prq), ("UMQ", umq)] {
            let reasons = &counters.kinds;
            let of_rest = reasons.point_to_point.block_reasons.iter();
            for ((reason, collective), (_, rest)) in
                reasons.collective.block_reasons.iter().zip(of_rest)
            {
                if collective > 0 || rest > 0 {
                    let name = format!("{queue}: {reason}");
                    writeln!(f, "  {name:<22}{collective:>16}{rest:>16}")?;
                }
            }
        }
        for (name, queue) in [("PRQ", prq), ("UMQ", umq)] {
            for (kind, levels) in queue.dedicated_levels.iter() {
                if !levels.is_empty() {
                    let levels: Vec<_> = levels.iter().map(u64::to_string).collect();
                    let levels = levels.join(" + ");
                    writeln!(f, "  {name}: dedicated {kind} queues by level: {levels}")?;
                }
            }
            if queue.unclustered > 0 {
                let unclustered = queue.unclustered;
                writeln!(
                    f,
                    "  {name}: {unclustered} elements from sources that are in no cluster"
                )?;
            }
            if queue.spills == 0 {
                writeln!(f, "  {name} did not overflow; high-water mark {}", queue.high_water)?;
            }
        }
        write!(f, "{}", self.lengths)
    }
}

/// The quartiles as text, or `-` without values.
fn typical(profile: &Profile) -> String {
    profile.quartiles().map_or_else(|| "-".to_owned(), |all| all.map(|of| of.to_string()).join("/"))
}

/// Writes the measured times of operations, if any, and the ratio of insertion to search time on
/// the host.
fn write_measured(
    f: &mut fmt::Formatter<'_>,
    prq: &QueueCounters,
    umq: &QueueCounters,
) -> fmt::Result {
    let (prq, umq) = (&prq.measured, &umq.measured);
    if prq.ns() == 0 && umq.ns() == 0 {
        return Ok(());
    }
    for (name, of) in [
        ("us, table searches", (|time| time.search.table.ns) as fn(&MeasuredTime) -> u64),
        ("us, table insertions", |time| time.insert.table.ns),
        ("us, table removals", |time| time.remove.table.ns),
        ("us, host searches", |time| time.search.host.ns),
        ("us, host insertions", |time| time.insert.host.ns),
        ("us, host removals", |time| time.remove.host.ns),
        ("us, queues made", |time| time.dedicate.ns),
    ] {
        let us = |time| of(time) as f64 * 1e-3;
        writeln!(f, "  {name:<22}{:>16.3}{:>16.3}", us(prq), us(umq))?;
    }
    let ratios = |of: fn((f64, f64)) -> f64, time: &MeasuredTime| {
        time.overhead().map_or_else(|| "-".to_owned(), |both| format!("{:.4}", of(both)))
    };
    for (name, of) in [
        ("host insert / search", (|both| both.0) as fn((f64, f64)) -> f64),
        ("queues made / search", |both| both.1),
    ] {
        writeln!(f, "  {name:<22}{:>16}{:>16}", ratios(of, prq), ratios(of, umq))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report without a value that has no line.
    fn full() -> Report {
        let mut report = Report { rank: Some(3), pid: 7, elapsed_s: 1.5, ..Report::default() };
        report.written_at = WrittenAt::Running;
        report.channels.entry("shm".to_owned()).or_default().waited = 1;
        let tagged = &mut report.tagged;
        (tagged.posts, tagged.arrivals, tagged.broken_promises.any_tag) = (1, 2, 3);
        tagged.sizes.record(4);
        (tagged.prq.spills, tagged.umq.high_water) = (5, 6);
        (tagged.prq.modelled.table_ps, tagged.umq.modelled.spill_ps) = (7_000_000, 8_500_000);
        tagged.prq.measured.search.table.ns = 9_500;
        tagged.umq.measured.insert.host.ns = 2_000;
        (tagged.prq.traversals.entries, tagged.umq.traversals.in_a_list) = (10, 11);
        tagged.prq.traversals.found.record(12);
        tagged.prq.kinds.collective.block_reasons.order = 13;
        tagged.umq.kinds.point_to_point.block_reasons.short = 14;
        tagged.prq.unclustered = 16;
        report
    }

    /// Returns the lines that contain a text, with single spaces.
    fn lines(report: &Report, part: &str) -> Vec<String> {
        let text = report.to_string();
        let lines = text.lines().filter(|line| line.contains(part));
        lines.map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn each_value_has_its_line() {
        let report = full();
        for line in [
            "tcam on libfabric : rank 3, pid 7",
            "at , 1.500 s, of which 0.000016 s are modelled time",
            "CUT SHORT: the process ended with this endpoint open, or it still runs",
            "0.000012 s in matching, as measured",
            "1 messages waited for room at their receivers",
            "tagged: 1 receives posted, 2 messages arrived (0 bytes), 0 unexpected, 0 probes",
            "BROKEN PROMISES: 0 receives from any source, 3 of any tag",
            "spills 5 0",
            "high water, both 0 6",
            "modelled us, table 7.000 0.000",
            "modelled us, spilled 0.000 8.500",
            "us, table searches 9.500 0.000",
            "us, host insertions 0.000 2.000",
            "traversed on the host 10 0",
            "traversed in one list 0 11",
            "per search, found 12/12/12 -",
            "bytes of a message 4/4/4",
            "PRQ: order 13 0",
            "UMQ: short 0 14",
            "PRQ: 16 elements from sources that are in no cluster",
            "UMQ did not overflow; high-water mark 6",
        ] {
            let found = lines(&report, "");
            assert!(found.iter().any(|of| of.trim_start() == line), "no {line}: {found:#?}");
        }
        assert_eq!(
            lines(&report, "PRQ: "),
            ["PRQ: order 13 0", "PRQ: 16 elements from sources that are in no cluster"]
        );
        assert_eq!(lines(&report, "PRQ did not").len() + lines(&report, "msg: ").len(), 0);
    }

    #[test]
    fn values_of_zero_have_no_line() {
        let mut report = Report::default();
        report.tagged.arrivals = 1;
        report.channels.entry("shm".to_owned()).or_default();
        for part in [
            "modelled",
            "CUT SHORT",
            "measured",
            "waited",
            "BROKEN",
            "us, ",
            "host insert",
            "traversed",
            "per search",
            "bytes of a message",
            "PRQ: ",
            "UMQ: ",
            "msg:",
            "cluster",
        ] {
            assert_eq!(lines(&report, part), Vec::<String>::new());
        }
        assert_eq!(lines(&report, "overflow").len(), 2);
        // One value of either queue is enough for a line.
        type Change = fn(&mut ContextCounters);
        let changes: [(Change, &str); 5] = [
            (|of| of.umq.modelled.host_ps = 1, "modelled us"),
            (|of| of.umq.traversals.entries = 1, "traversed"),
            (|of| of.prq.measured.remove.table.ns = 1, "us, table removals"),
            (|of| of.umq.measured.remove.table.ns = 1, "us, table removals"),
            (|of| of.prq.kinds.point_to_point.block_reasons.order = 1, "PRQ: order"),
        ];
        for (change, part) in changes {
            let mut report = report.clone();
            change(&mut report.tagged);
            assert_ne!(lines(&report, part), Vec::<String>::new(), "{part}");
        }
        report.tagged = ContextCounters::default();
        report.msg.posts = 1;
        assert_eq!((lines(&report, "tagged: ").len(), lines(&report, "msg: ").len()), (0, 1));
    }
}
