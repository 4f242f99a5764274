// SPDX-License-Identifier: BSD-2-Clause
//! Verdicts on the claims of a paper, computed from the numbers alone.
//!
//! ```text
//! candidates = medians over seeds, linked queues, at the processes of the claim
//! none there, some on fewer ranks  ->  not measurable here; no more than the bound
//! none at all                      ->  not measured
//! where queues were made           ->  only these candidates
//! ours = the largest candidate ("up to"), or the one farthest from "about"
//! no queue made at any             ->  algorithm inactive; differs by x, if it does
//! ours within 30 %                 ->  reproduced; no test, if fitted or capped
//! otherwise                        ->  differs by x, with a reason
//! ```

use matching::{HostEngine, Queue};

use super::figure::{Cell, digits};
use super::number::{Number, Numbers, Place};
use super::paper::{self, Claim, Says};
use crate::workload::basis::{Basis, agree, factor};

/// How far ours is from the paper's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Difference {
    /// The larger over the smaller.
    pub(super) factor: f64,
    /// Ours is the larger.
    pub(super) above: bool,
}

/// What becomes of a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Verdict {
    Reproduced,
    /// As the paper's, because it was made so.
    NoTest(Basis),
    Differs(Difference),
    /// No queue was made, so that the paper's algorithm was not at work.
    Inactive(Option<Difference>),
    /// There are too few ranks here, and no engine could be faster than the bound.
    NotMeasurable(Option<f64>),
    NotMeasured,
}

impl Verdict {
    fn compare(ours: f64, claim: &Claim) -> Option<Difference> {
        let factor = factor(ours, claim.figure);
        let difference = Difference { factor, above: ours > claim.figure };
        (!agree(ours, claim.figure)).then_some(difference)
    }

    pub(super) const fn difference(self) -> Option<Difference> {
        match self {
            Self::Differs(difference) | Self::Inactive(Some(difference)) => Some(difference),
            _ => None,
        }
    }

    pub(super) fn text(self) -> String {
        let inactive = "algorithm inactive";
        match self {
            Self::Reproduced => "reproduced".to_owned(),
            Self::NoTest(basis) => format!("no test: {}", basis.name()),
            Self::Differs(difference) => difference.text(),
            Self::Inactive(None) => inactive.to_owned(),
            Self::Inactive(Some(difference)) => format!("{inactive}, {}", difference.text()),
            Self::NotMeasurable(None) => "not measurable here".to_owned(),
            Self::NotMeasurable(Some(bound)) => {
                format!("not measurable here, at most {}", digits(bound))
            }
            Self::NotMeasured => "not measured".to_owned(),
        }
    }
}

impl Difference {
    pub(super) fn text(self) -> String {
        let side = if self.above { "above" } else { "below" };
        format!("differs by {}, {side}", digits(self.factor))
    }
}

/// A claim with what is here.
pub(super) struct Judged<'n> {
    pub(super) claim: &'static Claim,
    /// What stands beside the paper's figure.
    pub(super) ours: Option<&'n Number>,
    /// Over all processes and seeds.
    pub(super) lowest: f64,
    pub(super) highest: f64,
    pub(super) made: Option<[f64; 2]>,
    pub(super) verdict: Verdict,
}

/// A number with the queues that were made for it.
type Candidate<'n> = (&'n Number, Option<[f64; 2]>);

/// Every claim.
pub(super) fn all(numbers: &Numbers) -> Vec<Judged<'_>> {
    paper::CLAIMS.iter().map(|claim| judge(claim, numbers)).collect()
}

/// What there is on some ranks.
fn candidates<'n>(claim: &Claim, ranks: &[u32], numbers: &'n Numbers) -> Vec<Candidate<'n>> {
    let Claim { pattern, traffic, engine, k, .. } = *claim;
    let mut found = Vec::new();
    for &ranks in ranks {
        for queue in claim.queues {
            let storage = Queue::Linked;
            let place = Place { pattern, ranks, queue, traffic, engine, storage, k };
            found.extend(
                numbers.get(claim.metric, place).map(|number| (number, numbers.made(place))),
            );
        }
    }
    found
}

