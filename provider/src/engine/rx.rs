// SPDX-License-Identifier: BSD-2-Clause
//! Posts the receives of an endpoint, matches arriving messages to them, and completes them when
//! the bytes of the messages are in their buffers.
//!
//! Long messages stay in the sender's memory until a receive matches them. The receiver then copies
//! the message, or requests it in parts. A message in parts is a *transfer*. The receiver chooses
//! the number of the transfer, which all parts contain.
//!
//! ```text
//! sender                      receiver
//!   Rendezvous (where) ------>  matched
//!                               process_vm_readv: read it            kernel copy
//!   <------------------ Done
//!
//!                               or, if the kernel refuses, or over the network:
//!   <------------------ Pull (transfer, length)
//!   Chunk, Chunk, ... ------->  copy out, free the buffer            copy pipeline
//!   <------------------ Done        over the network only if the sender requested it
//! ```

use std::{collections::HashSet, sync::Arc};

use channel::{
    bytes::{Remote, SharedBytes},
    contract::CopyError,
    net::peer::Landing,
    wire::{Flags, Header, Kind, LONGEST, age_after, number, parts_of},
};
use ffi::{
    Errno, OpContext, Result, flags,
    ops::{
        cq::{Completion, Failure},
        ep::Recv,
    },
};
use matching::Source;
use nic::message::{Envelope, Grant, Post, Receive};
use slab::Slab;

use super::{
    check::is_message_damaged,
    completions::Completions,
    copies::{Copies, LongRecv, MessageCopy, UNLOCKED},
    peers::Peers,
};
use crate::device::{
    carried::{About, Body, Kept, RecvOp},
    flow::Flow,
    matcher::Matching,
    receive::RecvSettings,
};

/// A receive that gets its message in parts.
#[derive(Debug)]
struct Transfer {
    recv: LongRecv,
    /// Distinguishes this transfer from earlier ones with the same key in [`Rx::transfers`]. Parts
    /// of those may still come.
    age: u64,
    wanted: usize,
    received: usize,
    /// Until this is dropped, parts from the network are written directly to the buffer. `None`
    /// over other transports.
    landing: Option<Landing>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Rx {
    pub(crate) device: Matching,
    pub(crate) settings: Arc<RecvSettings>,
    /// State of `FI_TCAM_OVERFLOW=flow-control`.
    flow: Flow,
    transfers: Slab<Transfer>,
    /// Age of the next transfer.
    next_age: u64,
    pub(crate) copies: Copies,
    /// Checksum of the payload of the slot that is being handled, if the slot has checksums.
    slot_check: u32,
    /// Whether several threads may use the endpoint.
    locked: bool,
}

impl Rx {
    pub(super) fn new(device: Matching, settings: RecvSettings, flow: Flow, locked: bool) -> Self {
        Self {
            device,
            settings: Arc::new(settings),
            flow,
            transfers: Slab::new(),
            next_age: 0,
            copies: Copies::default(),
            slot_check: 0,
            locked,
        }
    }

    /// Posts a receive in a thread that holds the engine. This is inlined, like the functions that it
    /// calls. Otherwise the operation would be copied from call to call, and each copy would wait for
    /// the store buffer.
    ///
    /// # Errors
    /// `EOPNOTSUPP` if receives belong to a shared context, those of [`RecvSettings::receive`], and
    /// those of [`Flow::hold_post`] if the table has no room for the receive.
    #[inline(always)]
    pub(super) fn post(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        op: &Recv,
        source: Source,
    ) -> Result<()> {
        let tagged = op.tag.is_some();
        let mut receive = self.settings.receive(op, source, completions.work())?;
        let mut device = self.device.own().ok_or(Errno::EOPNOTSUPP)?.lock();
        device.check_ids()?;
        let mut posted = device.context(tagged).post(&mut receive);
        if let Post::Pending = posted {
            device.posted(tagged);
            return Ok(());
        }
        loop {
            match posted {
                Post::Pending => return Ok(()),
                Post::HeldBack => device.hold_post(tagged)?,
                Post::Matched { grant, envelope, message, again } => {
                    device.begin(&grant.data, grant.last);
                    self.deliver_kept(peers, completions, grant, &envelope, message);
                    if !again {
                        return Ok(());
                    }
                    device = self.device.lock();
                }
            }
            posted = device.context(tagged).post_anyway(&mut receive);
        }
    }

