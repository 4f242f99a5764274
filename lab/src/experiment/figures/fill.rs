// SPDX-License-Identifier: BSD-2-Clause
//! Draws the longest queues over time. The elements of each communicator, tag or peer are an area,
//! and the areas are stacked. Tags and peers that follow each other share an area.

use std::collections::BTreeMap;

use plotters::prelude::RGBColor;

use crate::experiment::fill::Peer;
use crate::experiment::{Communicators, ElementClass, Material, QueueKind, Series, by};
use crate::plot::signs::{AREA, BLUE, GREEN, MARGIN, ORANGE, VERMILION, legend};
use crate::plot::{Canvas, Chart, Scale, Sign};
use crate::text::whole;

/// Upper edges of the panels.
const TOPS: [f64; 2] = [180.0, 560.0];
/// Width by which a step reaches into the next one, so that no seam shows between them.
const OVERLAP: f64 = 1.0;
/// Colours that people with any colour vision can distinguish (Okabe and Ito). If there are more
/// areas than colours, the last colour is for all areas without a colour.
const COLOURS: [RGBColor; 7] = [
    BLUE,
    ORANGE,
    GREEN,
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x56, 0xb4, 0xe9),
    VERMILION,
    RGBColor(0x99, 0x99, 0x99),
];
/// Largest share of one area for which a grouping is good.
const GOOD: f64 = 0.8;
/// An area of a smaller share is not divided. The areas without a colour may have this share.
const SMALL: f64 = 0.05;

/// A property of an element: its name and, if it has one, its number.
type Property = (String, Option<i64>);
/// A function that returns the property by which elements are grouped.
type By<'a> = &'a dyn Fn(&ElementClass) -> Property;

/// The properties that share a colour. They have the same name, and their numbers follow each other.
#[derive(Clone, Debug, Default)]
struct Area {
    name: String,
    /// Numbers in rising order, with their weights.
    numbers: Vec<(Option<i64>, f64)>,
}

impl Area {
    fn weight(&self) -> f64 {
        self.numbers.iter().map(|(_, weight)| weight).sum()
    }

    fn ends(&self) -> [Option<i64>; 2] {
        [self.numbers.first(), self.numbers.last()].map(|end| end.and_then(|(number, _)| *number))
    }

    fn contains(&self, (name, number): &Property) -> bool {
        let [first, last] = self.ends();
        self.name == *name && (first..=last).contains(number)
    }

    /// Returns text such as `tag 7` or `tags 100 to 163`.
    fn text(&self) -> String {
        let [first, last] = self.ends();
        match (&self.name, first, last) {
            (name, Some(first), Some(last)) if first < last => format!("{name}s {first} to {last}"),
            (name, Some(first), _) => format!("{name} {first}"),
            (name, ..) => name.clone(),
        }
    }

    /// Divides the area at a gap of more than half its numbers, otherwise into two that are as equal
    /// as possible. Returns the upper part.
    fn divide(&mut self) -> Self {
        let number = |at: usize| self.numbers[at].0.unwrap_or(0);
        let gap = |at: usize| number(at).saturating_sub(number(at - 1));
        let ends = 1..self.numbers.len();
        let widest = ends.clone().max_by_key(|&at| gap(at)).unwrap_or(1);
        let (half, mut below) = (self.weight() / 2.0, 0.0);
        let from_half: Vec<_> = (self.numbers.iter())
            .map(|(_, weight)| {
                below += weight;
                f64::abs(below - half)
            })
            .collect();
        let at = match gap(widest).saturating_mul(2) > number(ends.end - 1) - number(0) {
            true => widest,
            false => {
                ends.min_by(|&a, &b| from_half[a - 1].total_cmp(&from_half[b - 1])).unwrap_or(1)
            }
        };
        Self { name: self.name.clone(), numbers: self.numbers.split_off(at) }
    }
}

/// The areas of a grouping.
struct Areas<'a> {
    by: By<'a>,
    /// At most one for each colour.
    areas: Vec<Area>,
    has_others: bool,
    /// Share of the largest area; 1 if that is the one of all others.
    largest: f64,
}

