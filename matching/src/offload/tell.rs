// SPDX-License-Identifier: BSD-2-Clause
//! Counters and contents of a queue.

use super::{Location, Offload, Place};
use crate::counters::{ByKind, QueueCounters, Tallies};
use crate::engine::Engine;

impl Offload {
    /// The counters of the queue, with its current occupancy.
    #[must_use]
    pub fn counters(&self) -> QueueCounters {
        let (collective, point_to_point) = self.host.dedicated();
        let [of_collective, of_point_to_point] = self.host.levels();
        let kept = |place| u64::from(self.matched.is_some_and(|found| found.place == place));
        QueueCounters {
            table_kept: self.counters.table_kept + kept(Place::Table),
            host_kept: self.counters.host_kept + kept(Place::Host),
            table_occupancy: self.table.len() as u64,
            host_occupancy: self.host.len() as u64,
            dedicated_collective: collective as u64,
            dedicated_point_to_point: point_to_point as u64,
            unclustered: self.host.unclustered(),
            choices: self.chooser.as_ref().map_or_else(Vec::new, |of| of.choices().to_vec()),
            added: self.sources.as_ref().map_or_else(Vec::new, |sources| sources.added()),
            dedicated_levels: ByKind {
                collective: of_collective,
                point_to_point: of_point_to_point,
            },
            ..self.counters.clone()
        }
        .with_sums_of_kinds()
    }

    /// The counters that need no allocation.
    #[must_use]
    pub fn tallies(&self) -> Tallies {
        let ByKind { collective, point_to_point } = &self.counters.kinds;
        Tallies {
            entries: self.counters.entries,
            table_matches: collective.table_matches + point_to_point.table_matches,
            host_matches: collective.host_matches + point_to_point.host_matches,
            spills: self.counters.spills,
            promotions: self.counters.promotions,
            table_occupancy: self.table.len() as u64,
            host_occupancy: self.host.len() as u64,
            high_water: self.counters.high_water,
        }
    }

    /// Tokens of all elements, oldest first.
    pub fn iter_tokens(&mut self) -> impl Iterator<Item = u32> + '_ {
        let locations = &self.locations;
        let mut host = self.host.iter().peekable();
        let mut table = self.table.iter().map(|(_, entry)| entry.token).peekable();
        std::iter::from_fn(move || {
            let table_age = table.peek().map(|&token| match locations[token as usize] {
                Location::Table { age, .. } => age,
                _ => unreachable!("the table's elements have a place in the table"),
            });
            match (table_age, host.peek()) {
                (Some(age), Some(&(_, other))) if other < age => {
                    host.next().map(|(token, _)| token)
                }
                (Some(_), _) => table.next(),
                (None, _) => host.next().map(|(token, _)| token),
            }
        })
    }
}
