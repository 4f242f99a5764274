// SPDX-License-Identifier: BSD-2-Clause
//! Replays a trace: the same operations on a context with another table, engine or overflow model.

use matching::Key;

use crate::config::DeviceConfig;
use crate::device::{Context, DeviceError};
use crate::message::{Envelope, Post, Receive};
use crate::report::ContextCounters;
use crate::trace::{Op, Posted};

/// A context on which a trace is replayed. The data of a receive or message is its number: the
/// number of receives posted, or of messages that arrived, before it.
#[derive(Debug)]
pub struct Replay {
    context: Context<u64, u64>,
    posts: u64,
    arrivals: u64,
}

/// A change of a queue, or an element found in a queue. The element is named by its number: the
/// number of receives posted, or of messages that arrived, before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// A receive entered the PRQ.
    Posted(u64, Key),
    /// A receive left the PRQ, matched or cancelled.
    Matched(u64),
    /// A message entered the UMQ.
    Kept(u64, Envelope),
    /// A message left the UMQ, received or dropped.
    Taken(u64),
    /// An element was found and stays: a message that was peeked at, or a multi-receive buffer that
    /// got a message and has room left.
    Found(u64),
}

impl Replay {
    /// Creates a replay with an empty context.
    ///
    /// # Errors
    /// The table cannot be made.
    pub fn new(config: &DeviceConfig) -> Result<Self, DeviceError> {
        Ok(Self { context: Context::new(config)?, posts: 0, arrivals: 0 })
    }

    /// Keeps the capacity curves of both queues. Call it before the first operation.
    pub fn keep_curves(&mut self) {
        self.context.keep_curves();
    }

    /// Does an operation.
    pub fn play(&mut self, op: &Op) {
        self.play_with(op, |_| {});
    }

    /// Does an operation, and calls `on_change` for each change of a queue and each element found.
    #[inline]
    pub fn play_with(&mut self, op: &Op, mut on_change: impl FnMut(Change)) {
        match op {
            Op::Post(posted) | Op::PostAnyway(posted) => {
                let mut receive = self.receive(posted);
                let mut done = match op {
                    Op::Post(_) => self.context.post(&mut receive),
                    _ => self.context.post_anyway(&mut receive),
                };
                if let Post::HeldBack = done {
                    // The receive was not held back when it was recorded.
                    done = self.context.post_anyway(&mut receive);
                }
                on_change(match done {
                    Post::Matched { message, .. } => Change::Taken(message),
                    Post::Pending | Post::HeldBack => Change::Posted(self.posts, posted.key),
                });
                self.posts += 1;
            }
            Op::Held(posted) => self.context.count_if_held_back(&self.receive(posted)),
            Op::Arrive(envelope) => {
                match self.context.arrive(envelope) {
                    Some(grant) if grant.last => on_change(Change::Matched(grant.data)),
                    Some(grant) => on_change(Change::Found(grant.data)),
                    None => {
                        self.context.keep(*envelope, self.arrivals);
                        on_change(Change::Kept(self.arrivals, *envelope));
                    }
                }
                self.arrivals += 1;
            }
            Op::Peek(key) => {
                if let Some((_, number)) = self.context.peek(key) {
                    on_change(Change::Found(*number));
                }
            }
            Op::Claim(key) | Op::Discard(key) => {
                if let Some((_, number)) = self.context.discard(key) {
                    on_change(Change::Taken(number));
                }
            }
            Op::Cancel(number) => {
                if self.context.cancel_named(*number, |number| *number).is_some() {
                    on_change(Change::Matched(*number));
                }
            }
            Op::Drop(number) => {
                if self.context.drop_unexpected(|_, message| message == number) > 0 {
                    on_change(Change::Taken(*number));
                }
            }
            Op::Processes(n) => self.context.set_processes(*n),
            Op::Send(_) | Op::Stop(_) => {}
        }
    }

    fn receive(&self, posted: &Posted) -> Receive<u64> {
        Receive {
            key: posted.key,
            len: posted.len,
            multi: posted.multi,
            non_contiguous: posted.non_contiguous,
            data: self.posts,
        }
    }

    /// The counters of the context.
    #[must_use]
    pub fn counters(&self) -> ContextCounters {
        self.context.counters()
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context<u64, u64> {
        &self.context
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
