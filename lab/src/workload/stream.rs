// SPDX-License-Identifier: BSD-2-Clause
//! Generates the receives and messages of one rank, as exchanges. An exchange is a set of receives
//! that are posted and of the messages that they match. After each exchange the queues are empty.
//! The order of arrival depends only on the exchange and on the seed.
//!
//! ```text
//! on time   every receive is posted, then the messages arrive; point-to-point ones
//!           overtake the collective ones                            fills the PRQ
//! late      the messages arrive, then every receive is posted, point-to-point ones
//!           first                                                   fills the UMQ
//! within    other exchanges, between the first and the second half of an exchange
//! ```
//!
//! Messages are computed when they are needed. So the use of memory does not depend on their
//! number.

use matching::{Key, Source};
use nic::message::Envelope;
use nic::trace::{Op, Posted};

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
pub(crate) enum Senders {
    /// `count` ranks with numbers above that of the receiver, modulo the number of ranks, from the
    /// distance `first` on.
    Following { first: u32, count: u32 },
    /// This number of ranks, at distances 1, 2, 4 and so on.
    Doubling(u32),
    /// These ranks. A rank may be listed several times.
    Listed(Vec<u32>),
}

/// A set of messages with common properties.
#[derive(Clone, Debug)]
pub(crate) struct Messages {
    pub(crate) senders: Senders,
    /// Messages from each source, each with a separate tag.
    pub(crate) each: u32,
    pub(crate) collective: bool,
    pub(crate) communicator: u32,
    /// The first tag.
    pub(crate) tag: u32,
    /// Bytes of each message, and of its receive, because most programs know the length that they
    /// receive.
    pub(crate) len: u64,
    /// True if receives name no source: a receive matches the message with its tag from any source.
    pub(crate) any_source: bool,
}

impl Messages {
    /// Returns the messages of one call of a collective operation.
    pub(crate) fn collective(communicator: u32, tag: u32, senders: Senders) -> Self {
        Self { senders, each: 1, collective: true, communicator, tag, len: 64, any_source: false }
    }

    /// Returns messages of the application.
    pub(crate) fn point_to_point(tag: u32, senders: Senders, each: u32) -> Self {
        Self { senders, each, collective: false, communicator: 0, tag, len: 256, any_source: false }
    }

    fn number_of_senders(&self) -> u64 {
        match &self.senders {
            Senders::Following { count, .. } | Senders::Doubling(count) => u64::from(*count),
            Senders::Listed(ranks) => ranks.len() as u64,
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.number_of_senders() * u64::from(self.each)
    }

    /// Returns the sender and the match bits of a message, in the layout of MPICH. The context id
    /// of a communicator is even for point-to-point messages, and odd for collective operations.
    pub(super) fn message(&self, number: u64, receiver: Receiver) -> (u32, u64) {
        let sender = number % self.number_of_senders();
        let round = (number / self.number_of_senders()) as u32;
        let behind = |distance: u64| {
            ((u64::from(receiver.rank) + distance) % u64::from(receiver.ranks)) as u32
        };
        let (source, tag) = match &self.senders {
            Senders::Following { first, .. } => (behind(u64::from(*first) + sender), round),
            Senders::Doubling(_) => (behind(1 << sender), round),
            // A rank that is listed twice sends twice, so tags count all messages.
            Senders::Listed(ranks) => (ranks[sender as usize], number as u32),
        };
        let context = u64::from(self.communicator) << 1 | u64::from(self.collective);
        (source, context << 31 | u64::from(self.tag + tag))
    }
}

/// The receiving rank, and the number of ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Receiver {
    pub(crate) rank: u32,
    pub(crate) ranks: u32,
}

/// The order in which messages arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// A random order that depends on the seed.
    Shuffled,
    /// The order in which their receives are posted.
    Same,
    /// The opposite of the order in which their receives are posted.
    Reversed,
}

/// The effect of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// A receive that waits in the PRQ.
    Waits,
    /// A message that finds its receive in the PRQ.
    FindsReceive,
    /// A message that waits in the UMQ.
    Unexpected,
    /// A receive that finds its message in the UMQ.
    FindsMessage,
}

/// Takes the operations of an exchange.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(Effect, Op);

/// Messages that are in flight at the same time.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    pub(crate) sets: Vec<Messages>,
    /// True if the receives are posted after the messages arrived.
    pub(crate) late: bool,
    pub(crate) order: Order,
    /// Exchanges that begin and end while the first half of this one waits.
    pub(crate) within: Vec<Exchange>,
}

impl Exchange {
    pub(crate) fn new(late: bool, sets: Vec<Messages>) -> Self {
        Self { sets, late, order: Order::Shuffled, within: Vec::new() }
    }

    pub(crate) fn on_time(sets: Vec<Messages>) -> Self {
        Self::new(false, sets)
    }

