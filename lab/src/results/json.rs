// SPDX-License-Identifier: BSD-2-Clause
//! `--json FILE`: the output of a command as JSON, for other programs. Counts have the names that
//! they have in reports, in `sweep.csv` and in `replay --csv`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::file;

/// Version of all formats that `--json` writes.
const VERSION: u32 = 1;

/// Format of a document that `--json` writes, or of the record of a run (`runs.rs`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    #[serde(rename = "tcam-summary")]
    Summary,
    #[serde(rename = "tcam-show")]
    Show,
    #[serde(rename = "tcam-devices")]
    Devices,
    #[serde(rename = "tcam-sweep")]
    Sweep,
    #[serde(rename = "tcam-answer")]
    Answer,
    #[serde(rename = "tcam-scale")]
    Scale,
    #[serde(rename = "tcam-engines")]
    Engines,
    #[serde(rename = "tcam-difference")]
    Difference,
    #[serde(rename = "tcam-settings")]
    Settings,
    #[serde(rename = "tcam-run")]
    Run,
}

/// Returns true for a document of one of the formats in [`Kind`]. A directory of reports may
/// contain a file that `--json` wrote.
pub(crate) fn is_ours(text: &str) -> bool {
    #[derive(Deserialize)]
    struct Ours {
        #[serde(rename = "format")]
        _format: Kind,
    }
    serde_json::from_str::<Ours>(text).is_ok()
}

/// Destination of the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Destination {
    /// Standard output.
    Output,
    File(PathBuf),
}

impl From<OsString> for Destination {
    fn from(name: OsString) -> Self {
        if name == "-" { Self::Output } else { Self::File(name.into()) }
    }
}

/// The option, for commands that may print JSON instead of their usual output.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Json {
    /// Writes the numbers to this file as JSON; - is standard output, instead of the usual output.
    #[arg(long = "json", value_name = "FILE")]
    place: Option<Destination>,

    /// True if nothing else is printed to standard output.
    #[arg(skip)]
    alone: bool,
}

/// A document with its format and version.
#[derive(Debug, Serialize)]
struct Document<T> {
    format: Kind,
    version: u32,
    tcam: &'static str,
    #[serde(flatten)]
    content: T,
}

/// The content of a document on several recordings.
#[derive(Debug, Serialize)]
struct Recordings<'a, T> {
    recordings: &'a [T],
}

impl Json {
    /// Makes the option for a command whose standard output belongs to the program. Fails for `-`.
    pub(crate) fn file(path: Option<&PathBuf>) -> Result<Self, Error> {
        let place = path.map(|path| Destination::from(path.clone().into_os_string()));
        match place {
            Some(Destination::Output) => {
                fail!("--json -: standard output is the program's; give a file")
            }
            place => Ok(Self { place, alone: false }),
        }
    }

    /// Makes the option for a command that only writes JSON; `-` is standard output.
    pub(crate) fn alone(path: &Path) -> Self {
        Self { place: Some(path.as_os_str().to_owned().into()), alone: true }
    }

    /// Returns true if the option is given.
    pub(crate) fn is_given(&self) -> bool {
        self.place.is_some()
    }

    /// Returns true if nothing but JSON goes to standard output.
    pub(crate) fn takes_output(&self) -> bool {
        self.alone || self.place == Some(Destination::Output)
    }

    /// Prints lines: to standard error if only JSON goes to standard output, otherwise to standard
    /// output.
    pub(crate) fn tell<T: std::fmt::Display>(&self, lines: impl IntoIterator<Item = T>) {
        for line in lines {
            match self.takes_output() {
                true => eprintln!("{line}"),
                false => println!("{line}"),
            }
        }
    }

    /// Checks before the work that the file can be written.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &self.place {
            Some(Destination::File(path)) => file::check(path),
            _ => Ok(()),
        }
    }

    /// Writes the numbers of one recording, or of several recordings in a list, if the option is
    /// given.
    pub(crate) fn write_each(
        &self,
        format: Kind,
        recordings: &[impl Serialize],
    ) -> Result<(), Error> {
        match recordings {
            [one] => self.write(format, one),
            recordings => self.write(format, Recordings { recordings }),
        }
    }

    /// Writes the numbers, if the option is given.
    pub(crate) fn write(&self, format: Kind, content: impl Serialize) -> Result<(), Error> {
        let Some(place) = &self.place else { return Ok(()) };
        let tcam = env!("CARGO_PKG_VERSION");
        let document = Document { format, version: VERSION, tcam, content };
        let mut text = serde_json::to_string_pretty(&document).map_err(Error::Json)?;
        text.push('\n');
        match place {
            Destination::Output => print!("{text}"),
            Destination::File(path) => file::write(path, text)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dash_is_standard_output_but_not_of_a_program() {
        assert_eq!(Destination::from(OsString::from("-")), Destination::Output);
        assert_eq!(Destination::from(OsString::from("./-")), Destination::File("./-".into()));
        assert!(Json::file(Some(&"-".into())).is_err());
        assert!(!Json::file(None).unwrap().takes_output());
    }
}
