// SPDX-License-Identifier: BSD-2-Clause
//! The device: two matching contexts, one for tagged and one for untagged messages. Each context
//! has a posted receive queue (PRQ) and an unexpected message queue (UMQ). Each queue consists of a
//! bounded table and a host engine.
//!
//! Sans-IO: the caller passes posts and arrivals, and copies a message into the buffer that the
//! result names. `R` and `M` are the caller's data of a receive and of a message.
//!
//! ```text
//!   post ----> UMQ search --hit--> (receive, message)      arrive ---> PRQ search --hit--> receive
//!                 `-miss--> PRQ insert                                     `-miss--> UMQ insert (keep)
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use matching::measured::Clock;
use matching::{
    Block, Curve, Element, Key, Offload, Overflow, SearchDepth, Source, TagLayout, Traversals,
};
use slab::Slab;

use crate::config::{DeviceConfig, Promise, Refuse};
use crate::latency::{MatchingUnit, Operation};
use crate::lengths::Lengths;
use crate::message::{Envelope, Grant, Post, Receive};
use crate::receives::{Posted, Receives};
use crate::report::{BrokenPromises, ContextCounters, LiveContext};
use crate::trace::{Op, Recorder, Sent};

struct Unexpected<M> {
    /// Number of messages that arrived before this message.
    number: u64,
    envelope: Envelope,
    message: M,
}

/// One matching context.
pub struct Context<R, M> {
    posted: Receives<R>,
    prq: Offload,
    refuse: Refuse,
    /// True if the device refuses some receives (`refuse` is not the default).
    refuses_some: bool,
    promise: Promise,
    /// True if the program made a promise (`promise` is not the default).
    has_promise: bool,
    /// See [`DeviceConfig::onloads`].
    onloads: bool,
    /// True with `sticky` until the queues leave their tables, which they do together.
    may_leave: bool,
    layout: TagLayout,
    unexpected: Slab<Unexpected<M>>,
    umq: Offload,
    /// Messages that a probe set aside ([`Self::claim`]), by the `context` argument of the probe.
    claimed: HashMap<u64, Unexpected<M>>,
    /// Number of messages claimed or discarded; they count as posts but have no number.
    unnumbered_posts: u64,
    /// The counters of the context, without those of its queues.
    counters: ContextCounters<()>,
    recorder: Option<Box<dyn Recorder>>,
    /// True if the last recorded operation is a receive that was held back.
    last_held_back: bool,
    clock: Option<Arc<dyn Clock>>,
    /// Present if the timing model is on.
    unit: Option<MatchingUnit>,
    /// Posts and arrivals until the queue lengths are recorded next.
    until_sample: u64,
    /// True if message sizes are counted. They are counted if search depths are.
    sizes: bool,
}

impl<R: Clone, M> Context<R, M> {
    /// Creates an empty context.
    ///
    /// # Errors
    /// The table cannot be made.
    pub fn new(config: &DeviceConfig) -> Result<Self, DeviceError> {
        Ok(Self {
            posted: Receives::new(),
            prq: config.queue(&config.prq)?,
            refuse: config.refuse,
            refuses_some: config.refuse != Refuse::default(),
            promise: config.promise,
            has_promise: config.promise != Promise::default(),
            onloads: config.onloads,
            may_leave: config.prq.overflow == Overflow::Sticky,
            layout: config.prq.engine_config.layout,
            unexpected: Slab::new(),
            umq: config.queue(&config.umq)?,
            claimed: HashMap::new(),
            unnumbered_posts: 0,
            recorder: None,
            last_held_back: false,
            counters: ContextCounters {
                lengths: if config.prq.depths { Lengths::sampled() } else { Lengths::default() },
                ..ContextCounters::default()
            },
            clock: config.clock.clone(),
            unit: config.timing.is_some().then(MatchingUnit::default),
            until_sample: if config.prq.depths { 0 } else { u64::MAX },
            sizes: config.prq.depths,
        })
    }

    /// The layout of match bits, which separates collective from point-to-point traffic.
    #[must_use]
    pub fn layout(&self) -> TagLayout {
        self.layout
    }

