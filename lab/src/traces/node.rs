// SPDX-License-Identifier: BSD-2-Clause
//! Options `--ppn P` and `--placement`: selects the operations of a recording that the NICs of a
//! cluster with P ranks on each node would see.
//!
//! A run on one host sends all messages through the provider. On a cluster the ranks of a node
//! communicate through shared memory. So their messages (*local* messages) and the receives that
//! name ranks of the same node are left out. A receive from any source stays, because the NIC has
//! to hold it until it is matched. If a local message matches, the receive is cancelled then:
//!
//! ```text
//! all operations are also matched without the filter
//! local message matches a receive that stayed   -> cancel of that receive
//! local message fills a part of a buffer        -> cancel of that buffer when it is full
//! receive matches a local message at once       -> the receive is left out, too
//! ```
//!
//! Some MPIs put the source into the match bits, as the rank in the communicator. The processes of
//! these ranks are known only for `MPI_COMM_WORLD`. A receive of another communicator stays, as if
//! it were from any source.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::num::NonZeroU32;
use std::str::FromStr;
use std::{fs, path::Path, path::PathBuf};

use clap::Args;
use matching::{Key, TagLayout};
use nic::config::DeviceConfig;
use nic::message::Envelope;
use nic::params::Params;
use nic::replay::{Change, Replay};
use nic::trace::{Address, Op, Posted, Sent};

use crate::error::Error;
use crate::options::LARGEST;
use crate::results::{RecordedPlacement, RunRecord};

/// The placement of the ranks of a recording on nodes, each with one NIC.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Placed {
    /// Number of ranks that share a NIC: P ranks on each node, with one NIC. Messages between ranks
    /// of a node, and the receives that name these ranks, are left out. A receive from any source
    /// stays until it is matched; if a rank of the same node sends that message, the receive is
    /// cancelled then. The traces of all ranks are needed, even with --partial.
    #[arg(long, value_name = "P", allow_negative_numbers = true, value_parser = at_least_one)]
    pub(crate) ppn: Option<NonZeroU32>,

    /// Assigns ranks to nodes: consecutive ranks share a node (block, the default), or ranks are
    /// dealt out to all nodes in turn (cyclic). Line N of a file names the node of rank N, counted
    /// from 0, and a line NODE:P that of the next P ranks. A file replaces --ppn.
    #[arg(long, value_name = "block|cyclic|FILE")]
    pub(crate) placement: Option<Placement>,
}

/// Parses a number of ranks.
pub(crate) fn at_least_one(text: &str) -> Result<NonZeroU32, &'static str> {
    text.parse().map_err(|_| "a number of ranks from 1 on is expected")
}

/// Value of `--placement`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Placement {
    Block,
    Cyclic,
    File(PathBuf),
}

impl FromStr for Placement {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text {
            "block" => Self::Block,
            "cyclic" => Self::Cyclic,
            path => Self::File(path.into()),
        })
    }
}

impl Placed {
    /// Returns this placement. If it is empty and the run has a record, returns the placement in
    /// the record.
    pub(crate) fn or_from_record(&self, run: Option<&RunRecord>) -> Self {
        match (self, run) {
            (Self { ppn: None, placement: None }, Some(run)) => Self {
                ppn: run.placed.ppn,
                placement: run.placed.cyclic.then_some(Placement::Cyclic),
            },
            _ => self.clone(),
        }
    }

    /// Returns this placement as the record of a run stores it. A placement by a file is not
    /// stored.
    pub(crate) fn for_record(&self) -> RecordedPlacement {
        let cyclic = self.ppn.is_some() && self.placement == Some(Placement::Cyclic);
        RecordedPlacement { ppn: self.ppn, cyclic }
    }

