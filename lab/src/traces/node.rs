// SPDX-License-Identifier: BSD-2-Clause
//! `--ppn P`: the messages of a recording that a NIC would see if ranks 0 to P - 1 were on one
//! node, the next P on another, and so on.
//!
//! A run on one host sends everything through the provider. On a cluster the ranks of a node talk
//! through shared memory, so their messages and the receives that name them are left out. A receive
//! from any source stays: the NIC has to hold it, whoever it is for, until it is answered. If a
//! rank of the same node does that, the receive is cancelled there:
//!
//! ```text
//! beside the filter all operations are matched
//! local message meets a receive that stayed   -> cancel of that receive
//! receive meets a local message at once       -> it is left out, too
//! ```

use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroU32;

use matching::{Key, TagLayout};
use nic::config::DeviceConfig;
use nic::message::Envelope;
use nic::params::Params;
use nic::replay::{Change, Replay};
use nic::trace::{Address, Op, Posted, Sent};

/// Which ranks share a node.
#[derive(Debug)]
pub(crate) struct Nodes {
    ppn: NonZeroU32,
    /// Ranks by the addresses of their endpoints; generated traces have none, and their peer
    /// numbers are ranks.
    ranks: HashMap<Address, u32>,
    /// All addresses of a host with one port are one endpoint.
    by_port: HashMap<u16, u32>,
}

impl Nodes {
    pub(crate) fn new(ppn: NonZeroU32, ranks: HashMap<Address, u32>) -> Self {
        let by_port = ranks.iter().map(|(at, rank)| (at.port, *rank)).collect();
        Self { ppn, ranks, by_port }
    }

    fn rank_at(&self, at: &Address) -> Option<u32> {
        self.ranks.get(at).or_else(|| self.by_port.get(&at.port)).copied()
    }

    pub(crate) fn of(&self, rank: u32) -> u32 {
        rank / self.ppn
    }
}

/// Leaves out what ranks of one node send each other, as the operations of one of them are read.
#[derive(Debug)]
pub(crate) struct Remote<'a> {
    nodes: &'a Nodes,
    node: u32,
    /// Peer numbers are ranks.
    generated: bool,
    /// Whether a peer number is of this node.
    known: HashMap<u32, bool>,
    posts: Left,
    arrivals: Left,
    /// All operations, matched.
    whole: Box<Replay>,
}

/// Operations that were left out: cancels and drops name others by how many came before.
#[derive(Debug, Default)]
struct Left {
    next: u64,
    out: Vec<u64>,
}

impl Left {
    fn note(&mut self, out: bool) {
        if out {
            self.out.push(self.next);
        }
        self.next += 1;
    }

    /// The number among those that stayed; nothing for one that did not.
    fn renumber(&self, number: u64) -> Option<u64> {
        match self.out.binary_search(&number) {
            Ok(_) => None,
            Err(before) => Some(number - before as u64),
        }
    }
}

impl<'a> Remote<'a> {
    pub(crate) fn new(nodes: &'a Nodes, rank: u32, generated: bool) -> Self {
        let (known, posts, arrivals) = Default::default();
        let entries = |name: &str| name.ends_with("q_entries").then(|| "0".to_owned());
        let params = Params::from_lookup(entries).expect("the defaults are allowed");
        let device = DeviceConfig::from_params(&params, TagLayout::Opaque);
        let whole = Box::new(Replay::new(&device).expect("there is no table to make"));
        Self { nodes, node: nodes.of(rank), generated, known, posts, arrivals, whole }
    }

