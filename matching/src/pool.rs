// SPDX-License-Identifier: BSD-2-Clause
//! A pool of table entries that several endpoints share, as on a NIC whose list entries belong to
//! all processes of the host. If one member takes many entries, the other members may get only the
//! entries that they have reserved.
//!
//! The pool consists of a few words that the members share, within one process ([`LocalPool`]) or
//! in memory of several processes. A member may die at any instruction and must leave consistent
//! words. So every change is one compare-and-swap of the pool's word. That word also contains the
//! number of entries that the changing member then holds. The member that makes the next change
//! first copies this number to the word of the member that made the last change (helping, as in
//! Herlihy, "Wait-free synchronization", 1991).
//!
//! ```text
//! state   = taken | promised | member, after | version     the word of the pool
//! word[m] = sequence | after                               the word of member m
//! promised: entries that are reserved and not taken
//! after:    0 for no member, otherwise the number of entries that the member holds, plus one
//!
//! change(m):
//!   again: s <- state
//!          finish(s)
//!          s' <- s with (taken, promised) changed, m, word[m].after changed, version + 1
//!          if not cas(state, s, s'): again
//!          until word[m].after = s'.after: cas(word[m], w, (w.sequence + 1, s'.after))
//! finish(s):
//!   w <- word[s.member]
//!   if w.after != s.after and state = s: cas(word[s.member], w, (w.sequence + 1, s.after))
//! ```
//!
//! The sequence makes the compare-and-swap of a late `finish` fail. The version makes it unlikely,
//! but not impossible, that the same state recurs between a member's read and its change. This
//! member would then replace a state that it has not finished. So a member always writes its own
//! changes to its word, even if the state has changed by then. A change can be lost only if its
//! member is killed between the change of the state and the write to its word.
//!
//! Rejected: a count of free entries next to the numbers that the members hold (a member killed
//! between the two updates leaves them inconsistent for good), and a lock (its owner may be
//! stopped).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::counters::Block;

/// The reason why a pool gives no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The member holds its maximum share.
    Share,
    /// No entry is free, or the free entries are reserved by others.
    Empty,
    /// The words are not those of a pool: they were overwritten.
    Damaged,
}

impl From<Refusal> for Block {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Share => Self::PoolShare,
            Refusal::Empty | Refusal::Damaged => Self::PoolEmpty,
        }
    }
}

/// Source of the entries of a queue's table. Dropping it returns all entries that were taken.
pub trait EntryPool: fmt::Debug + Send + Sync {
    /// Takes an entry.
    ///
    /// # Errors
    /// The reason why no entry is available.
    fn take(&self) -> Result<(), Refusal>;

    /// Returns an entry that was taken.
    fn give_back(&self);

    /// Returns true if more than half of all entries are taken.
    fn is_half_taken(&self) -> bool;
}

/// The share of a member in a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Entries that no other member can take.
    pub reserved: u32,
    /// Maximum number of entries that the member may hold.
    pub max: u32,
}

/// A word that members share: an atomic integer of the standard library or, in tests, of loom.
pub trait Word {
    /// Loads the value, with acquire ordering.
    fn get(&self) -> u64;

    /// Sets the word to `new` if it is `current`. Returns true if it was.
    fn replace(&self, current: u64, new: u64) -> bool;
}

impl Word for AtomicU64 {
    #[inline]
    fn get(&self) -> u64 {
        self.load(Ordering::Acquire)
    }

