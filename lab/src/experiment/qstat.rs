// SPDX-License-Identifier: BSD-2-Clause
//! The queue statistics of LogGOPSim.
//!
//! LogGOPSim (Hoefler, Schneider, Lumsdaine: "LogGOPSim: simulating large-scale applications in the
//! LogGOPS model", LSAP 2010) keeps a receive queue (rq, our PRQ) and an unexpected queue (uq, our
//! UMQ) for each rank. With `--qstat PREFIX` it writes one line for each rank:
//!
//! ```text
//! PREFIX-rq-hit.data   depth,time for each search that found something, each
//! PREFIX-uq-hit.data   followed by a space; times are nanoseconds
//! PREFIX-rq-miss.data  depth,time for each search that found nothing
//! PREFIX-uq-miss.data
//! PREFIX-rq-max.data   the largest number of elements at once
//! PREFIX-uq-max.data
//! ```

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use super::operation::Search;
use super::rank::Queue;
use crate::error::Error;
use crate::file::NewFile;

fn failed(path: &Path, error: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), error }
}

/// LogGOPSim's files.
pub(super) struct Qstat {
    /// Files of rq hit, rq miss, uq hit and uq miss.
    searches: [(PathBuf, BufWriter<NewFile>); 4],
    /// Files of rq and uq.
    most: [(PathBuf, BufWriter<NewFile>); 2],
}

impl Qstat {
    pub(super) fn new(out: &Path, prefix: &str) -> Result<Self, Error> {
        let file = |name: &str| {
            let path = out.join(format!("{prefix}-{name}.data"));
            let file = NewFile::create(&path)?;
            Ok::<_, Error>((path, BufWriter::new(file)))
        };
        Ok(Self {
            searches: [file("rq-hit")?, file("rq-miss")?, file("uq-hit")?, file("uq-miss")?],
            most: [file("rq-max")?, file("uq-max")?],
        })
    }

    pub(super) fn add(&mut self, ns: u64, search: Search) -> Result<(), Error> {
        let at = 2 * usize::from(search.queue == Queue::Umq) + usize::from(!search.found);
        let (path, file) = &mut self.searches[at];
        write!(file, "{},{ns} ", search.depth).map_err(|error| failed(path, error))
    }

    /// Ends the line of a rank.
    pub(super) fn end_rank(&mut self, most: [u64; 2]) -> Result<(), Error> {
        for (path, file) in &mut self.searches {
            writeln!(file).map_err(|error| failed(path, error))?;
        }
        for ((path, file), most) in self.most.iter_mut().zip(most) {
            writeln!(file, "{most}").map_err(|error| failed(path, error))?;
        }
        Ok(())
    }

    pub(super) fn end(self) -> Result<(), Error> {
        for (path, mut file) in self.searches.into_iter().chain(self.most) {
            file.flush().map_err(Error::io(&path))?;
            file.into_inner().map_err(|error| Error::io(&path)(error.into_error()))?.keep()?;
            println!("{}", path.display());
        }
        Ok(())
    }
}
