// SPDX-License-Identifier: BSD-2-Clause
//! Draws bars: the search depths, and the reasons why elements were not in the table.

use matching::Histogram;

use crate::experiment::{Experiment, QueueKind};
use crate::plot::canvas::DARK;
use crate::plot::chart::TICK;
use crate::plot::signs::{AREA, BLUE, LEGEND, ORANGE, legend};
use crate::plot::{Align, Canvas, Chart, Scale, Sign};
use crate::text::{entries, percent, share, whole};

pub(crate) const DEPTHS_HEIGHT: u32 = 900;
/// Height of the row of one block reason.
const ROW: f64 = 46.0;
/// Smallest number of buckets that are drawn, so that bars do not become too wide.
const LEAST_BUCKETS: usize = 8;

/// Returns the counts of a histogram by number of the bucket.
fn counts(histogram: &Histogram) -> Vec<u64> {
    let mut counts = Vec::new();
    for (low, _, count) in histogram.buckets() {
        let at = (u64::BITS - low.leading_zeros()) as usize;
        counts.resize(at + 1, 0);
        counts[at] = count;
    }
    counts
}

/// Returns the lowest value of a bucket.
fn lowest(at: usize) -> u64 {
    if at < 2 { at as u64 } else { 1 << (at - 1) }
}

/// Draws histograms of search depths.
pub(crate) fn depths(canvas: &mut Canvas, experiment: &Experiment) {
    let signs = [(Sign::Area(BLUE), "found an element"), (Sign::Area(ORANGE), "found nothing")];
    legend(canvas, LEGEND, AREA, signs);
    for (queue, top) in QueueKind::BOTH.into_iter().zip([180.0, 560.0]) {
        let depth = &queue.of(&experiment.sum.tagged).search_depth;
        let (hit, miss) = (counts(&depth.hit), counts(&depth.miss));
        let buckets = hit.len().max(miss.len()).max(LEAST_BUCKETS);
        let most = hit.iter().chain(&miss).max().copied().unwrap_or(0);
        let (x, y) =
            (Scale::slots((0..buckets).map(|at| whole(lowest(at)))), Scale::tens(most as f64));
        let searches = depth.hit.total() + depth.miss.total();
        let note = format!(
            "{} search{} compared {}",
            whole(searches),
            if searches == 1 { "" } else { "es" },
            entries(depth.hit_entries + depth.miss_entries)
        );
        let title = match queue {
            QueueKind::Prq => "Searches of posted receives (PRQ), by messages that arrive",
            QueueKind::Umq => "Searches of unexpected messages (UMQ), by receives that are posted",
        };
        let chart = Chart {
            frame: (150.0, top, 1200.0, 250.0),
            title: title.to_owned(),
            note,
            x_label: "entries compared: from this number to below the next".to_owned(),
            y_label: "searches",
        };
        chart.draw(canvas, &x, &y);
        for (counts, from, colour) in [(&hit, 0.14, BLUE), (&miss, 0.51, ORANGE)] {
            for (at, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
                let left = chart.at(x.part(at as f64 + from), 0.0);
                let right = chart.at(x.part(at as f64 + from + 0.35), y.part(count as f64));
                canvas.filled(left, right, colour);
            }
        }
        for at in 0..buckets {
            let count = |counts: &[u64]| whole(counts.get(at).copied().unwrap_or(0));
            let text = format!(
                "{} to below {}\nfound an element: {}\nfound nothing: {}",
                whole(lowest(at)),
                entries(lowest(at + 1)),
                count(&hit),
                count(&miss)
            );
            chart.hover(canvas, x.part(at as f64), x.part(at as f64 + 1.0), text);
        }
    }
}

/// Returns true if any search was counted.
pub(crate) fn has_depths(experiment: &Experiment) -> bool {
    let depths = QueueKind::BOTH.map(|queue| &queue.of(&experiment.sum.tagged).search_depth);
    depths.into_iter().any(|depth| depth.hit.total() + depth.miss.total() > 0)
}

/// Returns the height of the picture of block reasons.
pub(crate) fn blocks_height(experiment: &Experiment) -> u32 {
    250 + (ROW * experiment.reasons().len().max(1) as f64) as u32
}

/// Draws bars of block reasons, by kind of traffic.
pub(crate) fn blocks(canvas: &mut Canvas, experiment: &Experiment) {
    let rows = experiment.reasons();
    let signs = [(Sign::Area(BLUE), "collective"), (Sign::Area(ORANGE), "point-to-point")];
    legend(canvas, LEGEND, AREA, signs);
    let most = rows.iter().map(|(.., [collective, rest])| collective + rest).max();
    // Slots are numbered from below upwards.
    let names = rows.iter().rev().map(|(queue, reason, _)| format!("{}: {reason}", queue.name()));
    let (x, y) = (Scale::linear(most.unwrap_or(0) as f64), Scale::slots(names));
    let chart = Chart {
        frame: (220.0, 150.0, 820.0, ROW * rows.len() as f64),
        title: String::new(),
        note: String::new(),
        x_label: "elements that went to the host".to_owned(),
        y_label: "",
    };
    chart.draw(canvas, &x, &y);
    for (at, (queue, reason, [collective, rest])) in rows.iter().rev().enumerate() {
        let (low, high) = (y.part(at as f64 + 0.2), y.part(at as f64 + 0.8));
        let (middle, end) = (x.part(*collective as f64), x.part((collective + rest) as f64));
        canvas.filled(chart.at(0.0, low), chart.at(middle, high), BLUE);
        canvas.filled(chart.at(middle, low), chart.at(end, high), ORANGE);
        let inserts = queue.of(&experiment.sum.tagged).inserts;
        let total = collective + rest;
        let label = format!(
            "{} ({} of the {})",
            whole(total),
            share(percent(total, inserts)),
            queue.name()
        );
        let text = format!(
            "{}: {reason}\ncollective: {}\npoint-to-point: {}",
            queue.name(),
            whole(*collective),
            whole(*rest)
        );
        canvas.hover(chart.at(0.0, high), chart.at(1.0, low), text);
        let (_, y) = chart.at(0.0, (low + high) / 2.0);
        canvas.text(&label, (1055.0, y - 7.5), TICK, DARK, Align::Left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_keep_their_places() {
        let mut histogram = Histogram::default();
        for depth in [0, 1, 5, 200] {
            histogram.record(depth);
        }
        assert_eq!(counts(&histogram), [1, 1, 0, 1, 0, 0, 0, 0, 1]);
        assert_eq!([0, 1, 2, 3, 8, 11].map(lowest), [0, 1, 2, 4, 128, 1024]);
    }
}