    /// Keeps the capacity curves of both queues, which must be empty.
    pub fn keep_curves(&mut self) {
        self.prq.keep_curve();
        self.umq.keep_curve();
    }

    /// Records every operation from now on. No operation may have been done before.
    pub fn set_recorder(&mut self, recorder: Box<dyn Recorder>) {
        self.recorder = Some(recorder);
    }

    /// Notes for the recorder when the message of the next [`arrive`](Self::arrive) came; see
    /// [`Recorder::came`].
    pub fn note_came(&mut self, ns: u64, error_ns: u32) {
        if let Some(recorder) = &mut self.recorder {
            recorder.came(ns, error_ns);
        }
    }

    #[inline(always)]
    fn note(&mut self, op: impl Fn() -> Op) {
        if let Some(recorder) = &mut self.recorder {
            // A long operation is built twice, so that a short one never goes through memory.
            match op().short() {
                Some((head, Key { bits, ignore, source })) => {
                    recorder.short(head, bits, ignore, source);
                }
                None => recorder.record(&op()),
            }
            self.last_held_back = false;
        }
    }

    /// Posts a receive. If unexpected messages match, the receive gets the oldest of them;
    /// otherwise it waits in the PRQ. With `flow-control`, it may be held back and is then not
    /// posted.
    ///
    /// The receive is copied only into the PRQ, and the call is always inlined, because a copy of a
    /// value that was just stored field by field stalls until the stores have left the store
    /// buffer.
    #[inline(always)]
    pub fn post(&mut self, receive: &mut Receive<R>) -> Post<R, M> {
        if self.prq.is_flow_controlled() && self.check_held_back(receive) {
            // Repeated attempts are recorded once.
            if !std::mem::replace(&mut self.last_held_back, true) {
                self.note(|| Op::Held((&*receive).into()));
                self.last_held_back = true;
            }
            return Post::HeldBack;
        }
        self.note(|| Op::Post((&*receive).into()));
        self.put(receive)
    }

    /// Counts the receive as held back if [`post`](Self::post) would hold it back.
    pub fn count_if_held_back(&mut self, receive: &Receive<R>) {
        let _ = self.prq.is_flow_controlled() && self.check_held_back(receive);
    }

    /// Posts a receive that is never held back: it goes to the host if the table has no room.
    #[inline(always)]
    pub fn post_anyway(&mut self, receive: &mut Receive<R>) -> Post<R, M> {
        self.note(|| Op::PostAnyway((&*receive).into()));
        self.put(receive)
    }

    #[inline(always)]
    fn put(&mut self, receive: &mut Receive<R>) -> Post<R, M> {
        self.count_operation();
        let number = self.counters.posts - self.unnumbered_posts;
        self.counters.posts += 1;
        self.posted.expect(number);
        if self.has_promise {
            self.count_broken(&receive.key);
        }
        if let Some(found) = self.umq.search_if_any(&receive.key) {
            return self.give(found.token, receive);
        }
        let Key { bits, ignore, source } = receive.key;
        let token = self.posted.insert(number, receive);
        let element = Element { bits, ignore, source, token };
        if self.refuses_some {
            self.offer(element, receive);
        } else {
            self.prq.insert(element);
        }
        if self.may_leave {
            self.leave_together();
        }
        self.end(Operation::Post);
        Post::Pending
    }

    /// Removes the unexpected message that was found.
    #[inline(always)]
    fn take(&mut self, token: u32) -> Unexpected<M> {
        self.umq.remove_matched(token);
        if let Some(recorder) = &mut self.recorder {
            recorder.took();
        }
        self.unexpected.remove(token as usize)
    }

    /// Gives a receive the unexpected message that was found for it.
    #[inline(always)]
    fn give(&mut self, token: u32, receive: &mut Receive<R>) -> Post<R, M> {
        let Unexpected { envelope, message, .. } = self.take(token);
        let grant = receive.grant(envelope.len);
        let again = !grant.last;
        self.end(Operation::Post);
        Post::Matched { grant, envelope, message, again }
    }