    /// The operation as it is without those left out; nothing if it is one of them.
    pub(crate) fn keep(&mut self, op: Op, peers: &BTreeMap<u32, Address>) -> Option<Op> {
        let mut met = None;
        self.whole.play_and_tell(&op, |change| met = met.or(Some(change)));
        // Whether a message that was met is one of those left out.
        let met_local = match met {
            Some(Change::Taken(number)) => self.arrivals.renumber(number).is_none(),
            _ => false,
        };
        match op {
            Op::Post(Posted { key, .. }) | Op::PostAnyway(Posted { key, .. }) => {
                let out = met_local || self.is_local_key(&key, peers);
                self.posts.note(out);
                (!out).then_some(op)
            }
            Op::Held(Posted { key, .. })
            | Op::Peek(key)
            | Op::Take(key)
            | Op::Claim(key)
            | Op::Discard(key) => (!met_local && !self.is_local_key(&key, peers)).then_some(op),
            Op::Send(Sent { peer, .. }) => (!self.is_local(peer, peers)).then_some(op),
            Op::Arrive(Envelope { source, .. }) => {
                let out = self.is_local(source, peers);
                self.arrivals.note(out);
                match met {
                    Some(Change::Matched(number)) if out => {
                        self.posts.renumber(number).map(Op::Cancel)
                    }
                    _ => (!out).then_some(op),
                }
            }
            Op::Cancel(number) => self.posts.renumber(number).map(Op::Cancel),
            Op::Drop(number) => self.arrivals.renumber(number).map(Op::Drop),
            Op::Processes(_) | Op::Stop(_) => Some(op),
        }
    }

    fn is_local_key(&mut self, key: &Key, peers: &BTreeMap<u32, Address>) -> bool {
        key.source.get().is_some_and(|source| self.is_local(source, peers))
    }

    fn is_local(&mut self, peer: u32, peers: &BTreeMap<u32, Address>) -> bool {
        let Self { nodes, node, generated, known, .. } = self;
        *known.entry(peer).or_insert_with(|| {
            let of_address = || peers.get(&peer).and_then(|at| nodes.rank_at(at));
            let rank = if *generated { Some(peer) } else { of_address() };
            rank.is_some_and(|rank| nodes.of(rank) == *node)
        })
    }
}

#[cfg(test)]
mod tests {
    use matching::Source;

    use super::*;

    fn nodes(ppn: u32) -> Nodes {
        Nodes::new(NonZeroU32::new(ppn).unwrap(), HashMap::new())
    }

    #[test]
    fn what_ranks_of_a_node_send_each_other_is_left_out() {
        let nodes = nodes(4);
        let mut remote = Remote::new(&nodes, 1, true);
        let post = |source| {
            let key = Key { bits: 7, ignore: 0, source };
            Op::Post(Posted { key, len: 8, multi: None, non_contiguous: false })
        };
        let arrive = |source| Op::Arrive(Envelope { source, bits: 7, len: 0 });
        let mut keep = |op: Op| remote.keep(op, &BTreeMap::new());
        // One that a message of the node answers, before or after it is posted.
        let [waits, meets] = [1, 2].map(|bits| {
            let key = Key { bits, ignore: 0, source: Source::ANY };
            Op::Post(Posted { key, len: 8, multi: None, non_contiguous: false })
        });
        let local = |bits| Op::Arrive(Envelope { source: 2, bits, len: 0 });
        assert!(keep(waits).is_some());
        assert_eq!(keep(local(1)), Some(Op::Cancel(0)));
        assert_eq!(keep(local(2)), None);
        assert_eq!(keep(meets), None);
        let [near, far, any] = [Source::new(3), Source::new(4), Source::ANY].map(post);
        assert_eq!(keep(near), None);
        assert!(keep(far).is_some() && keep(any).is_some());
        assert_eq!(keep(arrive(0)), Some(Op::Cancel(2)));
        assert!(keep(arrive(4)).is_some());
        // Those that stayed are counted anew.
        assert_eq!(keep(Op::Cancel(2)), None);
        assert_eq!(keep(Op::Cancel(4)), Some(Op::Cancel(2)));
        assert_eq!(keep(Op::Drop(2)), None);
        assert_eq!(keep(Op::Drop(3)), Some(Op::Drop(0)));
    }

    #[test]
    fn recorded_peers_are_known_by_their_addresses() {
        let at = |port| Address { ip: 0x7f00_0001, port };
        let ranks = [(at(10), 0), (at(11), 1), (at(12), 2)].into();
        let nodes = Nodes::new(NonZeroU32::new(2).unwrap(), ranks);
        let peers = [(5, at(10)), (6, at(12)), (7, at(99))].into();
        let mut remote = Remote::new(&nodes, 1, false);
        let mut stays = |source| {
            remote.keep(Op::Arrive(Envelope { source, bits: 0, len: 0 }), &peers).is_some()
        };
        assert_eq!([5, 6, 7].map(&mut stays), [false, true, true]);
    }
}
