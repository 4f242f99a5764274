// SPDX-License-Identifier: BSD-2-Clause
//! Draws the frame of a chart with its axes. All charts use it: those over sizes, over time and over
//! buckets, and those of horizontal bars.

use super::canvas::{DARK, GREY, LIGHT};
use super::{Align, Canvas};
use crate::text::whole;

/// Sizes of texts, large enough for a printed page.
const TITLE: f64 = 22.0;
const LABEL: f64 = 19.0;
pub(crate) const TICK: f64 = 18.0;

/// A frame with its texts.
pub(crate) struct Chart {
    /// Left, top, width and height of the plot itself, without labels.
    pub(crate) frame: (f64, f64, f64, f64),
    pub(crate) title: String,
    /// A line of text below the title.
    pub(crate) note: String,
    pub(crate) x_label: String,
    pub(crate) y_label: &'static str,
}

/// The scale of an axis.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// The values at both ends, or their exponents of two on a logarithmic scale.
    from: f64,
    to: f64,
    /// Exponent of the place of 0 on a logarithmic scale. Smaller values have the same place.
    zero: Option<f64>,
    /// Values with their labels.
    ticks: Vec<(f64, String)>,
    has_slots: bool,
}

impl Scale {
    /// Makes a scale from 0 to 6 % above a value, in even steps.
    pub(crate) fn linear(most: f64) -> Self {
        Self::even(most, 1.06 * most)
    }

    /// Makes a scale from 0 to a value, in even steps.
    pub(crate) fn span(most: f64) -> Self {
        Self::even(most, most)
    }

    fn even(most: f64, to: f64) -> Self {
        let (step, steps, decimals) = nice_steps(most);
        let label = |value: f64| match decimals {
            0 => whole(value.round() as u64),
            _ => format!("{value:.decimals$}"),
        };
        let values = (0..=steps).map(|at| step * f64::from(at));
        let ticks = values.map(|value| (value, label(value))).collect();
        let to = if to > 0.0 { to } else { 1.0 };
        Self { from: 0.0, to, zero: None, ticks, has_slots: false }
    }

    /// Makes a scale of powers of ten from 1 to at least a value. 0 is at the lower end.
    pub(crate) fn tens(most: f64) -> Self {
        let last = most.max(10.0).log10().ceil();
        let every = (last as u32).div_ceil(8).max(1) as usize;
        let powers = (0..=last as u32).step_by(every).map(|power| 10_u64.pow(power));
        let ticks = powers.map(|value| (value as f64, whole(value))).collect();
        let ten = 10_f64.log2();
        // 1 is a little above 0.
        Self::powers(-0.5 * ten, (last + 0.1) * ten, -0.5 * ten, ticks)
    }

    /// Makes a scale of powers of two from the smallest value above 0 to the largest of `high`. 0
    /// is at the lower end.
    pub(crate) fn twos(low: f64, high: f64) -> Self {
        let low = if low.is_finite() { low.log2().floor() - 0.5 } else { -0.5 };
        let high = (high.max(1.0).log2() + 0.4).max(low + 3.0);
        let every = ((high - low) / 8.0).ceil() as usize;
        let powers = (0..).skip_while(|&power| f64::from(power) < low).step_by(every);
        let powers = powers.take_while(|&power| f64::from(power) <= high);
        let ticks = powers.map(|power| (f64::from(power).exp2(), whole(1 << power)));
        Self::powers(low, high, low, [(0.0, "0".to_owned())].into_iter().chain(ticks).collect())
    }

    /// Makes a scale of powers of two with a tick at each of these sizes, which rise. 0 is one step
    /// below the smallest other size. The scale has room for a larger size `most`.
    pub(crate) fn sizes(sizes: &[usize], most: f64) -> Self {
        /// Part of the scale that is beyond each of its ends, so that no marker is on the frame.
        const MARGIN: f64 = 0.035;
        let above_0 = sizes.iter().find(|&&size| size > 0);
        let least = above_0.map_or(0.0, |&size| (size as f64).log2());
        let zero = if sizes.first() == Some(&0) { least - 1.0 } else { least };
        let largest = sizes.last().map_or(1.0, |&size| size as f64);
        let high = largest.max(most).max(1.0).log2().max(least);
        // A single size is in the middle.
        let (low, high) = if high - zero < 1.0 { (zero - 0.5, high + 0.5) } else { (zero, high) };
        let margin = MARGIN * (high - low);
        let ticks = sizes.iter().map(|&size| (size as f64, whole(size as u64))).collect();
        Self::powers(low - margin, high + margin, zero, ticks)
    }

    fn powers(from: f64, to: f64, zero: f64, ticks: Vec<(f64, String)>) -> Self {
        Self { from, to, zero: Some(zero), ticks, has_slots: false }
    }

    /// Makes slots of equal size, one for each name.
    pub(crate) fn slots(names: impl IntoIterator<Item = String>) -> Self {
        let ticks: Vec<_> =
            (0..).zip(names).map(|(at, name)| (f64::from(at) + 0.5, name)).collect();
        let to = ticks.len().max(1) as f64;
        Self { from: 0.0, to, zero: None, ticks, has_slots: true }
    }

    /// Returns the position of a value, from 0 to 1.
    pub(crate) fn part(&self, value: f64) -> f64 {
        let value = match self.zero {
            None => value,
            Some(zero) if value > 0.0 => value.log2().max(zero),
            Some(zero) => zero,
        };
        (value - self.from) / (self.to - self.from)
    }

