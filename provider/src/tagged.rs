// SPDX-License-Identifier: BSD-2-Clause
//! `fi_tagged(3)`: looking at unexpected messages without receiving them.
//!
//! | flags           | what happens                                            |
//! |-----------------|---------------------------------------------------------|
//! | PEEK            | completion of the oldest match, or an error `FI_ENOMSG` |
//! | PEEK, CLAIM     | the same, and it is set aside under the context         |
//! | PEEK, DISCARD   | the same, and it is dropped                             |
//! | CLAIM           | receives what was set aside under the context           |
//! | CLAIM, DISCARD  | drops what was set aside under the context              |

use ffi::{
    Errno, Result, flags,
    ops::cq::{Completion, Failure},
    ops::ep::Recv,
};
use matching::Key;
use nic::device::{Envelope, Grant};

use crate::{
    channel::{
        segment::Segment,
        wire::{ACK, DATA, Kind},
    },
    engine::{Body, Engine, Kept, RecvOp},
};

impl Engine {
    /// A receive with `FI_PEEK`, `FI_CLAIM` or `FI_DISCARD`.
    pub(crate) fn probe(&mut self, own: &Segment, op: &Recv, op_flags: u64) -> Result<()> {
        ffi::object::only(
            op_flags,
            flags::PEEK | flags::CLAIM | flags::DISCARD | flags::COMPLETION | flags::MORE,
        )?;
        let Some((bits, ignore)) = op.tag else { return Err(Errno::EBADFLAGS) };
        let (claim, discard) = (op_flags & flags::CLAIM != 0, op_flags & flags::DISCARD != 0);
        if op_flags & flags::PEEK == 0 {
            return self.take_claimed(own, op, op_flags, discard);
        }
        if claim && discard {
            return Err(Errno::EINVAL);
        }
        // What lies in the ring has arrived, too.
        self.receive(own);
        let key = Key { bits, ignore, source: self.source_key(op.source)? };
        let context = op.context;
        let found = if claim {
            let claimed = self.device.tagged.claim(&key, context.0 as u64);
            claimed.map(|(envelope, kept)| (envelope, kept.flags, kept.data))
        } else if discard {
            self.device.tagged.discard(&key).map(|(envelope, kept)| {
                self.drop_kept(own, envelope.source, &kept);
                (envelope, kept.flags, kept.data)
            })
        } else {
            let peeked = self.device.tagged.peek(&key);
            peeked.map(|(envelope, kept)| (envelope, kept.flags, kept.data))
        };
        let mut completion = Completion {
            context,
            flags: flags::RECV | flags::TAGGED,
            tag: bits,
            source: flags::ADDR_UNSPEC,
            ..Default::default()
        };
        let Some((envelope, message_flags, data)) = found else {
            self.rx.fail(Failure { completion, overflow: 0, errno: Errno::ENOMSG });
            return Ok(());
        };
        completion.len = envelope.len as usize;
        completion.tag = envelope.bits;
        completion.data = data;
        completion.source = self.address_of(envelope.source);
        if message_flags & DATA != 0 {
            completion.flags |= flags::REMOTE_CQ_DATA;
        }
        if let Some(cq) = &self.rx.cq {
            cq.complete(completion);
        }
        Ok(())
    }

    fn take_claimed(
        &mut self,
        own: &Segment,
        op: &Recv,
        op_flags: u64,
        discard: bool,
    ) -> Result<()> {
        if op_flags & (flags::CLAIM | flags::DISCARD) == flags::DISCARD {
            return Err(Errno::EINVAL);
        }
        let claimed = self.device.tagged.claimed(op.context.0 as u64);
        let (envelope, kept) = claimed.ok_or(Errno::ENOMSG)?;
        let report = !self.rx.selective || op_flags & flags::COMPLETION != 0;
        let data = RecvOp {
            buffer: op.buffer,
            context: op.context,
            report,
            multi: false,
            work: self.work,
        };
        let grant = Grant { data, offset: 0, last: true };
        if discard {
            self.drop_kept(own, envelope.source, &kept);
            let nothing = Envelope { len: 0, ..envelope };
            self.complete_recv(&grant, &nothing, kept.flags, kept.data, 0);
        } else {
            self.deliver_kept(own, grant, &envelope, kept);
        }
        Ok(())
    }

    /// Tells the sender of a message that is dropped that it is done with.
    fn drop_kept(&mut self, own: &Segment, peer: u32, kept: &Kept) {
        if kept.flags & ACK != 0 || matches!(kept.body, Body::Remote(_)) {
            self.answer(own, peer, Kind::Done, kept.op, 0);
        }
    }
}