    /// Counts a receive that breaks a promise.
    #[cold]
    fn count_broken(&mut self, key: &Key) {
        let Promise { no_any_source, no_any_tag } = self.promise;
        let BrokenPromises { any_source, any_tag } = &mut self.counters.broken_promises;
        *any_source += u64::from(no_any_source && self.layout.is_any_source(key));
        *any_tag += u64::from(no_any_tag && self.layout.is_any_tag(key));
    }

    /// Adds a receive to the PRQ of a device that refuses some receives.
    #[cold]
    fn offer(&mut self, element: Element, receive: &Receive<R>) {
        if self.refuses(receive) {
            return self.prq.refuse(element, Block::Refused);
        }
        if receive.len < self.refuse.below {
            return self.prq.refuse(element, Block::Short);
        }
        if (1..receive.len).contains(&self.refuse.force_above) {
            self.prq.force();
        }
        self.prq.insert(element);
    }

    /// Runs before each post and arrival. Records the lengths of the queues if a sample is due.
    #[inline]
    fn count_operation(&mut self) {
        self.begin();
        if self.until_sample == 0 {
            self.sample();
        }
        self.until_sample -= 1;
    }

    /// Runs before each operation that the timing model charges.
    #[inline]
    fn begin(&mut self) {
        if let Some(unit) = &mut self.unit {
            unit.begin(self.clock.as_ref().map_or(0, |clock| clock.now()));
        }
    }

    /// Runs after an operation that the timing model charges, and after all promotions that it made
    /// possible.
    #[inline]
    fn end(&mut self, operation: Operation) {
        if self.unit.is_some() {
            self.count_latency(operation);
        }
    }

    #[cold]
    fn count_latency(&mut self, operation: Operation) {
        let charged = self.prq.charged().saturating_add(self.umq.charged());
        if let Some(unit) = &mut self.unit {
            unit.end(operation, charged, &mut self.counters.latency);
        }
    }

    #[cold]
    fn sample(&mut self) {
        let us = self.clock.as_ref().map_or(0, |clock| clock.now() / 1000);
        let (prq, umq) = (self.prq.take_recent(), self.umq.take_recent());
        self.until_sample = self.counters.lengths.push(us, prq, umq);
    }

    /// If one queue has left its table for good, makes the other queue leave its table as well
    /// (`sticky`).
    #[cold]
    fn leave_together(&mut self) {
        if self.prq.has_left() || self.umq.has_left() {
            self.prq.leave();
            self.umq.leave();
            self.may_leave = false;
        }
    }

    /// Sets the number of processes: n in the maximum numbers of queues that the host engines make
    /// (`FI_TCAM_K_COL`, `FI_TCAM_K_PNP`).
    pub fn set_processes(&mut self, n: u32) {
        self.note(|| Op::Processes(n));
        self.prq.set_processes(n);
        self.umq.set_processes(n);
    }

    /// Returns true, and counts the receive as held back, if it needs a table entry and none is
    /// free. If unexpected messages move to the host for it, it is counted, too. A receive that the device refuses, or that an unexpected message matches, needs none.
    #[cold]
    fn check_held_back(&mut self, receive: &Receive<R>) -> bool {
        !self.refuses(receive)
            && receive.len >= self.refuse.below
            && self.umq.find(&receive.key).is_none()
            && !self.prq.check_room()
            && !(self.onloads && self.umq.move_to_host() && self.prq.check_room())
    }

    #[cold]
    fn refuses(&self, receive: &Receive<R>) -> bool {
        self.refuse.non_contiguous && receive.non_contiguous
            || self.refuse.any_source && self.layout.is_any_source(&receive.key)
            || self.refuse.any_tag && self.layout.is_any_tag(&receive.key)
    }

    /// Handles the arrival of a message: the earliest posted receive that matches gets it. If no
    /// receive matches, returns `None`, and the caller must [`keep`](Self::keep) the message.
    #[inline(always)]
    pub fn arrive(&mut self, envelope: &Envelope) -> Option<Grant<R>> {
        self.note(|| Op::Arrive(*envelope));
        self.count_operation();
        self.counters.arrivals += 1;
        // The length comes from the peer and may be any value.
        self.counters.bytes = self.counters.bytes.saturating_add(envelope.len);
        if self.sizes {
            self.count_size(envelope.len);
        }
        let found = self.prq.search(&key_of(envelope))?;
        Some(self.grant(found.token, envelope))
    }