    /// Gives a kept message to its receive, and answers the sender if it waits for an answer. If
    /// the message is still in the memory of a sender that is gone, the receive fails.
    pub(super) fn deliver_kept(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        grant: Grant<RecvOp>,
        envelope: &Envelope,
        message: Kept,
    ) {
        let Kept { about, peer, epoch, body, .. } = message;
        match body {
            Body::Bytes(bytes) => {
                let to = grant.data.buffer.part(grant.offset as usize, bytes.len());
                let received = to.fill(&bytes);
                self.complete(peers, completions, &grant, envelope, about, received);
                if about.flags.contains(Flags::ACK) && epoch == peers.epoch(peer) {
                    peers.answer(peer, Kind::Done, about.op, 0);
                }
            }
            Body::Remote(remote) => {
                let recv = LongRecv { peer, epoch, grant, envelope: *envelope, about };
                if recv.is_current(peers) {
                    self.fetch(peers, completions, recv, &remote);
                } else {
                    self.fail_long(completions, &recv, Errno::ECONNABORTED);
                }
            }
        }
    }

    /// `fi_cancel`: only posted receives can be cancelled.
    ///
    /// # Errors
    /// `ENOENT` if no posted receive has this context.
    pub(super) fn cancel(
        &mut self,
        completions: &mut Completions,
        context: OpContext,
    ) -> Result<()> {
        for tagged in [true, false] {
            let mut device = self.device.lock();
            let named = |op: &RecvOp| op.context.0 as u64;
            let cancelled = device.context(tagged).cancel_named(context.0 as u64, named);
            if let Some(receive) = cancelled {
                device.begin(&receive.data, true);
                let bits = receive.key.bits;
                self.fail(completions, &receive.data, (tagged, bits), Errno::ECANCELED);
                return Ok(());
            }
        }
        Err(Errno::ENOENT)
    }
}

/// The end of receives.
impl Rx {
    /// Reports the end of a receive that got its message: an error if the message was longer than
    /// the buffer (`ETRUNC`) or is damaged (`ECRC`), and otherwise success.
    #[inline(always)]
    pub(super) fn complete(
        &mut self,
        peers: &Peers,
        completions: &mut Completions,
        grant: &Grant<RecvOp>,
        envelope: &Envelope,
        about: About,
        received: usize,
    ) {
        let (op, message_flags) = (&grant.data, about.flags);
        let mut completion_flags = flags::RECV
            | if message_flags.contains(Flags::TAGGED) { flags::TAGGED } else { flags::MSG };
        if message_flags.contains(Flags::DATA) {
            completion_flags |= flags::REMOTE_CQ_DATA;
        }
        if op.multi && self.device.device().end(op) {
            completion_flags |= flags::MULTI_RECV;
        }
        let completion = Completion {
            context: op.context,
            flags: completion_flags,
            len: received,
            buf: op.buffer.addr() + grant.offset as usize,
            data: about.data,
            tag: envelope.bits,
            source: peers.source_address(envelope.source),
        };
        if received as u64 != envelope.len {
            let overflow = (envelope.len - received as u64) as usize;
            completions.fail_recv(op, Failure { completion, overflow, errno: Errno::ETRUNC });
        } else if message_flags.contains(Flags::CHECKED)
            && is_message_damaged(peers, grant, envelope, about.check)
        {
            completions.fail_recv(op, Failure { completion, overflow: 0, errno: Errno::ECRC });
        } else {
            completions.complete_recv(op, completion);
        }
    }

