// SPDX-License-Identifier: BSD-2-Clause
//! Cancelling receives and dropping unexpected messages.

use super::{Context, Unexpected};
use crate::latency::Operation;
use crate::message::{Envelope, Receive};
use crate::receives::Posted;
use crate::trace::Op;

impl<R: Clone, M> Context<R, M> {
    /// Cancels the earliest posted receive that `which` accepts.
    pub fn cancel(&mut self, which: impl Fn(&Receive<R>) -> bool) -> Option<Receive<R>> {
        let token = self.prq.iter_tokens().find(|&token| which(self.posted.get(token)))?;
        Some(self.withdraw(token))
    }

    /// Cancels the earliest posted receive whose `data` has this name. The time does not depend on
    /// the number of posted receives; `name_of` must always return the same name for a receive.
    pub fn cancel_named(&mut self, name: u64, name_of: impl Fn(&R) -> u64) -> Option<Receive<R>> {
        let prq = &self.prq;
        let token = self.posted.first_named(name, name_of, |token| prq.contains(token))?;
        Some(self.withdraw(token))
    }

    fn withdraw(&mut self, token: u32) -> Receive<R> {
        self.begin();
        self.prq.cancel(token);
        self.end(Operation::Other);
        let Posted { number, receive } = self.posted.remove(token);
        self.note(|| Op::Cancel(number));
        receive
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
