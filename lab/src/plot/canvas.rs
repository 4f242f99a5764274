// SPDX-License-Identifier: BSD-2-Clause
//! Collects the shapes of a picture and draws them. Callers give lengths in units of the picture,
//! which do not depend on the resolution or on the backend of plotters.

use std::fmt::Write;
use std::sync::Once;

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, Color, DrawingArea, DrawingBackend, FontDesc, FontTransform, IntoFont, PathElement,
    Polygon, RGBColor, Rectangle, WHITE,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontStyle, TextStyle, register_font};

use crate::error::Error;
use crate::text::html::escaped;

/// Colour of text and frames.
pub(crate) const DARK: RGBColor = RGBColor(0x22, 0x22, 0x22);
/// Colour of ticks and dashes.
pub(crate) const GREY: RGBColor = RGBColor(0x77, 0x77, 0x77);
/// Colour of the grid.
pub(crate) const LIGHT: RGBColor = RGBColor(0xe2, 0xe2, 0xe2);

/// A point in units of the picture: to the right and down from the upper left corner.
pub(crate) type Position = (f64, f64);

/// Horizontal alignment of a text to its point. The top of the text is at the point.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Align {
    Left,
    Centre,
    Right,
    /// Centred on the point, and read from bottom to top.
    Upwards,
}

/// Registers the embedded font, because a machine may have no fonts.
fn register_fonts() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        if register_font("sans-serif", FontStyle::Normal, dejavu::sans::regular()).is_err() {
            unreachable!("the embedded font can be read");
        }
    });
}

/// A shape in pixels.
enum Shape {
    Line(Vec<Pixel>, u32, RGBColor),
    Frame([Pixel; 2], u32, RGBColor),
    Disc(Pixel, i32, RGBColor),
    Polygon(Vec<Pixel>, RGBColor),
    Text(String, Pixel, f64, RGBColor, Align),
}

type Pixel = (i32, i32);

/// Collects the shapes of a picture in pixels, at a multiple of the picture's size.
pub(crate) struct Canvas {
    scale: i32,
    shapes: Vec<Shape>,
    /// Rectangles with the texts that a browser shows while the pointer is in them.
    hovers: Vec<([Pixel; 2], String)>,
}

impl Canvas {
    pub(super) fn new(scale: i32) -> Self {
        register_fonts();
        Self { scale, shapes: Vec::new(), hovers: Vec::new() }
    }

    fn at(&self, (x, y): Position) -> Pixel {
        (self.length(x).round() as i32, self.length(y).round() as i32)
    }

    fn length(&self, length: f64) -> f64 {
        length * f64::from(self.scale)
    }

    /// Draws a line through points.
    pub(crate) fn line(&mut self, points: &[Position], width: f64, colour: RGBColor) {
        let points = points.iter().map(|&point| self.at(point)).collect();
        self.shapes.push(Shape::Line(points, self.length(width).round() as u32, colour));
    }

    /// Draws a dashed straight line.
    pub(crate) fn dashed(&mut self, from: Position, to: Position, width: f64, colour: RGBColor) {
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
            self.line(&[along(distance), along(distance + DASH)], width, colour);
            distance += DASH + GAP;
        }
    }

    /// Draws the outline of a rectangle, one unit wide.
    pub(crate) fn rectangle(&mut self, from: Position, to: Position, colour: RGBColor) {
        let corners = [self.at(from), self.at(to)];
        self.shapes.push(Shape::Frame(corners, self.length(1.0).round() as u32, colour));
    }

    /// Draws a filled rectangle.
    pub(crate) fn filled(&mut self, from: Position, to: Position, colour: RGBColor) {
        self.polygon(&[from, (to.0, from.1), to, (from.0, to.1)], colour);
    }

    pub(crate) fn disc(&mut self, centre: Position, radius: f64, colour: RGBColor) {
        let radius = self.length(radius).round() as i32;
        self.shapes.push(Shape::Disc(self.at(centre), radius, colour));
    }

    pub(crate) fn polygon(&mut self, corners: &[Position], colour: RGBColor) {
        let corners = corners.iter().map(|&corner| self.at(corner)).collect();
        self.shapes.push(Shape::Polygon(corners, colour));
    }

    /// Draws a text. `size` is the height of the font.
    pub(crate) fn text(
        &mut self,
        text: &str,
        at: Position,
        size: f64,
        colour: RGBColor,
        align: Align,
    ) {
        let (at, size) = (self.at(at), self.length(size));
        self.shapes.push(Shape::Text(text.to_owned(), at, size, colour, align));
    }

    /// Shows a text while the pointer is in a rectangle. `from` is the upper left corner.
    pub(crate) fn hover(&mut self, from: Position, to: Position, text: String) {
        let corners = [self.at(from), self.at(to)];
        if corners[0].0 < corners[1].0 && corners[0].1 < corners[1].1 {
            self.hovers.push((corners, text));
        }
    }

    /// Returns the elements of SVG that show the texts for the pointer.
    pub(super) fn hovers(&self) -> String {
        let mut svg = "<g class=\"values\" fill=\"none\" pointer-events=\"all\">\n".to_owned();
        for ([(left, top), (right, bottom)], text) in &self.hovers {
            let (width, height, text) = (right - left, bottom - top, escaped(text));
            let _ = writeln!(
                svg,
                "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\">\
                 <title>{text}</title></rect>"
            );
        }
        svg + "</g>\n"
    }

    /// Returns the width of a text of this font size, in units of the picture.
    pub(crate) fn width(&self, text: &str, size: f64) -> f64 {
        let size = font(self.length(size)).box_size(text);
        let (width, _) = size.expect("the embedded font has all sizes");
        f64::from(width) / f64::from(self.scale)
    }

    /// Draws all shapes on an empty area.
    pub(super) fn draw<S: DrawingBackend>(self, area: &DrawingArea<S, Shift>) -> Result<(), Error> {
        let draw = || {
            area.fill(&WHITE)?;
            for shape in self.shapes {
                match shape {
                    Shape::Line(points, width, colour) => {
                        area.draw(&PathElement::new(points, colour.stroke_width(width)))?;
                    }
                    Shape::Frame(corners, width, colour) => {
                        area.draw(&Rectangle::new(corners, colour.stroke_width(width)))?;
                    }
                    Shape::Disc(centre, radius, colour) => {
                        area.draw(&Circle::new(centre, radius, colour.filled()))?;
                    }
                    Shape::Polygon(corners, colour) => {
                        area.draw(&Polygon::new(corners, colour.filled()))?;
                    }
                    Shape::Text(text, at, size, colour, align) => {
                        area.draw_text(&text, &style(size, colour, align), at)?;
                    }
                }
            }
            area.present()
        };
        draw().map_err(|error| Error::Draw(error.to_string()))
    }
}

fn font(size: f64) -> FontDesc<'static> {
    ("sans-serif", size).into_font()
}

fn style(size: f64, colour: RGBColor, align: Align) -> TextStyle<'static> {
    let (font, x) = match align {
        Align::Left => (font(size), HPos::Left),
        Align::Centre => (font(size), HPos::Center),
        Align::Right => (font(size), HPos::Right),
        Align::Upwards => (font(size).transform(FontTransform::Rotate270), HPos::Center),
    };
    TextStyle { font, color: colour.to_backend_color(), pos: Pos::new(x, VPos::Top) }
}
