// SPDX-License-Identifier: BSD-2-Clause
//! Cluster files, which `tcam cluster` writes and `FI_TCAM_CLUSTERS` names (matrix B of
//! Ghazimirsaeed, Afsahi: *Accelerating MPI Message Matching by a Data Clustering Strategy*,
//! section 4).
//!
//! ```text
//! {"format":"tcam-clusters","version":1,"processes":4,"k":2}
//! {"rank":0,"prq":[null,0,0,1],"umq":[null,1,0,0]}          the cluster of each source
//! {"rank":1,"prq":[0,null,1,1],"umq":[]}
//! ...
//! ```
//!
//! JSON, one line per process: each process reads its own line and skips the others.

use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::sync::Arc;

use matching::{Clusters, TooManyClusters};
use serde::{Deserialize, Serialize};

/// Value of the `format` field of the first line.
pub const FORMAT: &str = "tcam-clusters";
/// Value of [`ClustersHeader::version`].
const VERSION: u32 = 1;
/// Longest line in bytes: enough for more processes than `FI_TCAM_NPROCS` allows.
const LONGEST: u64 = 1 << 28;

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClustersHeader {
    format: String,
    version: u32,
    /// Number of processes of the profiled job.
    pub processes: u32,
    /// Requested number of clusters per process; 0 for `auto`.
    pub k: u32,
}

/// The line of one process: the cluster of each source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankClusters {
    /// Rank of the process.
    pub rank: u32,
    /// Cluster of each source among the posted receives.
    pub prq: Vec<Option<u16>>,
    /// Cluster of each source among the unexpected messages.
    pub umq: Vec<Option<u16>>,
}

/// The clusters of one process, read from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnClusters {
    /// Clusters of posted receives.
    pub prq: Arc<Clusters>,
    /// Clusters of unexpected messages.
    pub umq: Arc<Clusters>,
}

/// Why a cluster file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClustersError {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The first line is not that of a cluster file.
    #[error("it is not a cluster file: write one with `tcam cluster`")]
    Foreign,
    /// Another version of tcam wrote the file.
    #[error(
        "it has version {0}, but this tcam reads version {VERSION}: write it again with \
         `tcam cluster`"
    )]
    Version(u32),
    /// A line is damaged.
    #[error("line {line}: {why}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// Description of the error.
        why: String,
    },
    /// The file has no line for this process.
    #[error("it has no line for rank {0}")]
    Rank(u32),
    /// The file is of a job with another number of processes.
    #[error("it was written for {file} processes, but this job has {job}")]
    Processes {
        /// Processes in the file.
        file: u32,
        /// Processes of this job.
        job: u32,
    },
}

impl ClustersError {
    /// Returns true if the file is sound but belongs to another job, so that the program can run
    /// without it.
    #[must_use]
    pub const fn is_other_job(&self) -> bool {
        matches!(self, Self::Rank(_) | Self::Processes { .. })
    }
}

impl ClustersHeader {
    /// The first line of a file for a job of `processes` processes.
    #[must_use]
    pub fn new(processes: u32, k: u32) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, processes, k }
    }

    /// Reads the first line.
    ///
    /// # Errors
    /// [`ClustersError::Foreign`], [`ClustersError::Version`] or [`ClustersError::Io`].
    pub fn read(from: &mut impl BufRead) -> Result<Self, ClustersError> {
        let line = line(from)?.ok_or(ClustersError::Foreign)?;
        let head: Self = serde_json::from_str(&line).map_err(|_| ClustersError::Foreign)?;
        match head.version {
            _ if head.format != FORMAT => Err(ClustersError::Foreign),
            VERSION => Ok(head),
            other => Err(ClustersError::Version(other)),
        }
    }
}

/// The next line, or `None` at the end of the file.
fn line(from: &mut impl BufRead) -> Result<Option<String>, ClustersError> {
    let mut line = String::new();
    match io::Read::take(from, LONGEST).read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(line)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(ClustersError::Foreign),
        Err(error) => Err(error.into()),
    }
}

/// Returns the beginning of the line of a rank.
fn start_of(rank: u32) -> String {
    format!("{{\"rank\":{rank},")
}

/// Reads and checks every line of a file. No rank may have two lines.
///
/// # Errors
/// Every [`ClustersError`] except those of another job.
pub fn check(from: &mut impl BufRead) -> Result<ClustersHeader, ClustersError> {
    let head = ClustersHeader::read(from)?;
    let mut ranks = BTreeSet::new();
    let mut number = 1;
    while let Some(line) = line(from)? {
        number += 1;
        let wrong = |why: String| ClustersError::Line { line: number, why };
        let row: RankClusters =
            serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
        // Each process looks for the line that begins with this text.
        let start = start_of(row.rank);
        if !line.starts_with(&start) {
            return Err(wrong(format!("it must begin with `{start}`, without spaces")));
        }
        if !ranks.insert(row.rank) {
            return Err(wrong(format!("rank {} already has a line", row.rank)));
        }
        for of in [row.prq, row.umq] {
            Clusters::new(of).map_err(|error| wrong(error.to_string()))?;
        }
    }
    Ok(head)
}

