// SPDX-License-Identifier: BSD-2-Clause
//! Counts the elements that each source added to the queues of each rank (matrix A of
//! Ghazimirsaeed, Afsahi: *Accelerating MPI Message Matching by a Data Clustering Strategy*,
//! section 4), and divides the sources into clusters, for `tcam cluster`.

use std::collections::BTreeMap;

use smartcore::cluster::kmeans::{KMeans, KMeansParameters};
use smartcore::linalg::basic::matrix::DenseMatrix;

use super::outcome::{Added, Experiment};

/// Largest number of a source for which queues count elements.
const LARGEST: u32 = 1 << 20;

/// Elements that each source added to the queues of a rank: pairs of source and elements.
#[derive(Debug, PartialEq, Eq)]
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

impl SourceProfile {
    /// Returns the profile of an experiment. Endpoints whose rank is unknown count for rank 0. Fails
    /// if there are elements and none has a source, or if a report has a source that no queue
    /// counts.
    pub(crate) fn of(experiment: &Experiment) -> Result<Self, &'static str> {
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
                    if source > LARGEST {
                        return Err("a report has a source above 1,048,576");
                    }
                    let sum = sums.entry(source).or_default();
                    *sum = sum.saturating_add(elements);
                }
            }
        }
        if silent && !has_additions {
            return Err("no element has a source, because every receive is from any source");
        }
        let row = |(rank, [prq, umq]): (u32, [BTreeMap<_, _>; 2])| RankProfile {
            rank,
            prq: prq.into_iter().collect(),
            umq: umq.into_iter().collect(),
        };
        Ok(Self { processes, rows: rows.into_iter().map(row).collect() })
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
