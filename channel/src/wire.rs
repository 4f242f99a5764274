// SPDX-License-Identifier: BSD-2-Clause
//! Format of a slot of a ring.
//!
//! ```text
//!  0        8     9      10     12       16     24     32      40    48
//!  | turn   | kind| flags| peer | count  | bits | data | len   | op  | payload ... 256
//!            `------- one word -------'
//!  `---------------------- one cache line, with 16 bytes of payload -----'
//! ```
//! The words are written before `turn`, which publishes them. A peer may write any values, so the
//! receiver checks each one before use.
//!
//! If the receiver records, the payload area begins with the time of the send, and the payload
//! follows it ([`Flags::TIMED`]):
//! ```text
//!  48     56
//!  | time | payload ... 256
//! ```
//!
//! With `FI_TCAM_CHECK=on` the last 8 bytes of a slot are checksums:
//! ```text
//!  248             252             256
//!  | of the message | of bytes 8 to 252 |
//! ```

/// Bytes of a slot.
pub const SLOT: usize = 256;
/// Offset of the payload in a slot.
pub const PAYLOAD: usize = 48;
/// Maximum length in bytes of a message in a slot.
pub const INLINE: usize = SLOT - PAYLOAD;

/// Every transport can send a message of up to this number of bytes in one piece. Longer messages
/// are sent in parts, or stay in the memory of the sender. The network sends more bytes in one
/// piece ([`crate::net::frame`]).
pub const LONGEST: usize = 16 * 1024;

/// First number of a sender on the network. Lower numbers are senders over shared memory.
pub const FAR: u32 = 1 << 16;

/// Kind of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A message in the slot's payload, `len` bytes.
    Inline = 1,
    /// A message in buffer `count` of the sender's segment.
    Buffered = 2,
    /// A message that stays in the sender's memory: the payload lists its `count` segments, or over
    /// the network only its length. The receiver answers with [`Kind::Done`], [`Kind::Failed`] or
    /// [`Kind::Pull`].
    Rendezvous = 3,
    /// Operation `op` completed. For a long message, `len` is 1 after a kernel copy, and 2 after
    /// parts.
    Done = 4,
    /// Operation `op` failed; `len` is the error number.
    Failed = 5,
    /// Requests that `len` bytes of operation `op` go in parts, because the kernel does not copy
    /// between these processes. The receiver then sends the parts of a message or a write, and
    /// requests those of a read. If `count` is 1, `op` is a message, and its parts name transfer
    /// `data`.
    Pull = 6,
    /// A part of transfer `op`: `len` bytes for offset `data`, in buffer `count`. Over the network,
    /// the bytes are in the payload.
    Chunk = 7,
    /// A write of `len` bytes into the receiver's memory, by an operation that writes `bits` bytes
    /// in all; see [`Frame`].
    Write = 8,
    /// A read of `len` bytes of the receiver's memory. The answer repeats `data`.
    Read = 9,
    /// An atomic operation on `len` bytes of the receiver's memory; `bits` is the operation.
    Atomic = 10,
    /// Data that operation `op` read: `len` bytes for offset `data`. They are in the payload, or in
    /// the buffer that `count`, a [`Frame`], names.
    Answer = 11,
    /// Transfer `op` ends early: the transmit context of its sender is closed.
    Dropped = 12,
    /// A [`Kind::Chunk`] whose data is in the memory of the application already. No peer sends it.
    Landed = 13,
}

impl Kind {
    fn read(value: u8) -> Option<Self> {
        Some(match value {
            1 => Self::Inline,
            2 => Self::Buffered,
            3 => Self::Rendezvous,
            4 => Self::Done,
            5 => Self::Failed,
            6 => Self::Pull,
            7 => Self::Chunk,
            8 => Self::Write,
            9 => Self::Read,
            10 => Self::Atomic,
            11 => Self::Answer,
            12 => Self::Dropped,
            _ => return None,
        })
    }

    /// Returns whether the first word of a header is that of a message.
    pub(crate) fn is_message_in(first: u64) -> bool {
        let kind = Self::read(first as u8);
        matches!(kind, Some(Self::Inline | Self::Buffered | Self::Rendezvous))
    }
}

