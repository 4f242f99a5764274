// SPDX-License-Identifier: BSD-2-Clause
//! `tcam advise --train`: models from the training set, and how good they are on streams of kinds
//! that they did not learn from.
//!
//! ```text
//! for each kind of stream:                  leave one kind out
//!     learn from all others; keep the scores of its streams
//! Platt's probabilities from the scores kept
//! learn from all
//! ```

use matching::Queue;
use rayon::prelude::*;

use super::classifier::{Classifiers, Platt, Row};
use super::contender::Contender;
use super::cost::{CostModel, Work};
use super::features::{SEEN, Side};
use super::math::quantile;
use super::models::{Answer, Answerer, CostOf, Models, Question};
use super::set::{Sample, Set};

/// A row of a question, and which stream it is of.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) sample: usize,
    pub(crate) row: Row,
    /// The measured time beside that of the other engine.
    pub(crate) ratio: f64,
}

/// Predicted times of each stream, by contender, of who did not learn from it.
pub(crate) type Predicted = [Vec<(Contender, f64)>];

/// What is asked of every stream on every storage. Where nothing came to the host no engine is
/// better than another one, and nobody asks.
pub(crate) fn asked(samples: &[Sample], predicted: &Predicted, question: Question) -> Vec<Asked> {
    let mut asked = Vec::new();
    for (at, sample) in samples.iter().enumerate() {
        let side = |of: Contender| {
            let cost = sample.cost(of)?;
            let (_, predicted) = *predicted[at].iter().find(|(other, _)| *other == of)?;
            Some((cost, Side { work: &cost.work, predicted }))
        };
        for &queue in Queue::ALL {
            let own = side(Contender { engine: question.engine, queue });
            let other = side(Contender { engine: question.against, queue });
            if let (Some((own, own_side)), Some((other, other_side))) = (own, other)
                && other.work.host_inserts() > 0.0
            {
                let seen = sample.features.with(own_side, other_side, queue == Queue::Linked);
                let ratio = own.ns / other.ns;
                let yes = ratio <= 1.0 - Question::WORTH;
                asked.push(Asked { sample: at, row: (seen, yes), ratio });
            }
        }
    }
    asked
}

/// Which streams are in which part, all of a part being left out together.
#[derive(Clone, Debug)]
pub(crate) struct Parts(pub(crate) Vec<usize>);

impl Parts {
    /// A part a kind.
    pub(crate) fn by_kind(samples: &[Sample]) -> Self {
        let mut kinds: Vec<&str> = samples.iter().map(|sample| &*sample.kind).collect();
        kinds.dedup();
        let of = |sample: &Sample| kinds.iter().position(|kind| *kind == sample.kind);
        Self(samples.iter().map(|sample| of(sample).unwrap_or(0)).collect())
    }

    /// Five parts, kinds in all of them.
    pub(crate) fn in_turn(samples: &[Sample]) -> Self {
        Self((0..samples.len()).map(|at| at % 5).collect())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().max().map_or(0, |most| most + 1)
    }
}

/// A question and what was said of each row by who did not learn from it.
#[derive(Clone, Debug)]
pub(crate) struct Judged {
    pub(crate) question: Question,
    pub(crate) asked: Vec<Asked>,
    /// Scores of each row.
    scores: Vec<[f64; 3]>,
    /// The part of each row.
    part: Vec<usize>,
}

impl Judged {
    fn new(samples: &[Sample], predicted: &Predicted, question: Question, parts: &Parts) -> Self {
        let asked = asked(samples, predicted, question);
        let part: Vec<_> = asked.iter().map(|of| parts.0[of.sample]).collect();
        let mut scores = vec![[0.0; 3]; asked.len()];
        for left_out in 0..parts.count() {
            let of = asked.iter().zip(&part);
            let rows: Vec<Row> =
                of.filter(|(_, part)| **part != left_out).map(|(of, _)| of.row).collect();
            if rows.len() == asked.len() {
                continue;
            }
            let classifiers = Classifiers::fit(&rows);
            for (at, of) in asked.iter().enumerate().filter(|(at, _)| part[*at] == left_out) {
                scores[at] = classifiers.scores(&of.row.0);
            }
        }
        Self { question, asked, scores, part }
    }

    /// Probabilities learned from the scores of all rows but those of a part.
    fn platt(&self, but: Option<usize>) -> [Platt; 3] {
        [0, 1, 2].map(|classifier| {
            let of = self.scores.iter().zip(&self.asked).zip(&self.part);
            let kept = of.filter(|(_, part)| Some(**part) != but);
            let scores: Vec<_> =
                kept.map(|((scores, asked), _)| (scores[classifier], asked.row.1)).collect();
            Platt::fit(&scores)
        })
    }