    /// Reports a receive that failed. `tagged` and `bits` are those of its message or, without a
    /// message, of the receive.
    #[cold]
    fn fail(
        &mut self,
        completions: &mut Completions,
        op: &RecvOp,
        (tagged, bits): (bool, u64),
        errno: Errno,
    ) {
        let mut completion_flags = flags::RECV | if tagged { flags::TAGGED } else { flags::MSG };
        if op.multi && self.device.device().end(op) {
            completion_flags |= flags::MULTI_RECV;
        }
        let completion = Completion {
            context: op.context,
            flags: completion_flags,
            tag: bits,
            source: flags::ADDR_UNSPEC,
            ..Default::default()
        };
        completions.fail_recv(op, Failure { completion, overflow: 0, errno });
    }

    /// Fails a receive of a long message.
    fn fail_long(&mut self, completions: &mut Completions, recv: &LongRecv, errno: Errno) {
        let LongRecv { grant, envelope, about, .. } = recv;
        let message = (about.flags.contains(Flags::TAGGED), envelope.bits);
        self.fail(completions, &grant.data, message, errno);
    }

    /// Drops posted receives without completions. `at_once`: also drops the receives of long
    /// messages, and fails the sends of those messages, except messages that another thread is
    /// copying now. Returns whether the endpoint [is idle](Self::is_idle).
    pub(super) fn drop_receives(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        at_once: bool,
    ) -> bool {
        for tagged in [true, false] {
            for receive in self.device.lock_own().context(tagged).cancel_all(|_| true) {
                completions.forget_work(receive.data.work);
            }
        }
        if at_once {
            for recv in self.take_long() {
                completions.forget_work(recv.grant.data.work);
                if recv.grant.data.multi {
                    self.device.device().end(&recv.grant.data);
                }
                if recv.is_current(peers) {
                    let errno = Errno::ECONNABORTED.get() as u64;
                    peers.answer(recv.peer, Kind::Failed, recv.about.op, errno);
                }
            }
        }
        self.is_idle()
    }

    /// Returns whether no long message is being received, and no copy for a peer's read or write is
    /// due or in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.copies.is_done() && self.transfers.is_empty()
    }

    /// If the endpoint is a member of a shared receive context, fails the context's receives whose
    /// long messages come over this endpoint. The endpoint closes, but the context stays open.
    pub(super) fn end_receives(&mut self, completions: &mut Completions) {
        if self.device.is_shared() {
            for recv in self.take_long() {
                self.fail_long(completions, &recv, Errno::ECONNABORTED);
            }
        }
    }

    /// Removes and returns the receives of long messages, except messages that another thread is
    /// copying now.
    fn take_long(&mut self) -> Vec<LongRecv> {
        let mut receives = self.copies.take_messages();
        let transfers = std::mem::take(&mut self.transfers);
        receives.extend(transfers.into_iter().map(|(_, transfer)| transfer.recv));
        receives
    }

    /// Fails the receives of messages that come in parts from a peer that is gone.
    pub(super) fn forget(&mut self, completions: &mut Completions, peer: u32) {
        let of_peer = self.transfers.iter().filter(|(_, it)| it.recv.peer == peer);
        let keys: Vec<usize> = of_peer.map(|(key, _)| key).collect();
        for key in keys {
            let Transfer { recv, .. } = self.transfers.remove(key);
            self.fail_long(completions, &recv, Errno::ECONNABORTED);
        }
    }

    /// Fails the receives that name a peer that is gone.
    pub(super) fn fail_directed(&mut self, completions: &mut Completions, peer: u32) {
        let source = Source::new(peer);
        for tagged in [true, false] {
            let directed = {
                let mut device = self.device.lock();
                let is_directed = |receive: &Receive<RecvOp>| receive.key.source == source;
                let directed = device.context(tagged).cancel_all(is_directed);
                device.begin_all(directed.iter().map(|receive| &receive.data));
                directed
            };
            for receive in directed {
                let message = (tagged, receive.key.bits);
                self.fail(completions, &receive.data, message, Errno::ECONNABORTED);
            }
        }
    }

