// SPDX-License-Identifier: BSD-2-Clause
//! A line that divides the answers, and what each row weighs in finding it.

use serde::{Deserialize, Serialize};

use crate::advise::math::dot;

/// A weight for each input, and one for none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Linear {
    pub(super) weights: Vec<f64>,
    pub(super) bias: f64,
}

impl Linear {
    pub(super) fn score(&self, inputs: &[f64]) -> f64 {
        dot(&self.weights, inputs) + self.bias
    }
}

/// Weights of rows, so that both answers have the same share: few streams of one kind must not
/// drown in those of the other.
pub(super) fn balance<T>(rows: &[(T, bool)]) -> [f64; 2] {
    let yes = rows.iter().filter(|(_, yes)| *yes).count() as f64;
    let all = rows.len() as f64;
    [all - yes, yes].map(|of| if of > 0.0 { (all / 2.0 / of).min(4.0) } else { 0.0 })
}
