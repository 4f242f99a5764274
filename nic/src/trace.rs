// SPDX-License-Identifier: BSD-2-Clause
//! Traces: the operations on one matching context, recorded so that they can be replayed on another
//! (`FI_TCAM_TRACE`, `tcam replay`).
//!
//! A file consists of a header, a window and the records of one context, all in little-endian words
//! of 4 bytes:
//!
//! ```text
//! byte 0        HEADER   + window
//!      | header | window | record | record | ...  the end |
//! header   "tcam-trace 7\n", or 8 if sites are recorded; a JSON object ([`Header`]),
//!          spaces; its last 16 bytes are
//!          laps (8: how often the window was appended), why the recording ended
//!          (4: 1 size limit reached, 2 full disk, 3 endpoint closed, or 0), and
//!          the number of words in the window (4: 0 if the endpoint was not closed)
//! window   record | record | ... | a zero word unless it is full        if present
//!          (generated traces have none: laps is the number of words, or 0 if unknown)
//! record   word 0   4..0 kind   5 flag   15..6 place of a key   31..16 length
//!          then the further words of the kind
//! ```
//!
//! Many operations have the same key: match bits, ignore bits and a source. Each key is written
//! into a list of [`KEYS`] keys, and an operation names the place of its key in the list. A key is
//! written again if another key has taken its place. At first all places hold zeros.
//!
//! | kind | further words | |
//! |---|---|---|
//! | key | source, match bits (2), ignore bits (2) | sets the key of the place; all ones is any source |
//! | time | nanoseconds (2) | time of the following records since the header's start |
//! | step | | time of the following records since that of the previous ones, in nanoseconds in bits 31..6 |
//! | later | | repeats the last operation; its time is as in a step |
//! | multi | length, bytes used, `min` (2 each) | the `MultiRecv` of the next post |
//! | long | length (2) | length of the next receive, message or send, if it does not fit the field |
//! | post | | a receive into a buffer of this length; the flag is set for a non-contiguous buffer |
//! | post anyway | | a receive that is never held back (`flow-control`) |
//! | held | | a receive that was held back |
//! | arrive | | a message of this length; its key has no ignore bits |
//! | peek | | a probe of the unexpected messages |
//! | cancel | number (2) | cancels the receive before which this number of receives were posted |
//! | drop | number (2) | drops the message before which this number of messages arrived |
//! | processes | number | sets the number of processes |
//! | peer | number, IPv4, port | the address of a peer number, before the first operation that names it |
//! | fill | | no operation: the next record did not fit into the window |
//! | again | | repeats the last operation as often as the length says, at most 255 times |
//! | claim | | a probe that sets the message it finds aside |
//! | discard | | a probe that drops the message it finds |
//! | send | | a message of this length that this endpoint sent; its key names the receiver and has no ignore bits |
//! | error | peer number, nanoseconds | largest error of the times of the following messages of the peer |
//! | thread | number, nanoseconds (2) | the thread of the following operations, and its processor time so far |
//! | turn | | like thread, without the processor time: the number is in bits 31..6 |
//! | poll | nanoseconds (2) | the end of a poll of the program, the first after messages, at this time since the header's start |
//! | site | | the place in the program that called the following posts, sends, claims and discards: its number in bits 31..6, 0 for none |
//! | text | 24 bytes (6) | part of an entry of the table of sites ([`Sites`]), of this length; the flag marks the last part |
//!
//! Threads are numbered from 0 in the order in which the process recorded them first, the same in
//! all its traces. Operations before the first *thread* or *turn* are of thread 0, so a trace of
//! one thread needs neither record. The flag of both marks the provider's progress thread
//! (`FI_PROGRESS_AUTO`).
//!
//! Sites are recorded only on request (`FI_TCAM_TRACE_SITES`), and make the trace one of version 8,
//! which an older `tcam` refuses. Otherwise the two versions are alike.
//!
//! Sends, polls and processor times are recorded only on request (`FI_TCAM_TRACE_SENDS`). Matching
//! depends neither on them nor on threads. Messages that came before a poll may be recorded after it,
//! because a poll handles a part of them.
//!
//! The recorder writes into the window. When the window is full, the recorder appends a copy of it
//! to the file, clears the first word of the window, and increments `laps`. So the youngest records
//! are in the window. If the process was killed before it incremented `laps`, a further copy of the
//! window, or a part of it, follows the copies that `laps` counts, and replaces this part of the
//! window. The recorder writes word 0 of a record last, and a record is valid only if its word 0 is
//! not zero. So the file of a process that was killed at any moment can be read. The youngest
//! *again* record is overwritten with a higher count.
//!
//! Operations are in the order of the file, which is the order in which the device handled them.
//! Their times never decrease. The time of an operation is that of the call that made it, and for
//! an arrival the time at which the message came. The sender of the message writes that time into
//! the slot (`channel/src/wire.rs`) or into the frame of the network. The receiver of a frame knows the offset of the clocks within an *error*
//! (`channel/src/net/peer_clock.rs`). Up to the first such record, the error is 0. A message to
//! receives that several endpoints share has the time at which the device handled it. A message that
//! came before the previous operation has the time of that operation.
//!
//! Matching depends only on the operations, so a replay with the recorded configuration gives the
//! counts of the provider.

