// SPDX-License-Identifier: BSD-2-Clause
//! Messages of the handshake and of the end of a connection between two endpoints.
//!
//! ```text
//! message   length of kind and fields (2 bytes) | kind (1) | fields
//! Start 1   magic 8 | nonce 16
//! Hello 2   identity 8 | address 8 | address of the peer 8 | masked token 8 | number 2 | seals 1 |
//!           has times 1 | clock 8 | claim 32 | proof 32
//! Bye 3     number of frames sent: 8
//! Seen 4    number of frames handled: 8
//! Refused 5 reason: 1
//! ```
//! If frames are sealed, so is each message after Hello: a tag follows it.
//!
//! The magic contains the version and the byte order. Each end sends Start without waiting for the
//! other. The dialer sends Hello when it has the acceptor's nonce. The acceptor sends Hello when
//! the dialer has proved that it knows the secret ([`super::secret`]). Every length is checked
//! before it is used.

use std::net::SocketAddrV4;

use super::secret::{Nonce, PROOF};
use crate::{
    address::{pack, unpack},
    identity::Identity,
};

/// Magic number of version 5 of these messages.
const MAGIC: u64 = 0x7463_616d_6e65_0005;

/// Maximum length in bytes of a message, without the length itself.
pub(super) const MAX_MESSAGE: usize = 128;

/// The reason why a peer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Its proof, address or claim is wrong: for example, it has the key of another job.
    Key = 0,
    // 1 is not used.
    /// Only one of the two endpoints seals frames.
    Seal = 2,
    /// The refusing end has as many peers as it can have.
    Full = 3,
    /// The refusing end already has a connection to the same endpoint.
    Twice = 4,
    /// An earlier connection to the same endpoint broke: messages may be missing.
    Lost = 5,
}

/// The description of an endpoint, for a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// Its identity.
    pub(super) who: Identity,
    /// Its address. The port must be that of `who`.
    pub(super) address: SocketAddrV4,
    /// The address of the peer that receives this. A dialer names the address that it connected to.
    pub(super) to: SocketAddrV4,
    /// The token that frames to this endpoint must carry, masked for this connection.
    pub(super) masked_token: u64,
    /// The number that this endpoint has given to the peer.
    pub(super) number: u16,
    /// Whether its frames are sealed (`FI_TCAM_NET_SEAL`).
    pub(super) seals: bool,
    /// Whether it records times, so that frames in both directions have times.
    pub(super) has_times: bool,
    /// Its clock when it sent this; see [`super::peer_clock`].
    pub(super) clock: u64,
    /// Its claim to be at its address; see [`super::secret::Claim`].
    pub(super) claim: [u8; PROOF],
}

/// A message of the handshake or of the end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HandshakeMessage {
    /// A connection begins.
    Start([u8; 16]),
    /// See [`Hello`]; with the proof that its sender knows the secret.
    Hello(Hello, [u8; PROOF]),
    /// The sender closes: the number of frames that it has sent. Only answers to requests may
    /// follow, and then another Bye.
    Bye(u64),
    /// The answer to Bye: the number of frames from the peer that were handled.
    Seen(u64),
    /// The connection is refused.
    Refused(Refusal),
}

/// The reason why bytes are not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DecodeError {
    /// They come from another version, or have another byte order.
    Version,
    /// They do not come from tcam.
    Garbage,
    /// They are a frame or a message with a wrong tag.
    Forged,
}

impl Hello {
    /// Returns the bytes that the claim covers.
    pub(super) fn unclaimed(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [self.who.word(), pack(self.address), pack(self.to), self.masked_token] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend(self.number.to_ne_bytes());
        bytes.extend([u8::from(self.seals), u8::from(self.has_times)]);
        bytes.extend(self.clock.to_ne_bytes());
        bytes
    }

    /// Returns the bytes that the proof covers.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        [self.unclaimed(), self.claim.to_vec()].concat()
    }
}

impl HandshakeMessage {
    /// Encodes the message.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = vec![0, 0];
        match self {
            Self::Start(nonce) => {
                bytes.push(1);
                bytes.extend(MAGIC.to_ne_bytes());
                bytes.extend(nonce);
            }
            Self::Hello(hello, proof) => {
                bytes.push(2);
                bytes.extend(hello.to_bytes());
                bytes.extend(proof);
            }
            Self::Bye(frames) => {
                bytes.push(3);
                bytes.extend(frames.to_ne_bytes());
            }
            Self::Seen(frames) => {
                bytes.push(4);
                bytes.extend(frames.to_ne_bytes());
            }
            Self::Refused(refusal) => bytes.extend([5, *refusal as u8]),
        }
        let len = (bytes.len() - 2) as u16;
        bytes[..2].copy_from_slice(&len.to_ne_bytes());
        bytes
    }

    /// Decodes the first message of some bytes. Returns it with its length, or `None` while it is
    /// incomplete.
    ///
    /// # Errors
    /// The bytes are not a message.
    pub(super) fn of_bytes(bytes: &[u8]) -> Result<Option<(Self, usize)>, DecodeError> {
        let Some((&len, rest)) = bytes.split_first_chunk() else { return Ok(None) };
        let len = usize::from(u16::from_ne_bytes(len));
        if !(1..=MAX_MESSAGE).contains(&len) {
            return Err(DecodeError::Garbage);
        }
        // A wrong magic is an error before the rest has come.
        if let Some(magic) = rest.get(1..9)
            && rest[0] == 1
            && magic != MAGIC.to_ne_bytes()
        {
            let ours = MAGIC.to_ne_bytes();
            let is_near = (0..8).filter(|&at| magic[at] == ours[at]).count() >= 6
                || magic == MAGIC.swap_bytes().to_ne_bytes();
            return Err(if is_near { DecodeError::Version } else { DecodeError::Garbage });
        }
        if !(1..=5).contains(rest.first().unwrap_or(&1)) {
            return Err(DecodeError::Garbage);
        }
        let Some(message) = rest.get(..len) else { return Ok(None) };
        let decoded = read(message).ok_or(DecodeError::Garbage)?;
        Ok(Some((decoded, 2 + len)))
    }
}

