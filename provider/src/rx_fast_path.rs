// SPDX-License-Identifier: BSD-2-Clause
//! The rx fast path: receives that are posted without the lock of the endpoint's engine. One thread
//! at a time posts; others may send, poll or copy meanwhile ([`crate::device::matcher`]).

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use ffi::{Errno, Result, ops::ep::Recv};
use matching::Source;
use nic::message::{Envelope, Grant};

use crate::{
    av::AddressVector,
    device::{
        carried::{Kept, RecvOp},
        directed::Directed,
        receive::{RecvDefaults, receive_of},
        shared::Shared,
    },
    engine::Engine,
    wait::callers::Beside,
};

/// The state of an enabled endpoint that a post needs.
#[derive(Debug)]
pub(crate) struct RxFastPath {
    device: Arc<Shared>,
    av: Arc<AddressVector>,
    directed: Directed,
    tagged_multi: bool,
    /// Flags of receives without flags; may change at any time.
    op_flags: AtomicU64,
    /// Smallest rest of a multi-receive buffer; may change at any time.
    min_multi_recv: AtomicUsize,
    beside: Arc<Beside>,
}

impl RxFastPath {
    /// Creates the rx fast path. Returns `None` if the device is part of the engine, if receives
    /// belong to a shared context, or for a context of a scalable endpoint: it may close and open
    /// again with other receives.
    pub(crate) fn of(engine: &Engine) -> Option<Self> {
        let device = engine.rx.device.own_beside().filter(|_| !engine.is_context)?;
        Some(Self {
            device: Arc::clone(device),
            av: Arc::clone(engine.peers.av.as_ref()?),
            directed: engine.rx.directed,
            tagged_multi: engine.rx.tagged_multi,
            op_flags: AtomicU64::new(engine.completions.rx.op_flags),
            min_multi_recv: AtomicUsize::new(engine.rx.min_multi_recv),
            beside: engine.idle.callers.beside(),
        })
    }

    /// Changes the default flags and the smallest rest of a buffer.
    pub(crate) fn set(&self, op_flags: u64, min_multi_recv: usize) {
        self.op_flags.store(op_flags, Ordering::Relaxed);
        self.min_multi_recv.store(min_multi_recv, Ordering::Relaxed);
    }

    /// Posts a receive; see [`Shared::post`]. `op` has no `FI_PEEK` or the like.
    ///
    /// # Errors
    /// Those of `fi_recv(3)`.
    pub(crate) fn recv(
        &self,
        op: &Recv,
        deliver: impl FnMut(Grant<RecvOp>, &Envelope, Kept) -> bool,
    ) -> Result<Option<u32>> {
        self.beside.start();
        let tagged = op.tag.is_some();
        let source = match self.directed.is_named(op.source, tagged)? {
            true => self.av.source(op.source).map(Source::new).ok_or(Errno::EINVAL)?,
            false => Source::ANY,
        };
        let defaults = RecvDefaults {
            op_flags: self.op_flags.load(Ordering::Relaxed),
            min_multi_recv: self.min_multi_recv.load(Ordering::Relaxed),
            tagged_multi: self.tagged_multi,
            work: 0,
        };
        let mut receive = receive_of(op, defaults, source)?;
        self.device.post(tagged, &mut receive, deliver)
    }
}
