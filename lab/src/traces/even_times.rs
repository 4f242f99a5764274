// SPDX-License-Identifier: BSD-2-Clause
//! Times of operations between two readings of the clock, for the timing model.
//!
//! The recorder reads the clock every 64 operations, with cancels and, at most every 10 us, with
//! the first operation after a poll that found nothing. So several operations have one time. The
//! operations of a full group came one after the other until the next reading, and are spread
//! evenly over that time:
//!
//! ```text
//! recorded   t0 t0 t0 ... t0               t1
//! spread     t0    t0 + (t1 - t0) i / n    t1
//! ```
//! A smaller group ended with a poll, and its operations came at once.

use std::collections::VecDeque;

use nic::trace::Timed;

/// Smallest size of a full group: half of the operations between two readings, because records of
/// peers count as operations there.
const FULL: usize = 32;
/// Most operations that are kept until the next reading.
const MOST: usize = 4096;

/// Operations that wait until the time of the next group is known, each with further facts.
#[derive(Debug)]
pub(crate) struct EvenTimes<T> {
    group: VecDeque<(Timed, T)>,
    /// The first operation of the next group.
    next: Option<(Timed, T)>,
}

impl<T> Default for EvenTimes<T> {
    fn default() -> Self {
        Self { group: VecDeque::new(), next: None }
    }
}

impl<T> EvenTimes<T> {
    /// Returns the next operation of `read`, in the same order, with its spread time.
    pub(crate) fn next<E>(
        &mut self,
        mut read: impl FnMut() -> Result<Option<(Timed, T)>, E>,
    ) -> Result<Option<(Timed, T)>, E> {
        if let Some(timed) = self.group.pop_front() {
            return Ok(Some(timed));
        }
        let first = match self.next.take() {
            Some(timed) => timed,
            None => match read()? {
                Some(timed) => timed,
                None => return Ok(None),
            },
        };
        let start = first.0.0;
        self.group.push_back(first);
        while self.group.len() < MOST {
            match read()? {
                Some(timed) if timed.0.0 == start => self.group.push_back(timed),
                other => {
                    self.next = other;
                    break;
                }
            }
        }
        let (count, end) = (self.group.len(), self.next.as_ref().map(|next| next.0.0));
        if let Some(time) = end.and_then(|end| end.checked_sub(start)).filter(|_| count >= FULL) {
            for (at, (timed, _)) in self.group.iter_mut().enumerate() {
                timed.0 = start + (u128::from(time) * at as u128 / count as u128) as u64;
            }
        }
        Ok(self.group.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use nic::trace::Op;

    use super::*;

    fn spread(times: &[u64]) -> Vec<u64> {
        let mut spread = EvenTimes::default();
        let mut given = times.iter().map(|&time| ((time, Op::Processes(1)), time));
        let mut read = || Ok::<_, ()>(given.next());
        let mut told = Vec::new();
        while let Some((timed, known)) = spread.next(&mut read).unwrap() {
            assert_eq!(known, times[told.len()], "the facts belong to the operation");
            told.push(timed.0);
        }
        told
    }

    #[test]
    fn full_groups_are_spread_and_short_ones_come_at_once() {
        let mut times = vec![0; 64];
        times.extend([640, 640, 640, 9000]);
        let spread = spread(&times);
        let expected: Vec<u64> = (0..64).map(|at| at * 10).chain([640, 640, 640, 9000]).collect();
        assert_eq!(spread, expected);
    }

    #[test]
    fn no_operation_is_lost_without_another_time() {
        assert_eq!(spread(&[]), Vec::<u64>::new());
        assert_eq!(spread(&vec![7; 10_000]), vec![7; 10_000]);
    }
}
