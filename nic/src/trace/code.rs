// SPDX-License-Identifier: BSD-2-Clause
//! Encodes operations as words and decodes them; `nic/src/trace.rs` describes the format.

use std::io;

use matching::{Key, Source};

use super::op::{End, Op, OpWord, Posted, Sent, Stop, Thread};
use crate::message::{Envelope, MultiRecv};

/// Number of keys in the list; a power of two.
pub const KEYS: usize = 1 << PLACE_BITS;
const PLACE_BITS: u32 = 10;
const PLACE: u32 = 6;
const LENGTH: u32 = 16;
/// Shift of a thread's number.
const NUMBER: u32 = 6;
const FLAG: u32 = 1 << 5;
const KIND: u32 = 0x1f;

mod kind {
    pub(super) const KEY: u32 = 1;
    pub(super) const TIME: u32 = 2;
    pub(super) const MULTI: u32 = 3;
    pub(super) const LONG: u32 = 4;
    pub(super) const POST: u32 = 5;
    pub(super) const POST_ANYWAY: u32 = 6;
    pub(super) const HELD: u32 = 7;
    pub(super) const ARRIVE: u32 = 8;
    pub(super) const PEEK: u32 = 9;
    pub(super) const CANCEL: u32 = 11;
    pub(super) const DROP: u32 = 12;
    pub(super) const PROCESSES: u32 = 13;
    pub(super) const FILL: u32 = 14;
    pub(super) const AGAIN: u32 = 15;
    pub(super) const PEER: u32 = 16;
    pub(super) const CLAIM: u32 = 17;
    pub(super) const DISCARD: u32 = 18;
    pub(super) const SEND: u32 = 19;
    pub(super) const THREAD: u32 = 20;
    pub(super) const TURN: u32 = 21;
    pub(super) const STEP: u32 = 22;
    pub(super) const LATER: u32 = 23;
    pub(super) const ERROR: u32 = 24;
    pub(super) const SITE: u32 = 25;
    pub(super) const TEXT: u32 = 26;
    pub(super) const POLL: u32 = 27;
}

/// A one-word record without an operation.
pub const FILL: u32 = kind::FILL;

/// The record that repeats the last operation `count` times, 1 to [`MOST_REPEATS`].
#[inline]
#[must_use]
pub const fn repeat_record(count: u32) -> u32 {
    kind::AGAIN | count << LENGTH
}

/// Shift of the nanoseconds in a *step*.
const NANOSECONDS: u32 = 6;
/// Longest time that a *step* can record, in nanoseconds.
const LONGEST_STEP: u64 = (u32::MAX >> NANOSECONDS) as u64;

/// The record that advances the time of the following records; `None` if a *time* record is needed,
/// because the step is too long.
#[inline(always)]
#[must_use]
pub const fn step_record(nanoseconds: u64) -> Option<u32> {
    if nanoseconds > LONGEST_STEP {
        return None;
    }
    Some(kind::STEP | (nanoseconds as u32) << NANOSECONDS)
}

/// The record that repeats the last operation this time later; `None` if the time is too long.
#[inline(always)]
#[must_use]
pub const fn later_record(nanoseconds: u64) -> Option<u32> {
    if nanoseconds > LONGEST_STEP {
        return None;
    }
    Some(kind::LATER | (nanoseconds as u32) << NANOSECONDS)
}

/// Maximum repetitions per record. Without a limit, a damaged record could become more operations
/// than fit into memory.
pub const MOST_REPEATS: u32 = 255;

/// Largest source number. Source numbers are dense, so a larger one means that the trace is
/// damaged; a host engine with one queue per source would use all memory for it.
pub(super) const LARGEST_SOURCE: u32 = 1 << 20;

/// Largest thread number. All threads with a larger number are recorded with this one.
const LARGEST_THREAD: u32 = u32::MAX >> NUMBER;

/// Largest number of sites.
pub const MOST_SITES: u32 = 1 << 20;
/// Longest text in bytes: a path, and the words before it.
const LONGEST_TEXT: usize = 8192;
/// Bytes of a text in a record.
const TEXT_PART: usize = 24;

