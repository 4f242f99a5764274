// SPDX-License-Identifier: BSD-2-Clause
//! Replays the traces of an experiment to get the data of pictures and pages.

use rayon::prelude::*;

use super::fill::Makeup;
use super::{Experiment, QueueKind, Series, TimeWindow, endpoints, fill};
use crate::capacity::{Swept, curve};
use crate::error::Error;
use crate::traces::play;

/// Results of the replays.
#[derive(Debug, Default)]
pub(crate) struct Material {
    /// Origin of the elements in the queues of each rank.
    pub(crate) makeups: Vec<Makeup>,
    /// The capacity curve, see [`curve::points`].
    pub(crate) curve: Option<Swept>,
    /// Each queue that had elements, on the rank where it was longest: the index of its makeup and
    /// its series.
    pub(crate) longest: Vec<(QueueKind, usize, Series)>,
}

impl Material {
    /// Replays the traces for the makeups and, in parallel, for the curve. Then replays the traces
    /// of the ranks with the longest queues once more for the series. Series of all ranks, from the
    /// first replay, would take too much memory.
    pub(crate) fn of(experiment: &Experiment) -> Result<Self, Error> {
        let traces = &experiment.traces;
        let (makeups, curve) = play::with_bar(traces, 2, |bar| {
            let (makeups, curve) = rayon::join(
                || fill::of(traces, TimeWindow::ALL, bar),
                || curve::points(traces, bar),
            );
            Ok((makeups?, curve?))
        })?;
        let worst: Vec<_> = (QueueKind::BOTH.into_iter())
            .filter_map(|queue| fill::worst_at(&makeups, queue).map(|at| (queue, at)))
            .filter(|(queue, at)| makeups[*at].of(*queue).mark > 0)
            .collect();
        let mut places: Vec<_> = worst.iter().map(|(_, at)| *at).collect();
        places.dedup();
        let tagged = endpoints::tagged(traces);
        let of_worst: Vec<_> = places.iter().map(|&at| tagged[at].clone()).collect();
        let series: Vec<_> = play::with_bar(&of_worst, 1, |bar| {
            let each = of_worst.par_iter().zip(&places);
            each.map(|(trace, &at)| fill::series(traces, trace, &makeups[at], bar)).collect()
        })?;
        let longest = worst.into_iter().filter_map(|(queue, at)| {
            let place = places.iter().position(|place| *place == at)?;
            Some((queue, at, series[place].clone()))
        });
        Ok(Self { longest: longest.collect(), makeups, curve })
    }
}
