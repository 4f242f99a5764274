// SPDX-License-Identifier: BSD-2-Clause
//! A multilayer perceptron of one hidden layer, by Adam (Kingma, Ba, *Adam: a method for stochastic
//! optimization*, 2015) on all rows at once.
//!
//! ```text
//! h = tanh(A x + a);  score = v . h + c;  p = 1 / (1 + exp(-score))
//! loss = sum of weight * cross entropy(p, y) / n + DECAY / 2 |A, v|^2
//! ```

use serde::{Deserialize, Serialize};

use super::linear::balance;
use crate::advise::math::{dot, logistic, tanh};
use crate::workload::random::mix;

const HIDDEN: usize = 6;
const EPOCHS: usize = 150;
const RATE: f64 = 0.03;
const DECAY: f64 = 0.003;

/// See the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Mlp {
    /// Weights of each hidden unit and its bias, one unit behind the other; then those of the
    /// output and its bias.
    weights: Vec<f64>,
}

impl Mlp {
    fn new(inputs: usize) -> Self {
        let count = HIDDEN * (inputs + 1) + HIDDEN + 1;
        // Between -0.3 and 0.3, as the number of the weight tells.
        let weight = |at: u64| (mix(1, at) >> 11) as f64 / (1_u64 << 53) as f64 * 0.6 - 0.3;
        Self { weights: (0..count as u64).map(weight).collect() }
    }

    /// Learns from scaled rows.
    pub(super) fn fit(rows: &[(Vec<f64>, bool)]) -> Self {
        const BETA: [f64; 2] = [0.9, 0.999];
        let width = rows.first().map_or(0, |(inputs, _)| inputs.len());
        let mut mlp = Self::new(width);
        let mut moments = vec![[0.0; 2]; mlp.weights.len()];
        let mut decayed = BETA;
        for _ in 0..EPOCHS {
            let slope = mlp.slope(rows);
            for ((weight, moment), slope) in mlp.weights.iter_mut().zip(&mut moments).zip(slope) {
                moment[0] = BETA[0] * moment[0] + (1.0 - BETA[0]) * slope;
                moment[1] = BETA[1] * moment[1] + (1.0 - BETA[1]) * slope * slope;
                let mean = moment[0] / (1.0 - decayed[0]);
                let square = moment[1] / (1.0 - decayed[1]);
                *weight -= RATE * mean / (square.sqrt() + 1e-8);
            }
            decayed = [decayed[0] * BETA[0], decayed[1] * BETA[1]];
        }
        mlp
    }

    /// What the hidden units make of an input.
    fn hidden(&self, inputs: &[f64]) -> [f64; HIDDEN] {
        let width = inputs.len();
        let mut hidden = [0.0; HIDDEN];
        for (unit, weights) in hidden.iter_mut().zip(self.weights.chunks(width + 1)) {
            *unit = tanh(dot(&weights[..width], inputs) + weights[width]);
        }
        hidden
    }

    fn output(&self, hidden: &[f64; HIDDEN]) -> f64 {
        let (_, output) = self.weights.split_at(self.weights.len() - HIDDEN - 1);
        dot(&output[..HIDDEN], hidden) + output[HIDDEN]
    }

    pub(super) fn score(&self, inputs: &[f64]) -> f64 {
        self.output(&self.hidden(inputs))
    }

    /// The gradient of the loss.
    fn slope(&self, rows: &[(Vec<f64>, bool)]) -> Vec<f64> {
        let (n, balance) = (rows.len() as f64, balance(rows));
        let mut slope = vec![0.0; self.weights.len()];
        let first_output = self.weights.len() - HIDDEN - 1;
        for (inputs, yes) in rows {
            let hidden = self.hidden(inputs);
            let p = logistic(self.output(&hidden));
            let off = balance[usize::from(*yes)] * (p - f64::from(u8::from(*yes))) / n;
            let width = inputs.len();
            for (unit, value) in hidden.iter().enumerate() {
                let back = off * self.weights[first_output + unit] * (1.0 - value * value);
                let of = &mut slope[unit * (width + 1)..][..=width];
                of.iter_mut().zip(inputs).for_each(|(slope, input)| *slope += back * input);
                of[width] += back;
                slope[first_output + unit] += off * value;
            }
            slope[first_output + HIDDEN] += off;
        }
        for at in self.decayed() {
            slope[at] += DECAY * self.weights[at];
        }
        slope
    }

    /// All weights but the biases.
    fn decayed(&self) -> impl Iterator<Item = usize> + use<> {
        let output = self.weights.len() - HIDDEN - 1;
        let width = output / HIDDEN - 1;
        let hidden = (0..output).filter(move |at| at % (width + 1) != width);
        hidden.chain(output..output + HIDDEN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(mlp: &Mlp, rows: &[(Vec<f64>, bool)]) -> f64 {
        let (n, balance) = (rows.len() as f64, balance(rows));
        let entropy = rows.iter().map(|(inputs, yes)| {
            let p = logistic(mlp.score(inputs));
            -balance[usize::from(*yes)] * if *yes { p.ln() } else { (1.0 - p).ln() } / n
        });
        let decay = mlp.decayed().map(|at| mlp.weights[at] * mlp.weights[at]).sum::<f64>();
        entropy.sum::<f64>() + DECAY / 2.0 * decay
    }

    #[test]
    fn the_gradient_is_that_of_the_loss() {
        let row = |n: u32| (vec![f64::from(n % 5) - 2.0, f64::from(n % 3)], n.is_multiple_of(4));
        let rows: Vec<_> = (0..30).map(row).collect();
        let mlp = Mlp::new(2);
        let slope = mlp.slope(&rows);
        for (at, slope) in slope.into_iter().enumerate() {
            const STEP: f64 = 1e-5;
            let moved = |by: f64| {
                let mut mlp = mlp.clone();
                mlp.weights[at] += by;
                loss(&mlp, &rows)
            };
            let numerical = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            assert!((numerical - slope).abs() < 1e-8, "weight {at}: {numerical}, {slope}");
        }
    }

    #[test]
    fn what_no_line_divides_is_learned() {
        let rows: Vec<_> = (0..64_u32)
            .map(|n| {
                let [x, y] = [n % 8, n / 8].map(|of| f64::from(of) / 2.0 - 1.75);
                (vec![x, y], (x > 0.0) != (y > 0.0))
            })
            .collect();
        // What it learned by then is enough to tell its sides apart.
        let mlp = Mlp::fit(&rows);
        let right = rows.iter().filter(|(inputs, yes)| (mlp.score(inputs) > 0.0) == *yes).count();
        assert!(right >= 60, "{right} of 64");
    }
}
