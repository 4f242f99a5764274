// SPDX-License-Identifier: BSD-2-Clause
//! A device whose two queues can be searched by two threads at once: tail queues in front of two
//! matching contexts (Dosanjh, Grant, Schonbein, Bridges, *Tail queues: A multi-threaded matching
//! architecture*, CCPE 2019, section 3). `papers/bench/src/tail_queues/mod.rs`
//! explains why no message is lost.
//!
//! ```text
//! lock   protects
//! UMQL   UMQ: table | host engine of unexpected messages
//! PRQL   PRQ: table | host engine of posted receives
//! TL     the inboxes: UMQT, with messages to be added to the UMQ, and
//!                     PRQT, with receives to be added to the PRQ (a NIC's command queue)
//!
//! post(R):
//!     lock UMQL; empty UMQT (under TL), and add its messages to the UMQ, in order
//!     a message of the UMQ matches R: it goes to R, end
//!     lock TL
//!     no message of UMQT, which may have got messages since then, matches R:
//!         R goes to the end of PRQT
//!     empty UMQT; unlock TL; add its messages to the UMQ, in order
//!     one of these messages matched R: the first that did goes to R
//! arrive(M) is the mirror image of post(R)
//! ```
//!
//! Elements enter the tables in order: each queue has one inbox, which is emptied, oldest element
//! first, before any search that could find its elements. So operations that do not overlap are
//! counted as with one lock. An operation takes effect, and is recorded, while it holds TL or when
//! it finds its match.
//!
//! Probes, cancels and counters use the device as a [`Whole`], an ordinary [`Device`].
//!
//! Rejected: one lock per queue of each context (untagged messages are few), and the paper's lists
//! in bins (the table is in front of them, and its entries are in age order).

use std::{
    collections::VecDeque,
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicBool, Ordering},
};

use matching::{Element, HostEngine, Key, Overflow};
use parking_lot::{Mutex, MutexGuard};

use super::{Context, Device, DeviceError, Unexpected, key_of};
use crate::{
    config::DeviceConfig,
    message::{Envelope, Grant, Post, Receive},
    trace::{Op, Recorder},
};

/// A device whose two queues two threads can search at once; see the module.
pub struct TailDevice<R, M> {
    /// UMQL, with the contexts whose UMQs are used. Their PRQs stay empty.
    messages: Mutex<Device<R, M>>,
    /// PRQL, with the contexts whose PRQs are used. Their UMQs stay empty, except in a [`Whole`].
    receives: Mutex<Device<R, M>>,
    /// TL, with the inboxes of tagged and of untagged messages.
    tail: Mutex<[Tail<R, M>; 2]>,
    /// Hints for tagged and untagged messages.
    hints: [Hints; 2],
    /// Whether lengths of the queues are recorded.
    samples: bool,
}

/// The inboxes of tagged or untagged messages. TL protects them.
struct Tail<R, M> {
    messages: VecDeque<Unexpected<M>>,
    /// Each receive with its number: the number of receives posted before it.
    receives: VecDeque<(u64, Receive<R>)>,
    /// Number of the next post. Posts that found a message in the UMQ are counted only if
    /// operations are recorded.
    posted: u64,
    /// Number of the next arrival; counted like `posted`.
    arrived: u64,
    recorder: Option<Box<dyn Recorder>>,
    /// Posts and arrivals until the lengths of the queues are recorded next.
    until_sample: u64,
}

/// Hints about [`Tail`] that are read without TL.
#[derive(Default)]
struct Hints {
    /// UMQT may be non-empty.
    messages: AtomicBool,
    /// PRQT may be non-empty.
    receives: AtomicBool,
    /// Operations are recorded.
    recorded: AtomicBool,
}

impl<R, M> Tail<R, M> {
    /// Counts an operation. Returns false if a sample of the queue lengths must be taken first.
    fn count_down(&mut self) -> bool {
        let less = self.until_sample.checked_sub(1);
        self.until_sample = less.unwrap_or(0);
        less.is_some()
    }

    /// Records an operation when it takes effect.
    fn record(&mut self, op: &Op) {
        if let Some(recorder) = &mut self.recorder {
            match op.short() {
                Some((head, Key { bits, ignore, source })) => {
                    recorder.short(head, bits, ignore, source);
                }
                None => recorder.record(op),
            }
        }
    }
}

/// An element with the fields of the key, so that the key of a message can be compared with the key
/// of a receive.
fn element(key: &Key) -> Element {
    let Key { bits, ignore, source } = *key;
    Element { bits, ignore, source, token: 0 }
}

impl<R: Clone, M> TailDevice<R, M> {
    /// Returns true if this configuration selects a tail device. Modes that inspect both queues
    /// before each operation (`flow-control`, `sticky`, the timing model) need one lock. So does a
    /// pool, for which only one thread at a time may act as a member.
    #[must_use]
    pub fn is_wanted(config: &DeviceConfig) -> bool {
        let is_apart = matches!(config.prq.overflow, Overflow::Spill | Overflow::Prefix);
        config.prq.engine == HostEngine::TailQueues
            && is_apart
            && config.timing.is_none()
            && config.pool.is_none()
    }

