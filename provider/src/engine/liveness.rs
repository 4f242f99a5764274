// SPDX-License-Identifier: BSD-2-Clause
//! Peers that die: operations that wait for them complete in error, and their resources are
//! reclaimed. Peers are checked while the endpoint is idle, and from time to time while it is busy.

use std::time::{Duration, Instant};

use channel::{contract::Liveness, identity::Identity, shm::doorbell::Doorbell};
use ffi::Errno;
use host::{
    cores::{self, Cores},
    owner::Look,
};
use matching::Source;

use crate::{
    engine::Engine,
    wait::{idle::RETRY, pollable::Progress, pollers},
};

/// Recorded times are at most this old while polls find nothing.
const STALE: Duration = Duration::from_micros(10);
/// Time between two checks.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);
/// Most empty polls between two reads of the clock, which take as long as a poll.
pub(super) const MOST_POLLS: u32 = 64;
/// Time in which the other members of a shared context receive what a peer sent before it was gone.
const GRACE: Duration = Duration::from_secs(1);
/// Time in which all peers are checked, however rarely the endpoint makes a check.
const ROUND: Duration = Duration::from_secs(2);
/// Least number of peers per check.
const PEERS_A_LOOK: usize = 8;
/// Up to this many peers, each check is close.
/// With more peers, one round in this many is close.
const FEW: usize = 32;
/// Peers in the list that have not sent yet: this many are checked in each round.
const SILENT_A_ROUND: usize = 64;
/// Peers per check whose segment is read for whether they have closed it.
const STATES_A_LOOK: usize = 1024;
const CLOSE: usize = 4;

/// Longest sleep of a thread that waits at an endpoint: a peer may die, also one that another
/// thread sends to meanwhile.
const LOOK_AROUND: Duration = Duration::from_millis(250);

impl Engine {
    /// Longest sleep that delays nothing but messages; zero if one has come.
    pub(crate) fn longest_sleep(&mut self) -> Duration {
        if self.is_short {
            return RETRY;
        }
        if !self.copies.is_empty() || self.has_arrivals() {
            return Duration::ZERO;
        }
        if self.wants_room {
            let full = self.links.iter().flatten().any(|link| !link.has_room());
            self.wants_room = full || !self.home.has_room();
        }
        self.home.turns.hurry();
        if self.waits_for_room() || !self.home.arm_net() {
            return RETRY;
        }
        LOOK_AROUND
    }

    /// Returns whether there is work that no doorbell announces.
    pub(crate) fn goes_on(&self) -> bool {
        !(self.copies.is_empty() && self.deferred.is_empty() && self.streams.is_empty())
    }

    /// Returns whether work waits for room at a peer, which no doorbell announces.
    pub(crate) fn waits_for_room(&self) -> bool {
        self.wants_room || !self.deferred.is_empty() || !self.streams.is_empty()
    }

    /// Returns whether the clock is to be read, after a poll that found nothing.
    #[inline]
    pub(crate) fn is_look_due(&mut self) -> bool {
        let is_due = self.until_look == 0;
        self.until_look = self.until_look.saturating_sub(1);
        is_due
    }

    /// Adapts the number of polls between reads of the clock. Programs that poll rarely read it in
    /// each poll.
    fn pace_looks(&mut self, now: Instant) {
        let since = now - std::mem::replace(&mut self.clocked, now);
        if since > INTERVAL {
            self.look_every = 1;
        } else if since < INTERVAL / 4 {
            self.look_every = (2 * self.look_every).min(MOST_POLLS);
        }
        self.until_look = self.look_every - 1;
    }

    /// Checks some peers and the load of the host, if it is time.
    pub(crate) fn look_around(&mut self) {
        let now = Instant::now();
        self.pace_looks(now);
        let since = now - self.checked;
        if self.idled.is_some_and(|then| now - then >= STALE) {
            self.idled = Some(now);
            self.device.lock().idle();
        }
        if since < INTERVAL {
            if self.draft.as_ref().is_some_and(|draft| draft.is_due(now)) {
                self.show();
            }
            return;
        }
        self.checked = now;
        self.show();
        self.skip_stuck();
        self.update_population();
        host::directory::look_around();
        self.home.look_around();
        for (peer, gone) in std::mem::take(&mut self.passing) {
            if !self.part(peer, gone) {
                self.passing.push((peer, gone));
            }
        }
        self.meet_awaited();
        self.end_leaving(now);
        if let Some(pool) = &self.node_pool {
            pool.look_around();
        }
        self.look_at_some(since);
        self.look_after_unpolled();
    }

