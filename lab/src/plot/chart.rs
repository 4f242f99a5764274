// SPDX-License-Identifier: BSD-2-Clause
//! Draws the frame of a chart with its axes. The charts show values over time or over buckets, or
//! horizontal bars.

use super::canvas::{DARK, GREY, LIGHT};
use super::panel::nice_steps;
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
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    /// From 0 to 6 % above this value, in even steps.
    Linear(f64),
    /// From 0 to this value, in even steps.
    Span(f64),
    /// Powers of ten from 1 to at least this value; 0 is at the lower end.
    Tens(f64),
    /// Slots of equal size, one for each name.
    Slots(Vec<String>),
}

impl Scale {
    /// Returns the value at the upper end of the axis.
    fn top(&self) -> f64 {
        match self {
            Self::Linear(most) if *most > 0.0 => 1.06 * most,
            Self::Span(most) if *most > 0.0 => *most,
            Self::Linear(_) | Self::Span(_) => 1.0,
            Self::Tens(most) => most.max(10.0).log10().ceil() + 0.6,
            Self::Slots(names) => names.len().max(1) as f64,
        }
    }

    /// Returns the position of a value, from 0 to 1.
    pub(crate) fn part(&self, value: f64) -> f64 {
        match self {
            Self::Linear(_) | Self::Span(_) | Self::Slots(_) => value / self.top(),
            // 1 is a little above 0.
            Self::Tens(_) if value > 0.0 => (value.log10() + 0.5).max(0.0) / self.top(),
            Self::Tens(_) => 0.0,
        }
    }

    /// Returns the positions of the ticks, from 0 to 1, with their labels.
    pub(crate) fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Self::Linear(most) | Self::Span(most) => {
                let (step, steps, decimals) = nice_steps(*most);
                let label = |value: f64| match decimals {
                    0 => whole(value.round() as u64),
                    _ => format!("{value:.decimals$}"),
                };
                let values = (0..=steps).map(|at| step * f64::from(at));
                let ticks = values.map(|value| (self.part(value), label(value)));
                ticks.filter(|(part, _)| *part <= 1.0).collect()
            }
            Self::Tens(most) => {
                let last = most.max(10.0).log10().ceil() as u32;
                let every = last.div_ceil(8).max(1);
                let values = (0..=last).step_by(every as usize).map(|power| 10_u64.pow(power));
                values.map(|value| (self.part(value as f64), whole(value))).collect()
            }
            Self::Slots(names) => {
                let middle = |at: usize| self.part(at as f64 + 0.5);
                names.iter().enumerate().map(|(at, name)| (middle(at), name.clone())).collect()
            }
        }
    }
}

impl Chart {
    /// Draws the texts, the grid and the ticks. The caller draws the values over them. The lines of
    /// the grid belong to the ticks of the vertical axis, or of the horizontal axis if the vertical
    /// axis has slots.
    pub(crate) fn draw(&self, canvas: &mut Canvas, x: &Scale, y: &Scale) {
        let (left, top, width, height) = self.frame;
        let (right, bottom) = (left + width, top + height);
        canvas.text(&self.title, (left, top - 58.0), TITLE, DARK, Align::Left);
        canvas.text(&self.note, (left, top - 28.0), TICK, GREY, Align::Left);
        for (part, label) in y.ticks() {
            let at = bottom - part * height;
            if !matches!(y, Scale::Slots(_)) {
                canvas.line(&[(left, at), (right, at)], 1.0, LIGHT);
            }
            canvas.text(&label, (left - 10.0, at - 7.5), TICK, DARK, Align::Right);
        }
        if !self.y_label.is_empty() {
            let at = (left - 100.0, top + height / 2.0);
            canvas.text(self.y_label, at, LABEL, DARK, Align::Upwards);
        }
        let mut free_from = f64::NEG_INFINITY;
        for (part, label) in x.ticks() {
            let at = left + part * width;
            if matches!(y, Scale::Slots(_)) {
                canvas.line(&[(at, top), (at, bottom)], 1.0, LIGHT);
            }
            canvas.line(&[(at, bottom), (at, bottom + 6.0)], 1.0, GREY);
            let half = canvas.width(&label, TICK) / 2.0;
            // A label that would touch the previous one is left out.
            if at - half > free_from {
                canvas.text(&label, (at, bottom + 11.0), TICK, DARK, Align::Centre);
                free_from = at + half + 6.0;
            }
        }
        let below = (left + width / 2.0, bottom + 37.0);
        canvas.text(&self.x_label, below, LABEL, DARK, Align::Centre);
        canvas.rectangle((left, top), (right, bottom), GREY);
    }

    /// Returns the place in the picture of a point of the plot. `x` and `y` are from 0 to 1.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let (left, top, width, height) = self.frame;
        (left + x * width, top + height - y * height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_lie_on_the_axis_and_rise() {
        let names = ["0", "1", "2"].map(str::to_owned).to_vec();
        for scale in [
            Scale::Linear(0.0),
            Scale::Linear(0.3),
            Scale::Linear(1_234_567.0),
            Scale::Span(0.0),
            Scale::Span(83.0),
            Scale::Tens(0.0),
            Scale::Tens(1.0),
            Scale::Tens(1e12),
            Scale::Slots(names),
        ] {
            let ticks = scale.ticks();
            assert!(ticks.iter().all(|(part, _)| (0.0..=1.0).contains(part)), "{ticks:?}");
            assert!(ticks.is_sorted_by(|a, b| a.0 < b.0), "{ticks:?}");
            assert!((2..=9).contains(&ticks.len()), "{ticks:?}");
        }
    }

    #[test]
    fn the_highest_value_is_below_the_frame() {
        for most in [1.0, 9.0, 10.0, 11.0, 99_999.0] {
            assert!(Scale::Linear(most).part(most) < 1.0);
            assert!(Scale::Tens(most).part(most) < 1.0);
        }
        assert!(Scale::Tens(5.0).part(1.0) > Scale::Tens(5.0).part(0.0));
    }
}