    pub(crate) fn late(sets: Vec<Messages>) -> Self {
        Self::new(true, sets)
    }

    /// Generates every operation. [`Exchange::order`] gives the order in which the messages arrive.
    /// In the second half of the exchange, point-to-point operations come before collective ones.
    pub(crate) fn play(&self, receiver: Receiver, seed: u64, sink: Sink<'_>) {
        let all: Vec<_> = self.sets.iter().collect();
        let (collective, messages) = self.sets.iter().partition::<Vec<_>, _>(|set| set.collective);
        let each = |sets: &[&Messages], order: Order, effect: Effect, sink: Sink<'_>| {
            let count: u64 = sets.iter().map(|set| set.count()).sum();
            let shuffled = Permutation::new(count, mix(seed, effect as u64));
            for at in 0..count {
                let number = match order {
                    Order::Shuffled => shuffled.at(at),
                    Order::Same => at,
                    Order::Reversed => count - 1 - at,
                };
                sink(effect, operation(sets, number, receiver, effect));
            }
        };
        if self.late {
            each(&all, self.order, Effect::Unexpected, sink);
        } else {
            each(&all, Order::Same, Effect::Waits, sink);
        }
        for (exchange, number) in self.within.iter().zip(0..) {
            exchange.play(receiver, mix(seed, number), sink);
        }
        for sets in [messages, collective] {
            match self.late {
                true => each(&sets, Order::Same, Effect::FindsMessage, sink),
                false => each(&sets, self.order, Effect::FindsReceive, sink),
            }
        }
    }
}

/// Returns the receive or the arrival of the message with this number, which counts the messages of
/// all sets. `effect` decides which of both is returned.
fn operation(sets: &[&Messages], number: u64, receiver: Receiver, effect: Effect) -> Op {
    let mut number = number;
    let mut sets = sets.iter();
    let set = loop {
        let set = sets.next().expect("every number is in a set");
        if number < set.count() {
            break set;
        }
        number -= set.count();
    };
    let (source, bits) = set.message(number, receiver);
    match effect {
        Effect::Waits | Effect::FindsMessage => {
            let source = if set.any_source { Source::ANY } else { Source::new(source) };
            let key = Key { bits, ignore: 0, source };
            Op::Post(Posted { key, len: set.len, multi: None, non_contiguous: false })
        }
        Effect::FindsReceive | Effect::Unexpected => {
            Op::Arrive(Envelope { source, bits, len: set.len })
        }
    }
}

/// Returns a number that depends on both arguments: the finalizer of SplitMix64.
pub(crate) const fn mix(seed: u64, value: u64) -> u64 {
    let mut x = (seed ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_add(0x9e37_79b9);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A permutation of the numbers below `count`.
///
/// ```text
/// at(i):  (left, right) = the halves of i, with the bits that count needs
///         four times:  (left, right) = (right, left ^ hash(right))     a permutation
///         again while the result is not below count                    cycle walking
/// ```
///
/// The method is that of Black and Rogaway, *Ciphers with arbitrary finite domains* (2002). A
/// shuffled array would need memory for every message of the largest machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    count: u64,
    half: u32,
    seed: u64,
}

impl Permutation {
    pub(crate) const fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        let half = bits.div_ceil(2);
        Self { count, half: if half == 0 { 1 } else { half }, seed }
    }

    /// Returns the number at an index below `count`.
    pub(crate) const fn at(&self, place: u64) -> u64 {
        let low = (1 << self.half) - 1;
        let mut number = place;
        loop {
            let (mut left, mut right) = (number >> self.half, number & low);
            let mut round = 0;
            while round < 4 {
                let mixed = mix(self.seed.wrapping_add(round), right) & low;
                (left, right) = (right, left ^ mixed);
                round += 1;
            }
            number = left << self.half | right;
            if number < self.count {
                return number;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_comes_once() {
        for count in [1, 2, 3, 5, 16, 17, 1000, 4097_u64] {
            let order = Permutation::new(count, 7);
            let mut seen = vec![false; count as usize];
            for place in 0..count {
                assert!(!std::mem::replace(&mut seen[order.at(place) as usize], true));
            }
        }
    }

    #[test]
    fn the_order_is_that_of_the_seed() {
        let order = |seed| {
            let order = Permutation::new(1000, seed);
            (0..1000).map(move |place| order.at(place)).collect::<Vec<_>>()
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        // A search of a list in posting order passes half of it on average.
        let remaining = |order: &[u64]| {
            let mut left: Vec<u64> = (0..1000).collect();
            let depths = order.iter().map(|number| {
                let depth = left.iter().position(|one| one == number).unwrap();
                left.remove(depth);
                depth as f64 / (left.len() + 1) as f64
            });
            depths.sum::<f64>() / 1000.0
        };
        assert!((0.45..0.55).contains(&remaining(&order(3))), "{}", remaining(&order(3)));
    }
}