bitflags::bitflags! {
    /// Flags of a slot. Unknown bits are kept.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Flags: u8 {
        /// The message is tagged.
        const TAGGED = 1;
        /// `data` is remote CQ data.
        const DATA = 2;
        /// The sender waits for [`Kind::Done`] even if the message is eager, or is sent over the
        /// network.
        const ACK = 4;
        /// More parts follow. The operation is counted with the last part. Each part of a read is
        /// answered; any other operation is answered with the last part.
        const PART = 8;
        /// The sender has copied the message of this [`Kind::Rendezvous`], so the send has already
        /// completed; see `provider/src/engine/tx.rs`.
        const COPIED = 16;
        /// A [`Kind::Write`] whose data will come in pieces: the receiver only checks the memory
        /// that the write names, and answers with [`Kind::Pull`].
        const PIECES = 32;
        /// The slot has checksums.
        const CHECKED = 64;
        /// The payload area begins with the time of the send, in nanoseconds of the sender's
        /// `CLOCK_MONOTONIC`, which all processes of a host share. See
        /// [`Arrivals::time`](crate::contract::Arrivals::time).
        const TIMED = 128;
    }
}

/// Maximum number of operations that an endpoint has at a time.
pub const PLACES: usize = 1 << 24;
/// Number of operations after which ages wrap around.
const AGES: u64 = 1 << 40;

/// Returns the number of an operation, which peers use in their answers.
///
/// ```text
/// 63                    24 23        0
/// | age                   | place    |
/// ```
/// The age counts operations modulo 2^40. When a transmit context closes, it stores the next age in
/// its segment; all operations with an earlier age are void
/// ([`crate::shm::segment::Segment::void_before`]).
#[must_use]
pub fn number(age: u64, place: usize) -> u64 {
    age << PLACES.ilog2() | place as u64 & (PLACES as u64 - 1)
}

/// Returns the age and the place in the number of an operation.
#[inline]
#[must_use]
pub fn parts_of(number: u64) -> (u64, usize) {
    (number >> PLACES.ilog2(), number as usize & (PLACES - 1))
}

/// Returns the age of the operation after one with this age.
#[must_use]
pub fn age_after(age: u64) -> u64 {
    (age + 1) % AGES
}

/// Returns whether an operation with this age began before the one with the age `first`.
#[inline]
#[must_use]
pub fn is_before(age: u64, first: u64) -> bool {
    age.wrapping_sub(first) % AGES >= AGES / 2
}

/// Offset of the checksums in a slot.
pub(crate) const CHECKS: usize = SLOT - 8;
/// Maximum length in bytes of a message in a slot with checksums.
pub const CHECKED_INLINE: usize = CHECKS - PAYLOAD;
/// Bytes of the time of the send.
pub const TIME: usize = 8;

impl Flags {
    /// Returns the number of bytes between the start of the payload area and the payload: [`TIME`]
    /// in a timed slot, otherwise 0. It takes no branch.
    #[inline]
    #[must_use]
    pub fn payload_shift(self) -> usize {
        usize::from(self.bits() >> 7) * TIME
    }
}

/// The payload layout of a slot that accesses memory, encoded in the slot's `count`.
///
/// ```text
/// in the payload, or in a buffer of the sender:
/// [ receiver's parts: 24 bytes each | sender's segments: 16 each, or data | compared data ]
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Parts of the receiver's memory.
    pub parts: u8,
    /// Segments of the sender's memory; 0 if the data is in the frame.
    pub segments: u8,
    /// Buffer of the sender that holds the frame; `None` if it is in the payload.
    pub(crate) buffer: Option<u16>,
}

impl Frame {
    /// Encodes the frame as the `count` of a slot.
    #[inline]
    #[must_use]
    pub fn pack(self) -> u32 {
        let buffer = self.buffer.map_or(0, |buffer| u32::from(buffer) + 1);
        u32::from(self.parts) | u32::from(self.segments) << 8 | buffer << 16
    }

