// SPDX-License-Identifier: BSD-2-Clause
//! The options of a call that sends a message, and the route of the message's bytes.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use channel::wire::{Flags, Header, Kind, LONGEST};
use ffi::{
    Result, flags,
    ops::ep::{OpFlags, Send},
};

use nic::params::Params;

use crate::{
    attr::TX_OP_FLAGS,
    sizes::{OpClass, OpSizes},
};

const SEND_FLAGS: u64 = TX_OP_FLAGS
    | flags::REMOTE_CQ_DATA
    | flags::MORE
    | flags::FENCE
    | flags::MSG
    | flags::TAGGED
    | flags::SEND;

/// Over shared memory, messages of up to this many times `FI_TCAM_EAGER_SIZE` go through a buffer
/// while buffers are fast to fill (`channel/src/shm/eager_policy.rs`).
const EAGER_AT_TIMES: usize = 4;

/// How the bytes of a message are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The sender copies them at once into a slot or a buffer, or gives them to the connection of
    /// the network.
    Eager,
    /// Like `Eager`, if that is faster than a copy by the receiver. Only over shared memory.
    IfQuick,
    /// They stay in local memory until the receiver copies them or requests them in parts.
    Rendezvous,
}

/// Maximum lengths in bytes of messages that take the route [`Route::Eager`] or [`Route::IfQuick`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct EagerSizes {
    /// `FI_TCAM_EAGER_SIZE`.
    pub(crate) size: usize,
    /// Longest message that takes the route [`Route::Eager`] over every transport of the endpoint.
    pub(crate) any: usize,
    shm: usize,
    if_quick: usize,
    net: usize,
}

impl EagerSizes {
    pub(crate) fn new(params: &Params, has_net: bool) -> Self {
        let (size, net) = (params.eager_size, params.net_eager_size);
        let shm = size.min(LONGEST);
        let any = if has_net { shm.min(net) } else { shm };
        Self { size, any, shm, if_quick: (EAGER_AT_TIMES * size).min(LONGEST), net }
    }

    /// Returns how a message of `len` bytes is sent, over the network (`is_net`) or to a peer of
    /// this host.
    #[inline(always)]
    pub(crate) fn route(&self, len: usize, is_net: bool) -> Route {
        let eager = if is_net { self.net } else { self.shm };
        if len <= eager {
            Route::Eager
        } else if !is_net && len <= self.if_quick {
            Route::IfQuick
        } else {
            Route::Rendezvous
        }
    }
}

/// Limits of the copies of injected messages for which no buffer is free.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyLimits {
    /// Number of operations in progress at which no more messages are copied.
    pub(crate) operations: usize,
    /// Maximum number of bytes of all copies.
    pub(crate) bytes: usize,
    /// Time without a free buffer after which receivers are assumed to compute. A receiver that
    /// makes progress, or that waits for a core, returns a buffer sooner.
    pub(crate) patience: Duration,
}

impl CopyLimits {
    /// An endpoint that counts copies as many messages as its peers accept short ones
    /// (`channel/src/shm/overflow.rs`), because a NIC would not hold up their sender. To copy each
    /// of them at once would take a third of the message rate if the receiver makes progress.
    fn new(params: &Params) -> Self {
        if params.takes_counts() {
            Self { operations: 65_536, bytes: 64 << 20, patience: Duration::from_micros(50) }
        } else {
            Self { operations: 1024, bytes: 1024 * LONGEST, patience: Duration::from_millis(1) }
        }
    }
}

/// The settings of transmits. Threads that send share them.
#[derive(Debug)]
pub(crate) struct TxSettings {
    /// Operation flags of calls that have no `flags` argument; may change at any time.
    op_flags: AtomicU64,
    pub(crate) sizes: OpSizes,
    pub(crate) eager: EagerSizes,
    pub(crate) copies: CopyLimits,
    /// Whether messages have checksums.
    pub(crate) checks: bool,
}