impl<'a> Areas<'a> {
    /// Groups classes, each with its weight.
    fn of(weights: &[(&ElementClass, f64)], by: By<'a>) -> Self {
        let mut all: BTreeMap<Property, f64> = BTreeMap::new();
        for (class, weight) in weights {
            *all.entry(by(class)).or_default() += weight;
        }
        let mut areas: Vec<Area> = Vec::new();
        for ((name, number), weight) in all {
            match areas.last_mut().filter(|last| last.name == name) {
                Some(last) => last.numbers.push((number, weight)),
                None => areas.push(Area { name, numbers: vec![(number, weight)] }),
            }
        }
        areas.sort_by(|a, b| b.weight().total_cmp(&a.weight()));
        let all: f64 = weights.iter().map(|(_, weight)| weight).sum();
        // The lightest areas have no colours, so that larger ones can be divided.
        let mut rest = all;
        let heavy = areas.iter().position(|area| {
            let is_small = rest < SMALL * all;
            rest -= area.weight();
            is_small
        });
        let most = heavy.unwrap_or(areas.len()).min(COLOURS.len() - 1);
        let has_others = areas.len() > most + 1;
        if has_others {
            areas.truncate(most);
        }
        let colours = COLOURS.len() - usize::from(has_others);
        let heaviest = |areas: &[Area], least: usize| {
            let found = (0..areas.len()).filter(|&at| areas[at].numbers.len() >= least);
            found.max_by(|&a, &b| areas[a].weight().total_cmp(&areas[b].weight()))
        };
        while areas.len() < colours
            && let Some(at) = heaviest(&areas, 2)
            && areas[at].weight() >= SMALL * all
        {
            let upper = areas[at].divide();
            areas.insert(at + 1, upper);
        }
        let named: f64 = areas.iter().map(Area::weight).sum();
        let largest = heaviest(&areas, 1).map_or(0.0, |at| areas[at].weight());
        let largest = if all - named > largest { 1.0 } else { largest / all };
        Self { by, areas, has_others, largest }
    }
}

/// Returns the tag or the collective operation of a class.
fn tag(class: &ElementClass) -> Property {
    match (class.decoded.operation, class.decoded.tag) {
        (None, Some(tag)) => ("tag".to_owned(), Some(tag)),
        _ => (by::what(class), None),
    }
}

fn peer(class: &ElementClass) -> Property {
    let (name, number) = match class.peer {
        Peer::Rank(rank) => ("rank", Some(rank)),
        Peer::Member(rank) => ("communicator rank", Some(rank)),
        Peer::Number(number) => ("peer", Some(number)),
        Peer::Any => ("any source", None),
    };
    (name.to_owned(), number.map(i64::from))
}

/// The data of the picture: each queue on the rank where it was longest.
pub(crate) struct Fill {
    /// Names of the areas. All properties without an area share the name `others`, which is the
    /// last.
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
    /// Groups the elements of the replayed traces by communicator, tag or peer. Returns `None` if the
    /// queues had no elements.
    pub(crate) fn of(material: &Material) -> Option<Self> {
        let communicators = Communicators::of(&material.makeups);
        let by_communicator = |class: &ElementClass| (communicators.name(class), None);
        Self::by(material, &[&by_communicator, &tag, &peer])
    }

    /// Groups the elements by place in the program. Returns `None` if no places were recorded.
    pub(crate) fn by_site(material: &Material) -> Option<Self> {
        let sites = &material.makeups.first()?.sites;
        let by_site = |class: &ElementClass| (sites.name(class.place).to_owned(), None);
        if sites.is_empty() { None } else { Self::by(material, &[&by_site]) }
    }