    /// Drops the unexpected messages that a peer sent in an epoch, because it was not at the address
    /// that it claimed.
    pub(super) fn drop_messages(&mut self, peer: u32, epoch: u32) {
        let holder = self.device.holder();
        for tagged in [true, false] {
            self.device.lock().context(tagged).drop_unexpected(|_, kept| {
                (kept.holder, kept.peer, kept.epoch) == (holder, peer, epoch)
            });
        }
    }

    /// Returns the peer number and the epoch of each sender of unexpected messages.
    pub(super) fn kept_senders(&mut self) -> HashSet<(u32, u32)> {
        let holder = self.device.holder();
        let mut device = self.device.lock();
        let kept = device.contexts().into_iter().flat_map(|context| context.kept());
        kept.filter(|kept| kept.holder == holder).map(|kept| (kept.peer, kept.epoch)).collect()
    }
}

/// Arriving messages.
impl Rx {
    /// Returns the data in a message's slot that its completion needs besides envelope and bytes.
    #[inline(always)]
    fn about(&self, header: &Header) -> About {
        let Header { flags, data, op, .. } = *header;
        About { flags, data, op, check: self.slot_check }
    }

    /// Handles a message whose bytes have come. Returns whether a receive got it; otherwise it is
    /// kept. This is inlined, like the functions that it calls. Out of line, a message would take
    /// 120 instructions more.
    #[inline(always)]
    pub(super) fn arrive(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        source: u32,
        header: &Header,
        bytes: SharedBytes<'_>,
    ) -> bool {
        let envelope = Envelope { source, bits: header.bits, len: header.len };
        peers.channels.shm.received += 1;
        peers.channels.shm.received_bytes += header.len;
        let (holder, about) = (self.device.holder(), self.about(header));
        let mut device = self.device.lock();
        let context = device.context(header.is_tagged());
        match context.arrive(&envelope) {
            Some(grant) => {
                device.begin(&grant.data, grant.last);
                let buffer = &grant.data.buffer;
                let received = if grant.offset == 0 {
                    bytes.deliver(buffer)
                } else {
                    bytes.deliver(&buffer.part(grant.offset as usize, usize::MAX))
                };
                self.complete(peers, completions, &grant, &envelope, about, received);
                true
            }
            None => {
                let (peer, body) = (peers.sender(header), Body::Bytes(bytes.keep()));
                let epoch = peers.epoch(peer);
                context.keep(envelope, Kept { about, holder, peer, epoch, body });
                if context.holds_back() {
                    self.flow.hold_ring();
                }
                false
            }
        }
    }

    /// Handles a message whose bytes are in its sender's memory: copies them if a receive matches,
    /// and otherwise keeps their location.
    pub(super) fn arrive_remote(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        source: u32,
        header: &Header,
        remote: Remote,
    ) {
        let peer = peers.sender(header);
        let envelope = Envelope { source, bits: header.bits, len: header.len };
        let (holder, about) = (self.device.holder(), self.about(header));
        let epoch = peers.epoch(peer);
        let keep = || Kept { about, holder, peer, epoch, body: Body::Remote(remote) };
        let (grant, holds_back) = self.device.arrive(header.is_tagged(), &envelope, keep);
        if let Some(grant) = grant {
            let recv = LongRecv { peer, epoch, grant, envelope, about };
            self.fetch(peers, completions, recv, &remote);
        } else if holds_back {
            self.flow.hold_ring();
        }
    }

    /// Returns whether messages may have to stay unhandled in the ring or the connection
    /// (`FI_TCAM_OVERFLOW=flow-control`, [`crate::device::flow`]).
    #[inline]
    pub(super) fn holds_ring(&self) -> bool {
        self.flow.holds_ring()
    }

    /// Returns whether the next slot must stay unhandled, because it is a message that no receive
    /// matches and the table has no free entry. If messages need not wait any more, ends the wait.
    #[cold]
    pub(super) fn is_held_back(&mut self, source: u32, header: &Header) -> bool {
        if !is_message(header.kind) {
            return false;
        }
        if self.flow.is_ring_due()
            || !self.device.lock().contexts().iter().any(|context| context.holds_back())
        {
            self.flow.release_ring();
            return false;
        }
        let envelope = Envelope { source, bits: header.bits, len: header.len };
        let mut device = self.device.lock();
        let context = device.context(header.is_tagged());
        context.holds_back() && !context.expects(&envelope)
    }

