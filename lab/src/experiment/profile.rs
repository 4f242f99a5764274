// SPDX-License-Identifier: BSD-2-Clause
//! Makes and reads the profiles of `tcam profile`. A profile contains the number of elements that
//! each source added to the queues of each rank. It is matrix A of Ghazimirsaeed, Afsahi
//! (*Accelerating MPI Message Matching by a Data Clustering Strategy*, section 4). `tcam cluster`
//! makes clusters from it.
//!
//! ```text
//! {"format":"tcam-profile","version":1,"processes":4}
//! {"rank":0,"prq":[[1,200],[2,180]],"umq":[[1,3]]}     [source, elements] of each that added some
//! ...
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};
use smartcore::cluster::kmeans::{KMeans, KMeansParameters};
use smartcore::linalg::basic::matrix::DenseMatrix;

use super::outcome::{Added, Experiment};
use crate::error::Error;
use crate::file;
use crate::text::{Sheet, count, whole};

/// Value of [`ProfileHeader::format`].
pub(crate) const FORMAT: &str = "tcam-profile";
/// Value of [`ProfileHeader::version`].
const VERSION: u32 = 1;
/// Largest number of a source for which queues count elements.
const LARGEST: u32 = 1 << 20;
/// Largest number of ranks in the table.
const WORST: usize = 8;

#[derive(Debug, Serialize, Deserialize)]
struct ProfileHeader {
    format: String,
    version: u32,
    processes: u32,
}

/// Elements that each source added to the queues of a rank: pairs of source and elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RankProfile {
    pub(crate) rank: u32,
    pub(crate) prq: Vec<(u32, u64)>,
    pub(crate) umq: Vec<(u32, u64)>,
}

/// The profile of all ranks (matrix A).
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SourceProfile {
    pub(crate) processes: u32,
    /// Rows by rank.
    pub(crate) rows: Vec<RankProfile>,
}

/// Checks before the work that a file of this format can be written. Fails if a file of another
/// kind has this name. `-` is standard output.
pub(crate) fn check_out(out: &Path, format: &str) -> Result<(), Error> {
    if out.as_os_str() == "-" {
        return Ok(());
    }
    file::spare_others(out, &format!("{{\"format\":\"{format}\""))?;
    file::check(out)
}

/// Returns a value as a line of JSON.
pub(crate) fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("numbers are JSON") + "\n"
}

impl SourceProfile {
    /// Returns the profile of an experiment, or `None` if there are elements and no queue counted
    /// their sources. Endpoints whose rank is unknown count for rank 0.
    pub(crate) fn of(experiment: &Experiment) -> Option<Self> {
        let mut rows: BTreeMap<u32, [BTreeMap<u32, u64>; 2]> = BTreeMap::new();
        let mut processes = 0;
        let (mut has_additions, mut silent) = (false, false);
        for head in &experiment.heads {
            processes = processes.max(head.origin.ranks.unwrap_or(0));
        }
        for Added { rank, queues } in &experiment.added {
            let rank = rank.unwrap_or(0);
            processes = processes.max(rank.saturating_add(1));
            for ((inserts, added), sums) in queues.iter().zip(rows.entry(rank).or_default()) {
                has_additions |= !added.is_empty();
                silent |= *inserts > 0 && added.is_empty();
                for &(source, elements) in added {
                    let sum = sums.entry(source).or_default();
                    *sum = sum.saturating_add(elements);
                }
            }
        }
        if silent && !has_additions {
            return None;
        }
        let row = |(rank, [prq, umq]): (u32, [BTreeMap<_, _>; 2])| RankProfile {
            rank,
            prq: prq.into_iter().collect(),
            umq: umq.into_iter().collect(),
        };
        Some(Self { processes, rows: rows.into_iter().map(row).collect() })
    }

    pub(crate) fn text(&self) -> String {
        let head = ProfileHeader {
            format: FORMAT.to_owned(),
            version: VERSION,
            processes: self.processes,
        };
        self.rows.iter().fold(line(&head), |text, row| text + &line(row))
    }

