// SPDX-License-Identifier: BSD-2-Clause
//! The first page of an endpoint's segment (see `channel/src/shm/segment.rs`), from which `tcam
//! watch` reads the counters. The provider writes it and the lab reads it.
//!
//! ```text
//!  0     magic number | process id, 4 bytes | address | identity of the endpoint
//!  64    start of the process | its namespace | its exec id: address and value of a word
//!  128   state, 4 bytes | age of its first operation that is not void
//!  1024  the processors that its owner may run on
//!  2048  version | turn | rank + 1, or 0 | nanoseconds | job | tagged | msg
//! ```
//!
//! All words but the process id and the state have 8 bytes; all are in host byte order. The turn is
//! odd while the words after it are written, and grows with each write. A reader that finds the
//! same even turn before and after reading has a consistent copy. A page may hold anything, so no
//! word in it is used as a length or an offset.

use matching::Tallies;
use nic::report::LiveContext;

/// "tcamshm" and the version of the segment layout.
pub const MAGIC: u64 = u64::from_be_bytes(*b"tcamshm\x09");
/// Offset of [`MAGIC`] in bytes.
pub const MAGIC_AT: usize = 0;
/// Offset of the process id.
pub const PID: usize = 8;
/// Offset of the address.
pub const ADDRESS: usize = 16;
/// Offset of the identity of the endpoint: its port, context and incarnation; see
/// `channel/src/identity.rs`.
pub const ENDPOINT_IDENTITY: usize = 24;
/// Offset of the time at which the process started, in clock ticks since boot.
pub const STARTED: usize = 64;
/// Offset of the number of the process's namespace; see
/// [`PROCESS_NAMESPACE`](crate::owner::PROCESS_NAMESPACE).
pub const NAMESPACE: usize = STARTED + 8;
/// Offset of the owner's exec id: the address of a word in its memory, then the value of the word.
pub const EXEC_ID: usize = NAMESPACE + 8;
/// Offset of the state.
pub const STATE: usize = 128;
/// Offset of the age of the owner's first operation that is not void; see `channel/src/wire.rs`.
pub const FIRST_VALID_AGE: usize = STATE + 8;
/// State of an open endpoint.
pub const OPEN: u32 = 1;
/// State of an endpoint that was closed.
pub const CLOSED: u32 = 2;
/// State of an endpoint whose process died. The process that detects the death writes it.
pub const DEAD: u32 = 3;
/// Offset of the set of processors that the owner may run on.
pub const CORES: usize = 1024;
/// Offset of the counters.
pub const COUNTERS: usize = 2048;
/// Offset of the job, a word of the counters.
pub const JOB: usize = COUNTERS + 32;
/// Bytes of the page.
pub const PAGE: usize = 4096;

/// Bytes of `/dev/shm` that a segment takes with up to 512 endpoints that send to it; each further
/// 512 take 4 KiB more.
pub const SEGMENT: usize = 1_323_008;
/// Maximum number of endpoints that can send to an endpoint at the same time: as many as ports.
pub const PEERS: usize = 65_536;

/// "tcamliv" and the version of the counters.
pub const VERSION: u64 = u64::from_be_bytes(*b"tcamliv\x02");
/// Number of words of the counters, including version and turn.
pub const WORDS: usize = 5 + 2 * CONTEXT;
const CONTEXT: usize = LiveContext::COUNTERS.len() + 2 * Tallies::COUNTERS.len();

/// The counters of an endpoint up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Rank, if the launcher sets it.
    pub rank: Option<u32>,
    /// Nanoseconds since the endpoint was opened.
    pub ns: u64,
    /// See [`job_of`](crate::names::job_of).
    pub job: u64,
    /// Tagged messages.
    pub tagged: LiveContext,
    /// Untagged messages.
    pub msg: LiveContext,
}

impl Live {
    /// Returns the words after version and turn.
    #[must_use]
    pub fn to_words(&self) -> [u64; WORDS - 2] {
        let queue = |of: Tallies| Tallies::COUNTERS.iter().map(move |counter| (counter.get)(&of));
        let context = |of: LiveContext| {
            let own = LiveContext::COUNTERS.iter().map(move |counter| (counter.get)(&of));
            own.chain(queue(of.prq)).chain(queue(of.umq))
        };
        let rank = self.rank.map_or(0, |rank| u64::from(rank) + 1);
        let contexts = [self.tagged, self.msg].into_iter().flat_map(context);
        let mut words = [rank, self.ns, self.job].into_iter().chain(contexts);
        std::array::from_fn(|_| words.next().unwrap_or(0))
    }