    /// Decodes the `count` of a slot.
    #[inline]
    #[must_use]
    pub fn unpack(count: u32) -> Self {
        let buffer = (count >> 16) as u16;
        Self { parts: count as u8, segments: (count >> 8) as u8, buffer: buffer.checked_sub(1) }
    }
}

/// The words of a slot after `turn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Kind of the slot.
    pub kind: Kind,
    /// Flags of the slot.
    pub flags: Flags,
    /// Number of the sender: in the receiver's list of senders or, from [`FAR`] on, among its peers
    /// on the network. The slot itself contains the lower 16 bits.
    pub peer: u32,
    /// Depends on the kind.
    pub count: u32,
    /// Match bits; depends on the kind.
    pub bits: u64,
    /// Remote CQ data; depends on the kind.
    pub data: u64,
    /// Length in bytes of the message; depends on the kind.
    pub len: u64,
    /// An operation of the sender. In an answer, it is an operation of the receiver; in
    /// [`Kind::Chunk`] and [`Kind::Dropped`], a transfer of the receiver.
    pub op: u64,
}

impl Header {
    /// Creates a header whose other fields are 0.
    #[inline(always)]
    #[must_use]
    pub const fn of(kind: Kind, op: u64) -> Self {
        Self { kind, flags: Flags::empty(), peer: 0, count: 0, bits: 0, data: 0, len: 0, op }
    }

    /// Returns whether the message is tagged.
    #[inline]
    pub fn is_tagged(&self) -> bool {
        self.flags.contains(Flags::TAGGED)
    }

    /// Returns whether the slot came over the network.
    #[inline]
    pub fn is_far(&self) -> bool {
        self.peer >= FAR
    }

    /// Returns the words that follow `turn`.
    #[inline]
    pub fn words(&self) -> [u64; 5] {
        let first = u64::from(self.kind as u8)
            | u64::from(self.flags.bits()) << 8
            | u64::from(self.peer as u16) << 16
            | u64::from(self.count) << 32;
        [first, self.bits, self.data, self.len, self.op]
    }

    /// Decodes the words of a slot. Returns `None` if they are not a header.
    #[inline]
    pub fn read(words: [u64; 5]) -> Option<Self> {
        let [first, bits, data, len, op] = words;
        Some(Self {
            kind: Kind::read(first as u8)?,
            flags: Flags::from_bits_retain((first >> 8) as u8),
            peer: u32::from((first >> 16) as u16),
            count: (first >> 32) as u32,
            bits,
            data,
            len,
            op,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_round_trip_and_invalid_ones_are_refused() {
        for kind in 1..=12 {
            let header = Header {
                kind: Kind::read(kind).unwrap(),
                flags: Flags::from_bits_retain(0x85),
                peer: 0xfffe,
                count: 0xdead_beef,
                bits: 1,
                data: 2,
                len: 3,
                op: 4,
            };
            assert_eq!(Header::read(header.words()), Some(header));
        }
        let frame = Frame { parts: 4, segments: 3, buffer: Some(63) };
        assert_eq!(Frame::unpack(frame.pack()), frame);
        assert_eq!(Frame::unpack(0), Frame::default());
        assert_eq!(Header::read([0; 5]), None);
        assert_eq!(Header::read([0xff; 5]), None);
    }

    #[test]
    fn only_the_payload_of_a_timed_slot_is_shifted() {
        assert_eq!(Flags::TIMED.payload_shift(), TIME);
        assert_eq!(Flags::all().payload_shift(), TIME);
        assert_eq!((Flags::all() - Flags::TIMED).payload_shift(), 0);
    }

    #[test]
    fn ages_stay_ordered_when_they_wrap_around() {
        let last = AGES - 1;
        assert_eq!(age_after(last), 0);
        assert_eq!(parts_of(number(last, PLACES - 1)), (last, PLACES - 1));
        for (age, first, before) in
            [(6, 7, true), (7, 7, false), (8, 7, false), (last, 0, true), (0, last, false)]
        {
            assert_eq!(is_before(age, first), before, "{age} {first}");
        }
    }
}
