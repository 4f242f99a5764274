// SPDX-License-Identifier: BSD-2-Clause
//! What a figure of ours is worth beside a paper's: how it came about, and when the two
//! agree.

use strum::IntoStaticStr;

/// How a figure came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Basis {
    /// A constant or formula of the workload, chosen so that it comes out.
    Fitted,
    /// Follows from the algorithm and the workload, without having been aimed at.
    Predicted,
    /// Asked for on the command line.
    Given,
}

impl Basis {
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }
}

/// How far ours may be from a paper's figure and still count as the same: 30 % of the
/// latter.
const TOLERANCE: f64 = 0.3;

/// Whether ours is as the paper's.
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