    /// Returns the rule for this number of ranks. Returns `None` if no placement is given; then the
    /// ranks stay on the hosts where they ran. Fails if the options contradict each other, or if
    /// the file cannot be read or places too few ranks.
    pub(super) fn node_rule(&self, ranks: u32) -> Result<Option<Rule>, Error> {
        Ok(Some(match (&self.placement, self.ppn) {
            (None, None) => return Ok(None),
            (None | Some(Placement::Block), Some(ppn)) => Rule::Block(ppn),
            (Some(Placement::Cyclic), Some(ppn)) => {
                Rule::Cyclic(NonZeroU32::new(ranks.div_ceil(ppn.get())).unwrap_or(NonZeroU32::MIN))
            }
            (Some(Placement::File(path)), None) => {
                let mut nodes = listed(path)?;
                if (nodes.len() as u32) < ranks {
                    fail!("{}: it places {} of {ranks} ranks", path.display(), nodes.len());
                }
                nodes.truncate(ranks as usize);
                Rule::Listed(nodes)
            }
            (Some(Placement::File(path)), Some(_)) => {
                fail!("--placement {} has the node of every rank: leave --ppn out", path.display());
            }
            (Some(_), None) => {
                fail!("--placement block and cyclic need --ppn P, the number of ranks on a node");
            }
        }))
    }
}

/// The rule that gives the node of each rank.
#[derive(Debug)]
pub(super) enum Rule {
    /// Consecutive ranks share a node.
    Block(NonZeroU32),
    /// Ranks are dealt out to this number of nodes in turn.
    Cyclic(NonZeroU32),
    /// The node of each rank.
    Listed(Vec<u32>),
}

impl Rule {
    fn of(&self, rank: u32) -> Option<u32> {
        match self {
            Self::Block(ppn) => Some(rank / *ppn),
            Self::Cyclic(nodes) => Some(rank % *nodes),
            Self::Listed(nodes) => nodes.get(rank as usize).copied(),
        }
    }
}

/// Reads a placement file. Returns the node of each rank. Nodes are numbered in the order in which
/// the file names them.
fn listed(path: &Path) -> Result<Vec<u32>, Error> {
    let text = fs::read_to_string(path).map_err(Error::io(path))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let (mut names, mut nodes) = (Vec::new(), Vec::new());
    for line in lines.filter(|line| !line.is_empty()) {
        let (name, ranks) = match line.split_once(':') {
            None => (line, Some(1)),
            Some((name, ranks)) => {
                (name, ranks.parse().ok().filter(|ranks| (1..=MOST).contains(ranks)))
            }
        };
        let bad = || {
            let path = path.display();
            message!("{path}: NODE or NODE:P is expected in a line, not `{line}`")
        };
        let ranks = ranks.ok_or_else(bad)?;
        let node = names.iter().position(|known| *known == name).unwrap_or(names.len());
        if node == names.len() {
            names.push(name);
        }
        nodes.extend(std::iter::repeat_n(node as u32, ranks));
    }
    Ok(nodes)
}

/// Maximum number of ranks in a line of a placement file.
const MOST: usize = 1 << 20;

/// Numbers, such as ranks, by the addresses of their endpoints.
#[derive(Debug)]
pub(crate) struct ByAddress {
    numbers: HashMap<Address, u32>,
    /// Numbers by the ports of their endpoints. They are used for an address that is not in
    /// `numbers`, because a host may have several addresses. A port that endpoints of several
    /// numbers have, on different hosts, is not listed.
    by_port: HashMap<u16, u32>,
}

impl ByAddress {
    pub(crate) fn new(numbers: HashMap<Address, u32>) -> Self {
        let mut by_port = HashMap::<_, Option<u32>>::new();
        for (at, number) in &numbers {
            let same = |known: &mut Option<u32>| *known = known.filter(|known| known == number);
            by_port.entry(at.port).and_modify(same).or_insert(Some(*number));
        }
        let by_port = by_port.into_iter().filter_map(|(port, of)| Some((port, of?))).collect();
        Self { numbers, by_port }
    }

    pub(crate) fn at(&self, at: &Address) -> Option<u32> {
        self.numbers.get(at).or_else(|| self.by_port.get(&at.port)).copied()
    }
}

