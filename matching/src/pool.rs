// SPDX-License-Identifier: BSD-2-Clause
//! A pool of table entries that several endpoints draw from, as on a NIC whose
//! list entries belong to all processes of the host: who takes many leaves none
//! to its neighbours, but for what each has reserved.
//!
//! All of it is a few words that the members share, in one process ([`LocalPool`])
//! or in memory of several. A member that dies anywhere must leave words that add
//! up, so every change is one compare-and-swap of one word that also says what the
//! member that made it holds from then on; who comes next writes that down for it
//! before anything else (helping, as in Herlihy, "Wait-free synchronization", 1991).
//!
//! ```text
//! state   = taken | promised | member, after | version     promised = reserved and not taken
//! word[m] = sequence | after                               after    = 0: no member, else held + 1
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
//! The sequence makes a late `finish` fail. The version only makes it unlikely that a
//! state comes back while somebody looks, who then changes it without having finished what
//! is in it. So a member writes its own changes down whatever the state is by then, and no
//! more than the last change of one killed at that instant is forgotten.
//!
//! Rejected: a count of the free entries beside what each member holds (a member
//! killed between the two leaves them apart for good) and a lock (its owner may be
//! stopped).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::counters::Block;

/// Why a pool gives no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The member holds all it may.
    Share,
    /// No entry is free, or those that are have been reserved by others.
    Empty,
    /// The words are not those of a pool: somebody wrote over them.
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

/// What a queue asks for each entry of its table. Dropping it gives all back.
pub trait EntryPool: fmt::Debug + Send + Sync {
    /// Takes an entry.
    ///
    /// # Errors
    /// Why there is none.
    fn take(&self) -> Result<(), Refusal>;

    /// Gives an entry back that was taken.
    fn give_back(&self);

    /// Whether more than half of all entries are taken.
    fn is_half_taken(&self) -> bool;
}

/// What a member may have of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Entries that nobody else can take.
    pub reserved: u32,
    /// Most entries it may hold.
    pub max: u32,
}

/// A word that members share: an atomic integer, or loom's.
pub trait Word {
    /// What it is; what was stored before that is seen.
    fn get(&self) -> u64;

    /// Sets it to `new` if it is `current`; whether it was.
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
pub trait Words {
    /// What they are.
    type Word: Word;

    /// The word of the pool.
    fn state(&self) -> &Self::Word;

    /// The word of a member. Any number must do: it may come from a damaged state.
    fn member(&self, number: u16) -> &Self::Word;
}

/// Most entries of a pool.
pub const MAX_ENTRIES: u32 = 65_536;
/// Most members of a pool.
pub const MAX_MEMBERS: u16 = 1024;

const COUNT_BITS: u32 = 17;
const MEMBER_BITS: u32 = 10;
const VERSION_BITS: u32 = 64 - 3 * COUNT_BITS - MEMBER_BITS;

/// What the word of a pool says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    taken: u32,
    promised: u32,
    member: u16,
    after: u32,
    version: u8,
}

impl State {
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

/// The accounts of a pool.
#[derive(Debug)]
pub struct Ledger<W> {
    words: W,
    entries: u32,
}

impl<W: Words> Ledger<W> {
    /// The ledger of a pool of `entries`, at most [`MAX_ENTRIES`].
    pub fn new(words: W, entries: u32) -> Self {
        Self { words, entries: entries.min(MAX_ENTRIES) }
    }

    /// The words.
    pub fn words(&self) -> &W {
        &self.words
    }

    /// Entries that members hold.
    ///
    /// # Errors
    /// [`Refusal::Damaged`].
    pub fn taken(&self) -> Result<u32, Refusal> {
        Ok(self.read()?.1.taken)
    }

    /// Whether members hold more than half of all entries; a damaged pool has none to give.
    pub fn is_half_taken(&self) -> bool {
        self.taken().is_ok_and(|taken| taken > self.entries / 2)
    }

    /// Makes somebody a member that holds nothing. What all members reserve must
    /// not be more than there is. One thread at a time acts for a member.
    ///
    /// # Errors
    /// [`Refusal::Damaged`], also if the number is a member's already.
    pub fn join(&self, number: u16, share: Share) -> Result<(), Refusal> {
        self.change(number, |state, after| match after {
            0 => Ok((State { promised: state.promised + share.reserved, ..state }, 1)),
            _ => Err(Refusal::Damaged),
        })
    }

