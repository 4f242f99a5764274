// SPDX-License-Identifier: BSD-2-Clause
//! How good the advisor is on streams that it did not learn from, as a section of a page.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::classifier::NAMES;
use super::contender::Contender;
use super::math::quantile;
use super::models::{Models, Question};
use super::set::{Sample, Set};
use super::train::{Judged, Parts, judge, predicted};

/// Name of the file.
pub(crate) const VALIDATION: &str = "validation.md";
/// Bins of the reliability table.
const BINS: usize = 5;

/// Yes and no, as answered and as measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Confusion {
    /// Answered yes, and was.
    yes: u64,
    /// Answered yes, and was not.
    false_yes: u64,
    false_no: u64,
    no: u64,
}

impl Confusion {
    fn add(&mut self, answered: bool, measured: bool) {
        *match (answered, measured) {
            (true, true) => &mut self.yes,
            (true, false) => &mut self.false_yes,
            (false, true) => &mut self.false_no,
            (false, false) => &mut self.no,
        } += 1;
    }

    fn merge(&mut self, other: Self) {
        self.yes += other.yes;
        self.false_yes += other.false_yes;
        self.false_no += other.false_no;
        self.no += other.no;
    }

    fn accuracy(self) -> f64 {
        let all = self.yes + self.false_yes + self.false_no + self.no;
        100.0 * (self.yes + self.no) as f64 / all.max(1) as f64
    }
}

/// Each classifier, then all together, and the same where the answer is clear.
type Confusions = [Confusion; 5];

/// Where times differ by this much more or less than what is asked for, no repetition of the
/// measurement would answer otherwise.
const CLEAR: f64 = 0.05;

fn merge(sum: &mut Confusions, other: &Confusions) {
    sum.iter_mut().zip(other).for_each(|(sum, other)| sum.merge(*other));
}

/// Answers of one question, by kind of stream.
fn confusions<'a>(samples: &'a [Sample], judged: &Judged) -> BTreeMap<&'a str, Confusions> {
    let mut kinds: BTreeMap<&str, Confusions> = BTreeMap::new();
    for (asked, answer) in judged.asked.iter().zip(judged.answers()) {
        let of = kinds.entry(&samples[asked.sample].kind).or_default();
        let together = [answer.probability()];
        for (confusion, p) in of.iter_mut().zip(answer.each.iter().chain(&together)) {
            confusion.add(*p > 0.5, asked.row.1);
        }
        if (asked.ratio - (1.0 - Question::WORTH)).abs() > CLEAR {
            of[4].add(together[0] > 0.5, asked.row.1);
        }
    }
    kinds
}

fn total(kinds: &BTreeMap<&str, Confusions>) -> Confusions {
    let mut sum = Confusions::default();
    kinds.values().for_each(|of| merge(&mut sum, of));
    sum
}

/// How often what was given a probability came true.
#[derive(Debug, Default)]
struct Reliability {
    /// Sum of probabilities, how many came true, how many there are.
    bins: [(f64, u64, u64); BINS],
}

