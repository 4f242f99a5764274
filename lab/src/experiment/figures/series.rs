// SPDX-License-Identifier: BSD-2-Clause
//! Draws queues over time: their lengths, and the part of the elements that was in the table.

use nic::lengths::Lengths;
use plotters::prelude::RGBColor;

use crate::experiment::outcome::OTHERS;
use crate::experiment::{Experiment, QueueKind, Rank};
use crate::plot::canvas::GREY;
use crate::plot::signs::{AREA, BLUE, LEGEND, ORANGE, legend};
use crate::plot::{Canvas, Chart, Position, Scale, Sign};
use crate::text::{entries, whole};

pub(crate) const HEIGHT: u32 = 900;
/// Width by which a step reaches into the next one, so that no seam shows between them.
const OVERLAP: f64 = 1.0;
const PALE: RGBColor = RGBColor(0xb8, 0xb8, 0xb8);

/// The time axis: time in a suitable unit or, if no clock was read, the number of operations.
#[derive(Clone)]
struct Times {
    /// Label of the axis.
    label: String,
    /// Number of microseconds, or of operations, in one unit.
    per: f64,
    timed: bool,
    most: f64,
}

impl Times {
    /// Chooses the axis for the ranks with the longest queues. The panels of both queues have the
    /// same axis, because one is below the other.
    fn of_longest(experiment: &Experiment) -> Self {
        Self::of(QueueKind::BOTH.map(|queue| &experiment.worst(queue).lengths))
    }

    fn of(both: [&Lengths; 2]) -> Self {
        let of_all = |last: fn(&Lengths) -> u64| both.map(last).into_iter().max().unwrap_or(0);
        match of_all(|lengths| lengths.us.last().copied().unwrap_or(0)) {
            0 => {
                let operations = of_all(|lengths| {
                    let samples = lengths.us.len().saturating_sub(1) as u64;
                    samples * lengths.every
                });
                let most = operations as f64;
                Self { label: "posts and arrivals".to_owned(), per: 1.0, timed: false, most }
            }
            us => {
                let (unit, per) = match us {
                    0..10_000 => ("µs", 1.0),
                    10_000..10_000_000 => ("ms", 1e3),
                    _ => ("s", 1e6),
                };
                let label = format!("time since the run began ({unit})");
                Self { label, per, timed: true, most: us as f64 / per }
            }
        }
    }

    /// Returns the positions of the samples of a series on the axis.
    fn positions(&self, lengths: &Lengths) -> Vec<f64> {
        if self.timed {
            return lengths.us.iter().map(|&us| us as f64 / self.per).collect();
        }
        (0..lengths.us.len() as u64).map(|at| (at * lengths.every) as f64).collect()
    }
}

/// A panel of one queue: its frame, its scales and its ranks, those with the longest queues first.
struct LengthPanel<'a> {
    queue: QueueKind,
    ranks: Vec<&'a Rank>,
    times: Times,
    frame: (f64, f64, f64, f64),
    y: Scale,
}

impl<'a> LengthPanel<'a> {
    fn of(experiment: &'a Experiment, queue: QueueKind, times: Times, others: usize) -> Self {
        let worst = experiment.worst(queue);
        let mut rest: Vec<_> =
            experiment.ranks.iter().filter(|rank| rank.number != worst.number).collect();
        rest.sort_by_key(|rank| std::cmp::Reverse(queue.of(&rank.tagged).high_water));
        let mut ranks = vec![worst];
        ranks.extend(rest.into_iter().take(others));
        let top = if queue == QueueKind::Prq { 180.0 } else { 560.0 };
        let counters = queue.of(&worst.tagged);
        // The size of the table is drawn only if it is at most half above the high-water mark.
        let most = match counters.entries {
            entries if entries <= counters.high_water.saturating_mul(3) / 2 => {
                entries.max(counters.high_water)
            }
            _ => counters.high_water,
        };
        Self {
            queue,
            times,
            ranks,
            frame: (150.0, top, 1200.0, 250.0),
            y: Scale::linear(most.max(1) as f64),
        }
    }

