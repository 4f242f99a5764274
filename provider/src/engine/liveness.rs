// SPDX-License-Identifier: BSD-2-Clause
//! Opens links to peers ([`super::peers`]), and notices that peers close or die. Operations that
//! wait for a dead peer complete in error, and the resources that it held are reclaimed. Peers are
//! checked while the endpoint is idle, and from time to time while it is busy.

use std::time::{Duration, Instant};

use channel::{contract::Liveness, identity::Identity, shm::doorbell::Doorbell, wire::Header};
use ffi::{Errno, Result};
use host::{
    cores::{self, Cores},
    owner::Look,
};
use matching::Source;

use super::{Engine, peer_checks::PeerChecks, peers::Unknown};
use crate::wait::{callers, idle::RETRY, pollable::Progress};

/// Maximum number of senders per check that have entered the list of senders of this endpoint and
/// have not sent yet.
const SILENT_A_ROUND: usize = 64;

/// Longest sleep of a thread that waits at an endpoint. A peer may die meanwhile, and on this host
/// only a check notices that.
const LOOK_AROUND: Duration = Duration::from_millis(250);

impl Engine {
    /// Opens a link to the endpoint at a peer's address for a new operation, unless a link is open.
    ///
    /// # Errors
    /// `EAGAIN` if messages of an earlier endpoint at the address cannot all be handled yet, and
    /// the errors of [`super::peers::Peers::check_route`] and [`super::peers::Peers::open`].
    #[inline]
    pub(crate) fn link_to(&mut self, peer: u32) -> Result<()> {
        if self.peers.is_ready(peer) {
            return Ok(());
        }
        self.open_link(peer)
    }

    #[cold]
    fn open_link(&mut self, peer: u32) -> Result<()> {
        self.peers.check_route(peer)?;
        if self.peers.is_linked(peer) && !self.peers.check_claim(peer) {
            self.expel(peer);
        }
        // Messages of an earlier endpoint are handled before the new one is opened.
        let departed = match self.peers.who_is_at(peer) {
            Some(gone) => self.handle_departure(peer, gone),
            None => self.has_received_all(),
        };
        if !departed {
            return Err(Errno::EAGAIN);
        }
        if self.peers.is_linked(peer) {
            // A new endpoint at the address has sent already, and may have closed since.
            return if self.peers.is_open(peer) { Ok(()) } else { Err(Errno::EAGAIN) };
        }
        self.peers.open(peer)
    }

    /// Returns the source of a slot, as receives name it. Opens its sender, if that is new.
    ///
    /// # Errors
    /// The reason why the sender is not known.
    #[inline]
    pub(super) fn source_of(&mut self, header: &Header) -> std::result::Result<u32, Unknown> {
        match self.peers.source(header) {
            Some(source) => Ok(source),
            None => self.learn_source(header.peer),
        }
    }

    #[cold]
    fn learn_source(&mut self, number: u32) -> std::result::Result<u32, Unknown> {
        if let Some(source) = self.peers.source_of_context(number) {
            return Ok(source);
        }
        let sender = self.peers.new_sender(number)?;
        if self.peers.who_is_at(sender.peer) != Some(sender.who) {
            let opened = self.peers.open_sender(&sender)?;
            if self.peers.who_is_at(sender.peer).is_some() {
                self.forget(sender.peer);
            }
            self.peers.add_sender(&sender, opened);
        }
        Ok(self.peers.enter(&sender))
    }

    /// Prepares the network for a sleep. Returns how long a thread may sleep without delaying work
    /// that no doorbell announces; zero if a slot has come or a copy is due.
    pub(crate) fn longest_sleep(&mut self) -> Duration {
        if self.inbound.is_short() {
            return RETRY;
        }
        if !self.rx.copies.is_empty() || self.inbound.has_any() {
            return Duration::ZERO;
        }
        self.peers.look_for_room();
        self.peers.transports.schedule.make_due();
        if self.waits_for_room() || !self.peers.transports.arm_net() {
            return RETRY;
        }
        LOOK_AROUND
    }

    /// Returns whether copies, answers or parts of operations wait, which no doorbell announces.
    pub(crate) fn has_pending_work(&self) -> bool {
        !(self.rx.copies.is_empty()
            && self.peers.has_no_pending_answers()
            && self.tx.has_no_streams())
    }

    /// Returns whether work waits for room at a peer, which no doorbell announces.
    pub(crate) fn waits_for_room(&self) -> bool {
        self.peers.wants_room || !self.peers.has_no_pending_answers() || !self.tx.has_no_streams()
    }

