// SPDX-License-Identifier: BSD-2-Clause
//! What `tcam watch` sees of a running endpoint: the first page of its segment (see
//! `channel/src/shm/segment.rs`), written by the provider and read by the lab.
//!
//! ```text
//!  0     identity | process id, 4 bytes | address | incarnation
//!  64    start of the process | its namespace | its image: where its word is, and the word
//!  128   state, 4 bytes | the first of its operations that is not void
//!  1024  the processors that its owner may run on
//!  2048  version | turn | rank + 1, or 0 | nanoseconds | job | tagged | msg
//! ```
//!
//! Words of 8 bytes in the order of the machine. The turn is odd while what follows is
//! written, and grows: who finds the same even turn before and after reading has read
//! what belongs together. A page may hold anything: nothing in it is a length or a place.

use matching::Tallies;

/// "tcamshm" and the version of a segment's layout.
pub const MAGIC: u64 = u64::from_be_bytes(*b"tcamshm\x08");
/// Where the identity is, in bytes.
pub const IDENTITY: usize = 0;
/// Where the process id is.
pub const PID: usize = 8;
/// Where the address is.
pub const ADDRESS: usize = 16;
/// Where the port is, and below it the incarnation of the endpoint there.
pub const INCARNATION: usize = 24;
/// Where the start of the process is, in clock ticks since boot.
pub const STARTED: usize = 64;
/// Where the number of the process's namespace is; 0 if it is not known.
pub const PROCESSES: usize = STARTED + 8;
/// Where it is told where the word of the owner's image is, and behind it the word.
pub const IMAGE: usize = PROCESSES + 8;
/// Where the state is.
pub const STATE: usize = 128;
/// Where the age of the first of its operations that is not void is: see `channel/src/wire.rs`.
pub const FIRST: usize = STATE + 8;
/// State of an endpoint that lives.
pub const OPEN: u32 = 1;
/// State of an endpoint that was closed.
pub const CLOSED: u32 = 2;
/// State of an endpoint whose process died, as whoever found that out says.
pub const DEAD: u32 = 3;
/// Where it is told which processors the owner may run on.
pub const CORES: usize = 1024;
/// Where the counters are.
pub const COUNTERS: usize = 2048;
/// Where the job is.
pub const JOB: usize = COUNTERS + 32;
/// Bytes of the page.
pub const PAGE: usize = 4096;

/// Bytes that a segment takes of `/dev/shm`, with up to 512 endpoints that send to it; 4 KiB more
/// for each further 512.
pub const SEGMENT: usize = 1_323_008;
/// Most endpoints that can send to one at a time: as many as there are ports.
pub const PEERS: usize = 65_536;

/// "tcamliv" and the version of the counters.
pub const VERSION: u64 = u64::from_be_bytes(*b"tcamliv\x02");
/// Words of the counters, version and turn among them.
pub const WORDS: usize = 5 + 2 * CONTEXT;
const CONTEXT: usize = 3 + 2 * QUEUE;
const QUEUE: usize = 8;

/// What an endpoint counted up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Live {
    /// Rank, when the launcher tells it.
    pub rank: Option<u32>,
    /// Nanoseconds since the endpoint was opened.
    pub ns: u64,
    /// See [`job_of`].
    pub job: u64,
    /// Tagged messages.
    pub tagged: LiveContext,
    /// Untagged messages.
    pub msg: LiveContext,
}

/// What a context counted up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LiveContext {
    /// Receives posted.
    pub posts: u64,
    /// Messages that arrived.
    pub arrivals: u64,
    /// Messages that found no receive.
    pub unexpected: u64,
    /// Posted receives.
    pub prq: Tallies,
    /// Unexpected messages.
    pub umq: Tallies,
}