const NO_KEY: Key = Key { bits: 0, ignore: 0, source: Source::new(0) };
/// A key that no operation has. At first, every place of the encoder's list contains it. With
/// [`NO_KEY`] in its place, the first operation with that key would not be recorded as one with a
/// new key. The recorder would then not write the address of peer 0, because it writes a peer's
/// address only before a new key.
const UNWRITTEN: Key = Key { source: Source::new(u32::MAX - 1), ..NO_KEY };

/// Output of an encoder.
pub trait Sink {
    /// Why the record could not be written.
    type Error;

    /// Writes a record. Its word 0 is never 0.
    ///
    /// # Errors
    /// There is no room.
    fn put<const N: usize>(&mut self, words: [u32; N]) -> Result<(), Self::Error>;
}

impl<W: io::Write> Sink for W {
    type Error = io::Error;

    fn put<const N: usize>(&mut self, words: [u32; N]) -> io::Result<()> {
        self.write_all(words.map(u32::to_le_bytes).as_flattened())
    }
}

impl OpWord {
    /// The number of the operation's kind.
    #[inline]
    #[must_use]
    pub const fn kind(self) -> u32 {
        self.0 & KIND
    }

    /// Returns true for the arrival of a message.
    #[must_use]
    pub const fn is_arrival(self) -> bool {
        self.kind() == kind::ARRIVE
    }

    /// Returns true for an operation that has a site: a post, a send, or a probe that takes a
    /// message.
    #[inline]
    #[must_use]
    pub const fn has_site(self) -> bool {
        matches!(
            self.kind(),
            kind::POST | kind::POST_ANYWAY | kind::HELD | kind::SEND | kind::CLAIM | kind::DISCARD
        )
    }
}

const fn halves(number: u64) -> [u32; 2] {
    [number as u32, (number >> 32) as u32]
}

const fn whole([low, high]: [u32; 2]) -> u64 {
    low as u64 | (high as u64) << 32
}

impl Op {
    /// Encodes the operation as word 0 and a key. Returns `None` for an operation that needs more
    /// words. Always inlined: if the kind is known at compile time, only its branch remains.
    #[inline(always)]
    #[must_use]
    pub fn short(&self) -> Option<(OpWord, Key)> {
        let posted = |kind, posted: &Posted| {
            let flag = if posted.non_contiguous { FLAG } else { 0 };
            let length = u16::try_from(posted.len).ok().filter(|_| posted.multi.is_none())?;
            Some((OpWord(kind | flag | u32::from(length) << LENGTH), posted.key))
        };
        match self {
            Self::Post(receive) => posted(kind::POST, receive),
            Self::PostAnyway(receive) => posted(kind::POST_ANYWAY, receive),
            Self::Held(receive) => posted(kind::HELD, receive),
            Self::Arrive(Envelope { source, bits, len }) => {
                let length = u16::try_from(*len).ok()?;
                let key = Key { bits: *bits, ignore: 0, source: Source::new(*source) };
                Some((OpWord(kind::ARRIVE | u32::from(length) << LENGTH), key))
            }
            Self::Send(Sent { peer, bits, len }) => {
                let length = u16::try_from(*len).ok()?;
                let key = Key { bits: *bits, ignore: 0, source: Source::new(*peer) };
                Some((OpWord(kind::SEND | u32::from(length) << LENGTH), key))
            }
            Self::Peek(key) => Some((OpWord(kind::PEEK), *key)),
            Self::Claim(key) => Some((OpWord(kind::CLAIM), *key)),
            Self::Discard(key) => Some((OpWord(kind::DISCARD), *key)),
            Self::Cancel(_) | Self::Drop(_) | Self::Processes(_) | Self::Stop(_) => None,
        }
    }
}