    /// Does the periodic work that is due: shows the counters, checks some peers and the load of
    /// the host, and makes progress on endpoints that no thread polls.
    pub(crate) fn look_around(&mut self) {
        let now = Instant::now();
        self.checks.pace(now);
        if self.checks.is_idle_due(now) {
            self.rx.device.lock().idle();
        }
        let Some(since) = self.checks.begin(now) else {
            if self.publisher.is_draft_due(now) {
                self.show();
            }
            return;
        };
        self.show();
        self.inbound.skip_stuck();
        self.update_population();
        host::directory::look_around();
        self.peers.transports.look_around();
        for (peer, gone) in self.peers.take_unopened() {
            if !self.handle_departure(peer, gone) {
                self.peers.keep_unopened(peer, gone);
            }
        }
        self.link_awaited();
        self.end_leaving(now);
        if let Some(pool) = &self.node_pool {
            pool.look_around();
        }
        self.look_at_some(since);
        self.look_after_unpolled();
    }

    /// Checks as many peers as the time `since` the last check requires.
    fn look_at_some(&mut self, since: Duration) {
        let peers = self.peers.count();
        for _ in 0..PeerChecks::due(peers, since) {
            let (at, look) = self.checks.next(peers);
            self.look_at(at, look);
        }
        // The memory that closed peers held becomes free only when they are removed.
        let places = self.checks.next_closed(self.peers.count());
        for (peer, gone) in self.peers.closed(places) {
            self.handle_departure(peer, gone);
        }
        if self.checks.is_silent_due() {
            let gone = self.peers.silent_and_gone(SILENT_A_ROUND);
            // Slots of these senders may still be in the ring.
            if !gone.is_empty() && self.has_received_all() {
                self.peers.strike_unknown(gone);
            }
        }
    }

    /// Counts the threads that poll endpoints on the processors that this thread may run on. Polls
    /// and the doorbell adapt to the result.
    pub(crate) fn update_population(&mut self) {
        let allowed = Cores::of_thread();
        self.peers.own().show_cores(&allowed);
        let (population, cores) = self.poller_count.population(&allowed, callers::pollers());
        let ask: fn() -> bool = cores::is_one_idle;
        self.idle.set_population(population, cores, (cores == cores::online()).then_some(ask));
        Doorbell::set_crowded(self.peers.own(), self.idle.is_crowded());
    }

    /// If there is no link to the peer that a receive names, includes the peer in the next checks.
    /// Otherwise nothing would notice that the peer dies before it sends.
    #[inline]
    pub(crate) fn watch(&mut self, source: Source) {
        if let Some(peer) = source.get()
            && !self.peers.is_linked(peer)
        {
            self.await_peer(peer);
        }
    }

    #[cold]
    fn await_peer(&mut self, peer: u32) {
        if self.peers.transports.has_net() || !self.peers.needs_net(peer) {
            self.checks.awaited.insert(peer);
        }
    }

    /// Opens links to peers that receives wait for. If such a peer cannot be reached, but existed
    /// and was not seen to close, the receives that name it fail. A peer that never existed, or
    /// that has closed, may still come.
    fn link_awaited(&mut self) {
        for peer in self.checks.awaited_now() {
            let (needs_net, is_there) = (self.peers.needs_net(peer), self.peers.is_there(peer));
            let met = if is_there { self.link_to(peer) } else { Err(Errno::ENOENT) };
            match met {
                // The next check may find the peer, or enough memory.
                Err(Errno::EAGAIN | Errno::ENOMEM) => continue,
                Err(Errno::ECONNREFUSED) if !needs_net => continue,
                Err(_) if needs_net || !is_there => {}
                // There is a link now, or the peer of this host has another version or too many
                // peers, which the next check would not change.
                _ => {
                    self.stop_awaiting(peer);
                    continue;
                }
            }
            if self.domain.peers.was_last_seen_open(peer) && self.has_received_all() {
                self.stop_awaiting(peer);
                let address = self.peers.address_of(peer);
                tracing::warn!("{address} is gone: receives that name it fail");
                self.end_directed(peer);
            }
        }
    }

    fn stop_awaiting(&mut self, peer: u32) {
        self.checks.awaited.remove(&peer);
        if !self.peers.is_linked(peer) {
            self.rx.device.unwatch(peer);
        }
    }