mod code;
mod input;
mod op;
mod sites;

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};

pub use self::code::{
    Address, Encoder, FILL, KEYS, MOST_REPEATS, MOST_SITES, Sink, later_record, put_error,
    put_peer, put_poll, put_thread, put_time, repeat_record, site_record, state, step_record,
};
use self::code::{Decoder, NoRecord, Record};
pub use self::input::WORD;
use self::input::{Input, NoWords, fill};
pub use self::op::{End, Op, OpWord, Posted, Recorder, Sent, Stop, Thread};
pub use self::sites::{Caller, Module, Site, Sites, put_module, put_site};
use crate::origin::Origin;
use crate::plain::{self, plain};

/// First bytes of a trace without sites.
pub const MAGIC: &str = "tcam-trace 7\n";
/// First bytes of a trace with sites, as many as [`MAGIC`].
const WITH_SITES: &str = "tcam-trace 8\n";
/// First bytes of a trace of any version.
const ANY_VERSION: &str = "tcam-trace ";
/// Bytes of the header.
pub const HEADER: usize = 8192;
/// Bytes at the end of the header, which [`state`] encodes.
pub const STATE: usize = 4 * WORD;
/// Maximum length in bytes of a configuration value that is not a path.
const LONGEST_VALUE: usize = 64;
/// Largest window in bytes that is accepted.
const LARGEST_WINDOW: u32 = 1 << 20;

/// The header of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// `tagged` or `msg`.
    pub context: String,
    /// Version of tcam that recorded the trace.
    pub tcam: String,
    /// Version of libfabric, such as `2.5`.
    pub libfabric: String,
    /// Host name.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// Rank, if the launcher sets it.
    pub rank: Option<u32>,
    /// Address of the endpoint, `ip:port`.
    pub address: String,
    /// Path of the program.
    pub program: String,
    /// The run that the trace is from.
    pub origin: Origin,
    /// Bytes of the window after the header; 0 without a window.
    pub window: u32,
    /// Start of the recording, in nanoseconds since 1970.
    pub start_ns: u64,
    /// Start of the recording in nanoseconds of the host's `CLOCK_MONOTONIC`; 0 if it is unknown.
    pub start_clock_ns: u64,
    /// Whether sites are recorded. The first bytes of the file have this.
    #[serde(skip)]
    pub sites: bool,
    /// The tag layout in force (`auto` resolved).
    pub layout: String,
    /// The `FI_TCAM_*` values in force, by name, see
    /// [`Params::recorded`](crate::params::Params::recorded).
    pub config: BTreeMap<String, String>,
}

impl Header {
    fn make_plain(&mut self) {
        let Self { context, tcam, libfabric, host, address, program, layout, config, .. } = self;
        let texts = [context, tcam, libfabric, host, address, program, layout];
        plain::make_plain(texts.into_iter().chain(config.values_mut()));
        plain::make_keys_plain(config);
        self.origin.make_plain();
    }