/// The place of a key in the list. Decoders do not need this function, because a trace records the
/// places.
#[inline]
fn place(key: &Key) -> usize {
    let source = u64::from(key.source.get().unwrap_or(u32::MAX));
    let mixed = key.bits ^ key.ignore.rotate_left(21) ^ source.rotate_left(42);
    (mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PLACE_BITS)) as usize
}

/// Encodes operations.
#[derive(Debug)]
pub struct Encoder {
    keys: Box<[Key; KEYS]>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { keys: Box::new([UNWRITTEN; KEYS]) }
    }
}

impl Encoder {
    /// The record for the result of [`Op::short`] if the key is already in the list, otherwise
    /// `None`.
    #[inline]
    #[must_use]
    pub fn known(&self, head: OpWord, key: &Key) -> Option<u32> {
        let place = place(key);
        (self.keys[place] == *key).then_some(head.0 | (place as u32) << PLACE)
    }

    /// Writes the result of [`Op::short`], preceded by its key if that is new.
    ///
    /// # Errors
    /// There is no room.
    pub fn short<S: Sink>(&mut self, sink: &mut S, head: OpWord, key: Key) -> Result<(), S::Error> {
        let place = place(&key);
        if self.keys[place] != key {
            self.keys[place] = key;
            let source = key.source.get().unwrap_or(u32::MAX);
            let ([low, high], [ignore_low, ignore_high]) = (halves(key.bits), halves(key.ignore));
            let head = kind::KEY | (place as u32) << PLACE;
            sink.put([head, source, low, high, ignore_low, ignore_high])?;
        }
        sink.put([head.0 | (place as u32) << PLACE])
    }

    /// Writes an operation. A stop is in the header and is not written here.
    ///
    /// # Errors
    /// There is no room.
    pub fn op<S: Sink>(&mut self, sink: &mut S, op: &Op) -> Result<(), S::Error> {
        if let Some((head, key)) = op.short() {
            return self.short(sink, head, key);
        }
        match op {
            Op::Post(posted) | Op::PostAnyway(posted) | Op::Held(posted) => {
                if let Some(MultiRecv { len, used, min }) = posted.multi {
                    let [len, used, min] = [len, used, min].map(halves);
                    sink.put([kind::MULTI, len[0], len[1], used[0], used[1], min[0], min[1]])?;
                } else {
                    put_long(sink, posted.len)?;
                }
                let posted = Posted { multi: None, len: 0, ..*posted };
                let rest = match op {
                    Op::Post(_) => Op::Post(posted),
                    Op::PostAnyway(_) => Op::PostAnyway(posted),
                    _ => Op::Held(posted),
                };
                self.op(sink, &rest)
            }
            Op::Arrive(envelope) => {
                put_long(sink, envelope.len)?;
                self.op(sink, &Op::Arrive(Envelope { len: 0, ..*envelope }))
            }
            Op::Send(sent) => {
                put_long(sink, sent.len)?;
                self.op(sink, &Op::Send(Sent { len: 0, ..*sent }))
            }
            Op::Cancel(number) | Op::Drop(number) => {
                let kind = if matches!(op, Op::Cancel(_)) { kind::CANCEL } else { kind::DROP };
                let [low, high] = halves(*number);
                sink.put([kind, low, high])
            }
            Op::Processes(number) => sink.put([kind::PROCESSES, *number]),
            Op::Stop(_) | Op::Peek(_) | Op::Claim(_) | Op::Discard(_) => Ok(()),
        }
    }
}

/// Writes the length of the next receive, message or send.
fn put_long<S: Sink>(sink: &mut S, len: u64) -> Result<(), S::Error> {
    let [low, high] = halves(len);
    sink.put([kind::LONG, low, high])
}

/// Writes the time of the following records, in nanoseconds since the header's start.
///
/// # Errors
/// There is no room.
pub fn put_time<S: Sink>(sink: &mut S, nanoseconds: u64) -> Result<(), S::Error> {
    let [low, high] = halves(nanoseconds);
    sink.put([kind::TIME, low, high])
}

