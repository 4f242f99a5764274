// SPDX-License-Identifier: BSD-2-Clause
//! Times of replays to each engine.
//!
//! ```text
//! for each round, for each engine:           a slow moment of the machine slows all engines
//!     for each trace: an empty context, all operations       at least a millisecond in all
//! time of an engine      median of its rounds
//! ratio of two engines   median of the ratios of both times in one round
//! ```
//! Each number has the range of 80 % of the rounds.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use nic::config::DeviceConfig;
use serde::Serialize;

use super::contender::Contender;
use super::stream::Stream;
use crate::error::Error;
use crate::stats;

/// Rounds of a measurement; fewer if it takes longer than ten seconds.
const ROUNDS: usize = 15;
const FEWEST_ROUNDS: usize = 5;
const LONGEST: Duration = Duration::from_secs(10);
/// Shortest time of an engine in a round. A short stream is replayed several times.
const SPAN: Duration = Duration::from_millis(1);
/// Most replays of an engine in a round, because making a context takes time, too.
const REPLAYS: u32 = 100;

/// A median, and the range of 80 % of the values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Middle {
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Middle {
    pub(crate) fn of(values: Vec<f64>) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let sorted = stats::sorted(values);
        let at = |share| stats::quantile(&sorted, share);
        Self { median: at(0.5), low: at(0.1), high: at(0.9) }
    }
}

/// Nanoseconds that each engine took for all streams, by round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds(Vec<Vec<f64>>);

impl Rounds {
    /// Measures all engines in turn, with tables of these entries (PRQ, UMQ). It does 15 rounds, or
    /// as many as ten seconds allow, but at least 5.
    pub(crate) fn measure(
        streams: &[Stream],
        contenders: &[Contender],
        entries: [u64; 2],
        bar: &ProgressBar,
    ) -> Result<Self, Error> {
        let devices =
            |of: &Contender| streams.iter().map(|stream| stream.device(*of, entries)).collect();
        let configs: Vec<Vec<DeviceConfig>> =
            contenders.iter().map(devices).collect::<Result<_, Error>>()?;
        let mut rounds = vec![Vec::with_capacity(ROUNDS); contenders.len()];
        let began = Instant::now();
        for round in 0..ROUNDS {
            if round >= FEWEST_ROUNDS && began.elapsed() > LONGEST {
                bar.inc(((ROUNDS - round) * contenders.len()) as u64);
                break;
            }
            for (times, configs) in rounds.iter_mut().zip(&configs) {
                times.push(time(streams, configs)?);
                bar.inc(1);
            }
        }
        Ok(Self(rounds))
    }

    /// Returns the steps of a progress bar for this number of engines.
    pub(crate) const fn steps(contenders: usize) -> u64 {
        (ROUNDS * contenders) as u64
    }

    /// Returns the times of an engine, each divided by a number such as that of messages.
    pub(crate) fn of(&self, at: usize, by: f64) -> impl Iterator<Item = f64> {
        self.0[at].iter().map(move |ns| ns / by)
    }

    /// Returns the ratios of the times of two engines, round by round.
    pub(crate) fn beside(&self, at: usize, other: usize) -> impl Iterator<Item = f64> {
        self.0[at].iter().zip(&self.0[other]).map(|(ns, other)| ns / other)
    }
}

/// Returns the nanoseconds of a replay of all streams, one after the other. Short streams are
/// replayed several times, and the mean is returned.
fn time(streams: &[Stream], configs: &[DeviceConfig]) -> Result<f64, Error> {
    let (mut spent, mut replays) = (Duration::ZERO, 0);
    while replays == 0 || spent < SPAN && replays < REPLAYS {
        for (stream, config) in streams.iter().zip(configs) {
            spent += stream.time(config)?;
        }
        replays += 1;
    }
    Ok(spent.as_nanos() as f64 / f64::from(replays))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_leaves_out_a_tenth_on_each_side() {
        let values = (1..=21).rev().map(f64::from).collect();
        assert_eq!(Middle::of(values), Middle { median: 11.0, low: 3.0, high: 19.0 });
        assert_eq!(Middle::of(vec![3.0]), Middle { median: 3.0, low: 3.0, high: 3.0 });
        assert_eq!(Middle::of(Vec::new()), Middle::default());
    }

    #[test]
    fn a_slow_machine_changes_no_ratio() {
        let rounds = Rounds(vec![vec![10.0, 40.0], vec![20.0, 80.0]]);
        assert_eq!(rounds.beside(0, 1).collect::<Vec<_>>(), [0.5, 0.5]);
        assert_eq!(rounds.of(1, 10.0).collect::<Vec<_>>(), [2.0, 8.0]);
    }
}
