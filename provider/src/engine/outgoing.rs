// SPDX-License-Identifier: BSD-2-Clause
//! The options of a call that sends a message.

use channel::wire::{Flags, Header, Kind};
use ffi::{
    Result, flags,
    ops::ep::{OpFlags, Send},
};

use crate::sizes::{Class, Sizes};

const SEND_FLAGS: u64 = crate::attr::TX_OP_FLAGS
    | flags::REMOTE_CQ_DATA
    | flags::MORE
    | flags::FENCE
    | flags::MSG
    | flags::TAGGED
    | flags::SEND;

/// Messages of up to this many times `FI_TCAM_EAGER_SIZE` go through a buffer while buffers are
/// fast to fill (`channel/src/shm/eager_policy.rs`).
pub(crate) const EAGER_AT_TIMES: usize = 4;

/// The options of a message to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// Whether its success is reported.
    pub(crate) report: bool,
    pub(crate) inject: bool,
    /// Whether the receiver acknowledges the message.
    pub(crate) ack: bool,
    /// Whether it waits for earlier operations.
    pub(crate) fence: bool,
}

impl Outgoing {
    /// The options of `op`, on an endpoint with the default flags `op_flags`, which may be bound
    /// for `selective` completion and has these `sizes`.
    ///
    /// # Errors
    /// `EBADFLAGS`, and `EMSGSIZE` for a message that is too long.
    #[inline(always)]
    pub(crate) fn of(op: &Send, op_flags: u64, selective: bool, sizes: &Sizes) -> Result<Self> {
        let (op_flags, silent) = match op.flags {
            OpFlags::Default => (op_flags, false),
            OpFlags::Given(given) => {
                ffi::object::only(given, SEND_FLAGS)?;
                (given, false)
            }
            OpFlags::Inject => (flags::INJECT, true),
        };
        let inject = op_flags & flags::INJECT != 0;
        let (class, len) = (Class::of_message(op), op.buffer.len());
        sizes.check(class, len, if inject { len } else { 0 })?;
        Ok(Self {
            report: !silent && (!selective || op_flags & flags::COMPLETION != 0),
            inject,
            ack: !silent && op_flags & (flags::DELIVERY_COMPLETE | flags::MATCH_COMPLETE) != 0,
            fence: op_flags & flags::FENCE != 0,
        })
    }

    /// The header of the message.
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
