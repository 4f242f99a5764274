// SPDX-License-Identifier: BSD-2-Clause
//! Transmit and receive contexts that open and close while the endpoint lives that they work on
//! ([`crate::context`]).

use channel::wire::Kind;
use ffi::{Errno, flags};

use crate::{
    device::directed::Directed,
    engine::{Engine, ops::SendOp, transfers::LongCopy},
};

impl Engine {
    /// What receives can do from now on.
    pub(crate) fn set_receives(&mut self, caps: u64) {
        self.directed = Directed::of(caps);
        self.tagged_multi = caps & flags::TAGGED_MULTI_RECV != 0;
    }

    /// Drops the receives that are posted, of which nobody is told, and those `at_once`, too, that
    /// long messages are coming into. Whether none is left.
    pub(crate) fn drop_receives(&mut self, at_once: bool) -> bool {
        for tagged in [true, false] {
            while let Some(receive) = self.device.lock_own().context(tagged).cancel(|_| true) {
                self.works.try_remove((receive.data.work as usize).wrapping_sub(1));
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
                self.answer(peer, Kind::Failed, op, Errno::ECONNABORTED.get() as u64);
            }
        }
        self.copying == 0 && self.copies.is_empty() && self.transfers.is_empty()
    }

    /// Drops what the transmit context has under way, of which nobody is told. Its memory is the
    /// application's again once nobody [reaches](Engine::is_reached) it.
    pub(crate) fn drop_transmits(&mut self) {
        let of_message = |op: &SendOp| op.kind.is_message() && !op.buffer.is_copied();
        let dropped: Vec<_> = self
            .streams
            .iter()
            .filter(|stream| self.sends.find(stream.op, of_message) == Some(true))
            .map(|stream| (stream.peer, stream.transfer))
            .collect();
        let (ended, first) = self.sends.end_all();
        self.own.void_before(first);
        for op in ended {
            self.ended(&op);
            self.works.try_remove((op.work as usize).wrapping_sub(1));
        }
        let Self { streams, sends, .. } = self;
        streams.retain(|stream| sends.find(stream.op, |_| ()).is_some());
        for (peer, transfer) in dropped {
            self.answer(peer, Kind::Dropped, transfer, 0);
        }
    }

    /// Makes progress on the contexts of the domain that nobody polls, unless another thread does.
    pub(crate) fn look_after_unpolled(&self) {
        // This may be one of them: under FI_THREAD_DOMAIN no lock would keep it from coming here twice.
        if self.tx.cq.is_none() && self.rx.cq.is_none() {
            return;
        }
        if let Some(unpolled) = self.domain.unpolled.try_lock() {
            unpolled.iter().for_each(|port| port.try_progress());
        }
    }
}
