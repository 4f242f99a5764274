// SPDX-License-Identifier: BSD-2-Clause
//! Traces: what was asked of one matching context, to be asked again of another
//! (`FI_TCAM_TRACE`, `tcam replay`).
//!
//! A file is a header and records of one context, little-endian:
//!
//! ```text
//! byte 0        HEADER   + window
//!      | header | window | record | record | ...  the end |
//! header   "tcam-trace 1\n", a JSON object ([`Header`]), spaces
//! window   laps, 0, 0, 0 | record | ... | zeros | stop, or zeros      if the header has one
//! record   word 0   63..8 nanoseconds since the header's start, 7..6 flags, 5..0 kind
//!          word 1   match bits
//!          word 2   ignore bits, or the length of a message that arrives
//!          word 3   31..0 source, all ones is any
//! ```
//!
//! | kind | |
//! |---|---|
//! | post | a receive |
//! | post anyway | a receive that is not to be held back (`flow-control`) |
//! | held | a receive that was held back |
//! | multi | the next post's buffer takes several messages: its length (word 1), the bytes used (2), the least room that keeps it (3) |
//! | arrive | a message |
//! | peek | a look at the unexpected messages |
//! | take | the same, and what was found is claimed or discarded |
//! | cancel | of a receive: how many were posted before it (word 1) |
//! | drop | of an unexpected message: how many arrived before it (word 1) |
//! | processes | how many there are from now on (word 1) |
//! | stop | the recording ended here (word 1): 1 at the size allowed, 2 with a full disk |
//!
//! The recorder writes into the window, and what fills it, n records, is appended to
//! the file: then the window is cleared, and at last `laps` grows by one. So the
//! youngest records are in the window, from that on of which the file has no copy
//! behind the first `laps * n`. What a killed process leaves can be read: a record is
//! whole or zero, since word 0 is written last.
//!
//! Matching depends on these alone, so a replay with the recorded configuration
//! counts what the provider counted.

use std::collections::BTreeMap;
use std::io::{self, Read};

use matching::{Key, Source};
use serde::{Deserialize, Serialize};

use crate::device::{Envelope, MultiRecv};

/// First bytes of a trace.
pub const MAGIC: &str = "tcam-trace 1\n";
/// Bytes of the header.
pub const HEADER: usize = 8192;
/// Bytes of a record.
pub const RECORD: usize = 32;
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
    /// Bytes of the window behind the header; 0 if there is none.
    #[serde(default)]
    pub window: u32,
    /// Start of the recording, nanoseconds since 1970.
    pub start_ns: u64,
    /// The tag layout in force (`auto` resolved).
    pub layout: String,
    /// The `FI_TCAM_*` values in force, by name.
    pub config: BTreeMap<String, String>,
}

impl Header {
    /// The header as it stands in a file. Where it would be too long, paths are left
    /// out: what a replay needs is short.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let text = |header: &Self| serde_json::to_string(header).unwrap_or_default();
        let mut json = text(self);
        if MAGIC.len() + json.len() >= HEADER {
            let mut short = Self { program: String::new(), ..self.clone() };
            short.config.retain(|_, value| value.len() <= LONGEST_VALUE);
            json = text(&short);
        }
        let mut bytes = format!("{MAGIC}{json}").into_bytes();
        bytes.resize(HEADER, b' ');
        bytes
    }
}

/// One operation on a context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// A receive is posted.
    Post(Posted),
    /// A receive is posted that is not held back.
    PostAnyway(Posted),
    /// A receive was held back.
    Held(Posted),
    /// A message arrives.
    Arrive(Envelope),
    /// A look at the unexpected messages.
    Peek(Key),
    /// The oldest unexpected message that matches is claimed or discarded.
    Take(Key),
    /// A posted receive is cancelled: the number of those posted before it.
    Cancel(u64),
    /// An unexpected message is dropped: the number of those that arrived before it.
    Drop(u64),
    /// So many processes there are.
    Processes(u32),
    /// The recording ends here.
    Stop(Stop),
}

/// A receive that is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    /// What it matches.
    pub key: Key,
    /// Set for a buffer that takes several messages.
    pub multi: Option<MultiRecv>,
    /// Whether its buffer is in more than one part.
    pub non_contiguous: bool,
}

/// Why a recording ended before its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The file has the size that `FI_TCAM_TRACE_MAX` allows.
    Size,
    /// The disk is full.
    Disk,
}

