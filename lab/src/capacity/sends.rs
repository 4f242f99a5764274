// SPDX-License-Identifier: BSD-2-Clause
//! Long messages, which a NIC sends by rendezvous: the send is complete when the message is matched.
//!
//! Cassini counts each send until it is complete, and with `FI_CXI_DEFAULT_TX_SIZE` of them a send
//! is refused (`cxip_msg_hpc.c:5378`), so that `MPI_Isend` waits. If ranks wait for receives that
//! the same ranks would post later, the program hangs.
//!
//! The i-th send of an endpoint to another one is the i-th arrival from it there, because messages
//! of a sender do not overtake each other.
//!
//! ```text
//! hangs(n):  each endpoint does its sends and posts in their order, and stops at a send
//!            while n of its sends have no match
//!            a send matches when it is made and its receive is posted
//!            hangs if endpoints are stopped and no other one can do anything
//! ```

use std::collections::HashMap;

/// Place of an operation that never came.
const NEVER: u64 = u64::MAX;

/// A message that is sent by rendezvous.
#[derive(Clone, Copy, Debug)]
struct Message {
    sender: usize,
    receiver: usize,
    /// Places of the send and of the receive in the operations of their endpoints.
    sent: u64,
    received: u64,
    /// It was matched.
    is_matched: bool,
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
    /// Sends of each endpoint without a match now, and at most.
    open: Vec<u64>,
    pub(crate) most_open: Vec<u64>,
    /// Number of sends that were recorded.
    pub(crate) recorded: u64,
}

impl Sends {
    pub(crate) fn new(endpoints: usize, eager: u64) -> Self {
        let (pairs, messages) = Default::default();
        let [places, open, most_open] = [0, 1, 2].map(|_| vec![0; endpoints]);
        Self { eager, pairs, messages, places, open, most_open, recorded: 0 }
    }

    /// Returns the place of the next operation of an endpoint.
    pub(crate) fn place(&mut self, endpoint: usize) -> u64 {
        self.places[endpoint] += 1;
        self.places[endpoint] - 1
    }

    /// Adds a send to a context (`is_tagged`) of an endpoint.
    pub(crate) fn send(&mut self, sender: usize, receiver: usize, is_tagged: bool, len: u64) {
        let sent = self.place(sender);
        self.recorded += 1;
        let pair = self.pairs.entry((sender, receiver, is_tagged)).or_default();
        let number = pair.sent;
        pair.sent += 1;
        if len <= self.eager {
            return;
        }
        let message = pair.half.remove(&number).unwrap_or_else(|| {
            pair.half.insert(number, self.messages.len());
            let is_matched = false;
            self.messages.push(Message { sender, receiver, sent, received: NEVER, is_matched });
            self.messages.len() - 1
        });
        self.messages[message].sent = sent;
        if !self.messages[message].is_matched {
            self.open[sender] += 1;
            self.most_open[sender] = self.most_open[sender].max(self.open[sender]);
        }
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
            let (sent, received, is_matched) = (NEVER, NEVER, false);
            self.messages.push(Message { sender, receiver, sent, received, is_matched });
            self.messages.len() - 1
        }))
    }

    /// Notes that a message matches a receive, which has this place.
    pub(crate) fn matched(&mut self, message: usize, received: u64) {
        let of = &mut self.messages[message];
        (of.received, of.is_matched) = (received, true);
        // The clocks of two hosts may put the send behind the match.
        if of.sent != NEVER {
            self.open[of.sender] -= 1;
        }
    }

    /// Returns true if each message that arrived was sent, and the other way round.
    pub(crate) fn are_complete(&self) -> bool {
        self.pairs.values().all(|pair| pair.sent == pair.arrived)
    }

    /// Returns the largest number of sends without a match with which the program hangs, and the
    /// endpoints that wait then. Returns `None` if it never hangs.
    pub(crate) fn hangs_up_to(&self) -> Option<(u64, Vec<usize>)> {
        let known = |of: &&Message| of.sent != NEVER && of.received != NEVER;
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
        sends.iter_mut().for_each(|of| of.sort_by_key(|number| messages[*number].sent));
        receives.iter_mut().for_each(|of| of.sort_by_key(|number| messages[*number].received));
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
                let until = next.map_or(NEVER, |next| self.messages[*next].sent);
                while let Some(&message) = self.receives[endpoint].get(posted[endpoint])
                    && self.messages[message].received < until
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
        for _ in 0..sends {
            (0..2).for_each(|at| all.send(at, 1 - at, true, 101));
        }
        for _ in 0..sends {
            for at in 0..2 {
                let message = all.arrive(1 - at, at, true, 101).unwrap();
                let place = all.place(at);
                all.matched(message, place);
            }
        }
        all
    }

    #[test]
    fn an_exchange_hangs_below_its_number_of_sends() {
        let all = exchange(2_000);
        assert_eq!((&all.most_open[..], all.open.as_slice()), (&[2_000, 2_000][..], &[0, 0][..]));
        assert_eq!(all.hangs_up_to(), Some((1_999, vec![0, 1])));
        assert!(all.are_complete());
        assert_eq!(exchange(16).hangs_up_to(), None);
    }

    #[test]
    fn receives_that_are_posted_first_never_hang() {
        let mut all = Sends::new(2, 100);
        let places: Vec<u64> = (0..500).map(|_| all.place(1)).collect();
        for place in places {
            all.send(0, 1, true, 101);
            let message = all.arrive(0, 1, true, 101).unwrap();
            all.matched(message, place);
        }
        assert_eq!((all.most_open[0], all.hangs_up_to()), (1, None));
    }

    #[test]
    fn one_way_streams_wait_and_do_not_hang() {
        let mut all = Sends::new(2, 100);
        (0..500).for_each(|_| all.send(0, 1, true, 101));
        for _ in 0..500 {
            let message = all.arrive(0, 1, true, 101).unwrap();
            let place = all.place(1);
            all.matched(message, place);
        }
        assert_eq!((all.most_open[0], all.hangs_up_to()), (500, None));
    }

    #[test]
    fn short_messages_do_not_count_and_order_is_by_context() {
        let mut all = Sends::new(2, 100);
        all.send(0, 1, true, 100);
        all.send(0, 1, false, 101);
        assert_eq!(all.arrive(0, 1, true, 100), None);
        assert!(!all.are_complete());
        let message = all.arrive(0, 1, false, 101).unwrap();
        all.matched(message, 0);
        assert_eq!((all.most_open[0], all.open[0], all.are_complete()), (1, 0, true));
        // The send is recorded after the match.
        let message = all.arrive(1, 0, true, 200).unwrap();
        all.matched(message, 0);
        all.send(1, 0, true, 200);
        assert_eq!((all.most_open[1], all.open[1]), (0, 0));
    }
}
