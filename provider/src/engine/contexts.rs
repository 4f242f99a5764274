// SPDX-License-Identifier: BSD-2-Clause
//! Transmit and receive contexts, which open and close while their endpoint stays open
//! ([`crate::context`]).

use channel::wire::Kind;
use ffi::{Errno, flags};

use crate::{
    device::directed::Directed,
    engine::{Engine, ops::SendOp, transfers::LongCopy},
};

impl Engine {
    /// Sets the capabilities of receives from now on.
    pub(crate) fn set_receives(&mut self, caps: u64) {
        self.directed = Directed::of(caps);
        self.tagged_multi = caps & flags::TAGGED_MULTI_RECV != 0;
    }

    /// Drops posted receives without completions. `at_once`: also drops receives that long messages
    /// are being received into. Returns whether none is left.
    pub(crate) fn drop_receives(&mut self, at_once: bool) -> bool {
        for tagged in [true, false] {
            while let Some(receive) = self.device.lock_own().context(tagged).cancel(|_| true) {
                self.completions.forget_work(receive.data.work);
            }
        }
        if at_once {
            let mut senders = Vec::new();
            for copy in std::mem::take(&mut self.copies) {
                match copy {
                    LongCopy::Message(copy) => senders.push(copy.sender()),
                    memory => self.copies.push_back(memory),
                }
            }
            let transfers = std::mem::take(&mut self.transfers);
            senders.extend(transfers.into_iter().map(|(_, it)| (it.peer, it.about.op)));
            for (peer, op) in senders {
                self.peers.answer(peer, Kind::Failed, op, Errno::ECONNABORTED.get() as u64);
            }
        }
        self.copying == 0 && self.copies.is_empty() && self.transfers.is_empty()
    }

    /// Drops all transmits in progress, without completions. Their memory belongs to the
    /// application again when no peer [reaches](Engine::is_reached) it.
    pub(crate) fn drop_transmits(&mut self) {
        let of_message = |op: &SendOp| op.kind.is_message() && !op.buffer.is_copied();
        let dropped: Vec<_> = self
            .streams
            .iter()
            .filter(|stream| self.sends.find(stream.op, of_message) == Some(true))
            .map(|stream| (stream.peer, stream.transfer))
            .collect();
        let (ended, first) = self.sends.end_all();
        self.peers.own().void_before(first);
        for op in ended {
            self.ended(&op);
            self.completions.forget_work(op.work);
        }
        let Self { streams, sends, .. } = self;
        streams.retain(|stream| sends.find(stream.op, |_| ()).is_some());
        for (peer, transfer) in dropped {
            self.peers.answer(peer, Kind::Dropped, transfer, 0);
        }
    }

    /// Makes progress on the contexts of the domain that are not polled, unless another thread
    /// does.
    pub(crate) fn look_after_unpolled(&self) {
        // This endpoint may be one of them: under FI_THREAD_DOMAIN no lock would prevent a
        // recursion.
        if self.completions.tx.cq.is_none() && self.completions.rx.cq.is_none() {
            return;
        }
        if let Some(unpolled) = self.domain.unpolled.try_lock() {
            unpolled.iter().for_each(|port| port.try_progress());
        }
    }
}