/// Who keeps a trace.
pub trait Recorder: Send {
    /// Keeps a record, the time left to be filled in.
    fn record(&mut self, words: [u64; 4]);
}

/// Numbers of sources are dense: a larger one is damage, for which a host engine with a
/// queue a source would take all memory.
const LARGEST_SOURCE: u32 = 1 << 20;

const TIME: u32 = 8;
const NON_CONTIGUOUS: u64 = 1 << 6;
const KIND: u64 = 0x3f;

mod kind {
    pub(super) const POST: u64 = 1;
    pub(super) const POST_ANYWAY: u64 = 2;
    pub(super) const MULTI: u64 = 3;
    pub(super) const HELD: u64 = 4;
    pub(super) const ARRIVE: u64 = 5;
    pub(super) const PEEK: u64 = 6;
    pub(super) const TAKE: u64 = 7;
    pub(super) const CANCEL: u64 = 8;
    pub(super) const DROP: u64 = 9;
    pub(super) const STOP: u64 = 10;
    pub(super) const PROCESSES: u64 = 11;
}

/// Puts a time into a record.
#[inline]
#[must_use]
pub const fn stamped(mut words: [u64; 4], nanoseconds: u64) -> [u64; 4] {
    words[0] |= nanoseconds << TIME;
    words
}

fn word_of(source: Source) -> u64 {
    u64::from(source.get().unwrap_or(u32::MAX))
}

fn source_of(word: u64) -> Option<Source> {
    match word as u32 {
        u32::MAX => Some(Source::ANY),
        peer => (peer <= LARGEST_SOURCE).then(|| Source::new(peer)),
    }
}

impl Op {
    /// The records of an operation; the first only before a post of a buffer that
    /// takes several messages.
    #[inline]
    #[must_use]
    pub fn records(&self) -> [Option<[u64; 4]>; 2] {
        let posted = |kind, posted: &Posted| {
            let multi = posted.multi.map(|multi| [kind::MULTI, multi.len, multi.used, multi.min]);
            let flags = if posted.non_contiguous { NON_CONTIGUOUS } else { 0 };
            let Key { bits, ignore, source } = posted.key;
            [multi, Some([kind | flags, bits, ignore, word_of(source)])]
        };
        let keyed = |kind, key: &Key| [kind, key.bits, key.ignore, word_of(key.source)];
        let record = match self {
            Self::Post(receive) => return posted(kind::POST, receive),
            Self::PostAnyway(receive) => return posted(kind::POST_ANYWAY, receive),
            Self::Held(receive) => return posted(kind::HELD, receive),
            Self::Arrive(envelope) => {
                [kind::ARRIVE, envelope.bits, envelope.len, u64::from(envelope.source)]
            }
            Self::Peek(key) => keyed(kind::PEEK, key),
            Self::Take(key) => keyed(kind::TAKE, key),
            Self::Cancel(number) => [kind::CANCEL, *number, 0, 0],
            Self::Drop(number) => [kind::DROP, *number, 0, 0],
            Self::Processes(n) => [kind::PROCESSES, u64::from(*n), 0, 0],
            Self::Stop(Stop::Size) => [kind::STOP, 1, 0, 0],
            Self::Stop(Stop::Disk) => [kind::STOP, 2, 0, 0],
        };
        [None, Some(record)]
    }

    /// The operation of a record and of the one before it, if that was the first of two.
    fn read(words: [u64; 4], multi: Option<[u64; 4]>) -> Option<Self> {
        let [first, bits, second, last] = words;
        let multi = multi.map(|[_, len, used, min]| MultiRecv { len, used, min });
        if multi.is_some_and(|multi| multi.used > multi.len) {
            return None;
        }
        let key = Key { bits, ignore: second, source: source_of(last)? };
        let non_contiguous = first & NON_CONTIGUOUS != 0;
        let posted = Posted { key, multi, non_contiguous };
        Some(match first & KIND {
            kind::POST => Self::Post(posted),
            kind::POST_ANYWAY => Self::PostAnyway(posted),
            kind::HELD => Self::Held(posted),
            // The recording may end between the two.
            kind::STOP => Self::Stop(if bits == 1 { Stop::Size } else { Stop::Disk }),
            _ if multi.is_some() => return None,
            kind::ARRIVE => {
                let source = key.source.get()?;
                Self::Arrive(Envelope { source, bits, len: second })
            }
            kind::PEEK => Self::Peek(key),
            kind::TAKE => Self::Take(key),
            kind::CANCEL => Self::Cancel(bits),
            kind::DROP => Self::Drop(bits),
            kind::PROCESSES => Self::Processes(u32::try_from(bits).ok()?),
            _ => return None,
        })
    }
}

