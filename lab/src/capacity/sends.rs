// SPDX-License-Identifier: BSD-2-Clause
//! Long messages, which a NIC sends by rendezvous: the send is complete when the message is matched.
//!
//! Cassini counts each send until it is complete, and with `FI_CXI_DEFAULT_TX_SIZE` of them a send
//! is refused (`cxip_msg_hpc.c:5378`), so that `MPI_Isend` waits. If ranks wait for receives that
//! the same ranks would post later, the program hangs.
//!
//! The i-th send of an endpoint to another one is the i-th arrival from it there, because messages
//! of a sender do not overtake each other. A NIC gets a message when it is sent, so a send waits from
//! then on until its receive is posted. The place of the arrival in a trace does not count: a trace has
//! it where the receiver found it.
//!
//! ```text
//! open(e, t): sends of endpoint e with sent <= t < posted
//! hangs(n):  each endpoint does its sends and posts in their order, and stops at a send
//!            while n of its sends have no match
//!            a send matches when it is made and its receive is posted
//!            hangs if endpoints are stopped and no other one can do anything
//! ```

use std::collections::HashMap;

/// Place, or time, of an operation that never came.
const NEVER: u64 = u64::MAX;

/// A message that is sent by rendezvous.
#[derive(Clone, Copy, Debug)]
struct Message {
    sender: usize,
    receiver: usize,
    sent: Moment,
    received: Moment,
}

impl Message {
    fn new(sender: usize, receiver: usize) -> Self {
        Self { sender, receiver, sent: Moment::NEVER, received: Moment::NEVER }
    }
}

/// The send of a message, or the post of its receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Place in the operations of its endpoint.
    place: u64,
    /// Nanoseconds since the run began.
    at: u64,
}

impl Moment {
    /// The moment of an operation that never came.
    const NEVER: Self = Self { place: NEVER, at: NEVER };
    /// A moment before all operations.
    pub(crate) const START: Self = Self { place: 0, at: 0 };
}

/// Messages from one endpoint to a context of another one.
#[derive(Clone, Debug, Default)]
struct Pair {
    sent: u64,
    arrived: u64,
    /// Messages that were sent or arrived, but not both, by their number.
    half: HashMap<u64, usize>,
}

/// The sends of all endpoints.
#[derive(Clone, Debug)]
pub(crate) struct Sends {
    /// Bytes of the longest message that is not sent by rendezvous.
    eager: u64,
    pairs: HashMap<(usize, usize, bool), Pair>,
    messages: Vec<Message>,
    /// Number of sends and posts of each endpoint up to now.
    places: Vec<u64>,
    /// Number of sends that were recorded.
    pub(crate) recorded: u64,
}

impl Sends {
    pub(crate) fn new(endpoints: usize, eager: u64) -> Self {
        let (pairs, messages) = Default::default();
        Self { eager, pairs, messages, places: vec![0; endpoints], recorded: 0 }
    }

    /// Returns the moment of the next operation of an endpoint.
    pub(crate) fn moment(&mut self, endpoint: usize, at: u64) -> Moment {
        self.places[endpoint] += 1;
        Moment { place: self.places[endpoint] - 1, at }
    }

    /// Adds a send to a context (`is_tagged`) of an endpoint, `at` nanoseconds since the run began.
    pub(crate) fn send(
        &mut self,
        sender: usize,
        receiver: usize,
        is_tagged: bool,
        len: u64,
        at: u64,
    ) {
        let sent = self.moment(sender, at);
        self.recorded += 1;
        let pair = self.pairs.entry((sender, receiver, is_tagged)).or_default();
        let number = pair.sent;
        pair.sent += 1;
        if len <= self.eager {
            return;
        }
        let message = pair.half.remove(&number).unwrap_or_else(|| {
            pair.half.insert(number, self.messages.len());
            self.messages.push(Message::new(sender, receiver));
            self.messages.len() - 1
        });
        self.messages[message].sent = sent;
    }

