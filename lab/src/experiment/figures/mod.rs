// SPDX-License-Identifier: BSD-2-Clause
//! The pictures of an experiment.

mod bars;
mod fill;
mod map;
mod series;

use self::map::Map;
use super::material::Material;
use super::outcome::Experiment;
use super::rank::QueueKind;
use crate::plot::{Canvas, Picture, capacity};

/// Names of all files. An experiment may lack some of them.
pub(crate) const NAMES: [&str; 9] =
    ["curve", "lengths", "fill", "sites", "occupancy", "depths", "blocks", "map", "traversals"];

/// A picture, its file name and an explanation.
pub(crate) struct Figure<'a> {
    pub(crate) name: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) reading: &'static str,
    pub(crate) picture: Picture<'a>,
}

/// Returns all pictures of an experiment that are not empty.
pub(crate) fn all<'a>(experiment: &'a Experiment, material: &'a Material) -> Vec<Figure<'a>> {
    // If traces are missing or incomplete, titles of pictures from traces contain the number of
    // ranks with traces.
    let traced = match experiment.lack_of_traces() {
        Some(_) => format!(", traces of {}", experiment.traces.ranks().count()),
        None => String::new(),
    };
    let title = |name, heading| {
        let of_traces =
            if ["curve", "fill", "sites"].contains(&name) { traced.as_str() } else { "" };
        format!("{heading}: {}{of_traces}", experiment.title())
    };
    let mut figures = Vec::new();
    let mut add = |name, heading, reading, height, draw: Box<dyn Fn(&mut Canvas) + 'a>| {
        let picture = Picture::new(title(name, heading), height, draw);
        figures.push(Figure { name, heading, reading, picture });
    };
    if let Some(swept) = &material.curve {
        add(
            "curve",
            "Capacity curve",
            "What tables of other sizes would have done with the same operations, computed from \
             the traces. The dashed vertical line is the smallest table that holds everything; \
             left of it elements spill to the host.",
            capacity::HEIGHT,
            Box::new(|canvas| capacity::figure(canvas, swept)),
        );
    }
    let compared = Map::of(experiment, "sum of the search depths", QueueKind::compared);
    let traversed = Map::of(experiment, "sum over its searches", QueueKind::traversed);
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
    add(
        "lengths",
        "Queue length over time",
        "Elements of each queue, in table and host together, on the rank whose queue became \
         longest; the ranks that follow are grey. Each sample has the longest of its interval, so \
         that the highest point is the high-water mark. Where the line is above the dashed one \
         elements spill; below it they do too, where the device refuses them or its overflow model \
         lets none enter.",
        series::HEIGHT,
        Box::new(|canvas| series::lengths(canvas, experiment)),
    );
    if let Some(fill) = fill::Fill::of(material) {
        add(
            "fill",
            "Who fills the queues",
            "The same, by the communicator of each element, from the traces. If one communicator \
             has nearly all elements, the colours are their tags. If one tag has nearly all, the \
             colours are their peers. Tags or ranks that follow each other share a colour. `tcam \
             show --by` has a line for each.",
            fill.height(),
            Box::new(move |canvas| fill.draw(canvas)),
        );
    }
    if let Some(fill) = fill::Fill::by_site(material) {
        add(
            "sites",
            "Which lines fill the queues",
            "The same, by the line of the program that posted the receive. A message has the line \
             that sent it, if sends were recorded, and otherwise the line of the receive that took \
             it.",
            fill.height(),
            Box::new(move |canvas| fill.draw(canvas)),
        );
    }
    add(
        "occupancy",
        "Table occupancy over time",
        "The same ranks: what of the queue was in the table, and on top of it what was on the \
         host.",
        series::HEIGHT,
        Box::new(|canvas| series::occupancy(canvas, experiment)),
    );
    add(
        "depths",
        "Search depth",
        "Entries that a linear search in age order compares, table and host together, for \
         searches of all ranks that found an element and for those that found nothing. Each \
         bucket is twice as wide as the one before it, and the vertical axis is logarithmic: \
         rare deep searches are seen, and cost most.",
        bars::DEPTHS_HEIGHT,
        Box::new(|canvas| bars::depths(canvas, experiment)),
    );
    add(
        "blocks",
        "Why elements were not in the table",
        "Elements of all ranks that went to the host, by the reason at that moment and by kind \
         of traffic. “table full” asks for a larger table, “refused” and “order” for another \
         device or overflow model.",
        bars::blocks_height(experiment),
        Box::new(|canvas| bars::blocks(canvas, experiment)),
    );
    add(
        "map",
        "Entries compared on each rank",
        "A square for each rank: entries that all its searches would have compared in a linear \
         search. One bright square is a hot spot, such as the root of a gather; stripes and \
         blocks come from the neighbourhood of the program's domains.",
        compared.height(),
        Box::new(move |canvas| compared.draw(canvas)),
    );
    add(
        "traversals",
        "Entries traversed on the host, by rank",
        "The same for what the host engine traversed in its own queues, behind the table: what an \
         engine saves is the difference to a linear search.",
        traversed.height(),
        Box::new(move |canvas| traversed.draw(canvas)),
    );
    figures.retain(|figure| has(figure.name));
    figures
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::outcome::tests::experiment;

    #[test]
    fn every_picture_is_drawn_at_any_number_of_ranks() {
        for (ranks, entries) in [(1, 0), (2, 64), (256, 512), (256, 65_536), (5000, 100)] {
            let experiment = experiment(ranks, entries);
            for figure in all(&experiment, &Material::default()) {
                let text = figure.picture.svg().unwrap();
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
        map.picture.png(&path).unwrap();
        let header = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(path).unwrap()));
        assert_eq!(header.read_info().unwrap().info().size(), map.picture.size());
    }
}