    /// Creates an empty device.
    ///
    /// # Errors
    /// The table cannot be made.
    pub fn new(config: &DeviceConfig) -> Result<Self, DeviceError> {
        let (mut messages, mut receives) = (config.clone(), config.clone());
        messages.prq.entries = 0;
        receives.umq.entries = 0;
        let mut receives = Device::new(&receives)?;
        let tail = receives.contexts().map(|context| Tail {
            messages: VecDeque::new(),
            receives: VecDeque::new(),
            posted: 0,
            arrived: 0,
            recorder: None,
            until_sample: context.until_sample,
        });
        Ok(Self {
            messages: Mutex::new(Device::new(&messages)?),
            receives: Mutex::new(receives),
            tail: Mutex::new(tail),
            hints: <[Hints; 2]>::default(),
            samples: config.prq.depths,
        })
    }

    /// Posts a receive, as [`Context::post`] does. `again` is true for a multi-receive buffer that
    /// is posted again with its remaining room.
    pub fn post(&self, tagged: bool, receive: &mut Receive<R>, again: bool) -> Post<R, M> {
        let (kind, hints) = (usize::from(!tagged), &self.hints[usize::from(!tagged)]);
        let op = |receive: &Receive<R>| match again {
            true => Op::PostAnyway(receive.into()),
            false => Op::Post(receive.into()),
        };
        let Some(mut side) = self.begin(kind, &self.messages) else {
            return match again {
                true => self.whole().context(tagged).post_anyway(receive),
                false => self.whole().context(tagged).post(receive),
            };
        };
        let messages = side.context(tagged);
        if hints.messages.load(Ordering::Acquire) {
            let queued = self.take_messages(kind);
            queued.into_iter().for_each(|message| messages.admit_message(message));
        }
        messages.counters.posts += 1;
        if messages.has_promise {
            messages.count_broken(&receive.key);
        }
        let recorded = hints.recorded.load(Ordering::Relaxed).then(|| op(receive));
        if let Some(found) = messages.umq.search_if_any(&receive.key) {
            if let Some(op) = &recorded {
                let tail = &mut self.tail.lock()[kind];
                tail.record(op);
                tail.posted += 1;
            }
            return messages.give(found.token, receive);
        }
        let mut tails = self.tail.lock();
        let tail = &mut tails[kind];
        if let Some(op) = &recorded {
            tail.record(op);
        }
        let mut queued = tail.messages.iter();
        let matches =
            queued.any(|message| element(&key_of(&message.envelope)).matches(&receive.key));
        let number = tail.posted;
        tail.posted += 1;
        if !matches {
            tail.receives.push_back((number, receive.clone()));
            hints.receives.store(true, Ordering::Release);
        }
        let queued = std::mem::take(&mut tail.messages);
        hints.messages.store(false, Ordering::Relaxed);
        drop(tails);
        queued.into_iter().for_each(|message| messages.admit_message(message));
        let found = if matches { messages.umq.search_again(&receive.key) } else { None };
        found.map_or(Post::Pending, |found| messages.give(found.token, receive))
    }

    /// Handles the arrival of a message: the earliest posted receive that matches gets it. If none
    /// matches, keeps the message that `make` returns, and returns `None` ([`Context::arrive`],
    /// [`Context::keep`]).
    pub fn arrive(
        &self,
        tagged: bool,
        envelope: &Envelope,
        make: impl FnOnce() -> M,
    ) -> Option<Grant<R>> {
        let (kind, hints) = (usize::from(!tagged), &self.hints[usize::from(!tagged)]);
        let key = key_of(envelope);
        let Some(mut side) = self.begin(kind, &self.receives) else {
            let mut whole = self.whole();
            let context = whole.context(tagged);
            let grant = context.arrive(envelope);
            if grant.is_none() {
                context.keep(*envelope, make());
            }
            return grant;
        };
        let receives = side.context(tagged);
        if hints.receives.load(Ordering::Acquire) {
            let queued = self.take_receives(kind);
            queued.into_iter().for_each(|(number, receive)| receives.admit(number, &receive));
        }
        receives.count_arrival(envelope);
        let recorded = hints.recorded.load(Ordering::Relaxed).then_some(Op::Arrive(*envelope));
        if let Some(found) = receives.prq.search(&key) {
            if let Some(op) = &recorded {
                let tail = &mut self.tail.lock()[kind];
                tail.record(op);
                tail.arrived += 1;
            }
            return Some(receives.grant(found.token, envelope));
        }
        // The bytes are copied before TL is taken, so that the other thread does not wait for the
        // copy.
        let message = make();
        let mut tails = self.tail.lock();
        let tail = &mut tails[kind];
        if let Some(op) = &recorded {
            tail.record(op);
        }
        let number = tail.arrived;
        tail.arrived += 1;
        let mut queued = tail.receives.iter();
        let matches = queued.any(|(_, receive)| element(&receive.key).matches(&key));
        if !matches {
            tail.messages.push_back(Unexpected { number, envelope: *envelope, message });
            hints.messages.store(true, Ordering::Release);
        }
        let queued = std::mem::take(&mut tail.receives);
        hints.receives.store(false, Ordering::Relaxed);
        drop(tails);
        queued.into_iter().for_each(|(number, receive)| receives.admit(number, &receive));
        let found = if matches { receives.prq.search_again(&key) } else { None };
        found.map(|found| receives.grant(found.token, envelope))
    }

