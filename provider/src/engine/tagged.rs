// SPDX-License-Identifier: BSD-2-Clause
//! Probes (`fi_tagged(3)`): receive calls with `FI_PEEK`, `FI_CLAIM` or `FI_DISCARD`. They examine,
//! set aside or drop unexpected messages.
//!
//! | flags           | what happens                                            |
//! |-----------------|---------------------------------------------------------|
//! | PEEK            | completion of the oldest match, or an error `FI_ENOMSG` |
//! | PEEK, CLAIM     | the same, and the message is set aside                  |
//! | PEEK, DISCARD   | the same, and the message is dropped                    |
//! | CLAIM           | receives the message that was set aside                 |
//! | CLAIM, DISCARD  | drops the message that was set aside                    |
//!
//! A message is set aside under the context of the operation (`op_context`).

use channel::wire::{Flags, Kind};
use ffi::{
    Errno, Result, flags,
    ops::cq::{Completion, Failure},
    ops::ep::{OpFlags, Recv},
};
use matching::{Key, Source};
use nic::device::{AlreadyClaimed, Device};
use nic::message::{Envelope, Grant};

use super::{completions::Completions, peers::Peers, rx::Rx};
use crate::device::carried::{About, Body, Kept, RecvOp};

/// Flags that make a receive a probe.
const PROBE_FLAGS: u64 = flags::PEEK | flags::CLAIM | flags::DISCARD;

/// Returns the flags of a receive if it is a probe, and otherwise `None`.
#[inline]
pub(crate) fn probe_flags(op: &Recv) -> Option<u64> {
    match op.flags {
        OpFlags::Given(given) if given & PROBE_FLAGS != 0 => Some(given),
        _ => None,
    }
}

/// The kind of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    Peek,
    Claim,
    Discard,
    /// Receives or drops a claimed message, which an earlier probe has set aside.
    TakeClaimed,
}

/// A message that a probe found.
#[derive(Debug)]
pub(crate) struct ProbeResult {
    envelope: Envelope,
    flags: Flags,
    data: u64,
    /// Number, in a shared receive context, of the endpoint that received the message; otherwise 0.
    pub(crate) holder: u32,
    /// The message, if the probe takes it out of the queue to drop it.
    dropped: Option<Kept>,
}

impl Probe {
    /// Returns the kind of a probe with these flags.
    ///
    /// # Errors
    /// `EBADFLAGS` for flags that a probe does not have, or without a tag; `EINVAL` for
    /// combinations that are not in the table of the module.
    pub(crate) fn read(op: &Recv, op_flags: u64) -> Result<Self> {
        ffi::object::check_flags(op_flags, PROBE_FLAGS | flags::COMPLETION | flags::MORE)?;
        if op.tag.is_none() {
            return Err(Errno::EBADFLAGS);
        }
        match (op_flags & flags::PEEK, op_flags & flags::CLAIM, op_flags & flags::DISCARD) {
            (0, 0, _) => Err(Errno::EINVAL),
            (0, ..) => Ok(Self::TakeClaimed),
            (_, 0, 0) => Ok(Self::Peek),
            (_, _, 0) => Ok(Self::Claim),
            (_, 0, _) => Ok(Self::Discard),
            _ => Err(Errno::EINVAL),
        }
    }

    /// Searches for the oldest message that matches. Sets it aside for [`Self::Claim`], and takes
    /// it out of the queue for [`Self::Discard`]. Returns `None` if no message matches, and for
    /// [`Self::TakeClaimed`].
    ///
    /// # Errors
    /// `EBUSY` if the context has a claimed message already, which would be lost.
    pub(crate) fn find(
        self,
        device: &mut Device<RecvOp, Kept>,
        op: &Recv,
        source: Source,
    ) -> Result<Option<ProbeResult>> {
        let Some((bits, ignore)) = op.tag else { return Ok(None) };
        let key = Key { bits, ignore, source };
        let found = |(envelope, kept): (Envelope, &Kept)| ProbeResult {
            envelope,
            flags: kept.about.flags,
            data: kept.about.data,
            holder: kept.holder,
            dropped: None,
        };
        Ok(match self {
            Self::Peek => device.tagged.peek(&key).map(found),
            Self::Claim => {
                let claimed = device.tagged.claim(&key, op.context.0 as u64);
                claimed.map_err(|AlreadyClaimed| Errno::EBUSY)?.map(found)
            }
            Self::Discard => device.tagged.discard(&key).map(|(envelope, kept)| {
                let found = found((envelope, &kept));
                ProbeResult { dropped: Some(kept), ..found }
            }),
            Self::TakeClaimed => None,
        })
    }
}

impl Rx {
    /// Reports the message that a probe found, or the error `ENOMSG` if it found none. If the probe
    /// drops the message, answers the sender.
    pub(crate) fn probed(
        &self,
        peers: &mut Peers,
        completions: &mut Completions,
        op: &Recv,
        found: Option<ProbeResult>,
    ) {
        // The probe may be deferred work, which ends now.
        completions.work_done(completions.work(), found.is_none());
        let mut completion = Completion {
            context: op.context,
            flags: flags::RECV | flags::TAGGED,
            tag: op.tag.map_or(0, |(bits, _)| bits),
            source: flags::ADDR_UNSPEC,
            ..Default::default()
        };
        let Some(ProbeResult { envelope, flags: message_flags, data, dropped, .. }) = found else {
            completions.rx.fail(Failure { completion, overflow: 0, errno: Errno::ENOMSG });
            return;
        };
        if let Some(kept) = dropped {
            drop_kept(peers, &kept);
        }
        completion.len = envelope.len as usize;
        completion.tag = envelope.bits;
        completion.data = data;
        completion.source = peers.source_address(envelope.source);
        if message_flags.contains(Flags::DATA) {
            completion.flags |= flags::REMOTE_CQ_DATA;
        }
        if let Some(cq) = &completions.rx.cq {
            cq.complete(completion);
        }
    }

    /// Gives a claimed message to its receive or, with `FI_DISCARD`, drops it.
    pub(crate) fn give_claimed(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        op: &Recv,
        op_flags: u64,
        (envelope, kept): (Envelope, Kept),
    ) {
        let report = op_flags & flags::COMPLETION != 0;
        let data = RecvOp {
            buffer: op.buffer.clone(),
            context: op.context,
            report,
            multi: false,
            work: completions.work(),
        };
        let grant = Grant { data, offset: 0, last: true };
        if op_flags & flags::DISCARD != 0 {
            drop_kept(peers, &kept);
            let nothing = Envelope { len: 0, ..envelope };
            let about = About { flags: kept.about.flags - Flags::CHECKED, ..kept.about };
            self.complete(peers, completions, &grant, &nothing, about, 0);
        } else {
            self.deliver_kept(peers, completions, grant, &envelope, kept);
        }
    }
}

/// Answers the sender of a message that is dropped, if the sender waits for an answer.
fn drop_kept(peers: &mut Peers, kept: &Kept) {
    let is_awaited = kept.about.flags.contains(Flags::ACK) || matches!(kept.body, Body::Remote(_));
    if is_awaited && kept.epoch == peers.epoch(kept.peer) {
        peers.answer(kept.peer, Kind::Done, kept.about.op, 0);
    }
}
