// SPDX-License-Identifier: BSD-2-Clause
//! Names of communicators: a number in the order of their first elements, and the ranks of these
//! elements. The context id of the MPI comes last, because it means nothing to a user.

use std::collections::{BTreeMap, BTreeSet};

use super::fill::{Class, Makeup, Peer};
use crate::results::ranks::{named, ranges};
use crate::text::numbers::count;

/// Most ranges of ranks in a name.
const RANGES: usize = 2;

/// Names by context id.
#[derive(Debug, Default)]
pub(crate) struct Communicators(BTreeMap<u32, String>);

/// Facts about a communicator from its elements.
struct Seen {
    first: f64,
    ranks: BTreeSet<u32>,
}

impl Communicators {
    /// Names the communicators of the elements of some ranks.
    pub(crate) fn of<'a>(makeups: impl IntoIterator<Item = &'a Makeup>) -> Self {
        let mut seen: BTreeMap<u32, Seen> = BTreeMap::new();
        for makeup in makeups {
            for (class, &first) in makeup.classes.iter().zip(&makeup.first) {
                let Some(id) = class.told.communicator.filter(|id| *id > 0) else { continue };
                let of = seen.entry(id).or_insert(Seen { first, ranks: BTreeSet::new() });
                of.first = of.first.min(first);
                of.ranks.extend(makeup.rank);
                if let Peer::Rank(rank) = class.peer {
                    of.ranks.insert(rank);
                }
            }
        }
        let mut seen: Vec<_> = seen.into_iter().collect();
        seen.sort_by(|(_, a), (_, b)| a.first.total_cmp(&b.first));
        let named = seen.into_iter().zip(1..).map(|((id, Seen { ranks, .. }), number)| {
            let ranges = ranges(&ranks);
            let ranks = match ranges.len() {
                0 => String::new(),
                few if few <= RANGES => format!("{}, ", named(&ranges)),
                _ => format!("{}, ", count(ranks.len() as u64, "rank")),
            };
            (id, format!("communicator {number} ({ranks}id {id})"))
        });
        Self(named.collect())
    }

    /// Returns the name of the communicator of a class.
    pub(crate) fn name(&self, class: &Class) -> String {
        match class.told.communicator {
            Some(0) => "MPI_COMM_WORLD".to_owned(),
            Some(id) => self.0.get(&id).cloned().unwrap_or_else(|| format!("communicator id {id}")),
            None => "any communicator".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use matching::DecodedBits;

    use super::*;

    #[test]
    fn names_have_the_order_of_appearance_and_the_ranks() {
        let class = |communicator, peer| {
            let told = DecodedBits { communicator, tag: Some(1), source: None, operation: None };
            Class { told, peer }
        };
        let makeup = |rank, classes: &[(Class, f64)]| Makeup {
            rank: Some(rank),
            classes: classes.iter().map(|of| of.0).collect(),
            first: classes.iter().map(|of| of.1).collect(),
            ..Makeup::default()
        };
        let (late, early) = (class(Some(8), Peer::Rank(5)), class(Some(496), Peer::Any));
        let world = class(Some(0), Peer::Any);
        let makeups = [
            makeup(0, &[(world, 0.0), (late, 2.0)]),
            makeup(1, &[(early, 1.0)]),
            makeup(2, &[(early, 3.0), (late, 0.5)]),
            makeup(3, &[(late, 4.0)]),
        ];
        let names = Communicators::of(&makeups);
        assert_eq!(names.name(&late), "communicator 1 (4 ranks, id 8)");
        assert_eq!(names.name(&early), "communicator 2 (ranks 1-2, id 496)");
        assert_eq!(names.name(&world), "MPI_COMM_WORLD");
        assert_eq!(names.name(&class(None, Peer::Any)), "any communicator");
    }
}
