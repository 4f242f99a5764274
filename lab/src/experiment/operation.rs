// SPDX-License-Identifier: BSD-2-Clause
//! Replays one operation of a trace. Returns its search, and its line in the file `operations` of
//! `tcam show --format csv`.

use matching::{Key, SearchDepth, TagLayout};
use nic::replay::Change;
use nic::trace::{Op, Posted, Timed};

use super::rank::QueueKind;
use crate::error::Error;
use crate::results::columns::{BOOL, TEXT, WHOLE};
use crate::results::{Cell, ColumnType};
use crate::traces::Player;

/// An operation of a trace.
#[derive(Debug, Default)]
pub(super) struct OperationRow<'a> {
    pub(super) rank: u32,
    pub(super) context: &'a str,
    /// Nanoseconds since the run began.
    pub(super) ns: u64,
    operation: &'static str,
    /// Peer number of the source; `None` for any source, and for operations without a source.
    pub(super) source: Option<u32>,
    match_bits: Option<u64>,
    ignore_bits: Option<u64>,
    kind: Option<&'static str>,
    /// Length of a message, or of the buffer of a receive.
    bytes: Option<u64>,
    /// True if the operation found an element; `None` for an operation that looks for no element.
    found: Option<bool>,
    /// Entries that the search compared; `None` without a counted search.
    pub(super) depth: Option<u64>,
    /// Elements that the search traversed in the host engine's queues.
    pub(super) traversed: Option<u64>,
    /// For a post or an arrival, the number of earlier posts or arrivals in its context. For other
    /// operations, the number of the receive or message that they name or found.
    number: Option<u64>,
    /// Number of the message that a receive matched, or of the receive that a message matched.
    partner: Option<u64>,
    /// True if the buffer of a receive is contiguous.
    contiguous: Option<bool>,
    /// Bytes already used of a buffer that takes several messages.
    multi_used: Option<u64>,
    /// Smallest number of free bytes with which such a buffer stays posted.
    multi_least: Option<u64>,
    /// Peer number of the destination of a message.
    pub(super) destination: Option<u32>,
    /// Rank of the source, if its trace is present.
    pub(super) source_rank: Option<u32>,
    /// Rank of the destination, if its trace is present.
    pub(super) destination_rank: Option<u32>,
    /// Number of the thread in its process; `None` for a generated operation.
    pub(super) thread: Option<u32>,
    /// Processor time that the thread had used, in nanoseconds, if it was recorded.
    pub(super) cpu_ns: Option<u64>,
    /// True for a thread of the provider; `None` for a generated operation.
    pub(super) device_thread: Option<bool>,
}

/// A column of `operations`: its name, its type, and a function that returns the value of an
/// operation.
type Column = (&'static str, ColumnType, for<'a> fn(&OperationRow<'a>) -> Cell<'a>);

/// The columns of `operations`.
pub(super) const COLUMNS: [Column; 23] = [
    ("rank", WHOLE, |of| of.rank.into()),
    ("context", TEXT, |of| of.context.into()),
    ("ns", WHOLE, |of| of.ns.into()),
    ("operation", TEXT, |of| of.operation.into()),
    ("source", WHOLE.optional(), |of| of.source.into()),
    ("match_bits", TEXT.optional(), |of| of.match_bits.map(Cell::Bits).into()),
    ("ignore_bits", TEXT.optional(), |of| of.ignore_bits.map(Cell::Bits).into()),
    ("kind", TEXT.optional(), |of| of.kind.into()),
    ("bytes", WHOLE.optional(), |of| of.bytes.into()),
    ("found", BOOL.optional(), |of| of.found.into()),
    ("depth", WHOLE.optional(), |of| of.depth.into()),
    ("traversed", WHOLE.optional(), |of| of.traversed.into()),
    ("number", WHOLE.optional(), |of| of.number.into()),
    ("partner", WHOLE.optional(), |of| of.partner.into()),
    ("contiguous", BOOL.optional(), |of| of.contiguous.into()),
    ("multi_used", WHOLE.optional(), |of| of.multi_used.into()),
    ("multi_least", WHOLE.optional(), |of| of.multi_least.into()),
    ("destination", WHOLE.optional(), |of| of.destination.into()),
    ("source_rank", WHOLE.optional(), |of| of.source_rank.into()),
    ("destination_rank", WHOLE.optional(), |of| of.destination_rank.into()),
    ("thread", WHOLE.optional(), |of| of.thread.into()),
    ("cpu_ns", WHOLE.optional(), |of| of.cpu_ns.into()),
    ("device_thread", BOOL.optional(), |of| of.device_thread.into()),
];

/// The search of one operation: its queue, its result, and the entries that it compared and
/// traversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Search {
    pub(super) queue: QueueKind,
    pub(super) found: bool,
    pub(super) depth: u64,
    pub(super) traversed: u64,
}

