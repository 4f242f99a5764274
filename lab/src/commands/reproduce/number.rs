// SPDX-License-Identifier: BSD-2-Clause
//! The numbers of a page: what is measured fills them, what is printed and judged is
//! made of them alone, so that page, CSV and verdicts cannot disagree.

use std::path::Path;

use matching::{HostEngine, Queue};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::file;
use crate::workload::basis::Basis;
use crate::workload::pattern::Pattern;

/// Where a number was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place<'a> {
    pub(super) pattern: Pattern,
    pub(super) ranks: u32,
    /// `PRQ`, `UMQ`, or both if empty.
    pub(super) queue: &'a str,
    /// `all`, `collective` or `point-to-point`; empty where it does not matter.
    pub(super) traffic: &'a str,
    pub(super) engine: HostEngine,
    pub(super) storage: Queue,
    /// k_C and k_P.
    pub(super) k: u32,
}

/// One number of a figure, by repetitions with other seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Number {
    pub(super) figure: String,
    pub(super) pattern: String,
    pub(super) ranks: u32,
    pub(super) queue: String,
    pub(super) traffic: String,
    pub(super) engine: String,
    pub(super) storage: String,
    pub(super) k: u32,
    pub(super) metric: String,
    pub(super) is: Basis,
    /// Repetitions.
    pub(super) runs: u32,
    /// The median of them.
    pub(super) ours: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

impl Number {
    /// The median and the range of some values; nothing if there are none.
    pub(super) fn new(
        figure: &str,
        place: Place<'_>,
        metric: &str,
        is: Basis,
        mut values: Vec<f64>,
    ) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (first, last) = (values.first()?, values.last()?);
        let middle = values[(values.len() - 1) / 2].midpoint(values[values.len() / 2]);
        Some(Self {
            figure: figure.to_owned(),
            pattern: place.pattern.name(),
            ranks: place.ranks,
            queue: place.queue.to_owned(),
            traffic: place.traffic.to_owned(),
            engine: place.engine.name().to_owned(),
            storage: place.storage.name().to_owned(),
            k: place.k,
            metric: metric.to_owned(),
            is,
            runs: values.len() as u32,
            ours: rounded(middle),
            lowest: rounded(*first),
            highest: rounded(*last),
        })
    }

    /// Whether it is a count rather than a time or a ratio.
    pub(super) fn counts(&self) -> bool {
        matches!(self.metric.as_str(), "queues" | "longest")
    }

    fn is_of(&self, metric: &str, place: Place<'_>) -> bool {
        self.metric == metric
            && self.ranks == place.ranks
            && self.k == place.k
            && self.queue == place.queue
            && self.traffic == place.traffic
            && self.engine == place.engine.name()
            && self.storage == place.storage.name()
            && self.pattern == place.pattern.name()
    }
}

/// Five decimals: more would be noise.
fn rounded(value: f64) -> f64 {
    (value * 1e5).round() / 1e5
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Numbers(pub(super) Vec<Number>);

impl Numbers {
    pub(super) fn put(&mut self, number: Option<Number>) {
        self.0.extend(number);
    }

    pub(super) fn get(&self, metric: &str, place: Place<'_>) -> Option<&Number> {
        self.0.iter().find(|number| number.is_of(metric, place))
    }

    /// The first with this metric of a workload, on however many ranks.
    pub(super) fn ranks_of(&self, metric: &str, pattern: Pattern) -> Option<u32> {
        let name = pattern.name();
        let mut numbers = self.0.iter();
        let found = numbers.find(|number| number.metric == metric && number.pattern == name);
        found.map(|number| number.ranks)
    }

    /// Queues made at a place, of collective and of point-to-point elements; those of
    /// both queues if it names none. Nothing where an engine has no such queues.
    pub(super) fn made(&self, place: Place<'_>) -> Option<[f64; 2]> {
        let queues: &[&str] =
            if place.queue.is_empty() { &["", "PRQ", "UMQ"] } else { &[place.queue] };
        let sum = |traffic: &str| {
            let places = queues.iter().map(|queue| Place { queue, traffic, ..place });
            let made: Vec<_> = places.filter_map(|place| self.get("queues", place)).collect();
            (!made.is_empty()).then(|| made.iter().map(|number| number.ours).sum())
        };
        Some([sum("collective")?, sum("point-to-point")?])
    }

    /// Repetitions of what was measured in this process.
    pub(super) fn runs(&self) -> u32 {
        self.0.first().map_or(0, |number| number.runs)
    }

    /// Reads what an earlier run stored.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let failed = |error| Error::Csv { path: path.to_owned(), error };
        let mut reader = file::read_csv(path).map_err(failed)?;
        let numbers: Vec<_> = reader.deserialize().collect::<Result<_, _>>().map_err(failed)?;
        if numbers.is_empty() { Err(Error::NoNumbers(path.to_owned())) } else { Ok(Self(numbers)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLACE: Place<'_> = Place {
        pattern: Pattern::Fds,
        ranks: 512,
        queue: "PRQ",
        traffic: "collective",
        engine: HostEngine::ColPnp,
        storage: Queue::Linked,
        k: 8,
    };

    #[test]
    fn a_number_is_the_median_with_its_range() {
        let values = vec![3.0, 1.0, 2.000_001];
        let number = Number::new("9", PLACE, "queues", Basis::Capped, values).unwrap();
        assert_eq!((number.ours, number.lowest, number.highest, number.runs), (2.0, 1.0, 3.0, 3));
        let even = Number::new("9", PLACE, "queues", Basis::Capped, vec![1.0, 2.0]).unwrap();
        assert_eq!(even.ours, 1.5);
        assert_eq!(Number::new("9", PLACE, "queues", Basis::Capped, vec![]), None);
    }

    #[test]
    fn queues_of_both_are_summed() {
        let mut numbers = Numbers::default();
        for (queue, traffic, made) in [
            ("PRQ", "collective", 3.0),
            ("PRQ", "point-to-point", 1.0),
            ("UMQ", "collective", 4.0),
            ("UMQ", "point-to-point", 0.0),
        ] {
            let place = Place { queue, traffic, ..PLACE };
            numbers.put(Number::new("9", place, "queues", Basis::Predicted, vec![made]));
        }
        assert_eq!(numbers.made(PLACE), Some([3.0, 1.0]));
        assert_eq!(numbers.made(Place { queue: "", ..PLACE }), Some([7.0, 1.0]));
        assert_eq!(numbers.made(Place { engine: HostEngine::List, ..PLACE }), None);
    }
}
