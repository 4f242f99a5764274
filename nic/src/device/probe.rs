// SPDX-License-Identifier: BSD-2-Clause
//! Probes: unexpected messages are looked at, dropped or set aside.

use matching::Key;

use super::{AlreadyClaimed, Context, Unexpected};
use crate::latency::Operation;
use crate::message::Envelope;
use crate::trace::Op;

impl<R: Clone, M> Context<R, M> {
    /// The oldest unexpected message that matches, left in place.
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

    /// Takes the oldest unexpected message that matches out of the queue and drops its bytes
    /// (`FI_DISCARD`).
    pub fn discard(&mut self, key: &Key) -> Option<(Envelope, M)> {
        self.note(|| Op::Discard(*key));
        self.take_unexpected(key).map(|taken| (taken.envelope, taken.message))
    }

    /// Sets the oldest unexpected message that matches aside under a context
    /// (`FI_PEEK | FI_CLAIM`); no other receive can get it.
    ///
    /// # Errors
    /// The context has one already.
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

    /// The message set aside under a context (`FI_CLAIM`).
    pub fn claimed(&mut self, context: u64) -> Option<(Envelope, M)> {
        self.claimed.remove(&context).map(|taken| (taken.envelope, taken.message))
    }

    /// A peek; if it finds a message, that is the receive of this message as well, which
    /// `MPI_Mrecv` does not post.
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
