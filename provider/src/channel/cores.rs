// SPDX-License-Identifier: BSD-2-Clause
//! The processors that a thread may run on. Most launchers bind each rank to some: that there are
//! more ranks than these says nothing, for the others may have others.

use std::sync::OnceLock;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Words of a set.
pub(super) const WORDS: usize = CpuSet::MAX_CPU / 64;

/// A part of a thread's time, in these: all of it.
pub(super) const WHOLE: usize = 1 << 16;

/// Processors that this thread may keep busy.
fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many processors all processes of our control group may keep busy at a time; no limit if
/// that is not fewer than there are. Containers get a share of a host like this.
///
/// [`std::thread::available_parallelism`] tells no more than the processors that the asking
/// thread may run on: a thread asks that first has itself bound to all.
pub(crate) fn quota() -> usize {
    static QUOTA: OnceLock<usize> = OnceLock::new();
    *QUOTA.get_or_init(|| {
        let ask = || {
            let mut all = CpuSet::new();
            (0..CpuSet::MAX_CPU).for_each(|number| all.set(number));
            let _ = sched_setaffinity(None, &all);
            let allowed = available();
            if allowed < Cores::of_thread().count() { allowed } else { usize::MAX }
        };
        let thread = std::thread::Builder::new().spawn(ask).ok();
        thread.and_then(|thread| thread.join().ok()).unwrap_or(usize::MAX)
    })
}

/// A set of processors, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cores([u64; WORDS]);

impl Cores {
    /// Those that this thread may run on.
    pub(crate) fn of_thread() -> Self {
        let Ok(set) = sched_getaffinity(None) else {
            // More processors than a set has bits. All threads are taken for unbound.
            return Self::from_numbers(0..available());
        };
        Self::from_numbers((0..CpuSet::MAX_CPU).filter(|&number| set.is_set(number)))
    }

    /// The set of these, as far as it has bits for them.
    pub(super) fn from_numbers(numbers: impl IntoIterator<Item = usize>) -> Self {
        let mut words = [0; WORDS];
        for number in numbers {
            if let Some(word) = words.get_mut(number / 64) {
                *word |= 1 << (number % 64);
            }
        }
        Self(words)
    }

    pub(super) const fn from_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    pub(super) const fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// How many they are.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// How much of its time a thread that runs on these, each as long as any other, takes on
    /// `others`; rounded down, so that three thirds are not more than [`WHOLE`].
    pub(super) fn share(&self, others: &Self) -> usize {
        let both = self.0.iter().zip(&others.0).map(|(a, b)| (a & b).count_ones() as usize);
        (both.sum::<usize>() * WHOLE).checked_div(self.count()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cores, WHOLE, WORDS, available, quota};

    #[test]
    fn a_thread_runs_somewhere() {
        let cores = Cores::of_thread();
        assert_eq!(cores.count().min(quota()), available().min(64 * WORDS));
        assert_eq!(Cores::from_words(*cores.words()), cores);
    }

    #[test]
    fn shares_are_of_the_time() {
        let of = |numbers: &[usize]| Cores::from_numbers(numbers.iter().copied());
        assert_eq!(of(&[0]).share(&of(&[1])), 0);
        assert_eq!(of(&[0]).share(&of(&[0, 1])), WHOLE);
        assert_eq!(of(&[0, 1]).share(&of(&[1])), WHOLE / 2);
        assert_eq!(of(&[0, 100, 200]).share(&of(&[100])), WHOLE / 3);
        assert_eq!(of(&[]).share(&of(&[1])), 0);
        assert_eq!(of(&[64 * WORDS]).count(), 0);
    }
}