    fn of(words: &[u64; WORDS - 2]) -> Self {
        let mut words = words.iter().copied();
        let mut next = || words.next().unwrap_or(0);
        let rank = next().checked_sub(1).and_then(|rank| u32::try_from(rank).ok());
        let mut live = Self { rank, ns: next(), job: next(), ..Self::default() };
        for context in [&mut live.tagged, &mut live.msg] {
            LiveContext::COUNTERS.iter().for_each(|of| *(of.place)(context) = next());
            for queue in [&mut context.prq, &mut context.umq] {
                Tallies::COUNTERS.iter().for_each(|of| *(of.place)(queue) = next());
            }
        }
        live
    }
}

/// The contents of the first page of an endpoint's segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentHeader {
    /// Process id of the owner.
    pub pid: u32,
    /// The time at which the owner's process started, in clock ticks since boot.
    pub started: u64,
    /// Port of the endpoint.
    pub port: u16,
    /// The counters; `None` if the provider writes another version of them, or has not written any
    /// yet.
    pub live: Option<Live>,
}

impl SegmentHeader {
    /// Parses a page that was read twice. Returns `None` if it is not the page of an open or dead
    /// endpoint, or if it was written meanwhile; the caller then reads it again.
    #[must_use]
    pub fn read(first: &[u8; PAGE], second: &[u8; PAGE]) -> Option<Self> {
        let word = |page: &[u8; PAGE], at: usize| {
            page[at..].first_chunk::<8>().map(|bytes| u64::from_ne_bytes(*bytes))
        };
        let short = |at: usize| first[at..].first_chunk::<4>().map(|at| u32::from_ne_bytes(*at));
        // The counters of dead endpoints are returned as well.
        if word(first, MAGIC_AT)? != MAGIC || !matches!(short(STATE)?, OPEN | DEAD) {
            return None;
        }
        let live = match word(first, COUNTERS)? {
            VERSION => {
                let turn = word(first, COUNTERS + 8)?;
                if !turn.is_multiple_of(2) || word(second, COUNTERS + 8)? != turn {
                    return None;
                }
                let mut words = [0; WORDS - 2];
                for (to, at) in words.iter_mut().zip((COUNTERS + 16..).step_by(8)) {
                    *to = word(first, at)?;
                }
                Some(Live::of(&words))
            }
            _ => None,
        };
        let port = word(first, ADDRESS)? as u16;
        Some(Self { pid: short(PID)?, started: word(first, STARTED)?, port, live })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn live() -> Live {
        let mut words = [0; WORDS - 2];
        for (word, at) in words.iter_mut().zip(1..) {
            *word = at * 1000;
        }
        Live::of(&words)
    }

    fn page(turn: u64) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        let mut put = |at: usize, word: u64| page[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        put(MAGIC_AT, MAGIC);
        put(PID, 42);
        put(ADDRESS, 5000);
        put(STARTED, 7);
        put(STATE, u64::from(OPEN));
        put(COUNTERS, VERSION);
        put(COUNTERS + 8, turn);
        for (word, at) in live().to_words().into_iter().zip((COUNTERS + 16..).step_by(8)) {
            put(at, word);
        }
        page
    }

    #[test]
    fn a_written_page_is_read_back() {
        assert_eq!(live().rank, Some(999));
        assert_eq!((live().tagged.posts, live().msg.umq.high_water), (4000, 41_000));
        let read = SegmentHeader::read(&page(6), &page(6)).unwrap();
        assert_eq!(read, SegmentHeader { pid: 42, started: 7, port: 5000, live: Some(live()) });
    }

    #[test]
    fn a_page_that_is_being_written_is_not_read() {
        assert_eq!(SegmentHeader::read(&page(7), &page(7)), None);
        assert_eq!(SegmentHeader::read(&page(6), &page(8)), None);
    }

    #[test]
    fn counters_of_another_version_are_not_read() {
        let mut page = page(6);
        page[COUNTERS] ^= 1;
        assert_eq!(SegmentHeader::read(&page, &page).unwrap().live, None);
        page[0] ^= 1;
        assert_eq!(SegmentHeader::read(&page, &page), None);
    }

    proptest! {
        #[test]
        fn a_page_may_hold_anything(at in 0..PAGE, to in any::<u8>()) {
            let mut page = page(6);
            page[at] = to;
            let _ = SegmentHeader::read(&page, &page);
        }
    }
}
