// SPDX-License-Identifier: BSD-2-Clause
//! Methods of the network for tests, which for example send bytes that no endpoint sends.

use std::net::SocketAddrV4;

use ffi::Errno;

use super::{Net, connections::front_of, frame, handshake::HandshakeMessage, secret::Secret};

/// Returns the first message of a handshake, for tests of dialers that know no secret.
#[must_use]
pub fn start() -> Vec<u8> {
    HandshakeMessage::Start([7; 16]).to_bytes()
}

impl Net {
    /// Makes progress. Messages stay until they are taken.
    pub fn progress(&self) {
        self.peers.lock().progress();
    }

    /// Takes and discards all messages.
    pub fn ignore_all(&self) {
        let mut peers = self.peers.lock();
        peers.progress();
        while let Some((connection, number, _)) = peers.take() {
            peers.connections.done(connection);
            peers.frame_handled(number);
        }
    }

    /// Returns whether the endpoint at an address has sent its Hello. The first call connects to
    /// it.
    ///
    /// # Errors
    /// The reason why the endpoint does not answer.
    pub fn has_met(&self, address: SocketAddrV4, secret: Option<Secret>) -> Result<bool, Errno> {
        match self.meet(address, secret) {
            Err(Errno::EAGAIN) => Ok(false),
            met => met.map(|_| true),
        }
    }

    /// Sends arbitrary words and an arbitrary payload to the endpoint at an address. `change` may
    /// change the head. A sender's number of 0 in `words` is replaced by the number of this
    /// endpoint at the peer. Returns false if there was no room, and true if no open peer is at the
    /// address.
    pub fn push_words(
        &self,
        address: SocketAddrV4,
        mut words: [u64; 5],
        payload: &[u8],
        change: impl FnOnce(&mut [u8]),
    ) -> bool {
        let mut peers = self.peers.lock();
        let Some((number, peer)) = peers.open_peer_at(address) else { return true };
        if words[0] >> 16 & 0xffff == 0 {
            words[0] |= u64::from(peer.number_there) << 16;
        }
        let sum = frame::FrameHeader::sum_of(&words, payload);
        let head = frame::FrameHeader { token: peer.token_there, sum, check: 0, words };
        let mut bytes = head.to_bytes();
        change(&mut bytes);
        let front = [&front_of(payload.len())[..], &bytes, payload].concat();
        peers.send(number, &front, &[])
    }

    /// Returns the number of open peers.
    pub fn open_peers(&self) -> usize {
        self.peers.lock().open_count()
    }

    /// Sends arbitrary bytes to the endpoint at an address; they need not be a frame.
    pub fn push_bytes(&self, address: SocketAddrV4, bytes: &[u8]) {
        let mut peers = self.peers.lock();
        if let Some((number, _)) = peers.open_peer_at(address) {
            peers.send(number, bytes, &[]);
        }
    }
}
