// SPDX-License-Identifier: BSD-2-Clause
//! Files of clusters: what `tcam cluster` writes and `FI_TCAM_CLUSTERS` names (matrix B of
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
//! JSON, a line a process: each process reads its own line and leaves the others.

use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::sync::Arc;

use matching::{Clusters, TooManyClusters};
use serde::{Deserialize, Serialize};

/// What a file says that it is.
pub const FORMAT: &str = "tcam-clusters";
/// Value of [`Head::version`].
const VERSION: u32 = 1;
/// Longest line: of more processes than `FI_TCAM_NPROCS` may say.
const LONGEST: u64 = 1 << 28;

/// The first line of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    format: String,
    version: u32,
    /// Processes of the job that was profiled.
    pub processes: u32,
    /// Clusters of a process that were asked for; 0 for `auto`.
    pub k: u32,
}

/// The line of a process: by source, its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Its rank.
    pub rank: u32,
    /// Those of posted receives.
    pub prq: Vec<Option<u16>>,
    /// Those of unexpected messages.
    pub umq: Vec<Option<u16>>,
}

/// What a process has of a file: the clusters of posted receives and of unexpected messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Own {
    /// Those of posted receives.
    pub prq: Arc<Clusters>,
    /// Those of unexpected messages.
    pub umq: Arc<Clusters>,
}

/// No file of clusters.
#[derive(Debug, thiserror::Error)]
pub enum ClustersError {
    /// It cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// It does not begin as one.
    #[error("it is no file of clusters: `tcam cluster` writes those")]
    Foreign,
    /// Another version wrote it.
    #[error(
        "it is of version {0}, and this tcam reads version {VERSION}: write it anew with `tcam cluster`"
    )]
    Version(u32),
    /// A line is damaged.
    #[error("line {line}: {why}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// It has nothing for this process.
    #[error("it has no clusters of rank {0}")]
    Rank(u32),
    /// It is of another job.
    #[error("it is of {file} processes, and this job has {job}")]
    Processes {
        /// Those of the file.
        file: u32,
        /// Those of the job.
        job: u32,
    },
}

impl ClustersError {
    /// Whether the file is sound and of another job: the program can run without it.
    #[must_use]
    pub const fn is_other_job(&self) -> bool {
        matches!(self, Self::Rank(_) | Self::Processes { .. })
    }
}

impl Head {
    /// The first line of a file for so many processes.
    #[must_use]
    pub fn new(processes: u32, k: u32) -> Self {
        Self { format: FORMAT.to_owned(), version: VERSION, processes, k }
    }

    /// Reads the first line.
    ///
    /// # Errors
    /// [`ClustersError::Foreign`] and [`ClustersError::Version`], or what the file says.
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

/// The next line; nothing at the end.
fn line(from: &mut impl BufRead) -> Result<Option<String>, ClustersError> {
    let mut line = String::new();
    match io::Read::take(from, LONGEST).read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(line)),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(ClustersError::Foreign),
        Err(error) => Err(error.into()),
    }
}

/// Reads every line of a file, which says nothing twice.
///
/// # Errors
/// Every [`ClustersError`] but those of another job.
pub fn check(from: &mut impl BufRead) -> Result<Head, ClustersError> {
    let head = Head::read(from)?;
    let mut ranks = BTreeSet::new();
    let mut number = 1;
    while let Some(line) = line(from)? {
        number += 1;
        let wrong = |why: String| ClustersError::Line { line: number, why };
        let row: Row = serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
        if !ranks.insert(row.rank) {
            return Err(wrong(format!("rank {} has clusters already", row.rank)));
        }
        for of in [row.prq, row.umq] {
            Clusters::new(of).map_err(|error| wrong(error.to_string()))?;
        }
    }
    Ok(head)
}

/// What a file has for the process of a rank, in a job of so many processes where that is known.
///
/// # Errors
/// Every [`ClustersError`].
pub fn read(from: &mut impl BufRead, rank: u32, job: Option<u32>) -> Result<Own, ClustersError> {
    let head = Head::read(from)?;
    if let Some(job) = job.filter(|&job| job != head.processes) {
        return Err(ClustersError::Processes { file: head.processes, job });
    }
    let start = format!("{{\"rank\":{rank},");
    let mut number = 1;
    while let Some(line) = line(from)? {
        number += 1;
        if !line.starts_with(&start) {
            continue;
        }
        let wrong = |why: String| ClustersError::Line { line: number, why };
        let row: Row = serde_json::from_str(&line).map_err(|error| wrong(error.to_string()))?;
        let clusters = |of| Clusters::new(of).map(Arc::new);
        let (prq, umq) = (clusters(row.prq), clusters(row.umq));
        let too_many = |error: TooManyClusters| wrong(error.to_string());
        return Ok(Own { prq: prq.map_err(too_many)?, umq: umq.map_err(too_many)? });
    }
    Err(ClustersError::Rank(rank))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "{\"format\":\"tcam-clusters\",\"version\":1,\"processes\":2,\"k\":2}\n\
        {\"rank\":0,\"prq\":[null,0],\"umq\":[]}\n{\"rank\":1,\"prq\":[1,null],\"umq\":[0]}\n";

    fn of(file: &str, rank: u32, job: Option<u32>) -> Result<Own, String> {
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
        let row = Row { rank: 7, prq: vec![Some(3)], umq: vec![None, Some(0)] };
        let head = Head::new(9, 4);
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
            "line 3: rank 0 has clusters already"
        );
        assert!(why(FILE.to_owned() + "garbage\n").starts_with("line 4: "));
    }

    #[test]
    fn another_job_and_damage_are_named() {
        assert_eq!(of(FILE, 2, None).unwrap_err(), "it has no clusters of rank 2");
        let error = of(FILE, 0, Some(8)).unwrap_err();
        assert_eq!(error, "it is of 2 processes, and this job has 8");
        let cut = FILE.trim_end().trim_end_matches('}');
        assert!(of(cut, 1, None).unwrap_err().starts_with("line 3: EOF"));
        let many = FILE.replace("[1,null]", "[4096]");
        assert_eq!(of(&many, 1, None).unwrap_err(), "line 3: cluster 4096 is above 4095");
        for foreign in ["", "{}", "rank,prq\n", "{\"format\":\"tcam-report\",\"version\":1}"] {
            assert!(of(foreign, 0, None).unwrap_err().contains("no file of clusters"), "{foreign}");
        }
        let newer = FILE.replace("\"version\":1", "\"version\":2");
        assert!(of(&newer, 0, None).unwrap_err().contains("version 2"));
    }
}