    /// Groups the elements by the first of these properties that divides them well.
    fn by(material: &Material, by: &[By<'_>]) -> Option<Self> {
        let series: Vec<_> = (material.longest.iter())
            .map(|(queue, at, series)| (*queue, &material.makeups[*at], series))
            .collect();
        if series.is_empty() {
            return None;
        }
        // The weight of a class is its part of the areas of a panel. Both panels weigh the same.
        let weights: Vec<_> = (series.iter())
            .flat_map(|(queue, _, of)| {
                let mut weights = vec![0.0; of.classes.len()];
                let starts = of.at.iter().take(1).chain(&of.at);
                let samples = of.at.iter().zip(starts).zip(&of.counts[*queue as usize]);
                for ((at, start), counts) in samples {
                    for (weight, &count) in weights.iter_mut().zip(counts) {
                        *weight += (at - start) * count as f64;
                    }
                }
                let all: f64 = weights.iter().sum();
                of.classes
                    .iter()
                    .zip(weights)
                    .map(move |(class, weight)| (class, weight / all.max(f64::MIN_POSITIVE)))
            })
            .collect();
        let groupings: Vec<_> = by.iter().map(|by| Areas::of(&weights, *by)).collect();
        // If one communicator has nearly all elements, their tags tell more, and then their peers.
        let grouping = groupings
            .iter()
            .find(|of| of.largest <= GOOD)
            .or_else(|| groupings.iter().min_by(|a, b| a.largest.total_cmp(&b.largest)))?;
        let end = series.iter().filter_map(|(.., of)| of.at.last()).copied().fold(0.0, f64::max);
        let panels = series
            .into_iter()
            .map(|(queue, makeup, of)| FillPanel {
                queue,
                rank: makeup.rank,
                mark: makeup.of(queue).mark,
                moment: by::moment(makeup.of(queue)),
                counts: by_area(of, queue, grouping),
                at: of.at.clone(),
            })
            .collect();
        let mut names: Vec<_> = grouping.areas.iter().map(Area::text).collect();
        if grouping.has_others {
            names.push("others".to_owned());
        }
        Some(Self { names, panels, end })
    }

    pub(crate) fn height(&self) -> u32 {
        TOPS[self.panels.len() - 1] as u32 + 340
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas) {
        let signs = self.names.iter().zip(COLOURS);
        let signs = signs.map(|(name, colour)| (Sign::Area(colour), name.as_str()));
        // Communicators have long names, which may take two lines.
        legend(canvas, (MARGIN, 70.0), AREA, signs);
        for (panel, top) in self.panels.iter().zip(TOPS) {
            panel.draw(canvas, top, self.end, &self.names);
        }
    }
}

/// Returns the counts of a series by index of the area. The last count is that of all others.
fn by_area(
    series: &Series,
    queue: QueueKind,
    Areas { by, areas, .. }: &Areas<'_>,
) -> Vec<Vec<u64>> {
    let place = |class| {
        let property = by(class);
        areas.iter().position(|area| area.contains(&property)).unwrap_or(areas.len())
    };
    let places: Vec<_> = series.classes.iter().map(place).collect();
    series.counts[queue as usize]
        .iter()
        .map(|counts| {
            let mut sums = vec![0; areas.len() + 1];
            for (place, count) in places.iter().zip(counts) {
                sums[*place] += count;
            }
            sums
        })
        .collect()
}

impl FillPanel {
    fn draw(&self, canvas: &mut Canvas, top: f64, end: f64, names: &[String]) {
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
            // In the order of the areas, from above.
            let counts = names.iter().zip(counts).rev().filter(|(_, count)| **count > 0);
            let counts = counts.map(|(name, &count)| format!("\n{name}: {}", whole(count)));
            let text = format!("at {at:.3} s{}", counts.collect::<String>());
            chart.hover(canvas, x.part(from), x.part(at), text);
            from = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use matching::DecodedBits;

    use super::*;

    fn class(tag: Option<i64>, operation: Option<&'static str>) -> ElementClass {
        let decoded = DecodedBits { communicator: Some(0), tag, source: None, operation };
        ElementClass { decoded, peer: Peer::Any, place: 0 }
    }

    fn names(weights: &[(ElementClass, f64)]) -> (Vec<String>, bool) {
        let weights: Vec<_> = weights.iter().map(|(class, weight)| (class, *weight)).collect();
        let areas = Areas::of(&weights, &tag);
        (areas.areas.iter().map(Area::text).collect(), areas.has_others)
    }

    #[test]
    fn tags_that_follow_each_other_share_an_area() {
        let tags = |tags: std::ops::Range<i64>| tags.map(|tag| (class(Some(tag), None), 1.0));
        let all: Vec<_> = tags(1000..1064).chain(tags(5000..5064)).collect();
        let expected = [
            "tags 1000 to 1031",
            "tags 1032 to 1047",
            "tags 1048 to 1063",
            "tags 5000 to 5015",
            "tags 5016 to 5031",
            "tags 5032 to 5047",
            "tags 5048 to 5063",
        ];
        assert_eq!(names(&all), (expected.map(str::to_owned).to_vec(), false));
        // A tag with most elements is alone.
        let heavy = [(class(Some(7), None), 90.0), (class(None, Some("gather")), 5.0)];
        let (found, _) =
            names(&[&heavy[..], &tags(0..5).chain(tags(8..9)).collect::<Vec<_>>()].concat());
        assert_eq!(found, ["tags 0 to 4", "tag 7", "tag 8", "gather"]);
    }

    #[test]
    fn the_lightest_names_are_others() {
        let operations = ["a", "b", "c", "d", "e", "f", "g", "h"];
        let all: Vec<_> = (1..)
            .zip(operations)
            .map(|(weight, of)| (class(None, Some(of)), f64::from(weight)))
            .collect();
        assert_eq!(names(&all), (["h", "g", "f", "e", "d", "c"].map(str::to_owned).to_vec(), true));
    }
}
