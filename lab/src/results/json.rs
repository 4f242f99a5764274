// SPDX-License-Identifier: BSD-2-Clause
//! `--json FILE`: what a task tells people, for programs. What reports count has the names it
//! has there, what `sweep.csv` and `compare --csv` count has theirs.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use matching::{ByKind, Profile, QueueCounters};
use nic::report::{ChannelCounters, ContextCounters, KindTraffic};
use serde::{Deserialize, Serialize};

use super::ranks::Completeness;
use super::summary::Summary;
use crate::error::Error;
use crate::file;

/// Version of all formats.
const VERSION: u32 = 1;

/// What tells the numbers.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) enum Kind {
    #[serde(rename = "tcam-summary")]
    Summary,
    #[serde(rename = "tcam-stats")]
    Stats,
    #[serde(rename = "tcam-compare")]
    Compare,
    #[serde(rename = "tcam-sweep")]
    Sweep,
    #[serde(rename = "tcam-advise")]
    Advise,
    #[serde(rename = "tcam-diff")]
    Diff,
}

/// Whether a text was written here: such a file may be in a directory of reports.
pub(crate) fn is_ours(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Ours {
        #[serde(rename = "format")]
        _format: Kind,
    }
    serde_json::from_str::<Ours>(text).is_ok()
}

/// Where the numbers go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Standard output.
    Output,
    File(PathBuf),
}

impl From<OsString> for Place {
    fn from(name: OsString) -> Self {
        if name == "-" { Self::Output } else { Self::File(name.into()) }
    }
}

/// The option, of what has standard output to itself.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Json {
    /// Writes the numbers to this file as JSON; - is standard output, in place of what goes there
    /// otherwise.
    #[arg(long = "json", value_name = "FILE")]
    place: Option<Place>,
}

/// A file that says what it is.
#[derive(Debug, Serialize)]
struct Document<T> {
    format: Kind,
    version: u32,
    tcam: &'static str,
    #[serde(flatten)]
    content: T,
}

impl Json {
    /// Where standard output is the program's.
    pub(crate) fn file(path: Option<&PathBuf>) -> Result<Self, Error> {
        let place = path.map(|path| Place::from(path.clone().into_os_string()));
        match place {
            Some(Place::Output) => Err(Error::OutputOfProgram),
            place => Ok(Self { place }),
        }
    }

    /// Whether nothing else goes to standard output.
    pub(crate) fn takes_output(&self) -> bool {
        self.place == Some(Place::Output)
    }

    /// Whether it can be written, before the work for it is done.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.place {
            Some(Place::File(path)) => file::check(path),
            _ => Ok(()),
        }
    }

    /// Writes the numbers, if they are asked for.
    pub(crate) fn write(&self, format: Kind, content: impl Serialize) -> Result<(), Error> {
        let Some(place) = &self.place else { return Ok(()) };
        let tcam = env!("CARGO_PKG_VERSION");
        let document = Document { format, version: VERSION, tcam, content };
        let mut text = serde_json::to_string_pretty(&document).map_err(Error::Json)?;
        text.push('\n');
        match place {
            Place::Output => print!("{text}"),
            Place::File(path) => file::write(path, text)?,
        }
        Ok(())
    }
}

/// What ranks counted together.
#[derive(Debug, Serialize)]
pub(crate) struct Sum<'a> {
    ranks: usize,
    #[serde(flatten)]
    completeness: Completeness,
    /// Reports of endpoints that were never closed.
    written_at_exit: usize,
    /// Why these may be reports of several runs.
    mixed: Option<&'a str>,
    /// What is to be known of the host engines.
    remarks: &'a [String],
    libfabric: &'a str,
    /// Where the numbers come from, as the ranks told it.
    origin: BTreeMap<&'a str, &'a str>,
    elapsed_s: f64,
    at_once_percent: f64,
    promoted_percent: f64,
    in_table_percent: f64,
    spilled_percent: f64,
    prq_high_water_rank: Option<u32>,
    umq_high_water_rank: Option<u32>,
    tagged: Context<'a>,
    msg: Context<'a>,
    channels: &'a BTreeMap<String, ChannelCounters>,
}

impl<'a> From<&'a Summary> for Sum<'a> {
    fn from(sum: &'a Summary) -> Self {
        Self {
            ranks: sum.processes,
            completeness: sum.ranks.completeness(),
            written_at_exit: sum.at_exit,
            mixed: sum.mixed.as_deref(),
            remarks: &sum.remarks,
            libfabric: &sum.libfabric,
            origin: sum.origin.iter().map(|(name, value)| (*name, value.as_str())).collect(),
            elapsed_s: sum.seconds,
            at_once_percent: sum.at_once(),
            promoted_percent: sum.promoted(),
            in_table_percent: sum.in_table(),
            spilled_percent: sum.spilled(),
            prq_high_water_rank: sum.prq_peak.rank,
            umq_high_water_rank: sum.umq_peak.rank,
            tagged: (&sum.tagged).into(),
            msg: (&sum.msg).into(),
            channels: &sum.channels,
        }
    }
}

/// A context of a report without its lengths over time, which cannot be added up.
#[derive(Debug, Serialize)]
pub(crate) struct Context<'a> {
    posts: u64,
    arrivals: u64,
    bytes: u64,
    unexpected: u64,
    peeks: u64,
    kinds: &'a ByKind<KindTraffic>,
    sizes: &'a Profile,
    prq: &'a QueueCounters,
    umq: &'a QueueCounters,
}

impl<'a> From<&'a ContextCounters> for Context<'a> {
    fn from(of: &'a ContextCounters) -> Self {
        let ContextCounters { posts, arrivals, bytes, unexpected, peeks, .. } = *of;
        let ContextCounters { kinds, sizes, prq, umq, .. } = of;
        Self { posts, arrivals, bytes, unexpected, peeks, kinds, sizes, prq, umq }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::reports::tests::sample;
    use serde_json::{Value, json};

    #[test]
    fn a_sum_has_the_names_of_reports() {
        let reports = [sample(0, 10, 25), sample(1, 10, 4)];
        let sum = Summary::of(&reports).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("sum.json");
        let json = Json::file(Some(&path)).unwrap();
        json.check().unwrap();
        assert!(!path.exists(), "only looked at");
        json.write(Kind::Summary, Sum::from(&sum)).unwrap();
        let value = |text: &str| -> Value { serde_json::from_str(text).unwrap() };
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(is_ours(&text) && !is_ours(&reports[0].to_json().unwrap()));
        let written = value(&text);
        assert_eq!(written["format"], "tcam-summary");
        assert_eq!((&written["ranks"], &written["tagged"]["arrivals"]), (&json!(2), &json!(29)));
        assert_eq!(written["tagged"]["prq"]["spills"], 15);
        assert_eq!(written["prq_high_water_rank"], 0);
        let report = value(&reports[0].to_json().unwrap());
        let names = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        let mut of_report = names(&report["tagged"]);
        of_report.retain(|name| name != "lengths");
        assert_eq!(names(&written["tagged"]), of_report);
        assert_eq!(names(&written["tagged"]["umq"]), names(&report["tagged"]["umq"]));
    }

    #[test]
    fn a_dash_is_standard_output_but_not_of_a_program() {
        assert_eq!(Place::from(OsString::from("-")), Place::Output);
        assert_eq!(Place::from(OsString::from("./-")), Place::File("./-".into()));
        assert!(Json::file(Some(&"-".into())).is_err());
        assert!(!Json::file(None).unwrap().takes_output());
    }
}