impl Reliability {
    fn add(&mut self, p: f64, came_true: bool) {
        let bin = &mut self.bins[((p * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += p;
        bin.1 += u64::from(came_true);
        bin.2 += 1;
    }

    /// The expected calibration error: how far apart the two are, over all answers.
    fn error(&self) -> f64 {
        let all: u64 = self.bins.iter().map(|bin| bin.2).sum();
        let off = self.bins.iter().map(|(sum, came_true, _)| (sum - *came_true as f64).abs());
        off.sum::<f64>() / all.max(1) as f64
    }
}

/// Errors of predicted times: shares by which they are off.
fn errors(
    samples: &[Sample],
    predicted: &[Vec<(Contender, f64)>],
    of: impl Fn(Contender) -> bool,
) -> Vec<f64> {
    let mut errors = Vec::new();
    for (sample, predicted) in samples.iter().zip(predicted) {
        for &(contender, ns) in predicted.iter().filter(|(contender, _)| of(*contender)) {
            if let Some(cost) = sample.cost(contender) {
                errors.push((ns / cost.ns - 1.0).abs());
            }
        }
    }
    errors
}

fn within(errors: &[f64], most: f64) -> f64 {
    100.0 * errors.iter().filter(|of| **of <= most).count() as f64 / errors.len().max(1) as f64
}

/// By how much more time the engine of the least predicted time takes than the best one.
fn regrets(samples: &[Sample], predicted: &[Vec<(Contender, f64)>]) -> Vec<f64> {
    let regret = |(sample, predicted): (&Sample, &Vec<(Contender, f64)>)| {
        let chosen = predicted.iter().min_by(|one, other| one.1.total_cmp(&other.1))?.0;
        let best = sample.costs.iter().map(|cost| cost.ns).min_by(f64::total_cmp)?;
        Some(sample.cost(chosen)?.ns / best - 1.0)
    };
    samples.iter().zip(predicted).filter_map(regret).collect()
}

/// The models and the section.
pub(crate) fn validate(set: &Set) -> (Models, String) {
    let samples = &set.samples;
    let (kinds, turns) = (Parts::by_kind(samples), Parts::in_turn(samples));
    let times = [&kinds, &turns].map(|parts| predicted(samples, parts));
    let of_kinds = judge(samples, &times[0], &kinds);
    let of_turns = judge(samples, &times[1], &turns);
    let models = super::train::models(set, &of_kinds, &times[0]);
    let mut page = format!(
        "Learned from {} generated streams of {} kinds, each replayed to {} engines and storages; \
         `tcam advise --train` makes this section and the models from lab/advisor/*.csv. *Kinds left out*: all \
         streams of a kind are judged by who learned from the other kinds only. *Streams left out*: \
         a fifth of the streams, whose kinds the others have too, as in the paper.\n\n",
        samples.len(),
        kinds.count(),
        Contender::all().len(),
    );
    answers(&mut page, samples, &of_kinds, &of_turns);
    calibration(&mut page, &of_kinds);
    costs(&mut page, samples, &times, &models);
    (models, page)
}

fn answers(page: &mut String, samples: &[Sample], of_kinds: &[Judged], of_turns: &[Judged]) {
    let mut kinds: BTreeMap<&str, Confusions> = BTreeMap::new();
    let mut turns = Confusions::default();
    page.push_str(
        "Is an engine at least 5 % faster than the other one, on the same storage? Accuracy in per \
         cent, of the three classifiers together. *Clear* are streams whose times differ by more than 10 % \
         or less than nothing, so that noise does not answer:\n\n\
         | question | asked | yes | kinds left out | clear | streams left out | clear |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (kind, turn) in of_kinds.iter().zip(of_turns) {
        let (by_kind, by_turn) = (confusions(samples, kind), confusions(samples, turn));
        let (of_kind, of_turn) = (total(&by_kind), total(&by_turn));
        by_kind.iter().for_each(|(name, of)| merge(kinds.entry(name).or_default(), of));
        merge(&mut turns, &of_turn);
        let Question { engine, against } = kind.question;
        let _ = writeln!(
            page,
            "| {engine} against {against} | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} |",
            kind.asked.len(),
            of_kind[3].yes + of_kind[3].false_no,
            of_kind[3].accuracy(),
            of_kind[4].accuracy(),
            of_turn[3].accuracy(),
            of_turn[4].accuracy(),
        );
    }
    let all = total(&kinds);
    page.push_str(
        "\n| classifier | left out | accuracy, % | yes, was | yes, was not | no, was | no, was not |\n\
         |---|---|---|---|---|---|---|\n",
    );
    for (left_out, confusions) in [("kinds", all), ("streams", turns)] {
        for (name, of) in NAMES.iter().chain(&["together", "together, clear"]).zip(confusions) {
            let Confusion { yes, false_yes, false_no, no } = of;
            let accuracy = of.accuracy();
            let _ = writeln!(
                page,
                "| {name} | {left_out} | {accuracy:.1} | {yes} | {false_yes} | {false_no} | {no} |"
            );
        }
    }
    page.push_str("\n| kind left out | accuracy, % | clear |\n|---|---|---|\n");
    for (name, of) in kinds {
        let _ = writeln!(page, "| {name} | {:.1} | {:.1} |", of[3].accuracy(), of[4].accuracy());
    }
}

fn calibration(page: &mut String, judged: &[Judged]) {
    let mut reliability = Reliability::default();
    for judged in judged {
        for (asked, answer) in judged.asked.iter().zip(judged.answers()) {
            reliability.add(answer.probability(), asked.row.1);
        }
    }
    page.push_str(
        "\nCalibration, kinds left out: of answers with a probability of yes in a range, how many \
         were right?\n\n| probability | answers | mean probability, % | was yes, % |\n|---|---|---|---|\n",
    );
    for (bin, (sum, yes, all)) in reliability.bins.iter().enumerate() {
        let [low, high] = [bin, bin + 1].map(|bin| 100 * bin / BINS);
        let of = |value: f64| 100.0 * value / (*all).max(1) as f64;
        let _ = writeln!(
            page,
            "| {low} to {high} % | {all} | {:.1} | {:.1} |",
            of(*sum),
            of(*yes as f64)
        );
    }
    let _ = writeln!(page, "\nExpected calibration error: {:.3}.", reliability.error());
}

fn costs(
    page: &mut String,
    samples: &[Sample],
    times: &[Vec<Vec<(Contender, f64)>>; 2],
    models: &Models,
) {
    page.push_str(
        "\nPredicted times beside measured ones, by how much they are off:\n\n\
         | engine | left out | median, % | 90 % are within, % | within 20 %, % of them |\n\
         |---|---|---|---|---|\n",
    );
    for (left_out, predicted) in ["kinds", "streams"].into_iter().zip(times) {
        let mut line = |name: &str, errors: &[f64]| {
            let _ = writeln!(
                page,
                "| {name} | {left_out} | {:.1} | {:.1} | {:.1} |",
                100.0 * quantile(errors, 0.5),
                100.0 * quantile(errors, 0.9),
                within(errors, 0.2),
            );
        };
        for contender in Contender::all() {
            line(&contender.to_string(), &errors(samples, predicted, |of| of == contender));
        }
        line("all", &errors(samples, predicted, |_| true));
    }
    let regrets = times.each_ref().map(|predicted| regrets(samples, predicted));
    for (left_out, regrets) in ["Kinds", "Streams"].into_iter().zip(&regrets) {
        let _ = writeln!(
            page,
            "\n{left_out} left out: the engine of the least predicted time takes {:.1} % more than the \
             best one in the median, at most {:.1} % in nine of ten streams.",
            100.0 * quantile(regrets, 0.5),
            100.0 * quantile(regrets, 0.9),
        );
    }
    let _ = writeln!(
        page,
        "\nOf ratios of two predicted times, 80 % are off by a factor of {:.2} or less with kinds \
         left out: the range that `tcam advise` tells.",
        models.ratio_error
    );
}

#[cfg(test)]
mod tests {
    use super::super::{models, set, train};
    use super::*;

    const SAMPLES: &str = include_str!("../../advisor/samples.csv");
    const COSTS: &str = include_str!("../../advisor/costs.csv");

    /// All of the models takes long without optimization: tests/advise.py compares that.
    #[test]
    fn costs_are_learned_again_to_the_bit() {
        let set = set::parse(SAMPLES, COSTS).unwrap();
        let models = Models::stored().unwrap();
        assert_eq!(models.streams, set.samples.len());
        let costs = |costs: &[models::CostOf]| serde_json::to_string(costs).unwrap();
        assert_eq!(costs(&train::costs(&set.samples)), costs(&models.costs));
    }

    #[test]
    fn the_page_has_what_was_found_in_validation() {
        let page = include_str!("../../../docs/papers.md");
        assert!(page.contains(include_str!("../../advisor/validation.md")));
    }

    #[test]
    fn probabilities_that_come_true_have_no_error() {
        let mut reliability = Reliability::default();
        for n in 0..100 {
            reliability.add(0.3, n < 30);
            reliability.add(0.9, n < 90);
        }
        assert!(reliability.error() < 1e-9);
        (0..100).for_each(|_| reliability.add(1.0, false));
        assert!((reliability.error() - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn answers_are_counted_by_what_they_were() {
        let mut confusion = Confusion::default();
        for (answered, measured) in [(true, true), (true, false), (false, true), (false, false)] {
            confusion.add(answered, measured);
        }
        assert_eq!(confusion, Confusion { yes: 1, false_yes: 1, false_no: 1, no: 1 });
        assert_eq!(confusion.accuracy(), 50.0);
    }
}