    /// The answer to each row, of who learned nothing from its part.
    pub(crate) fn answers(&self) -> Vec<Answer> {
        let parts = self.part.iter().max().map_or(0, |most| most + 1);
        let platts: Vec<_> = (0..parts).map(|part| self.platt(Some(part))).collect();
        let of = self.scores.iter().zip(&self.part);
        let each = of.map(|(scores, part)| {
            let mut each = [0.0; 3];
            for ((p, platt), score) in each.iter_mut().zip(&platts[*part]).zip(scores) {
                *p = platt.probability(*score);
            }
            Answer { each }
        });
        each.collect()
    }
}

/// All questions, judged.
pub(crate) fn judge(samples: &[Sample], predicted: &Predicted, parts: &Parts) -> Vec<Judged> {
    let judged = |question: &Question| Judged::new(samples, predicted, *question, parts);
    Question::all().par_iter().map(judged).collect()
}

/// Predicted times of each stream, of who did not learn from its part: one for each contender.
pub(crate) fn predicted(samples: &[Sample], parts: &Parts) -> Vec<Vec<(Contender, f64)>> {
    let contenders = Contender::all();
    let mut all = vec![Vec::new(); samples.len()];
    for left_out in 0..parts.count() {
        for &of in &contenders {
            let model = fit_cost(samples, of, |at| parts.0[at] != left_out);
            for (at, sample) in samples.iter().enumerate() {
                if let (true, Some(cost)) = (parts.0[at] == left_out, sample.cost(of)) {
                    all[at].push((of, model.predict(&cost.work)));
                }
            }
        }
    }
    all
}

fn fit_cost(samples: &[Sample], of: Contender, keep: impl Fn(usize) -> bool) -> CostModel {
    let kept = samples.iter().enumerate().filter(|(at, _)| keep(*at));
    let costs = kept.filter_map(|(_, sample)| sample.cost(of));
    let measured: Vec<(Work, f64)> = costs.map(|cost| (cost.work, cost.ns)).collect();
    CostModel::fit(&measured)
}

/// The factor by which ratios of predicted times are off, in 80 % of the cases: of each engine and
/// the default one.
fn ratio_error(samples: &[Sample], predicted: &Predicted) -> f64 {
    let mut errors = Vec::new();
    for (sample, predicted) in samples.iter().zip(predicted) {
        let time = |of: Contender| {
            let predicted = predicted.iter().find(|(other, _)| *other == of)?.1;
            let cost = sample.cost(of)?;
            (cost.work.host_inserts() > 0.0).then_some((predicted, cost.ns))
        };
        for (of, _) in predicted {
            let default = of.with(matching::HostEngine::default());
            if let (Some(one), Some(other)) = (time(*of), time(default))
                && *of != default
            {
                let off = (one.0 / other.0) / (one.1 / other.1);
                errors.push(off.max(1.0 / off));
            }
        }
    }
    (quantile(&errors, 0.8) * 1e4).round() / 1e4
}

/// The classifiers of one question, learned from all.
pub(crate) fn classifiers(asked: &[Asked]) -> Classifiers {
    let rows: Vec<Row> = asked.iter().map(|of| of.row).collect();
    Classifiers::fit(&rows)
}

/// Costs of all contenders, learned from all.
pub(crate) fn costs(samples: &[Sample]) -> Vec<CostOf> {
    let of = |of: &Contender| CostOf { of: of.names(), ns: fit_cost(samples, *of, |_| true) };
    Contender::all().iter().map(of).collect()
}

/// Learns all.
pub(crate) fn models(set: &Set, judged: &[Judged], predicted: &[Vec<(Contender, f64)>]) -> Models {
    let samples = &set.samples;
    let answerer = |judged: &Judged| Answerer {
        engine: judged.question.engine.name().to_owned(),
        against: judged.question.against.name().to_owned(),
        classifiers: classifiers(&judged.asked),
        platt: judged.platt(None),
    };
    let mut ranges = vec![[f64::INFINITY, f64::NEG_INFINITY]; SEEN];
    for judged in judged {
        for asked in &judged.asked {
            for (range, value) in ranges.iter_mut().zip(asked.row.0) {
                *range = [range[0].min(value), range[1].max(value)];
            }
        }
    }
    Models {
        streams: samples.len(),
        yardstick_ns: set.yardstick_ns,
        costs: costs(samples),
        ratio_error: ratio_error(samples, predicted),
        answerers: judged.par_iter().map(answerer).collect(),
        ranges,
    }
}
