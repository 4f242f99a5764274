// SPDX-License-Identifier: BSD-2-Clause
//! The processors that a thread may run on. Most launchers bind each rank to some: that there are
//! more ranks than these says nothing, for the others may have others.

use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Words of a set.
pub const WORDS: usize = CpuSet::MAX_CPU / 64;

/// A part of a thread's time, in these: all of it.
pub const WHOLE: usize = 1 << 16;

/// Processors that this thread may keep busy.
fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How many processors all processes of our control group may keep busy at a time; no limit if
/// that is not fewer than there are. Containers get a share of a host like this.
///
/// [`std::thread::available_parallelism`] tells no more than the processors that the asking
/// thread may run on: a thread asks that first has itself bound to all.
pub fn quota() -> usize {
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

/// How many processors the host has; none if that cannot be known.
pub fn online() -> usize {
    static ONLINE: OnceLock<usize> = OnceLock::new();
    *ONLINE.get_or_init(|| {
        let list = std::fs::read_to_string("/sys/devices/system/cpu/online");
        list.ok().and_then(|list| count_of(&list)).unwrap_or(0)
    })
}

/// How many numbers a list like `0-3,8` has.
fn count_of(list: &str) -> Option<usize> {
    let ranges = list.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    ranges.sum()
}

/// Whether a processor of the host has nothing to do, or none but the thread that asks.
pub fn is_one_idle() -> bool {
    let mut text = [0; 64];
    let read = rustix::fs::open("/proc/loadavg", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .and_then(|file| rustix::io::read(file, &mut text));
    let text = read.ok().and_then(|length| str::from_utf8(&text[..length]).ok());
    text.and_then(runnable).is_some_and(|threads| threads <= online())
}

/// How many threads run or could: the 3 in `0.20 0.18 0.12 3/80 11206`. Where this is made up
/// (gVisor) it is 0, though the thread that asks runs.
fn runnable(loadavg: &str) -> Option<usize> {
    let (threads, _) = loadavg.split(' ').nth(3)?.split_once('/')?;
    threads.parse().ok().filter(|&threads| threads > 0)
}

/// A set of processors, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores([u64; WORDS]);

impl Cores {
    /// Those that this thread may run on.
    pub fn of_thread() -> Self {
        let Ok(set) = sched_getaffinity(None) else {
            // More processors than a set has bits. All threads are taken for unbound.
            return Self::from_numbers(0..available());
        };
        Self::from_numbers((0..CpuSet::MAX_CPU).filter(|&number| set.is_set(number)))
    }

    /// The set of these, as far as it has bits for them.
    pub fn from_numbers(numbers: impl IntoIterator<Item = usize>) -> Self {
        let mut words = [0; WORDS];
        for number in numbers {
            if let Some(word) = words.get_mut(number / 64) {
                *word |= 1 << (number % 64);
            }
        }
        Self(words)
    }

    /// From words as they were found.
    pub const fn from_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }

    /// As words, to be shown in a segment.
    pub const fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    /// Their numbers, in order.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        (0..64 * WORDS).filter(|number| self.0[number / 64] & (1 << (number % 64)) != 0)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0 == [0; WORDS]
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// How much of its time a thread that runs on these, each as long as any other, takes on
    /// `others`; rounded down, so that three thirds are not more than [`WHOLE`].
    pub fn share(&self, others: &Self) -> usize {
        let both = self.0.iter().zip(&others.0).map(|(a, b)| (a & b).count_ones() as usize);
        (both.sum::<usize>() * WHOLE).checked_div(self.count()).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Cores, WHOLE, WORDS, available, count_of, is_one_idle, online, quota, runnable};

    #[test]
    fn a_thread_runs_somewhere() {
        let cores = Cores::of_thread();
        assert_eq!(cores.count().min(quota()), available().min(64 * WORDS));
        assert_eq!(Cores::from_words(*cores.words()), cores);
    }

    #[test]
    fn what_the_host_runs_is_read() {
        assert_eq!(runnable("0.20 0.18 0.12 3/80 11206\n"), Some(3));
        for made_up in ["0.00 0.00 0.00 0/0 0\n", "", "0.20 0.18 0.12", "1 2 3 x/4 5"] {
            assert_eq!(runnable(made_up), None);
        }
        assert_eq!(count_of("0-3,8,10-11\n"), Some(7));
        assert_eq!(count_of("0\n"), Some(1));
        for bad in ["", "a", "3-1", "0-18446744073709551615"] {
            assert_eq!(count_of(bad), None);
        }
        assert!(online() > 0 || !is_one_idle());
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
        assert!(of(&[0, 63, 64, 200]).numbers().eq([0, 63, 64, 200]));
    }
}
