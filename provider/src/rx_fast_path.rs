// SPDX-License-Identifier: BSD-2-Clause
//! The rx fast path: receives that are posted without the lock of the endpoint's engine. One thread
//! at a time posts; other threads may send, poll or copy meanwhile ([`crate::device::matcher`]).

use std::sync::Arc;

use ffi::{Errno, Result, ops::ep::Recv};
use matching::Source;
use nic::message::{Envelope, Grant};

use crate::{
    av::AddressVector,
    device::{
        carried::{Kept, RecvOp},
        receive::RecvSettings,
        shared::Shared,
    },
    engine::Engine,
    wait::callers::UnlockedStarts,
};

/// The state of an enabled endpoint that a post needs.
#[derive(Debug)]
pub(crate) struct RxFastPath {
    device: Arc<Shared>,
    av: Arc<AddressVector>,
    settings: Arc<RecvSettings>,
    unlocked_starts: Arc<UnlockedStarts>,
    /// See [`Engine::arrival_of_nic`].
    pub(crate) arrival_of_nic: bool,
}

impl RxFastPath {
    /// Creates the rx fast path. Returns `None` if one thread at a time uses the endpoint, or if
    /// receives belong to a shared context. Also returns `None` for a context of a scalable
    /// endpoint, which may close and open again with other receive settings.
    pub(crate) fn of(engine: &Engine) -> Option<Self> {
        let device = engine.rx.device.own();
        let device = device.filter(|_| engine.domain.locked && !engine.is_context)?;
        Some(Self {
            device: Arc::clone(device),
            av: Arc::clone(engine.peers.av.as_ref()?),
            settings: Arc::clone(&engine.rx.settings),
            unlocked_starts: engine.idle.callers.unlocked_starts(),
            arrival_of_nic: engine.arrival_of_nic,
        })
    }

    /// Posts a receive that is not a probe. `deliver` and the result are those of [`Shared::post`].
    ///
    /// # Errors
    /// Those of `fi_recv(3)`.
    pub(crate) fn recv(
        &self,
        op: &Recv,
        deliver: impl FnMut(Grant<RecvOp>, &Envelope, Kept) -> bool,
    ) -> Result<Option<u32>> {
        self.unlocked_starts.start();
        let tagged = op.tag.is_some();
        let source = match self.settings.names_source(op)? {
            true => self.av.source(op.source).map(Source::new).ok_or(Errno::EINVAL)?,
            false => Source::ANY,
        };
        let mut receive = self.settings.receive(op, source, 0)?;
        #[cfg(test)]
        crate::panic_tests::PanicAt::FastPost.reached();
        self.device.post(tagged, &mut receive, deliver)
    }
}
