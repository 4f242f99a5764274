// SPDX-License-Identifier: BSD-2-Clause
//! The secret that two endpoints share, and how each proves to the other that it knows it.
//!
//! ```text
//! session key = HMAC-SHA256(secret, nonce of the dialer | nonce of the acceptor)
//! proof       = HMAC-SHA256(session key, role | message)
//! ```
//! Neither the secret nor anything it can be computed from travels. Both nonces are new for each
//! connection, so a recorded handshake proves nothing on another connection, and a proof names the role
//! of its sender, so it cannot be reflected.

use std::{fmt, io};

use ffi::Errno;
use hmac::{Hmac, Mac};
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest as _, Sha256};

type HmacSha256 = Hmac<Sha256>;

/// Bytes of a proof.
pub(super) const PROOF: usize = 32;

/// A random number that is used once.
pub(super) type Nonce = [u8; 16];

/// Fills an array with random bytes.
///
/// # Errors
/// The kernel has no random numbers.
pub fn random<const N: usize>() -> Result<[u8; N], Errno> {
    let mut bytes = [0; N];
    let count = getrandom(&mut bytes, GetRandomFlags::empty()).map_err(io::Error::from)?;
    if count < N {
        return Err(Errno::EIO);
    }
    Ok(bytes)
}

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

    /// The secret of a job, from a text such as `FI_TCAM_JOB_KEY`.
    #[must_use]
    pub fn of_job(key: &str) -> Self {
        Self::of(b"tcam job\0", key.as_bytes())
    }

    /// The secret of the endpoint whose name contains this random number.
    #[must_use]
    pub fn of_endpoint(number: u64) -> Self {
        Self::of(b"tcam endpoint\0", &number.to_le_bytes())
    }

    fn mac(&self) -> HmacSha256 {
        HmacSha256::new_from_slice(&self.0).expect("HMAC takes keys of any length")
    }
}

/// Which end of a connection an endpoint is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Dialer,
    Acceptor,
}

impl Role {
    pub(super) fn other(self) -> Self {
        match self {
            Self::Dialer => Self::Acceptor,
            Self::Acceptor => Self::Dialer,
        }
    }
}

/// What both ends of one connection can prove to each other.
#[derive(Clone, Debug)]
pub(super) struct Session(Secret);

impl Session {
    pub(super) fn new(secret: &Secret, dialer: &Nonce, acceptor: &Nonce) -> Self {
        let mac = secret.mac().chain_update(dialer).chain_update(acceptor);
        Self(Secret(mac.finalize().into_bytes().into()))
    }

    fn mac(&self, role: Role, label: u8, message: &[u8]) -> HmacSha256 {
        self.0.mac().chain_update([role as u8, label]).chain_update(message)
    }

    /// The proof that goes with a message of the end that has this role.
    pub(super) fn prove(&self, role: Role, message: &[u8]) -> [u8; PROOF] {
        self.mac(role, 0, message).finalize().into_bytes().into()
    }

    /// Whether a proof is right. The comparison takes the same time wherever they differ.
    pub(super) fn is_proved(&self, role: Role, message: &[u8], proof: &[u8; PROOF]) -> bool {
        self.mac(role, 0, message).verify_slice(proof).is_ok()
    }

    /// A number that only the two ends know, to hide one in a message of this role.
    pub(super) fn mask(&self, role: Role) -> u32 {
        let bytes: [u8; PROOF] = self.mac(role, 1, &[]).finalize().into_bytes().into();
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_knows_the_secret_and_the_nonces_proves_a_message() {
        let secret = Secret::of_job("key");
        let (dialer, acceptor) = (random().unwrap(), random().unwrap());
        let session = Session::new(&secret, &dialer, &acceptor);
        let proof = session.prove(Role::Dialer, b"message");
        assert!(session.is_proved(Role::Dialer, b"message", &proof));
        assert!(!session.is_proved(Role::Dialer, b"massage", &proof));
        assert!(!session.is_proved(Role::Acceptor, b"message", &proof), "reflected");
        let others = [
            Session::new(&secret, &acceptor, &dialer),
            Session::new(&secret, &dialer, &random().unwrap()),
            Session::new(&Secret::of_job("kez"), &dialer, &acceptor),
            Session::new(&Secret::of_endpoint(7), &dialer, &acceptor),
        ];
        for other in others {
            assert!(!other.is_proved(Role::Dialer, b"message", &proof));
            assert_ne!(other.mask(Role::Dialer), session.mask(Role::Dialer));
        }
        assert_ne!(session.mask(Role::Dialer), session.mask(Role::Acceptor));
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }
}
