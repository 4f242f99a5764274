// SPDX-License-Identifier: BSD-2-Clause
//! Records the lengths of a context's two queues over time, in a series of bounded length.
//!
//! ```text
//! before operation 0, k, 2k, ... (posts and arrivals together): a sample of each queue at its
//!                         longest since the sample before
//! the series is full: of each pair of samples, that with the longer queue stays, and k doubles
//! ```
//!
//! The longest sample of a queue is therefore its high-water mark.

use serde::{Deserialize, Serialize};

/// Maximum number of samples; even.
const SAMPLES: usize = 512;

/// Lengths of PRQ and UMQ over time. Sample `i` is the length of each queue at its longest within
/// the `every` posts and arrivals up to operation `i * every`. The last sample also covers the
/// operations after it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lengths {
    /// Number of operations from one sample to the next (k). Zero if nothing was recorded; then
    /// there are no samples.
    pub every: u64,
    /// Time of each sample in microseconds since the endpoint was opened.
    pub us: Vec<u64>,
    /// Posted receives in the table.
    pub prq_table: Vec<u64>,
    /// Posted receives on the host.
    pub prq_host: Vec<u64>,
    /// Unexpected messages in the table.
    pub umq_table: Vec<u64>,
    /// Unexpected messages on the host.
    pub umq_host: Vec<u64>,
}

impl Lengths {
    /// Creates an empty series to which samples are added.
    pub(crate) fn sampled() -> Self {
        Self { every: 1, ..Self::default() }
    }

    /// Adds a sample: its time, and the length of each queue in the table and on the host. Returns
    /// the number of operations until the next one is due.
    pub(crate) fn push(&mut self, us: u64, prq: (usize, usize), umq: (usize, usize)) -> u64 {
        let values = [us, prq.0 as u64, prq.1 as u64, umq.0 as u64, umq.1 as u64];
        for (column, value) in self.columns_mut().into_iter().zip(values) {
            // Otherwise the vector would double its capacity for one element.
            if column.len() == SAMPLES {
                column.reserve_exact(1);
            }
            column.push(value);
        }
        // The series is full. The last sample belongs to the next pair.
        if self.us.len() > SAMPLES {
            thin(&mut self.prq_table, &mut self.prq_host);
            thin(&mut self.umq_table, &mut self.umq_host);
            let mut at = 0_usize;
            self.us.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.every *= 2;
        }
        self.every
    }

    /// Raises the last sample to these lengths, in table and on host, if they are longer.
    pub(crate) fn raise_last(&mut self, prq: (usize, usize), umq: (usize, usize)) {
        for (table, host, now) in [
            (&mut self.prq_table, &mut self.prq_host, prq),
            (&mut self.umq_table, &mut self.umq_host, umq),
        ] {
            if let (Some(table), Some(host)) = (table.last_mut(), host.last_mut())
                && now.0 as u64 + now.1 as u64 > *table + *host
            {
                (*table, *host) = (now.0 as u64, now.1 as u64);
            }
        }
    }

    /// Returns true if nothing was recorded.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.columns().iter().all(|column| column.is_empty())
    }

    fn columns(&self) -> [&Vec<u64>; 5] {
        [&self.us, &self.prq_table, &self.prq_host, &self.umq_table, &self.umq_host]
    }

    fn columns_mut(&mut self) -> [&mut Vec<u64>; 5] {
        [
            &mut self.us,
            &mut self.prq_table,
            &mut self.prq_host,
            &mut self.umq_table,
            &mut self.umq_host,
        ]
    }

    /// Checks that every k-th of `operations` operations has a sample, and that no length exceeds
    /// its high-water mark. `marks` are those of the PRQ's table and host, then of the UMQ's.
    ///
    /// # Errors
    /// A description of the violated condition.
    pub(crate) fn check(&self, operations: u64, marks: [u64; 4]) -> Result<(), String> {
        let samples = if self.every == 0 { 0 } else { operations.div_ceil(self.every) };
        if self.columns().iter().any(|column| column.len() as u64 != samples) {
            return Err(format!(
                "lengths: {} samples do not fit one in {} of {operations} operations",
                self.us.len(),
                self.every
            ));
        }
        let columns = self.columns();
        for (column, mark) in columns[1..].iter().zip(marks) {
            if let Some(length) = column.iter().find(|length| **length > mark) {
                return Err(format!("lengths: {length} is above the high-water mark {mark}"));
            }
        }
        Ok(())
    }
}