/// Counters of the searches of a queue at one moment: entries compared and traversed.
struct Mark {
    hit_entries: u64,
    miss_entries: u64,
    traversed: u64,
}

impl Mark {
    fn at(player: &Player<'_>, queue: QueueKind) -> Self {
        let (at, context) = (queue as usize, player.replay().context());
        let SearchDepth { hit_entries, miss_entries, .. } = *context.search_depths()[at];
        Self { hit_entries, miss_entries, traversed: context.traversals()[at].entries }
    }

    /// Returns the search between two marks. `hit_entries` grows exactly if the search found an
    /// element, because a search compares at least the element that it finds.
    fn search(&self, later: &Self, queue: QueueKind) -> Search {
        let traversed = later.traversed - self.traversed;
        let (found, depth) = match later.hit_entries - self.hit_entries {
            0 => (false, later.miss_entries - self.miss_entries),
            depth => (true, depth),
        };
        Search { queue, found, depth, traversed }
    }
}

/// Replays an operation. Returns the number of the element that the operation found, and its search
/// if the device counts the search. A claim or discard that finds no message is a probe, which is
/// not counted.
pub(super) fn step(
    player: &mut Player<'_>,
    timed: &Timed,
) -> Result<(Option<u64>, Option<Search>), Error> {
    let takes = matches!(timed.1, Op::Claim(_) | Op::Discard(_));
    let queue = match timed.1 {
        Op::Post(_) | Op::PostAnyway(_) => Some(QueueKind::Umq),
        Op::Arrive(_) => Some(QueueKind::Prq),
        _ => takes.then_some(QueueKind::Umq),
    };
    let before = queue.map(|queue| (queue, Mark::at(player, queue)));
    let mut element = None;
    player.step_with_changes(timed, |change| element = element.or(met(change)))?;
    let counted = before.filter(|_| element.is_some() || !takes);
    let search = counted.map(|(queue, mark)| mark.search(&Mark::at(player, queue), queue));
    Ok((element, search))
}

/// Numbers of receives that were posted, and of messages that arrived, up to an operation.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    receives: u64,
    messages: u64,
}

impl Numbers {
    /// Sets `number`, `partner` and `found` of a row from its operation and the element that it
    /// met. An operation that looks for no element leaves the row unchanged.
    pub(super) fn tell(&mut self, op: &Op, met: Option<u64>, row: &mut OperationRow<'_>) {
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

/// Returns the number of the element that an operation found, or `None` if the change only adds an
/// element.
fn met(change: Change) -> Option<u64> {
    match change {
        Change::Matched(number) | Change::Taken(number) | Change::Found(number) => Some(number),
        Change::Posted(..) | Change::Kept(..) => None,
    }
}

impl OperationRow<'_> {
    pub(super) fn of(op: &Op, layout: TagLayout) -> Self {
        let mut row = OperationRow::default();
        let mut keyed = |operation, key: &Key| {
            row.operation = operation;
            row.source = key.source.get();
            row.match_bits = Some(key.bits);
            row.ignore_bits = Some(key.ignore);
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