    /// Gives back all that a member holds and reserves; nothing if it is none. For
    /// a member that died, anybody does it, one at a time.
    ///
    /// # Errors
    /// [`Refusal::Damaged`].
    pub fn leave(&self, number: u16, share: Share) -> Result<(), Refusal> {
        self.change(number, |state, after| {
            let Some(held) = after.checked_sub(1) else { return Ok((state, 0)) };
            let promise = share.reserved.saturating_sub(held);
            let taken = state.taken.checked_sub(held).ok_or(Refusal::Damaged)?;
            let promised = state.promised.checked_sub(promise).ok_or(Refusal::Damaged)?;
            Ok((State { taken, promised, ..state }, 0))
        })
    }

    /// Takes an entry: one of the member's own reserve, or one that nobody reserved.
    ///
    /// # Errors
    /// Why there is none.
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
            Ok((State { taken: state.taken + 1, promised, ..state }, after + 1))
        })
    }

    /// Gives an entry back.
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
            Ok((State { taken, promised: state.promised + own, ..state }, after - 1))
        })
    }

    fn change(
        &self,
        number: u16,
        change: impl Fn(State, u32) -> Result<(State, u32), Refusal>,
    ) -> Result<(), Refusal> {
        loop {
            let (seen, state) = self.read()?;
            self.finish(seen, state)?;
            let after = self.after(self.words.member(number).get())?;
            let (next, after) = match change(state, after) {
                Ok(next) => next,
                // What was read may belong to two states.
                Err(_) if self.words.state().get() != seen => continue,
                Err(refusal) => return Err(refusal),
            };
            if next.promised > self.entries || after > self.entries + 1 {
                return Err(Refusal::Damaged);
            }
            let next =
                State { member: number, after, version: next.version.wrapping_add(1), ..next };
            if self.words.state().replace(seen, next.pack()) {
                return self.write_down(number, after);
            }
        }
    }

    fn read(&self) -> Result<(u64, State), Refusal> {
        let word = self.words.state().get();
        let state = State::unpack(word);
        let sound = state.taken <= self.entries
            && state.promised <= self.entries
            && state.after <= self.entries + 1;
        if sound { Ok((word, state)) } else { Err(Refusal::Damaged) }
    }

    /// Writes down what the last change left its member with, if that member has
    /// not done so.
    fn finish(&self, seen: u64, state: State) -> Result<(), Refusal> {
        let member = self.words.member(state.member);
        let word = member.get();
        if self.after(word)? != state.after && self.words.state().get() == seen {
            // Somebody else may be faster.
            member.replace(word, following(word, state.after));
        }
        Ok(())
    }

    /// Writes down what a change left a member with: only who made it, since nobody else
    /// knows that it is the member's last.
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

/// Words of this process.
#[derive(Debug, Default)]
struct LocalWords {
    state: AtomicU64,
    members: Vec<AtomicU64>,
}

impl Words for LocalWords {
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
    /// What each member reserves, by number.
    reserved: Arc<Mutex<Vec<Option<u32>>>>,
}

/// What all members reserve is more than there is, or there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pool has no room for another member that reserves {reserved} entries")]
pub struct Overbooked {
    /// What the new member would reserve.
    pub reserved: u32,
}

impl LocalPool {
    /// A pool of `entries`, at most [`MAX_ENTRIES`].
    #[must_use]
    pub fn new(entries: u32) -> Self {
        let members = (0..MAX_MEMBERS).map(|_| AtomicU64::new(0)).collect();
        let words = LocalWords { state: AtomicU64::new(0), members };
        Self { ledger: Arc::new(Ledger::new(words, entries)), reserved: Arc::default() }
    }

    /// A new member.
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

    /// Entries that members hold.
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
        debug_assert_eq!(left, Ok(()), "only members write");
        self.pool.reserved.lock()[usize::from(self.number)] = None;
    }
}

#[cfg(test)]
#[path = "pool_loom_tests.rs"]
mod loom_tests;

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