    /// Reads a profile. Fails if the file cannot be read or is not a profile.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let bytes = host::regular::read(path, file::LONGEST).map_err(Error::io(path))?;
        Self::parse(&bytes).map_err(|why| Error::file(path, why))
    }

    fn parse(bytes: &[u8]) -> Result<Self, String> {
        let foreign = || "it is no profile: `tcam profile` writes those".to_owned();
        let text = std::str::from_utf8(bytes).map_err(|_| foreign())?;
        let mut lines = text.lines().enumerate();
        let head: ProfileHeader = lines
            .next()
            .and_then(|(_, line)| serde_json::from_str(line).ok())
            .filter(|head: &ProfileHeader| head.format == FORMAT)
            .ok_or_else(foreign)?;
        if head.version != VERSION {
            let version = head.version;
            return Err(format!(
                "it is of version {version}, and this tcam reads version {VERSION}: write it anew \
                 with `tcam profile`"
            ));
        }
        let row = |(at, line): (usize, &str)| {
            serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1))
        };
        let rows: Vec<RankProfile> = lines.map(row).collect::<Result<_, _>>()?;
        if rows.is_empty() {
            return Err("it has no rank".to_owned());
        }
        let mut ranks = BTreeSet::new();
        for RankProfile { rank, prq, umq } in &rows {
            if *rank >= head.processes || !ranks.insert(rank) {
                return Err(format!(
                    "rank {rank} has several lines, or is not below the number of ranks, {}",
                    head.processes
                ));
            }
            let highest = prq.iter().chain(umq).map(|(source, _)| *source).max().unwrap_or(0);
            if highest > LARGEST {
                return Err(format!("rank {rank}: source {highest} is above {LARGEST}"));
            }
        }
        Ok(Self { processes: head.processes, rows })
    }

    /// Returns the table of the ranks with the most elements.
    pub(crate) fn sheet(&self) -> Sheet {
        let sum = |of: &[(u32, u64)]| of.iter().fold(0_u64, |sum, (_, n)| sum.saturating_add(*n));
        let most = |of: &[(u32, u64)]| {
            let most = of.iter().max_by_key(|(_, elements)| *elements);
            most.map_or_else(|| "-".to_owned(), |(source, n)| format!("{} of {source}", whole(*n)))
        };
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_key(|row| std::cmp::Reverse(sum(&row.prq).saturating_add(sum(&row.umq))));
        let title = match rows.len() {
            all if all <= WORST => "Elements that sources added".to_owned(),
            all => format!("Elements that sources added, {WORST} of {}", count(all as u64, "rank")),
        };
        let columns = ["rank", "queue", "sources", "elements", "most"];
        let mut sheet = Sheet::new(&title, columns);
        for row in rows.into_iter().take(WORST) {
            for (queue, of) in [("PRQ", &row.prq), ("UMQ", &row.umq)] {
                sheet.row([
                    row.rank.to_string(),
                    queue.to_owned(),
                    whole(of.len() as u64),
                    whole(sum(of)),
                    most(of),
                ]);
            }
        }
        sheet
    }
}

/// Seed of K-means, so that the clusters are the same each time.
const SEED: u64 = 20_170_925;

/// The clusters of the sources of a queue.
#[derive(Debug, PartialEq)]
pub(crate) struct Clustered {
    /// The cluster of each source; `None` for a source that added no elements.
    pub(crate) of: Vec<Option<u16>>,
    /// Number of clusters that have a source.
    pub(crate) clusters: usize,
    /// Mean share of all elements that are in the same cluster as an element; 1 with one cluster or
    /// without elements.
    pub(crate) part: f64,
}