fn judge<'n>(claim: &'static Claim, numbers: &'n Numbers) -> Judged<'n> {
    let mut there = candidates(claim, claim.ranks, numbers);
    let reached = !there.is_empty();
    if !reached && let Some(ranks) = numbers.ranks_of(claim.metric, claim.pattern) {
        there = candidates(claim, &[ranks], numbers);
    }
    let lowest = there.iter().map(|(number, _)| number.lowest).fold(f64::INFINITY, f64::min);
    let highest = there.iter().map(|(number, _)| number.highest).fold(0.0, f64::max);
    // How many queues there are is no matter of whether there are any.
    let idle = |(_, made): &Candidate<'_>| *made == Some([0.0; 2]) && claim.metric != "queues";
    let inactive = there.iter().all(idle);
    if !inactive {
        there.retain(|candidate| !idle(candidate));
    }
    let weight = |number: &Number| match claim.says {
        Says::UpTo => number.ours,
        Says::About => factor(number.ours, claim.figure),
    };
    let by_weight =
        |one: &Candidate<'_>, other: &Candidate<'_>| weight(one.0).total_cmp(&weight(other.0));
    // The first of equals.
    let chosen = there.into_iter().rev().max_by(by_weight);
    let (ours, made) = chosen.map_or((None, None), |(number, made)| (Some(number), made));
    let verdict = match ours {
        None => Verdict::NotMeasured,
        Some(ours) if !reached => Verdict::NotMeasurable(bound(claim, ours, numbers)),
        Some(ours) => match (inactive, Verdict::compare(ours.ours, claim)) {
            // What makes no queue has no overhead.
            (true, difference) => Verdict::Inactive(difference.filter(|_| ours.ours > 0.0)),
            (false, Some(difference)) => Verdict::Differs(difference),
            (false, None) if matches!(ours.is, Basis::Fitted | Basis::Capped) => {
                Verdict::NoTest(ours.is)
            }
            (false, None) => Verdict::Reproduced,
        },
    };
    Judged { claim, ours, lowest, highest, made, verdict }
}

/// What no engine can exceed where a number was taken, by any run.
fn bound(claim: &Claim, ours: &Number, numbers: &Numbers) -> Option<f64> {
    let (engine, storage) = (HostEngine::List, Queue::Linked);
    let Claim { pattern, k, .. } = *claim;
    let place = Place { pattern, ranks: ours.ranks, queue: "", traffic: "", engine, storage, k };
    numbers.get("bound", place).map(|number| number.highest)
}

impl Judged<'_> {
    /// What the claim is about, for people.
    pub(super) fn subject(&self) -> String {
        let Claim { queues, traffic, engine, metric, .. } = *self.claim;
        let queue = queues.join(" or ");
        // What is not said is the speedup of searches.
        let what = match metric {
            "speedup" => "",
            "time speedup" => "in all",
            other => other,
        };
        let engine = if engine == HostEngine::List { "" } else { engine.name() };
        let pattern = self.claim.pattern.name();
        let words = [pattern.as_str(), engine, &queue, traffic, what];
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
    }

    /// Ours, with the range over all candidates.
    pub(super) fn cell(&self) -> Cell {
        let Some(ours) = self.ours else { return "".into() };
        Some(&Number { lowest: self.lowest, highest: self.highest, ..ours.clone() }).into()
    }
}