    /// Checks the peers that are due after the time `since` the last check.
    fn look_at_some(&mut self, since: Duration) {
        let peers = self.linked.len();
        let due = (peers as f64 * since.div_duration_f64(ROUND)).ceil() as usize;
        for _ in 0..due.max(PEERS_A_LOOK).min(peers) {
            let (round, at) = (self.check_next / peers, self.check_next % peers);
            self.check_next = (self.check_next + 1) % (CLOSE * peers);
            let closely = round % CLOSE == 0 || peers <= FEW;
            // The list may be shorter by now.
            if let Some(&peer) = self.linked.get(at) {
                self.look_at(peer, if closely { Look::Closely } else { Look::Briefly });
            }
        }
        self.look_at_closed();
        // Few peers are silent, and opening one takes 20 us, which 256 ranks of a core cannot
        // afford often.
        if self.silent_checked.elapsed() >= ROUND {
            self.silent_checked = Instant::now();
            self.strike_silent(SILENT_A_ROUND);
        }
    }

    /// Counts the other pollers on the processors that this thread may run on.
    pub(crate) fn update_population(&mut self) {
        let allowed = Cores::of_thread();
        self.own.show_cores(&allowed);
        let (population, cores) = self.census.population(&allowed, pollers::pollers());
        let ask: fn() -> bool = cores::is_one_idle;
        self.idle.set_population(population, cores, (cores == cores::online()).then_some(ask));
        Doorbell::set_crowded(&self.own, self.idle.is_crowded());
    }

    /// Watches the peer that a receive names: it may die before there is a link to it.
    #[inline]
    pub(crate) fn watch(&mut self, source: Source) {
        if let Some(peer) = source.get()
            && !self.is_linked(peer)
        {
            self.await_peer(peer);
        }
    }

    #[cold]
    fn await_peer(&mut self, peer: u32) {
        if self.home.has_net() || !self.is_far(self.domain.peers.address(peer)) {
            self.awaited.insert(peer);
        }
    }

    /// Opens links to peers that receives wait for. A peer that was never there, or that was seen
    /// to close, may still come; receives from any other peer that is gone fail.
    fn meet_awaited(&mut self) {
        let (before, after) = (..self.awaited_next, self.awaited_next..);
        let turns = self.awaited.range(after).chain(self.awaited.range(before));
        let due: Vec<u32> = turns.copied().take(PEERS_A_LOOK).collect();
        for peer in due {
            self.awaited_next = peer + 1;
            let address = self.domain.peers.address(peer);
            let is_far = self.is_far(address);
            let is_there = is_far || self.home.is_there(address.port());
            let met = if is_there { self.link_to(peer) } else { Err(Errno::ENOENT) };
            match met {
                // It may be there at the next check.
                Err(Errno::EAGAIN) => continue,
                Err(Errno::ECONNREFUSED) if !is_far => continue,
                // A peer of this host that cannot be opened has another version or too many peers,
                // and the next check would not change that.
                Err(_) if is_far || !is_there => {}
                _ => {
                    self.stop_awaiting(peer);
                    continue;
                }
            }
            if self.domain.peers.was_seen(peer) && self.has_received_all() {
                self.stop_awaiting(peer);
                tracing::warn!("{address} is gone, and receives wait for it");
                self.end_directed(peer);
            }
        }
    }

    fn stop_awaiting(&mut self, peer: u32) {
        self.awaited.remove(&peer);
        if !self.is_linked(peer) {
            self.device.unwatch(peer);
        }
    }

    /// Handles all slots that were sent before. Returns false if some are still being written.
    pub(crate) fn has_received_all(&mut self) -> bool {
        let ends = self.inboxes.each_mut().map(|inbox| inbox.as_mut().map(|inbox| inbox.end()));
        let has_all = |engine: &Self| {
            let mut inboxes = engine.inboxes.iter().zip(&ends);
            inboxes.all(|(inbox, end)| inbox.as_ref().map(|inbox| inbox.position()) >= *end)
        };
        while !has_all(self) {
            self.home.turns.hurry();
            if self.receive() == Progress::None {
                break;
            }
        }
        has_all(self)
    }

    /// Skips slots that were claimed one interval ago by senders that have died.
    fn skip_stuck(&mut self) {
        for inbox in self.inboxes.iter_mut().flatten() {
            if inbox.skip_stuck() {
                tracing::warn!("a message is lost, its sender died while it wrote it");
            }
        }
    }

