// SPDX-License-Identifier: BSD-2-Clause
//! What pictures and pages take from traces.

use rayon::prelude::*;

use super::fill::{self, Makeup, Series, Window};
use super::outcome::Experiment;
use super::rank::Queue;
use crate::capacity::curve;
use crate::capacity::verdict::Swept;
use crate::error::Error;
use crate::traces::play;

/// What was played for them, whatever is drawn of it.
#[derive(Debug, Default)]
pub(crate) struct Material {
    /// Who filled the queues of each rank.
    pub(crate) makeups: Vec<Makeup>,
    /// The capacity curve, where the traces have one.
    pub(crate) curve: Option<Swept>,
    /// Each queue on the rank where it was longest, by place of the makeup.
    pub(crate) longest: Vec<(Queue, usize, Series)>,
}

impl Material {
    /// Plays the traces twice, side by side, and once more those of the ranks with the longest
    /// queues: to keep the series of all ranks would take more memory than that takes time.
    pub(crate) fn of(experiment: &Experiment) -> Result<Self, Error> {
        let traces = &experiment.traces;
        let bar = play::bar(traces, 2);
        let (makeups, curve) =
            rayon::join(|| fill::of(traces, Window::ALL, &bar), || curve::points(traces, &bar));
        bar.finish_and_clear();
        let (makeups, curve) = (makeups?, curve?);
        let worst: Vec<_> = (Queue::BOTH.into_iter())
            .filter_map(|queue| fill::worst_at(&makeups, queue).map(|at| (queue, at)))
            .filter(|(queue, at)| makeups[*at].of(*queue).mark > 0)
            .collect();
        let mut places: Vec<_> = worst.iter().map(|(_, at)| *at).collect();
        places.dedup();
        let tagged = fill::tagged(traces);
        let of_worst: Vec<_> = places.iter().map(|&at| tagged[at].clone()).collect();
        let bar = play::bar(&of_worst, 1);
        let series: Result<Vec<_>, _> = (of_worst.par_iter().zip(&places))
            .map(|(trace, &at)| fill::series(traces, trace, &makeups[at], &bar))
            .collect();
        bar.finish_and_clear();
        let series = series?;
        let longest = worst.into_iter().filter_map(|(queue, at)| {
            let place = places.iter().position(|place| *place == at)?;
            Some((queue, at, series[place].clone()))
        });
        Ok(Self { longest: longest.collect(), makeups, curve })
    }
}