    /// The header as bytes of a file. If it is too long, leaves out the command line, paths and
    /// other long values; the values that a replay needs are short.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let text = |header: &Self| serde_json::to_string(header).unwrap_or_default();
        let mut json = text(self);
        if MAGIC.len() + json.len() >= HEADER - STATE {
            let mut short = Self { program: String::new(), ..self.clone() };
            short.origin.command.clear();
            short.config.retain(|_, value| value.len() <= LONGEST_VALUE);
            json = text(&short);
        }
        let magic = if self.sites { WITH_SITES } else { MAGIC };
        let mut bytes = format!("{magic}{json}").into_bytes();
        bytes.resize(HEADER - STATE, b' ');
        bytes.resize(HEADER, 0);
        bytes
    }
}

/// Reads a trace in parts of 256 KiB.
#[derive(Debug)]
pub struct Reader<R> {
    from: Input<R>,
    header: Header,
    decoder: Decoder,
    end: End,
    peers: BTreeMap<u32, Address>,
    errors: BTreeMap<u32, u32>,
    thread: Thread,
    site: u32,
    sites: Sites,
    polled: Option<u64>,
    now: u64,
    /// Records read.
    position: u64,
    at_end: bool,
    ended: bool,
}

/// An operation and its time, in nanoseconds since the start of the recording.
pub type Timed = (u64, Op);

impl<R: Read> Reader<R> {
    /// Reads the header and the window.
    ///
    /// # Errors
    /// The file cannot be read, or is empty, too short, damaged, not a trace or of another version.
    pub fn new(mut from: R) -> Result<Self, TraceError> {
        let mut bytes = vec![0; HEADER];
        let len = fill(&mut from, &mut bytes)?;
        if len == 0 {
            return Err(TraceError::Empty);
        }
        if len < MAGIC.len()
            && [MAGIC, WITH_SITES].iter().any(|magic| magic.as_bytes().starts_with(&bytes[..len]))
        {
            return Err(TraceError::Short(len));
        }
        check_version(&bytes[..len])?;
        if len < HEADER {
            return Err(TraceError::Short(len));
        }
        let (text, state) = bytes.split_at(HEADER - STATE);
        let mut header: Header = serde_json::from_slice(&text[MAGIC.len()..])?;
        header.make_plain();
        header.sites = bytes.starts_with(WITH_SITES.as_bytes());
        let words = std::array::from_fn(|at| u32::from_le_bytes(state.as_chunks().0[at]));
        let (laps, end) = code::state_of(words).ok_or(TraceError::State)?;
        let window = read_window(&mut from, header.window)?;
        let from = Input::new(from, laps, window);
        Ok(Self {
            from,
            header,
            decoder: Decoder::default(),
            end,
            peers: BTreeMap::new(),
            errors: BTreeMap::new(),
            thread: Thread::default(),
            site: 0,
            sites: Sites::default(),
            polled: None,
            now: 0,
            position: 0,
            at_end: false,
            ended: false,
        })
    }

    /// The header of the trace.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Addresses of the peers named up to now, by peer number.
    pub fn peers(&self) -> &BTreeMap<u32, Address> {
        &self.peers
    }

    /// Largest error in nanoseconds of the time of an operation that was read last: of a message
    /// from another host, the error of the clocks; otherwise 0.
    #[must_use]
    pub fn error(&self, op: &Op) -> u64 {
        match op {
            Op::Arrive(message) => {
                self.errors.get(&message.source).copied().unwrap_or_default().into()
            }
            _ => 0,
        }
    }

    /// The thread that did the last operation read, with its processor time if that was recorded.
    #[must_use]
    pub fn thread(&self) -> Thread {
        self.thread
    }

    /// The number of the site of the last post or send read; 0 if it is unknown.
    #[must_use]
    pub fn site(&self) -> u32 {
        self.site
    }

    /// The time of the last poll, in nanoseconds since the start of the recording,
    /// if there was one since the last call.
    pub fn take_polled(&mut self) -> Option<u64> {
        self.polled.take()
    }

    /// The sites named up to now.
    pub fn sites(&self) -> &Sites {
        &self.sites
    }

