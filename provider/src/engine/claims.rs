// SPDX-License-Identifier: BSD-2-Clause
//! The claims of senders over the network whose names were not inserted when they first sent. A
//! claim can be checked once the name is inserted, even if its sender is gone by then.

use channel::net::secret::Claim;

/// Number of claims from which on those that are no longer needed are looked for.
const MANY: usize = 64;

/// A sender that has sent before its name was inserted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unnamed {
    /// Its number on the network.
    pub(super) number: u32,
    pub(super) peer: u32,
    /// The peer that receives name if they are to match its messages.
    pub(super) source: u32,
    /// The epoch of its messages.
    pub(super) epoch: u32,
    pub(super) claim: Claim,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Claims {
    of: Vec<Unnamed>,
    /// Number of claims at which [`Self::retain`] is due.
    many: usize,
}

impl Default for Claims {
    fn default() -> Self {
        Self { of: Vec::new(), many: MANY }
    }
}

impl Claims {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub(super) fn add(&mut self, sender: Unnamed) {
        self.of.push(sender);
    }

    /// Removes and returns the senders whose sources `is_named` selects.
    pub(super) fn take_named(&mut self, is_named: impl Fn(u32) -> bool) -> Vec<Unnamed> {
        self.of.extract_if(.., |it| is_named(it.source)).collect()
    }

    /// Returns whether there are so many claims that [`Self::retain`] is due.
    pub(super) fn are_many(&self) -> bool {
        self.of.len() >= self.many
    }

    /// Returns the number of claims.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.of.len()
    }

    /// Forgets the claims of the senders that `is_needed` does not select.
    pub(super) fn retain(&mut self, is_needed: impl Fn(&Unnamed) -> bool) {
        self.of.retain(is_needed);
        self.many = MANY.max(2 * self.of.len());
    }
}