/// The placement of ranks on nodes.
#[derive(Debug)]
pub(crate) struct Nodes {
    rule: Rule,
    /// Ranks. Empty for generated traces, whose peer numbers are ranks.
    ranks: ByAddress,
}

impl Nodes {
    pub(super) fn new(rule: Rule, ranks: HashMap<Address, u32>) -> Self {
        Self { rule, ranks: ByAddress::new(ranks) }
    }

    /// Returns the number of nodes that the ranks from 0 to `ranks` - 1 are placed on. A trace may
    /// have any rank, so the ranks are not counted one by one.
    pub(super) fn number(&self, ranks: u32) -> usize {
        match &self.rule {
            Rule::Block(ppn) => ranks.div_ceil(ppn.get()) as usize,
            Rule::Cyclic(nodes) => ranks.min(nodes.get()) as usize,
            Rule::Listed(nodes) => nodes.iter().collect::<HashSet<_>>().len(),
        }
    }

    /// Returns the node of a rank, or `None` for a rank that the placement does not contain.
    pub(crate) fn of(&self, rank: u32) -> Option<u32> {
        self.rule.of(rank)
    }
}

/// Filters the operations of one trace. It leaves out messages between ranks of the same node, and
/// receives of such messages.
#[derive(Debug)]
pub(crate) struct NodeFilter<'a> {
    nodes: &'a Nodes,
    node: Option<u32>,
    /// True if peer numbers are ranks.
    generated: bool,
    layout: TagLayout,
    /// For each peer number, true if the peer is on this node.
    known: HashMap<u32, bool>,
    /// Numbers of the multi-receive buffers that stayed, contain a local message, and have room
    /// left.
    partly_local_buffers: HashSet<u64>,
    /// An operation that follows the one that [`NodeFilter::keep`] returned last.
    pub(super) follow_up: Option<Op>,
    posts: LeftOut,
    arrivals: LeftOut,
    /// A replay of all operations, without the filter. It finds which message matches which
    /// receive.
    whole: Box<Replay>,
}

/// Numbers of the receives, or of the messages, that were left out. Cancels and drops refer to
/// receives and messages by number.
#[derive(Debug, Default)]
struct LeftOut {
    next: u64,
    out: Vec<u64>,
}

impl LeftOut {
    fn note(&mut self, out: bool) {
        if out {
            self.out.push(self.next);
        }
        self.next += 1;
    }

    /// Returns the number of an operation among those that stayed, or `None` if it was left out.
    fn renumber(&self, number: u64) -> Option<u64> {
        match self.out.binary_search(&number) {
            Ok(_) => None,
            Err(before) => Some(number - before as u64),
        }
    }
}

impl<'a> NodeFilter<'a> {
    pub(crate) fn new(nodes: &'a Nodes, rank: u32, generated: bool, layout: TagLayout) -> Self {
        let (known, partly_local_buffers, follow_up, posts, arrivals) = Default::default();
        // The index of a large table is fast with queues of any order.
        let entries = |name: &str| name.ends_with("q_entries").then(|| LARGEST.to_string());
        let params = Params::from_lookup(entries).expect("the defaults are valid");
        let device = DeviceConfig::from_params(&params, TagLayout::Opaque);
        let whole = Box::new(Replay::new(&device).expect("a device with large tables can be made"));
        let node = nodes.of(rank);
        Self {
            nodes,
            node,
            generated,
            layout,
            known,
            partly_local_buffers,
            follow_up,
            posts,
            arrivals,
            whole,
        }
    }