/// Reads a trace.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    header: Header,
    /// Records of the window.
    window: Vec<[u64; 4]>,
    /// Records that left the window.
    appended: u64,
    /// Whether the file behind the window is read.
    in_window: bool,
    /// Records read.
    position: u64,
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
        let Some(rest) = bytes[..len].strip_prefix(MAGIC.as_bytes()) else {
            return Err(match bytes.starts_with(b"tcam-trace ") {
                true if len >= MAGIC.len() => TraceError::Version,
                _ => TraceError::Foreign,
            });
        };
        if len < HEADER {
            return Err(TraceError::Short(len));
        }
        let header: Header = serde_json::from_slice(rest)?;
        let mut window = read_window(&mut from, header.window)?;
        let appended = match window.is_empty() {
            true => 0,
            // All but the laps and the room for the reason to stop leave at once.
            false => window.remove(0)[0].saturating_mul(window.len() as u64 - 1),
        };
        Ok(Self { from, header, window, appended, in_window: false, position: 0, ended: false })
    }

    /// What the trace says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Records of the trace, if its file has so many bytes, or a window more.
    #[must_use]
    pub fn records(&self, file: u64) -> u64 {
        let in_window = self.window.iter().take_while(|words| words[0] != 0).count() as u64;
        let behind = file.saturating_sub(HEADER as u64 + u64::from(self.header.window));
        self.appended.saturating_add(in_window).max(behind / RECORD as u64)
    }

    fn words(&mut self) -> Result<Option<[u64; 4]>, TraceError> {
        if !self.in_window {
            let mut bytes = [0; RECORD];
            let len = fill(&mut self.from, &mut bytes)?;
            let words = words_of(&bytes);
            if len == RECORD && words[0] != 0 {
                self.position += 1;
                return Ok(Some(words));
            }
            let whole = len == 0 || words[0] == 0;
            if self.window.is_empty() {
                return if whole { Ok(None) } else { Err(TraceError::Cut(self.position)) };
            }
            // Killed while it appended the window, a process leaves a part there.
            if self.position < self.appended {
                return Err(TraceError::Cut(self.position));
            }
            self.in_window = true;
        }
        let at = usize::try_from(self.position - self.appended).unwrap_or(usize::MAX);
        let words = self.window.get(at).copied().filter(|words| words[0] != 0);
        self.position += u64::from(words.is_some());
        Ok(words)
    }

    fn read(&mut self) -> Result<Option<Timed>, TraceError> {
        let Some(mut words) = self.words()? else { return Ok(None) };
        let mut multi = None;
        if words[0] & KIND == kind::MULTI {
            multi = Some(words);
            // A process killed between the two records leaves the first.
            let Some(next) = self.words()? else { return Ok(None) };
            words = next;
        }
        let op = Op::read(words, multi).ok_or(TraceError::Record(self.position - 1))?;
        Ok(Some((words[0] >> TIME, op)))
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Timed, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.read().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

fn words_of(bytes: &[u8]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    }
    words
}

/// Reads a window of so many bytes.
fn read_window(from: &mut impl Read, length: u32) -> Result<Vec<[u64; 4]>, TraceError> {
    if length == 0 {
        return Ok(Vec::new());
    }
    if length > LARGEST_WINDOW || !(length as usize).is_multiple_of(RECORD) || length < 128 {
        return Err(TraceError::Window(length));
    }
    let mut bytes = vec![0; length as usize];
    let len = fill(from, &mut bytes)?;
    if len < bytes.len() {
        return Err(TraceError::Short(HEADER + len));
    }
    Ok(bytes.chunks_exact(RECORD).map(words_of).collect())
}

/// Reads until the buffer is full or the input ends; the bytes read.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < buffer.len() {
        match from.read(&mut buffer[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
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
    #[error("a trace of another version of tcam: this one reads version 1")]
    Version,
    /// The header is damaged.
    #[error("the header is damaged: {0}")]
    Header(#[from] serde_json::Error),
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