/// Writes the address of a peer.
///
/// # Errors
/// There is no room.
pub fn put_peer<S: Sink>(sink: &mut S, number: u32, address: Address) -> Result<(), S::Error> {
    sink.put([kind::PEER, number, address.ip, u32::from(address.port)])
}

/// Writes the largest error of the times of a peer's following messages, in nanoseconds.
///
/// # Errors
/// There is no room.
pub fn put_error<S: Sink>(sink: &mut S, number: u32, nanoseconds: u32) -> Result<(), S::Error> {
    sink.put([kind::ERROR, number, nanoseconds])
}

/// Writes the thread of the following operations, with its processor time if that is known.
///
/// # Errors
/// There is no room.
pub fn put_thread<S: Sink>(sink: &mut S, thread: Thread) -> Result<(), S::Error> {
    let number = thread.number.min(LARGEST_THREAD);
    let flag = if thread.is_device { FLAG } else { 0 };
    match thread.cpu_ns.map(halves) {
        Some([low, high]) => sink.put([kind::THREAD | flag, number, low, high]),
        None => sink.put([kind::TURN | flag | number << NUMBER]),
    }
}

/// Writes the time of a poll, in nanoseconds since the start of the recording.
///
/// # Errors
/// There is no room.
pub fn put_poll<S: Sink>(sink: &mut S, nanoseconds: u64) -> Result<(), S::Error> {
    let [low, high] = halves(nanoseconds);
    sink.put([kind::POLL, low, high])
}

/// The record that sets the site of the following posts and sends to this number, at most
/// [`MOST_SITES`]; 0 for none.
#[inline]
#[must_use]
pub const fn site_record(number: u32) -> u32 {
    kind::SITE | number << NUMBER
}

/// Writes a text in parts. Leaves out what is beyond [`LONGEST_TEXT`].
pub(super) fn put_text<S: Sink>(sink: &mut S, text: &str) -> Result<(), S::Error> {
    let mut ends = (0..=text.len().min(LONGEST_TEXT)).rev();
    let end = ends.find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let bytes = &text.as_bytes()[..end];
    let (parts, last) = bytes.as_chunks::<TEXT_PART>();
    for part in parts {
        put_part(sink, 0, part)?;
    }
    put_part(sink, FLAG, last)
}

fn put_part<S: Sink>(sink: &mut S, flag: u32, bytes: &[u8]) -> Result<(), S::Error> {
    let mut words = [0; 1 + TEXT_PART / 4];
    words[0] = kind::TEXT | flag | (bytes.len() as u32) << LENGTH;
    for (word, bytes) in words[1..].iter_mut().zip(bytes.chunks(4)) {
        let mut four = [0; 4];
        four[..bytes.len()].copy_from_slice(bytes);
        *word = u32::from_le_bytes(four);
    }
    sink.put(words)
}

/// Address of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Address {
    /// IPv4 address, its first byte in the highest bits.
    pub ip: u32,
    /// The port.
    pub port: u16,
}

/// A decoded record.
pub(super) enum Record {
    Op(Op),
    Time(u64),
    /// Nanoseconds since the time of the previous records.
    Step(u32),
    /// Address of a peer number.
    Peer(u32, Address),
    /// Largest error in nanoseconds of the times of the messages of a peer number.
    Error(u32, u32),
    /// The thread of the following operations.
    Thread(Thread),
    /// The time of a poll, in nanoseconds since the start of the recording.
    Poll(u64),
    /// The site of the following posts and sends.
    Site(u32),
    /// An entry of the table of sites.
    Text(String),
    /// No operation: a key, a part of a record that follows, a repetition, or a fill.
    More,
}

/// Input of a decoder.
pub(super) trait WordSource {
    type Error;

    /// Returns the next N words; `None` at the end of the input, where fewer words may be left. A
    /// process that is killed may leave an incomplete record.
    fn take<const N: usize>(&mut self) -> Result<Option<[u32; N]>, Self::Error>;
}

/// Why no record could be decoded.
pub(super) enum NoRecord<E> {
    End,
    Damaged,
    Words(E),
}

