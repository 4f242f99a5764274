// SPDX-License-Identifier: BSD-2-Clause
//! Who else is on this host: endpoints are counted, and what dead ones left is removed.

use std::{
    fs::DirEntry,
    io,
    time::{Duration, Instant, SystemTime},
};

use super::{
    owner::remove_if_dead,
    segment::{DIRECTORY, own_count, prefix, user},
};

/// Removes the segments of owners that died, and counts those that live.
pub(crate) fn clean_up() -> usize {
    let Ok(segments) = segments() else { return 0 };
    segments.filter(|entry| !remove_if_dead(&entry.path())).count()
}

/// The segments of this user and network namespace.
fn segments() -> io::Result<impl Iterator<Item = DirEntry>> {
    let prefix = prefix(user());
    let entries = std::fs::read_dir(DIRECTORY)?.flatten();
    Ok(entries.filter(move |entry| entry.file_name().to_string_lossy().starts_with(&prefix)))
}

/// Time between two counts, for each endpoint there is: with as many endpoints that count,
/// all of them together read so many entries a second, however many they are.
const COUNT: Duration = Duration::from_millis(2);

/// Two changes of a directory within this time may bear the same date.
const TICK: Duration = Duration::from_millis(20);

/// Time after which it is counted in any case: clocks may stand still or be set back.
const LONGEST: Duration = Duration::from_secs(10);

/// How many endpoints there are.
///
/// Reading the directory takes a microsecond an entry, and longer if others do. 256 ranks
/// that did it 20 times a second did little else (2 cores): it is read when it has changed,
/// and the less often the more there are.
#[derive(Debug, Default)]
pub(crate) struct Census {
    endpoints: usize,
    /// When it was last counted.
    counted: Option<Instant>,
    /// When the directory had last changed then, if that was some time before.
    changed: Option<SystemTime>,
}

impl Census {
    /// Threads of this user and network namespace that poll endpoints, if those of others are
    /// polled as ours are, by `pollers` threads: one polls both endpoints of a rank of Open
    /// MPI, and elsewhere each may have a thread of its own.
    pub(crate) fn population(&mut self, pollers: usize) -> usize {
        self.count();
        let own = own_count().max(1);
        (self.endpoints * pollers.clamp(1, own)).div_ceil(own)
    }

    fn count(&mut self) {
        let rest = COUNT * u32::try_from(self.endpoints).unwrap_or(u32::MAX);
        let since = self.counted.map_or(Duration::MAX, |counted| counted.elapsed());
        if since < rest.min(LONGEST) {
            return;
        }
        let changed = std::fs::metadata(DIRECTORY).and_then(|meta| meta.modified()).ok();
        if changed.is_some() && changed == self.changed && since < LONGEST {
            return;
        }
        let settled = |at: &SystemTime| at.elapsed().is_ok_and(|since| since > TICK);
        let changed = changed.filter(settled);
        // Without a descriptor to read it with, it is as it was.
        if let Ok(segments) = segments() {
            self.endpoints = segments.count();
            self.changed = changed;
            self.counted = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        net::{Ipv4Addr, SocketAddrV4},
        thread::sleep,
    };

    use super::{super::segment::Segment, COUNT, Census, TICK};

    /// Other tests have segments at the same time, but not so many.
    #[test]
    fn endpoints_that_come_are_counted_in_time() {
        let of = |ports: std::ops::Range<u16>| {
            let address = |port| SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
            ports.map(|port| Segment::create(address(port)).unwrap()).collect::<Vec<_>>()
        };
        let mut census = Census::default();
        let few = of(900..902);
        census.count();
        assert!(census.endpoints >= few.len());
        let many = of(902..922);
        (0..10).for_each(|_| {
            sleep(TICK + COUNT * 4);
            census.count();
        });
        assert!(census.endpoints >= few.len() + many.len());
    }
}