    /// Locks one side, the messages or the receives, for an operation. Returns `None` if the queue
    /// lengths must be recorded first; the operation then needs the whole device.
    fn begin<'a>(
        &'a self,
        kind: usize,
        side: &'a Mutex<Device<R, M>>,
    ) -> Option<MutexGuard<'a, Device<R, M>>> {
        let guard = side.lock();
        (!self.samples || self.tail.lock()[kind].count_down()).then_some(guard)
    }

    fn take_messages(&self, kind: usize) -> VecDeque<Unexpected<M>> {
        let mut tail = self.tail.lock();
        self.hints[kind].messages.store(false, Ordering::Relaxed);
        std::mem::take(&mut tail[kind].messages)
    }

    fn take_receives(&self, kind: usize) -> VecDeque<(u64, Receive<R>)> {
        let mut tail = self.tail.lock();
        self.hints[kind].receives.store(false, Ordering::Relaxed);
        std::mem::take(&mut tail[kind].receives)
    }

    /// Locks the whole device: until the result is dropped, no thread can post and no message can
    /// arrive.
    pub fn whole(&self) -> Whole<'_, R, M> {
        let mut whole = Whole {
            messages: self.messages.lock(),
            receives: self.receives.lock(),
            tail: self.tail.lock(),
            hints: &self.hints,
        };
        whole.join();
        whole
    }

    /// Like [`whole`](Self::whole), but returns `None` if a lock is held.
    pub fn try_whole(&self) -> Option<Whole<'_, R, M>> {
        let mut whole = Whole {
            messages: self.messages.try_lock()?,
            receives: self.receives.try_lock()?,
            tail: self.tail.try_lock()?,
            hints: &self.hints,
        };
        whole.join();
        Some(whole)
    }
}

impl<R: Clone, M> Context<R, M> {
    /// Adds a receive from the inbox.
    fn admit(&mut self, number: u64, receive: &Receive<R>) {
        self.posted.expect(number);
        self.admit_receive(number, receive);
    }

    /// Swaps UMQs with the other context, and moves that context's counters to this one.
    fn join(&mut self, other: &mut Self) {
        self.exchange(other);
        let counters = std::mem::take(&mut other.counters);
        self.counters.posts += counters.posts;
        self.counters.unexpected += counters.unexpected;
        self.counters.broken_promises.merge_counters(&counters.broken_promises);
    }

    fn exchange(&mut self, other: &mut Self) {
        std::mem::swap(&mut self.umq, &mut other.umq);
        std::mem::swap(&mut self.unexpected, &mut other.unexpected);
    }
}

/// A [`TailDevice`] used as an ordinary [`Device`]. Holds all its locks.
pub struct Whole<'a, R: Clone, M> {
    messages: MutexGuard<'a, Device<R, M>>,
    receives: MutexGuard<'a, Device<R, M>>,
    tail: MutexGuard<'a, [Tail<R, M>; 2]>,
    hints: &'a [Hints; 2],
}

impl<R: Clone, M> Whole<'_, R, M> {
    /// Empties the inboxes, and moves the UMQs and the recorders into the contexts with the PRQs.
    fn join(&mut self) {
        let Self { messages, receives, tail, hints } = self;
        let contexts = receives.contexts().into_iter().zip(messages.contexts());
        for ((context, other), (tail, hints)) in contexts.zip(tail.iter_mut().zip(*hints)) {
            hints.receives.store(false, Ordering::Relaxed);
            hints.messages.store(false, Ordering::Relaxed);
            for (number, receive) in tail.receives.drain(..) {
                context.admit(number, &receive);
            }
            tail.messages.drain(..).for_each(|message| other.admit_message(message));
            context.join(other);
            context.recorder = tail.recorder.take();
            context.until_sample = tail.until_sample;
        }
    }
}

impl<R: Clone, M> Deref for Whole<'_, R, M> {
    type Target = Device<R, M>;

    fn deref(&self) -> &Self::Target {
        &self.receives
    }
}

impl<R: Clone, M> DerefMut for Whole<'_, R, M> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.receives
    }
}

impl<R: Clone, M> Drop for Whole<'_, R, M> {
    fn drop(&mut self) {
        let Self { messages, receives, tail, hints } = self;
        let contexts = receives.contexts().into_iter().zip(messages.contexts());
        for ((context, other), (tail, hints)) in contexts.zip(tail.iter_mut().zip(*hints)) {
            context.exchange(other);
            tail.recorder = context.recorder.take();
            tail.until_sample = context.until_sample;
            tail.posted = context.counters.posts - context.unnumbered_posts;
            tail.arrived = context.counters.arrivals;
            hints.recorded.store(tail.recorder.is_some(), Ordering::Relaxed);
        }
    }
}

impl<R, M> std::fmt::Debug for TailDevice<R, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TailDevice").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tail_tests.rs"]
mod tests;
