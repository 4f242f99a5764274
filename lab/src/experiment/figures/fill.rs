// SPDX-License-Identifier: BSD-2-Clause
//! Draws the longest queues over time. The elements of each communicator or tag are an area, and
//! the areas are stacked.

use std::collections::BTreeMap;

use plotters::prelude::RGBColor;

use crate::experiment::{Communicators, ElementClass, Material, QueueKind, Series, by};
use crate::plot::signs::{AREA, BLUE, GREEN, LEGEND, ORANGE, VERMILION, legend};
use crate::plot::{Canvas, Chart, Scale, Sign};
use crate::text::whole;

pub(crate) const HEIGHT: u32 = 900;
/// Width by which a step reaches into the next one, so that no seam shows between them.
const OVERLAP: f64 = 0.7;
/// Colours that people with any colour vision can distinguish (Okabe and Ito). If there are more
/// names than colours, the last colour is for all names without a colour.
const COLOURS: [RGBColor; 7] = [
    BLUE,
    ORANGE,
    GREEN,
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
    VERMILION,
    RGBColor(0x99, 0x99, 0x99),
];

/// A function that returns the name of a class. Each name has a colour.
type Name<'a> = &'a dyn Fn(&ElementClass) -> String;

/// The data of the picture: each queue on the rank where it was longest.
pub(crate) struct Fill {
    /// Names of communicators, or of tags if there is only one communicator, those with most
    /// elements first. All other names share the name `others`, which is the last.
    names: Vec<String>,
    panels: Vec<FillPanel>,
    /// Time of the last sample, in seconds since the run began.
    end: f64,
}

struct FillPanel {
    queue: QueueKind,
    rank: Option<u32>,
    mark: u64,
    /// Time of the high-water mark, as text.
    moment: String,
    at: Vec<f64>,
    /// Elements at each time, by colour.
    counts: Vec<Vec<u64>>,
}

impl Fill {
    /// Takes the data from the replayed traces. Returns `None` if the queues had no elements.
    pub(crate) fn of(material: &Material) -> Option<Self> {
        let series: Vec<_> = (material.longest.iter())
            .map(|(queue, at, series)| (*queue, &material.makeups[*at], series))
            .collect();
        if series.is_empty() {
            return None;
        }
        let heaviest = |name: Name<'_>| {
            let mut weights: BTreeMap<String, u64> = BTreeMap::new();
            for (queue, makeup, _) in &series {
                for (class, &count) in makeup.classes.iter().zip(&makeup.of(*queue).at_mark) {
                    *weights.entry(name(class)).or_default() += count;
                }
            }
            let mut names: Vec<_> = weights.into_iter().filter(|(_, weight)| *weight > 0).collect();
            names.sort_by_key(|(_, weight)| std::cmp::Reverse(*weight));
            names.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        let communicators = Communicators::of(&material.makeups);
        let by_communicator = |class: &ElementClass| communicators.name(class);
        let mut name: Name<'_> = &by_communicator;
        let mut names = heaviest(name);
        if names.len() == 1 {
            name = &by::what;
            names = heaviest(name);
        }
        let has_others = |names: &[String]| {
            let mut classes = series.iter().flat_map(|(.., of)| &of.classes);
            classes.any(|class| !names.contains(&name(class)))
        };
        if names.len() + usize::from(has_others(&names)) > COLOURS.len() {
            names.truncate(COLOURS.len() - 1);
        }
        let end = series.iter().filter_map(|(.., of)| of.at.last()).copied().fold(0.0, f64::max);
        let has_others = has_others(&names);
        let panels = series
            .into_iter()
            .map(|(queue, makeup, of)| FillPanel {
                queue,
                rank: makeup.rank,
                mark: makeup.of(queue).mark,
                moment: by::moment(makeup.of(queue)),
                counts: by_name(of, queue, name, &names),
                at: of.at.clone(),
            })
            .collect();
        if has_others {
            names.push("others".to_owned());
        }
        Some(Self { names, panels, end })
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas) {
        let signs = self.names.iter().zip(COLOURS);
        let signs = signs.map(|(name, colour)| (Sign::Area(colour), name.as_str()));
        legend(canvas, LEGEND, AREA, signs);
        for (panel, top) in self.panels.iter().zip([180.0, 560.0]) {
            panel.draw(canvas, top, self.end);
        }
    }
}

/// Returns the counts of a series by index of the name. The last count is that of all other names.
fn by_name(series: &Series, queue: QueueKind, name: Name<'_>, names: &[String]) -> Vec<Vec<u64>> {
    let place = |class| {
        let name = name(class);
        names.iter().position(|of| *of == name).unwrap_or(names.len())
    };
    let places: Vec<_> = series.classes.iter().map(place).collect();
    series.counts[queue as usize]
        .iter()
        .map(|counts| {
            let mut sums = vec![0; names.len() + 1];
            for (place, count) in places.iter().zip(counts) {
                sums[*place] += count;
            }
            sums
        })
        .collect()
}

impl FillPanel {
    fn draw(&self, canvas: &mut Canvas, top: f64, end: f64) {
        let rank = self.rank.map_or_else(String::new, |rank| format!(", rank {rank}"));
        let (x, y) = (Scale::span(end), Scale::linear(self.mark.max(1) as f64));
        let chart = Chart {
            frame: (150.0, top, 1200.0, 250.0),
            title: format!("{}{rank}", self.queue.long_name()),
            note: format!("high-water mark {}, {}", whole(self.mark), self.moment),
            x_label: "time since the run began (s)".to_owned(),
            y_label: "elements",
        };
        chart.draw(canvas, &x, &y);
        let mut from = 0.0;
        for (&at, counts) in self.at.iter().zip(&self.counts) {
            let mut below = 0;
            for (count, colour) in counts.iter().zip(COLOURS) {
                if *count > 0 {
                    let low = chart.at(x.part(from), y.part(below as f64));
                    let high = chart.at(x.part(at), y.part((below + count) as f64));
                    canvas.filled(low, (high.0 + OVERLAP, high.1), colour);
                }
                below += count;
            }
            from = at;
        }
    }
}