    fn look_at(&mut self, peer: u32, look: Look) {
        let Some(Some(link)) = self.links.get(peer as usize) else { return };
        // The peer's name may have been inserted after its first message came.
        let (gone, liveness) = (link.identity(), link.liveness(look));
        if !self.is_verified(peer) {
            self.drop_messages(peer);
        } else if liveness == Liveness::Alive {
            return;
        }
        self.part(peer, gone);
    }

    /// Drops the messages of a peer that is not at the address that it claims.
    fn drop_messages(&mut self, peer: u32) {
        let (holder, epoch) = (self.device.holder(), self.epoch(peer));
        for tagged in [true, false] {
            self.device.lock().context(tagged).drop_unexpected(|_, kept| {
                (kept.holder, kept.peer, kept.epoch) == (holder, peer, epoch)
            });
        }
    }

    /// Removes peers that have closed, which their segments show at once: the memory that they held
    /// becomes free only then.
    fn look_at_closed(&mut self) {
        let from = self.closed_next.min(self.linked.len());
        let to = (from + STATES_A_LOOK).min(self.linked.len());
        self.closed_next = if to == self.linked.len() { 0 } else { to };
        let closed = |&peer: &u32| {
            let link = self.links.get(peer as usize)?.as_deref()?;
            (!link.is_open()).then(|| (peer, link.identity()))
        };
        let closed: Vec<_> = self.linked[from..to].iter().filter_map(closed).collect();
        for (peer, gone) in closed {
            self.part(peer, gone);
        }
    }

    /// Handles what an endpoint sent that is gone, and forgets it. Returns false if that must wait,
    /// because an earlier message is still being written.
    pub(crate) fn part(&mut self, peer: u32, gone: Identity) -> bool {
        if !self.has_received_all() {
            return false;
        }
        // A later endpoint may have sent as well, and was opened.
        if self.who_is_at(peer) == Some(gone) {
            self.forget(peer);
        }
        true
    }

    /// Ends all operations that wait for the endpoint at a peer's address. It is gone, and all its
    /// messages were handled.
    pub(crate) fn forget(&mut self, peer: u32) {
        let address = self.domain.peers.address(peer);
        let link = self.links.get(peer as usize).and_then(Option::as_deref);
        let end = link.map(|link| link.liveness(Look::Briefly));
        if end == Some(Liveness::Dead) {
            tracing::warn!("{address} died");
        } else {
            tracing::info!("{address} closed its endpoint");
        }
        self.deferred.forget(peer);
        self.streams.retain(|stream| stream.peer != peer);
        // This comes before the operations are taken: a thread without the engine must not send
        // another one.
        self.home.disconnect(peer);
        for op in self.sends.take_of_peer(peer) {
            self.fail_op(&op, Errno::ECONNABORTED);
        }
        let failed: Vec<usize> = self
            .transfers
            .iter()
            .filter(|(_, transfer)| transfer.peer == peer)
            .map(|(key, _)| key)
            .collect();
        for key in failed {
            let transfer = self.transfers.remove(key);
            self.fail_transfer(&transfer);
        }
        self.drop_link(peer);
        if end == Some(Liveness::Closed) {
            // It may come back at the same address.
            self.domain.peers.saw_close(peer);
        } else if end.is_some() && (self.is_far(address) || !self.home.is_there(address.port())) {
            // Otherwise the endpoint that is there now may send to receives that name the address.
            self.end_directed(peer);
        }
    }

    /// Fails the receives that name a peer that is gone. In a shared context this happens later,
    /// because other members may not have handled what the peer sent to them.
    fn end_directed(&mut self, peer: u32) {
        if self.device.is_shared() {
            self.leaving.push((Instant::now() + GRACE, peer));
        } else {
            self.fail_directed(peer);
        }
    }

    fn end_leaving(&mut self, now: Instant) {
        let due: Vec<u32> =
            self.leaving.extract_if(.., |(end, _)| *end <= now).map(|(_, peer)| peer).collect();
        for peer in due {
            // A peer with a link has come back.
            if !self.is_linked(peer) {
                self.fail_directed(peer);
            }
        }
    }

    fn fail_directed(&mut self, peer: u32) {
        let source = Source::new(peer);
        for tagged in [true, false] {
            loop {
                let mut device = self.device.lock();
                let context = device.context(tagged);
                let directed = context.cancel(|receive| receive.key.source == source);
                let Some(receive) = directed else { break };
                device.begin(&receive.data, true);
                drop(device);
                let bits = receive.key.bits;
                self.fail_recv(&receive.data, tagged, bits, true, Errno::ECONNABORTED);
            }
        }
    }
}

#[cfg(test)]
#[path = "liveness_tests.rs"]
mod tests;
