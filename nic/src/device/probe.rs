// SPDX-License-Identifier: BSD-2-Clause
//! Probes: peeking at, discarding and claiming unexpected messages.

use matching::Key;

use super::{AlreadyClaimed, Context, Unexpected};
use crate::latency::Operation;
use crate::message::Envelope;
use crate::trace::Op;

impl<R: Clone, M> Context<R, M> {
    /// Returns the oldest unexpected message that matches, and leaves it in place.
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

    /// Takes the oldest unexpected message that matches out of the queue (`FI_DISCARD`).
    pub fn discard(&mut self, key: &Key) -> Option<(Envelope, M)> {
        self.note(|| Op::Discard(*key));
        self.take_unexpected(key).map(|taken| (taken.envelope, taken.message))
    }

    /// Sets the oldest unexpected message that matches aside under a context (`FI_PEEK |
    /// FI_CLAIM`). No other receive can get it.
    ///
    /// # Errors
    /// The context already has a claimed message.
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

    /// Returns the message that was set aside under a context (`FI_CLAIM`).
    pub fn claimed(&mut self, context: u64) -> Option<(Envelope, M)> {
        self.claimed.remove(&context).map(|taken| (taken.envelope, taken.message))
    }

    /// A peek that takes the message it finds. If it finds one, it also counts as the post of the
    /// receive, since `MPI_Mrecv` posts none.
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
        self.taken += 1;
        let found = self.umq.search(key)?;
        self.umq.remove_matched(found.token);
        self.end(Operation::Peek);
        Some(self.unexpected.remove(found.token as usize))
    }
}