    /// Adds an arrival. Returns the number of the message if it was sent by rendezvous.
    pub(crate) fn arrive(
        &mut self,
        sender: usize,
        receiver: usize,
        is_tagged: bool,
        len: u64,
    ) -> Option<usize> {
        let pair = self.pairs.entry((sender, receiver, is_tagged)).or_default();
        let number = pair.arrived;
        pair.arrived += 1;
        if len <= self.eager {
            return None;
        }
        Some(pair.half.remove(&number).unwrap_or_else(|| {
            pair.half.insert(number, self.messages.len());
            self.messages.push(Message::new(sender, receiver));
            self.messages.len() - 1
        }))
    }

    /// Notes that a message matches a receive that was posted at a moment.
    pub(crate) fn matched(&mut self, message: usize, received: Moment) {
        self.messages[message].received = received;
    }

    /// Returns the largest number of sends of each endpoint that wait for a receive.
    pub(crate) fn most_open(&self) -> Vec<u64> {
        let mut changes: Vec<Vec<(u64, bool)>> = vec![Vec::new(); self.places.len()];
        let waits = |of: &&Message| of.sent != Moment::NEVER && of.sent.at < of.received.at;
        for of in self.messages.iter().filter(waits) {
            changes[of.sender].extend([(of.sent.at, true), (of.received.at, false)]);
        }
        let most = |mut changes: Vec<(u64, bool)>| {
            // Of equal times, sends that end come first.
            changes.sort_unstable();
            changes.iter().fold((0_u64, 0), |(open, most), (_, begins)| {
                let open = if *begins { open + 1 } else { open - 1 };
                (open, most.max(open))
            })
        };
        changes.into_iter().map(|changes| most(changes).1).collect()
    }

    /// Returns true if each message that arrived was sent, and the other way round.
    pub(crate) fn are_complete(&self) -> bool {
        self.pairs.values().all(|pair| pair.sent == pair.arrived)
    }

    /// Returns the largest number of sends without a match with which the program hangs, and the
    /// endpoints that wait then. Returns `None` if it never hangs.
    pub(crate) fn hangs_up_to(&self) -> Option<(u64, Vec<usize>)> {
        let known = |of: &&Message| of.sent != Moment::NEVER && of.received != Moment::NEVER;
        let messages: Vec<_> = self.messages.iter().filter(known).copied().collect();
        let mut order = Order::of(&messages, self.places.len());
        // The least number is that of a setting.
        let (mut hangs, mut runs) = (0, messages.len() as u64);
        let mut waiting = order.waiting_with(16);
        if waiting.is_empty() {
            return None;
        }
        hangs = hangs.max(16);
        while hangs + 1 < runs {
            let middle = hangs.midpoint(runs);
            let found = order.waiting_with(middle);
            if found.is_empty() {
                runs = middle;
            } else {
                (hangs, waiting) = (middle, found);
            }
        }
        Some((hangs, waiting))
    }
}

/// The messages of each endpoint in the orders of its sends and of its receives.
struct Order<'a> {
    messages: &'a [Message],
    sends: Vec<Vec<usize>>,
    receives: Vec<Vec<usize>>,
}

impl<'a> Order<'a> {
    fn of(messages: &'a [Message], endpoints: usize) -> Self {
        let mut sends = vec![Vec::new(); endpoints];
        let mut receives = vec![Vec::new(); endpoints];
        for (number, of) in messages.iter().enumerate() {
            sends[of.sender].push(number);
            receives[of.receiver].push(number);
        }
        sends.iter_mut().for_each(|of| of.sort_by_key(|number| messages[*number].sent.place));
        receives
            .iter_mut()
            .for_each(|of| of.sort_by_key(|number| messages[*number].received.place));
        Self { messages, sends, receives }
    }

