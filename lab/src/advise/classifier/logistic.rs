// SPDX-License-Identifier: BSD-2-Clause
//! Logistic regression, by gradient descent with Nesterov's momentum.
//!
//! ```text
//! p    = 1 / (1 + exp(-(w . x + b)))
//! loss = sum of weight * cross entropy(p, y) / n + DECAY / 2 |w|^2
//! ```

use serde::{Deserialize, Serialize};

use super::linear::{Linear, balance};
use crate::advise::math::{dot, logistic};

const STEPS: usize = 400;
const RATE: f64 = 0.5;
const MOMENTUM: f64 = 0.9;
const DECAY: f64 = 0.003;

/// Learns from scaled rows.
pub(super) fn fit(rows: &[(Vec<f64>, bool)]) -> Linear {
    let Some((first, _)) = rows.first() else {
        return Linear { weights: Vec::new(), bias: 0.0 };
    };
    let (width, n, balance) = (first.len(), rows.len() as f64, balance(rows));
    // The last is the bias.
    let (mut weights, mut speed) = (vec![0.0; width + 1], vec![0.0; width + 1]);
    for _ in 0..STEPS {
        let ahead: Vec<_> =
            weights.iter().zip(&speed).map(|(weight, speed)| weight + MOMENTUM * speed).collect();
        let mut slope: Vec<_> = ahead.iter().map(|weight| DECAY * weight).collect();
        slope[width] = 0.0;
        for (inputs, yes) in rows {
            let p = logistic(dot(&ahead[..width], inputs) + ahead[width]);
            let off = balance[usize::from(*yes)] * (p - f64::from(u8::from(*yes))) / n;
            slope.iter_mut().zip(inputs).for_each(|(slope, input)| *slope += off * input);
            slope[width] += off;
        }
        for ((weight, speed), slope) in weights.iter_mut().zip(&mut speed).zip(&slope) {
            *speed = MOMENTUM * *speed - RATE / 4.0 * slope;
            *weight += *speed;
        }
    }
    let bias = weights.pop().unwrap_or(0.0);
    Linear { weights, bias }
}

/// A probability of a score (Platt, *Probabilistic outputs for support vector machines*, 1999):
/// logistic regression on that alone, of scores of rows that the classifier did not learn from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Platt {
    slope: f64,
    offset: f64,
}

impl Platt {
    /// Of scores and answers, by Newton's method. The slope is not negative: a score that says yes
    /// is no reason for no.
    pub(crate) fn fit(scores: &[(f64, bool)]) -> Self {
        const STEPS: usize = 50;
        const DECAY: f64 = 1e-3;
        let yes = scores.iter().filter(|(_, yes)| *yes).count() as f64;
        let no = scores.len() as f64 - yes;
        // Platt's targets: certainty takes more answers than there are.
        let targets = [1.0 / (no + 2.0), (yes + 1.0) / (yes + 2.0)];
        let (mut slope, mut offset) = (1.0, 0.0);
        for _ in 0..STEPS {
            let (mut g, mut h) = ([DECAY * slope, DECAY * offset], [DECAY, 0.0, DECAY]);
            for &(score, yes) in scores {
                let p = logistic(slope * score + offset);
                let off = p - targets[usize::from(yes)];
                let curve = p * (1.0 - p);
                g = [g[0] + off * score, g[1] + off];
                h = [h[0] + curve * score * score, h[1] + curve * score, h[2] + curve];
            }
            let det = (h[0] * h[2] - h[1] * h[1]).max(1e-12);
            let step = [(h[2] * g[0] - h[1] * g[1]) / det, (h[0] * g[1] - h[1] * g[0]) / det];
            let cut = |step: f64| step.clamp(-1.0, 1.0);
            (slope, offset) = ((slope - cut(step[0])).max(0.0), offset - cut(step[1]));
        }
        Self { slope, offset }
    }

    pub(crate) fn probability(self, score: f64) -> f64 {
        logistic(self.slope * score + self.offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_the_share_of_those_with_the_score() {
        // Of scores of -1 one in ten, of 1 three in four.
        let scores: Vec<_> = (0..400)
            .map(|n| if n % 2 == 0 { (-1.0, n % 20 == 0) } else { (1.0, n % 8 != 1) })
            .collect();
        let platt = Platt::fit(&scores);
        assert!((platt.probability(-1.0) - 0.1).abs() < 0.02, "{}", platt.probability(-1.0));
        assert!((platt.probability(1.0) - 0.75).abs() < 0.02, "{}", platt.probability(1.0));
        let never = Platt::fit(&[(0.0, false); 50]);
        assert!(never.probability(0.0) < 0.1);
    }
}