/// Divides sources into up to `k` clusters by the number of elements that each added. Clusters are
/// numbered from 0, those whose sources added fewest elements first.
pub(crate) fn kmeans(added: &[(u32, u64)], k: u16) -> Clustered {
    let mut values: Vec<u64> = added.iter().map(|(_, elements)| *elements).collect();
    values.sort_unstable();
    values.dedup();
    // There are no more clusters than different numbers of elements: further clusters would be
    // empty.
    let k = usize::from(k).min(values.len());
    let labels = if k < 2 { vec![0; added.len()] } else { labels(added, k) };
    let mut sums: Vec<(u64, u128, usize)> = (0..k.max(1)).map(|at| (0, 0, at)).collect();
    for ((_, elements), &label) in added.iter().zip(&labels) {
        let sum = &mut sums[label];
        sum.0 = sum.0.max(*elements);
        sum.1 += u128::from(*elements);
    }
    sums.retain(|(_, sum, _)| *sum > 0);
    sums.sort_unstable();
    let total: u128 = sums.iter().map(|(_, sum, _)| sum).sum();
    let squares: f64 = sums.iter().map(|(_, sum, _)| (*sum as f64 / total as f64).powi(2)).sum();
    let last = added.iter().map(|(source, _)| *source as usize + 1).max().unwrap_or(0);
    let mut of = vec![None; last];
    for ((source, _), label) in added.iter().zip(labels) {
        let number = sums.iter().position(|(_, _, at)| *at == label);
        of[*source as usize] = number.map(|number| number as u16);
    }
    Clustered { of, clusters: sums.len(), part: if total == 0 { 1.0 } else { squares } }
}

/// Returns the label that K-means gives each source.
fn labels(added: &[(u32, u64)], k: usize) -> Vec<usize> {
    let column: Vec<Vec<f64>> = added.iter().map(|(_, elements)| vec![*elements as f64]).collect();
    let matrix = DenseMatrix::from_2d_vec(&column).expect("each row has one number");
    let parameters = KMeansParameters { seed: Some(SEED), ..KMeansParameters::default().with_k(k) };
    let fitted: KMeans<f64, i64, _, Vec<i64>> =
        KMeans::fit(&matrix, parameters).expect("there are at least two clusters");
    let labels = fitted.predict(&matrix).expect("the matrix was fitted");
    labels.into_iter().map(|label| label as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let row = |rank| RankProfile { rank, prq: vec![(1, 200), (7, 1)], umq: Vec::new() };
        let profile = SourceProfile { processes: 9, rows: vec![row(0), row(8)] };
        assert_eq!(SourceProfile::parse(profile.text().as_bytes()), Ok(profile));
    }

    #[test]
    fn other_files_are_refused() {
        let why = |text: &str| SourceProfile::parse(text.as_bytes()).unwrap_err();
        for foreign in ["", "{}", "rank,source", "{\"format\":\"tcam-clusters\"}"] {
            assert!(why(foreign).starts_with("it is no profile"), "{foreign}");
        }
        let head = "{\"format\":\"tcam-profile\",\"version\":1,\"processes\":2}\n";
        assert_eq!(why(head), "it has no rank");
        assert!(why(&format!("{head}{{\"rank\":0")).starts_with("line 2: "));
        assert!(why(&head.replace(":1,", ":2,")).contains("version 2"));
    }

    #[test]
    fn sources_that_add_alike_share_a_cluster() {
        // The groups of the paper's Table 1: 2, 10, 50 and 100 messages.
        let of = |source| [2, 10, 50, 100][source as usize % 4];
        let added: Vec<_> = (0..40).map(|source| (source, of(source))).collect();
        let made = kmeans(&added, 4);
        let expected: Vec<_> = (0..40).map(|source| Some(source % 4)).collect();
        assert_eq!((made.of, made.clusters), (expected, 4));
        assert_eq!(kmeans(&added, 4).part, made.part, "a second run gives the same clusters");
    }

    #[test]
    fn one_cluster_is_one_queue_and_clusters_beyond_the_values_are_empty() {
        let added = [(0, 5), (3, 5), (7, 9)];
        assert_eq!(kmeans(&added, 1), Clustered { of: one(), clusters: 1, part: 1.0 });
        let made = kmeans(&added, 32);
        assert_eq!(made.clusters, 2);
        assert_eq!((made.of[0], made.of[1], made.of[7]), (Some(0), None, Some(1)));
        assert_eq!(kmeans(&[], 8), Clustered { of: Vec::new(), clusters: 0, part: 1.0 });

        fn one() -> Vec<Option<u16>> {
            [0, 3, 7].into_iter().fold(vec![None; 8], |mut of, source| {
                of[source] = Some(0);
                of
            })
        }
    }
}
