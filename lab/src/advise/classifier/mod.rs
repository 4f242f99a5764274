// SPDX-License-Identifier: BSD-2-Clause
//! Three classifiers of the same question, as in *Hint-driven matching*, section V.C: logistic
//! regression, a support vector machine and a multilayer perceptron.
//!
//! They are written here: smartcore's support vector machine does not keep its kernel in a file,
//! and a model that is trained again has to be the same bit for bit on any machine.

mod linear;
mod logistic;
mod mlp;
mod svm;

use serde::{Deserialize, Serialize};

pub(crate) use logistic::Platt;
use mlp::Mlp;

use super::classifier::linear::Linear;
use super::features::SEEN;

/// Names, in the order of [`Classifiers::scores`].
pub(crate) const NAMES: [&str; 3] = ["logistic regression", "SVM", "MLP"];

/// What is learned from: what is seen, and the answer.
pub(crate) type Row = ([f64; SEEN], bool);

/// Inputs less their mean, by their deviation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Scale {
    mean: Vec<f64>,
    deviation: Vec<f64>,
}

impl Scale {
    fn of(rows: &[Row]) -> Self {
        let n = rows.len().max(1) as f64;
        let mut mean = vec![0.0; SEEN];
        for (inputs, _) in rows {
            mean.iter_mut().zip(inputs).for_each(|(sum, value)| *sum += value / n);
        }
        let mut variance = vec![0.0; SEEN];
        for (inputs, _) in rows {
            for ((sum, value), mean) in variance.iter_mut().zip(inputs).zip(&mean) {
                *sum += (value - mean) * (value - mean) / n;
            }
        }
        // What never varies says nothing.
        let deviation = variance.into_iter().map(|of| if of > 1e-12 { of.sqrt() } else { 0.0 });
        Self { deviation: deviation.collect(), mean }
    }

    /// Inputs far outside of what was seen are cut off: a line goes on for ever.
    fn apply(&self, inputs: &[f64; SEEN]) -> Vec<f64> {
        let scaled = inputs.iter().zip(&self.mean).zip(&self.deviation);
        let scaled = scaled.map(|((value, mean), deviation)| match deviation {
            0.0 => 0.0,
            deviation => ((value - mean) / deviation).clamp(-4.0, 4.0),
        });
        scaled.collect()
    }
}

/// All three.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Classifiers {
    scale: Scale,
    logistic: Linear,
    svm: Linear,
    mlp: Mlp,
}

impl Classifiers {
    /// Learns from rows.
    pub(crate) fn fit(rows: &[Row]) -> Self {
        let scale = Scale::of(rows);
        let scaled: Vec<_> = rows.iter().map(|(inputs, yes)| (scale.apply(inputs), *yes)).collect();
        Self {
            logistic: logistic::fit(&scaled),
            svm: svm::fit(&scaled),
            mlp: Mlp::fit(&scaled),
            scale,
        }
    }

    /// How much each is for yes: above 0, if it is.
    pub(crate) fn scores(&self, inputs: &[f64; SEEN]) -> [f64; 3] {
        let scaled = self.scale.apply(inputs);
        [self.logistic.score(&scaled), self.svm.score(&scaled), self.mlp.score(&scaled)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Yes where the first input is large, whatever the second is.
    pub(super) fn rows() -> Vec<Row> {
        let row = |n: u32| {
            let mut inputs = [0.0; SEEN];
            inputs[0] = f64::from(n % 20) / 10.0;
            inputs[1] = f64::from(n * 7 % 13);
            (inputs, n % 20 >= 12)
        };
        (0..200).map(row).collect()
    }

    #[test]
    fn all_three_learn_what_a_line_divides() {
        let classifiers = Classifiers::fit(&rows());
        for (inputs, yes) in rows() {
            for (name, score) in NAMES.iter().zip(classifiers.scores(&inputs)) {
                let near = (inputs[0] - 1.15).abs() < 0.06;
                assert!(near || (score > 0.0) == yes, "{name}: {score} of {}", inputs[0]);
            }
        }
    }

    #[test]
    fn the_same_rows_make_the_same_models() {
        let [one, other] =
            [(); 2].map(|()| serde_json::to_string(&Classifiers::fit(&rows())).unwrap());
        assert_eq!(one, other);
        let read: Classifiers = serde_json::from_str(&one).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), one);
    }

    #[test]
    fn one_answer_alone_can_be_learned() {
        let rows: Vec<_> = rows().into_iter().map(|(inputs, _)| (inputs, false)).collect();
        let classifiers = Classifiers::fit(&rows);
        assert!(classifiers.scores(&rows[0].0).iter().all(|score| *score < 0.0));
    }
}