    /// Handles all slots of this host that were sent before the call, and on the network at least
    /// the next slot, if one has come. Returns false if some are still being written, or must wait.
    pub(super) fn has_received_all(&mut self) -> bool {
        let ends = self.inbound.ends();
        while !self.inbound.has_reached(&ends) {
            self.peers.transports.schedule.make_due();
            if self.receive() == Progress::None {
                break;
            }
        }
        self.inbound.has_reached(&ends)
    }

    fn look_at(&mut self, at: usize, look: Look) {
        let Some((peer, gone, liveness)) = self.peers.look_at(at, look) else { return };
        // The secret in the peer's name may have been learned after its first message came.
        if !self.peers.check_claim(peer) {
            self.expel(peer);
        } else if liveness != Liveness::Alive {
            self.handle_departure(peer, gone);
        }
    }

    /// Checks the senders whose names were just inserted into an address vector. From now on,
    /// receives may name their addresses. Expels the impostors among them, so that no such receive
    /// gets a message of an impostor.
    pub(crate) fn check_names(&mut self) {
        for (peer, epoch) in self.peers.take_impostors() {
            if epoch == self.peers.epoch(peer) {
                self.expel(peer);
            } else {
                self.rx.drop_messages(peer, epoch);
            }
        }
    }

    /// Drops the messages of a peer that is not at the address that it claims, and forgets the
    /// peer. Receives that name the address stay, because the endpoint there may still send to
    /// them.
    fn expel(&mut self, peer: u32) {
        self.rx.drop_messages(peer, self.peers.epoch(peer));
        self.drop_peer(peer);
        if self.domain.peers.secret(peer) != 0 {
            self.await_peer(peer);
        }
    }

    /// Handles the slots of an endpoint that is gone, and forgets the endpoint. Returns false, and
    /// does not forget it, if some slots are still being written or must wait.
    pub(crate) fn handle_departure(&mut self, peer: u32, gone: Identity) -> bool {
        if !self.has_received_all() {
            return false;
        }
        // If a later endpoint at the address has sent as well, the earlier one was forgotten when
        // the later one was opened.
        if self.peers.who_is_at(peer) == Some(gone) {
            self.forget(peer);
        }
        true
    }

    /// Ends all operations that wait for the endpoint at a peer's address, and forgets the
    /// endpoint. This endpoint is gone or was disconnected, and the caller has handled all of its
    /// slots.
    pub(crate) fn forget(&mut self, peer: u32) {
        let address = self.peers.address_of(peer);
        let end = self.peers.liveness(peer);
        match end {
            Some(Liveness::Dead) => tracing::warn!("{address} died"),
            Some(Liveness::Closed) => tracing::info!("{address} closed its endpoint"),
            // It was never opened, or no check has noticed yet that it is gone.
            _ => tracing::info!("{address} is no longer connected"),
        }
        self.drop_peer(peer);
        if end == Some(Liveness::Closed) {
            self.domain.peers.saw_close(peer);
        } else if end.is_some() && (self.peers.needs_net(peer) || !self.peers.is_there(peer)) {
            // If another endpoint of this host is at the address now, the receives stay: that
            // endpoint may send to them.
            self.end_directed(peer);
        }
    }

    /// Ends all operations that wait for the endpoint at a peer's address, except receives that
    /// name it, and drops the link to it.
    fn drop_peer(&mut self, peer: u32) {
        // The peer is disconnected before its operations end, so that no thread on the tx fast path
        // starts another operation meanwhile.
        self.peers.disconnect(peer);
        self.tx.forget(&mut self.completions, peer);
        self.rx.forget(&mut self.completions, peer);
        if self.peers.drop_link(peer) {
            self.rx.device.unwatch(peer);
        }
        if self.peers.has_many_claims() {
            self.peers.forget_claims(&self.rx.kept_senders());
        }
    }

    /// Fails the receives that name a peer that is gone. In a shared receive context this happens
    /// later, because other endpoints of the context may not have handled all slots of the peer.
    fn end_directed(&mut self, peer: u32) {
        if self.rx.device.is_shared() {
            self.checks.leave_later(peer);
        } else {
            self.rx.fail_directed(&mut self.completions, peer);
        }
    }

    fn end_leaving(&mut self, now: Instant) {
        for peer in self.checks.leaving_now(now) {
            // If the peer has a link, there is an endpoint at its address again.
            if !self.peers.is_linked(peer) {
                self.rx.fail_directed(&mut self.completions, peer);
            }
        }
    }
}

#[cfg(test)]
#[path = "liveness_tests.rs"]
mod tests;