impl<E> From<E> for NoRecord<E> {
    fn from(error: E) -> Self {
        Self::Words(error)
    }
}

/// Decodes records.
#[derive(Debug)]
pub(super) struct Decoder {
    keys: Box<[Key; KEYS]>,
    multi: Option<MultiRecv>,
    long: Option<u64>,
    last: Option<Op>,
    /// Number of times that the last operation must still be returned again.
    again: u32,
    /// The first parts of a text.
    text: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        let (multi, long, last, text) = (None, None, None, Vec::new());
        Self { keys: Box::new([NO_KEY; KEYS]), multi, long, last, again: 0, text }
    }
}

impl Decoder {
    pub(super) fn record<W: WordSource>(
        &mut self,
        words: &mut W,
    ) -> Result<Record, NoRecord<W::Error>> {
        fn take<const N: usize, W: WordSource>(
            from: &mut W,
        ) -> Result<[u32; N], NoRecord<W::Error>> {
            from.take()?.ok_or(NoRecord::End)
        }
        if let (1.., Some(op)) = (self.again, self.last) {
            self.again -= 1;
            return Ok(Record::Op(op));
        }
        let [head] = take(words)?;
        let place = (head >> PLACE) as usize % KEYS;
        let key = self.keys[place];
        let kind = head & KIND;
        let posts = matches!(kind, kind::POST | kind::POST_ANYWAY | kind::HELD);
        let aside = matches!(kind, kind::KEY | kind::TIME | kind::FILL | kind::PEER)
            || matches!(kind, kind::THREAD | kind::TURN | kind::STEP | kind::LATER | kind::ERROR)
            || matches!(kind, kind::SITE | kind::TEXT | kind::POLL);
        let is_message = matches!(kind, kind::ARRIVE | kind::SEND);
        let takes_long = is_message || posts && self.multi.is_none();
        if !aside && (!posts && self.multi.is_some() || !takes_long && self.long.is_some()) {
            return Err(NoRecord::Damaged);
        }
        let length = u64::from(head >> LENGTH);
        let op = match kind {
            0 => return Err(NoRecord::End),
            kind::KEY => {
                let [source, low, high, ignore_low, ignore_high] = take(words)?;
                let source = match source {
                    u32::MAX => Source::ANY,
                    peer if peer <= LARGEST_SOURCE => Source::new(peer),
                    _ => return Err(NoRecord::Damaged),
                };
                let (bits, ignore) = (whole([low, high]), whole([ignore_low, ignore_high]));
                self.keys[place] = Key { bits, ignore, source };
                return Ok(Record::More);
            }
            kind::TIME => return Ok(Record::Time(whole(take(words)?))),
            kind::STEP => return Ok(Record::Step(head >> NANOSECONDS)),
            kind::LATER if self.last.is_none() => return Err(NoRecord::Damaged),
            kind::LATER => {
                self.again = 1;
                return Ok(Record::Step(head >> NANOSECONDS));
            }
            kind::FILL => return Ok(Record::More),
            kind::PEER => {
                let [number, ip, port] = take(words)?;
                let port = u16::try_from(port).ok().filter(|_| number <= LARGEST_SOURCE);
                let port = port.ok_or(NoRecord::Damaged)?;
                return Ok(Record::Peer(number, Address { ip, port }));
            }
            kind::ERROR => {
                let [number, error] = take(words)?;
                if number > LARGEST_SOURCE {
                    return Err(NoRecord::Damaged);
                }
                return Ok(Record::Error(number, error));
            }
            kind::THREAD => {
                let [number, low, high] = take(words)?;
                if number > LARGEST_THREAD {
                    return Err(NoRecord::Damaged);
                }
                let (is_device, cpu_ns) = (head & FLAG != 0, Some(whole([low, high])));
                return Ok(Record::Thread(Thread { number, is_device, cpu_ns }));
            }
            kind::TURN => {
                let (number, is_device) = (head >> NUMBER, head & FLAG != 0);
                return Ok(Record::Thread(Thread { number, is_device, cpu_ns: None }));
            }
            kind::POLL => return Ok(Record::Poll(whole(take(words)?))),
            kind::SITE => return Ok(Record::Site(head >> NUMBER)),
            kind::TEXT => {
                let words: [u32; TEXT_PART / 4] = take(words)?;
                let (bytes, len) = (words.map(u32::to_le_bytes), length as usize);
                let part = bytes.as_flattened().get(..len).ok_or(NoRecord::Damaged)?;
                self.text.extend(part);
                if self.text.len() > LONGEST_TEXT {
                    return Err(NoRecord::Damaged);
                }
                if head & FLAG == 0 {
                    return Ok(Record::More);
                }
                let text = String::from_utf8(std::mem::take(&mut self.text));
                return text.map(Record::Text).map_err(|_| NoRecord::Damaged);
            }
            kind::AGAIN => {
                let count = head >> LENGTH;
                if self.last.is_none() || !(1..=MOST_REPEATS).contains(&count) {
                    return Err(NoRecord::Damaged);
                }
                self.again = count;
                return Ok(Record::More);
            }
            kind::MULTI => {
                let [a, b, c, d, e, f] = take(words)?;
                let multi =
                    MultiRecv { len: whole([a, b]), used: whole([c, d]), min: whole([e, f]) };
                if multi.used > multi.len {
                    return Err(NoRecord::Damaged);
                }
                self.multi = Some(multi);
                return Ok(Record::More);
            }
            kind::LONG => {
                self.long = Some(whole(take(words)?));
                return Ok(Record::More);
            }
            kind::POST | kind::POST_ANYWAY | kind::HELD => {
                let non_contiguous = head & FLAG != 0;
                let multi = self.multi.take();
                let len = multi.map(|multi| multi.len).or(self.long.take()).unwrap_or(length);
                let posted = Posted { key, len, multi, non_contiguous };
                match kind {
                    kind::POST => Op::Post(posted),
                    kind::POST_ANYWAY => Op::PostAnyway(posted),
                    _ => Op::Held(posted),
                }
            }
            kind::ARRIVE | kind::SEND => {
                let peer = key.source.get().filter(|_| key.ignore == 0);
                let peer = peer.ok_or(NoRecord::Damaged)?;
                let len = self.long.take().unwrap_or(length);
                match kind {
                    kind::ARRIVE => Op::Arrive(Envelope { source: peer, bits: key.bits, len }),
                    _ => Op::Send(Sent { peer, bits: key.bits, len }),
                }
            }
            kind::PEEK => Op::Peek(key),
            kind::CLAIM => Op::Claim(key),
            kind::DISCARD => Op::Discard(key),
            kind::CANCEL => Op::Cancel(whole(take(words)?)),
            kind::DROP => Op::Drop(whole(take(words)?)),
            kind::PROCESSES => {
                let [number] = take(words)?;
                Op::Processes(number)
            }
            _ => return Err(NoRecord::Damaged),
        };
        self.last = Some(op);
        Ok(Record::Op(op))
    }
}

/// Encodes the end of a header: the number of windows that were appended, and how the recording
/// ended.
#[must_use]
pub fn state(laps: u64, end: End) -> [u32; 4] {
    let [low, high] = halves(laps);
    let end = match end {
        End::Open => [0, 0],
        End::Stopped(Stop::Size) => [1, 0],
        End::Stopped(Stop::Disk) => [2, 0],
        End::Closed(words) => [3, words],
    };
    [low, high, end[0], end[1]]
}

/// Decodes the end of a header; `None` if it is invalid.
pub(super) fn state_of([low, high, end, words]: [u32; 4]) -> Option<(u64, End)> {
    let end = match (end, words) {
        (0, 0) => End::Open,
        (1, 0) => End::Stopped(Stop::Size),
        (2, 0) => End::Stopped(Stop::Disk),
        (3, words) => End::Closed(words),
        _ => return None,
    };
    Some((whole([low, high]), end))
}
