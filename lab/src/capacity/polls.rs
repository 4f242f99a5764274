// SPDX-License-Identifier: BSD-2-Clause
//! Counts the events and the bytes of unexpected messages that come to an endpoint between two of its
//! polls. The events wait in its event queue. The bytes need the buffers that were posted at the first
//! poll, because only a poll posts others.
//!
//! Events of cxi: a message sent eagerly has one, and one by rendezvous has two. The match of an
//! unexpected message is one more.

use std::collections::BTreeMap;

use indicatif::ProgressBar;
use nic::replay::Change;
use nic::trace::Op;

use super::list_entries::Provider;
use crate::error::Error;
use crate::settings::Settings;
use crate::traces::{Player, Trace, play};

/// The largest numbers between two polls of an endpoint. Each may be of another interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BetweenPolls {
    pub(crate) events: u64,
    /// Bytes in buffers.
    pub(crate) bytes: u64,
}

/// Events and bytes that came at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Came {
    at: u64,
    events: u64,
    bytes: u64,
}

/// Everything that came in a trace, and the times of its polls.
#[derive(Debug, Default)]
struct OfTrace {
    came: Vec<Came>,
    polls: Vec<u64>,
}

/// Returns the largest numbers of any endpoint, or `None` if no poll was recorded.
pub(crate) fn of(
    traces: &[Trace],
    provider: Provider,
    bar: &ProgressBar,
) -> Result<Option<BetweenPolls>, Error> {
    let read = play::each(traces, bar, |trace, bar| of_trace(trace, provider, bar))?;
    let mut endpoints: BTreeMap<_, OfTrace> = BTreeMap::new();
    for (trace, mut of) in traces.iter().zip(read) {
        let endpoint = endpoints.entry(trace.endpoint()).or_default();
        endpoint.came.append(&mut of.came);
        endpoint.polls.append(&mut of.polls);
    }
    if endpoints.values().all(|of| of.polls.is_empty()) {
        return Ok(None);
    }
    let most = endpoints.into_values().map(OfTrace::most);
    Ok(Some(most.fold(BetweenPolls::default(), |most, of| BetweenPolls {
        events: most.events.max(of.events),
        bytes: most.bytes.max(of.bytes),
    })))
}

fn of_trace(trace: &Trace, provider: Provider, bar: &ProgressBar) -> Result<OfTrace, Error> {
    let mut player = Player::new(trace, &Settings::default())?;
    let mut of = OfTrace::default();
    let since = trace.since_ns();
    while let Some(timed) = player.next()? {
        of.polls.extend(player.take_polled().map(|at| since.saturating_add(at)));
        let (at, op) = (since.saturating_add(timed.0), timed.1);
        let mut change = None;
        player.step_with_changes(&timed, |first| change = change.or(Some(first)))?;
        player.tick(bar);
        let (events, bytes) = match (op, change) {
            (Op::Arrive(envelope), change) => {
                let (is_eager, bytes) = provider.buffered(envelope.len);
                let is_kept = matches!(change, Some(Change::Kept(..)));
                (if is_eager { 1 } else { 2 }, if is_kept { bytes } else { 0 })
            }
            (_, Some(Change::Taken(_))) => (1, 0),
            _ => continue,
        };
        of.came.push(Came { at, events, bytes });
    }
    of.polls.extend(player.take_polled().map(|at| since.saturating_add(at)));
    Ok(of)
}

impl OfTrace {
    /// Returns the largest numbers between two polls, or after the last one.
    fn most(mut self) -> BetweenPolls {
        self.came.sort_unstable();
        self.polls.sort_unstable();
        let (mut most, mut came) = (BetweenPolls::default(), self.came.iter().peekable());
        for poll in self.polls.into_iter().chain([u64::MAX]) {
            let mut now = BetweenPolls::default();
            while let Some(of) = came.next_if(|of| of.at <= poll) {
                now.events += of.events;
                now.bytes = now.bytes.saturating_add(of.bytes);
            }
            most.events = most.events.max(now.events);
            most.bytes = most.bytes.max(now.bytes);
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_poll_takes_what_came_before_it_whenever_it_was_recorded() {
        let came = |at| Came { at, events: 1, bytes: 10 };
        // The messages at 3 and 4 were recorded after the poll at 5.
        let of =
            OfTrace { came: vec![came(1), came(2), came(3), came(4), came(6)], polls: vec![5, 7] };
        assert_eq!(of.most(), BetweenPolls { events: 4, bytes: 40 });
        let of = OfTrace { came: vec![came(1), came(6), came(7)], polls: vec![9, 2] };
        assert_eq!(of.most(), BetweenPolls { events: 2, bytes: 20 });
        let never = OfTrace { came: vec![came(1), came(6)], polls: vec![] };
        assert_eq!(never.most(), BetweenPolls { events: 2, bytes: 20 });
    }
}
