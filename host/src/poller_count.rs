// SPDX-License-Identifier: BSD-2-Clause
//! Estimates the number of threads that poll endpoints on this host, from the number of endpoints.

use std::{
    os::unix::fs::FileExt as _,
    time::{Duration, Instant, SystemTime},
};

use crate::{
    cores::{self, Cores, WHOLE},
    directory::Directory,
    live::CORES,
    names::prefix,
    owner::own_count,
};

/// The minimum time between two counts is this time multiplied by the number of endpoints. If every
/// endpoint counts, all of them together read a constant number of entries per second.
const COUNT: Duration = Duration::from_millis(2);

/// Two changes of a directory within this time may have the same timestamp.
const TICK: Duration = Duration::from_millis(20);

/// Maximum time between two counts, because clocks may stand still or be set back.
const LONGEST: Duration = Duration::from_secs(10);

/// Counts endpoints and the load that they put on our processors.
///
/// Reading the directory takes 1 us per entry, and reading the processors of an entry's owner 2 us
/// more. Both take longer if other processes do the same: 256 ranks that read the directory 20
/// times a second did little else (2 cores). So it is read only if it has changed, or after 10 s,
/// and less often the more endpoints exist.
#[derive(Debug, Default)]
pub struct PollerCount {
    endpoints: usize,
    /// Processor time that the endpoints take on our processors if one thread polls each endpoint
    /// without pause; [`WHOLE`] is all the time of one thread.
    load: usize,
    /// The processors for which `load` was counted.
    cores: Cores,
    /// Time of the last count.
    counted: Option<Instant>,
    /// Time of the last change of the directory before that count. `None` if the change was less
    /// than [`TICK`] before the count, or if a segment had no processors yet. The next count then
    /// reads the directory in any case.
    changed: Option<SystemTime>,
}

impl PollerCount {
    /// Returns the number of threads of this user and network namespace that poll endpoints on
    /// these processors, and the number of these processors. A thread that may also run elsewhere
    /// counts in part. If the quota ([`cores::quota`]) leaves fewer processors per thread, returns
    /// the number of all polling threads of this user and network namespace, and the quota.
    ///
    /// Other processes are assumed to poll like this one, with `pollers` threads. For example, one
    /// thread polls both endpoints of an Open MPI rank; with other MPIs each endpoint may have its
    /// own thread.
    pub fn population(&mut self, cores: &Cores, pollers: usize) -> (usize, usize) {
        self.count(cores);
        let own = own_count().max(1);
        let pollers = pollers.clamp(1, own);
        let here = ((self.load * pollers).div_ceil(own * WHOLE), cores.count());
        let all = ((self.endpoints * pollers).div_ceil(own), cores::quota());
        more_crowded(here, all)
    }

    fn count(&mut self, cores: &Cores) {
        let rest = COUNT * u32::try_from(self.endpoints).unwrap_or(u32::MAX);
        let since = self.counted.map_or(Duration::MAX, |counted| counted.elapsed());
        if since < rest.min(LONGEST) {
            return;
        }
        // If no descriptor is left to read the directory, the old count stands.
        let Ok(directory) = Directory::open() else { return };
        let changed = directory.change_time();
        let is_known = changed.is_some() && changed == self.changed && *cores == self.cores;
        if is_known && since < LONGEST {
            return;
        }
        let settled = |at: &SystemTime| at.elapsed().is_ok_and(|since| since > TICK);
        let mut changed = changed.filter(settled);
        let Ok(segments) = directory.names(&prefix()) else { return };
        (self.load, self.endpoints) = (0, 0);
        for name in segments {
            let theirs = cores_of(&directory, &name);
            if theirs.is_none() {
                // The segment has just been made and has no processors yet.
                changed = None;
            }
            self.load += theirs.map_or(WHOLE, |theirs| theirs.share(cores));
            self.endpoints += 1;
        }
        self.cores = *cores;
        self.changed = changed;
        self.counted = Some(Instant::now());
    }
}

/// Returns the pair of threads and processors with fewer processors per thread.
fn more_crowded(a: (usize, usize), b: (usize, usize)) -> (usize, usize) {
    if a.0.saturating_mul(b.1) < b.0.saturating_mul(a.1) { b } else { a }
}

/// Returns the processors that the owner of a segment may run on; `None` if the segment names none.
fn cores_of(directory: &Directory, name: &str) -> Option<Cores> {
    let mut bytes = [0; 8 * cores::WORDS];
    directory.file(name).ok()?.read_exact_at(&mut bytes, CORES as u64).ok()?;
    let cores = Cores(std::array::from_fn(|at| u64::from_ne_bytes(bytes.as_chunks().0[at])));
    Some(cores).filter(|cores| *cores != Cores::default())
}

#[cfg(test)]
mod tests {
    use std::{fs::File, io::Write as _, thread::sleep};

    use super::{CORES, COUNT, Cores, PollerCount, TICK, WHOLE, more_crowded};
    use crate::{directory, names::name_of};

    /// Files like the segments of endpoints that may run on these processors.
    fn segments(ports: std::ops::Range<u16>, cores: &Cores) -> Vec<File> {
        let made = ports.map(|port| {
            let mut file = directory::create_locked(&name_of(port)).unwrap();
            file.write_all(&[0; CORES]).unwrap();
            cores.0.iter().for_each(|word| file.write_all(&word.to_ne_bytes()).unwrap());
            file
        });
        made.collect()
    }

    /// Other tests have segments at the same time, but fewer than this test.
    #[test]
    fn new_endpoints_are_counted_in_time() {
        let here = Cores::of_thread();
        let mut count = PollerCount::default();
        let few = segments(900..902, &here);
        count.count(&here);
        assert!(count.load >= few.len() * WHOLE);
        let many = segments(902..922, &here);
        (0..10).for_each(|_| {
            sleep(TICK + COUNT * 4);
            count.count(&here);
        });
        assert!(count.load >= (few.len() + many.len()) * WHOLE);
        drop((few, many));
        crate::owner::clean_up();
    }

    #[test]
    fn the_more_crowded_of_quota_and_affinity_counts() {
        assert_eq!(more_crowded((1, 1), (16, 2)), (16, 2));
        assert_eq!(more_crowded((2, 1), (4, 2)), (2, 1));
        assert_eq!(more_crowded((3, 1), (4, 2)), (3, 1));
        assert_eq!(more_crowded((1, 64), (16, usize::MAX)), (1, 64));
    }
}