/// Reads the clusters of one rank. If `job` is known, it must equal the number of processes in the
/// file.
///
/// # Errors
/// Every [`ClustersError`].
pub fn read(
    from: &mut impl BufRead,
    rank: u32,
    job: Option<u32>,
) -> Result<OwnClusters, ClustersError> {
    let head = ClustersHeader::read(from)?;
    if let Some(job) = job.filter(|&job| job != head.processes) {
        return Err(ClustersError::Processes { file: head.processes, job });
    }
    let start = start_of(rank);
    let mut number = 1;
    while let Some(line) = line(from)? {
        number += 1;
        if !line.starts_with(&start) {
            continue;
        }
        let wrong = |why: String| ClustersError::Line { line: number, why };
        let row: RankClusters =
            serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
        let clusters = |of| Clusters::new(of).map(Arc::new);
        let (prq, umq) = (clusters(row.prq), clusters(row.umq));
        let too_many = |error: TooManyClusters| wrong(error.to_string());
        return Ok(OwnClusters { prq: prq.map_err(too_many)?, umq: umq.map_err(too_many)? });
    }
    Err(ClustersError::Rank(rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "{\"format\":\"tcam-clusters\",\"version\":1,\"processes\":2,\"k\":2}\n\
        {\"rank\":0,\"prq\":[null,0],\"umq\":[]}\n{\"rank\":1,\"prq\":[1,null],\"umq\":[0]}\n";

    fn of(file: &str, rank: u32, job: Option<u32>) -> Result<OwnClusters, String> {
        read(&mut file.as_bytes(), rank, job).map_err(|error| error.to_string())
    }

    #[test]
    fn a_process_reads_its_line() {
        let own = of(FILE, 1, Some(2)).unwrap();
        assert_eq!(*own.prq, Clusters::new(vec![Some(1), None]).unwrap());
        assert_eq!(*own.umq, Clusters::new(vec![Some(0)]).unwrap());
        assert!(of(FILE, 0, None).is_ok());
    }

    #[test]
    fn what_is_written_is_read() {
        let row = RankClusters { rank: 7, prq: vec![Some(3)], umq: vec![None, Some(0)] };
        let head = ClustersHeader::new(9, 4);
        let json = |value: String| value + "\n";
        let file = json(serde_json::to_string(&head).unwrap())
            + &json(serde_json::to_string(&row).unwrap());
        assert_eq!(*of(&file, 7, Some(9)).unwrap().prq, Clusters::new(row.prq).unwrap());
    }

    #[test]
    fn all_lines_are_checked() {
        let why = |file: String| check(&mut file.as_bytes()).unwrap_err().to_string();
        assert_eq!(check(&mut FILE.as_bytes()).unwrap().processes, 2);
        assert_eq!(
            why(FILE.replace("\"rank\":1", "\"rank\":0")),
            "line 3: rank 0 already has a line"
        );
        assert!(why(FILE.to_owned() + "garbage\n").starts_with("line 4: "));
        assert_eq!(
            why(FILE.replace("\"rank\":1", "\"rank\": 1")),
            "line 3: it must begin with `{\"rank\":1,`, without spaces"
        );
    }

    #[test]
    fn a_file_that_is_no_text_or_cannot_be_read_is_no_file_of_clusters() {
        struct Fails;
        impl io::Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::ErrorKind::PermissionDenied.into())
            }
        }
        let error = ClustersHeader::read(&mut &b"\xff\n"[..]).unwrap_err();
        assert!(matches!(error, ClustersError::Foreign));
        let other = ClustersHeader { format: "other".to_owned(), ..ClustersHeader::new(4, 2) };
        let line = serde_json::to_string(&other).unwrap();
        let error = ClustersHeader::read(&mut line.as_bytes()).unwrap_err();
        assert!(matches!(error, ClustersError::Foreign));
        let error = ClustersHeader::read(&mut io::BufReader::new(Fails)).unwrap_err();
        assert!(matches!(error, ClustersError::Io(_)) && !error.is_other_job());
        assert!(ClustersError::Rank(3).is_other_job());
    }

    #[test]
    fn another_job_and_damage_are_named() {
        assert_eq!(of(FILE, 2, None).unwrap_err(), "it has no line for rank 2");
        let error = of(FILE, 0, Some(8)).unwrap_err();
        assert_eq!(error, "it was written for 2 processes, but this job has 8");
        let cut = FILE.trim_end().trim_end_matches('}');
        assert!(of(cut, 1, None).unwrap_err().starts_with("line 3: EOF"));
        let many = FILE.replace("[1,null]", "[4096]");
        assert_eq!(of(&many, 1, None).unwrap_err(), "line 3: cluster 4096 is above 4095");
        for foreign in ["", "{}", "rank,prq\n", "{\"format\":\"tcam-report\",\"version\":1}"] {
            assert!(of(foreign, 0, None).unwrap_err().contains("not a cluster file"), "{foreign}");
        }
        let newer = FILE.replace("\"version\":1", "\"version\":2");
        assert!(of(&newer, 0, None).unwrap_err().contains("version 2"));
    }
}
