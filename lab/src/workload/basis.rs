// SPDX-License-Identifier: BSD-2-Clause
//! The origin of our figures next to those of papers, and the criterion for agreement.

use strum::IntoStaticStr;

/// The origin of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Basis {
    /// A constant or formula of the workload, chosen so that the figure comes out.
    Fitted,
    /// Follows from the algorithm and the workload, which were not chosen for it.
    Predicted,
    /// Given on the command line.
    Given,
}

impl Basis {
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// Largest difference from a paper's figure that counts as agreement: 30 % of the paper's figure.
const TOLERANCE: f64 = 0.3;

/// Returns true if our figure agrees with the paper's.
pub(crate) fn agree(ours: f64, paper: f64) -> bool {
    (ours - paper).abs() <= TOLERANCE * paper
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_per_cent_of_the_papers_figure_is_agreement() {
        for (ours, paper, expected) in
            [(1.29, 1.0, true), (0.71, 1.0, true), (1.31, 1.0, false), (0.69, 1.0, false)]
        {
            assert_eq!(agree(ours, paper), expected, "{ours} and {paper}");
        }
    }
}
