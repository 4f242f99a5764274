// SPDX-License-Identifier: BSD-2-Clause
//! Draws the ranks as squares of a grid, coloured as in the K-means matching paper. One picture
//! shows the entries that the searches of each rank compared, another the entries that its host
//! engine traversed.

use plotters::prelude::{ColorMap, RGBColor, ViridisRGB};

use crate::experiment::{Experiment, QueueKind, Rank};
use crate::plot::canvas::{DARK, GREY, LIGHT};
use crate::plot::chart::{TICK, sentence};
use crate::plot::signs::MARGIN;
use crate::plot::{Align, Canvas, Scale};
use crate::text::{entries, whole};

/// Largest number of squares. With more ranks, one square stands for several.
const SQUARES: usize = 4096;
/// Largest width and height of a grid.
const GRID: f64 = 540.0;
const TOP: f64 = 190.0;
const LEFTS: [f64; 2] = [110.0, 740.0];
/// Largest ratio of the highest to the lowest value for which a scale is linear.
const WIDE: f64 = 20.0;

/// The grids of PRQ and UMQ.
pub(crate) struct Map {
    what: &'static str,
    /// Values of the PRQ and the UMQ, by square.
    values: [Vec<u64>; 2],
    /// Number of the first rank.
    first: u32,
    /// Number of ranks of each square.
    each: usize,
    columns: usize,
    rows: usize,
}

/// The smallest value that is not 0, and the largest value.
struct Range {
    low: f64,
    high: f64,
}

impl Range {
    fn is_wide(&self) -> bool {
        self.high > WIDE * self.low
    }

    /// Returns the place of a value on the scale, from 0 to 1. A linear scale starts at 0, so that
    /// values that are nearly equal on all ranks have nearly equal colours.
    fn part(&self, value: f64) -> f64 {
        match self.is_wide() {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => value / self.high,
        }
    }

    /// Returns the positions of ticks, from 0 to 1, and their labels: even steps on a linear scale,
    /// otherwise both ends and the powers of ten between them.
    fn ticks(&self) -> Vec<(f64, String)> {
        if !self.is_wide() {
            let scale = Scale::span(self.high);
            let labelled = |(part, label): (f64, &str)| match self.high < 10.0 {
                true => (part, label.to_owned()),
                false => (part, short(part * self.high)),
            };
            return scale.ticks().map(labelled).collect();
        }
        let tick = |value: f64| (self.part(value), short(value));
        let tens = (0..).map(|power| 10_f64.powi(power)).skip_while(|value| *value <= self.low);
        let tens = tens.take_while(|value| *value < self.high).map(tick);
        let apart = tens.filter(|(part, _)| (0.07..0.93).contains(part));
        [tick(self.low)].into_iter().chain(apart).chain([tick(self.high)]).collect()
    }
}

/// Returns a colour whose lightness rises with the value, for any colour vision and in grey.
fn colour(part: f64) -> RGBColor {
    ViridisRGB.get_color(part.clamp(0.0, 1.0))
}

impl Map {
    /// Makes the map of a count of each rank and queue. A square of several ranks has the largest
    /// of their counts.
    pub(crate) fn of(
        experiment: &Experiment,
        what: &'static str,
        count: fn(QueueKind, &Rank) -> u64,
    ) -> Self {
        let ranks = &experiment.ranks;
        let (first, last) = (ranks[0].number, ranks[ranks.len() - 1].number);
        let all = (last - first) as usize + 1;
        let each = all.div_ceil(SQUARES);
        let squares = all.div_ceil(each);
        let values = QueueKind::BOTH.map(|queue| {
            let mut values = vec![0; squares];
            for rank in ranks {
                let value: &mut u64 = &mut values[(rank.number - first) as usize / each];
                *value = (*value).max(count(queue, rank));
            }
            values
        });
        let columns = (1..).find(|side| side * side >= squares).unwrap_or(1);
        Self { what, values, first, each, columns, rows: squares.div_ceil(columns) }
    }

    fn side(&self) -> f64 {
        (GRID / self.columns.max(self.rows) as f64).min(220.0)
    }

    pub(crate) fn height(&self) -> u32 {
        (TOP + (self.side() * self.rows as f64).max(240.0) + 70.0) as u32
    }

    /// Returns the range of the values above 0, or `None` if all values are 0.
    fn range(&self) -> Option<Range> {
        let values = self.values.iter().flatten().filter(|value| **value > 0);
        let (low, high) = (values.clone().min()?, values.max()?);
        Some(Range { low: *low as f64, high: *high as f64 })
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas) {
        let range = self.range();
        let mut note = self.what.to_owned();
        if self.each > 1 {
            note += &format!("; a square is {} ranks, the most of them", self.each);
        }
        if range.as_ref().is_some_and(Range::is_wide) {
            note += "; the scale is logarithmic";
        }
        canvas.text(&sentence(&note), (MARGIN, 66.0), 18.0, DARK, Align::Left);
        for ((queue, values), left) in QueueKind::BOTH.iter().zip(&self.values).zip(LEFTS) {
            canvas.text(&sentence(queue.long_name()), (left, TOP - 70.0), 20.0, DARK, Align::Left);
            self.grid(canvas, left, values, range.as_ref());
        }
        let Some(range) = range else {
            let text = "No depths were recorded";
            return canvas.text(text, (LEFTS[0], TOP - 100.0), 18.0, GREY, Align::Left);
        };
        self.scale(canvas, &range);
    }

