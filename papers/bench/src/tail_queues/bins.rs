// SPDX-License-Identifier: BSD-2-Clause
//! One of the two lists, in bins that are locked one by one (the paper's section 3): while one
//! thread searches a bin, another one searches the next.
//!
//! ```text
//! position     4          5          6                    a ring of bins by position
//! bin       [ c, d ]   [ e, f ]   [ g, h, i, ... ]        oldest elements first
//!             ^ head                ^ last: only here elements are added
//!
//! walk:
//!     for position = head, head + 1, ...:
//!         lock the bin of the position
//!         if it has another position by now: all its elements were taken; next
//!         if it has a match: take it, unlock, return it
//!         if it is not the last: unlock; next (if it is empty, and the head, the next is the head)
//!         end of the list: what the caller does here, with the last bin locked
//!         if it has so many elements and the next bin of the ring is before the head:
//!             the next bin is the last; new elements go there
//! ```
//!
//! The paper does not say how a thread gets from bin to bin, nor what fills the first one again.
//! Here it holds no lock in between, and could miss an element that moves to a bin behind it. So
//! **no element ever moves to another bin**: a bin that is not the last one only loses elements, and
//! what a thread has passed has no match any more. A bin is used again once it is empty, with a new
//! position, which tells a thread that comes late. Only the owner of the last bin waits for another
//! one, and who has that one waits for none: there is no deadlock.
//!
//! Rejected: lock coupling, with elements that move to the first bin (the locks are closures, and
//! every step would wait for the thread before).

use super::lock::{Apart, Lock, Locks, Mark};
use matching::{Element, Queues};

/// How a list is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binning {
    bins: u32,
    elements: usize,
}

/// Not a [`Binning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bins} bins of {elements} elements: there are 1, 2, 4, ... bins of 1 element or more")]
pub struct BadBinning {
    bins: u32,
    elements: usize,
}

impl Binning {
    /// One bin: a thread searches a list.
    pub const OFF: Self = Self { bins: 1, elements: usize::MAX };

    /// The paper's: one around the first 50 elements, one of the others.
    pub const PAPER: Self = Self { bins: 2, elements: 50 };

    /// So many bins; the next one is begun when the last has so many elements.
    ///
    /// # Errors
    /// If the number of bins is no power of two, or a bin has no element.
    pub const fn new(bins: u32, elements: usize) -> Result<Self, BadBinning> {
        if bins.is_power_of_two() && elements > 0 {
            Ok(Self { bins, elements })
        } else {
            Err(BadBinning { bins, elements })
        }
    }
}

struct Bin<Q> {
    position: u64,
    last: bool,
    queue: Q,
    age: u64,
    /// Elements that are to be added: they come and go with the end of the list.
    incoming: Vec<Element>,
}

type LockedBin<Q, L> = Apart<<L as Locks>::Lock<Bin<Q>>>;

/// See the module.
pub(super) struct Bins<Q: Queues + Send, L: Locks> {
    /// No bin before this position has an element, or ever will.
    head: Apart<L::Mark>,
    ring: Box<[LockedBin<Q, L>]>,
    elements: usize,
}

impl<Q: Queues + Send, L: Locks> Bins<Q, L> {
    pub(super) fn new(binning: Binning, mut make: impl FnMut() -> Q) -> Self {
        let bin = |position: u32| {
            let (position, last) = (u64::from(position), position == 0);
            let bin = Bin { position, last, queue: make(), age: 0, incoming: Vec::new() };
            Apart(L::Lock::new(bin))
        };
        let ring = (0..binning.bins).map(bin).collect();
        Self { head: Apart(Mark::new()), ring, elements: binning.elements }
    }

    fn bin(&self, position: u64) -> &L::Lock<Bin<Q>> {
        &self.ring[position as usize & (self.ring.len() - 1)].0
    }

    /// Goes through the list, oldest elements first, until `look` finds something. At its end,
    /// `end` adds elements to the list that it puts into an empty vector.
    #[inline]
    pub(super) fn walk<R>(
        &self,
        mut look: impl FnMut(&mut Q) -> Option<R>,
        mut end: impl FnMut(&mut Vec<Element>) -> R,
    ) -> R {
        let mut position = self.head.0.get();
        loop {
            let step = self.bin(position).with(|bin| {
                debug_assert!(bin.position >= position, "a bin comes before those that know of it");
                if bin.position != position {
                    return None;
                }
                if let Some(found) = look(&mut bin.queue) {
                    return Some(found);
                }
                if !bin.last {
                    // Those before it may have elements still.
                    if bin.queue.is_empty() && self.head.0.get() == position {
                        self.head.0.raise(position + 1);
                    }
                    return None;
                }
                let result = end(&mut bin.incoming);
                if !bin.incoming.is_empty() {
                    self.add(bin);
                }
                Some(result)
            });
            if let Some(result) = step {
                return result;
            }
            position += 1;
        }
    }

    /// Adds what is incoming to the last bin, and to those that come behind it.
    fn add(&self, bin: &mut Bin<Q>) {
        let mut incoming = std::mem::take(&mut bin.incoming);
        self.fill(bin, &mut incoming);
        bin.incoming = incoming;
    }

    fn fill(&self, bin: &mut Bin<Q>, incoming: &mut Vec<Element>) {
        let room = self.elements.saturating_sub(bin.queue.len());
        let next = bin.position + 1;
        // This thread has the bins from one on that is not empty, and this is behind the head.
        let is_free = next - self.head.0.get() < self.ring.len() as u64;
        if incoming.len() > room && is_free {
            let rest = &mut incoming.split_off(room);
            self.bin(next).with(|bin| {
                debug_assert!(bin.queue.is_empty() && !bin.last, "it is before the head");
                (bin.position, bin.last) = (next, true);
                self.fill(bin, rest);
            });
            bin.last = false;
        }
        bin.push(incoming);
    }

    /// Tokens of all elements, oldest first.
    pub(super) fn tokens(&self) -> Vec<u32> {
        let mut tokens = Vec::new();
        self.walk(
            |queue| {
                tokens.extend(queue.iter().map(|(token, _)| token));
                None
            },
            |_| (),
        );
        tokens
    }
}

impl<Q: Queues> Bin<Q> {
    fn push(&mut self, elements: &mut Vec<Element>) {
        for element in elements.drain(..) {
            self.age += 1;
            self.queue.push(element, self.age);
        }
    }
}