    /// Gives a message the posted receive that was found for it.
    #[inline(always)]
    fn grant(&mut self, token: u32, envelope: &Envelope) -> Grant<R> {
        let receive = self.posted.get_mut(token);
        if receive.multi.is_none() {
            self.prq.remove_matched(token);
            self.end(Operation::Arrival);
            return Grant { data: self.posted.take_data(token), offset: 0, last: true };
        }
        let grant = receive.grant(envelope.len);
        if grant.last {
            self.prq.remove_matched(token);
            self.posted.remove(token);
        } else {
            self.prq.keep_matched(token);
        }
        self.end(Operation::Arrival);
        grant
    }

    #[cold]
    fn count_size(&mut self, bytes: u64) {
        self.counters.sizes.record(bytes);
    }

    /// Keeps a message for which [`arrive`](Self::arrive) found no receive.
    pub fn keep(&mut self, envelope: Envelope, message: M) {
        let number = self.counters.arrivals.saturating_sub(1);
        self.counters.unexpected += 1;
        if self.onloads && !self.umq.check_room() && self.umq.move_to_host() {
            // Now there is room, and the message is not held back.
            self.umq.check_room();
        }
        let Key { bits, ignore, source } = key_of(&envelope);
        let token = self.unexpected.insert(Unexpected { number, envelope, message }) as u32;
        self.umq.insert(Element { bits, ignore, source, token });
        if self.may_leave {
            self.leave_together();
        }
        self.end(Operation::Arrival);
    }

    /// Returns true if senders must wait because an unexpected message has no entry in the UMQ's
    /// table (`flow-control`).
    #[inline]
    #[must_use]
    pub fn holds_back(&self) -> bool {
        self.umq.holds_back()
    }

    /// Returns true if a posted receive matches this message.
    #[must_use]
    pub fn expects(&self, envelope: &Envelope) -> bool {
        self.prq.find(&key_of(envelope)).is_some()
    }

    /// Records a message that this endpoint sent. Matching does not depend on it.
    pub fn note_send(&mut self, sent: Sent) {
        let held = self.last_held_back;
        self.note(|| Op::Send(sent));
        self.last_held_back = held;
    }
}

/// Cancelling receives and dropping unexpected messages.
impl<R: Clone, M> Context<R, M> {
    /// Cancels and returns the earliest posted receive that `which` accepts.
    pub fn cancel(&mut self, which: impl Fn(&Receive<R>) -> bool) -> Option<Receive<R>> {
        let token = self.prq.iter_tokens().find(|&token| which(self.posted.get(token)))?;
        Some(self.withdraw(token))
    }

    /// Cancels and returns the earliest posted receive whose `data` has this name. On average, the
    /// time does not depend on the number of posted receives. `name_of` must always return the same
    /// name for a receive.
    pub fn cancel_named(&mut self, name: u64, name_of: impl Fn(&R) -> u64) -> Option<Receive<R>> {
        let prq = &self.prq;
        let token = self.posted.first_named(name, name_of, |token| prq.contains(token))?;
        Some(self.withdraw(token))
    }

    /// Cancels and returns all posted receives that `which` accepts, in the order of posting.
    pub fn cancel_all(&mut self, which: impl Fn(&Receive<R>) -> bool) -> Vec<Receive<R>> {
        let accepted = |&token: &u32| which(self.posted.get(token));
        let tokens: Vec<u32> = self.prq.iter_tokens().filter(accepted).collect();
        tokens.into_iter().map(|token| self.withdraw(token)).collect()
    }

    fn withdraw(&mut self, token: u32) -> Receive<R> {
        self.begin();
        self.prq.cancel(token);
        self.end(Operation::Other);
        let Posted { number, receive } = self.posted.remove(token);
        self.note(|| Op::Cancel(number));
        receive
    }

    /// Returns the unexpected messages, claimed ones included, in any order.
    pub fn kept(&self) -> impl Iterator<Item = &M> {
        let unexpected = self.unexpected.iter().map(|(_, it)| it);
        unexpected.chain(self.claimed.values()).map(|it| &it.message)
    }

