// SPDX-License-Identifier: BSD-2-Clause
//! Receives of a receive context that opens and closes while its endpoint lives
//! ([`crate::context`]).

use channel::wire::Kind;
use ffi::{Errno, flags};

use crate::{
    device::directed::Directed,
    engine::{Engine, transfers::LongCopy},
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
}