    /// Returns the positions of the ticks, from 0 to 1, with their labels.
    pub(crate) fn ticks(&self) -> impl Iterator<Item = (f64, &str)> {
        let ticks = self.ticks.iter().map(|(value, label)| (self.part(*value), label.as_str()));
        ticks.filter(|(part, _)| *part <= 1.0)
    }
}

impl Chart {
    /// Draws the texts, the grid and the ticks. The caller draws the values over them. The lines of
    /// the grid belong to the ticks of the vertical axis, or of the horizontal axis if the vertical
    /// axis has slots.
    pub(crate) fn draw(&self, canvas: &mut Canvas, x: &Scale, y: &Scale) {
        let (left, top, width, height) = self.frame;
        let (right, bottom) = (left + width, top + height);
        canvas.text(&sentence(&self.title), (left, top - 58.0), TITLE, DARK, Align::Left);
        canvas.text(&sentence(&self.note), (left, top - 28.0), TICK, GREY, Align::Left);
        for (part, label) in y.ticks() {
            let at = bottom - part * height;
            if !y.has_slots {
                canvas.line(&[(left, at), (right, at)], 1.0, LIGHT);
            }
            canvas.text(label, (left - 10.0, at - 7.5), TICK, DARK, Align::Right);
        }
        if !self.y_label.is_empty() {
            let at = (left - 100.0, top + height / 2.0);
            canvas.text(&sentence(self.y_label), at, LABEL, DARK, Align::Upwards);
        }
        let mut free_from = f64::NEG_INFINITY;
        for (part, label) in x.ticks() {
            let at = left + part * width;
            if y.has_slots {
                canvas.line(&[(at, top), (at, bottom)], 1.0, LIGHT);
            }
            canvas.line(&[(at, bottom), (at, bottom + 6.0)], 1.0, GREY);
            let half = canvas.width(label, TICK) / 2.0;
            // A label that would touch the previous one is left out.
            if at - half > free_from {
                canvas.text(label, (at, bottom + 11.0), TICK, DARK, Align::Centre);
                free_from = at + half + 6.0;
            }
        }
        let below = (left + width / 2.0, bottom + 37.0);
        canvas.text(&sentence(&self.x_label), below, LABEL, DARK, Align::Centre);
        canvas.rectangle((left, top), (right, bottom), GREY);
    }

    /// Returns the place in the picture of a point of the plot. `x` and `y` are from 0 to 1.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let (left, top, width, height) = self.frame;
        (left + x * width, top + height - y * height)
    }
    /// Shows a text while the pointer is between two positions of the horizontal axis.
    pub(crate) fn hover(&self, canvas: &mut Canvas, from: f64, to: f64, text: String) {
        canvas.hover(self.at(from, 1.0), self.at(to, 0.0), text);
    }
}

/// Returns a text that begins with a capital letter.
pub(crate) fn sentence(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// Returns a step of 1, 2 or 5 times a power of ten, the number of steps that reach `most` (at most
/// six), and the decimals that they need.
fn nice_steps(most: f64) -> (f64, u32, usize) {
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
    fn ticks_lie_on_the_axis_and_rise() {
        let names = ["0", "1", "2"].map(str::to_owned).to_vec();
        for scale in [
            Scale::linear(0.0),
            Scale::linear(0.3),
            Scale::linear(1_234_567.0),
            Scale::span(0.0),
            Scale::span(83.0),
            Scale::tens(0.0),
            Scale::tens(1.0),
            Scale::tens(1e12),
            Scale::twos(f64::INFINITY, 0.0),
            Scale::twos(8.0, 8.0),
            Scale::twos(3.0, 70_000.0),
            Scale::sizes(&[0, 64, 256], 300.0),
            Scale::slots(names),
        ] {
            let ticks: Vec<_> = scale.ticks().collect();
            assert!(ticks.iter().all(|(part, _)| (0.0..=1.0).contains(part)), "{ticks:?}");
            assert!(ticks.is_sorted_by(|a, b| a.0 < b.0), "{ticks:?}");
            assert!((2..=9).contains(&ticks.len()), "{ticks:?}");
        }
    }

    #[test]
    fn the_highest_value_is_below_the_frame() {
        for most in [1.0, 9.0, 10.0, 11.0, 99_999.0] {
            assert!(Scale::linear(most).part(most) < 1.0);
            assert!(Scale::tens(most).part(most) < 1.0);
        }
        assert!(Scale::tens(5.0).part(1.0) > Scale::tens(5.0).part(0.0));
    }

    #[test]
    fn zero_stands_one_step_below_the_least() {
        let scale = Scale::sizes(&[0, 64, 128, 256], 0.0);
        let parts = [0.0, 64.0, 128.0, 256.0].map(|size| scale.part(size));
        assert!(parts[0] > 0.0 && parts[3] < 1.0, "{parts:?}");
        for pair in parts.windows(3) {
            assert!((pair[2] - 2.0 * pair[1] + pair[0]).abs() < 1e-9, "{parts:?}");
        }
    }

    #[test]
    fn one_size_alone_stands_in_the_middle() {
        for size in [0, 1, 4096] {
            let part = Scale::sizes(&[size], 0.0).part(size as f64);
            assert!((0.0..=1.0).contains(&part), "{size}: {part}");
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
