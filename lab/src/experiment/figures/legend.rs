// SPDX-License-Identifier: BSD-2-Clause
//! Parts that all pictures of an experiment share: colours and the legend.

use plotters::prelude::RGBColor;

use crate::error::Error;
use crate::plot::canvas::{Align, At, Canvas, DARK, GREY, Surface};

/// Two colours that people with any colour vision can distinguish, and that differ in grey too
/// (Okabe and Ito).
pub(super) const DEEP: RGBColor = RGBColor(0x00, 0x72, 0xb2);
pub(super) const WARM: RGBColor = RGBColor(0xe6, 0x9f, 0x00);

/// Left edge of titles.
pub(super) const MARGIN: f64 = 40.0;

/// The sign that a legend shows next to a name.
pub(super) enum Sign {
    Area(RGBColor),
    Line(RGBColor),
    Dashes,
}

/// Draws the legend: each sign with its name.
pub(super) fn legend(
    canvas: &Canvas<'_, impl Surface>,
    signs: &[(Sign, &str)],
) -> Result<(), Error> {
    let (mut x, y) = (MARGIN, 78.0);
    for (sign, name) in signs {
        match sign {
            Sign::Area(colour) => rectangle(canvas, (x, y - 8.0), (x + 30.0, y + 8.0), *colour)?,
            Sign::Line(colour) => canvas.line(&[(x, y), (x + 30.0, y)], 3.0, *colour)?,
            Sign::Dashes => canvas.dashed((x, y), (x + 30.0, y), 2.0, GREY)?,
        }
        canvas.text(name, (x + 40.0, y - 6.5), 18.0, DARK, Align::Left)?;
        x += 40.0 + canvas.width(name, 18.0)? + 40.0;
    }
    Ok(())
}

/// Draws a filled rectangle.
pub(super) fn rectangle(
    canvas: &Canvas<'_, impl Surface>,
    from: At,
    to: At,
    colour: RGBColor,
) -> Result<(), Error> {
    canvas.polygon(&[from, (to.0, from.1), to, (from.0, to.1)], colour)
}