/// How a number of queues came about: a cap that is reached says nothing else, and what
/// follows from fitted lengths is fitted as they are.
pub(super) fn basis_of_queues(made: f64, place: Place<'_>, lengths: Basis) -> Basis {
    let cap = f64::from((place.k * place.k * place.ranks).isqrt());
    if made == cap { Basis::Capped } else { lengths }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::pattern::Pattern;

    fn claim(pattern: Pattern, traffic: &str, metric: &str) -> &'static Claim {
        let mut claims = paper::CLAIMS.iter();
        let is = |claim: &&Claim| {
            (claim.pattern, claim.traffic, claim.metric, claim.engine)
                == (pattern, traffic, metric, HostEngine::ColPnp)
        };
        claims.find(is).unwrap()
    }

    /// Numbers of a claim on its processes: ours, and queues made.
    fn numbers(claim: &Claim, ours: &[(u32, f64, f64)]) -> Numbers {
        let mut numbers = Numbers::default();
        for &(ranks, value, made) in ours {
            let Claim { pattern, traffic, engine, k, metric, .. } = *claim;
            let queue = claim.queues[0];
            let storage = Queue::Linked;
            let place = Place { pattern, ranks, queue, traffic, engine, storage, k };
            numbers.put(Number::new("", place, metric, Basis::Measured, vec![value]));
            for (traffic, made) in [("collective", made), ("point-to-point", 0.0)] {
                let place = Place { traffic, ..place };
                numbers.put(Number::new("", place, "queues", Basis::Predicted, vec![made]));
            }
        }
        numbers
    }

    #[test]
    fn up_to_is_the_largest_where_queues_were_made() {
        // The paper has 1.09.
        let claim = claim(Pattern::Nbody, "collective", "speedup");
        let verdict = |ours: &[_]| judge(claim, &numbers(claim, ours)).verdict;
        let all = [(256, 5.0, 0.0), (512, 1.2, 3.0), (1024, 0.9, 3.0)];
        assert_eq!(verdict(&all), Verdict::Reproduced);
        let differs = Difference { factor: 2.18 / 1.09, above: true };
        assert_eq!(verdict(&[(512, 2.18, 1.0)]), Verdict::Differs(differs));
        assert_eq!(verdict(&[(512, 1.0, 0.0)]), Verdict::Inactive(None));
        let difference = Some(Difference { factor: 2.0, above: false });
        assert_eq!(verdict(&[(512, 0.545, 0.0)]), Verdict::Inactive(difference));
        assert_eq!(verdict(&[(64, 1.0, 3.0)]), Verdict::NotMeasurable(None));
        assert_eq!(verdict(&[]), Verdict::NotMeasured);
    }

    #[test]
    fn about_is_the_median_that_is_farthest_off() {
        let claim = claim(Pattern::Miniamr, "point-to-point", "speedup");
        let ours = [(512, 1.1, 2.0), (1024, 0.25, 2.0), (2048, 3.0, 2.0)];
        let numbers = numbers(claim, &ours);
        let judged = judge(claim, &numbers);
        let differs = Difference { factor: 4.0, above: false };
        assert_eq!(judged.verdict, Verdict::Differs(differs));
        assert_eq!((judged.lowest, judged.highest), (0.25, 3.0));
    }

    #[test]
    fn as_many_queues_as_allowed_are_capped() {
        let place = Place {
            pattern: Pattern::Miniamr,
            ranks: 2048,
            queue: "PRQ",
            traffic: "collective",
            engine: HostEngine::ColPnp,
            storage: Queue::Linked,
            k: 8,
        };
        assert_eq!(basis_of_queues(362.0, place, Basis::Fitted), Basis::Capped);
        assert_eq!(basis_of_queues(86.0, place, Basis::Fitted), Basis::Fitted);
        assert_eq!(basis_of_queues(86.0, place, Basis::Predicted), Basis::Predicted);
    }

    #[test]
    fn what_is_fitted_is_no_test() {
        let is = |claim: &&Claim| claim.metric == "longest" && claim.figure > 1000.0;
        let claim = paper::CLAIMS.iter().find(is).unwrap();
        let mut numbers = numbers(claim, &[(4096, 8191.0, 0.0)]);
        numbers.0.truncate(1);
        numbers.0[0].is = Basis::Fitted;
        assert_eq!(judge(claim, &numbers).verdict, Verdict::NoTest(Basis::Fitted));
        numbers.0[0].ours = 80.0;
        assert!(matches!(judge(claim, &numbers).verdict, Verdict::Differs(_)));
    }
}
