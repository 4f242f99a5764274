// SPDX-License-Identifier: BSD-2-Clause
//! A drawing surface in units of the picture, for any resolution.

use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, Color, DrawingArea, DrawingBackend, FontTransform, IntoFont, IntoTextStyle,
    PathElement, Polygon, RGBColor, Rectangle, ShapeStyle, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, register_font};

use crate::error::Error;

/// Colour of text and frames.
pub(crate) const DARK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// Colour of ticks and dashes.
pub(crate) const GREY: RGBColor = RGBColor(0x77, 0x77, 0x77);
/// Colour of the grid.
pub(crate) const LIGHT: RGBColor = RGBColor(0xe2, 0xe2, 0xe2);

/// Any backend of plotters.
pub(crate) trait Surface: DrawingBackend {}
impl<T: DrawingBackend> Surface for T {}

/// A point in units of the picture.
pub(crate) type At = (f64, f64);

/// Alignment of a text to its point. The text is always below the point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    Left,
    Centre,
    Right,
    /// Centred on the point, and read from bottom to top.
    Upwards,
}

/// Registers the embedded font, because a machine may have no fonts.
pub(crate) fn register_fonts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).is_err() {
            unreachable!("the embedded font can be read");
        }
    });
}

/// A surface that is drawn at a multiple of the picture's size.
pub(crate) struct Canvas<'a, S: Surface> {
    area: &'a DrawingArea<S, Shift>,
    scale: i32,
}

impl<'a, S: Surface> Canvas<'a, S> {
    pub(crate) fn new(area: &'a DrawingArea<S, Shift>, scale: i32) -> Self {
        Self { area, scale }
    }

    fn at(&self, (x, y): At) -> (i32, i32) {
        let scale = f64::from(self.scale);
        ((x * scale).round() as i32, (y * scale).round() as i32)
    }

    fn length(&self, length: f64) -> f64 {
        length * f64::from(self.scale)
    }

    pub(crate) fn clear(&self) -> Result<(), Error> {
        self.area.fill(&WHITE).map_err(failed)
    }

    /// Draws a line through points.
    pub(crate) fn line(&self, points: &[At], width: f64, colour: RGBColor) -> Result<(), Error> {
        let points: Vec<_> = points.iter().map(|&point| self.at(point)).collect();
        let style = colour.stroke_width(self.length(width).round() as u32);
        self.area.draw(&PathElement::new(points, style)).map_err(failed)
    }

    /// Draws a dashed straight line.
    pub(crate) fn dashed(
        &self,
        from: At,
        to: At,
        width: f64,
        colour: RGBColor,
    ) -> Result<(), Error> {
        const DASH: f64 = 7.0;
        const GAP: f64 = 5.0;
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let length = dx.hypot(dy);
        let along = |distance: f64| {
            let part = (distance / length).min(1.0);
            (from.0 + dx * part, from.1 + dy * part)
        };
        let mut distance = 0.0;
        while distance < length {
            self.line(&[along(distance), along(distance + DASH)], width, colour)?;
            distance += DASH + GAP;
        }
        Ok(())
    }

    pub(crate) fn rectangle(&self, from: At, to: At, colour: RGBColor) -> Result<(), Error> {
        let style = colour.stroke_width(self.length(1.0).round() as u32);
        self.area.draw(&Rectangle::new([self.at(from), self.at(to)], style)).map_err(failed)
    }

    /// Draws a filled rectangle.
    pub(crate) fn filled(&self, from: At, to: At, colour: RGBColor) -> Result<(), Error> {
        self.polygon(&[from, (to.0, from.1), to, (from.0, to.1)], colour)
    }

    pub(crate) fn disc(&self, centre: At, radius: f64, colour: RGBColor) -> Result<(), Error> {
        let style = ShapeStyle::from(&colour).filled();
        let radius = self.length(radius).round() as i32;
        self.area.draw(&Circle::new(self.at(centre), radius, style)).map_err(failed)
    }

    pub(crate) fn polygon(&self, corners: &[At], colour: RGBColor) -> Result<(), Error> {
        let corners: Vec<_> = corners.iter().map(|&corner| self.at(corner)).collect();
        self.area.draw(&Polygon::new(corners, colour.filled())).map_err(failed)
    }

    pub(crate) fn text(
        &self,
        text: &str,
        at: At,
        size: f64,
        colour: RGBColor,
        align: Align,
    ) -> Result<(), Error> {
        let mut font = ("sans-serif", self.length(size)).into_font();
        let position = match align {
            Align::Left => Pos::new(HPos::Left, VPos::Top),
            Align::Centre => Pos::new(HPos::Center, VPos::Top),
            Align::Right => Pos::new(HPos::Right, VPos::Top),
            Align::Upwards => {
                font = font.transform(FontTransform::Rotate270);
                Pos::new(HPos::Center, VPos::Top)
            }
        };
        let style = font.into_text_style(self.area).color(&colour).pos(position);
        self.area.draw_text(text, &style, self.at(at)).map_err(failed)
    }

    /// Returns the width of a text.
    pub(crate) fn width(&self, text: &str, size: f64) -> Result<f64, Error> {
        let style = ("sans-serif", self.length(size)).into_text_style(self.area);
        let (width, _) = self.area.estimate_text_size(text, &style).map_err(failed)?;
        Ok(f64::from(width) / f64::from(self.scale))
    }
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::Draw(error.to_string())
}