    /// Notes the checksum of the next slot's payload.
    pub(super) fn set_slot_check(&mut self, check: u32) {
        self.slot_check = check;
    }

    /// Checksum of the payload of the slot that is being handled.
    pub(super) fn slot_check(&self) -> u32 {
        self.slot_check
    }

    /// Fails the posted receive that matches the message in a damaged slot. Returns whether such a
    /// receive was posted.
    pub(super) fn fail_expected(
        &mut self,
        completions: &mut Completions,
        source: u32,
        header: &Header,
    ) -> bool {
        let is_for = |receive: &Receive<RecvOp>| {
            let key = &receive.key;
            (key.bits ^ header.bits) & !key.ignore == 0
                && key.source.get().is_none_or(|named| named == source)
        };
        let tagged = header.is_tagged();
        let mut device = self.device.lock();
        let Some(receive) = device.context(tagged).cancel(is_for) else { return false };
        device.begin(&receive.data, true);
        self.fail(completions, &receive.data, (tagged, header.bits), Errno::ECRC);
        true
    }
}

/// Long messages.
impl Rx {
    /// Copies a matched message from its sender's memory. Queues a copy of [`UNLOCKED`] bytes or
    /// more instead, if it can be made without the lock.
    fn fetch(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        recv: LongRecv,
        remote: &Remote,
    ) {
        let to = recv.buffer(0, usize::try_from(recv.envelope.len).unwrap_or(usize::MAX));
        let wanted = to.len();
        // A copy into a multi-receive buffer is made now, because this message may be the one that
        // returns the buffer.
        let later = self.locked && wanted >= UNLOCKED && !recv.grant.data.multi;
        let copied = match peers.link(recv.peer) {
            Ok(link) => {
                if later && let Some(copier) = link.copier() {
                    let remote = *remote;
                    self.copies.push_message(MessageCopy { copier, remote, to, recv });
                    return;
                }
                link.read(remote, &to, recv.about.op_of_memory())
            }
            Err(errno) => Err(CopyError::Failed(errno)),
        };
        self.fetched(peers, completions, recv, wanted, copied);
    }

    /// Handles the result of a copy of a message that was made without the lock. If the sender was
    /// forgotten meanwhile, the receive fails.
    pub(super) fn message_copied(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        copy: MessageCopy,
        copied: std::result::Result<(), CopyError>,
    ) {
        let MessageCopy { recv, to, .. } = copy;
        if !recv.is_current(peers) {
            return self.fail_long(completions, &recv, Errno::ECONNABORTED);
        }
        let copied = match peers.link(recv.peer) {
            Ok(link) => link.confirm(copied, recv.about.op_of_memory()),
            Err(errno) => Err(CopyError::Failed(errno)),
        };
        self.fetched(peers, completions, recv, to.len(), copied);
    }

    /// Continues after an attempt to copy a long message: completes or fails its receive, or
    /// requests the message in parts.
    fn fetched(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        recv: LongRecv,
        wanted: usize,
        copied: std::result::Result<(), CopyError>,
    ) {
        let LongRecv { peer, about, .. } = recv;
        match copied {
            Ok(()) => {
                let channel = peers.whole_counters(peer);
                channel.received += 1;
                channel.received_bytes += wanted as u64;
                self.complete(peers, completions, &recv.grant, &recv.envelope, about, wanted);
                // In this answer, `len` names the channel: 1 stands for the kernel copy.
                peers.answer(peer, Kind::Done, about.op, 1);
            }
            Err(CopyError::Refused) => self.pull(peers, recv, wanted),
            Err(CopyError::Failed(errno)) => {
                self.fail_long(completions, &recv, errno);
                peers.answer(peer, Kind::Failed, about.op, errno.get() as u64);
            }
        }
    }

