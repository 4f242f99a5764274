// SPDX-License-Identifier: BSD-2-Clause
//! One operation of a trace as a line of `operations`.

use matching::{Key, SearchDepth, TagLayout};
use nic::replay::Change;
use nic::trace::{Op, Posted};

use super::lines::{Hex, row};
use super::rank::Queue;
use crate::traces::player::Player;

row! {
    /// A line of `operations`.
    pub(super) struct Row<'a> {
        rank: u32,
        context: &'a str,
        /// Since the run began.
        ns: u64,
        operation: &'static str,
        /// Peer number; nothing for any, and where there is none.
        source: Option<u32>,
        match_bits: Option<Hex>,
        ignore_bits: Option<Hex>,
        kind: Option<&'static str>,
        /// Of a message, or of the buffer of a receive.
        bytes: Option<u64>,
        /// Whether the operation found an element, and the entries its search compared; those of a
        /// search that is not counted are not told.
        found: Option<bool>,
        depth: Option<u64>,
        /// Elements that it traversed in the host engine's queues.
        traversed: Option<u64>,
        /// Of a receive how many its context posted before it, of a message how many arrived there
        /// before it. An operation that is neither names the one it is about.
        number: Option<u64>,
        /// What it met: a receive its message, a message its receive.
        partner: Option<u64>,
        /// Whether the buffer of a receive is in one part.
        contiguous: Option<bool>,
        /// Of a buffer that takes several messages: the bytes used, and the least room that keeps it
        /// posted.
        multi_used: Option<u64>,
        multi_least: Option<u64>,
        /// Peer number of who is sent a message.
        destination: Option<u32>,
        /// Ranks of both, as far as their traces are there.
        source_rank: Option<u32>,
        destination_rank: Option<u32>,
        /// Number of the thread in its process, and the processor time that it had taken.
        thread: Option<u32>,
        cpu_ns: Option<u64>,
        /// Whether the thread is the provider's own.
        device_thread: Option<bool>,
    }
}

/// What the searches of one operation added: found or not, and how deep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Search {
    pub(super) queue: Queue,
    pub(super) found: bool,
    pub(super) depth: u64,
    pub(super) traversed: u64,
}

/// Entries compared and traversed so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mark {
    hit_entries: u64,
    miss_entries: u64,
    traversed: u64,
}

impl Mark {
    pub(super) fn at(player: &Player<'_>, queue: Queue) -> Self {
        let (at, context) = (queue as usize, player.replay().context());
        let SearchDepth { hit_entries, miss_entries, .. } = *context.search_depths()[at];
        Self { hit_entries, miss_entries, traversed: context.traversals()[at].entries }
    }

    /// The search between two marks. One that finds something compares at least it.
    pub(super) fn search(self, later: Self, queue: Queue) -> Search {
        let traversed = later.traversed - self.traversed;
        let (found, depth) = match later.hit_entries - self.hit_entries {
            0 => (false, later.miss_entries - self.miss_entries),
            depth => (true, depth),
        };
        Search { queue, found, depth, traversed }
    }
}

/// The queue that an operation searches.
pub(super) fn searched(op: &Op) -> Option<Queue> {
    match op {
        Op::Post(_) | Op::PostAnyway(_) => Some(Queue::Umq),
        Op::Arrive(_) => Some(Queue::Prq),
        _ if takes(op) => Some(Queue::Umq),
        _ => None,
    }
}

/// Whether an operation takes an unexpected message that no receive matched.
fn takes(op: &Op) -> bool {
    matches!(op, Op::Claim(_) | Op::Discard(_))
}

/// Whether the search of an operation is counted: one for a message to take is a probe where
/// there is none.
pub(super) fn is_counted(op: &Op, found: bool) -> bool {
    found || !takes(op)
}

/// How many receives were posted up to now, and how many messages arrived.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    receives: u64,
    messages: u64,
}

impl Numbers {
    /// Tells which receives and messages an operation is about, given the element that it found.
    pub(super) fn tell(&mut self, op: &Op, met: Option<u64>, row: &mut Row<'_>) {
        let next = |count: &mut u64| Some(std::mem::replace(count, *count + 1));
        (row.number, row.partner) = match op {
            Op::Post(_) | Op::PostAnyway(_) => (next(&mut self.receives), met),
            Op::Arrive(_) => (next(&mut self.messages), met),
            Op::Cancel(number) | Op::Drop(number) => (Some(*number), None),
            Op::Peek(_) | Op::Claim(_) | Op::Discard(_) => (met, None),
            Op::Held(_) | Op::Send(_) | Op::Processes(_) | Op::Stop(_) => return,
        };
        row.found = Some(met.is_some());
    }
}

/// The element that an operation met, if the change is that.
pub(super) fn met(change: Change) -> Option<u64> {
    match change {
        Change::Matched(number) | Change::Taken(number) | Change::Met(number) => Some(number),
        Change::Posted(..) | Change::Kept(..) => None,
    }
}

impl Row<'_> {
    pub(super) fn of(op: &Op, layout: TagLayout) -> Self {
        let mut row = Row {
            rank: 0,
            context: "",
            ns: 0,
            operation: "",
            source: None,
            match_bits: None,
            ignore_bits: None,
            kind: None,
            bytes: None,
            found: None,
            depth: None,
            traversed: None,
            number: None,
            partner: None,
            contiguous: None,
            multi_used: None,
            multi_least: None,
            destination: None,
            source_rank: None,
            destination_rank: None,
            thread: None,
            cpu_ns: None,
            device_thread: None,
        };
        let mut keyed = |operation, key: &Key| {
            row.operation = operation;
            row.source = key.source.get();
            row.match_bits = Some(Hex(key.bits));
            row.ignore_bits = Some(Hex(key.ignore));
            let collective = layout.is_collective(key);
            row.kind = Some(if collective { "collective" } else { "point-to-point" });
        };
        match op {
            Op::Post(Posted { key, .. }) => keyed("post", key),
            Op::PostAnyway(Posted { key, .. }) => keyed("post anyway", key),
            Op::Held(Posted { key, .. }) => keyed("held", key),
            Op::Peek(key) => keyed("peek", key),
            Op::Claim(key) => keyed("claim", key),
            Op::Discard(key) => keyed("discard", key),
            Op::Arrive(envelope) => {
                let source = matching::Source::new(envelope.source);
                keyed("arrive", &Key { bits: envelope.bits, ignore: 0, source });
                row.ignore_bits = None;
                row.bytes = Some(envelope.len);
            }
            Op::Send(sent) => {
                let receiver = matching::Source::new(sent.peer);
                keyed("send", &Key { bits: sent.bits, ignore: 0, source: receiver });
                (row.source, row.ignore_bits) = (None, None);
                (row.destination, row.bytes) = (Some(sent.peer), Some(sent.len));
            }
            Op::Cancel(_) => row.operation = "cancel",
            Op::Drop(_) => row.operation = "drop",
            Op::Processes(_) => row.operation = "processes",
            Op::Stop(_) => row.operation = "stop",
        }
        if let Op::Post(posted) | Op::PostAnyway(posted) | Op::Held(posted) = op {
            row.contiguous = Some(!posted.non_contiguous);
            row.bytes = Some(posted.len);
            row.multi_used = posted.multi.map(|multi| multi.used);
            row.multi_least = posted.multi.map(|multi| multi.min);
        }
        row
    }
}
