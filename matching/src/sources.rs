// SPDX-License-Identifier: BSD-2-Clause
//! Counts the elements that each source added to a queue. These counts are a row of matrix A of
//! Ghazimirsaeed, Afsahi (*Accelerating MPI Message Matching by a Data Clustering Strategy*,
//! section 4). `tcam cluster` makes the clusters of the engine `kmeans` from them.

use std::collections::BTreeMap;

use crate::traffic::Fields;
use crate::{Element, Key, TagLayout};

/// Largest source that is counted. Larger numbers are ignored, because a peer may put any number
/// into its match bits.
const LARGEST: u32 = 1 << 20;
/// Sources below this number are always counted in `added`.
const USUAL: usize = 1024;

/// Element counts by source.
pub(crate) struct AddedBySource {
    fields: Fields,
    /// Indexed by source. Beyond [`USUAL`] entries, the length at most doubles at a time, so that
    /// one large source number does not allocate memory for all numbers below it.
    added: Vec<u64>,
    /// Counts of sources beyond `added`.
    others: BTreeMap<u32, u64>,
}

impl AddedBySource {
    /// Creates the counts for elements with match bits of this layout.
    pub(crate) fn new(layout: TagLayout) -> Self {
        Self { fields: layout.fields(), added: Vec::new(), others: BTreeMap::new() }
    }

    /// Counts an element. Any-source elements are not attributed to a source.
    #[inline]
    pub(crate) fn note(&mut self, element: &Element) {
        let Element { bits, ignore, source, .. } = *element;
        let Some(source) = self.fields.source(&Key { bits, ignore, source }).get() else { return };
        match self.added.get_mut(source as usize) {
            Some(added) => *added += 1,
            None => self.note_other(source),
        }
    }

    #[cold]
    fn note_other(&mut self, source: u32) {
        if source > LARGEST {
            return;
        }
        *self.others.entry(source).or_default() += 1;
        let place = source as usize;
        if place < USUAL.max(2 * self.added.len()) {
            let wider = (place + 1).next_power_of_two();
            self.added.resize(wider, 0);
            let beyond = self.others.split_off(&(wider as u32));
            for (source, added) in std::mem::replace(&mut self.others, beyond) {
                self.added[source as usize] = added;
            }
        }
    }

    /// The sources that added elements, with their counts.
    pub(crate) fn added(&self) -> Vec<(u32, u64)> {
        let all = self.added.iter().enumerate();
        all.filter(|(_, added)| **added > 0)
            .map(|(source, &added)| (source as u32, added))
            .chain(self.others.iter().map(|(&source, &added)| (source, added)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn the_source_is_taken_from_the_bits_if_they_contain_it() {
        let element = |bits, source| Element { bits, ignore: 0, source, token: 0 };
        let mut of_peers = AddedBySource::new(TagLayout::Mpich);
        for source in [3, 2047, 5000, 5000, 3, 1 << 20, u32::MAX - 1, 2048, 4096, 5000] {
            of_peers.note(&element(7, Source::new(source)));
        }
        of_peers.note(&element(7, Source::ANY));
        let expected = [(3, 2), (2047, 1), (2048, 1), (4096, 1), (5000, 3), (1 << 20, 1)];
        assert_eq!(of_peers.added(), expected);
        let mut of_bits = AddedBySource::new(TagLayout::MpichSourceInTag);
        of_bits.note(&element(5 << 19, Source::new(9)));
        assert_eq!(of_bits.added(), [(5, 1)]);
    }
}