    /// Requests a message in parts from its sender, as a new transfer of `wanted` bytes.
    fn pull(&mut self, peers: &mut Peers, recv: LongRecv, wanted: usize) {
        let (peer, op, to) = (recv.peer, recv.about.op, recv.buffer(0, wanted));
        let age = self.next_age;
        self.next_age = age_after(age);
        let key = self.transfers.insert(Transfer { recv, age, wanted, received: 0, landing: None });
        let transfer = number(age, key);
        if let Ok(link) = peers.link(peer) {
            self.transfers[key].landing = link.expect(transfer, &to);
        }
        let header =
            Header { count: 1, data: transfer, len: wanted as u64, ..Header::of(Kind::Pull, op) };
        peers.reply(peer, header);
    }

    /// Handles a part of a message that comes in parts. The bytes of a [`Kind::Landed`] are in the
    /// buffer of the receive already.
    pub(super) fn chunk(
        &mut self,
        peers: &mut Peers,
        completions: &mut Completions,
        from: u32,
        header: &Header,
        payload: SharedBytes<'_>,
    ) {
        let Some(key) = self.transfer(from, header.op) else {
            tracing::debug!("ignored a part of a message that is no longer being received");
            if header.kind == Kind::Chunk {
                // The buffer of the part goes back to the sender.
                drop(peers.get(from).and_then(|link| link.body(header, payload)));
            }
            return;
        };
        let transfer = &mut self.transfers[key];
        let offset = usize::try_from(header.data).unwrap_or(usize::MAX).min(transfer.wanted);
        let room = (header.len as usize).min(transfer.wanted - offset);
        if header.kind == Kind::Landed {
            transfer.received += room;
        } else {
            let link = peers.get(from);
            let Some(body) = link.and_then(|link| link.body(header, payload)) else {
                tracing::error!(
                    "a part of a message lacks bytes: the receive of the message fails"
                );
                let op = transfer.recv.about.op;
                self.end_transfer(completions, from, header.op);
                peers.answer(from, Kind::Failed, op, Errno::EPROTO.get() as u64);
                return;
            };
            let to = transfer.recv.buffer(offset, room);
            transfer.received += body.bytes().first(room).deliver(&to);
        }
        if transfer.received < transfer.wanted {
            return;
        }
        let Transfer { recv, wanted, .. } = self.transfers.remove(key);
        let channel = peers.part_counters(from);
        channel.received += 1;
        channel.received_bytes += wanted as u64;
        self.complete(peers, completions, &recv.grant, &recv.envelope, recv.about, wanted);
        if !peers.uses_net(from) || recv.about.flags.contains(Flags::ACK) {
            peers.answer(from, Kind::Done, recv.about.op, 2);
        }
    }

    /// Returns the key of the transfer with this number; `None` unless it is in progress from this
    /// peer.
    fn transfer(&self, from: u32, transfer: u64) -> Option<usize> {
        let (age, key) = parts_of(transfer);
        let is_it = |it: &Transfer| it.recv.peer == from && it.age == age;
        self.transfers.get(key).is_some_and(is_it).then_some(key)
    }

    /// Fails the receive of a message that comes in parts, unless all parts have come.
    pub(super) fn end_transfer(&mut self, completions: &mut Completions, from: u32, transfer: u64) {
        if let Some(key) = self.transfer(from, transfer) {
            let Transfer { recv, .. } = self.transfers.remove(key);
            self.fail_long(completions, &recv, Errno::ECONNABORTED);
        }
    }
}

/// Returns whether a slot of this kind contains a message or the location of a message.
pub(super) fn is_message(kind: Kind) -> bool {
    matches!(kind, Kind::Inline | Kind::Buffered | Kind::Rendezvous)
}

/// Reads the copy of an injected message in its sender's memory. Returns `None` if that is
/// impossible; the message is then handled like any long one.
#[cold]
pub(super) fn read_copy(
    peers: &mut Peers,
    from: u32,
    header: &Header,
    remote: &Remote,
) -> Option<Box<[u8]>> {
    let len = usize::try_from(header.len).ok().filter(|&len| len <= LONGEST)?;
    peers.link(from).ok()?.read_whole(remote, len).ok()
}
