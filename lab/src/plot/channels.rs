// SPDX-License-Identifier: BSD-2-Clause
//! Draws the picture of `tcam tune`: latency, bandwidth and overlap by the size of messages, in one
//! panel each. A channel is a way to send a message, such as shared buffers, kernel copy or the
//! network.

use super::canvas::DARK;
use super::panel::{Axis, Panel, Series};
use super::picture::WIDTH;
use super::signs::{BLUE, LEGEND, LINE, Marker, Style, VERMILION, legend};
use super::{Align, Canvas, Picture, Sign};

const HEIGHT: u32 = 1100;
const STYLES: [Style; 2] = [(BLUE, Marker::Disc), (VERMILION, Marker::Triangle)];

/// A line: message sizes in bytes, each with the median and the lower and upper quartile.
pub(crate) type Line = Vec<(usize, f64, (f64, f64))>;

/// The data of one panel.
pub(crate) struct ChannelPanel {
    pub(crate) title: &'static str,
    pub(crate) unit: &'static str,
    /// True for values in per cent, which have a linear scale.
    pub(crate) is_share: bool,
    /// One line for each channel.
    pub(crate) lines: Vec<Line>,
    /// The message size from which the second channel stays better, with its label.
    pub(crate) mark: Option<(u64, String)>,
}

/// The data of the picture.
pub(crate) struct Channels {
    /// Names of one or two channels.
    pub(crate) names: Vec<&'static str>,
    pub(crate) panels: [ChannelPanel; 3],
    /// The results as sentences.
    pub(crate) reading: Vec<String>,
}

impl Channels {
    /// Returns the picture.
    pub(crate) fn picture(self, title: String) -> Picture<'static> {
        Picture::new(title, HEIGHT, move |canvas| self.draw(canvas))
    }

    fn draw(&self, canvas: &mut Canvas) {
        let width = f64::from(WIDTH);
        let has_mark = self.panels.iter().any(|panel| panel.mark.is_some());
        let mark = has_mark.then_some((Sign::Dashes, "the second stays better"));
        let lines = STYLES.map(Sign::Marked).into_iter().zip(self.names.iter().copied());
        legend(canvas, LEGEND, LINE, lines.chain(mark));
        let columns = [130.0, 130.0 + width / 2.0 - 20.0];
        let places = [(columns[0], 165.0), (columns[1], 165.0), (columns[0], 625.0)];
        for ((left, top), measured) in places.into_iter().zip(&self.panels) {
            let sizes: Vec<_> = measured.lines.iter().flatten().map(|&(size, _, _)| size).collect();
            let sizes: Vec<_> = std::collections::BTreeSet::from_iter(sizes).into_iter().collect();
            let series = measured.lines.iter().zip(STYLES).map(|(line, style)| Series {
                style,
                values: line.iter().map(|&(size, value, _)| (size, value)).collect(),
                spread: line.iter().map(|&(_, _, spread)| spread).collect(),
            });
            Panel {
                frame: (left, top, width / 2.0 - 180.0, 320.0),
                title: measured.title,
                unit: measured.unit,
                x_label: "bytes of a message",
                sizes: &sizes,
                mark: measured.mark.clone(),
                axis: if measured.is_share { Axis::Percent } else { Axis::Decades },
                series: series.collect(),
            }
            .draw(canvas);
        }
        for (line, text) in self.reading.iter().enumerate() {
            let at = (columns[1] - 60.0, 660.0 + 30.0 * line as f64);
            canvas.text(text, at, 17.0, DARK, Align::Left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_marks_are_drawn() {
        let panel = |title, is_share, mark| ChannelPanel {
            title,
            unit: "us",
            is_share,
            lines: vec![vec![(8, 1.0, (0.9, 1.1)), (4096, 3.0, (2.0, 4.0))]; 2],
            mark,
        };
        let mark = Some((2048, "from 2,048".to_owned()));
        let channels = Channels {
            names: vec!["shared buffers", "kernel copy"],
            panels: [
                panel("Latency", false, mark),
                panel("Bandwidth", false, None),
                panel("Overlap", true, None),
            ],
            reading: vec!["by latency".to_owned()],
        };
        let text = channels.picture("channels of a".to_owned()).svg().unwrap();
        for part in ["channels of a", "from 2,048", "kernel copy", "bytes of a message", "4,096"] {
            assert!(text.contains(part), "{part}");
        }
    }
}
