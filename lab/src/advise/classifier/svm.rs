// SPDX-License-Identifier: BSD-2-Clause
//! A linear support vector machine, by coordinate descent in the dual (Hsieh, Chang, Lin, Keerthi,
//! Sundararajan, *A dual coordinate descent method for large-scale linear SVM*, ICML 2008).
//!
//! ```text
//! for each row i in an order of its own, many times:
//!     g = y_i (w . x_i) - 1
//!     a_i' = min(max(a_i - g / |x_i|^2, 0), C_i);  w += (a_i' - a_i) y_i x_i
//! ```
//! The bias is the weight of an input that is always 1.

use super::linear::{Linear, balance};
use crate::advise::math::dot;
use crate::workload::random::Permutation;

const EPOCHS: u64 = 60;
const C: f64 = 1.0;

/// Learns from scaled rows.
pub(super) fn fit(rows: &[(Vec<f64>, bool)]) -> Linear {
    let Some((first, _)) = rows.first() else {
        return Linear { weights: Vec::new(), bias: 0.0 };
    };
    let balance = balance(rows);
    let mut weights = vec![0.0; first.len()];
    let mut bias = 0.0;
    let mut alphas = vec![0.0; rows.len()];
    for epoch in 0..EPOCHS {
        let order = Permutation::new(rows.len() as u64, epoch);
        for place in 0..rows.len() as u64 {
            let at = order.at(place) as usize;
            let (inputs, yes) = &rows[at];
            let sign = if *yes { 1.0 } else { -1.0 };
            let gradient = sign * (dot(&weights, inputs) + bias) - 1.0;
            let most = C * balance[usize::from(*yes)];
            let alpha = (alphas[at] - gradient / (dot(inputs, inputs) + 1.0)).clamp(0.0, most);
            let step = (alpha - alphas[at]) * sign;
            alphas[at] = alpha;
            weights.iter_mut().zip(inputs).for_each(|(weight, input)| *weight += step * input);
            bias += step;
        }
    }
    Linear { weights, bias }
}
