// SPDX-License-Identifier: BSD-2-Clause
//! Draws one panel of a picture: axes, grid and lines over a size, such as the table size.

use super::canvas::{DARK, GREY, LIGHT};
use super::signs::Style;
use super::{Align, Canvas};
use crate::text::whole;

const TITLE: f64 = 20.0;
const LABEL: f64 = 16.0;
const TICK: f64 = 15.0;
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

/// A panel with its data.
pub(super) struct Panel<'a> {
    /// Left, top, width and height of the plot itself, without labels.
    pub(super) frame: (f64, f64, f64, f64),
    pub(super) title: &'a str,
    pub(super) unit: &'a str,
    pub(super) x_label: &'a str,
    /// Measured sizes, in rising order.
    pub(super) sizes: &'a [usize],
    /// A size that a dashed line marks, with its label.
    pub(super) mark: Option<(u64, String)>,
    pub(super) axis: Axis,
    pub(super) series: Vec<Series>,
}

/// A scale of powers of two on which 0 is one step below the lowest value.
struct Powers {
    low: f64,
    high: f64,
}

impl Powers {
    /// Makes a scale from the lowest to the highest value.
    fn over(values: impl Iterator<Item = f64> + Clone) -> Self {
        let least = values.clone().filter(|&value| value > 0.0).fold(f64::INFINITY, f64::min);
        let least = if least.is_finite() { least.log2() } else { 0.0 };
        let zero = values.clone().any(|value| value <= 0.0);
        let high = values.fold(1.0, f64::max).log2().max(least);
        let low = if zero { least - 1.0 } else { least };
        // A single value needs a scale around it, too.
        if high - low < 1.0 {
            Self { low: low - 0.5, high: high + 0.5 }
        } else {
            Self { low, high }
        }
    }

    /// Returns the position of a value, from 0 to 1.
    fn part(&self, value: f64) -> f64 {
        let power = if value > 0.0 { value.log2().max(self.low) } else { self.low };
        (power - self.low) / (self.high - self.low)
    }
}

/// A tick: position from 0 to 1 and its label.
type Tick = (f64, String);