    #[inline]
    fn replace(&self, current: u64, new: u64) -> bool {
        self.compare_exchange(current, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

/// The words that the members of a pool share; zero at the start.
pub trait PoolWords {
    /// Type of the words.
    type Word: Word;

    /// The word of the pool.
    fn state(&self) -> &Self::Word;

    /// The word of a member. Any number must give a word, because a damaged state may contain any
    /// number.
    fn member(&self, number: u16) -> &Self::Word;
}

/// Maximum number of entries in a pool.
pub const MAX_ENTRIES: u32 = 65_536;
/// Maximum number of members of a pool.
pub const MAX_MEMBERS: u16 = 1024;

const COUNT_BITS: u32 = 17;
const MEMBER_BITS: u32 = 10;
const VERSION_BITS: u32 = 64 - 3 * COUNT_BITS - MEMBER_BITS;

/// The unpacked word of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PoolState {
    taken: u32,
    promised: u32,
    member: u16,
    after: u32,
    version: u8,
}

impl PoolState {
    fn unpack(word: u64) -> Self {
        let mut rest = word;
        let mut field = |bits: u32| {
            let value = rest & ((1_u64 << bits) - 1);
            rest >>= bits;
            value
        };
        Self {
            taken: field(COUNT_BITS) as u32,
            promised: field(COUNT_BITS) as u32,
            after: field(COUNT_BITS) as u32,
            member: field(MEMBER_BITS) as u16,
            version: field(VERSION_BITS) as u8,
        }
    }

    fn pack(self) -> u64 {
        let version = u64::from(self.version) & ((1 << VERSION_BITS) - 1);
        let mut word = version << MEMBER_BITS | u64::from(self.member);
        for count in [self.after, self.promised, self.taken] {
            word = word << COUNT_BITS | u64::from(count);
        }
        word
    }
}

/// The accounting of a pool.
#[derive(Debug)]
pub struct Ledger<W> {
    words: W,
    entries: u32,
}

impl<W: PoolWords> Ledger<W> {
    /// Creates the ledger of a pool of `entries`, at most [`MAX_ENTRIES`].
    pub fn new(words: W, entries: u32) -> Self {
        Self { words, entries: entries.min(MAX_ENTRIES) }
    }

    /// The words.
    pub fn words(&self) -> &W {
        &self.words
    }

    /// Number of entries that members hold.
    ///
    /// # Errors
    /// [`Refusal::Damaged`].
    pub fn taken(&self) -> Result<u32, Refusal> {
        Ok(self.read()?.1.taken)
    }

    /// Returns true if members hold more than half of all entries; false for a damaged pool.
    pub fn is_half_taken(&self) -> bool {
        self.taken().is_ok_and(|taken| taken > self.entries / 2)
    }

    /// Adds a member that holds nothing. The reserves of all members must not exceed the entries.
    /// Only one thread at a time may act for a member.
    ///
    /// # Errors
    /// [`Refusal::Damaged`], also if the number is already in use.
    pub fn join(&self, number: u16, share: Share) -> Result<(), Refusal> {
        self.change(number, |state, after| match after {
            0 => Ok((PoolState { promised: state.promised + share.reserved, ..state }, 1)),
            _ => Err(Refusal::Damaged),
        })
    }

    /// Returns all that a member holds and reserves; does nothing if the number is not a member.
    /// Any process may call this for a member that died, but only one at a time.
    ///
    /// # Errors
    /// [`Refusal::Damaged`].
    pub fn leave(&self, number: u16, share: Share) -> Result<(), Refusal> {
        self.change(number, |state, after| {
            let Some(held) = after.checked_sub(1) else { return Ok((state, 0)) };
            let promise = share.reserved.saturating_sub(held);
            let taken = state.taken.checked_sub(held).ok_or(Refusal::Damaged)?;
            let promised = state.promised.checked_sub(promise).ok_or(Refusal::Damaged)?;
            Ok((PoolState { taken, promised, ..state }, 0))
        })
    }

    /// Takes an entry: one that the member has reserved, or one that no member has reserved.
    ///
    /// # Errors
    /// The reason why no entry is available.
    pub fn take(&self, number: u16, share: Share) -> Result<(), Refusal> {
        self.change(number, |state, after| {
            let held = after.checked_sub(1).ok_or(Refusal::Damaged)?;
            if held >= share.max {
                return Err(Refusal::Share);
            }
            let own = held < share.reserved;
            let not_for_it = if own { 0 } else { state.promised };
            if state.taken + not_for_it >= self.entries {
                return Err(Refusal::Empty);
            }
            let promised = state.promised.checked_sub(u32::from(own)).ok_or(Refusal::Damaged)?;
            Ok((PoolState { taken: state.taken + 1, promised, ..state }, after + 1))
        })
    }

    /// Returns an entry to the pool.
    ///
    /// # Errors
    /// [`Refusal::Damaged`], also if the member holds none.
    pub fn give_back(&self, number: u16, share: Share) -> Result<(), Refusal> {
        self.change(number, |state, after| {
            if after < 2 {
                return Err(Refusal::Damaged);
            }
            let own = u32::from(after - 2 < share.reserved);
            let taken = state.taken.checked_sub(1).ok_or(Refusal::Damaged)?;
            Ok((PoolState { taken, promised: state.promised + own, ..state }, after - 1))
        })
    }

    fn change(
        &self,
        number: u16,
        change: impl Fn(PoolState, u32) -> Result<(PoolState, u32), Refusal>,
    ) -> Result<(), Refusal> {
        loop {
            let (seen, state) = self.read()?;
            self.finish(seen, state)?;
            let after = self.after(self.words.member(number).get())?;
            let (next, after) = match change(state, after) {
                Ok(next) => next,
                // The state changed before the member's word was read, so the two do not belong
                // together.
                Err(_) if self.words.state().get() != seen => continue,
                Err(refusal) => return Err(refusal),
            };
            if next.promised > self.entries || after > self.entries + 1 {
                return Err(Refusal::Damaged);
            }
            let next =
                PoolState { member: number, after, version: next.version.wrapping_add(1), ..next };
            if self.words.state().replace(seen, next.pack()) {
                return self.write_down(number, after);
            }
        }
    }

    fn read(&self) -> Result<(u64, PoolState), Refusal> {
        let word = self.words.state().get();
        let state = PoolState::unpack(word);
        let sound = state.taken <= self.entries
            && state.promised <= self.entries
            && state.after <= self.entries + 1;
        if sound { Ok((word, state)) } else { Err(Refusal::Damaged) }
    }

    /// Copies the number of entries in `state` to the word of the member that made the last change,
    /// unless that word already contains it.
    fn finish(&self, seen: u64, state: PoolState) -> Result<(), Refusal> {
        let member = self.words.member(state.member);
        let word = member.get();
        if self.after(word)? != state.after && self.words.state().get() == seen {
            // Another member may have been faster.
            member.replace(word, following(word, state.after));
        }
        Ok(())
    }

    /// Writes the result of a change to the member's word. Only the thread that made the change
    /// calls this, because no other thread knows that the change is the member's last one.
    fn write_down(&self, number: u16, after: u32) -> Result<(), Refusal> {
        let member = self.words.member(number);
        loop {
            let word = member.get();
            if self.after(word)? == after || member.replace(word, following(word, after)) {
                return Ok(());
            }
        }
    }

    fn after(&self, word: u64) -> Result<u32, Refusal> {
        let after = word as u32;
        if after <= self.entries + 1 { Ok(after) } else { Err(Refusal::Damaged) }
    }
}

/// The word of a member after a change.
fn following(word: u64, after: u32) -> u64 {
    (word >> 32).wrapping_add(1) << 32 | u64::from(after)
}

/// Words of a single process.
#[derive(Debug, Default)]
struct LocalWords {
    state: AtomicU64,
    members: Vec<AtomicU64>,
}

impl PoolWords for LocalWords {
    type Word = AtomicU64;

    fn state(&self) -> &AtomicU64 {
        &self.state
    }

    fn member(&self, number: u16) -> &AtomicU64 {
        &self.members[usize::from(number) % self.members.len()]
    }
}

/// A pool within one process.
#[derive(Clone, Debug)]
pub struct LocalPool {
    ledger: Arc<Ledger<LocalWords>>,
    /// The reserve of each member, by number.
    reserved: Arc<Mutex<Vec<Option<u32>>>>,
}

/// The reserves of all members exceed the entries, or there are too many members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pool has no room for another member that reserves {reserved} entries")]
pub struct Overbooked {
    /// Entries that the new member would reserve.
    pub reserved: u32,
}

impl LocalPool {
    /// Creates a pool of `entries`, at most [`MAX_ENTRIES`].
    #[must_use]
    pub fn new(entries: u32) -> Self {
        let members = (0..MAX_MEMBERS).map(|_| AtomicU64::new(0)).collect();
        let words = LocalWords { state: AtomicU64::new(0), members };
        Self { ledger: Arc::new(Ledger::new(words, entries)), reserved: Arc::default() }
    }

    /// Adds a member.
    ///
    /// # Errors
    /// [`Overbooked`].
    pub fn join(&self, share: Share) -> Result<LocalMember, Overbooked> {
        let overbooked = Overbooked { reserved: share.reserved };
        let mut reserved = self.reserved.lock();
        let all = reserved.iter().flatten().sum::<u32>().saturating_add(share.reserved);
        let free = reserved.iter().position(Option::is_none).unwrap_or(reserved.len());
        let number = u16::try_from(free).ok().filter(|&number| number < MAX_MEMBERS);
        let number = number.filter(|_| all <= self.ledger.entries).ok_or(overbooked)?;
        self.ledger.join(number, share).map_err(|_| overbooked)?;
        let members = reserved.len().max(free + 1);
        reserved.resize(members, None);
        reserved[free] = Some(share.reserved);
        Ok(LocalMember { pool: self.clone(), number, share })
    }

    /// Number of entries that members hold; all entries if the pool is damaged.
    #[must_use]
    pub fn taken(&self) -> u32 {
        self.ledger.taken().unwrap_or(self.ledger.entries)
    }
}

/// A member of a [`LocalPool`].
#[derive(Debug)]
pub struct LocalMember {
    pool: LocalPool,
    number: u16,
    share: Share,
}

impl EntryPool for LocalMember {
    fn take(&self) -> Result<(), Refusal> {
        self.pool.ledger.take(self.number, self.share)
    }

    fn give_back(&self) {
        let given = self.pool.ledger.give_back(self.number, self.share);
        debug_assert_eq!(given, Ok(()), "nothing was taken");
    }

    fn is_half_taken(&self) -> bool {
        self.pool.ledger.is_half_taken()
    }
}

impl Drop for LocalMember {
    fn drop(&mut self) {
        let left = self.pool.ledger.leave(self.number, self.share);
        debug_assert_eq!(left, Ok(()), "only members write to the words");
        self.pool.reserved.lock()[usize::from(self.number)] = None;
    }
}

#[cfg(test)]
#[path = "pool_loom_tests.rs"]
mod loom_tests;

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