    /// Draws the axes. The caller draws the series next, and then calls [`Self::end`].
    fn begin(&self, canvas: &mut Canvas) -> Chart {
        let worst = self.ranks[0];
        let counters = self.queue.of(&worst.tagged);
        let mut note = format!(
            "high-water mark {}; table of {}",
            whole(counters.high_water),
            entries(counters.entries)
        );
        match worst.lengths.us.len() {
            0 => note += "; no lengths were recorded",
            _ if worst.lengths.every == 1 => note += "; a sample for each operation",
            _ => {
                note += &format!("; the longest of each {} operations", whole(worst.lengths.every));
            }
        }
        let title = format!("{}, rank {}", self.queue.long_name(), worst.number);
        let x_label = self.times.label.clone();
        let chart = Chart { frame: self.frame, title, note, x_label, y_label: "elements" };
        chart.draw(canvas, &Scale::span(self.times.most), &self.y);
        chart
    }

    /// Draws the size of the table, if it is on the axis, and shows the samples to the pointer.
    fn end(&self, canvas: &mut Canvas, chart: &Chart) {
        let (lengths, x) = (&self.ranks[0].lengths, Scale::span(self.times.most));
        let [table, host] = self.queue.lengths(lengths);
        let mut from = 0.0;
        for (at, time) in self.times.positions(lengths).into_iter().enumerate() {
            let text = format!(
                "{} in the table, {} on the host\n{}: {}",
                whole(table[at]),
                whole(host[at]),
                self.times.label,
                whole(time.round() as u64)
            );
            let to = x.part(time).min(1.0);
            chart.hover(canvas, std::mem::replace(&mut from, to), to, text);
        }
        let entries = self.queue.of(&self.ranks[0].tagged).entries;
        let part = self.y.part(entries as f64);
        if part <= 1.0 && entries > 0 {
            canvas.dashed(chart.at(0.0, part), chart.at(1.0, part), 2.0, GREY);
        }
    }

    /// Returns the points of a line on the chart. `value` returns the value of a sample by its
    /// index.
    fn line(
        &self,
        lengths: &Lengths,
        value: impl Fn(usize) -> u64,
        chart: &Chart,
    ) -> Vec<(f64, f64)> {
        let x = Scale::span(self.times.most);
        let positions = self.times.positions(lengths).into_iter().enumerate();
        let shown = positions.take_while(|(_, time)| *time <= self.times.most);
        shown.map(|(at, time)| chart.at(x.part(time), self.y.part(value(at) as f64))).collect()
    }
}

/// Makes a line with steps: the value of a sample holds from the time of the previous sample to its
/// own time.
fn steps(line: &[Position]) -> Vec<Position> {
    let corners = line.windows(2).flat_map(|pair| [pair[0], (pair[0].0, pair[1].1)]);
    let mut steps: Vec<_> = corners.chain(line.last().copied()).collect();
    // If two equal points followed each other, `pieces` would not notice that a line turns back.
    steps.dedup();
    steps
}

/// Cuts a line into pieces that never turn back, because plotters draws a thick line without width
/// where it turns back.
fn pieces(line: &[Position]) -> Vec<&[Position]> {
    let turns_back = |corner: &[Position]| {
        let [a, b, c] = [corner[0], corner[1], corner[2]];
        (b.0 - a.0) * (c.0 - b.0) + (b.1 - a.1) * (c.1 - b.1) < 0.0
    };
    let mut pieces = Vec::new();
    let mut start = 0;
    for (at, corner) in line.windows(3).enumerate() {
        if turns_back(corner) {
            pieces.push(&line[start..at + 2]);
            start = at + 1;
        }
    }
    pieces.push(&line[start..]);
    pieces
}