    /// Drops the unexpected messages that `which` accepts, claimed ones included. Returns their
    /// number.
    pub fn drop_unexpected(&mut self, which: impl Fn(&Envelope, &M) -> bool) -> usize {
        let claimed = self.claimed.len();
        self.claimed.retain(|_, taken| !which(&taken.envelope, &taken.message));
        let dropped = claimed - self.claimed.len();
        let tokens: Vec<u32> = self
            .umq
            .iter_tokens()
            .filter(|&token| {
                let unexpected = &self.unexpected[token as usize];
                which(&unexpected.envelope, &unexpected.message)
            })
            .collect();
        for &token in &tokens {
            self.begin();
            self.umq.cancel(token);
            self.end(Operation::Other);
            let Unexpected { number, .. } = self.unexpected.remove(token as usize);
            self.note(|| Op::Drop(number));
        }
        dropped + tokens.len()
    }
}

/// Probes: peeking at, discarding and claiming unexpected messages.
impl<R: Clone, M> Context<R, M> {
    /// Returns the oldest unexpected message that matches, if any, and leaves it in place.
    pub fn peek(&mut self, key: &Key) -> Option<(Envelope, &M)> {
        self.note(|| Op::Peek(*key));
        self.counters.peeks += 1;
        self.begin();
        let found = self.umq.peek(key);
        self.end(Operation::Peek);
        let found = found?;
        let unexpected = &self.unexpected[found.token as usize];
        Some((unexpected.envelope, &unexpected.message))
    }

    /// Removes and returns the oldest unexpected message that matches (`FI_DISCARD`).
    pub fn discard(&mut self, key: &Key) -> Option<(Envelope, M)> {
        self.note(|| Op::Discard(*key));
        self.take_unexpected(key).map(|found| (found.envelope, found.message))
    }

    /// Sets aside (claims) the oldest unexpected message that matches (`FI_PEEK | FI_CLAIM`).
    /// `context` is the context argument of the probe. Only [`take_claimed`](Self::take_claimed)
    /// with the same `context` returns the message. `None` if no message matches.
    ///
    /// # Errors
    /// A message is already claimed with this `context`.
    pub fn claim(
        &mut self,
        key: &Key,
        context: u64,
    ) -> Result<Option<(Envelope, &M)>, AlreadyClaimed> {
        if self.claimed.contains_key(&context) {
            return Err(AlreadyClaimed);
        }
        self.note(|| Op::Claim(*key));
        let Some(taken) = self.take_unexpected(key) else { return Ok(None) };
        let claimed = self.claimed.entry(context).insert_entry(taken).into_mut();
        Ok(Some((claimed.envelope, &claimed.message)))
    }

    /// Removes and returns the message that was claimed with this `context` (`FI_CLAIM`); `None` if
    /// there is none.
    pub fn take_claimed(&mut self, context: u64) -> Option<(Envelope, M)> {
        self.claimed.remove(&context).map(|claimed| (claimed.envelope, claimed.message))
    }

    /// A peek that removes the message it finds. If it finds a message, it also counts as the post
    /// of a receive, since `MPI_Mrecv` posts none.
    fn take_unexpected(&mut self, key: &Key) -> Option<Unexpected<M>> {
        self.counters.peeks += 1;
        if self.umq.find(key).is_none() {
            self.begin();
            self.umq.peek(key);
            self.end(Operation::Peek);
            return None;
        }
        self.count_operation();
        self.counters.posts += 1;
        self.unnumbered_posts += 1;
        let found = self.umq.search(key)?;
        let taken = self.take(found.token);
        self.end(Operation::Peek);
        Some(taken)
    }
}

/// Counters and statistics of a context.
impl<R: Clone, M> Context<R, M> {
    /// The capacity curves of PRQ and UMQ, if they are kept.
    #[must_use]
    pub fn curves(&self) -> Option<[&Curve; 2]> {
        Some([self.prq.curve()?, self.umq.curve()?])
    }

    /// The search depths of PRQ and UMQ.
    #[must_use]
    pub fn search_depths(&self) -> [&SearchDepth; 2] {
        [self.prq.search_depth(), self.umq.search_depth()]
    }

