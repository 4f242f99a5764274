// SPDX-License-Identifier: BSD-2-Clause
//! The classes of the entries, one per pattern. An MPI needs at most four (exact, any tag, any
//! source, both); another program may need one for each entry.
//!
//! Hashing entries under their pattern, and searching once per pattern, is the tuple space search
//! of Srinivasan, Suri and Varghese, SIGCOMM 1999. A tuple is a class here.
//!
//! MPIs also ignore a few protocol bits in every receive: in MPICH and Open MPI, those that mark a
//! synchronous send. These bits are the *base*. The first entry that enters an empty index and
//! names its source sets the base. Entries that ignore exactly these bits and name their source are
//! of [`Class::BASE`]; they compare every bit except the base.

use crate::bits::Bits;
use crate::index::pattern::Pattern;
use crate::index::state::{CLASSES, StateCell, TableState};
use crate::index::uniform::Uniform;
use crate::slot::Class;
use crate::wildcards::Wildcards;

/// Number of classes in pairs, enough for an MPI. Entries of the even class of a pair name their
/// source, those of the odd class do not, and both ignore the same bits. So a search hashes these
/// bits once for both.
const PAIRED: usize = 4;

/// Length of the arrays that a class indexes: a power of two, so that a mask bounds the index.
pub(super) const PATTERNS: usize = 8;

/// The classes with entries, and their patterns.
#[repr(C)]
pub(crate) struct Classes {
    state: StateCell,
    uniform: Uniform,
    /// True if a search with uniform keys left the request
    /// [`RebuildRequest::PrimaryUsed`](super::rebuild_requests::RebuildRequest) since the last call
    /// of [`Classes::ask_whether_primary_is_used`].
    primary_used: bool,
    /// Number of entries of each class.
    len: [u32; PATTERNS],
    patterns: [Pattern; PATTERNS],
    variety: Variety,
}

/// Measures how much patterns without a class differ. If all differ, a class would cost searches a
/// probe without shortening the scan.
#[derive(Default)]
struct Variety {
    /// The last hash of a pattern, indexed by the highest bits of the hash.
    seen: [u64; Self::SEEN],
    /// Falls with each pattern whose hash is in `seen`, and rises with each other pattern.
    level: u32,
}

impl Variety {
    const SEEN: usize = 8;
    const RISE: u32 = 4;
    const TOO_MUCH: u32 = 32;
    const MOST: u32 = 64;

    /// Notes a pattern. Returns true if there are too many patterns for classes.
    fn note_and_check(&mut self, wildcards: Wildcards) -> bool {
        let hash = wildcards.hash();
        let seen = &mut self.seen[(hash >> (u64::BITS - Self::SEEN.trailing_zeros())) as usize];
        self.level = match std::mem::replace(seen, hash) == hash {
            true => self.level.saturating_sub(1),
            false => Self::MOST.min(self.level + Self::RISE),
        };
        self.level > Self::TOO_MUCH
    }
}

impl Classes {
    pub(crate) fn new() -> Self {
        Self {
            patterns: std::array::from_fn(|at| {
                Pattern::EXACT.comparing_source(at.is_multiple_of(2))
            }),
            len: [0; PATTERNS],
            state: StateCell::new(),
            uniform: Uniform::NOTHING,
            primary_used: false,
            variety: Variety::default(),
        }
    }

    #[inline(always)]
    pub(crate) fn state(&self) -> TableState {
        self.state.get()
    }

    pub(crate) fn set_flags(&mut self, wild_keys: bool, extra_work: bool) {
        self.state.change(|state| state.with_flags(wild_keys, extra_work));
    }

    /// Makes the next insert or remove look for extra work.
    pub(crate) fn raise_extra_work(&self) {
        self.state.raise_extra_work();
    }

    /// Counts an entry whose wildcards are not those of the base class. Returns the class of the
    /// entry: [`Class::BASE`] if the entry sets the base, and [`Class::NONE`] if it gets no class.
    #[inline(always)]
    pub(crate) fn enter_wild(&mut self, wildcards: Wildcards) -> Class {
        for class in Bits((self.live() & !TableState::ONLY_BASE.live()).into()) {
            if self.patterns[class % PATTERNS].wildcards() == wildcards {
                self.len[class % PATTERNS] += 1;
                return Class::hashed(class);
            }
        }
        self.make(wildcards)
    }

