// SPDX-License-Identifier: BSD-2-Clause
//! Generates the operations of a rank, with parameters to replay them.

use indicatif::ProgressBar;
use matching::TagLayout;
use nic::params::Params;
use nic::trace::Op;

use super::flight::Flight;
use super::pattern::Pattern;
use super::random::mix;
use super::stream::{Place, play};
use crate::error::Error;
use crate::text::progress;

/// Returns the parameters of a job of this number of ranks over MPICH, with some of them set to
/// other values.
pub(crate) fn params(ranks: u32, set: &[(&str, &str)]) -> Result<Params, Error> {
    let ranks = ranks.to_string();
    let given = [("nprocs", ranks.as_str()), ("tag_layout", TagLayout::Mpich.name())];
    Ok(Params::from_lookup(|name| {
        let mut all = given.iter().chain(set);
        all.find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })?)
}

/// Returns a progress bar that counts steps.
pub(crate) fn progress(steps: u64) -> ProgressBar {
    progress::bar(steps, "{bar:30} {pos}/{len} steps, {elapsed} passed, {eta} left, {msg}")
}

/// Generates every operation of a rank, step by step.
pub(crate) fn generate(
    pattern: Pattern,
    place: Place,
    seed: u64,
    steps: std::ops::Range<u32>,
    flight: Flight,
    mut sink: impl FnMut(Op),
) {
    for step in steps {
        let seed = mix(mix(seed, u64::from(place.rank)), u64::from(step));
        for (number, phase) in pattern.step(place, step, flight).iter().enumerate() {
            play(phase, place, mix(seed, number as u64), |_, op| sink(op));
        }
    }
}
