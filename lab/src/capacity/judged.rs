// SPDX-License-Identifier: BSD-2-Clause
//! Judges whether a device holds all elements of a recording, and gives the reason if it does not.

use matching::{BlockReasons, QueueCounters};
use nic::models;
use serde::Serialize;

use crate::results::Summary;
use crate::text::{count, percent, total, whole, whole_share};

/// A device with the result of a replay on it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Judged {
    pub(crate) device: String,
    /// True if nothing spilled.
    pub(crate) suffices: bool,
    /// Number of elements that the device would spill at every table size.
    pub(crate) by_design: u64,
    /// Number of elements that went to the host for lack of space, or to stay behind older
    /// elements. With a pool, all elements of the MPI itself that spilled count, too.
    pub(crate) overflowed: u64,
    /// The reasons for spills in one line; empty if nothing spilled.
    pub(crate) why: String,
}

/// Returns the number of elements that spill at every table size.
fn by_design(reasons: &BlockReasons) -> u64 {
    total([reasons.disabled, reasons.refused, reasons.short])
}

impl Judged {
    /// Judges a device by the spills of tagged messages. If it has a `pool`, spills of the MPI's
    /// own elements count as well, because they take entries from the pool.
    pub(crate) fn of(device: &str, sum: &Summary, pool: bool) -> Self {
        let (prq, umq) = (&sum.tagged.prq, &sum.tagged.umq);
        let mut own = if pool { sum.internal_spills() } else { 0 };
        let spills = total([prq.spills, umq.spills, own]);
        let mut design = 0;
        let mut why = Vec::new();
        for (queue, of_mpi, what) in [(prq, &sum.msg.prq, "PRQ"), (umq, &sum.msg.umq, "UMQ")] {
            let mut all = queue.block_reasons.clone();
            let mut of = BlockReasons::default();
            if pool {
                of.merge_counters(&of_mpi.block_reasons);
                all.merge_counters(&of);
            }
            design = total([design, by_design(&all)]);
            own = own.saturating_sub(by_design(&of));
            let BlockReasons { disabled, refused, short, .. } = all;
            let mut tell = |elements: u64, text: String| {
                if elements > 0 {
                    why.push(text);
                }
            };
            tell(disabled, format!("has no {what}"));
            let refuses = format!("refuses {}{}", count(refused, "receive"), mpis(of.refused));
            tell(refused, refuses);
            tell(short, format!("small buffers: {}{}", whole(short), mpis(of.short)));
        }
        if spills > design {
            let of_mpi =
                [&sum.msg.prq, &sum.msg.umq].map(|queue| if pool { queue.inserts } else { 0 });
            let inserts = total([prq.inserts, umq.inserts, of_mpi[0], of_mpi[1]]);
            let overflowed = spills - design;
            let count =
                format!("{} ({})", whole(overflowed), whole_share(percent(overflowed, inserts)));
            why.push(format!("{}: {count}{}", main_reason(prq, umq), mpis(own)));
        }
        let (device, why) = (device.to_owned(), why.join("; "));
        Self { device, suffices: spills == 0, by_design: design, overflowed: spills - design, why }
    }
}

/// Returns text on the number of the MPI's own elements; empty if there are none.
fn mpis(own: u64) -> String {
    if own > 0 { format!(", {} of them the MPI's", whole(own)) } else { String::new() }
}

/// Returns the main reason why elements overflowed.
fn main_reason(prq: &QueueCounters, umq: &QueueCounters) -> &'static str {
    let of = prq.block_reasons.iter().zip(umq.block_reasons.iter());
    let reasons = of.filter(|((reason, _), _)| !["disabled", "refused", "short"].contains(reason));
    let most = reasons.map(|((reason, prq), (_, umq))| (total([prq, umq]), reason)).max();
    match most.filter(|(elements, _)| *elements > 0) {
        None => "pool empty",
        Some((_, "order")) => "behind spilled",
        Some((_, reason)) => reason,
    }
}

/// Returns a sentence such as `Nothing spills on a, b; something does on c`. With several
/// recordings, nothing spills on a device if nothing spills in any of them.
pub(crate) fn sentence(recordings: &[&[Judged]]) -> String {
    let devices = recordings.first().map_or(&[][..], |judged| judged);
    let is_enough = |device: &str| {
        let mut judged = recordings.iter().flat_map(|judged| judged.iter());
        judged.all(|of| of.suffices || of.device != device)
    };
    let is_product = |device: &&str| models::named(device).is_none_or(|model| model.is_product);
    let known = || devices.iter().map(|of| of.device.as_str()).filter(is_product);
    let name = |device: &str| match device {
        "as recorded" | "as set" => format!("the tables {device}"),
        device => device.to_owned(),
    };
    let names = |suffices: bool| {
        let named = known().filter(|device| is_enough(device) == suffices);
        named.map(name).collect::<Vec<_>>().join(", ")
    };
    match [names(true), names(false)] {
        [yes, no] if no.is_empty() => format!("Nothing spills on {yes}"),
        [yes, no] if yes.is_empty() => format!("Something spills on each: {no}"),
        [yes, no] => format!("Nothing spills on {yes}; something does on {no}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::reports::tests::sample;

    #[test]
    fn design_and_overflow_are_counted_separately() {
        let mut report = sample(0, 10, 25);
        let judged = |report| Judged::of("x", &Summary::of(&[report]).unwrap(), true);
        let full = judged(report.clone());
        assert_eq!((full.suffices, full.by_design, full.overflowed), (false, 0, 15));
        assert_eq!(full.why, "table full: 15 (60 %)");
        let reasons = &mut report.tagged.prq.block_reasons;
        (reasons.table_full, reasons.short, reasons.disabled) = (3, 2, 10);
        let mixed = judged(report.clone());
        assert_eq!((mixed.by_design, mixed.overflowed), (12, 3));
        assert_eq!(mixed.why, "has no PRQ; small buffers: 2; table full: 3 (12 %)");
        // The MPI's own elements take entries from a pool.
        let mut own = sample(0, 30, 25);
        own.msg.prq.spills = 4;
        let overflows = judged(own.clone());
        assert_eq!((overflows.suffices, overflows.overflowed), (false, 4));
        assert_eq!(overflows.why, "pool empty: 4 (16 %), 4 of them the MPI's");
        own.msg.prq.block_reasons.refused = 4;
        let refused = judged(own);
        assert_eq!((refused.suffices, refused.by_design, refused.overflowed), (false, 4, 0));
        assert_eq!(refused.why, "refuses 4 receives, 4 of them the MPI's");
        let fine = Judged::of("y", &Summary::of(&[sample(0, 30, 25)]).unwrap(), false);
        assert_eq!((fine.suffices, fine.why.as_str()), (true, ""));
        assert_eq!(sentence(&[&[full, fine][..]]), "Nothing spills on y; something does on x");
    }
}