    /// Returns true if a paired class has entries and ignores the same bits as these wildcards. The
    /// caller has chosen a class that names a source if and only if the wildcards do.
    #[inline(always)]
    pub(crate) const fn has<const CLASS: usize>(&self, wildcards: Wildcards) -> bool {
        self.patterns[CLASS].ignore() == wildcards.ignore && self.len[CLASS] != 0
    }

    /// Counts another entry of a class that has entries.
    #[inline(always)]
    pub(crate) const fn enter_another<const CLASS: usize>(&mut self) {
        self.len[CLASS] += 1;
    }

    /// Counts an entry if its wildcards are those of the base class, and then returns true.
    #[inline(always)]
    pub(crate) fn enter_base(&mut self, wildcards: Wildcards) -> bool {
        if wildcards != self.base().wildcards() {
            return false;
        }
        self.enter_several(Class::BASE, 1);
        true
    }

    /// Counts this many entries of a class.
    #[inline(always)]
    pub(crate) fn enter_several(&mut self, class: Class, entries: usize) {
        self.len[class.pattern() % PATTERNS] += entries as u32;
        self.state.change(|state| state.with_class(class));
    }

    #[inline(always)]
    pub(crate) fn uniform(&self) -> &Uniform {
        &self.uniform
    }

    /// Makes [`Classes::uniform`] hold in no state.
    pub(crate) fn suspend_uniform(&mut self) {
        self.uniform.state = TableState::EMPTY;
        self.uniform.insert_state = TableState::EMPTY;
        self.uniform.quiet_state = TableState::EMPTY;
    }

    /// Asks the next search with uniform keys for the request
    /// [`RebuildRequest::PrimaryUsed`](super::rebuild_requests::RebuildRequest), if these keys have
    /// wildcards or other keys come as well.
    pub(crate) fn ask_whether_primary_is_used(&mut self) {
        self.primary_used = false;
        self.uniform.quiet_state = TableState::EMPTY;
    }

    /// Notes that a search left the request
    /// [`RebuildRequest::PrimaryUsed`](super::rebuild_requests::RebuildRequest).
    pub(crate) fn note_primary_used(&mut self) {
        self.primary_used = true;
    }

    /// Determines whether the queue is uniform from now on. Every entry must be in the primary
    /// index. `keys` are the keys that the primary index serves. `secondary_indexes` is true if
    /// there are secondary indexes. `others` is true if further structures are maintained or
    /// requested.
    pub(crate) fn find_uniform(&mut self, keys: Wildcards, secondary_indexes: bool, others: bool) {
        let last = std::mem::replace(&mut self.uniform, Uniform::NOTHING).class;
        let class = match self.live() {
            0 if keys == Wildcards::NONE => last,
            0 => Class::BASE,
            live => Class::hashed(live.trailing_zeros() as usize),
        };
        let state = self.state().with_class(class);
        let is_only_class = state.live().is_power_of_two();
        if !is_only_class {
            return;
        }
        let entries = *self.pattern(class);
        let are_exact = entries == Pattern::EXACT;
        // In another class, exact entries would not count as exact.
        if are_exact && class != Class::BASE {
            return;
        }
        let pattern = match keys {
            Wildcards::NONE => entries,
            keys if are_exact => Pattern::new(keys),
            _ => return,
        };
        // If there are no secondary indexes, searches with exact keys leave no request.
        let is_quiet = self.primary_used || keys == Wildcards::NONE && !secondary_indexes;
        let quiet_state = if is_quiet { state } else { TableState::EMPTY };
        let insert_state = if others { TableState::EMPTY } else { state };
        let entries = entries.wildcards();
        self.uniform = Uniform { state, insert_state, quiet_state, class, entries, keys, pattern };
    }

    /// Returns the pattern of the base class.
    #[inline(always)]
    pub(crate) fn base(&self) -> Pattern {
        self.pattern(Class::BASE).comparing_source(true)
    }

