// SPDX-License-Identifier: BSD-2-Clause
//! What a slot of a ring says.
//!
//! ```text
//!  0        8     9      10     12       16     24     32      40    48
//!  | turn   | kind| flags| peer | count  | bits | data | len   | op  | payload ... 256
//!            `------- one word -------'
//!  `---------------------- one cache line, with 16 bytes of payload -----'
//! ```
//! The words are written before `turn`, which publishes them. All of them are
//! what a peer claims: a receiver checks each before use.
//!
//! With `FI_TCAM_CHECK=on` the last 8 bytes of a slot are checksums:
//! ```text
//!  248             252             256
//!  | of the message | of bytes 8 to 252 |
//! ```

/// Bytes of a slot.
pub const SLOT: usize = 256;
/// Where the payload of a slot begins.
pub const PAYLOAD: usize = 48;
/// Longest message that travels in a slot.
pub const INLINE: usize = SLOT - PAYLOAD;

/// Most bytes that go at once, whichever way: longer messages go in parts, or stay where they are.
pub const LONGEST: usize = 16 * 1024;

/// Numbers of senders over the network begin here; those of shared memory end.
pub const FAR: u32 = 1 << 16;

/// What a slot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A message in the slot's payload, `count` bytes.
    Inline = 1,
    /// A message in buffer `count` of the sender's segment.
    Buffered = 2,
    /// A message that stays in the sender's memory: the payload lists `count`
    /// segments; the sender waits for [`Kind::Done`].
    Rendezvous = 3,
    /// Operation `op` of the sender was matched and delivered.
    Done = 4,
    /// Operation `op` failed at the receiver; `len` is the error number.
    Failed = 5,
    /// The kernel refuses the copy: send operation `op` through buffers,
    /// `len` bytes of it; of a message, which has `count` 1, to the receiver's transfer `data`.
    Pull = 6,
    /// A part of transfer `op`: `len` bytes in buffer `count`, for offset `data`.
    Chunk = 7,
    /// A write of `len` bytes into the receiver's memory, the last of `bits`; see [`Frame`].
    Write = 8,
    /// A read of `len` bytes of the receiver's memory; `data` comes back.
    Read = 9,
    /// An atomic operation on `len` bytes of the receiver's memory; `bits` says which.
    Atomic = 10,
    /// What operation `op` read, `len` bytes for offset `data`: in the payload, or in
    /// the buffer that `count` names as a [`Frame`] does.
    Answer = 11,
    /// The rest of transfer `op` does not come: its sender's transmit context is closed.
    Dropped = 12,
    /// A [`Kind::Chunk`] that is in the memory of the application already. None comes from a peer.
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
}

bitflags::bitflags! {
    /// What a slot says besides its kind. Bits without a name stay as they came.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Flags: u8 {
        /// The message is tagged.
        const TAGGED = 1;
        /// `data` is remote CQ data.
        const DATA = 2;
        /// The sender waits for [`Kind::Done`] of an eager message.
        const ACK = 4;
        /// The operation goes on: nothing is answered or counted before its last part.
        const PART = 8;
        /// The application was told of this [`Kind::Rendezvous`] when it was copied; see `inject`.
        const COPIED = 16;
        /// A [`Kind::Write`] that is to go through buffers: it is only checked, as a whole, before.
        const PIECES = 32;
        /// The slot has checksums.
        const CHECKED = 64;
    }
}

/// Operations of an endpoint that may be under way at a time.
pub const PLACES: usize = 1 << 24;
/// Operations from one age to its return.
const AGES: u64 = 1 << 40;

/// The number of an operation, with which peers answer.
///
/// ```text
/// 63                    24 23        0
/// | age                   | place    |
/// ```
/// The age counts operations, and begins again after 2^40 of them. When a transmit context closes, all
/// that it began is void: the segment tells which age is the first that is not
/// ([`crate::shm::segment::Segment::void_before`]).
#[must_use]
pub fn number(age: u64, place: usize) -> u64 {
    age << PLACES.ilog2() | place as u64 & (PLACES as u64 - 1)
}

/// The age and the place in a number.
#[inline]
#[must_use]
pub fn parts_of(number: u64) -> (u64, usize) {
    (number >> PLACES.ilog2(), number as usize & (PLACES - 1))
}

/// The age of the operation that follows one of this age.
#[must_use]
pub fn age_after(age: u64) -> u64 {
    (age + 1) % AGES
}

/// Whether an operation of this age began before the first one of another.
#[inline]
#[must_use]
pub fn is_before(age: u64, first: u64) -> bool {
    age.wrapping_sub(first) % AGES >= AGES / 2
}

/// Where the checksums are.
pub(crate) const CHECKS: usize = SLOT - 8;
/// Longest message that travels in a slot which has some.
pub const CHECKED_INLINE: usize = CHECKS - PAYLOAD;

/// The `count` of a slot that asks for memory: what lies where.
///
/// ```text
/// in the payload, or in a buffer of the sender:
/// [ remote parts: 24 bytes each | segments here: 16 each, or data | compared ]
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Parts of the receiver's memory.
    pub parts: u8,
    /// Segments of the sender's memory; 0 if the data is in the frame.
    pub segments: u8,
    /// Buffer of the sender that holds the frame; none: the payload does.
    pub(crate) buffer: Option<u16>,
}

impl Frame {
    /// As the `count` of a slot.
    #[inline]
    #[must_use]
    pub fn pack(self) -> u32 {
        let buffer = self.buffer.map_or(0, |buffer| u32::from(buffer) + 1);
        u32::from(self.parts) | u32::from(self.segments) << 8 | buffer << 16
    }

    /// What the `count` of a slot says.
    #[inline]
    #[must_use]
    pub fn unpack(count: u32) -> Self {
        let buffer = (count >> 16) as u16;
        Self { parts: count as u8, segments: (count >> 8) as u8, buffer: buffer.checked_sub(1) }
    }
}

/// The words of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the slot is.
    pub kind: Kind,
    /// What else it says.
    pub flags: Flags,
    /// The sender's number in the receiver's list of senders, 16 bits of it on the wire; from
    /// [`FAR`] on of those who send over the network.
    pub peer: u32,
    /// Depends on the kind.
    pub count: u32,
    /// Match bits.
    pub bits: u64,
    /// Remote CQ data; depends on the kind.
    pub data: u64,
    /// Length in bytes of the message; depends on the kind.
    pub len: u64,
    /// Operation of the sender.
    pub op: u64,
}

impl Header {
    /// Whether it is of a tagged message.
    #[inline]
    pub fn is_tagged(&self) -> bool {
        self.flags.contains(Flags::TAGGED)
    }

    /// Whether it came over the network.
    #[inline]
    pub fn is_far(&self) -> bool {
        self.peer >= FAR
    }

    /// The words that follow `turn`.
    #[inline]
    pub fn words(&self) -> [u64; 5] {
        let first = u64::from(self.kind as u8)
            | u64::from(self.flags.bits()) << 8
            | u64::from(self.peer as u16) << 16
            | u64::from(self.count) << 32;
        [first, self.bits, self.data, self.len, self.op]
    }

    /// From words as they were found; none if they cannot be a header.
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
    fn headers_survive_the_wire_and_nonsense_is_none() {
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
    fn ages_are_in_order_also_where_they_begin_again() {
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
