// SPDX-License-Identifier: BSD-2-Clause
//! Writes the output of `tcam tune`: a table, the settings, CSV, JSON and the picture.

use std::path::Path;

use nic::params::PREFIX;
use nic::plain::plain;
use serde::{Serialize, Serializer};

use super::channels::{Channel, KERNEL_COPY_OFF, Threshold};
use super::curves::{ChannelCurve, Crossing, Measure, Quartiles, crossing};
use super::program::FirstRun;
use crate::error::Error;
use crate::file;
use crate::hint::quoted;
use crate::plot::{ChannelPanel, Channels, Picture};
use crate::results::{NamedValues, Summary, columns, origin};
use crate::text::{Sheet, whole};

/// The results of a measurement.
#[derive(Serialize)]
pub(super) struct TuneResult<'a> {
    /// Hosts, MPI and date, from the reports.
    #[serde(serialize_with = "map")]
    origin: Vec<origin::Line>,
    how: String,
    by: Measure,
    /// The results as sentences.
    pub(super) reading: Vec<String>,
    crossings: Vec<Threshold>,
    /// Settings that are written to tcam.conf.
    #[serde(serialize_with = "map")]
    settings: Vec<(&'static str, String)>,
    measured: Vec<NamedValues>,
    #[serde(skip)]
    channels: &'static [Channel],
    #[serde(skip)]
    curves: &'a [ChannelCurve],
}

/// Returns a line of tune.csv.
fn row(channel: &Channel, bytes: usize, measure: Measure, quartiles: &Quartiles) -> NamedValues {
    let settings: Vec<_> =
        channel.forced.iter().map(|(name, value)| format!("{name}={value}")).collect();
    // The program prints up to four decimals.
    let rounded = |value: f64| (value * 1e4).round() / 1e4;
    let mut row = NamedValues::default();
    row.put("channel", channel.name);
    row.put("settings", settings.join(" "));
    row.put("bytes", bytes as u64);
    row.put("measure", measure.name());
    row.put("unit", measure.unit());
    row.put("rounds", quartiles.rounds as u64);
    row.put("lowest", rounded(quartiles.lowest));
    row.put("lower_quartile", rounded(quartiles.lower_quartile));
    row.put("median", rounded(quartiles.median));
    row.put("upper_quartile", rounded(quartiles.upper_quartile));
    row.put("highest", rounded(quartiles.highest));
    row
}

/// Names of the facts about the run that are written.
const ORIGIN: [&str; 6] = ["started", "hosts", "processors", "MPI", "libfabric", "tcam"];

impl<'a> TuneResult<'a> {
    /// Finds the thresholds, and the settings by the measure that decides.
    pub(super) fn of(
        how: String,
        by: Measure,
        first: &FirstRun,
        curves: &'a [ChannelCurve],
    ) -> Self {
        let &FirstRun { ref reports, pair, channels } = first;
        let crossings: Vec<_> = match curves {
            [short, long] => Measure::ALL
                .map(|by| pair.threshold(by, crossing(short, long, by, &pair.differ)))
                .into(),
            _ => Vec::new(),
        };
        let mut reading: Vec<_> = crossings.iter().map(|by| pair.sentence(by)).collect();
        let settings = match crossings.iter().find(|threshold| threshold.measure == by) {
            Some(threshold) => threshold.settings.clone(),
            None => {
                let why = "the kernel refuses copies between processes (`tcam doctor`): \
                           kernel_copy = off";
                reading.push(why.to_owned());
                let (name, value) = KERNEL_COPY_OFF;
                vec![(name, value.to_owned())]
            }
        };
        let origin = Summary::of(reports).unwrap_or_default().origin.into_iter();
        let origin = origin.filter(|(name, _)| ORIGIN.contains(name)).collect();
        let mut measured = Vec::new();
        for (channel, curve) in channels.iter().zip(curves) {
            for by in Measure::ALL {
                let rows = curve.all_quartiles(by);
                measured.extend(rows.map(|(size, of)| row(channel, size, by, &of)));
            }
        }
        Self { origin, how, by, reading, crossings, settings, measured, channels, curves }
    }

