// SPDX-License-Identifier: BSD-2-Clause
//! The processors that a thread may run on. Most launchers bind each rank to some processors of the
//! host. So even if there are more ranks than processors that this thread may run on, the ranks do
//! not necessarily share these processors.

use std::sync::OnceLock;

use rustix::fs::{Mode, OFlags};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::signals::without_signals;

/// Number of words of a set of processors ([`Cores`]).
pub const WORDS: usize = CpuSet::MAX_CPU / 64;

/// All of a thread's time, in the unit of [`Cores::share`].
pub const WHOLE: usize = 1 << 16;

/// Returns the number of processors that this thread may keep busy; 1 if it is unknown.
fn available() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the number of processors that all processes of our control group may keep busy at a
/// time, as set for containers. Returns `usize::MAX` if this number is unknown, or not below the
/// number of processors.
///
/// [`std::thread::available_parallelism`] returns at most the number of processors that the calling
/// thread may run on. So a helper thread binds itself to all processors before it calls this
/// function. The first result is kept.
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
        let thread = without_signals(|| std::thread::Builder::new().spawn(ask).ok());
        thread.and_then(|thread| thread.join().ok()).unwrap_or(usize::MAX)
    })
}

/// Returns the number of online processors of the host; 0 if unknown.
pub fn online() -> usize {
    static ONLINE: OnceLock<usize> = OnceLock::new();
    *ONLINE.get_or_init(|| {
        let list = std::fs::read_to_string("/sys/devices/system/cpu/online");
        list.ok().and_then(|list| count_of(&list)).unwrap_or(0)
    })
}

/// Counts the numbers in a list like `0-3,8`. Returns `None` for any other text.
fn count_of(list: &str) -> Option<usize> {
    let ranges = list.trim().split(',').map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    ranges.sum()
}

/// Returns true if a processor of the host is idle, or runs only the calling thread; false if that
/// is unknown.
pub fn is_one_idle() -> bool {
    let mut text = [0; 64];
    let read = rustix::fs::open("/proc/loadavg", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .and_then(|file| rustix::io::read(file, &mut text));
    let text = read.ok().and_then(|length| str::from_utf8(&text[..length]).ok());
    text.and_then(runnable).is_some_and(|threads| threads <= online())
}

/// Returns the number of runnable threads: the 3 in `0.20 0.18 0.12 3/80 11206`. Returns `None` for
/// 0, which a fake file contains (gVisor): the calling thread runs.
fn runnable(loadavg: &str) -> Option<usize> {
    let (threads, _) = loadavg.split(' ').nth(3)?.split_once('/')?;
    threads.parse().ok().filter(|&threads| threads > 0)
}

/// A set of processors, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cores(pub [u64; WORDS]);

impl Cores {
    /// Returns the processors that this thread may run on.
    pub fn of_thread() -> Self {
        let Ok(set) = sched_getaffinity(None) else {
            // The host has more processors than a set has bits: treat the thread as unbound.
            return Self::from_numbers(0..available());
        };
        Self::from_numbers((0..CpuSet::MAX_CPU).filter(|&number| set.is_set(number)))
    }

    /// Returns the set of these processors. Numbers beyond the size of a set are ignored.
    pub fn from_numbers(numbers: impl IntoIterator<Item = usize>) -> Self {
        let mut words = [0; WORDS];
        for number in numbers {
            if let Some(word) = words.get_mut(number / 64) {
                *word |= 1 << (number % 64);
            }
        }
        Self(words)
    }

    /// Returns the processor numbers in ascending order.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        (0..64 * WORDS).filter(|number| self.0[number / 64] & (1 << (number % 64)) != 0)
    }

    /// Returns the number of processors in the set.
    pub fn count(&self) -> usize {
        self.0.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// Returns the part of its time, as a fraction of [`WHOLE`], that a thread spends on `others`
    /// if it runs equally long on each processor of this set. The result is rounded down, so that
    /// three thirds do not exceed [`WHOLE`]. It is 0 if this set is empty.
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
    }

    #[test]
    fn the_load_of_the_host_is_parsed() {
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
    fn shares_are_fractions_of_the_time() {
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