impl Panel<'_> {
    pub(super) fn draw(&self, canvas: &mut Canvas) {
        let (left, top, width, height) = self.frame;
        let sizes = self.sizes.iter().map(|&size| size as f64);
        let largest = self.sizes.last().copied().unwrap_or(0) as f64;
        // The mark is drawn if it is at most twice the largest measured size.
        let mark = self.mark.as_ref().map(|(at, label)| (*at as f64, label));
        let mark = mark.filter(|(at, _)| *at > 0.0 && *at <= 2.0 * largest);
        let x_scale = Powers::over(sizes.clone().chain(mark.map(|(at, _)| at)));
        // A margin of 18 units keeps the markers off the frame.
        let x = |size: f64| left + 18.0 + (width - 36.0) * x_scale.part(size);
        let y_at = |part: f64| top + height - part * height;

        canvas.text(self.title, (left, top - 52.0), TITLE, DARK, Align::Left);
        let (ticks, y_part) = self.y_axis();
        for (part, label) in &ticks {
            let y = y_at(*part);
            canvas.line(&[(left, y), (left + width, y)], 1.0, LIGHT);
            canvas.text(label, (left - 10.0, y - 6.0), TICK, DARK, Align::Right);
        }
        canvas.text(self.unit, (left - 92.0, top + height / 2.0), LABEL, DARK, Align::Upwards);

        let mut free_from = f64::NEG_INFINITY;
        for &size in self.sizes {
            let (at, label) = (x(size as f64), whole(size as u64));
            let half = canvas.width(&label, TICK) / 2.0;
            canvas.line(&[(at, top + height), (at, top + height + 6.0)], 1.0, GREY);
            // A label that would touch the previous one is left out.
            if at - half > free_from {
                canvas.text(&label, (at, top + height + 11.0), TICK, DARK, Align::Centre);
                free_from = at + half + 6.0;
            }
        }
        let below = (left + width / 2.0, top + height + 36.0);
        canvas.text(self.x_label, below, LABEL, DARK, Align::Centre);

        if self.axis == Axis::Powers {
            self.table_size(canvas, &x, &|value| y_at(y_part(value)));
        }
        if let Some((at, label)) = mark {
            let at = x(at);
            canvas.dashed((at, top), (at, top + height), 2.0, GREY);
            let half = canvas.width(label, TICK) / 2.0;
            let centre = at.clamp(left + half, left + width - half);
            canvas.text(label, (centre, top - 22.0), TICK, DARK, Align::Centre);
        }
        canvas.rectangle((left, top), (left + width, top + height), GREY);
        for (at, series) in self.series.iter().enumerate() {
            let (colour, marker) = series.style;
            // Each line is thinner than the previous line, so that the edges of a covered line
            // remain visible.
            let width = 2.5 + 4.0 * (self.series.len() - 1 - at) as f64;
            let points: Vec<_> = series
                .values
                .iter()
                .map(|&(size, value)| (x(size as f64), y_at(y_part(value))))
                .collect();
            for (&(at, _), &(low, high)) in points.iter().zip(&series.spread) {
                let (low, high) = (y_at(y_part(low)), y_at(y_part(high)));
                canvas.line(&[(at, low), (at, high)], 2.0, colour);
            }
            canvas.line(&points, width, colour);
            for point in points {
                marker.draw(canvas, point, colour);
            }
        }
    }

    /// Draws a dashed line whose height at each table size is that size. Where a line of the panel
    /// is below the dashed line, everything fits.
    fn table_size(&self, canvas: &mut Canvas, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) {
        let top = self.frame.1;
        for pair in self.sizes.windows(2).filter(|pair| pair[0] > 0) {
            let from = (x(pair[0] as f64), y(pair[0] as f64));
            let mut to = (x(pair[1] as f64), y(pair[1] as f64));
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

    /// Returns the ticks of the y axis, and a function that returns the position of a value.
    fn y_axis(&self) -> (Vec<Tick>, Box<dyn Fn(f64) -> f64>) {
        let values = self.series.iter().flat_map(|series| {
            let spread = series.spread.iter().map(|&(_, high)| high);
            series.values.iter().map(|&(_, value)| value).chain(spread)
        });
        match self.axis {
            Axis::Percent => {
                // The scale ends above 100 %, so that a line at 100 % is not on the frame.
                let ticks = (0..=5).map(|i| (f64::from(i) * 20.0 / 105.0, (i * 20).to_string()));
                (ticks.collect(), Box::new(|value| value / 105.0))
            }
            Axis::Linear => {
                let (step, steps, decimals) = nice_steps(values.fold(0.0, f64::max));
                let top = step * (f64::from(steps) + 0.25);
                let ticks = (0..=steps).map(|i| {
                    let value = step * f64::from(i);
                    (value / top, format!("{value:.decimals$}"))
                });
                (ticks.collect(), Box::new(move |value| value / top))
            }
            Axis::Powers => {
                let sizes = self.sizes.iter().map(|&size| size as f64);
                let least = values.clone().chain(sizes).filter(|&value| value > 0.0);
                let low = least.fold(f64::INFINITY, f64::min).log2().floor();
                let low = if low.is_finite() { low - 0.5 } else { -0.5 };
                let high = (values.fold(1.0, f64::max).log2() + 0.4).max(low + 3.0);
                // 0, and values too small for the panel, are at the lower end.
                let part = move |value: f64| {
                    if value > 0.0 { ((value.log2() - low) / (high - low)).max(0.0) } else { 0.0 }
                };
                let every = ((high - low) / 8.0).ceil() as usize;
                let powers = (0..).skip_while(|&power| f64::from(power) < low).step_by(every);
                let mut ticks: Vec<_> = powers
                    .take_while(|&power| f64::from(power) <= high)
                    .map(|power| (part(f64::from(power).exp2()), whole(1 << power)))
                    .collect();
                ticks.insert(0, (0.0, "0".to_owned()));
                (ticks, Box::new(part))
            }
        }
    }
}

/// Returns a step of 1, 2 or 5 times a power of ten, the number of steps that reach `most` (at most
/// six), and the decimals that they need.
pub(super) fn nice_steps(most: f64) -> (f64, u32, usize) {
    let most = if most > 0.0 { most } else { 1.0 };
    let power = (most / 6.0).log10().floor() as i32;
    let candidates = [(1.0, power), (2.0, power), (5.0, power), (1.0, power + 1)];
    let steps = |(factor, power): (f64, i32)| {
        let step = factor * 10f64.powi(power);
        // A value that is on a tick except for rounding does not need another tick.
        (step, (most / step - 1e-9).ceil() as u32, (-power).max(0) as usize)
    };
    candidates.map(steps).into_iter().find(|&(_, count, _)| count <= 6).unwrap_or((most, 1, 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_stands_one_step_below_the_least() {
        let scale = Powers::over([0.0, 64.0, 128.0, 256.0].into_iter());
        let parts = [0.0, 64.0, 128.0, 256.0].map(|size| scale.part(size));
        for (part, expected) in parts.iter().zip([0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0]) {
            assert!((part - expected).abs() < 1e-9, "{parts:?}");
        }
    }

    #[test]
    fn one_size_alone_stands_in_the_middle() {
        for size in [0.0, 1.0, 4096.0] {
            let part = Powers::over(std::iter::once(size)).part(size);
            assert!((0.0..=1.0).contains(&part) && part.is_finite(), "{size}: {part}");
        }
    }

    #[test]
    fn steps_are_round_and_reach_the_highest_value() {
        for (most, step, steps, decimals) in [
            (5.0, 1.0, 5, 0),
            (7.3, 2.0, 4, 0),
            (0.8, 0.2, 4, 1),
            (12.0, 2.0, 6, 0),
            (26.45, 5.0, 6, 0),
            (0.31, 0.1, 4, 1),
            (60.0, 10.0, 6, 0),
            (0.0, 0.2, 5, 1),
        ] {
            let (found, count, places) = nice_steps(most);
            assert!((found - step).abs() < 1e-9, "{most}: steps of {found}");
            assert_eq!((count, places), (steps, decimals), "{most}");
        }
    }
}