fn read(message: &[u8]) -> Option<HandshakeMessage> {
    let mut rest = message;
    let [kind] = take(&mut rest)?;
    let decoded = match kind {
        1 => {
            let _magic: [u8; 8] = take(&mut rest)?;
            let nonce: Nonce = take(&mut rest)?;
            HandshakeMessage::Start(nonce)
        }
        2 => {
            let mut word = || Some(u64::from_ne_bytes(take(&mut rest)?));
            let (who, address, to, masked_token) = (word()?, word()?, word()?, word()?);
            let number = u16::from_ne_bytes(take(&mut rest)?);
            let [seals, has_times] = take(&mut rest)?;
            let hello = Hello {
                who: Identity::of_word(who)?,
                address: unpack(address),
                to: unpack(to),
                masked_token,
                number,
                seals: seals != 0,
                has_times: has_times != 0,
                clock: u64::from_ne_bytes(take(&mut rest)?),
                claim: take(&mut rest)?,
            };
            HandshakeMessage::Hello(hello, take(&mut rest)?)
        }
        3 => HandshakeMessage::Bye(u64::from_ne_bytes(take(&mut rest)?)),
        4 => HandshakeMessage::Seen(u64::from_ne_bytes(take(&mut rest)?)),
        _ => HandshakeMessage::Refused(match take(&mut rest)? {
            [0] => Refusal::Key,
            [2] => Refusal::Seal,
            [3] => Refusal::Full,
            [4] => Refusal::Twice,
            [5] => Refusal::Lost,
            _ => return None,
        }),
    };
    rest.is_empty().then_some(decoded)
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, behind) = rest.split_first_chunk()?;
    *rest = behind;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hello() -> Hello {
        Hello {
            who: Identity::of_word(9 << 48 | 4).unwrap(),
            address: "10.0.0.1:9".parse().unwrap(),
            to: "10.0.0.2:8".parse().unwrap(),
            masked_token: 5,
            number: 6,
            seals: true,
            has_times: true,
            clock: 8,
            claim: [7; PROOF],
        }
    }

    #[test]
    fn messages_round_trip_and_wait_while_incomplete() {
        let refusals = [Refusal::Key, Refusal::Seal, Refusal::Full, Refusal::Twice, Refusal::Lost];
        let hello = HandshakeMessage::Hello(hello(), [9; PROOF]);
        let mut all = vec![
            HandshakeMessage::Start([8; 16]),
            hello,
            HandshakeMessage::Bye(1),
            HandshakeMessage::Seen(u64::MAX),
        ];
        all.extend(refusals.map(HandshakeMessage::Refused));
        for message in all {
            let mut bytes = message.to_bytes();
            let whole = bytes.len();
            for len in 0..whole {
                assert_eq!(HandshakeMessage::of_bytes(&bytes[..len]), Ok(None));
            }
            bytes.extend(b"more");
            assert_eq!(HandshakeMessage::of_bytes(&bytes), Ok(Some((message, whole))));
        }
    }

    #[test]
    fn strangers_differ_from_other_versions() {
        assert_eq!(HandshakeMessage::of_bytes(b"GET / HTTP/1.1\r\n"), Err(DecodeError::Garbage));
        let mut bytes = HandshakeMessage::Start([1; 16]).to_bytes();
        bytes[3] = 1;
        assert_eq!(HandshakeMessage::of_bytes(&bytes), Err(DecodeError::Version));
        bytes[3..11].copy_from_slice(&MAGIC.swap_bytes().to_ne_bytes());
        assert_eq!(HandshakeMessage::of_bytes(&bytes), Err(DecodeError::Version));
        bytes[3..11].fill(0);
        assert_eq!(HandshakeMessage::of_bytes(&bytes), Err(DecodeError::Garbage));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
            if let Ok(Some((_, len))) = HandshakeMessage::of_bytes(&bytes) {
                prop_assert!(len <= bytes.len());
            }
        }

        #[test]
        fn changed_messages_do_no_harm(at in 0_usize..64, byte in any::<u8>()) {
            let mut bytes = HandshakeMessage::Hello(hello(), [3; PROOF]).to_bytes();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = HandshakeMessage::of_bytes(&bytes);
        }
    }
}
