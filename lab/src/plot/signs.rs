// SPDX-License-Identifier: BSD-2-Clause
//! Colours, markers and the legend, which all pictures share.

use plotters::prelude::RGBColor;

use super::canvas::{Align, Canvas, DARK, GREY, Position};

// Colours that people with any colour vision can distinguish (Okabe and Ito).
pub(crate) const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
pub(crate) const ORANGE: RGBColor = RGBColor(0xe6, 0x9f, 0x00);
pub(crate) const GREEN: RGBColor = RGBColor(0x00, 0x9e, 0x73);
pub(crate) const VERMILION: RGBColor = RGBColor(0xd5, 0x5e, 0x00);

/// Width of every picture.
pub(crate) const WIDTH: u32 = 1400;
/// Left edge of titles and legends.
pub(crate) const MARGIN: f64 = 40.0;
/// Left end of the legend, at half its height.
pub(crate) const LEGEND: Position = (MARGIN, 78.0);
/// Width of the sign of an area.
pub(crate) const AREA: f64 = 30.0;
/// Width of the sign of a line with a marker.
pub(crate) const LINE: f64 = 36.0;
/// Half the size of a marker.
const MARK: f64 = 5.5;

/// Colour, marker and name of a line. Markers distinguish the lines in prints without colour.
#[derive(Clone, Copy)]
pub(crate) struct Style {
    pub(crate) colour: RGBColor,
    pub(crate) marker: Marker,
    pub(crate) name: &'static str,
}

impl Style {
    pub(crate) const fn new(colour: RGBColor, marker: Marker, name: &'static str) -> Self {
        Self { colour, marker, name }
    }

    /// Returns the sign of the legend and its name.
    pub(crate) const fn sign(self) -> (Sign, &'static str) {
        (Sign::Marked(self), self.name)
    }
}

/// Shape of the points of a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Marker {
    Disc,
    Triangle,
    Square,
}

impl Marker {
    pub(crate) fn draw(self, canvas: &mut Canvas, (x, y): Position, colour: RGBColor) {
        match self {
            Self::Disc => canvas.disc((x, y), MARK, colour),
            Self::Triangle => {
                let corners = [(x, y - 7.5), (x + 7.0, y + 5.0), (x - 7.0, y + 5.0)];
                canvas.polygon(&corners, colour);
            }
            Self::Square => canvas.polygon(
                &[
                    (x - MARK, y - MARK),
                    (x + MARK, y - MARK),
                    (x + MARK, y + MARK),
                    (x - MARK, y + MARK),
                ],
                colour,
            ),
        }
    }
}

/// The sign that a legend shows next to a name.
#[derive(Clone, Copy)]
pub(crate) enum Sign {
    Area(RGBColor),
    Line(RGBColor),
    Marked(Style),
    Dashes,
}

/// Draws the legend from left to right: each sign, `width` units wide, with its name. What has no
/// room goes into the next line.
pub(crate) fn legend<'a>(
    canvas: &mut Canvas,
    (mut x, mut y): Position,
    width: f64,
    signs: impl IntoIterator<Item = (Sign, &'a str)>,
) {
    for (sign, name) in signs {
        let end = x + width + 10.0 + canvas.width(name, 18.0);
        if end > f64::from(WIDTH) - MARGIN && x > MARGIN {
            (x, y) = (MARGIN, y + 26.0);
        }
        let line = [(x, y), (x + width, y)];
        match sign {
            Sign::Area(colour) => canvas.filled((x, y - 8.0), (x + width, y + 8.0), colour),
            Sign::Line(colour) => canvas.line(&line, 3.0, colour),
            Sign::Marked(Style { colour, marker, .. }) => {
                canvas.line(&line, 3.0, colour);
                marker.draw(canvas, (x + width / 2.0, y), colour);
            }
            Sign::Dashes => canvas.dashed(line[0], line[1], 2.0, GREY),
        }
        canvas.text(name, (x + width + 10.0, y - 6.5), 18.0, DARK, Align::Left);
        x = end + 26.0;
    }
}