    fn grid(&self, canvas: &mut Canvas, left: f64, values: &[u64], range: Option<&Range>) {
        let side = self.side();
        let gap = if side > 8.0 { 1.0 } else { 0.0 };
        for (at, &value) in values.iter().enumerate() {
            let (column, row) = (at % self.columns, at / self.columns);
            let (x, y) = (left + column as f64 * side, TOP + row as f64 * side);
            let part = range.filter(|_| value > 0).map(|range| range.part(value as f64));
            let shade = part.map_or(LIGHT, colour);
            canvas.filled((x, y), (x + side - gap, y + side - gap), shade);
            let first = u64::from(self.first) + (at * self.each) as u64;
            let rank = match self.each as u64 {
                1 => format!("rank {}", whole(first)),
                each => format!("ranks {} to {}, most", whole(first), whole(first + each - 1)),
            };
            canvas.hover((x, y), (x + side, y + side), format!("{rank}: {}", entries(value)));
            let mut text = whole(value);
            if canvas.width(&text, TICK) > side - 4.0 {
                text = short(value as f64);
            }
            if side >= 60.0 {
                let ink = if part.is_some_and(|part| part < 0.6) {
                    plotters::prelude::WHITE
                } else {
                    DARK
                };
                canvas.text(
                    &text,
                    (x + side / 2.0, y + side / 2.0 - 7.5),
                    TICK,
                    ink,
                    Align::Centre,
                );
            }
        }
        // Labels of rows and columns add up to the rank.
        let widest = whole(u64::from(self.first) + (values.len() * self.each) as u64);
        let apart = |room: f64| (room / side).ceil().max(1.0) as usize;
        let columns = apart(canvas.width(&widest, TICK) + 10.0).next_power_of_two();
        for column in (0..self.columns).step_by(columns) {
            let x = left + (column as f64 + 0.5) * side;
            let label = format!("+{}", whole((column * self.each) as u64));
            canvas.text(&label, (x, TOP - 22.0), TICK, DARK, Align::Centre);
        }
        for row in (0..self.rows).step_by(apart(22.0).next_power_of_two()) {
            let y = TOP + (row as f64 + 0.5) * side - 7.5;
            let rank = u64::from(self.first) + (row * self.columns * self.each) as u64;
            canvas.text(&whole(rank), (left - 10.0, y), TICK, DARK, Align::Right);
        }
        let below = (left, TOP + self.rows as f64 * side + 16.0);
        let none = if values.contains(&0) { "; grey: none" } else { "" };
        canvas.text(&format!("Rank = row + column{none}"), below, TICK, GREY, Align::Left);
    }

    /// Draws the scale of colours with its labels.
    fn scale(&self, canvas: &mut Canvas, range: &Range) {
        const STEPS: usize = 80;
        let (x, height) = (1292.0, (self.side() * self.rows as f64).max(240.0));
        let y = |part: f64| TOP + height * (1.0 - part);
        for step in 0..STEPS {
            let (low, high) = (step as f64 / STEPS as f64, (step + 1) as f64 / STEPS as f64);
            // Each step reaches into the one below, so that no seam shows between them.
            let end = (y(low) + 1.0).min(TOP + height);
            canvas.filled((x, y(high)), (x + 24.0, end), colour((low + high) / 2.0));
        }
        canvas.rectangle((x, TOP), (x + 24.0, TOP + height), GREY);
        for (part, label) in range.ticks() {
            canvas.line(&[(x + 24.0, y(part)), (x + 29.0, y(part))], 1.0, GREY);
            canvas.text(&label, (x + 34.0, y(part) - 7.5), TICK, DARK, Align::Left);
        }
        canvas.text("Entries", (x, TOP - 38.0), TICK, DARK, Align::Left);
    }
}

/// Returns at most three digits and a unit.
fn short(value: f64) -> String {
    for (least, unit) in [(1e9, " G"), (1e6, " M"), (1e3, " k")] {
        // A value that rounds up to 1 of the next unit takes that unit.
        if value >= 0.9995 * least {
            let value = value / least;
            let decimals = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
            let digits = format!("{value:.decimals$}");
            let digits = if decimals > 0 { digits.trim_end_matches('0') } else { &digits };
            return format!("{}{unit}", digits.trim_end_matches('.'));
        }
    }
    format!("{value:.0}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::outcome::tests::experiment;

    #[test]
    fn ranks_fill_a_grid_and_many_share_a_square() {
        for (ranks, columns, rows, each) in
            [(1, 1, 1, 1), (2, 2, 1, 1), (7, 3, 3, 1), (256, 16, 16, 1), (5000, 50, 50, 2)]
        {
            let map = Map::of(&experiment(ranks, 8), "", QueueKind::compared);
            assert_eq!((map.columns, map.rows, map.each), (columns, rows, each));
            assert_eq!(map.values[0].iter().max(), map.values[0].first(), "rank 0 is hot");
            assert_eq!(map.values[1].iter().max(), Some(&0));
        }
    }

    #[test]
    fn colours_rise_from_the_least_to_the_most() {
        assert_eq!(colour(0.0), RGBColor(0x44, 0x01, 0x54));
        assert_eq!(colour(1.0), RGBColor(0xfe, 0xe8, 0x25));
        let wide = Range { low: 10.0, high: 1000.0 };
        assert!((wide.part(100.0) - 0.5).abs() < 1e-9);
        let labels: Vec<_> = wide.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["10", "100", "1 k"]);
        let narrow = Range { low: 10.0, high: 20.0 };
        assert!((narrow.part(15.0) - 0.75).abs() < 1e-9);
        assert_eq!(Range { low: 3.0, high: 3.0 }.part(3.0), 1.0);
    }

    #[test]
    fn numbers_of_the_scale_are_short() {
        let text = [7.0, 999.6, 1234.0, 45_678.0, 999_900.0, 2.5e9].map(short);
        assert_eq!(text, ["7", "1 k", "1.23 k", "45.7 k", "1 M", "2.5 G"]);
    }
}
