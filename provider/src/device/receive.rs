// SPDX-License-Identifier: BSD-2-Clause
//! How an endpoint, or a shared context, receives: the settings of its receives, and the conversion
//! of a receive of the application to one of the device.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use ffi::{
    Errno, Result, flags,
    ops::ep::{OpFlags, Recv},
};
use matching::{Key, Source};
use nic::message::{MultiRecv, Receive};

use crate::{attr, device::carried::RecvOp};

/// Flags that a receive may have. `FI_TRANSMIT_COMPLETE` allows a receive to be reported before all
/// threads can see its bytes.
const RECV_FLAGS: u64 = attr::RX_OP_FLAGS | flags::TRANSMIT_COMPLETE | flags::MORE | flags::RECV;

/// Default of `FI_OPT_MIN_MULTI_RECV` in bytes. A multi-receive buffer with less room is returned
/// to the application.
const MIN_MULTI_RECV: usize = 64;

/// Which receives name a source, and whether they must (`FI_DIRECTED_RECV` and related
/// capabilities).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directed {
    pub(crate) tagged: bool,
    msg: bool,
    pub(crate) exact: bool,
}

impl Directed {
    /// Creates the rules for these capabilities. `FI_EXACT_DIRECTED_RECV` alone applies to every
    /// receive.
    pub(crate) fn of(caps: u64) -> Self {
        let exact = caps & flags::EXACT_DIRECTED_RECV != 0;
        let tagged_only = caps & flags::TAGGED_DIRECTED_RECV != 0;
        let msg = caps & flags::DIRECTED_RECV != 0 || exact && !tagged_only;
        Self { tagged: msg || tagged_only, msg, exact }
    }
}

/// The settings of receives. Threads that post receives share them.
#[derive(Debug)]
pub(crate) struct RecvSettings {
    directed: Directed,
    /// Whether tagged receives may take several messages (`FI_TAGGED_MULTI_RECV`).
    tagged_multi: bool,
    /// Operation flags of calls that have no `flags` argument; may change at any time.
    op_flags: AtomicU64,
    /// `FI_OPT_MIN_MULTI_RECV` in bytes; may change at any time.
    min_multi_recv: AtomicUsize,
}

impl RecvSettings {
    /// Creates the settings for these capabilities and default flags.
    pub(crate) fn new(caps: u64, op_flags: u64) -> Self {
        Self {
            directed: Directed::of(caps),
            tagged_multi: caps & flags::TAGGED_MULTI_RECV != 0,
            op_flags: AtomicU64::new(op_flags),
            min_multi_recv: AtomicUsize::new(MIN_MULTI_RECV),
        }
    }

    /// Returns whether tagged receives may take several messages.
    pub(crate) fn has_tagged_multi(&self) -> bool {
        self.tagged_multi
    }

    /// Returns the operation flags of calls that have no `flags` argument.
    #[inline]
    pub(crate) fn op_flags(&self) -> u64 {
        self.op_flags.load(Ordering::Relaxed)
    }

    /// Sets the operation flags of calls that have no `flags` argument (`FI_SETOPSFLAG`). Returns
    /// `EBADFLAGS` for other flags than [`attr::RX_OP_FLAGS`].
    pub(crate) fn set_op_flags(&self, value: u64) -> Result<()> {
        let op_flags = value & !flags::RECV;
        ffi::object::check_flags(op_flags, attr::RX_OP_FLAGS)?;
        self.op_flags.store(op_flags, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the room, in bytes, below which a multi-receive buffer is returned to the
    /// application.
    #[inline]
    pub(crate) fn min_multi_recv(&self) -> usize {
        self.min_multi_recv.load(Ordering::Relaxed)
    }

    /// Sets the room, in bytes, below which a multi-receive buffer is returned to the application.
    pub(crate) fn set_min_multi_recv(&self, len: usize) {
        self.min_multi_recv.store(len, Ordering::Relaxed);
    }

    /// Returns whether a receive names its source, and `EINVAL` if it must
    /// (`FI_EXACT_DIRECTED_RECV`) and does not.
    #[inline]
    pub(crate) fn names_source(&self, op: &Recv) -> Result<bool> {
        let directed = if op.tag.is_some() { self.directed.tagged } else { self.directed.msg };
        if directed && self.directed.exact && op.source == flags::ADDR_UNSPEC {
            return Err(Errno::EINVAL);
        }
        Ok(directed && op.source != flags::ADDR_UNSPEC)
    }

    /// Converts a receive to the form for the device. `work` is the number of the deferred work
    /// that posts the receive, or 0. Returns `EBADFLAGS` for flags that a receive cannot have, and
    /// `EINVAL` for an inject.
    #[inline(always)]
    pub(crate) fn receive(&self, op: &Recv, source: Source, work: u32) -> Result<Receive<RecvOp>> {
        let op_flags = match op.flags {
            OpFlags::Given(given) => {
                ffi::object::check_flags(given, RECV_FLAGS)?;
                given
            }
            OpFlags::Default => self.op_flags(),
            OpFlags::Inject => return Err(Errno::EINVAL),
        };
        let tagged = op.tag.is_some();
        let wanted = op_flags & flags::MULTI_RECV != 0;
        let multi = wanted && (!tagged || self.tagged_multi);
        if wanted && !multi && op.flags != OpFlags::Default {
            return Err(Errno::EBADFLAGS);
        }
        let (bits, ignore) = op.tag.unwrap_or((0, 0));
        let len = op.buffer.len() as u64;
        Ok(Receive {
            key: Key { bits, ignore, source },
            len,
            multi: multi.then(|| MultiRecv { len, used: 0, min: self.min_multi_recv() as u64 }),
            non_contiguous: op.buffer.is_scattered(),
            data: RecvOp {
                buffer: op.buffer.clone(),
                context: op.context,
                report: op_flags & flags::COMPLETION != 0,
                multi,
                work,
            },
        })
    }
}
