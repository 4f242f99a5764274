// SPDX-License-Identifier: BSD-2-Clause
//! How far searches went.

use serde::{Deserialize, Serialize};

use super::histogram::Histogram;
use crate::profile::Profile;
use crate::sums::add;

/// Search depth: entries a linear search in age order would have compared,
/// the table first and then the host queue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchDepth {
    /// Searches that found an element, the found one counted.
    pub hit: Histogram,
    /// Searches that found nothing.
    pub miss: Histogram,
    /// Entries compared by all searches that found an element; 0 in reports written
    /// before this was counted.
    #[serde(default)]
    pub hit_entries: u64,
    /// Entries compared by all searches that found nothing.
    #[serde(default)]
    pub miss_entries: u64,
}

impl SearchDepth {
    /// Adds another queue's.
    pub(super) fn merge(&mut self, other: &Self) {
        self.hit.merge(&other.hit);
        self.miss.merge(&other.miss);
        add(&mut self.hit_entries, other.hit_entries);
        add(&mut self.miss_entries, other.miss_entries);
    }
}

/// Elements that searches on the host traversed in the queues of the engine, the found one
/// counted: what the papers measure engines by. Searches that the table answers are not counted,
/// peeks that it does not answer are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traversals {
    /// Searches that found an element on the host.
    pub hit: Histogram,
    /// Searches on the host that found nothing there, or nothing as old as in the table.
    pub miss: Histogram,
    /// Elements traversed by all of them.
    pub entries: u64,
    /// Elements that one list of all on the host would have compared in their place.
    pub in_a_list: u64,
    /// What each search that found an element traversed; empty in reports written before this
    /// was counted.
    #[serde(default)]
    pub found: Profile,
    /// What each of the others traversed.
    #[serde(default)]
    pub not_found: Profile,
}

impl Traversals {
    /// Adds another queue's.
    pub(super) fn merge(&mut self, other: &Self) {
        self.hit.merge(&other.hit);
        self.miss.merge(&other.miss);
        add(&mut self.entries, other.entries);
        add(&mut self.in_a_list, other.in_a_list);
        self.found.merge(&other.found);
        self.not_found.merge(&other.not_found);
    }
}