    /// Returns the endpoints that wait for ever if each may have `most` sends without a match.
    fn waiting_with(&mut self, most: u64) -> Vec<usize> {
        let endpoints = self.sends.len();
        // Sends that were made, receives that were posted, and sends without a match.
        let (mut sent, mut posted) = (vec![0; endpoints], vec![0; endpoints]);
        let mut open = vec![0; endpoints];
        let mut is_half = vec![false; self.messages.len()];
        let mut ready: Vec<usize> = (0..endpoints).collect();
        while let Some(endpoint) = ready.pop() {
            loop {
                let next = self.sends[endpoint].get(sent[endpoint]);
                let until = next.map_or(NEVER, |next| self.messages[*next].sent.place);
                while let Some(&message) = self.receives[endpoint].get(posted[endpoint])
                    && self.messages[message].received.place < until
                {
                    posted[endpoint] += 1;
                    if std::mem::replace(&mut is_half[message], true) {
                        let sender = self.messages[message].sender;
                        if open[sender] == most {
                            ready.push(sender);
                        }
                        open[sender] -= 1;
                    }
                }
                let Some(&message) = next.filter(|_| open[endpoint] < most) else { break };
                sent[endpoint] += 1;
                open[endpoint] += u64::from(!std::mem::replace(&mut is_half[message], true));
            }
        }
        (0..endpoints).filter(|&of| sent[of] < self.sends[of].len()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each of two endpoints sends `sends` messages to the other, then posts its receives.
    fn exchange(sends: u64) -> Sends {
        let mut all = Sends::new(2, 100);
        for at in 0..sends {
            (0..2).for_each(|from| all.send(from, 1 - from, true, 101, at));
        }
        for at in sends..2 * sends {
            for to in 0..2 {
                let message = all.arrive(1 - to, to, true, 101).unwrap();
                let received = all.moment(to, at);
                all.matched(message, received);
            }
        }
        all
    }

    #[test]
    fn an_exchange_hangs_below_its_number_of_sends() {
        let all = exchange(2_000);
        assert_eq!(all.most_open(), [2_000; 2]);
        assert_eq!(all.hangs_up_to(), Some((1_999, vec![0, 1])));
        assert!(all.are_complete());
        assert_eq!(exchange(16).hangs_up_to(), None);
    }

    #[test]
    fn receives_that_are_posted_first_never_hang() {
        let mut all = Sends::new(2, 100);
        let posted: Vec<_> = (0..500).map(|at| all.moment(1, at)).collect();
        (500..1_000).for_each(|at| all.send(0, 1, true, 101, at));
        // The receiver finds the messages later.
        for posted in posted {
            let message = all.arrive(0, 1, true, 101).unwrap();
            all.matched(message, posted);
        }
        assert_eq!((all.most_open(), all.hangs_up_to()), (vec![0, 0], None));
    }

    #[test]
    fn one_way_streams_wait_and_do_not_hang() {
        let mut all = Sends::new(2, 100);
        (0..500).for_each(|at| all.send(0, 1, true, 101, at));
        for at in 400..900 {
            let message = all.arrive(0, 1, true, 101).unwrap();
            let received = all.moment(1, at);
            all.matched(message, received);
        }
        // Receives are posted while messages are sent.
        assert_eq!((all.most_open(), all.hangs_up_to()), (vec![400, 0], None));
    }

    #[test]
    fn short_messages_do_not_count_and_order_is_by_context() {
        let mut all = Sends::new(2, 100);
        all.send(0, 1, true, 100, 1);
        all.send(0, 1, false, 101, 1);
        assert_eq!(all.arrive(0, 1, true, 100), None);
        assert!(!all.are_complete());
        assert_eq!(all.most_open(), [1, 0]);
        let message = all.arrive(0, 1, false, 101).unwrap();
        all.matched(message, Moment::START);
        assert_eq!((all.most_open(), all.are_complete()), (vec![0, 0], true));
        // The send is recorded after the match.
        let message = all.arrive(1, 0, true, 200).unwrap();
        all.matched(message, Moment { place: 0, at: 7 });
        all.send(1, 0, true, 200, 7);
        assert_eq!(all.most_open(), [0, 0]);
    }
}