    /// Returns the operation that the NIC of the node sees instead of `op`, or `None` if it sees
    /// none. The numbers in a cancel or drop count only operations that stayed. If the NIC sees a
    /// second operation after this one, sets [`NodeFilter::follow_up`] to it.
    pub(crate) fn keep(&mut self, op: Op, peers: &BTreeMap<u32, Address>) -> Option<Op> {
        let mut met = None;
        self.whole.play_with(&op, |change| met = met.or(Some(change)));
        // True if the operation matched a message that was left out.
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
            Op::Held(Posted { key, .. }) | Op::Peek(key) | Op::Claim(key) | Op::Discard(key) => {
                (!met_local && !self.is_local_key(&key, peers)).then_some(op)
            }
            Op::Send(Sent { peer, .. }) => (!self.is_local(peer, peers)).then_some(op),
            Op::Arrive(Envelope { source, .. }) => {
                let out = self.is_local(source, peers);
                self.arrivals.note(out);
                match met {
                    Some(Change::Matched(number)) if out => {
                        self.partly_local_buffers.remove(&number);
                        self.posts.renumber(number).map(Op::Cancel)
                    }
                    Some(Change::Matched(number)) if self.partly_local_buffers.remove(&number) => {
                        // In the run the buffer was full here, and was released. Without the local
                        // messages the buffer has room left, so it is cancelled.
                        self.follow_up = self.posts.renumber(number).map(Op::Cancel);
                        Some(op)
                    }
                    Some(Change::Found(number)) if out => {
                        self.partly_local_buffers.insert(number);
                        None
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
        if let Some(source) = key.source.get() {
            return self.is_local(source, peers);
        }
        let decoded = self.layout.decode(key);
        let rank = decoded.source.filter(|_| decoded.communicator == Some(0));
        rank.is_some_and(|rank| self.nodes.of(rank) == self.node)
    }

    fn is_local(&mut self, peer: u32, peers: &BTreeMap<u32, Address>) -> bool {
        let Self { nodes, node, generated, known, .. } = self;
        *known.entry(peer).or_insert_with(|| {
            let of_address = || peers.get(&peer).and_then(|at| nodes.ranks.at(at));
            let rank = if *generated { Some(peer) } else { of_address() };
            rank.is_some_and(|rank| nodes.of(rank) == *node)
        })
    }
}

#[cfg(test)]
mod tests {
    use matching::Source;
    use nic::message::MultiRecv;

    use super::*;

    fn nodes(ppn: u32) -> Nodes {
        Nodes::new(Rule::Block(NonZeroU32::new(ppn).unwrap()), HashMap::new())
    }

    #[test]
    fn messages_within_a_node_are_left_out() {
        let nodes = nodes(4);
        let mut filter = NodeFilter::new(&nodes, 1, true, TagLayout::Opaque);
        let post = |source| {
            let key = Key { bits: 7, ignore: 0, source };
            Op::Post(Posted { key, len: 8, multi: None, non_contiguous: false })
        };
        let arrive = |source| Op::Arrive(Envelope { source, bits: 7, len: 0 });
        let mut keep = |op: Op| filter.keep(op, &BTreeMap::new());
        // A receive that a message of the same node matches, before or after it is posted.
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
        // Numbers count only operations that stayed.
        assert_eq!(keep(Op::Cancel(2)), None);
        assert_eq!(keep(Op::Cancel(4)), Some(Op::Cancel(2)));
        assert_eq!(keep(Op::Drop(2)), None);
        assert_eq!(keep(Op::Drop(3)), Some(Op::Drop(0)));
    }

    #[test]
    fn a_source_in_the_match_bits_is_known_in_the_world() {
        let nodes = nodes(2);
        let mut filter = NodeFilter::new(&nodes, 0, true, TagLayout::IntelMpi);
        // The ignore bits of a directed receive of Intel MPI, and of one from any source.
        let [directed, any] = [0x6000_0000_0000_0000, 0x6fff_ff00_0000_0000];
        let mut stays = |bits, ignore| {
            let key = Key { bits, ignore, source: Source::ANY };
            let posted = Posted { key, len: 8, multi: None, non_contiguous: false };
            filter.keep(Op::Post(posted), &BTreeMap::new()).is_some()
        };
        assert!(!stays(1 << 40 | 7, directed), "from rank 1, of the same node");
        assert!(stays(2 << 40 | 7, directed), "from rank 2");
        assert!(stays(1 << 40 | 7, any));
        assert!(stays(1 << 40 | 8 << 20 | 7, directed), "of another communicator");
    }

    #[test]
    fn a_buffer_ends_where_it_ends_with_the_messages_of_the_node() {
        let nodes = nodes(2);
        let mut filter = NodeFilter::new(&nodes, 0, true, TagLayout::Opaque);
        let key = Key { bits: 0, ignore: u64::MAX, source: Source::ANY };
        let multi = Some(MultiRecv { len: 40, used: 0, min: 8 });
        let buffer = Op::Post(Posted { key, len: 40, multi, non_contiguous: false });
        let mut keep = |op: Op| [filter.keep(op, &BTreeMap::new()), filter.follow_up.take()];
        let arrive = |source, len| Op::Arrive(Envelope { source, bits: 0, len });
        assert_eq!(keep(buffer), [Some(buffer), None]);
        assert_eq!(keep(arrive(1, 30)), [None, None]);
        let last = arrive(2, 8);
        assert_eq!(keep(last), [Some(last), Some(Op::Cancel(0))]);
    }

    #[test]
    fn ranks_are_placed_in_blocks_in_turn_or_by_a_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("nodes");
        let nodes = |placement: &str, ppn: Option<u32>| {
            let placement = (!placement.is_empty()).then(|| placement.parse().unwrap());
            let placed = Placed { ppn: ppn.and_then(NonZeroU32::new), placement };
            let rule = placed.node_rule(5).map_err(|error| error.to_string())?.unwrap();
            let of: Vec<_> = (0..5).map(|rank| rule.of(rank).unwrap()).collect();
            let number = Nodes::new(rule, HashMap::new()).number(5);
            assert_eq!(number, of.iter().collect::<HashSet<_>>().len());
            Ok::<_, String>(of)
        };
        assert_eq!(nodes("", Some(2)), nodes("block", Some(2)));
        assert_eq!(nodes("block", Some(2)).unwrap(), [0, 0, 1, 1, 2]);
        assert_eq!(nodes("cyclic", Some(2)).unwrap(), [0, 1, 2, 0, 1]);
        assert!(nodes("cyclic", None).unwrap_err().contains("--ppn"));
        let path_text = path.to_str().unwrap();
        let listed = |text: &str| {
            fs::write(&path, text).unwrap();
            nodes(path_text, None)
        };
        assert_eq!(listed("b:2 # two\n\na\nb\nc").unwrap(), [0, 0, 1, 0, 2]);
        assert!(listed("a:4").unwrap_err().contains("4 of 5 ranks"));
        assert!(listed("a:0").unwrap_err().contains("`a:0`"));
        assert!(nodes(path_text, Some(2)).unwrap_err().contains("--ppn"));
    }

    #[test]
    fn nodes_of_any_number_of_ranks_are_counted_without_memory() {
        assert_eq!(nodes(1).number(u32::MAX), u32::MAX as usize);
        assert_eq!(nodes(1 << 31).number(u32::MAX), 2);
    }

    #[test]
    fn recorded_peers_are_known_by_their_addresses() {
        let at = |port| Address { ip: 0x7f00_0001, port };
        let ranks = [(at(10), 0), (at(11), 1), (at(12), 2)].into();
        let nodes = Nodes::new(Rule::Listed(vec![0, 0, 1]), ranks);
        let peers = [(5, at(10)), (6, at(12)), (7, at(99))].into();
        let mut filter = NodeFilter::new(&nodes, 1, false, TagLayout::Opaque);
        let mut stays = |source| {
            filter.keep(Op::Arrive(Envelope { source, bits: 0, len: 0 }), &peers).is_some()
        };
        assert_eq!([5, 6, 7].map(&mut stays), [false, true, true]);
    }
}
