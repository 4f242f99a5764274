// SPDX-License-Identifier: BSD-2-Clause
//! Computes the largest length that the UMQ would have if every message arrived as late as
//! possible.
//!
//! The program decides the order of its receives and probes, and a message cannot overtake an
//! earlier message of its source. Within these bounds the scheduler or the network decides when a
//! message arrives. So this computation delays each message until the recorded run needed this
//! message, or a later message of the same source. The run needs a message when a receive takes it
//! or a probe finds it.
//!
//! ```text
//! needed(m)   the first operation that found m or took it from the queue
//! comes(m)    the smallest needed(n) of m and all later messages of the same source
//! m is unexpected from comes(m) until an operation removes it
//! ```

use std::collections::{BTreeMap, HashMap};

use indicatif::ProgressBar;
use nic::replay::Change;
use nic::trace::Op;
use rayon::prelude::*;

use crate::error::Error;
use crate::settings::Settings;
use crate::traces::together::Step;
use crate::traces::{JointReplay, Trace};

/// Largest lengths of the UMQ if every message arrives as late as possible: of one endpoint, and of
/// all endpoints of a NIC together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Late {
    pub(crate) rank: u64,
    pub(crate) nic: u64,
}

/// A message: the number of the first operation that needed it, and of the operation that removed
/// it from the queue. A number is [`NEVER`] if there is no such operation. If a receive waited for
/// the message, both numbers are that of its arrival.
#[derive(Clone, Copy)]
struct Message {
    needed: u64,
    left: u64,
}

const NEVER: u64 = u64::MAX;

/// Computes both lengths from the traces of tagged messages.
pub(crate) fn of(traces: &[Trace], bar: &ProgressBar) -> Result<Late, Error> {
    let mut nodes: BTreeMap<_, Vec<&Trace>> = BTreeMap::new();
    for trace in traces.iter().filter(|trace| trace.header.context == "tagged") {
        nodes.entry(trace.host()).or_default().push(trace);
    }
    let nodes: Vec<_> = nodes.into_values().collect();
    let late: Vec<_> = nodes.par_iter().map(|traces| of_node(traces, bar)).collect();
    late.into_iter().try_fold(Late::default(), |most, one| {
        let one = one?;
        Ok(Late { rank: most.rank.max(one.rank), nic: most.nic.max(one.nic) })
    })
}

/// The messages of a rank with their sources, in the order of their arrival.
#[derive(Default)]
struct Messages {
    all: Vec<(u32, Message)>,
}

impl Messages {
    /// Records the effect of an operation. `at` is its number in the trace.
    fn note(&mut self, at: u64, op: &Op, change: Option<Change>) {
        if let Op::Arrive(envelope) = op {
            let kept = matches!(change, Some(Change::Kept(..)));
            let (needed, left) = if kept { (NEVER, NEVER) } else { (at, at) };
            self.all.push((envelope.source, Message { needed, left }));
            return;
        }
        let (number, is_taken) = match (op, change) {
            (Op::Peek(_), Some(Change::Found(number))) => (number, false),
            (_, Some(Change::Taken(number))) => (number, true),
            _ => return,
        };
        let Some((_, message)) = self.all.get_mut(number as usize) else { return };
        if !matches!(op, Op::Drop(_)) {
            message.needed = message.needed.min(at);
        }
        if is_taken {
            message.left = at;
        }
    }

    /// Returns the changes of the queue's length with the numbers of their operations, sorted by
    /// number.
    fn changes(&self) -> Vec<(u64, i64)> {
        let mut soonest: HashMap<u32, u64> = HashMap::new();
        let mut changes = Vec::new();
        for (source, Message { needed, left }) in self.all.iter().rev() {
            let comes = soonest.entry(*source).or_insert(NEVER);
            *comes = (*needed).min(*comes);
            if *comes < *left {
                changes.push((*comes, 1));
                if *left != NEVER {
                    changes.push((*left, -1));
                }
            }
        }
        changes.sort_unstable();
        changes
    }
}

fn of_node(traces: &[&Trace], bar: &ProgressBar) -> Result<Late, Error> {
    let mut together = JointReplay::without_pool(traces.iter().copied(), &Settings::default())?;
    let mut messages: Vec<Messages> = traces.iter().map(|_| Messages::default()).collect();
    // Index of each operation among all operations of the node, by trace.
    let mut places: Vec<Vec<u64>> = vec![Vec::new(); traces.len()];
    let mut place = 0;
    while let Some((Step { at, .. }, op, change)) = together.step_with_changes(bar)? {
        messages[at].note(places[at].len() as u64, &op, change);
        places[at].push(place);
        place += 1;
    }
    let (mut late, mut all) = (Late::default(), Vec::new());
    for (messages, places) in messages.iter().zip(&places) {
        let changes = messages.changes();
        late.rank = late.rank.max(longest(&changes));
        all.extend(changes.iter().map(|(at, change)| (places[*at as usize], *change)));
    }
    all.sort_unstable();
    late.nic = longest(&all);
    Ok(late)
}

/// Returns the largest length of a queue that is empty before the first of these changes.
fn longest(changes: &[(u64, i64)]) -> u64 {
    let mut now = 0;
    changes
        .iter()
        .map(|(_, change)| {
            now += change;
            now
        })
        .max()
        .unwrap_or(0)
        .max(0)
        .cast_unsigned()
}

#[cfg(test)]
mod tests {
    use matching::{Key, Source};
    use nic::message::Envelope;
    use nic::trace::Posted;

    use super::*;

    #[test]
    fn messages_come_when_they_are_needed_or_one_behind_them_is() {
        let arrive = |source, bits| Op::Arrive(Envelope { source, bits, len: 0 });
        let key = |bits| Key { bits, ignore: 0, source: Source::new(1) };
        let post =
            |bits| Op::Post(Posted { key: key(bits), len: 8, multi: None, non_contiguous: false });
        let kept =
            |number| Some(Change::Kept(number, Envelope { source: 1, bits: number, len: 0 }));
        let changes = |ops: &[(Op, Option<Change>)]| {
            let mut messages = Messages::default();
            (0..).zip(ops).for_each(|(at, (op, change))| messages.note(at, op, *change));
            longest(&messages.changes())
        };
        // Taken in the order of arrival: each message could arrive when it was taken.
        let came = [(arrive(1, 0), kept(0)), (arrive(1, 1), kept(1)), (arrive(1, 2), kept(2))];
        let taken = |number| (post(number), Some(Change::Taken(number)));
        assert_eq!(changes(&[&came[..], &[taken(0), taken(1), taken(2)]].concat()), 0);
        // The last message is taken first, so the others had arrived before.
        assert_eq!(changes(&[&came[..], &[taken(2), taken(1), taken(0)]].concat()), 2);
        assert_eq!(
            changes(&[&came[..], &[taken(2)]].concat()),
            2,
            "messages that are never taken stay"
        );
        // A probe found the message, and it stayed.
        let peek = (Op::Peek(key(0)), Some(Change::Found(0)));
        assert_eq!(changes(&[came[0], peek, taken(0)]), 1);
        // A message of another source does not hold it back.
        let other = (arrive(2, 5), None);
        assert_eq!(changes(&[came[0], other, taken(0)]), 0);
        // A message that was dropped at the end was not needed.
        let drop = (Op::Drop(0), Some(Change::Taken(0)));
        assert_eq!(changes(&[came[0], drop]), 0);
    }
}