    /// Returns true if the recording process was killed during the recording, or still runs.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.end == End::Open
    }

    /// Why the recording ended before the program; `None` if it did not.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        match self.end {
            End::Stopped(stop) => Some(stop),
            End::Open | End::Closed(_) => None,
        }
    }

    /// Bytes of records read up to now.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.from.bytes_read
    }

    #[inline]
    fn read(&mut self) -> Result<Option<Timed>, TraceError> {
        while !self.at_end {
            let record = self.decoder.record(&mut self.from);
            match record {
                Ok(Record::Op(op)) => {
                    self.position += 1;
                    return Ok(Some((self.now, op)));
                }
                Ok(Record::Time(now)) => self.now = now,
                Ok(Record::Step(more)) => self.now = self.now.saturating_add(more.into()),
                Ok(Record::Peer(number, address)) => {
                    self.peers.insert(number, address);
                }
                Ok(Record::Error(number, error)) => {
                    self.errors.insert(number, error);
                }
                Ok(Record::Thread(thread)) => self.thread = thread,
                Ok(Record::Poll(time)) => self.polled = Some(time),
                Ok(Record::Site(number)) if number as usize <= self.sites.sites.len() => {
                    self.site = number;
                }
                Ok(Record::Text(text)) if self.sites.add(&plain(&text)).is_some() => {}
                Ok(Record::Site(_) | Record::Text(_)) => {
                    return Err(TraceError::Record(self.position));
                }
                Ok(Record::More) => {}
                Err(NoRecord::End) => {
                    let words = if let End::Closed(words) = self.end { words } else { 0 };
                    if !self.from.ends_at(words) {
                        return Err(TraceError::Cut(self.position));
                    }
                    self.at_end = true;
                    return Ok(self.stop().map(|stop| (self.now, Op::Stop(stop))));
                }
                Err(NoRecord::Damaged) => return Err(TraceError::Record(self.position)),
                Err(NoRecord::Words(NoWords::Cut)) => return Err(TraceError::Cut(self.position)),
                Err(NoRecord::Words(NoWords::Io(error))) => return Err(error.into()),
            }
            self.position += 1;
        }
        Ok(None)
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Timed, TraceError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Checks that these are the first bytes of a trace of this version.
fn check_version(bytes: &[u8]) -> Result<(), TraceError> {
    match bytes.strip_prefix(ANY_VERSION.as_bytes()) {
        _ if [MAGIC, WITH_SITES].iter().any(|magic| bytes.starts_with(magic.as_bytes())) => Ok(()),
        Some([_, _, ..]) => Err(TraceError::Version),
        _ => Err(TraceError::Foreign),
    }
}

/// Reads a window of `length` bytes; empty if `length` is 0.
fn read_window(from: &mut impl Read, length: u32) -> Result<Vec<u8>, TraceError> {
    if length == 0 {
        return Ok(Vec::new());
    }
    if length > LARGEST_WINDOW || !(length as usize).is_multiple_of(WORD) {
        return Err(TraceError::Window(length));
    }
    let mut bytes = vec![0; length as usize];
    let len = fill(from, &mut bytes)?;
    if len < bytes.len() {
        return Err(TraceError::Short(HEADER + len));
    }
    Ok(bytes)
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file is empty.
    #[error("an empty file: nothing was recorded")]
    Empty,
    /// The file ends within the header or the window.
    #[error("cut off before the first record, after {0} bytes")]
    Short(usize),
    /// The file is not a trace.
    #[error("not a tcam trace")]
    Foreign,
    /// The trace is of another version.
    #[error("a trace in the format of another version of tcam: record it again")]
    Version,
    /// The header is damaged.
    #[error("the header is damaged: {0}")]
    Header(#[from] serde_json::Error),
    /// The state at the end of the header is invalid.
    #[error("the end of the header is damaged")]
    State,
    /// The length of the window is invalid.
    #[error("the header is damaged: it names a window of {0} bytes")]
    Window(u32),
    /// A record is invalid.
    #[error("record {0} is damaged")]
    Record(u64),
    /// The file ends within a record.
    #[error("cut off in record {0}")]
    Cut(u64),
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