impl TxSettings {
    pub(crate) fn new(params: &Params, op_flags: u64, has_net: bool) -> Self {
        let eager = EagerSizes::new(params, has_net);
        Self {
            op_flags: AtomicU64::new(op_flags),
            sizes: OpSizes::offered(eager.size),
            eager,
            copies: CopyLimits::new(params),
            checks: params.check.is_on(),
        }
    }

    /// Returns the operation flags of calls that have no `flags` argument.
    #[inline]
    pub(crate) fn op_flags(&self) -> u64 {
        self.op_flags.load(Ordering::Relaxed)
    }

    /// Sets the operation flags of calls that have no `flags` argument (`FI_SETOPSFLAG`).
    ///
    /// # Errors
    /// `EBADFLAGS` for flags that a transmit cannot have.
    pub(crate) fn set_op_flags(&self, value: u64) -> Result<()> {
        let op_flags = value & !flags::TRANSMIT;
        ffi::object::check_flags(op_flags, TX_OP_FLAGS)?;
        self.op_flags.store(op_flags, Ordering::Relaxed);
        Ok(())
    }
}

/// The options of a message to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// Whether its success is reported.
    pub(crate) report: bool,
    pub(crate) inject: bool,
    /// Whether the send completes only when the receiver has acknowledged the message
    /// (`FI_DELIVERY_COMPLETE`, `FI_MATCH_COMPLETE`).
    pub(crate) ack: bool,
    /// Whether the message must wait for earlier operations at the peer (`FI_FENCE`).
    pub(crate) fence: bool,
}

impl Outgoing {
    /// Returns the options of `op` on an endpoint with these `settings`. `selective`: the
    /// endpoint's transmits are bound for selective completion.
    ///
    /// # Errors
    /// `EBADFLAGS` for flags that a message cannot have, `EMSGSIZE` if the message is too long.
    #[inline(always)]
    pub(crate) fn of(op: &Send, selective: bool, settings: &TxSettings) -> Result<Self> {
        let (class, len) = (OpClass::of_message(op), op.buffer.len());
        Self::read(op.flags, SEND_FLAGS, (class, len, len), selective, settings)
    }

    /// Returns the options of an operation with the flags `op_flags`. Of these, it may have those
    /// in `allowed`. The third argument is the class of the operation, its length in bytes, and how
    /// many bytes are sent to the peer. See [`Self::of`].
    ///
    /// # Errors
    /// Those of [`Self::of`].
    #[inline(always)]
    pub(super) fn read(
        op_flags: OpFlags,
        allowed: u64,
        (class, len, sent): (OpClass, usize, usize),
        selective: bool,
        settings: &TxSettings,
    ) -> Result<Self> {
        let (op_flags, silent) = match op_flags {
            OpFlags::Default => (settings.op_flags(), false),
            OpFlags::Given(given) => {
                ffi::object::check_flags(given, allowed)?;
                (given, false)
            }
            OpFlags::Inject => (flags::INJECT, true),
        };
        let inject = op_flags & flags::INJECT != 0;
        settings.sizes.check(class, len, if inject { sent } else { 0 })?;
        Ok(Self {
            report: !silent && (!selective || op_flags & flags::COMPLETION != 0),
            inject,
            ack: !silent && op_flags & (flags::DELIVERY_COMPLETE | flags::MATCH_COMPLETE) != 0,
            fence: op_flags & flags::FENCE != 0,
        })
    }

    /// Returns the header of the message for [`Kind::Inline`]. The transport changes the kind if it
    /// sends the message in another way.
    #[inline(always)]
    pub(crate) fn header(&self, op: &Send) -> Header {
        let mut message_flags = Flags::empty();
        message_flags.set(Flags::TAGGED, op.tag.is_some());
        message_flags.set(Flags::DATA, op.data.is_some());
        message_flags.set(Flags::ACK, self.ack);
        Header {
            kind: Kind::Inline,
            flags: message_flags,
            peer: 0,
            count: 0,
            bits: op.tag.unwrap_or(0),
            data: op.data.unwrap_or(0),
            len: op.buffer.len() as u64,
            op: 0,
        }
    }
}
