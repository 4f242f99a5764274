// SPDX-License-Identifier: BSD-2-Clause
//! Makes the tables of an experiment, for the terminal and for a page of HTML.

use matching::{Profile, QueueCounters};

use super::{Experiment, QueueKind, Rank};
use crate::results::summary::spilled;
use crate::results::summary_text;
use crate::stats::depth_quantile;
use crate::text::{Sheet, count, percent, share, total, whole};

/// Largest number of ranks in a table by default.
pub(crate) const WORST: usize = 10;
/// Shares of the searches whose depths are shown, in thousandths.
const SHARES: [u64; 4] = [500, 900, 990, 999];

/// Returns all tables. The table of ranks has up to `most` ranks, or all ranks if `most` is `None`.
pub(crate) fn all(experiment: &Experiment, most: Option<usize>) -> Vec<Sheet> {
    vec![
        summary_text::queues(&experiment.sum),
        ranks(experiment, most.unwrap_or(usize::MAX)),
        kinds(experiment),
        depths(experiment),
        profiles(experiment),
        reasons(experiment),
    ]
}

/// Returns the share of the matches that were in the table, in per cent.
fn in_table(queues: [&QueueCounters; 2]) -> f64 {
    let [table, host] = [
        total(queues.map(|queue| queue.table_matches)),
        total(queues.map(|queue| queue.host_matches)),
    ];
    percent(table, total([table, host]))
}

/// Returns the table of ranks, those that need most first.
fn ranks(experiment: &Experiment, most: usize) -> Sheet {
    let ranks = experiment.worst_first();
    let title = match ranks.len() {
        all if all > most => format!("Ranks, the {most} of {} that need most", whole(all as u64)),
        all => format!("Ranks, those that need most first ({})", count(all as u64, "rank")),
    };
    let mut sheet = Sheet::new(
        title,
        [
            "rank",
            "receives",
            "messages",
            "PRQ mark",
            "UMQ mark",
            "PRQ spills",
            "UMQ spills",
            "in the table",
            "mean depth",
        ],
    );
    for rank in ranks.into_iter().take(most) {
        let Rank { number, tagged, .. } = rank;
        let (prq, umq) = (&tagged.prq, &tagged.umq);
        let searches = total([prq.searches, umq.searches]);
        sheet.row([
            number.to_string(),
            whole(tagged.posts),
            whole(tagged.arrivals),
            whole(prq.high_water),
            whole(umq.high_water),
            share(spilled(prq)),
            share(spilled(umq)),
            share(in_table([prq, umq])),
            mean(rank.compared(), searches),
        ]);
    }
    sheet
}

fn mean(sum: u64, number: u64) -> String {
    format!("{:.1}", sum as f64 / number.max(1) as f64)
}

fn kinds(experiment: &Experiment) -> Sheet {
    let mut sheet = Sheet::new(
        "Kinds of traffic",
        ["kind", "receives", "messages", "matched in the table", "on the host", "spills"],
    );
    let tagged = &experiment.sum.tagged;
    let queues = tagged.prq.kinds.iter().zip(tagged.umq.kinds.iter());
    for ((name, kind), ((_, prq), (_, umq))) in tagged.kinds.iter().zip(queues) {
        let matched = total([kind.table_matches, kind.host_matches]);
        let part = |part| format!("{} ({})", whole(part), share(percent(part, matched)));
        let spills = [prq, umq]
            .map(|queue| queue.block_reasons.iter().fold(0, |sum, of| total([sum, of.1])));
        sheet.row([
            name.to_owned(),
            whole(kind.posts),
            whole(kind.arrivals),
            part(kind.table_matches),
            part(kind.host_matches),
            whole(total(spills)),
        ]);
    }
    sheet
}

fn depths(experiment: &Experiment) -> Sheet {
    let mut sheet = Sheet::new(
        "Search depth: entries compared (about, between the bounds of the histogram's buckets)",
        ["searches", "", "number", "mean", "50 %", "90 %", "99 %", "99.9 %", "deepest"],
    );
    for queue in QueueKind::BOTH {
        let counters = queue.of(&experiment.sum.tagged);
        let (depth, longest) = (&counters.search_depth, counters.high_water);
        for (what, histogram, entries) in
            [("found", &depth.hit, depth.hit_entries), ("nothing", &depth.miss, depth.miss_entries)]
        {
            let total = histogram.total();
            let or_dash = |text: String| if total == 0 { "-".to_owned() } else { text };
            let mut cells = vec![queue.name().to_owned(), what.to_owned(), whole(total)];
            cells.push(or_dash(mean(entries, total)));
            cells.extend(
                SHARES.map(|share| or_dash(whole(depth_quantile(histogram, share, longest)))),
            );
            cells.push(or_dash(whole(depth_quantile(histogram, 1000, longest))));
            sheet.row(cells);
        }
    }
    sheet
}

