// SPDX-License-Identifier: BSD-2-Clause
//! A trace asked again: the same operations on a context with another table, engine
//! or overflow model.

use crate::device::{Context, DeviceConfig, DeviceError, Post, Receive};
use crate::report::ContextCounters;
use crate::trace::{Op, Posted};

/// A context that a trace is played to. Receives and messages are numbers: how many
/// were posted, or arrived, before.
#[derive(Debug)]
pub struct Replay {
    context: Context<u64, u64>,
    posts: u64,
    arrivals: u64,
}

impl Replay {
    /// A replay with an empty context.
    ///
    /// # Errors
    /// A table that cannot be made.
    pub fn new(config: &DeviceConfig) -> Result<Self, DeviceError> {
        Ok(Self { context: Context::new(config)?, posts: 0, arrivals: 0 })
    }

    /// Keeps the capacity curves of both queues, from the start.
    pub fn keep_curves(&mut self) {
        self.context.keep_curves();
    }

    /// Does an operation.
    pub fn play(&mut self, op: &Op) {
        match op {
            Op::Post(posted) => {
                let mut receive = self.receive(posted);
                if let Post::HeldBack = self.context.post(&mut receive) {
                    // It was not when it was recorded.
                    self.context.post_anyway(&mut receive);
                }
                self.posts += 1;
            }
            Op::PostAnyway(posted) => {
                self.context.post_anyway(&mut self.receive(posted));
                self.posts += 1;
            }
            Op::Held(posted) => self.context.ask_room(&self.receive(posted)),
            Op::Arrive(envelope) => {
                if self.context.arrive(envelope).is_none() {
                    self.context.keep(*envelope, self.arrivals);
                }
                self.arrivals += 1;
            }
            Op::Peek(key) => {
                self.context.peek(key);
            }
            Op::Take(key) => {
                self.context.discard(key);
            }
            Op::Cancel(number) => {
                self.context.cancel_named(*number, |number| *number);
            }
            Op::Drop(number) => {
                self.context.drop_unexpected(|_, message| message == number);
            }
            Op::Processes(n) => self.context.set_processes(*n),
            Op::Stop(_) => {}
        }
    }

    fn receive(&self, posted: &Posted) -> Receive<u64> {
        Receive {
            key: posted.key,
            multi: posted.multi,
            non_contiguous: posted.non_contiguous,
            data: self.posts,
        }
    }

    /// What the context counted.
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
