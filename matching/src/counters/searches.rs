// SPDX-License-Identifier: BSD-2-Clause
//! Search depths and traversals.

use serde::{Deserialize, Serialize};

use super::histogram::Histogram;
use crate::profile::Profile;
use crate::sums::add;

/// Search depth: the number of entries that a linear search in age order would have compared, first
/// in the table and then in the host queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchDepth {
    /// Searches that found an element; the element found is included.
    pub hit: Histogram,
    /// Searches that found nothing.
    pub miss: Histogram,
    /// Sum of the depths of all searches that found an element.
    pub hit_entries: u64,
    /// Sum of the depths of all searches that found nothing.
    pub miss_entries: u64,
}

impl SearchDepth {
    /// Adds the depths of another queue.
    pub(super) fn merge(&mut self, other: &Self) {
        self.hit.merge(&other.hit);
        self.miss.merge(&other.miss);
        add(&mut self.hit_entries, other.hit_entries);
        add(&mut self.miss_entries, other.miss_entries);
    }
}

/// Elements that searches on the host traversed in the queues of the engine, including the one
/// found. The papers measure engines by this. Searches and peeks are counted if they go to the
/// host: no element in the table matches, or an element on the host is older than the match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traversals {
    /// Searches that found an element on the host.
    pub hit: Histogram,
    /// Searches on the host that found nothing there, or only an element younger than the one in
    /// the table.
    pub miss: Histogram,
    /// Sum of the elements traversed by all these searches.
    pub entries: u64,
    /// Elements that the same searches would have compared in a single list of all elements on the
    /// host.
    pub in_a_list: u64,
    /// Traversals of each search that `hit` counts.
    pub found: Profile,
    /// Traversals of each search that `miss` counts.
    pub not_found: Profile,
}

impl Traversals {
    /// Adds the traversals of another queue.
    pub(super) fn merge(&mut self, other: &Self) {
        self.hit.merge(&other.hit);
        self.miss.merge(&other.miss);
        add(&mut self.entries, other.entries);
        add(&mut self.in_a_list, other.in_a_list);
        self.found.merge(&other.found);
        self.not_found.merge(&other.not_found);
    }
}
