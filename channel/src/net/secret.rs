// SPDX-License-Identifier: BSD-2-Clause
//! The secret that two endpoints share, and the proofs by which each shows the other that it knows
//! the secret.
//!
//! ```text
//! session key = HMAC-SHA256(secret, nonce of the dialer | nonce of the acceptor)
//! proof       = HMAC-SHA256(session key, role | message)
//! claim       = HMAC-SHA256(secret of the sender, HMAC-SHA256(session key, role | message))
//! tag         = HMAC-SHA256(HMAC-SHA256(session key, role), number of the frame | frame), 16 bytes
//! ```
//! Neither the secret nor anything it can be computed from is sent. Both nonces are new for each
//! connection, so that a recorded handshake proves nothing on another connection. A proof contains
//! the role of its sender, so that it cannot be reflected. The formulas omit a byte after the role,
//! which differs for each of these uses.
//!
//! Without a job secret, each endpoint has a secret, computed from a number in its name. A dialer
//! that proves the acceptor's secret knows the acceptor's name, but it may claim any address. So
//! each Hello contains a [`Claim`], made with the secret of its sender. A receiver that has the
//! name of the endpoint at the claimed address can verify the claim. With `FI_TCAM_NET_SEAL=on`,
//! frames and the messages after Hello have a tag ([`Seal`]).

use std::fmt;

use ffi::Buffer;
use hmac::{Hmac, Mac};
use sha2::{Digest as _, Sha256};

type HmacSha256 = Hmac<Sha256>;

/// Bytes of a proof.
pub(super) const PROOF: usize = 32;

/// Bytes of the tag of a frame.
pub(super) const TAG: usize = 16;

/// A random number that is used once.
pub(super) type Nonce = [u8; 16];

/// A secret that both ends of a connection know.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Secret(..)")
    }
}

impl Secret {
    fn of(kind: &[u8], bytes: &[u8]) -> Self {
        Self(Sha256::new_with_prefix(kind).chain_update(bytes).finalize().into())
    }

    /// Returns the secret of a job, from a text such as `FI_TCAM_JOB_KEY`.
    #[must_use]
    pub fn of_job(key: &str) -> Self {
        Self::of(b"tcam job\0", key.as_bytes())
    }

    /// Returns the secret of the endpoint whose name contains this random number.
    #[must_use]
    pub fn of_endpoint(number: u64) -> Self {
        Self::of(b"tcam endpoint\0", &number.to_le_bytes())
    }

    fn mac(&self) -> HmacSha256 {
        HmacSha256::new_from_slice(&self.0).expect("HMAC takes keys of any length")
    }

    fn prove(&self, message: &[u8]) -> [u8; PROOF] {
        self.mac().chain_update(message).finalize().into_bytes().into()
    }
}

/// The role of an endpoint on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HandshakeRole {
    Dialer,
    Acceptor,
}

/// The session of a connection: both ends prove that they know its key.
#[derive(Clone, Debug)]
pub(super) struct Session(Secret);

impl Session {
    pub(super) fn new(secret: &Secret, dialer: &Nonce, acceptor: &Nonce) -> Self {
        let mac = secret.mac().chain_update(dialer).chain_update(acceptor);
        Self(Secret(mac.finalize().into_bytes().into()))
    }

    fn mac(&self, role: HandshakeRole, label: u8, message: &[u8]) -> HmacSha256 {
        self.0.mac().chain_update([role as u8, label]).chain_update(message)
    }

    fn bytes(&self, role: HandshakeRole, label: u8, message: &[u8]) -> [u8; PROOF] {
        self.mac(role, label, message).finalize().into_bytes().into()
    }

    /// Returns the proof of a message by the end with this role.
    pub(super) fn prove(&self, role: HandshakeRole, message: &[u8]) -> [u8; PROOF] {
        self.bytes(role, 0, message)
    }

    /// Returns whether a proof is right. The comparison takes constant time.
    pub(super) fn is_proved(
        &self,
        role: HandshakeRole,
        message: &[u8],
        proof: &[u8; PROOF],
    ) -> bool {
        self.mac(role, 0, message).verify_slice(proof).is_ok()
    }

    /// Returns a number that only the two ends know. It masks the token in the Hello of the end
    /// with this role.
    pub(super) fn mask(&self, role: HandshakeRole) -> u64 {
        u64::from_le_bytes(self.bytes(role, 1, &[]).as_chunks().0[0])
    }

    /// Returns the claim of an endpoint with this secret, for a message of the end with this role.
    pub(super) fn claim(
        &self,
        role: HandshakeRole,
        message: &[u8],
        secret: &Secret,
    ) -> [u8; PROOF] {
        secret.prove(&self.bytes(role, 2, message))
    }

    /// Returns the claim that came with a message of the end with this role, to be verified later.
    pub(super) fn claimed(&self, role: HandshakeRole, message: &[u8], proof: [u8; PROOF]) -> Claim {
        Claim { message: self.bytes(role, 2, message), proof }
    }

