// SPDX-License-Identifier: BSD-2-Clause
//! How many elements each source added to a queue: a row of matrix A of Ghazimirsaeed, Afsahi
//! (*Accelerating MPI Message Matching by a Data Clustering Strategy*, section 4), from which
//! `tcam cluster` makes the clusters of the engine `kmeans`.

use crate::traffic::Fields;
use crate::{Element, Key, TagLayout};

/// Largest source that is counted for itself: a peer may say any number in its match bits.
const LARGEST: u32 = 1 << 20;
/// Sources that there is room for at the start.
const USUAL: usize = 1024;

/// Counts by source.
pub(crate) struct AddedBySource {
    fields: Fields,
    added: Vec<u64>,
}

impl AddedBySource {
    /// Of elements with match bits of this layout.
    pub(crate) fn new(layout: TagLayout) -> Self {
        Self { fields: layout.fields(), added: vec![0; USUAL] }
    }

    /// Counts an element; one from any source is of none.
    #[inline]
    pub(crate) fn note(&mut self, element: &Element) {
        let Element { bits, ignore, source, .. } = *element;
        let Some(source) = self.fields.source(&Key { bits, ignore, source }).get() else { return };
        match self.added.get_mut(source as usize) {
            Some(added) => *added += 1,
            None => self.widen(source),
        }
    }

    #[cold]
    fn widen(&mut self, source: u32) {
        if source <= LARGEST {
            self.added.resize((source as usize + 1).next_power_of_two(), 0);
            self.added[source as usize] += 1;
        }
    }

    /// Each source that added elements, and how many.
    pub(crate) fn added(&self) -> Vec<(u32, u64)> {
        let all = self.added.iter().enumerate();
        all.filter(|(_, added)| **added > 0)
            .map(|(source, &added)| (source as u32, added))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;

    #[test]
    fn sources_are_those_of_the_bits_where_these_have_them() {
        let element = |bits, source| Element { bits, ignore: 0, source, token: 0 };
        let mut of_peers = AddedBySource::new(TagLayout::Mpich);
        for source in [3, 5000, 3, u32::MAX - 1] {
            of_peers.note(&element(7, Source::new(source)));
        }
        of_peers.note(&element(7, Source::ANY));
        assert_eq!(of_peers.added(), [(3, 2), (5000, 1)]);
        let mut of_bits = AddedBySource::new(TagLayout::MpichSourceInTag);
        of_bits.note(&element(5 << 19, Source::new(9)));
        assert_eq!(of_bits.added(), [(5, 1)]);
    }
}
