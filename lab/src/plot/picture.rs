// SPDX-License-Identifier: BSD-2-Clause
//! Writes a picture as SVG and as PNG.

use std::io::BufWriter;
use std::path::Path;

use plotters::prelude::{BitMapBackend, IntoDrawingArea, SVGBackend};

use super::canvas::DARK;
use super::signs::{MARGIN, WIDTH};
use super::{Align, Canvas};
use crate::error::Error;
use crate::file::NewFile;

/// The bitmap is drawn larger by this factor and then averaged, for smooth lines.
const OVERSAMPLE: u32 = 3;

/// A picture with its title, for any resolution.
pub(crate) struct Picture<'a> {
    title: String,
    height: u32,
    draw: Box<dyn Fn(&mut Canvas) + 'a>,
}

impl<'a> Picture<'a> {
    /// Makes a picture. `draw` draws everything below the title.
    pub(crate) fn new(title: String, height: u32, draw: impl Fn(&mut Canvas) + 'a) -> Self {
        Self { title, height, draw: Box::new(draw) }
    }

    pub(crate) fn size(&self) -> (u32, u32) {
        (WIDTH, self.height)
    }

    fn drawn(&self, scale: u32) -> Canvas {
        let mut canvas = Canvas::new(scale as i32);
        canvas.text(&self.title, (MARGIN, 22.0), 27.0, DARK, Align::Left);
        (self.draw)(&mut canvas);
        canvas
    }

    /// Returns the picture as SVG.
    pub(crate) fn svg(&self) -> Result<String, Error> {
        let canvas = self.drawn(1);
        let hovers = canvas.hovers();
        let mut text = String::new();
        let area = SVGBackend::with_string(&mut text, self.size()).into_drawing_area();
        canvas.draw(&area)?;
        drop(area);
        // plotters has no titles. They are above all shapes, because the pointer finds the topmost.
        let end = text.rfind("</svg>").unwrap_or(text.len());
        text.insert_str(end, &hovers);
        Ok(text)
    }

    /// Writes the picture as PNG.
    pub(crate) fn png(&self, path: &Path) -> Result<(), Error> {
        let canvas = self.drawn(OVERSAMPLE);
        let size = self.size();
        let large = (size.0 * OVERSAMPLE, size.1 * OVERSAMPLE);
        let mut pixels = vec![0; (large.0 * large.1 * 3) as usize];
        canvas.draw(&BitMapBackend::with_buffer(&mut pixels, large).into_drawing_area())?;
        write(path, size, &average(&pixels, large.0 as usize))
    }
}
/// Averages each square of `OVERSAMPLE` by `OVERSAMPLE` pixels to one pixel. `width` is the number
/// of pixels in a row.
fn average(pixels: &[u8], width: usize) -> Vec<u8> {
    let step = OVERSAMPLE as usize;
    let row = width * 3;
    let mut small = Vec::with_capacity(pixels.len() / (step * step));
    for rows in pixels.chunks_exact(row * step) {
        for x in (0..width).step_by(step) {
            for colour in 0..3 {
                let sum: usize = (0..step * step)
                    .map(|i| usize::from(rows[i / step * row + (x + i % step) * 3 + colour]))
                    .sum();
                small.push((sum / (step * step)) as u8);
            }
        }
    }
    small
}

fn write(path: &Path, (width, height): (u32, u32), pixels: &[u8]) -> Result<(), Error> {
    let mut file = BufWriter::new(NewFile::create(path)?);
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let done = encoder.write_header().and_then(|mut writer| {
        writer.write_image_data(pixels)?;
        writer.finish()
    });
    done.map_err(|error| Error::Draw(error.to_string()))?;
    file.into_inner().map_err(|error| Error::io(path)(error.into_error()))?.keep()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_averaged() {
        let width = OVERSAMPLE as usize * 2;
        let mut pixels = vec![0; width * OVERSAMPLE as usize * 3];
        pixels[0] = 90;
        assert_eq!(average(&pixels, width), [10, 0, 0, 0, 0, 0]);
    }
}
