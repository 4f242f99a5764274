// SPDX-License-Identifier: BSD-2-Clause
//! The output of `tcam tune`: a table, the settings, CSV, JSON and the picture.

use std::path::Path;

use nic::params::PREFIX;
use nic::plain::is_plain;
use nic::report::Report;
use serde::{Serialize, Serializer};

use super::crossing::Crossing;
use super::curves::{Curve, Measure, Spread};
use super::ways::{Answer, Way};
use crate::error::Error;
use crate::file;
use crate::hint::quoted;
use crate::plot::channels::{ChannelPanel, Channels};
use crate::plot::picture;
use crate::results::origin;
use crate::results::summary::Summary;
use crate::text::numbers::whole;
use crate::text::sheet::Sheet;

/// The results of a measurement.
#[derive(Serialize)]
pub(super) struct Told<'a> {
    /// Hosts, MPI and date, from the reports.
    #[serde(serialize_with = "map")]
    origin: Vec<origin::Line>,
    how: String,
    by: Measure,
    /// The results as sentences.
    reading: Vec<String>,
    crossings: Vec<Answer>,
    /// Settings that are written to tcam.conf.
    #[serde(serialize_with = "map")]
    settings: Vec<(&'static str, String)>,
    measured: Vec<Row>,
    #[serde(skip)]
    ways: &'static [Way],
    #[serde(skip)]
    curves: &'a [Curve],
}

/// A line of tune.csv.
#[derive(Debug, Serialize)]
struct Row {
    channel: &'static str,
    settings: String,
    bytes: usize,
    measure: Measure,
    unit: &'static str,
    rounds: usize,
    lowest: f64,
    lower_quartile: f64,
    median: f64,
    upper_quartile: f64,
    highest: f64,
}

impl Row {
    fn of(way: &Way, bytes: usize, measure: Measure, spread: Spread) -> Self {
        let settings: Vec<_> =
            way.forced.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let Spread { rounds, lowest, lower_quartile, median, upper_quartile, highest } = spread;
        // As many digits as the program prints.
        let [lowest, lower_quartile, median, upper_quartile, highest] =
            [lowest, lower_quartile, median, upper_quartile, highest]
                .map(|value| (value * 1e4).round() / 1e4);
        Self {
            channel: way.name,
            settings: settings.join(" "),
            bytes,
            measure,
            unit: measure.unit(),
            rounds,
            lowest,
            lower_quartile,
            median,
            upper_quartile,
            highest,
        }
    }
}

/// Names of the facts that are written about the place.
const ORIGIN: [&str; 6] = ["started", "hosts", "processors", "MPI", "libfabric", "tcam"];

impl<'a> Told<'a> {
    #[allow(clippy::too_many_arguments, reason = "each of them is told, and nothing else is here")]
    pub(super) fn new(
        ways: &'static [Way],
        curves: &'a [Curve],
        reports: &[Report],
        how: String,
        by: Measure,
        reading: Vec<String>,
        crossings: Vec<Answer>,
        settings: Vec<(&'static str, String)>,
    ) -> Self {
        let lines = Summary::of(reports).unwrap_or_default().origin.into_iter();
        let origin = lines.filter(|(name, _)| ORIGIN.contains(name)).collect();
        let rows = |(way, curve): (&'static Way, &Curve)| {
            let of = |measure| {
                let rows = curve.spreads(measure);
                rows.map(move |(size, spread)| Row::of(way, size, measure, spread)).collect()
            };
            Measure::ALL.map(of).into_iter().flat_map(|rows: Vec<_>| rows).collect::<Vec<_>>()
        };
        let measured = ways.iter().zip(curves).flat_map(rows).collect();
        Self { origin, how, by, reading, crossings, settings, measured, ways, curves }
    }

    /// Writes all files. The settings come last, so that whoever finds them finds the other files
    /// too.
    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        let mut csv = csv::Writer::from_writer(Vec::new());
        self.measured.iter().try_for_each(|row| csv.serialize(row)).map_err(Error::NoCsv)?;
        let csv = csv.into_inner().map_err(|error| Error::NoCsv(error.into_error().into()))?;
        file::write(&directory.join("tune.csv"), csv)?;
        let picture = self.picture();
        file::write(&directory.join("tune.svg"), picture::svg(&picture)?)?;
        picture::png(&picture, &directory.join("tune.png"))?;
        file::write(&directory.join(CONF), self.conf())
    }

    /// Returns the file of settings.
    fn conf(&self) -> String {
        let mut text =
            "# Thresholds between the channels of tcam, measured by `tcam tune`.\n".to_owned();
        let mut remark = |line: &str| {
            let line: String =
                line.chars().map(|char| if is_plain(char) { char } else { '?' }).collect();
            text += &format!("# {line}\n");
        };
        for (name, value) in &self.origin {
            remark(&format!("{name}: {value}"));
        }
        remark(&format!("measured: {}", self.how));
        self.reading.iter().for_each(|line| remark(line));
        remark(&match self.settings.is_empty() {
            true => format!("Nothing is set (--by {}): defaults are kept.", self.by.name()),
            false => format!("Set (--by {}):", self.by.name()),
        });
        for (name, value) in &self.settings {
            text += &format!("{name} = {value}\n");
        }
        text
    }

