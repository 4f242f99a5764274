// SPDX-License-Identifier: BSD-2-Clause
//! Traces: what was asked of one matching context, to be asked again of another
//! (`FI_TCAM_TRACE`, `tcam replay`).
//!
//! A file is a header, a window and records of one context, all in little-endian words
//! of 4 bytes:
//!
//! ```text
//! byte 0        HEADER   + window
//!      | header | window | record | record | ...  the end |
//! header   "tcam-trace 6\n", a JSON object ([`Header`]), spaces; its last 16 bytes are
//!          laps (8), why the recording ended (4; 1 at the size allowed, 2 with a full
//!          disk, 3 with its endpoint, or 0) and zeros
//! window   record | record | ... | a zero word unless it is full        if there is one
//! record   word 0   4..0 kind   5 flag   15..6 place of a key   31..16 length
//!          and what the kind needs
//! ```
//!
//! Operations name match bits, ignore bits and a source, which repeat: these stand once
//! in a list of [`KEYS`] keys, and an operation names its place. All places hold zeros
//! at first.
//!
//! | kind | further words | |
//! |---|---|---|
//! | key | source, match bits (2), ignore bits (2) | what the place holds from now on; all ones is any source |
//! | time | nanoseconds (2) | since the header's start, of all that follows |
//! | multi | length, bytes used, least room that keeps it (2 each) | of the next post's buffer, which takes several messages |
//! | long | length (2) | of the next receive, message or send, if the field has no room for it |
//! | post | | a receive into a buffer of so many bytes; the flag is set for one in parts |
//! | post anyway | | a receive that is not to be held back (`flow-control`) |
//! | held | | a receive that was held back |
//! | arrive | | a message, of so many bytes; its key has no ignore bits |
//! | peek | | a look at the unexpected messages |
//! | cancel | number (2) | a posted receive, of which so many were posted before |
//! | drop | number (2) | an unexpected message, before which so many arrived |
//! | processes | number | so many processes there are |
//! | peer | number, IPv4, port | the address of a peer number, before the first operation that names it |
//! | fill | | nothing: the next record did not fit into the window |
//! | again | | the last operation, as often again as the length says, at most 255 times |
//! | claim | | a look at the unexpected messages; what is found is set aside to be received |
//! | discard | | the same; what is found is dropped |
//! | send | | a message that this endpoint sent, of so many bytes; its key names the receiver and has no ignore bits |
//! | thread | number, nanoseconds (2) | the thread that does what follows, and its processor time by then |
//! | turn | | the same without its processor time: the number is in bits 31..6 |
//!
//! Threads have numbers in the order in which their process recorded them first, from 0, in all its
//! traces alike. Thread 0 does what stands before the first *thread* or *turn*, so a program with one
//! thread has none of these. In both, the flag is set for the thread of the provider that makes
//! progress (`FI_PROGRESS_AUTO`).
//!
//! Sends and processor times are there if they are asked for (`FI_TCAM_TRACE_SENDS`). Matching depends
//! neither on them nor on threads.
//!
//! The recorder writes into the window, and appends it to the file when it is full.
//! Then `laps` grows by one, and the window begins again. So the youngest records are
//! those of the window, unless the file has them behind `laps` windows already: what a
//! process leaves that is killed at any moment can be read, since a record counts when
//! its word 0 is written, the last of it. While it is the youngest, *again* is written over
//! with a higher count.
//!
//! Order is that of the file. The time of an operation is when the recorder last
//! looked at the clock: looking takes longer than recording. It looks with every cancel and drop.
//!
//! Matching depends on these alone, so a replay with the recorded configuration
//! counts what the provider counted.

mod code;
mod input;
mod op;

use std::collections::BTreeMap;
use std::io::{self, Read};

use serde::{Deserialize, Serialize};

pub use self::code::{
    Address, Encoder, FILL, KEYS, MOST_AGAIN, Sink, again, put_peer, put_thread, put_time, state,
};
use self::code::{Decoder, NoRecord, Record};
pub use self::input::WORD;
use self::input::{Input, NoWords, fill};
pub use self::op::{End, Head, Op, Posted, Recorder, Sent, Stop, Thread};
use crate::origin::Origin;
use crate::plain;

/// First bytes of a trace.
pub const MAGIC: &str = "tcam-trace 6\n";
/// The same up to the version.
const ANY_VERSION: &str = "tcam-trace ";
/// Bytes of the header.
pub const HEADER: usize = 8192;
/// Bytes of the header's end, which [`state`] makes.
pub const STATE: usize = 4 * WORD;
/// Bytes of a value of the configuration that is no path.
const LONGEST_VALUE: usize = 64;
/// Bytes of the largest window that is read.
const LARGEST_WINDOW: u32 = 1 << 20;