    /// Entries that searches of PRQ and UMQ traversed on the host.
    #[must_use]
    pub fn traversals(&self) -> [&Traversals; 2] {
        [self.prq.traversals(), self.umq.traversals()]
    }

    /// Number of elements in the table and on the host, for PRQ and UMQ.
    #[must_use]
    pub fn occupancy(&self) -> [(usize, usize); 2] {
        [self.prq.occupancy(), self.umq.occupancy()]
    }

    /// Number of receives that are posted and not matched.
    #[must_use]
    pub fn posted(&self) -> usize {
        self.prq.len()
    }

    /// Number of unexpected messages that are not matched.
    #[must_use]
    pub fn unexpected(&self) -> usize {
        self.umq.len()
    }

    /// The counters that are cheap to read.
    #[must_use]
    pub fn live(&self) -> LiveContext {
        let ContextCounters { posts, arrivals, unexpected, .. } = self.counters;
        let (prq, umq) = (self.prq.tallies(), self.umq.tallies());
        LiveContext { posts, arrivals, unexpected, prq, umq }
    }

    /// All counters of this context.
    #[must_use]
    pub fn counters(&self) -> ContextCounters {
        let mut counters = self.counters.with_queues(self.prq.counters(), self.umq.counters());
        // Includes the lengths since the last sample.
        counters.lengths.raise_last(self.prq.recent(), self.umq.recent());
        counters
    }
}

/// The key by which a message is looked up.
#[inline(always)]
const fn key_of(envelope: &Envelope) -> Key {
    Key { bits: envelope.bits, ignore: 0, source: Source::new(envelope.source) }
}

/// The matching unit of one endpoint, or of the endpoints that share a receive context.
pub struct Device<R, M> {
    /// Tagged messages.
    pub tagged: Context<R, M>,
    /// Untagged messages.
    pub msg: Context<R, M>,
}

impl<R: Clone, M> Device<R, M> {
    /// Creates an empty device.
    ///
    /// # Errors
    /// The table cannot be made.
    pub fn new(config: &DeviceConfig) -> Result<Self, DeviceError> {
        // Untagged messages belong to the MPI itself, which promises nothing.
        let msg = DeviceConfig { promise: Promise::default(), ..config.clone() };
        Ok(Self { tagged: Context::new(config)?, msg: Context::new(&msg)? })
    }

    /// The context of tagged or untagged messages.
    #[inline]
    pub fn context(&mut self, tagged: bool) -> &mut Context<R, M> {
        if tagged { &mut self.tagged } else { &mut self.msg }
    }

    /// Sets the number of processes in both contexts.
    pub fn set_processes(&mut self, n: u32) {
        self.contexts().into_iter().for_each(|context| context.set_processes(n));
    }

    fn recorders(&mut self) -> impl Iterator<Item = &mut Box<dyn Recorder>> {
        self.contexts().into_iter().filter_map(|context| context.recorder.as_mut())
    }

    /// Informs the recorders that the program polled.
    pub fn polled(&mut self) {
        self.recorders().for_each(|recorder| recorder.polled());
    }

    /// Informs the recorders that no operation was done for a while.
    pub fn idle(&mut self) {
        self.recorders().for_each(|recorder| recorder.idle());
    }

    /// Closes the recorders.
    pub fn end_recording(&mut self) {
        self.recorders().for_each(|recorder| recorder.close());
    }

    /// Both contexts.
    pub fn contexts(&mut self) -> [&mut Context<R, M>; 2] {
        [&mut self.tagged, &mut self.msg]
    }
}

/// A message is already claimed with this `context`; see [`Context::claim`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the context has a claimed message already")]
pub struct AlreadyClaimed;

/// Why a device cannot be made.
#[derive(Debug, thiserror::Error)]
#[error("the match table cannot be made: {0}")]
pub struct DeviceError(#[from] matching::TableError);

impl<R, M> std::fmt::Debug for Context<R, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("posted", &self.prq.len())
            .field("unexpected", &self.unexpected.len())
            .finish_non_exhaustive()
    }
}

impl<R, M> std::fmt::Debug for Device<R, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Device").field("tagged", &self.tagged).field("msg", &self.msg).finish()
    }
}

#[cfg(test)]
#[path = "device_tests.rs"]
mod tests;
