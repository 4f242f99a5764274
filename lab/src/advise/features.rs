// SPDX-License-Identifier: BSD-2-Clause
//! What the classifiers see of a program: the profile of a list (*Hint-driven matching*, section
//! V.C: mean, standard deviation, variance and quartiles of traversed cells and of message sizes)
//! and, beyond the paper, what else tells engines apart.
//!
//! All but shares are logarithms, ln(1 + x), cut to six decimals so that files keep them exactly.

use matching::Profile;
use nic::report::ContextCounters;

use super::cost::Work;
use super::stream::Census;

/// Names of what does not depend on the engine. The first twelve are the paper's.
pub(crate) const COMMON: [&str; 21] = [
    "cells_mean",
    "cells_deviation",
    "cells_variance",
    "cells_quartile_1",
    "cells_quartile_2",
    "cells_quartile_3",
    "bytes_mean",
    "bytes_deviation",
    "bytes_variance",
    "bytes_quartile_1",
    "bytes_quartile_2",
    "bytes_quartile_3",
    "cells_not_found",
    "share_not_found",
    "share_on_host",
    "share_wildcards",
    "share_collective",
    "sources",
    "host_high_water",
    "share_turns",
    "share_jumps",
];
/// What the question adds: the cells that a search of its engine traverses, also beside those of the
/// other one, queues made, the storage, and predicted time beside that of the other one.
pub(crate) const OWN: [&str; 5] =
    ["own_cells", "own_cells_beside", "own_queues", "own_linked", "own_time"];
/// Numbers that a classifier sees.
pub(crate) const SEEN: usize = COMMON.len() + OWN.len();

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Features(pub(crate) [f64; COMMON.len()]);

/// One of the engines of a question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<'a> {
    pub(crate) work: &'a Work,
    /// Nanoseconds.
    pub(crate) predicted: f64,
}

fn log(value: f64) -> f64 {
    cut(value.max(0.0).ln_1p())
}

fn cut(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// Mean, deviation, variance and quartiles.
fn moments(profile: &Profile) -> [f64; 6] {
    let quartiles = profile.quartiles().unwrap_or_default().map(|quartile| log(quartile as f64));
    let [mean, deviation, variance] =
        [profile.mean(), profile.deviation(), profile.variance()].map(|of| log(of.unwrap_or(0.0)));
    [mean, deviation, variance, quartiles[0], quartiles[1], quartiles[2]]
}

impl Features {
    /// Of what a list counted.
    pub(crate) fn of(list: &ContextCounters, census: &Census) -> Self {
        let (prq, umq) = (&list.prq, &list.umq);
        let (mut found, mut not_found) =
            (prq.traversals.found.clone(), prq.traversals.not_found.clone());
        found.merge(&umq.traversals.found);
        not_found.merge(&umq.traversals.not_found);
        let share = |part: u64, of: u64| cut(part as f64 / of.max(1) as f64);
        let searches = prq.searches + umq.searches;
        let collective = list.kinds.collective;
        let of_all = collective.arrivals + list.kinds.point_to_point.arrivals;
        let mut all = [0.0; COMMON.len()];
        all[..6].copy_from_slice(&moments(&found));
        all[6..12].copy_from_slice(&moments(&list.sizes));
        all[12..].copy_from_slice(&[
            log(not_found.mean().unwrap_or(0.0)),
            share(not_found.count, found.count + not_found.count),
            share(found.count + not_found.count, searches),
            share(census.wildcards, census.receives),
            share(collective.arrivals, of_all),
            log(census.sources.len() as f64),
            log(prq.host_high_water.max(umq.host_high_water) as f64),
            share(census.turns, list.posts + list.arrivals),
            share(census.jumps, list.arrivals),
        ]);
        Self(all)
    }

    /// What the classifier of a question sees: these, and the work of both engines.
    pub(crate) fn with(&self, own: Side<'_>, other: Side<'_>, linked: bool) -> [f64; SEEN] {
        let mut seen = [0.0; SEEN];
        seen[..COMMON.len()].copy_from_slice(&self.0);
        let cells = [own, other].map(|side| log(side.work.cells_a_search()));
        let time = (own.predicted.max(1.0) / other.predicted.max(1.0)).ln();
        let own = [
            cells[0],
            cells[0] - cells[1],
            log(own.work.dedicated_a_stream()),
            f64::from(u8::from(linked)),
            cut(time),
        ];
        seen[COMMON.len()..].copy_from_slice(&own);
        seen
    }
}

/// The name of a number that a classifier sees.
pub(crate) fn name(at: usize) -> &'static str {
    COMMON.iter().chain(&OWN).nth(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_the_papers_and_more() {
        let mut list = ContextCounters::default();
        [1, 2, 3, 4].into_iter().for_each(|cells| list.prq.traversals.found.record(cells));
        list.umq.traversals.not_found.record(9);
        list.sizes.record(100);
        (list.prq.searches, list.umq.searches) = (6, 4);
        let census = Census { receives: 4, wildcards: 1, ..Census::default() };
        let features = Features::of(&list, &census).0;
        assert_eq!(features[0], cut(3.5_f64.ln()));
        assert_eq!(features[3..6], [2.0_f64, 3.0, 4.0].map(|value| cut(value.ln())));
        assert_eq!(features[6], cut(101_f64.ln()));
        assert_eq!(features[7], 0.0, "one size");
        assert_eq!(features[13..16], [0.2, 0.5, 0.25]);
        assert_eq!((name(0), name(SEEN - 1)), ("cells_mean", "own_time"));
    }
}