/// Returns the name of the host engine, or `None` if ranks have different engines or none is known.
fn engine(experiment: &Experiment) -> Option<&str> {
    let mut engines = experiment.heads.iter().filter_map(|head| head.config.get("host_engine"));
    let first = engines.next()?;
    engines.all(|other| other == first).then_some(first)
}

/// Returns the matching profile of *Hint-driven matching*, section V.A: searches by their result
/// with the elements that they traversed, and the bytes of messages.
fn profiles(experiment: &Experiment) -> Sheet {
    let engine = engine(experiment).map_or_else(String::new, |name| format!(", {name}"));
    let mut sheet = Sheet::new(
        format!("Profile: elements that a search traversed on the host{engine}, and message sizes"),
        ["", "", "number", "mean", "deviation", "variance", "25 %", "50 %", "75 %"],
    );
    for queue in QueueKind::BOTH {
        let traversals = &queue.of(&experiment.sum.tagged).traversals;
        for (what, profile) in [("found", &traversals.found), ("nothing", &traversals.not_found)] {
            sheet.row(profile_cells(queue.name(), what, profile));
        }
    }
    sheet.row(profile_cells("messages", "bytes", &experiment.sum.tagged.sizes));
    sheet
}

/// Returns a line of a table of profiles.
pub(crate) fn profile_cells(of: &str, what: &str, profile: &Profile) -> Vec<String> {
    let unknown = || "-".to_owned();
    let tenths = |value: Option<f64>| value.map_or_else(unknown, |value| format!("{value:.1}"));
    let quartiles = match profile.quartiles() {
        Some(quartiles) => quartiles.map(whole),
        None => [(); 3].map(|()| unknown()),
    };
    let mut cells = vec![of.to_owned(), what.to_owned(), whole(profile.count)];
    cells.extend([profile.mean(), profile.deviation(), profile.variance()].map(tenths));
    cells.extend(quartiles);
    cells
}

fn reasons(experiment: &Experiment) -> Sheet {
    let mut sheet = Sheet::new(
        "Why elements were not in the table",
        ["queue", "reason", "elements", "share of the queue", "collective", "point-to-point"],
    );
    for (queue, reason, [collective, rest]) in experiment.reasons() {
        let inserts = queue.of(&experiment.sum.tagged).inserts;
        sheet.row([
            queue.name().to_owned(),
            reason.to_owned(),
            whole(total([collective, rest])),
            share(percent(total([collective, rest]), inserts)),
            whole(collective),
            whole(rest),
        ]);
    }
    if sheet.rows.is_empty() {
        let nothing = ["none", "nothing spilled", "0", "0.0 %", "0", "0"];
        sheet.row(nothing.map(str::to_owned));
    }
    sheet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::outcome::tests::experiment;

    #[test]
    fn the_worst_ranks_come_first_and_all_on_demand() {
        let experiment = experiment(256, 512);
        let sheets = all(&experiment, Some(WORST));
        let ranks = &sheets[1];
        assert_eq!(ranks.title, "Ranks, the 10 of 256 that need most");
        assert_eq!((ranks.rows.len(), ranks.rows[0][0].as_str()), (WORST, "0"));
        // 1,600 receives are matched at depths 1 to 1,600. Half of the searches are those of the
        // receives, which find no message.
        assert_eq!(ranks.rows[0][3], "1,600");
        assert_eq!(ranks.rows[0][8], "400.2");
        assert_eq!(all(&experiment, None)[1].rows.len(), 256);
        let reasons = &sheets[5].rows;
        assert_eq!(reasons.len(), 1);
        assert_eq!(reasons[0][..3], ["PRQ", "table full", "1,088"]);
    }

    #[test]
    fn absent_events_are_printed() {
        let sheets = all(&experiment(1, 65_536), Some(WORST));
        assert_eq!(sheets[5].rows[0][1], "nothing spilled");
        assert_eq!(sheets[3].rows[2][3], "-", "no receive found a message");
        assert_eq!(sheets[0].header[2], "unexpected messages (UMQ)");
    }

    #[test]
    fn searches_on_the_host_are_profiled() {
        let mut experiment = experiment(1, 64);
        let profile = (1..=4).fold(Profile::default(), |mut profile, value| {
            profile.record(value);
            profile
        });
        experiment.sum.tagged.umq.traversals.found = profile.clone();
        experiment.sum.tagged.sizes = profile;
        let profiles = &all(&experiment, None)[4].rows;
        assert_eq!(profiles[2][..], ["UMQ", "found", "4", "2.5", "1.1", "1.2", "1", "2", "3"]);
        assert_eq!(profiles[4][..3], ["messages", "bytes", "4"]);
        assert_eq!(profiles[1][2..], ["0", "-", "-", "-", "-", "-", "-"]);
    }

    #[test]
    fn no_search_is_deeper_than_its_queue_was_long() {
        let sheets = all(&experiment(1, 64), None);
        // 1,600 receives: the bucket of the deepest search ends at 2,047.
        assert_eq!(sheets[3].rows[0][8], "1,600");
    }
}
