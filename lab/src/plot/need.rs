// SPDX-License-Identifier: BSD-2-Clause
//! Draws the need of a NIC: the share of the elements that fit pools of several sizes, next to the
//! cost of overflow.

use super::panel::{Axis, Panel, Series};
use super::signs::{BLUE, GREEN, LINE, MARGIN, Marker, Style, VERMILION, legend};
use super::{Canvas, Chart, Picture, Sign};
use crate::text::whole;

const HEIGHT: u32 = 640;
const FITS: Style = Style::new(GREEN, Marker::Square, "in the NIC");
const LIST: Style = Style::new(BLUE, Marker::Disc, "searches of a list on the host");
const WAY: Style =
    Style::new(VERMILION, Marker::Triangle, "searches, and 1 us for the way of each message");

/// The legend.
const SIGNS: [(Sign, &str); 4] = [FITS.sign(), LIST.sign(), WAY.sign(), (Sign::Dashes, "need")];

/// The lowest and the highest value of all runs, at each size.
pub(crate) type Ranges = Vec<(f64, f64)>;

/// The data of the picture.
#[derive(Debug)]
pub(crate) struct NeedOfNic {
    /// Number of entries that hold all elements.
    pub(crate) need: u64,
    /// Sizes of the NIC in entries, in rising order.
    pub(crate) sizes: Vec<usize>,
    /// Share of the elements that got an entry when they were added, in per cent.
    pub(crate) immediate: Ranges,
    /// Share of the run's time that searches of a list on the host cost, in per cent.
    pub(crate) list: Ranges,
    /// Like `list`, plus the time of the way from the NIC to the host and back for each message
    /// that a table passes to the host.
    pub(crate) with_way: Ranges,
}

impl NeedOfNic {
    /// Returns the picture.
    pub(crate) fn picture(self, title: String) -> Picture<'static> {
        Picture::new(title, HEIGHT, move |canvas| self.draw(canvas))
    }

    fn draw(&self, canvas: &mut Canvas) {
        legend(canvas, (MARGIN, 84.0), LINE, SIGNS);
        // Points are those of the worst run.
        let series = |style: Style, ranges: &Ranges, is_cost: bool| {
            let worst = ranges.iter().map(|of| if is_cost { of.1 } else { of.0 });
            let values = self.sizes.iter().copied().zip(worst).collect();
            Series { style, values, spread: ranges.clone() }
        };
        let mut panel = |left: f64, title: &str, unit, axis: Axis, series: Vec<Series>| {
            let chart = Chart {
                frame: (left, 185.0, 520.0, 360.0),
                title: title.to_owned(),
                note: String::new(),
                x_label: "entries of the NIC, shared by its ranks".to_owned(),
                y_label: unit,
            };
            let mark = Some((self.need, format!("needs {}", whole(self.need))));
            Panel { chart, sizes: &self.sizes, mark, axis, series }.draw(canvas);
        };
        let unit = "share of all elements (%)";
        panel(
            130.0,
            "Elements that fit immediately",
            unit,
            Axis::Percent,
            vec![series(FITS, &self.immediate, false)],
        );
        let unit = "share of the run's time (%)";
        let costs = vec![series(WAY, &self.with_way, true), series(LIST, &self.list, true)];
        panel(810.0, "Modelled cost of overflow", unit, Axis::Linear, costs);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_panels_have_the_need() {
        let ranges = |of: [f64; 3]| of.map(|of| (0.9 * of, of)).to_vec();
        let need = NeedOfNic {
            need: 1723,
            sizes: vec![256, 1024, 2048],
            immediate: ranges([12.0, 80.0, 100.0]),
            list: ranges([4.0, 1.0, 0.0]),
            with_way: ranges([6.0, 2.0, 0.0]),
        };
        let svg = need.picture("app on 4 ranks".to_owned()).svg().unwrap();
        assert_eq!(svg.matches("needs 1,723").count(), 2);
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
    }
}
