// SPDX-License-Identifier: BSD-2-Clause
//! `FI_TCAM_SUMMARY=on`: the report as one line per matching context, on the error output.

use std::io::{self, Write as _};

use nic::{
    params::Params,
    report::{ContextCounters, Report},
};

/// Returns whether a summary is requested.
pub(crate) fn is_wanted(params: &Params) -> bool {
    params.summary.is_on()
}

/// Prints the summary of an endpoint or a shared receive context. Matching contexts with neither
/// messages nor receives are omitted.
pub(crate) fn print(report: &Report) {
    let text: String = lines(report).map(|line| line + "\n").collect();
    // In one call, so that the lines of several ranks do not mix.
    let _ = io::stderr().write_all(text.as_bytes());
}

fn lines(report: &Report) -> impl Iterator<Item = String> {
    let process = match report.rank {
        Some(rank) => format!("rank {rank}"),
        None => format!("process {}", report.pid),
    };
    let contexts = [("tagged", &report.tagged), ("untagged", &report.msg)];
    let used = contexts.into_iter().filter(|(_, context)| context.arrivals + context.posts > 0);
    used.map(move |(kind, context)| {
        format!("tcam: {process}, {}, {kind}: {}", report.address, line(context))
    })
}

/// Returns the counts of a matching context in one line.
fn line(context: &ContextCounters) -> String {
    let ContextCounters { arrivals, unexpected, prq, umq, .. } = context;
    let share = 100.0 * *unexpected as f64 / (*arrivals).max(1) as f64;
    format!(
        "{arrivals} messages, {share:.1} % unexpected; at most {} elements in the PRQ, {} in the UMQ; \
         spilled {} of {} and {} of {} (tables of {} and {} entries)",
        prq.high_water,
        umq.high_water,
        prq.spills,
        prq.inserts,
        umq.spills,
        umq.inserts,
        prq.entries,
        umq.entries,
    )
}

#[cfg(test)]
mod tests {
    use matching::QueueCounters;

    use super::*;

    #[test]
    fn contexts_that_were_used_have_a_line() {
        let prq = QueueCounters {
            entries: 7,
            inserts: 20,
            spills: 3,
            high_water: 10,
            ..Default::default()
        };
        let umq = QueueCounters { entries: 9, inserts: 5, high_water: 4, ..Default::default() };
        let tagged = ContextCounters {
            posts: 24,
            arrivals: 25,
            unexpected: 5,
            prq,
            umq,
            ..Default::default()
        };
        let report =
            Report { rank: Some(3), address: "srx0".to_owned(), tagged, ..Default::default() };
        let lines: Vec<_> = lines(&report).collect();
        let expected = "tcam: rank 3, srx0, tagged: 25 messages, 20.0 % unexpected; at most 10 elements in the \
                        PRQ, 4 in the UMQ; spilled 3 of 20 and 0 of 5 (tables of 7 and 9 entries)";
        assert_eq!(lines, [expected]);
    }
}
