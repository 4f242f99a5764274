// SPDX-License-Identifier: BSD-2-Clause
//! Draws lines over a size, such as the table size.

use super::canvas::{DARK, GREY};
use super::chart::TICK;
use super::signs::Style;
use super::{Align, Canvas, Chart, Position, Scale};
use crate::text::{entries, share, whole};

/// A line of a panel.
pub(super) struct Series {
    pub(super) style: Style,
    /// Sizes on the x axis, with their values.
    pub(super) values: Vec<(usize, f64)>,
    /// Lowest and highest value at each size; may be empty.
    pub(super) spread: Vec<(f64, f64)>,
}

/// The scale of the y axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Axis {
    /// 0 to 100.
    Percent,
    /// From 0 in even steps.
    Linear,
    /// Powers of two, as on the x axis. A dashed line shows the table size.
    Powers,
}

/// A chart with its data.
pub(super) struct Panel<'a> {
    pub(super) chart: Chart,
    /// Measured sizes, in rising order.
    pub(super) sizes: &'a [usize],
    /// A size that a dashed line marks, with its label.
    pub(super) mark: Option<(u64, String)>,
    pub(super) axis: Axis,
    pub(super) series: Vec<Series>,
}

impl Panel<'_> {
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let (left, top, width, _) = self.chart.frame;
        let largest = self.sizes.last().copied().unwrap_or(0) as f64;
        // The mark is drawn if it is at most twice the largest measured size.
        let mark = self.mark.as_ref().map(|(at, label)| (*at as f64, label));
        let mark = mark.filter(|(at, _)| *at > 0.0 && *at <= 2.0 * largest);
        let x = Scale::sizes(self.sizes, mark.map_or(0.0, |(at, _)| at));
        let y = self.y_axis();
        let place = |size: f64, value: f64| self.chart.at(x.part(size), y.part(value));
        self.chart.draw(canvas, &x, &y);
        if self.axis == Axis::Powers {
            self.table_size(canvas, place);
        }
        if let Some((at, label)) = mark {
            let at = x.part(at);
            canvas.dashed(self.chart.at(at, 1.0), self.chart.at(at, 0.0), 2.0, GREY);
            let half = canvas.width(label, TICK) / 2.0;
            let centre = (left + at * width).clamp(left + half, left + width - half);
            canvas.text(label, (centre, top - 24.0), TICK, DARK, Align::Centre);
        }
        for (at, series) in self.series.iter().enumerate() {
            let colour = series.style.colour;
            // Each line is thinner than the previous line, so that the edges of a covered line
            // remain visible.
            let width = 2.5 + 4.0 * (self.series.len() - 1 - at) as f64;
            let values = series.values.iter();
            let points: Vec<_> = values.map(|&(size, value)| place(size as f64, value)).collect();
            for (&(size, _), &(low, high)) in series.values.iter().zip(&series.spread) {
                let line = [low, high].map(|value| place(size as f64, value));
                canvas.line(&line, 2.0, colour);
            }
            canvas.line(&points, width, colour);
            for point in points {
                series.style.marker.draw(canvas, point, colour);
            }
        }
        // The pointer finds the values of the nearest size.
        let places: Vec<_> = self.sizes.iter().map(|&size| x.part(size as f64)).collect();
        for (at, &size) in self.sizes.iter().enumerate() {
            let from = if at == 0 { 0.0 } else { (places[at - 1] + places[at]) / 2.0 };
            let to = places.get(at + 1).map_or(1.0, |next| (next + places[at]) / 2.0);
            let lines = self.series.iter().map(|series| {
                let value = |value| self.value(value);
                let mut line = format!("\n{}: {}", series.style.name, value(series.values[at].1));
                if let Some((low, high)) = series.spread.get(at).filter(|(low, high)| low < high) {
                    line += &format!(" (runs: {} to {})", value(*low), value(*high));
                }
                line
            });
            let lines = lines.collect::<String>();
            let text = format!("{}, {}{lines}", entries(size as u64), self.chart.y_label);
            self.chart.hover(canvas, from, to, text);
        }
    }

    /// Returns a value as text.
    fn value(&self, value: f64) -> String {
        match self.axis {
            Axis::Percent => share(value),
            Axis::Linear => format!("{value:.3}"),
            Axis::Powers => whole(value as u64),
        }
    }

    /// Draws a dashed line whose height at each table size is that size. Where a line of the panel
    /// is below the dashed line, everything fits.
    fn table_size(&self, canvas: &mut Canvas, place: impl Fn(f64, f64) -> Position) {
        let top = self.chart.frame.1;
        for pair in self.sizes.windows(2).filter(|pair| pair[0] > 0) {
            let [from, mut to] = [pair[0], pair[1]].map(|size| place(size as f64, size as f64));
            if from.1 <= top {
                break;
            }
            if to.1 < top {
                let part = (from.1 - top) / (from.1 - to.1);
                to = (from.0 + (to.0 - from.0) * part, top);
            }
            canvas.dashed(from, to, 2.0, GREY);
        }
    }

    fn y_axis(&self) -> Scale {
        let values = self.series.iter().flat_map(|series| {
            let spread = series.spread.iter().map(|&(_, high)| high);
            series.values.iter().map(|&(_, value)| value).chain(spread)
        });
        match self.axis {
            Axis::Percent => Scale::linear(100.0),
            Axis::Linear => Scale::linear(values.fold(0.0, f64::max)),
            Axis::Powers => {
                let sizes = self.sizes.iter().map(|&size| size as f64);
                let above_0 = values.clone().chain(sizes).filter(|&value| value > 0.0);
                Scale::twos(above_0.fold(f64::INFINITY, f64::min), values.fold(1.0, f64::max))
            }
        }
    }
}
