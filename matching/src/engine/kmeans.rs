// SPDX-License-Identifier: BSD-2-Clause
//! `kmeans`: a queue for each cluster of sources, and one for any-source receives
//! (section 4 of Ghazimirsaeed, Afsahi: *Accelerating MPI Message Matching by a Data
//! Clustering Strategy*).
//!
//! ```text
//! first run:   A[i][j] = elements that source j added to the queues of process i
//! afterwards:  B[i] = K-means of row i: the cluster of each source j (`tcam cluster`)
//! next run:    process i keeps a queue for each cluster of B[i], and PRQ_ANY
//!
//! insert(e):  any source -> PRQ_ANY; source j -> queue B[i][j]
//! search(k):  source j -> queue B[i][j] and PRQ_ANY, the smaller sequence number wins
//!             any source -> every queue, the smallest sequence number wins
//! ```
//!
//! Detail that the paper leaves open: all sources that B does not name, such as those of spawned
//! processes, share one further cluster, and their elements are counted.

use std::sync::Arc;

use super::by_source::{ANY, BySource, SourceMap};
use super::queue::Queues;
use crate::{Key, Source, TagLayout, traffic::Fields};

/// The cluster of each source, for a process's PRQ or UMQ: a row of the paper's matrix B.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Clusters {
    /// Indexed by source.
    clusters: Vec<Option<u16>>,
    count: usize,
}

impl Clusters {
    /// Maximum number of clusters of a process.
    pub const MOST: u16 = 4096;

    /// Creates the clusters of sources 0, 1, ...; `None` stands for a source without a cluster.
    ///
    /// # Errors
    /// A cluster number is not below [`Clusters::MOST`].
    pub fn new(clusters: Vec<Option<u16>>) -> Result<Self, TooManyClusters> {
        match clusters.iter().flatten().max() {
            Some(&cluster) if cluster >= Self::MOST => Err(TooManyClusters(cluster)),
            highest => {
                Ok(Self { count: highest.map_or(0, |&cluster| usize::from(cluster) + 1), clusters })
            }
        }
    }

    fn get(&self, source: u32) -> Option<u16> {
        self.clusters.get(source as usize).copied().flatten()
    }
}

/// A cluster number that is not below [`Clusters::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cluster {0} is above {max}", max = Clusters::MOST - 1)]
pub struct TooManyClusters(u16);

/// The engine; see the module.
pub type Kmeans<Q> = BySource<Q, Clustered>;

/// Queue of sources without a cluster.
const OTHERS: usize = ANY + 1;

/// A queue for each cluster.
pub struct Clustered {
    fields: Fields,
    clusters: Arc<Clusters>,
    unknown: u64,
}

impl SourceMap for Clustered {
    fn source(&self, key: &Key) -> Source {
        self.fields.source(key)
    }

    fn queue_of(&self, source: u32) -> usize {
        self.clusters.get(source).map_or(OTHERS, |cluster| OTHERS + 1 + usize::from(cluster))
    }

    fn note(&mut self, source: u32) {
        self.unknown += u64::from(self.clusters.get(source).is_none());
    }

    fn dedicated(&self) -> usize {
        self.clusters.count
    }

    fn unknown(&self) -> u64 {
        self.unknown
    }
}

impl<Q: Queues> Kmeans<Q> {
    /// Creates an engine on an empty storage, for match bits of this layout.
    pub fn new(layout: TagLayout, clusters: Arc<Clusters>, queues: Q) -> Self {
        Self::with(queues, Clustered { fields: layout.fields(), clusters, unknown: 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;
    use crate::{Element, Linked};

    #[test]
    fn sources_without_a_cluster_share_a_queue_and_are_counted() {
        let clusters = Clusters::new(vec![Some(0), None, Some(2)]).unwrap();
        let mut engine = Kmeans::new(TagLayout::Mpich, Arc::new(clusters), Linked::default());
        for (age, source) in [0, 1, 2, 3, 2].into_iter().enumerate() {
            let source = Source::new(source);
            let token = age as u32;
            engine.insert(Element { bits: 7, ignore: 0, source, token }, age as u64);
        }
        let key = |source| Key { bits: 7, ignore: 0, source: Source::new(source) };
        assert_eq!(engine.first_token(&key(3)), Some(3));
        assert_eq!(engine.traversed(&key(3)), 2, "an element of source 1 comes before it");
        assert_eq!(engine.traversed(&key(0)), 1);
        assert_eq!((engine.unclustered(), engine.dedicated()), (2, (0, 3)));
    }

    #[test]
    fn clusters_are_bounded() {
        assert!(Clusters::new(vec![Some(Clusters::MOST - 1)]).is_ok());
        let error = Clusters::new(vec![Some(Clusters::MOST)]).unwrap_err();
        assert_eq!(error.to_string(), "cluster 4096 is above 4095");
    }
}
