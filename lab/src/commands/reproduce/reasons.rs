// SPDX-License-Identifier: BSD-2-Clause
//! Why ours differs from a paper's figure, by row and direction. Whether it does, verdicts
//! say: these stand only where it does.

use matching::HostEngine;

use super::judged::{Judged, Verdict};
use crate::workload::pattern::Pattern;

/// What stands where nobody has found out.
pub(super) const UNKNOWN: &str = "The reason is not known.";

const OVERTAKEN: &str = "Point-to-point messages overtake collective ones here: in a list each \
    passes all collective elements that stand before it, in engines that tell the kinds apart \
    none. The paper's gain less, which suggests that few collective elements stood before them.";
const GONE: &str = "Point-to-point messages overtake collective ones here and are gone when these \
    are searched: a list of collective elements alone gains nothing from telling the kinds apart. \
    In the paper they stood in between.";
const LENGTH: &str = "The speedup grows with the queue, and the queue with n: ours is below the \
    paper's on fewer processes and above on more (Figs. 6 to 8). The workload's lengths are \
    fitted, and the paper prints none.";
const NBODY_RANKS: &str = "Each source has one collective element here, so that every queue of \
    `rank-array` has one, while the list grows with n. The paper's collective elements were \
    searched in shorter lists: its bars have the same gain with COL+PNP.";
const MINIAMR: &str = "The two groups of sqrt(2n) collective elements are fitted to the 74 queues \
    on 2048 processes. An average search that long would gain more than the paper's did: most of \
    its searches were shorter than those that its queues were made for.";
const ONE_LIST: &str = "`col-list` leaves all point-to-point receives in one list, here n/2 of \
    them, a choice of the workload. The paper gains nearly all by telling the kinds apart: it has \
    fewer.";
const PARTNERS: &str = "Partners are the sources with more elements than the average one: here \
    the n/16 that send four messages each, a choice of the workload. The paper prints no counts by \
    source.";
const STEPS: &str = "Queues are made once, and the ratio falls with the steps of a run, of which \
    the paper tells nothing: the last column of Table 2 has the number at which ours would be \
    the paper's.";
pub(super) const TAIL_QUEUES: &str = "The papers contradict each other: *Tail queues* has a PRQ of 24 at most \
    in FDS on 4096 processes, COL+PNP speedups of 42 and 73 in its PRQ and as many queues as the \
    cap allows, for which long ones are needed. The workload follows COL+PNP.";
const NO_ALGORITHM: &str = "Some ns more or less of a search of a few elements, in which the \
    engines do the same.";

const FEW_RANKS: &str = "Fewer ranks than the paper's, which share the cores of one machine. *At \
    most* is what matching could explain with queues of this length; what is measured beyond it is \
    who ran when. See the section on Figs. 5 and 11.";

/// Why a claim differs or cannot be judged; nothing for all others.
pub(super) fn of(judged: &Judged<'_>) -> Option<&'static str> {
    if let Verdict::NotMeasurable(_) = judged.verdict {
        return Some(FEW_RANKS);
    }
    let above = judged.verdict.difference()?.above;
    let between = judged.lowest <= judged.claim.figure && judged.claim.figure <= judged.highest;
    let claim = judged.claim;
    let kind = (claim.pattern, claim.traffic, claim.engine);
    Some(match (claim.metric, kind) {
        ("overhead", _) => STEPS,
        ("longest", (Pattern::Fds, ..)) if above => TAIL_QUEUES,
        ("queues", (Pattern::Fds, "point-to-point", _)) if !above => PARTNERS,
        ("speedup", (Pattern::Radix, ..)) => NO_ALGORITHM,
        ("speedup", (Pattern::Nbody, "collective", HostEngine::RankArray)) if above => NBODY_RANKS,
        ("speedup", (Pattern::Miniamr, "point-to-point", _)) if above => OVERTAKEN,
        ("speedup", (Pattern::Miniamr, "collective", _)) if above => MINIAMR,
        ("speedup", (Pattern::Fds, "collective", HostEngine::ListPnp)) if !above => GONE,
        ("speedup", (Pattern::Fds, "point-to-point", HostEngine::ColList)) if !above => ONE_LIST,
        ("speedup", (Pattern::Fds, "point-to-point", _)) if above && claim.figure < 10.0 => {
            OVERTAKEN
        }
        ("speedup", (Pattern::Nbody | Pattern::Fds, ..)) if above && between => LENGTH,
        _ => UNKNOWN,
    })
}
