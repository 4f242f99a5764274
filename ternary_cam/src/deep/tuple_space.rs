// SPDX-License-Identifier: BSD-2-Clause
//! Entries of several classes in the home index, for exact keys: the tuple space search of
//! Srinivasan, Suri and Varghese, SIGCOMM 1999, without a branch on the tuple.

use super::parts::Deep;
use super::search::older;
use crate::deep::index::Offer;
use crate::entry::{Key, Source};
use crate::nursery::Nursery;
use crate::slot::{Class, Slot};

impl Deep {
    /// There is only the home index, for exact keys. Not a loop, because branches are predicted
    /// better if each entry has separate ones.
    #[inline(never)]
    pub(super) fn insert_classes(&mut self, slots: &mut [Slot], nursery: Nursery) {
        let [a, b, c, d] = nursery.all();
        self.insert_one_of_several(slots, a);
        self.insert_one_of_several(slots, b);
        self.insert_one_of_several(slots, c);
        self.insert_one_of_several(slots, d);
        if self.classes.are_several() || self.unclassed != 0 {
            self.consider_tray(slots);
        } else {
            self.find_uniform();
        }
    }

    /// Adds one entry. Each class has a separate path: the counter of its entries is then at a
    /// fixed address, for which the next entry need not wait.
    #[inline(always)]
    fn insert_one_of_several(&mut self, slots: &mut [Slot], id: u16) {
        let wildcards = slots[usize::from(id)].wildcards();
        if !wildcards.any_source {
            if self.classes.has::<0>(wildcards) {
                return self.insert_in::<0>(slots, id);
            }
            if self.classes.has::<2>(wildcards) {
                return self.insert_in::<2>(slots, id);
            }
        } else {
            if self.classes.has::<1>(wildcards) {
                return self.insert_in::<1>(slots, id);
            }
            if self.classes.has::<3>(wildcards) {
                return self.insert_in::<3>(slots, id);
            }
        }
        self.insert_one_rare(slots, id);
    }

    /// Adds an entry of a paired class that has entries.
    #[inline(always)]
    fn insert_in<const CLASS: usize>(&mut self, slots: &mut [Slot], id: u16) {
        self.classes.enter_another::<CLASS>();
        let slot = &mut slots[usize::from(id)];
        slot.stamp = slot.stamp.with_class(Class::hashed(CLASS));
        let pattern =
            self.classes.pattern(Class::hashed(CLASS)).with_source(CLASS.is_multiple_of(2));
        self.home.index.insert_marked(slots, (Class::hashed(CLASS), &pattern), id);
    }

    /// [`Deep::insert_one`], not inlined.
    #[inline(never)]
    fn insert_one_rare(&mut self, slots: &mut [Slot], id: u16) {
        self.insert_one(slots, id);
    }

    /// The oldest match of any class, for an exact key.
    ///
    /// ```text
    /// for each pair with entries, and each of its two classes:
    ///     hash the key under the pattern
    ///     offer = its bucket, if that may hold an entry of this hash
    /// no offer: no match
    /// one, as nearly always: its first entry that matches
    /// several: the oldest of their first entries that match
    /// ```
    ///
    /// The class of the match is unpredictable, so there is no branch on it. The marks in the
    /// buckets are the fingerprints of Fan et al., "Cuckoo Filter", CoNEXT 2014.
    #[inline(never)]
    pub(super) fn first_match_classes<'a>(
        &self,
        slots: &'a [Slot],
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        self.home.keep.note_use();
        match self.classes.live() {
            ..0b100 => self.first_of::<2>(slots, key),
            0b100..0b1000 => self.first_of::<3>(slots, key),
            0b1000..0b1_0000 => self.first_of::<4>(slots, key),
            _ => self.first_of_all(slots, key.bits, key.source),
        }
    }

    /// Only the first `N` classes have entries; all of them are paired.
    #[inline(always)]
    fn first_of<'a, const N: usize>(
        &self,
        slots: &'a [Slot],
        key: &Key,
    ) -> Option<(u16, &'a Slot)> {
        let index = &self.home.index;
        let (mut best, mut other) = (Offer::NONE, Offer::NONE);
        for class in 0..N {
            let pattern = self
                .classes
                .pattern(Class::hashed(class & !1))
                .with_source(class.is_multiple_of(2));
            let (offer, is_good) =
                index.offer((Class::hashed(class), &pattern), key.bits, key.source.0);
            other = if is_good { best } else { other };
            best = if is_good { offer } else { best };
        }
        if !other.is_none() {
            return self.first_of_all(slots, key.bits, key.source);
        }
        if best.is_none() {
            return None;
        }
        index.first_offered(slots, best, |slot| slot.matches_exact(key))
    }

    /// Any classes may have entries.
    #[inline(never)]
    fn first_of_all<'a>(
        &self,
        slots: &'a [Slot],
        bits: u64,
        source: Source,
    ) -> Option<(u16, &'a Slot)> {
        let key = &Key { bits, ignore: 0, source };
        let index = &self.home.index;
        let mut oldest = None;
        for under in self.classes.live_patterns() {
            let (offer, is_good) = index.offer(under, bits, source.0);
            if is_good {
                let found = index.first_offered(slots, offer, |slot| slot.matches_exact(key));
                oldest = older(oldest, found);
            }
        }
        oldest
    }
}

#[cfg(test)]
mod tests {
    use crate::entry::{Entry, Key, Source};
    use crate::kernel::Kernel;
    use crate::table::Table;

    /// More kinds than pairs, a few at a time, so that pairs change while other entries stay.
    #[test]
    fn any_kinds_are_served_side_by_side() {
        let mut table = Table::new(256, Kernel::Scalar).unwrap();
        let mut naive = Vec::new();
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let source = |number| if number == 0 { Source::ANY } else { Source::new(number as u32) };
        for token in 0..if cfg!(miri) { 500 } else { 200_000 } {
            let first = u64::from(token) / 1000;
            let ignore = [0, 0xff, 0xff00, 0xff_0000][(first + random(1 + first % 3)) as usize % 4];
            let bits = random(1 << 24);
            let entry = Entry { bits, ignore, source: source(random(3)), token };
            naive.push((table.insert(entry).unwrap(), entry));
            while naive.len() as u64 > 48 + random(150) {
                let wanted = naive[random(naive.len() as u64) as usize].1;
                let bits = wanted.bits ^ (random(1 << 24) & wanted.ignore);
                let from = wanted.source.get().unwrap_or(1 + random(2) as u32);
                let key = Key { bits, ignore: 0, source: Source::new(from) };
                let rank = naive.iter().position(|(_, entry)| entry.matches(&key)).unwrap();
                let (handle, entry) = naive.remove(rank);
                assert_eq!(table.first_match(&key).map(|hit| hit.handle), Some(handle));
                assert_eq!(table.remove(handle), Some(entry));
            }
            if token % 64 == 0 {
                table.check();
            }
        }
    }
}
