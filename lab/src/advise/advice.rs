// SPDX-License-Identifier: BSD-2-Clause
//! What to take, why, and how sure that is.
//!
//! ```text
//! time of an engine   = its costs . its work, summed over runs           cost.rs
//! advised             = the engine of the least time that saves 5 % and that no classifiers speak
//!                       against, but none for programs without wildcards where there are any;
//!                       otherwise what there is
//! saves               = 1 - time / time now: from the least to the most of the runs, each further
//!                       by what ratios of held-out streams were off
//! confidence          = the probability of the three classifiers that it saves 5 % (or that nothing
//!                       does), halfway to a coin's where they disagree, and again where the program
//!                       is outside of what they learned from
//! ```

use std::collections::BTreeSet;

use matching::HostEngine;

use super::contender::Contender;
use super::features::Side;
use super::math::logistic;
use super::models::{Answer, Models, Question};
use super::program::Run;

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Advice {
    pub(crate) current: Contender,
    pub(crate) advised: Contender,
    /// Least and most share of the matching time that is saved.
    pub(crate) saves: [f64; 2],
    pub(crate) confidence: f64,
    /// What the classifiers said of the question that was asked.
    pub(crate) answer: Option<(Question, Answer)>,
    /// Numbers of the program that no stream had.
    pub(crate) outside: Vec<&'static str>,
    /// The best engine, if it was left out for wildcards.
    pub(crate) forbidden: Option<HostEngine>,
}

/// A part of the time now at which an engine on another storage is better whatever classifiers say.
const CLEAR: f64 = 0.8;

/// Whether an engine is for programs that promise to use no wildcard.
pub(crate) fn promises(engine: HostEngine) -> bool {
    engine == HostEngine::Hash
}

impl Advice {
    /// None where nothing came to the host, and no engine is better than another one.
    pub(crate) fn of(runs: &[Run], current: Contender, models: &Models) -> Option<Self> {
        if !runs.iter().any(Run::uses_host) {
            return None;
        }
        let time = |of: Contender, run: &Run| run.predicted(of, models);
        let total = |of: &Contender| {
            runs.iter().map(|run| time(*of, run)).sum::<Option<f64>>().map(|sum| (*of, sum))
        };
        let now = total(&current)?.1;
        let has_wildcards = runs.iter().any(|run| run.census.has_wildcards());
        let all = Contender::all();
        let mut times: Vec<_> = all.iter().filter_map(total).collect();
        times.sort_by(|one, other| one.1.total_cmp(&other.1));
        let of_all = times.first()?.0;
        let is_allowed = |of: Contender| !has_wildcards || !promises(of.engine);
        times.retain(|(of, _)| is_allowed(*of));
        // Classifiers know engines on one storage: of another one times tell, where they are clear.
        let worth = |&&(of, time): &&(Contender, f64)| {
            let asked = answer(runs, current, of, &is_allowed, models);
            let doubted = asked.is_some_and(|(_, answer)| answer.probability() < 0.5);
            let clear = of.queue != current.queue && time <= CLEAR * now;
            of != current && time <= (1.0 - Question::WORTH) * now && (clear || !doubted)
        };
        let found = times.iter().find(worth).copied();
        let (advised, best_time) = found.unwrap_or((current, times.first()?.1));
        let worth = found.is_some();
        let ratios: Vec<f64> =
            runs.iter().filter_map(|run| Some(time(advised, run)? / time(current, run)?)).collect();
        let end = |pick: fn(f64, f64) -> f64, error: f64| {
            1.0 - ratios.iter().copied().fold(ratios[0], pick) * error
        };
        let error = if worth { models.ratio_error } else { 1.0 };
        let outside = runs.iter().flat_map(|run| models.outside(&run.features));
        let outside: Vec<_> = outside.collect::<BTreeSet<_>>().into_iter().collect();
        let answer = answer(runs, current, advised, &is_allowed, models);
        let answer = answer.filter(|_| advised.queue == current.queue);
        let certain = match &answer {
            Some((_, answer)) if worth => answer.probability(),
            Some((_, answer)) => 1.0 - answer.probability(),
            None => by_times(best_time / now, worth, models.ratio_error),
        };
        let disagree = answer.is_some_and(|(_, answer)| !answer.is_unanimous());
        let doubts = i32::from(disagree) + i32::from(!outside.is_empty());
        let confidence = 0.5 + (certain - 0.5) * 0.5_f64.powi(doubts);
        Some(Self {
            current,
            advised,
            saves: [end(f64::max, error), end(f64::min, 1.0 / error)],
            confidence,
            answer,
            outside,
            forbidden: (has_wildcards && promises(of_all.engine)).then_some(of_all.engine),
        })
    }

    /// Whether the advice is to change nothing.
    pub(crate) fn keeps(&self) -> bool {
        self.advised == self.current
    }
}

/// The question that the advice answers and what was said, on average over the runs: of the engine
/// that is advised; where none is, of the one that comes nearest.
fn answer(
    runs: &[Run],
    current: Contender,
    advised: Contender,
    is_allowed: &dyn Fn(Contender) -> bool,
    models: &Models,
) -> Option<(Question, Answer)> {
    let ask = |engine| {
        let question = Question { engine, against: current.engine };
        let mut sum = [0.0; 3];
        for run in runs {
            let answer = run.answer(question, current, models)?;
            sum.iter_mut().zip(answer.each).for_each(|(sum, p)| *sum += p / runs.len() as f64);
        }
        Some((question, Answer { each: sum }))
    };
    if advised.engine != current.engine {
        return ask(advised.engine);
    }
    if advised != current {
        return None;
    }
    let on_same = |of: &Contender| of.queue == current.queue && is_allowed(*of);
    let engines = Contender::all().into_iter().filter(on_same);
    let answers = engines.filter_map(|of| ask(of.engine));
    answers.max_by(|one, other| one.1.probability().total_cmp(&other.1.probability()))
}

impl Run {
    /// What the classifiers say of an engine on the storage of another one.
    pub(crate) fn answer(
        &self,
        question: Question,
        other: Contender,
        models: &Models,
    ) -> Option<Answer> {
        let side = |of: Contender| {
            let work = &self.counts(of)?.work;
            Some(Side { work, predicted: models.predict(of, work)? })
        };
        let own = side(other.with(question.engine))?;
        let beside = side(other.with(question.against))?;
        let linked = other.queue == matching::Queue::Linked;
        models.answer(question, &self.features.with(own, beside, linked))
    }
}

/// How sure a ratio of predicted times is to be below, or above, what is worth a change: as if its
/// logarithm were off by a normal error, of which 80 % are within the factor.
fn by_times(ratio: f64, worth: bool, factor: f64) -> f64 {
    let sigma = factor.ln().max(1e-3) / 1.282;
    let z = ((1.0 - Question::WORTH).ln() - ratio.ln()) / sigma;
    // The logistic function is the normal distribution's to 1 %.
    let below = logistic(1.702 * z);
    if worth { below } else { 1.0 - below }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_far_below_is_sure() {
        assert!(by_times(0.5, true, 1.2) > 0.99);
        assert!((by_times(0.95, true, 1.2) - 0.5).abs() < 1e-9);
        assert!(by_times(1.5, false, 1.2) > 0.99);
    }
}