    /// Returns the seal for the frames of the end with this role.
    pub(super) fn seal(&self, role: HandshakeRole) -> Seal {
        Seal { key: Secret(self.bytes(role, 3, &[])), frames: 0 }
    }
}

/// The claim of the sender of a Hello that it is the endpoint at the address in this Hello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    message: [u8; PROOF],
    proof: [u8; PROOF],
}

impl Claim {
    /// Returns whether the endpoint with this secret made the claim.
    pub(super) fn is_of(&self, secret: &Secret) -> bool {
        secret.mac().chain_update(self.message).verify_slice(&self.proof).is_ok()
    }
}

/// Authenticates the frames of one end of a connection, each at its position in the stream.
#[derive(Clone, Debug)]
pub(super) struct Seal {
    key: Secret,
    frames: u64,
}

impl Seal {
    fn mac(&self, frame: &[u8]) -> HmacSha256 {
        self.key.mac().chain_update(self.frames.to_le_bytes()).chain_update(frame)
    }

    /// Returns the bytes of the next frame, followed by its tag. If the frame is sent, call
    /// [`Self::count_frame`].
    pub(super) fn sealed(&self, front: &[u8], data: &[Buffer]) -> Vec<u8> {
        let mut frame = front.to_vec();
        for buffer in data {
            let at = frame.len();
            frame.resize(at + buffer.len(), 0);
            buffer.read_to(&mut frame[at..]);
        }
        let tag = self.mac(&frame).finalize().into_bytes();
        frame.extend(&tag[..TAG]);
        frame
    }

    /// Notes that a frame was sent.
    pub(super) fn count_frame(&mut self) {
        self.frames += 1;
    }

    /// Returns whether these bytes are the next frame and its tag. Counts the frame in any case.
    pub(super) fn verify_next(&mut self, frame: &[u8], tag: &[u8]) -> bool {
        let is_next = self.mac(frame).verify_truncated_left(tag).is_ok();
        self.frames += 1;
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::random;

    #[test]
    fn a_proof_needs_the_secret_and_the_nonces() {
        let secret = Secret::of_job("key");
        let (dialer, acceptor) = (random().unwrap(), random().unwrap());
        let session = Session::new(&secret, &dialer, &acceptor);
        let proof = session.prove(HandshakeRole::Dialer, b"message");
        assert!(session.is_proved(HandshakeRole::Dialer, b"message", &proof));
        assert!(!session.is_proved(HandshakeRole::Dialer, b"massage", &proof));
        assert!(!session.is_proved(HandshakeRole::Acceptor, b"message", &proof), "reflected");
        let others = [
            Session::new(&secret, &acceptor, &dialer),
            Session::new(&secret, &dialer, &random().unwrap()),
            Session::new(&Secret::of_job("kez"), &dialer, &acceptor),
            Session::new(&Secret::of_endpoint(7), &dialer, &acceptor),
        ];
        for other in others {
            assert!(!other.is_proved(HandshakeRole::Dialer, b"message", &proof));
            assert_ne!(other.mask(HandshakeRole::Dialer), session.mask(HandshakeRole::Dialer));
        }
        assert_ne!(session.mask(HandshakeRole::Dialer), session.mask(HandshakeRole::Acceptor));
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn a_claim_belongs_to_one_endpoint_and_one_message() {
        let [own, other] = [1, 2].map(Secret::of_endpoint);
        let nonce = random().unwrap();
        let session = Session::new(&own, &nonce, &nonce);
        let proof = session.claim(HandshakeRole::Dialer, b"hello", &other);
        assert!(session.claimed(HandshakeRole::Dialer, b"hello", proof).is_of(&other));
        assert!(!session.claimed(HandshakeRole::Dialer, b"hello", proof).is_of(&own));
        assert!(!session.claimed(HandshakeRole::Dialer, b"hallo", proof).is_of(&other));
        assert!(!session.claimed(HandshakeRole::Acceptor, b"hello", proof).is_of(&other));
    }

    #[test]
    fn a_sealed_frame_opens_once_and_in_its_place() {
        let session = Session::new(&Secret::of_job("key"), &random().unwrap(), &[1; 16]);
        let mut from = session.seal(HandshakeRole::Dialer);
        let mut frame = || {
            let frame = from.sealed(b"frame", &[]);
            from.count_frame();
            frame
        };
        let (first, second) = (frame(), frame());
        assert_ne!(first, second);
        let opens = |to: &mut Seal, frame: &[u8]| to.verify_next(&frame[..5], &frame[5..]);
        let mut to = session.seal(HandshakeRole::Dialer);
        assert!(opens(&mut to, &first) && opens(&mut to, &second));
        assert!(!opens(&mut to, &second), "again");
        assert!(!opens(&mut session.seal(HandshakeRole::Dialer), &second), "too early");
        assert!(!opens(&mut session.seal(HandshakeRole::Acceptor), &first), "reflected");
        let mut changed = first;
        changed[0] ^= 1;
        assert!(!opens(&mut session.seal(HandshakeRole::Dialer), &changed), "changed");
    }
}