/// A number for the processes that write their reports to one pattern, `FI_TCAM_REPORT`; zero
/// where they write none. It is a hash (FNV-1a): who has the same number may be another.
#[must_use]
pub fn job_of(pattern: &str) -> u64 {
    if pattern.is_empty() {
        return 0;
    }
    pattern.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What the names of segments begin with.
pub const SEGMENT_NAME: &str = "segment.";
/// The same of those that are being made.
pub const NEW: &str = "new.";
/// The same of those that dead endpoints left to who has the claim of their job. Their inode
/// follows the rest of the name they had.
pub const LEFT: &str = "left.";
/// What the names of the sockets begin with that endpoints sleep on.
pub const BELL: &str = "bell.";
/// What the names of claims begin with.
pub const CLAIM: &str = "claim.";

/// Name of the file that is locked by who wants what the dead of a job leave.
#[must_use]
pub fn claim_of(job: u64) -> String {
    format!("{CLAIM}{job:016x}")
}

fn words_of(tallies: &Tallies) -> [u64; QUEUE] {
    let Tallies {
        entries,
        table_matches,
        host_matches,
        spills,
        promotions,
        table_occupancy,
        host_occupancy,
        high_water,
    } = *tallies;
    [
        entries,
        table_matches,
        host_matches,
        spills,
        promotions,
        table_occupancy,
        host_occupancy,
        high_water,
    ]
}

fn tallies_of(words: &[u64]) -> Option<Tallies> {
    let &[
        entries,
        table_matches,
        host_matches,
        spills,
        promotions,
        table_occupancy,
        host_occupancy,
        high_water,
    ] = words.first_chunk::<QUEUE>()?;
    Some(Tallies {
        entries,
        table_matches,
        host_matches,
        spills,
        promotions,
        table_occupancy,
        host_occupancy,
        high_water,
    })
}

impl LiveContext {
    fn put(&self, words: &mut [u64]) {
        words[..3].copy_from_slice(&[self.posts, self.arrivals, self.unexpected]);
        words[3..3 + QUEUE].copy_from_slice(&words_of(&self.prq));
        words[3 + QUEUE..CONTEXT].copy_from_slice(&words_of(&self.umq));
    }

    fn of(words: &[u64]) -> Option<Self> {
        let &[posts, arrivals, unexpected] = words.first_chunk::<3>()?;
        let prq = tallies_of(&words[3..])?;
        let umq = tallies_of(&words[3 + QUEUE..])?;
        Some(Self { posts, arrivals, unexpected, prq, umq })
    }
}

impl Live {
    /// What stands behind version and turn.
    #[must_use]
    pub fn to_words(&self) -> [u64; WORDS - 2] {
        let mut words = [0; WORDS - 2];
        words[0] = self.rank.map_or(0, |rank| u64::from(rank) + 1);
        (words[1], words[2]) = (self.ns, self.job);
        self.tagged.put(&mut words[3..3 + CONTEXT]);
        self.msg.put(&mut words[3 + CONTEXT..]);
        words
    }

    fn of(words: &[u64]) -> Option<Self> {
        let (tagged, msg) = words[3..].split_at(CONTEXT);
        Some(Self {
            rank: words[0].checked_sub(1).and_then(|rank| u32::try_from(rank).ok()),
            ns: words[1],
            job: words[2],
            tagged: LiveContext::of(tagged)?,
            msg: LiveContext::of(msg)?,
        })
    }
}

/// What the first page of an endpoint's segment says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Process id of the owner.
    pub pid: u32,
    /// When the owner started, in clock ticks since boot.
    pub started: u64,
    /// Port of the endpoint.
    pub port: u16,
    /// The counters; none if this provider writes others, or none yet.
    pub live: Option<Live>,
}

impl Page {
    /// The page that was read twice, the second time after the first; nothing if it is
    /// none of an endpoint that was not closed, or was written meanwhile: to be read again.
    #[must_use]
    pub fn read(first: &[u8; PAGE], second: &[u8; PAGE]) -> Option<Self> {
        let word = |page: &[u8; PAGE], at: usize| {
            page[at..].first_chunk::<8>().map(|bytes| u64::from_ne_bytes(*bytes))
        };
        let short = |at: usize| first[at..].first_chunk::<4>().map(|at| u32::from_ne_bytes(*at));
        // What the dead had counted is told, too.
        if word(first, IDENTITY)? != MAGIC || !matches!(short(STATE)?, OPEN | DEAD) {
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
                Live::of(&words)
            }
            _ => None,
        };
        let port = word(first, ADDRESS)? as u16;
        Some(Self { pid: short(PID)?, started: word(first, STARTED)?, port, live })
    }
}

/// When a process started, from `/proc/PID/stat`. None if it is a zombie: one whose first
/// thread alone ended is not.
#[must_use]
pub fn start_of(stat: &str) -> Option<u64> {
    // proc_pid_stat(5): the state follows the name, which may hold anything but
    // ends at the last parenthesis; the start time is field 22.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let threads: u32 = fields.nth(16)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    (!matches!(state, "Z" | "X") || threads > 1).then_some(started)
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
        Live::of(&words).unwrap()
    }

    fn page(turn: u64) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        let mut put = |at: usize, word: u64| page[at..at + 8].copy_from_slice(&word.to_ne_bytes());
        put(IDENTITY, MAGIC);
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
    fn what_is_written_is_read() {
        assert_eq!(live().rank, Some(999));
        assert_eq!((live().tagged.posts, live().msg.umq.high_water), (4000, 41_000));
        let read = Page::read(&page(6), &page(6)).unwrap();
        assert_eq!(read, Page { pid: 42, started: 7, port: 5000, live: Some(live()) });
    }

    #[test]
    fn jobs_are_told_apart() {
        assert_eq!(job_of(""), 0);
        assert_eq!(job_of("a"), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(job_of("/tmp/a/%r.%p"), job_of("/tmp/b/%r.%p"));
    }

    #[test]
    fn what_is_being_written_is_not_read() {
        assert_eq!(Page::read(&page(7), &page(7)), None);
        assert_eq!(Page::read(&page(6), &page(8)), None);
    }

    #[test]
    fn counters_of_another_version_are_not_read() {
        let mut page = page(6);
        page[COUNTERS] ^= 1;
        assert_eq!(Page::read(&page, &page).unwrap().live, None);
        page[0] ^= 1;
        assert_eq!(Page::read(&page, &page), None);
    }

    #[test]
    fn a_start_is_field_22_and_a_zombie_has_none() {
        let stat = |state, threads: u32| {
            let field = |n| format!("{} ", if n == 20 { threads } else { n });
            format!("12 (a) b) {state} {}", (4..40).map(field).collect::<String>())
        };
        assert_eq!(
            (start_of(&stat("S", 1)), start_of(&stat("Z", 1)), start_of("")),
            (Some(22), None, None)
        );
        // The first thread ended, others go on.
        assert_eq!(start_of(&stat("Z", 2)), Some(22));
    }

    proptest! {
        #[test]
        fn a_page_may_hold_anything(at in 0..PAGE, to in any::<u8>()) {
            let mut page = page(6);
            page[at] = to;
            let _ = Page::read(&page, &page);
        }
    }
}
