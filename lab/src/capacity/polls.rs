// SPDX-License-Identifier: BSD-2-Clause
//! Counts the events and the bytes of unexpected messages that come to an endpoint between two of its
//! polls. The events wait in its event queue. The bytes need the buffers that were posted at the first
//! poll, because only a poll posts others.
//!
//! Events of cxi: a message sent eagerly has one, and one by rendezvous has two. The match of an
//! unexpected message is one more. In mode hybrid, an endpoint whose engine is full appends receives
//! until its next poll, and each of them has an event, because it gets no entry
//! (`cxip_msg_hpc.c:3674`).

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
    /// Events in mode hybrid, receives without an entry included.
    pub(crate) events_in_hybrid: u64,
    /// Bytes in buffers.
    pub(crate) bytes: u64,
}

/// Events and bytes that came at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Came {
    at: u64,
    events: u64,
    bytes: u64,
    /// It is a receive that waits.
    is_receive: bool,
}

/// Everything that came in a trace, and the times of its polls.
#[derive(Debug, Default)]
struct OfTrace {
    came: Vec<Came>,
    polls: Vec<u64>,
    /// Time when the engine of the endpoint was full.
    left_at: Option<u64>,
}

/// Returns the largest numbers of any endpoint, or `None` if no poll was recorded. `left_at` has for
/// each trace the time when its endpoint left the hardware in mode hybrid.
pub(crate) fn of(
    traces: &[Trace],
    provider: Provider,
    left_at: &[Option<u64>],
    bar: &ProgressBar,
) -> Result<Option<BetweenPolls>, Error> {
    let read = play::each(traces, bar, |trace, bar| of_trace(trace, provider, bar))?;
    let mut endpoints: BTreeMap<_, OfTrace> = BTreeMap::new();
    for ((trace, left_at), mut of) in traces.iter().zip(left_at).zip(read) {
        let endpoint = endpoints.entry(trace.endpoint()).or_default();
        endpoint.left_at = *left_at;
        endpoint.came.append(&mut of.came);
        endpoint.polls.append(&mut of.polls);
    }
    if endpoints.values().all(|of| of.polls.is_empty()) {
        return Ok(None);
    }
    let most = endpoints.into_values().map(OfTrace::most);
    Ok(Some(most.fold(BetweenPolls::default(), |most, of| BetweenPolls {
        events: most.events.max(of.events),
        events_in_hybrid: most.events_in_hybrid.max(of.events_in_hybrid),
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
            (_, Some(Change::Posted(..))) => (0, 0),
            _ => continue,
        };
        let is_receive = matches!(change, Some(Change::Posted(..)));
        of.came.push(Came { at, events, bytes, is_receive });
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
        // The first poll after the engine was full ends the use of the hardware.
        let mut is_full_since = self.left_at;
        for poll in self.polls.into_iter().chain([u64::MAX]) {
            let mut now = BetweenPolls::default();
            while let Some(of) = came.next_if(|of| of.at <= poll) {
                now.events += of.events;
                now.bytes = now.bytes.saturating_add(of.bytes);
                let has_no_entry = is_full_since.is_some_and(|since| of.at >= since);
                now.events_in_hybrid += of.events + u64::from(of.is_receive && has_no_entry);
            }
            is_full_since = is_full_since.filter(|since| poll < *since);
            most.events = most.events.max(now.events);
            most.events_in_hybrid = most.events_in_hybrid.max(now.events_in_hybrid);
            most.bytes = most.bytes.max(now.bytes);
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(at: u64) -> Came {
        Came { at, events: 1, bytes: 10, is_receive: false }
    }

    fn most(came: &[Came], polls: &[u64], left_at: Option<u64>) -> [u64; 3] {
        let of = OfTrace { came: came.to_vec(), polls: polls.to_vec(), left_at };
        let BetweenPolls { events, events_in_hybrid, bytes } = of.most();
        [events, events_in_hybrid, bytes]
    }

    #[test]
    fn a_poll_takes_what_came_before_it_whenever_it_was_recorded() {
        // The messages at 3 and 4 were recorded after the poll at 5.
        let came = [1, 2, 3, 4, 6].map(message);
        assert_eq!(most(&came, &[5, 7], None), [4, 4, 40]);
        assert_eq!(most(&[1, 6, 7].map(message), &[9, 2], None), [2, 2, 20]);
        assert_eq!(most(&[1, 6].map(message), &[], None), [2, 2, 20]);
    }

    #[test]
    fn receives_without_an_entry_have_events_until_the_next_poll() {
        let receive = |at| Came { at, events: 0, bytes: 0, is_receive: true };
        let came = [receive(1), receive(2), message(3), receive(4), receive(6), receive(7)];
        // The engine was full at 2; later receives are on the host.
        assert_eq!(most(&came, &[5], Some(2)), [1, 3, 10]);
        assert_eq!(most(&came, &[5], Some(5)), [1, 1, 10]);
        assert_eq!(most(&came, &[5], Some(6)), [1, 2, 10]);
        assert_eq!(most(&came, &[5], None), [1, 1, 10]);
    }
}