    /// Makes a class for one entry, counts the entry and returns the class. If the state is
    /// [`TableState::EMPTY`] and the entry names its source, the bits that it ignores become the
    /// base. Returns [`Class::NONE`] if no class is free, or if patterns differ so much that a
    /// class is useless.
    #[inline(always)]
    fn make(&mut self, wildcards: Wildcards) -> Class {
        if self.variety.note_and_check(wildcards) {
            return Class::NONE;
        }
        let is_base = self.state() == TableState::EMPTY && !wildcards.any_source;
        let class = if is_base { Some(Class::BASE.pattern()) } else { self.find_free(wildcards) };
        let Some(class) = class else { return Class::NONE };
        self.set_pattern(class, wildcards);
        self.len[class] = 1;
        let class = Class::hashed(class);
        self.state.change(|state| state.with_class(class));
        class
    }

    /// Returns a class without entries for these wildcards: in the pair that ignores the same bits,
    /// in a pair without entries other than the first, or else an unpaired class. Returns `None` if
    /// no class is free.
    fn find_free(&self, wildcards: Wildcards) -> Option<usize> {
        let is_free = |&class: &usize| self.len[class] == 0;
        let is_beside = |&class: &usize| self.patterns[class ^ 1].ignore() == wildcards.ignore;
        let is_alone = |&class: &usize| class > 1 && self.len[class ^ 1] == 0;
        let own = (usize::from(wildcards.any_source)..PAIRED).step_by(2).filter(is_free);
        let found = own.clone().find(is_beside).or_else(|| own.clone().find(is_alone));
        found.or_else(|| (PAIRED..CLASSES).find(is_free))
    }

    /// Gives a class without entries a pattern, and also the other class of its pair.
    fn set_pattern(&mut self, class: usize, wildcards: Wildcards) {
        let other = Wildcards { any_source: !wildcards.any_source, ..wildcards };
        for (class, wildcards) in [(class, wildcards), (class ^ 1, other)] {
            if class == self.uniform.class.pattern() {
                self.uniform = Uniform::NOTHING;
            }
            self.patterns[class] = Pattern::new(wildcards);
            if class >= PAIRED {
                break;
            }
        }
    }

    /// Subtracts a removed entry from the entries of its class.
    #[inline(always)]
    pub(crate) fn leave(&mut self, class: Class) {
        let len = &mut self.len[class.pattern() % PATTERNS];
        *len -= 1;
        if *len == 0 {
            self.state.change(|state| state.without_class(class));
        }
    }

    #[inline(always)]
    pub(crate) fn pattern(&self, class: Class) -> &Pattern {
        &self.patterns[class.pattern() % PATTERNS]
    }

    /// Returns a bitmap: bit `i` is set if class `i` has entries.
    #[inline(always)]
    pub(crate) fn live(&self) -> u8 {
        self.state().live()
    }

    /// Returns the classes with entries, and their patterns.
    #[inline(always)]
    pub(crate) fn live_patterns(&self) -> impl Iterator<Item = (Class, &Pattern)> + '_ {
        let classes = Bits(self.live().into()).map(Class::hashed);
        classes.map(|class| (class, self.pattern(class)))
    }

    /// Returns true if there are entries of classes other than the base.
    #[inline(always)]
    pub(crate) fn has_wild(&self) -> bool {
        self.live() > TableState::ONLY_BASE.live()
    }

    /// Returns true if entries are of several classes.
    #[inline(always)]
    pub(crate) fn are_several(&self) -> bool {
        !self.live().is_power_of_two() && self.live() != 0
    }

    /// Returns true if no entry has a class.
    pub(crate) fn is_empty(&self) -> bool {
        self.live() == 0
    }

    /// Returns the number of entries with a class.
    pub(crate) fn len(&self) -> usize {
        self.len.iter().map(|&len| len as usize).sum()
    }
}

#[cfg(test)]
impl Classes {
    /// Checks that both classes of a pair ignore the same bits, and that the state contains the
    /// classes with entries.
    pub(crate) fn check(&self) {
        for (class, pattern) in self.patterns[..PAIRED].iter().enumerate() {
            let ignore = self.patterns[class & !1].ignore();
            let paired = Wildcards { ignore, any_source: class % 2 == 1 };
            assert_eq!(pattern.wildcards(), paired);
        }
        for class in 0..CLASSES {
            assert_eq!(self.live() >> class & 1 == 1, self.len[class] != 0);
        }
    }
}