    /// Returns the text for the terminal.
    pub(super) fn terminal(&self, out: &Path) -> String {
        let mut sheet = Sheet::new("", []);
        sheet.header.push("bytes".to_owned());
        for measure in Measure::ALL {
            for way in self.ways {
                sheet.header.push(format!("{} ({}) {}", measure.name(), measure.unit(), way.name));
            }
        }
        let sizes = self.curves.first().map(|curve| curve.sizes().collect::<Vec<_>>());
        for size in sizes.unwrap_or_default() {
            let mut row = vec![whole(size as u64)];
            for measure in Measure::ALL {
                let medians = self.curves.iter().map(|curve| curve.spread(size, measure));
                row.extend(medians.map(|spread| {
                    spread.map_or_else(String::new, |spread| shown(measure, spread.median))
                }));
            }
            sheet.row(row);
        }
        let conf = quoted(&out.join(CONF));
        let mut text = format!("{}\n", sheet.table());
        for line in &self.reading {
            text += &format!("{line}\n");
        }
        for (name, _) in &self.settings {
            let name = format!("{PREFIX}{}", name.to_uppercase());
            if std::env::var_os(&name).is_some() {
                text += &format!("{name} is set in the environment, and comes before the file\n");
            }
        }
        text += &format!(
            "{conf} has the settings by {}; tune.csv, tune.svg and tune.png are beside it\n\
             use it: tcam run --set config={conf} -- ..., or FI_TCAM_CONFIG={conf}",
            self.by.name()
        );
        text
    }

    fn picture(&self) -> Channels {
        let of = |name: &str| {
            let found = self.origin.iter().find(|(key, _)| *key == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        let panel = |measure: Measure| {
            let is_share = measure == Measure::Overlap;
            let scale = if is_share { 100.0 } else { 1.0 };
            let line = |curve: &Curve| {
                let points = curve.spreads(measure).map(|(size, of)| {
                    let quartiles = (scale * of.lower_quartile, scale * of.upper_quartile);
                    (size, scale * of.median, quartiles)
                });
                points.collect()
            };
            let (title, unit) = match measure {
                Measure::Latency => ("Latency", "half a round trip (us)"),
                Measure::Bandwidth => ("Bandwidth", "MB/s with 16 messages under way"),
                Measure::Overlap => ("Overlap", "share of an exchange that is hidden (%)"),
            };
            let crossing = self.crossings.iter().find(|answer| answer.measure == measure);
            let mark = crossing.and_then(|answer| match answer.crossing {
                Crossing::At { from, .. } => {
                    Some((from as u64, format!("from {}", whole(from as u64))))
                }
                _ => None,
            });
            ChannelPanel {
                title,
                unit,
                is_share,
                lines: self.curves.iter().map(line).collect(),
                mark,
            }
        };
        Channels {
            title: format!("Channels of {}, {}", of("hosts"), of("MPI")),
            names: self.ways.iter().map(|way| way.name).collect(),
            panels: Measure::ALL.map(panel),
            reading: self.reading.clone(),
        }
    }
}

/// Name of the file of settings.
const CONF: &str = "tcam.conf";

fn shown(measure: Measure, value: f64) -> String {
    match measure {
        Measure::Latency | Measure::Overlap => format!("{value:.2}"),
        Measure::Bandwidth => whole(value.round() as u64),
    }
}

fn map<S: Serializer>(
    settings: &[(&'static str, String)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(settings.iter().map(|(name, value)| (name, value)))
}

#[cfg(test)]
mod tests {
    use nic::params::config::Config;

    use super::super::curves::Measured as Values;
    use super::super::ways::ONE_HOST;
    use super::*;
    use crate::results::reports::tests::sample;

    #[test]
    fn the_written_file_is_read_as_settings() {
        let mut curves = vec![Curve::default(), Curve::default()];
        for (curve, value) in curves.iter_mut().zip([1.0, 2.0]) {
            curve.put(&Values { size: 4096, values: [value, 100.0 * value, 0.2 * value] });
        }
        let crossing = Crossing::At { after: Some(4096), from: 8192 };
        let answer = ONE_HOST.answer(Measure::Latency, crossing);
        let settings = answer.settings.clone();
        let reading = vec![ONE_HOST.told(&answer)];
        let how = "3 rounds, mpiexec\nidle = spin".to_owned();
        let reports = [sample(0, 1, 1)];
        let by = Measure::Latency;
        let ways = &ONE_HOST.ways;
        let told = Told::new(ways, &curves, &reports, how, by, reading, vec![answer], settings);
        let directory = tempfile::tempdir().unwrap();
        told.write(directory.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        let conf = Config::read(&mut read("tcam.conf").as_bytes()).unwrap();
        assert_eq!(conf.all().collect::<Vec<_>>(), [("eager_size", "4096")]);
        assert_eq!(read("tune.csv").lines().count(), 7);
        assert!(
            read("tune.csv")
                .contains("kernel copy,kernel_copy=auto eager_size=0,4096,latency,us,1,2.0,")
        );
        assert!(read("tune.svg").contains("from 8,192"));
        let terminal = told.terminal(Path::new("out dir"));
        assert!(terminal.contains("config='out dir/tcam.conf'"), "{terminal}");
        let json = serde_json::to_value(&told).unwrap();
        assert_eq!(json["settings"]["eager_size"], "4096");
        assert_eq!(json["crossings"][0]["crossing"]["from"], 8192);
    }
}