/// Draws the lengths of the longest queues.
pub(crate) fn lengths(canvas: &mut Canvas, experiment: &Experiment) {
    let mut signs = vec![(Sign::Line(BLUE), "rank with the longest queue")];
    if experiment.ranks.len() > 1 {
        signs.push((Sign::Line(PALE), "ranks that follow"));
    }
    signs.push((Sign::Dashes, "size of the table"));
    legend(canvas, LEGEND, AREA, signs);
    let times = Times::of_longest(experiment);
    for queue in QueueKind::BOTH {
        let panel = LengthPanel::of(experiment, queue, times.clone(), OTHERS);
        let chart = panel.begin(canvas);
        for (at, rank) in panel.ranks.iter().enumerate().rev() {
            let [table, host] = queue.lengths(&rank.lengths);
            let line = steps(&panel.line(&rank.lengths, |at| table[at] + host[at], &chart));
            let (width, colour) = if at == 0 { (3.0, BLUE) } else { (1.5, PALE) };
            for piece in pieces(&line) {
                canvas.line(piece, width, colour);
            }
        }
        panel.end(canvas, &chart);
    }
}

/// Draws the elements in the table, and on top of them those on the host.
pub(crate) fn occupancy(canvas: &mut Canvas, experiment: &Experiment) {
    let signs = [
        (Sign::Area(BLUE), "in the table"),
        (Sign::Area(ORANGE), "on the host"),
        (Sign::Dashes, "size of the table"),
    ];
    legend(canvas, LEGEND, AREA, signs);
    let times = Times::of_longest(experiment);
    for queue in QueueKind::BOTH {
        let panel = LengthPanel::of(experiment, queue, times.clone(), 0);
        let chart = panel.begin(canvas);
        let lengths = &panel.ranks[0].lengths;
        let [table, host] = queue.lengths(lengths);
        let foot = panel.line(lengths, |_| 0, &chart);
        let middle = panel.line(lengths, |at| table[at], &chart);
        let top = panel.line(lengths, |at| table[at] + host[at], &chart);
        for (low, high, colour) in [(&foot, &middle, BLUE), (&middle, &top, ORANGE)] {
            // The value of a sample holds from the time of the previous sample to its own time.
            for at in 1..low.len() {
                let (from, to) = ((low[at - 1].0, low[at].1), (low[at].0 + OVERLAP, high[at].1));
                if from.1 > to.1 {
                    canvas.filled(from, to, colour);
                }
            }
        }
        panel.end(canvas, &chart);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_holds_since_the_previous_sample() {
        let line = [(0.0, 5.0), (1.0, 2.0), (4.0, 2.0)];
        let stairs = [(0.0, 5.0), (0.0, 2.0), (1.0, 2.0), (4.0, 2.0)];
        assert_eq!(steps(&line), stairs);
        assert_eq!((steps(&line[..1]), steps(&[])), (line[..1].to_vec(), Vec::new()));
    }

    #[test]
    fn a_line_is_cut_where_it_turns_back() {
        let line = [(0.0, 0.0), (1.0, 0.0), (1.0, 5.0), (1.0, 2.0), (2.0, 2.0)];
        assert_eq!(pieces(&line), [&line[..3], &line[2..]]);
        assert_eq!(pieces(&line[..1]), [&line[..1]]);
        assert_eq!(pieces(&[]), [&line[..0]]);
    }

    #[test]
    fn time_has_a_unit_that_suits_it_and_operations_stand_in_for_it() {
        let series = |us: &[u64]| Lengths { every: 4, us: us.to_vec(), ..Lengths::default() };
        let label = |us| Times::of([&series(us), &series(&[9])]).label;
        assert_eq!(label(&[0, 9_999]), "time since the run began (µs)");
        assert_eq!(label(&[0, 10_000]), "time since the run began (ms)");
        assert_eq!(label(&[0, 10_000_000]), "time since the run began (s)");
        let untimed = series(&[0, 0, 0]);
        let times = Times::of([&Lengths::default(), &untimed]);
        assert_eq!((times.label.as_str(), times.most), ("posts and arrivals", 8.0));
        assert_eq!(times.positions(&untimed), [0.0, 4.0, 8.0]);
        assert_eq!(Times::of([&Lengths::default(); 2]).most, 0.0);
    }
}
