// SPDX-License-Identifier: BSD-2-Clause
//! The pictures of an experiment.

mod bars;
mod fill;
mod map;
mod series;

use super::material::Material;
use super::outcome::Experiment;
use super::rank::QueueKind;
use crate::capacity::verdict::Swept;
use crate::error::Error;
use crate::plot::canvas::{Align, Canvas, DARK, Surface};
use crate::plot::capacity;
use crate::plot::picture::Picture;
use crate::plot::signs::MARGIN;

const WIDTH: u32 = 1400;

/// Names of all files. An experiment may lack some of them.
pub(crate) const NAMES: [&str; 8] =
    ["curve", "lengths", "fill", "occupancy", "depths", "blocks", "map", "traversals"];

/// A picture, its file name and an explanation.
pub(crate) struct Figure<'a> {
    pub(crate) name: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) reading: &'static str,
    title: String,
    what: Drawing<'a>,
}

enum Drawing<'a> {
    Lengths(&'a Experiment),
    Occupancy(&'a Experiment),
    Depths(&'a Experiment),
    Blocks(&'a Experiment),
    Map(map::Map),
    Fill(fill::Fill),
    Curve(&'a Swept),
}

/// Returns all pictures of an experiment that are not empty.
pub(crate) fn all<'a>(experiment: &'a Experiment, material: &'a Material) -> Vec<Figure<'a>> {
    // Titles of pictures from traces have the number of ranks with traces, if some lack.
    let traced = match experiment.lack_of_traces() {
        Some(_) => format!(", traces of {}", experiment.traces.ranks().count()),
        None => String::new(),
    };
    let figure = |name, heading, reading, what| {
        let of_traces = if ["curve", "fill"].contains(&name) { traced.as_str() } else { "" };
        let title = format!("{heading}: {}{of_traces}", experiment.title());
        Figure { name, heading, reading, title, what }
    };
    let mut figures = Vec::new();
    if let Some(swept) = &material.curve {
        figures.push(figure(
            "curve",
            "Capacity curve",
            "What tables of other sizes would have done with the same operations, computed from \
             the traces. The dashed vertical line is the smallest table that holds everything; \
             left of it elements spill to the host.",
            Drawing::Curve(swept),
        ));
    }
    let has_lengths = experiment.ranks.iter().any(|rank| !rank.lengths.us.is_empty());
    let has = |name| match name {
        "lengths" | "occupancy" => has_lengths,
        "depths" => bars::has_depths(experiment),
        "blocks" => !experiment.reasons().is_empty(),
        "traversals" => {
            let both = |rank| QueueKind::BOTH.iter().map(move |queue| queue.traversed(rank));
            experiment.ranks.iter().flat_map(both).any(|entries| entries > 0)
        }
        _ => true,
    };
    figures.push(figure(
        "lengths",
        "Queue length over time",
        "Elements of each queue, in table and host together, on the rank whose queue became \
         longest; the ranks that follow are grey. Each sample has the longest of its interval, so \
         that the highest point is the high-water mark. Where the line is above the dashed one \
         elements spill; below it they do too, where the device refuses them or its overflow model \
         lets none enter.",
        Drawing::Lengths(experiment),
    ));
    if let Some(fill) = fill::Fill::of(material) {
        figures.push(figure(
            "fill",
            "Who fills the queues",
            "The same, by the communicator of each element, from the traces. `tcam stats --by` has \
             tags, peers and kinds, too.",
            Drawing::Fill(fill),
        ));
    }
    figures.push(figure(
        "occupancy",
        "Table occupancy over time",
        "The same ranks: what of the queue was in the table, and on top of it what was on the \
         host.",
        Drawing::Occupancy(experiment),
    ));
    figures.push(figure(
        "depths",
        "Search depth",
        "Entries that a linear search in age order compares, table and host together, for \
         searches of all ranks that found an element and for those that found nothing. Each \
         bucket is twice as wide as the one before it, and the vertical axis is logarithmic: \
         rare deep searches are seen, and cost most.",
        Drawing::Depths(experiment),
    ));
    figures.push(figure(
        "blocks",
        "Why elements were not in the table",
        "Elements of all ranks that went to the host, by the reason at that moment and by kind \
         of traffic. “table full” asks for a larger table, “refused” and “order” for another \
         device or overflow model.",
        Drawing::Blocks(experiment),
    ));
    figures.push(figure(
        "map",
        "Entries compared on each rank",
        "A square for each rank: entries that all its searches would have compared in a linear \
         search. One bright square is a hot spot, such as the root of a gather; stripes and \
         blocks come from the neighbourhood of the program's domains.",
        Drawing::Map(map::Map::of(experiment, "sum of the search depths", QueueKind::compared)),
    ));
    figures.push(figure(
        "traversals",
        "Entries traversed on the host, by rank",
        "The same for what the host engine traversed in its own queues, behind the table: what an \
         engine saves is the difference to a linear search.",
        Drawing::Map(map::Map::of(experiment, "sum over its searches", QueueKind::traversed)),
    ));
    figures.retain(|figure| has(figure.name));
    figures
}

impl Picture for Figure<'_> {
    fn size(&self) -> (u32, u32) {
        match &self.what {
            Drawing::Lengths(_) | Drawing::Occupancy(_) => (WIDTH, series::HEIGHT),
            Drawing::Fill(_) => (WIDTH, fill::HEIGHT),
            Drawing::Depths(_) => (WIDTH, bars::DEPTHS_HEIGHT),
            Drawing::Blocks(experiment) => (WIDTH, bars::blocks_height(experiment)),
            Drawing::Map(map) => (WIDTH, map.height()),
            Drawing::Curve(swept) => capacity::CapacityCurve { title: &self.title, swept }.size(),
        }
    }

    fn draw(&self, canvas: &Canvas<'_, impl Surface>) -> Result<(), Error> {
        if let Drawing::Curve(swept) = &self.what {
            return capacity::CapacityCurve { title: &self.title, swept }.draw(canvas);
        }
        canvas.text(&self.title, (MARGIN, 22.0), 27.0, DARK, Align::Left)?;
        match &self.what {
            Drawing::Lengths(experiment) => series::lengths(canvas, experiment),
            Drawing::Occupancy(experiment) => series::occupancy(canvas, experiment),
            Drawing::Depths(experiment) => bars::depths(canvas, experiment),
            Drawing::Blocks(experiment) => bars::blocks(canvas, experiment),
            Drawing::Map(map) => map.draw(canvas),
            Drawing::Fill(fill) => fill.draw(canvas),
            Drawing::Curve(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::outcome::tests::experiment;
    use crate::plot::picture;

    #[test]
    fn every_picture_is_drawn_at_any_number_of_ranks() {
        for (ranks, entries) in [(1, 0), (2, 64), (256, 512), (256, 65_536), (5000, 100)] {
            let experiment = experiment(ranks, entries);
            for figure in all(&experiment, &Material::default()) {
                let text = picture::svg(&figure).unwrap();
                assert!(text.contains(figure.heading), "{}", figure.name);
                assert!(!text.contains("NaN") && !text.contains("inf"), "{}", figure.name);
                assert!(text.len() < 2_000_000, "{}: {} bytes", figure.name, text.len());
            }
        }
    }

    #[test]
    fn a_bitmap_has_the_size_of_the_picture() {
        let directory = tempfile::tempdir().unwrap();
        let experiment = experiment(2, 64);
        let material = Material::default();
        let figures = all(&experiment, &material);
        let path = directory.path().join("map.png");
        let map = figures.last().unwrap();
        picture::png(map, &path).unwrap();
        let header = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(path).unwrap()));
        assert_eq!(header.read_info().unwrap().info().size(), map.size());
    }
}