    /// Writes all files. The settings are written last, so that the other files exist if the
    /// settings do.
    pub(super) fn write(&self, directory: &Path) -> Result<(), Error> {
        file::write(&directory.join("tune.csv"), columns::csv(&self.measured, true))?;
        let picture = self.picture();
        file::write(&directory.join("tune.svg"), picture.svg()?)?;
        picture.png(&directory.join("tune.png"))?;
        file::write(&directory.join(CONF), self.conf())
    }

    /// Returns the file of settings.
    fn conf(&self) -> String {
        let mut text =
            "# Thresholds between the channels of tcam, measured by `tcam tune`.\n".to_owned();
        let mut remark = |line: &str| text += &format!("# {}\n", plain(line));
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
            for channel in self.channels {
                sheet.header.push(format!(
                    "{} ({}) {}",
                    measure.name(),
                    measure.unit(),
                    channel.name
                ));
            }
        }
        let sizes = self.curves.first().map(|curve| curve.sizes().collect::<Vec<_>>());
        for size in sizes.unwrap_or_default() {
            let mut row = vec![whole(size as u64)];
            for measure in Measure::ALL {
                let medians = self.curves.iter().map(|curve| curve.quartiles(size, measure));
                row.extend(
                    medians.map(|of| of.map_or_else(String::new, |of| shown(measure, of.median))),
                );
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

    fn picture(&self) -> Picture<'static> {
        let of = |name: &str| {
            let found = self.origin.iter().find(|(key, _)| *key == name);
            found.map_or("", |(_, value)| value.as_str())
        };
        let panel = |measure: Measure| {
            let is_share = measure == Measure::Overlap;
            let scale = if is_share { 100.0 } else { 1.0 };
            let line = |curve: &ChannelCurve| {
                let points = curve.all_quartiles(measure).map(|(size, of)| {
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
        let channels = Channels {
            names: self.channels.iter().map(|channel| channel.name).collect(),
            panels: Measure::ALL.map(panel),
            reading: self.reading.clone(),
        };
        channels.picture(format!("Channels of {}, {}", of("hosts"), of("MPI")))
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

    use super::super::channels::ONE_HOST;
    use super::super::curves::Measurement;
    use super::*;
    use crate::results::reports::tests::sample;

    #[test]
    fn the_written_file_is_read_as_settings() {
        let mut curves = vec![ChannelCurve::default(); 2];
        for (curve, values) in curves.iter_mut().zip([[1.0, 3.0], [2.0, 1.0]]) {
            for (size, value) in [4096, 8192].into_iter().zip(values) {
                curve.put(&Measurement { size, values: [value, 100.0 * value, 0.2 * value] });
            }
        }
        let how = "3 rounds, mpiexec\nidle = spin".to_owned();
        let reports = vec![sample(0, 1, 1)];
        let first = FirstRun { reports, pair: &ONE_HOST, channels: &ONE_HOST.channels };
        let result = TuneResult::of(how, Measure::Latency, &first, &curves);
        let directory = tempfile::tempdir().unwrap();
        result.write(directory.path()).unwrap();
        let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).unwrap();
        let conf = Config::read(&mut read("tcam.conf").as_bytes()).unwrap();
        assert_eq!(conf.all().collect::<Vec<_>>(), [("eager_size", "4096")]);
        assert_eq!(read("tune.csv").lines().count(), 1 + 2 * 2 * 3);
        let row = "kernel copy,kernel_copy=auto eager_size=0,4096,latency,us,1,2.0,";
        assert!(read("tune.csv").contains(row));
        assert!(read("tune.svg").contains("from 8,192"));
        let terminal = result.terminal(Path::new("out dir"));
        assert!(terminal.contains("config='out dir/tcam.conf'"), "{terminal}");
        let json = serde_json::to_value(&result).unwrap();
        assert_eq!(json["settings"]["eager_size"], "4096");
        assert_eq!(json["crossings"][0]["crossing"]["from"], 8192);
    }
}
