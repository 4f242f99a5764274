// SPDX-License-Identifier: BSD-2-Clause
//! The numbers of the papers on clusters and on hints: a case of a figure, an engine, a number of
//! the paper where its text or a table has one, and ours. Page and CSV are made of them alone.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::figure::{Cell, digits};
use super::measure::Contender;
use crate::error::Error;
use crate::file;
use crate::workload::basis::{agree, factor};

/// One number, by repetitions with other seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Case {
    pub(super) figure: String,
    /// What is done.
    pub(super) case: String,
    pub(super) engine: String,
    pub(super) metric: String,
    /// What the paper has.
    pub(super) paper: Option<f64>,
    /// Repetitions.
    pub(super) runs: u32,
    /// The median of them.
    pub(super) ours: f64,
    pub(super) lowest: f64,
    pub(super) highest: f64,
}

/// All of a paper.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cases(pub(super) Vec<Case>);

/// What a contender is called: its engine, and its storage where it has one.
pub(super) fn name(contender: &Contender) -> String {
    use matching::HostEngine::{Hash, NewMadeleine};
    match contender.engine {
        engine @ (Hash | NewMadeleine) => engine.name().to_owned(),
        engine => format!("{engine} {}", contender.queue),
    }
}

impl Cases {
    /// Adds the median and the range of some values, if there are any.
    pub(super) fn put(
        &mut self,
        [figure, case, engine, metric]: [&str; 4],
        paper: Option<f64>,
        mut values: Vec<f64>,
    ) {
        values.retain(|value| value.is_finite());
        values.sort_by(f64::total_cmp);
        let (Some(&lowest), Some(&highest)) = (values.first(), values.last()) else { return };
        let ours = values[(values.len() - 1) / 2].midpoint(values[values.len() / 2]);
        let rounded = |value: f64| (value * 1e5).round() / 1e5;
        self.0.push(Case {
            figure: figure.to_owned(),
            case: case.to_owned(),
            engine: engine.to_owned(),
            metric: metric.to_owned(),
            paper,
            runs: values.len() as u32,
            ours: rounded(ours),
            lowest: rounded(lowest),
            highest: rounded(highest),
        });
    }

    pub(super) fn get(&self, [figure, case, engine, metric]: [&str; 4]) -> Option<&Case> {
        self.0.iter().find(|of| {
            of.figure == figure && of.case == case && of.engine == engine && of.metric == metric
        })
    }

    /// Those of a figure.
    pub(super) fn of<'a>(&'a self, figure: &'a str) -> impl Iterator<Item = &'a Case> {
        self.0.iter().filter(move |case| case.figure == figure)
    }

    /// What is done in a figure, in the order in which it was measured.
    pub(super) fn cases<'a>(&'a self, figure: &'a str) -> Vec<&'a str> {
        distinct(self.of(figure).map(|case| case.case.as_str()))
    }

    /// The engines of a figure, in the same order.
    pub(super) fn engines<'a>(&'a self, figure: &'a str) -> Vec<&'a str> {
        distinct(self.of(figure).map(|case| case.engine.as_str()))
    }

    /// How a page begins.
    pub(super) fn preface(&self, paper: &str, name: &str) -> String {
        let runs = self.0.first().map_or(0, |case| case.runs);
        format!(
            "# {paper}: the paper's figures beside ours\n\n`tcam reproduce {name}` makes this page \
             and {name}.csv. Streams are replayed to a device without table entries, so that the \
             host engines match everything; engines take turns in one process. Each number is the \
             median over {runs} seeds with the range behind it. Ratios compare with the paper, times \
             do not: its machines and its MPI are others. *Reproduced* is within 30 %.\n\n"
        )
    }

    /// Reads what an earlier run stored.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        let failed = |error| Error::Csv { path: path.to_owned(), error };
        let mut reader = file::read_csv(path).map_err(failed)?;
        let rows: Vec<_> = reader.deserialize().collect::<Result<_, _>>().map_err(failed)?;
        if rows.is_empty() { Err(Error::NoNumbers(path.to_owned())) } else { Ok(Self(rows)) }
    }
}

fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut all = Vec::new();
    for name in names {
        if !all.contains(&name) {
            all.push(name);
        }
    }
    all
}

/// What becomes of a number of the paper.
pub(super) fn verdict(ours: f64, paper: f64) -> String {
    let by = || digits(factor(ours, paper));
    match () {
        () if agree(ours, paper) => "reproduced".to_owned(),
        () if ours > paper => format!("above, by {}", by()),
        () => format!("below, by {}", by()),
    }
}

/// A median with its range; empty where nothing was measured.
impl From<Option<&Case>> for Cell {
    fn from(case: Option<&Case>) -> Self {
        case.map_or_else(|| "".into(), |case| Self::ranged(case.ours, [case.lowest, case.highest]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_the_median_with_its_range() {
        let mut cases = Cases::default();
        let at = ["2", "M=10", "list linked", "ns"];
        cases.put(at, Some(2.0), vec![3.0, 1.0, 2.0, f64::NAN]);
        cases.put(["2", "M=10", "hash", "ns"], None, Vec::new());
        let case = cases.get(at).unwrap();
        assert_eq!((case.ours, case.lowest, case.highest, case.runs), (2.0, 1.0, 3.0, 3));
        assert_eq!((cases.cases("2"), cases.engines("2")), (vec!["M=10"], vec!["list linked"]));
    }

    #[test]
    fn thirty_per_cent_is_reproduced() {
        assert_eq!(verdict(2.5, 2.0), "reproduced");
        assert_eq!(verdict(4.0, 2.0), "above, by 2.00");
        assert_eq!(verdict(1.0, 2.0), "below, by 2.00");
    }
}
