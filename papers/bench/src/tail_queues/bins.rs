// SPDX-License-Identifier: BSD-2-Clause
//! A list of receives or of messages, divided into bins with one lock each (the paper's section 3).
//! While one thread searches a bin, another thread can search the next bin.
//!
//! ```text
//! position     4          5          6                    a ring of bins by position
//! bin       [ c, d ]   [ e, f ]   [ g, h, i, ... ]        oldest elements first
//!             ^ head                ^ last: elements are added only here
//!
//! walk:
//!     for position = head, head + 1, ...:
//!         lock the bin of the position
//!         if the position of this bin has changed: all its elements were taken; next
//!         if it has a match: take it, unlock, return it
//!         if it is not the last: unlock; next (an empty head makes the next one the head)
//!         end of the list: run the caller's closure, with the last bin locked
//!         if the last bin is full and the next bin of the ring is before the head:
//!             the next bin becomes the last; new elements go there
//! ```
//!
//! The paper does not specify how a thread moves from bin to bin, nor how the first bin is
//! refilled. Here a thread holds no lock between two bins, so it could miss an element that moves
//! to a bin behind it. Therefore **no element ever moves to another bin**. A bin that is not the
//! last only loses elements, so bins that a thread has passed have no match for it. An empty bin is
//! reused with a new position, by which a late thread recognises the reuse. Only the owner of the
//! last bin waits for another bin, and the owner of that bin waits for none. Hence there is no
//! deadlock.
//!
//! Rejected: lock coupling, with elements that move to the first bin. The locks run closures, and
//! every step would wait for the thread that searches the next bin.

use super::lock::{Apart, Lock, Locks, Mark};
use matching::{Element, Queues};

/// The division of a list into bins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binning {
    bins: u32,
    elements: usize,
}

/// Invalid numbers for a [`Binning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bins} bins of {elements} elements: expected 1, 2, 4, ... bins of 1 element or more")]
pub struct BadBinning {
    bins: u32,
    elements: usize,
}

impl Binning {
    /// One bin: one thread at a time searches the list.
    pub const OFF: Self = Self { bins: 1, elements: usize::MAX };

    /// The paper's bins: one for the first 50 elements, one for the others.
    pub const PAPER: Self = Self { bins: 2, elements: 50 };

    /// Divides a list into `bins` bins. If the last bin has `elements` elements, the next one
    /// begins.
    ///
    /// # Errors
    /// If `bins` is not a power of two, or `elements` is 0.
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
    /// Elements to be added at the end of the list. Empty except while `walk` adds them.
    incoming: Vec<Element>,
}

type LockedBin<Q, L> = Apart<<L as Locks>::Lock<Bin<Q>>>;

/// A list in bins: see the module documentation.
pub(super) struct Bins<Q: Queues + Send, L: Locks> {
    /// Bins before this position have no elements and never get any.
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

    /// Searches the bins, oldest elements first, until `look` returns a result, and returns this
    /// result. At the end of the list, calls `end`, which puts elements to be added into an empty
    /// vector, and returns its result.
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
                    // Earlier bins may still have elements, so only the head advances the head.
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

    /// Adds the incoming elements to the last bin, and to new bins after it.
    fn add(&self, bin: &mut Bin<Q>) {
        let mut incoming = std::mem::take(&mut bin.incoming);
        self.fill(bin, &mut incoming);
        bin.incoming = incoming;
    }

    fn fill(&self, bin: &mut Bin<Q>, incoming: &mut Vec<Element>) {
        let room = self.elements.saturating_sub(bin.queue.len());
        let next = bin.position + 1;
        // Only the owner of a bin moves the head past that bin. This thread owns all bins from the
        // one in `walk` to the last one, so the head is not past them.
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

    /// Returns the tokens of all elements, oldest first.
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
