// SPDX-License-Identifier: BSD-2-Clause
//! Draws the capacity curve as SVG and PNG: four panels over the table size.
//!
//! The axis of the table size has a scale of powers of two. 0 is one step below the smallest other
//! size.

use std::path::{Path, PathBuf};

use plotters::prelude::RGBColor;

use super::canvas::DARK;
use super::chart::sentence;
use super::panel::{Axis, Panel, Series};
use super::signs::{BLUE, GREEN, LEGEND, LINE, Marker, Style, VERMILION, WIDTH, legend};
use super::{Align, Canvas, Chart, Picture, Sign};
use crate::capacity::{Cost, Knob, Point, Swept};
use crate::error::Error;
use crate::file;
use crate::text::whole;

/// Height of the picture.
pub(crate) const HEIGHT: u32 = 1160;

const PRQ: Style = Style::new(BLUE, Marker::Disc, "posted receives (PRQ)");
const UMQ: Style = Style::new(VERMILION, Marker::Triangle, "unexpected messages (UMQ)");
const BOTH: Style = Style::new(RGBColor(0x33, 0x33, 0x33), Marker::Square, "all");
const LATER: Style = Style::new(GREEN, Marker::Disc, "with those promoted first");

/// The legend.
const SIGNS: [(Sign, &str); 5] =
    [PRQ.sign(), UMQ.sign(), BOTH.sign(), LATER.sign(), (Sign::Dashes, "table size and need")];

/// Writes the curve to `curve.svg` and `curve.png` in a directory. Returns both paths.
pub(crate) fn draw(directory: &Path, title: &str, swept: &Swept) -> Result<[PathBuf; 2], Error> {
    let paths = ["curve.svg", "curve.png"].map(|name| directory.join(name));
    let curve = Picture::new(title.to_owned(), HEIGHT, |canvas| figure(canvas, swept));
    file::write(&paths[0], curve.svg()?)?;
    curve.png(&paths[1])?;
    Ok(paths)
}

/// Draws everything below the title: legend, four panels and the conclusions.
pub(crate) fn figure(canvas: &mut Canvas, swept: &Swept) {
    let points = &swept.points;
    let (width, height) = (f64::from(WIDTH), f64::from(HEIGHT));
    legend(canvas, LEGEND, LINE, SIGNS);
    let reading = swept.reading();
    for (line, text) in reading.iter().enumerate() {
        let y = height - 68.0 + 27.0 * (line as f64 + 2.0 - reading.len() as f64);
        canvas.text(&sentence(text), (40.0, y), 18.0, DARK, Align::Left);
    }

    // The axis has the size of the PRQ's table, or the size of the UMQ's table if only that size
    // varies.
    let by_umq = points.iter().all(|point| point.prq == points[0].prq) && points.len() > 1;
    let size = |point: &Point| if by_umq { point.umq } else { point.prq };
    let label = if swept.knob == Knob::Pool {
        "entries of the pool that the ranks of a node share".to_owned()
    } else if points.iter().all(|point| point.prq == point.umq) {
        "entries of each table".to_owned()
    } else if by_umq {
        format!("entries of the UMQ table (PRQ: {})", whole(points[0].prq as u64))
    } else if points.iter().all(|point| point.umq == points[0].umq) {
        format!("entries of the PRQ table (UMQ: {})", whole(points[0].umq as u64))
    } else {
        "entries of the PRQ table".to_owned()
    };
    let need = swept.needs();
    let sizes: Vec<_> = points.iter().map(size).collect();
    let line = |style: Style, of: &dyn Fn(&Point) -> f64| Series {
        style,
        values: points.iter().map(|point| (size(point), of(point))).collect(),
        spread: Vec::new(),
    };

    let columns = [130.0, 130.0 + width / 2.0 - 20.0];
    let rows = [165.0, 625.0];
    let frame =
        |column: usize, row: usize| (columns[column], rows[row], width / 2.0 - 180.0, 320.0);
    let mut panel = |frame, title: &str, unit, axis: Axis, series: Vec<Series>| {
        let mark = need.map(|need| (need, format!("needs {}", whole(need))));
        let chart = Chart {
            frame,
            title: title.to_owned(),
            note: String::new(),
            x_label: label.clone(),
            y_label: unit,
        };
        Panel { chart, sizes: &sizes, mark, axis, series }.draw(canvas);
    };

    panel(
        frame(0, 0),
        "Elements in the table, immediately and when promoted",
        "share of all elements (%)",
        Axis::Percent,
        vec![
            line(LATER, &|point| point.immediate() + point.promoted),
            line(BOTH, &|point| point.immediate()),
        ],
    );
    panel(
        frame(1, 0),
        "Elements that spill to the host",
        "share of the queue's elements (%)",
        Axis::Percent,
        vec![line(PRQ, &|point| point.spilled[1]), line(UMQ, &|point| point.spilled[2])],
    );
    panel(
        frame(0, 1),
        "High-water mark of the longest queue",
        "elements immediately",
        Axis::Powers,
        [(PRQ, 0), (UMQ, 1)]
            .map(|(of, queue)| Series {
                spread: points.iter().map(|point| range(&point.marks[queue])).collect(),
                ..line(of, &|point| point.peaks[queue].elements as f64)
            })
            .into(),
    );
    if let Some((title, unit)) = points[0].cost.map(Cost::title) {
        let cost = line(BOTH, &|point| point.cost.map_or(0.0, Cost::value));
        return panel(frame(1, 1), title, unit, Axis::Linear, vec![cost]);
    }
    let mut time = line(BOTH, &|point| point.seconds[1]);
    time.spread = points.iter().map(|point| (point.seconds[0], point.seconds[2])).collect();
    let repeated = time.spread.iter().any(|(low, high)| low < high);
    let what = if repeated { "Time of a run, median and range" } else { "Time of a run" };
    panel(frame(1, 1), what, "seconds", Axis::Linear, vec![time]);
}

/// Returns the smallest and the largest value; 0 and 0 without values.
fn range(values: &[u64]) -> (f64, f64) {
    let most = values.iter().max().copied().unwrap_or(0);
    (values.iter().min().copied().unwrap_or(most) as f64, most as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Summary;
    use crate::results::reports::tests::sample;

    #[test]
    fn both_pictures_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let points: Vec<_> = [0, 64, 1024]
            .map(|size| {
                Point::of(size, size, &[Summary::of(&[sample(0, size as u64, 700)]).unwrap()])
            })
            .into();
        let swept = Swept::of_runs(points, Knob::Tables, None);
        let [svg, png] = draw(directory.path(), "app on 1 ranks", &swept).unwrap();
        let text = std::fs::read_to_string(svg).unwrap();
        for part in ["app on 1 ranks", "Entries of each table", "needs 700"] {
            assert!(text.contains(part), "{part}");
        }
        let header = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(png).unwrap()));
        let header = header.read_info().unwrap();
        assert_eq!(header.info().size(), (WIDTH, HEIGHT));
    }
}
