// SPDX-License-Identifier: BSD-2-Clause
//! The receives and messages of one rank: posts and arrivals in phases. After each phase the queues
//! are empty.
//!
//! ```text
//! on time   every receive is posted, then the messages arrive: point-to-point ones,
//!           which overtake, before the collective ones              fills the PRQ
//! late      the messages arrive, then every receive is posted, point-to-point ones
//!           first                                                   fills the UMQ
//! within    phases between the first and the second half of a phase
//! ```
//!
//! Messages are computed, not kept: memory does not depend on their number.

use matching::{Key, Source};
use nic::message::Envelope;
use nic::trace::{Op, Posted};

use super::random::{Permutation, mix};

/// Tags of MPICH's collective operations.
pub(crate) mod tag {
    pub(crate) const GATHER: u32 = 3;
    pub(crate) const GATHERV: u32 = 4;
    pub(crate) const BROADCAST: u32 = 2;
    pub(crate) const ALLGATHER: u32 = 7;
    pub(crate) const ALLGATHERV: u32 = 8;
    pub(crate) const ALLREDUCE: u32 = 14;
    /// The first tag of nonblocking operations, whose tags count up.
    pub(crate) const NONBLOCKING: u32 = 287;
}

/// The senders, as seen from the receiving rank.
#[derive(Clone, Debug)]
pub(crate) enum Sources {
    /// `count` ranks behind the receiver, from the distance `first` on.
    Behind { first: u32, count: u32 },
    /// This number of ranks, at distances 1, 2, 4 and so on.
    Doubling(u32),
    /// These ranks. A rank may be listed several times.
    Listed(Vec<u32>),
}

/// A set of messages with common properties.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    pub(crate) sources: Sources,
    /// Messages from each source, each with a separate tag.
    pub(crate) each: u32,
    pub(crate) collective: bool,
    pub(crate) communicator: u32,
    /// The first tag.
    pub(crate) tag: u32,
    /// Bytes of each message, and of its receive, because most programs know the length that they
    /// receive.
    pub(crate) len: u64,
    /// True if receives name no source. Each message of a source has the tag of its number.
    pub(crate) any_source: bool,
}

impl Messages {
    /// Returns the messages of one call of a collective operation.
    pub(crate) fn collective(communicator: u32, tag: u32, sources: Sources) -> Self {
        Self { sources, each: 1, collective: true, communicator, tag, len: 64, any_source: false }
    }

    /// Returns messages of the application.
    pub(crate) fn point_to_point(tag: u32, sources: Sources, each: u32) -> Self {
        Self { sources, each, collective: false, communicator: 0, tag, len: 256, any_source: false }
    }

    fn senders(&self) -> u64 {
        match &self.sources {
            Sources::Behind { count, .. } | Sources::Doubling(count) => u64::from(*count),
            Sources::Listed(ranks) => ranks.len() as u64,
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.senders() * u64::from(self.each)
    }

    /// Returns the sender and the match bits of a message, in the layout of MPICH: the context id
    /// of a communicator is even, and odd for its collective operations.
    pub(super) fn message(&self, number: u64, place: Place) -> (u32, u64) {
        let sender = number % self.senders();
        let round = (number / self.senders()) as u32;
        let behind =
            |distance: u64| ((u64::from(place.rank) + distance) % u64::from(place.ranks)) as u32;
        let (source, tag) = match &self.sources {
            Sources::Behind { first, .. } => (behind(u64::from(*first) + sender), round),
            Sources::Doubling(_) => (behind(1 << sender), round),
            // A rank that is listed twice sends twice.
            Sources::Listed(ranks) => (ranks[sender as usize], number as u32),
        };
        let context = u64::from(self.communicator) << 1 | u64::from(self.collective);
        (source, context << 31 | u64::from(self.tag + tag))
    }
}

/// The receiving rank, and the number of ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
}

/// The order in which messages arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// An order that the seed gives.
    Shuffled,
    /// The order in which they are received.
    Same,
    /// The opposite of the order in which they are received.
    Reversed,
}

/// Messages that are in flight at the same time.
#[derive(Clone, Debug)]
pub(crate) struct Phase {
    pub(crate) sets: Vec<Messages>,
    /// True if the receives are posted after the messages arrived.
    pub(crate) late: bool,
    pub(crate) order: Order,
    /// Phases that begin and end while the first half of this phase waits.
    pub(crate) within: Vec<Phase>,
}

impl Phase {
    pub(crate) fn on_time(sets: Vec<Messages>) -> Self {
        Self { sets, late: false, order: Order::Shuffled, within: Vec::new() }
    }

    pub(crate) fn late(sets: Vec<Messages>) -> Self {
        Self { late: true, ..Self::on_time(sets) }
    }

    pub(crate) fn in_order(self) -> Self {
        Self { order: Order::Same, ..self }
    }

    pub(crate) fn reversed(self) -> Self {
        Self { order: Order::Reversed, ..self }
    }

    pub(crate) fn with(self, within: Vec<Self>) -> Self {
        Self { within, ..self }
    }
}

/// The effect of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A receive that waits in the PRQ.
    Waits,
    /// A message that finds its receive in the PRQ.
    FindsReceive,
    /// A message that waits in the UMQ.
    Unexpected,
    /// A receive that finds its message in the UMQ.
    FindsMessage,
}

/// Generates every operation of a phase, in the order that the seed gives.
pub(crate) fn play(phase: &Phase, place: Place, seed: u64, mut sink: impl FnMut(Role, Op)) {
    play_to(phase, place, seed, &mut sink);
}

fn play_to(phase: &Phase, place: Place, seed: u64, sink: &mut dyn FnMut(Role, Op)) {
    let everything: Vec<&Messages> = phase.sets.iter().collect();
    let of_kind = |collective| {
        let of_kind = phase.sets.iter().filter(|set| set.collective == collective);
        of_kind.collect::<Vec<_>>()
    };
    let kinds = [of_kind(false), of_kind(true)];
    let each = |sets: &[&Messages], order: Order, role: Role, sink: &mut dyn FnMut(Role, Op)| {
        let count: u64 = sets.iter().map(|set| set.count()).sum();
        let shuffled = Permutation::new(count, mix(seed, role as u64));
        for at in 0..count {
            let mut number = match order {
                Order::Shuffled => shuffled.at(at),
                Order::Same => at,
                Order::Reversed => count - 1 - at,
            };
            let mut sets = sets.iter();
            let set = loop {
                let set = sets.next().expect("every number is in a set");
                if number < set.count() {
                    break set;
                }
                number -= set.count();
            };
            let (source, bits) = set.message(number, place);
            let op = match role {
                Role::Waits | Role::FindsMessage => Op::Post(Posted {
                    key: Key {
                        bits,
                        ignore: 0,
                        source: if set.any_source { Source::ANY } else { Source::new(source) },
                    },
                    len: set.len,
                    multi: None,
                    non_contiguous: false,
                }),
                Role::FindsReceive | Role::Unexpected => {
                    Op::Arrive(Envelope { source, bits, len: set.len })
                }
            };
            sink(role, op);
        }
    };
    let waits = if phase.late { Role::Unexpected } else { Role::Waits };
    let order = if phase.late { phase.order } else { Order::Same };
    each(&everything, order, waits, sink);
    for (number, phase) in phase.within.iter().enumerate() {
        play_to(phase, place, mix(seed, number as u64), sink);
    }
    for sets in &kinds {
        match phase.late {
            true => each(sets, Order::Same, Role::FindsMessage, sink),
            false => each(sets, phase.order, Role::FindsReceive, sink),
        }
    }
}