/// Keeps the first sample and, of each pair of samples after it, that with the longer queue.
fn thin(table: &mut Vec<u64>, host: &mut Vec<u64>) {
    let len = table.len().min(host.len());
    for (to, at) in (1..).zip((2..len).step_by(2)) {
        let longer = if table[at - 1] + host[at - 1] > table[at] + host[at] { at - 1 } else { at };
        (table[to], host[to]) = (table[longer], host[longer]);
    }
    table.truncate(len.div_ceil(2));
    host.truncate(len.div_ceil(2));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_is_bounded_and_even() {
        let mut lengths = Lengths::sampled();
        let (mut due, mut taken) = (0, 0);
        for operation in 0..10_000_u64 {
            if operation == due {
                let prq = (operation as usize, 1);
                due += lengths.push(operation * 3, prq, (0, 2));
                taken += 1;
            }
        }
        assert_eq!((lengths.every, lengths.us.len()), (32, 313));
        assert_eq!(lengths.us.capacity(), SAMPLES + 1);
        assert_eq!(taken, 513 + 4 * 256 + 56, "once full, only samples that are kept are taken");
        for (at, (&us, &length)) in lengths.us.iter().zip(&lengths.prq_table).enumerate() {
            assert_eq!((us, length), (at as u64 * 96, at as u64 * 32));
        }
        lengths.check(10_000, [9984, 1, 0, 2]).unwrap();
        assert!(lengths.check(10_000, [9983, 1, 0, 2]).is_err());
        assert!(lengths.check(10_017, [9984, 1, 0, 2]).is_err());
    }

    #[test]
    fn the_longest_stays_as_the_series_gets_thinner() {
        let mut lengths = Lengths::sampled();
        let mut due = 0;
        for operation in 0..5000_u64 {
            if operation == due {
                let prq = if operation == 778 { (9, 4) } else { (3, 0) };
                due += lengths.push(operation, prq, (0, operation as usize));
            }
        }
        let at = lengths.prq_table.iter().position(|&length| length == 9).unwrap();
        assert_eq!((lengths.every, lengths.prq_host[at]), (16, 4));
        assert!((778..778 + 16).contains(&lengths.us[at]), "{}", lengths.us[at]);
        lengths.raise_last((5, 5), (0, 9));
        assert_eq!((lengths.prq_table.last(), lengths.prq_host.last()), (Some(&5), Some(&5)));
        assert_eq!(lengths.umq_host.last(), Some(&4992), "longer already");
    }

    #[test]
    fn the_last_sample_is_raised_to_a_longer_queue_only() {
        for (last, now, expected) in [
            ((5, 5), (3, 4), (5, 5)),
            ((0, 9), (9, 0), (0, 9)),
            ((0, 9), (8, 0), (0, 9)),
            ((0, 9), (9, 1), (9, 1)),
            ((2, 3), (0, 6), (0, 6)),
            ((1, 1), (1, 2), (1, 2)),
            ((3, 3), (1, 6), (1, 6)),
        ] {
            let mut lengths = Lengths::sampled();
            lengths.push(0, (50, 60), (70, 80));
            lengths.push(1, last, (1, 1));
            lengths.push(2, (1, 1), last);
            lengths.raise_last((0, 0), now);
            assert_eq!((lengths.umq_table[2], lengths.umq_host[2]), expected, "{last:?} {now:?}");
            assert_eq!((lengths.prq_table[2], lengths.prq_host[2]), (1, 1));
            assert_eq!((lengths.prq_table[1], lengths.umq_host[0]), (last.0 as u64, 80));
        }
    }

    #[test]
    fn of_a_pair_the_longer_sample_stays() {
        let thinned = |table: &[u64], host: &[u64]| {
            let (mut table, mut host) = (table.to_vec(), host.to_vec());
            thin(&mut table, &mut host);
            (table, host)
        };
        // The first, and of each pair the longer one; the second one if both are as long.
        let (table, host) = ([9, 1, 0, 5, 3, 2, 4], [9, 4, 3, 0, 3, 3, 1]);
        assert_eq!(thinned(&table, &host), (vec![9, 1, 3, 4], vec![9, 4, 3, 1]));
        assert_eq!(thinned(&table[..2], &host[..2]), (vec![9], vec![9]));
        assert_eq!(thinned(&[3, 0, 1], &[3, 7, 6]), (vec![3, 1], vec![3, 6]));
        assert_eq!(thinned(&[3, 2, 1], &[3, 4, 4]), (vec![3, 2], vec![3, 4]));
        assert_eq!(thinned(&[3, 9, 5], &[3, 0, 5]), (vec![3, 5], vec![3, 5]));
    }

    #[test]
    fn without_samples_only_no_length_is_right() {
        Lengths::default().check(9, [0; 4]).unwrap();
        Lengths::sampled().check(0, [0; 4]).unwrap();
        let stray = Lengths { us: vec![1], ..Lengths::default() };
        stray.check(9, [0; 4]).unwrap_err();
    }
}