/// What a trace says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// `tagged` or `msg`.
    pub context: String,
    /// Version of tcam that recorded.
    pub tcam: String,
    /// Version of libfabric, such as `2.5`.
    pub libfabric: String,
    /// Host name.
    pub host: String,
    /// Process id.
    pub pid: u32,
    /// Rank, when the launcher tells it.
    pub rank: Option<u32>,
    /// Address of the endpoint, `ip:port`.
    pub address: String,
    /// Path of the program.
    pub program: String,
    /// The run it is of.
    #[serde(default)]
    pub origin: Origin,
    /// Whether the end of the header will say that the endpoint was closed.
    #[serde(default)]
    pub marks_end: bool,
    /// Bytes of the window behind the header; 0 if there is none.
    #[serde(default)]
    pub window: u32,
    /// Start of the recording, nanoseconds since 1970.
    pub start_ns: u64,
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

    /// The header as it stands in a file. Where it would be too long, paths are left
    /// out: what a replay needs is short.
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
        let mut bytes = format!("{MAGIC}{json}").into_bytes();
        bytes.resize(HEADER - STATE, b' ');
        bytes.resize(HEADER, 0);
        bytes
    }
}

/// Reads a trace, a quarter of a megabyte at a time.
#[derive(Debug)]
pub struct Reader<R> {
    from: Input<R>,
    header: Header,
    decoder: Decoder,
    end: End,
    peers: BTreeMap<u32, Address>,
    thread: Thread,
    now: u64,
    /// Records read.
    position: u64,
    at_end: bool,
    ended: bool,
}

/// An operation and when it was, in nanoseconds since the recording began.
pub type Timed = (u64, Op);

impl<R: Read> Reader<R> {
    /// Reads the header.
    ///
    /// # Errors
    /// The file is empty, too short, no trace, or of another version.
    pub fn new(mut from: R) -> Result<Self, TraceError> {
        let mut bytes = vec![0; HEADER];
        let len = fill(&mut from, &mut bytes)?;
        if len == 0 {
            return Err(TraceError::Empty);
        }
        if len < MAGIC.len() && MAGIC.as_bytes().starts_with(&bytes[..len]) {
            return Err(TraceError::Short(len));
        }
        check_version(&bytes[..len])?;
        if len < HEADER {
            return Err(TraceError::Short(len));
        }
        let (text, state) = bytes.split_at(HEADER - STATE);
        let mut header: Header = serde_json::from_slice(&text[MAGIC.len()..])?;
        header.make_plain();
        let mut words = [0; STATE / WORD];
        for (word, bytes) in words.iter_mut().zip(state.chunks_exact(WORD)) {
            *word = u32::from_le_bytes(bytes.try_into().expect("four bytes"));
        }
        let (laps, end) = code::state_of(words).ok_or(TraceError::State)?;
        let window = read_window(&mut from, header.window)?;
        let from = Input::new(from, laps, window);
        let decoder = Decoder::default();
        let peers = BTreeMap::new();
        Ok(Self {
            from,
            header,
            decoder,
            end,
            peers,
            thread: Thread::default(),
            now: 0,
            position: 0,
            at_end: false,
            ended: false,
        })
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where the peers are that were named up to now, by number.
    pub fn peers(&self) -> &BTreeMap<u32, Address> {
        &self.peers
    }

    /// The thread that did the last operation, with its processor time when the recorder last looked.
    #[must_use]
    pub fn thread(&self) -> Thread {
        self.thread
    }

    /// Whether its process was ended in the middle of it, or runs still. Generated traces do not
    /// tell.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        self.header.marks_end && self.end == End::Open
    }

    /// Why the recording ended before its program, if it did.
    #[must_use]
    pub fn stop(&self) -> Option<Stop> {
        match self.end {
            End::Stopped(stop) => Some(stop),
            End::Open | End::Closed => None,
        }
    }

    /// Bytes of records read so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.from.taken
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
                Ok(Record::Peer(number, address)) => {
                    self.peers.insert(number, address);
                }
                Ok(Record::Thread(thread)) => self.thread = thread,
                Ok(Record::More) => {}
                Err(NoRecord::End) => {
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

/// Whether these are the first bytes of a trace of this version.
fn check_version(bytes: &[u8]) -> Result<(), TraceError> {
    match bytes.strip_prefix(ANY_VERSION.as_bytes()) {
        _ if bytes.starts_with(MAGIC.as_bytes()) => Ok(()),
        Some([_, _, ..]) => Err(TraceError::Version),
        _ => Err(TraceError::Foreign),
    }
}

/// Reads a window of so many bytes.
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

/// What can be wrong with a trace.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// No byte in it.
    #[error("an empty file: nothing was recorded")]
    Empty,
    /// The end comes within the header or the window.
    #[error("cut off before the first record, after {0} bytes")]
    Short(usize),
    /// Something else.
    #[error("no trace of tcam")]
    Foreign,
    /// Of another version.
    #[error("a trace of another version of tcam: this one reads version 6")]
    Version,
    /// The header is damaged.
    #[error("the header is damaged: {0}")]
    Header(#[from] serde_json::Error),
    /// Laps and the reason to stop cannot be.
    #[error("the end of the header is damaged")]
    State,
    /// A window that cannot be.
    #[error("the header is damaged: a window of {0} bytes")]
    Window(u32),
    /// A record that cannot be.
    #[error("record {0} is damaged")]
    Record(u64),
    /// The end comes within a record.
    #[error("cut off in record {0}")]
    Cut(u64),
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
