// SPDX-License-Identifier: BSD-2-Clause
//! A peer on this host: its segment, and the number of this endpoint in the peer's list of senders.

use std::{fs::File, sync::Arc};

use ffi::{Buffer, Errno};
use host::owner::Look;

use super::{
    cma::{self, PeerMemory},
    ring::{self, TxRing},
    segment::{BUFFER, Segment},
};
use crate::{
    bytes::{Remote, SharedBytes},
    contract::{Body, CopyError, Liveness, Settings},
    identity::{ExecId, Identity},
    wire::{Frame, Header, Kind},
};

/// A peer on this host; see the module.
#[derive(Debug)]
pub struct ShmPeer {
    /// The segment of this endpoint.
    own: Arc<Segment>,
    segment: Arc<Segment>,
    /// This endpoint's number in the peer's list of senders.
    number: u16,
    /// Whether the kernel copies from this peer and to it. False if copies are off, if the kernel
    /// refused one, or if the peer's process id is not valid here.
    copies: bool,
    /// Whether long reads and writes go in pieces instead of being copied; `None` until the first
    /// one has ended.
    pieces: Option<bool>,
}

impl ShmPeer {
    /// Enters this endpoint into the list of senders of a peer whose segment was opened.
    ///
    /// # Errors
    /// Those of [`Segment::enter`].
    pub(crate) fn enter(
        own: &Arc<Segment>,
        (segment, file): (Segment, File),
        settings: Settings,
    ) -> Result<Self, Errno> {
        let number = segment.enter(&file, own.identity())?;
        let copies = settings.copies && segment.is_of_our_processes();
        let (own, segment) = (Arc::clone(own), Arc::new(segment));
        Ok(Self { own, segment, number, copies, pieces: (!copies).then_some(true) })
    }

    /// Creates the sending end of the peer's ring, for one thread at a time.
    pub(super) fn tx_ring(&self, thread: usize, checks: bool) -> TxRing {
        TxRing::new(&self.segment, self.number, thread, checks)
    }

    /// Returns the identity of the peer.
    pub(crate) fn identity(&self) -> Identity {
        self.segment.identity()
    }

    /// Returns whether the peer is alive, closed or dead.
    pub(crate) fn liveness(&self, look: Look) -> Liveness {
        self.segment.liveness(look)
    }

    /// Returns whether the peer's ring has room for another slot.
    pub(crate) fn has_room(&self) -> bool {
        ring::has_room(&self.segment)
    }

    /// Returns whether the peer has not closed its endpoint and is not marked as dead.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.segment.is_open()
    }

    /// Returns the payload of a slot of the peer: in the slot, or in one of the peer's buffers.
    /// Returns `None` if the buffer does not exist or is shorter than the payload.
    #[inline]
    pub(crate) fn body<'a>(
        &'a self,
        header: &Header,
        payload: SharedBytes<'a>,
    ) -> Option<Body<'a>> {
        let (buffer, len) = match header.kind {
            Kind::Buffered | Kind::Chunk => (header.count as usize, header.len),
            Kind::Write | Kind::Read | Kind::Atomic | Kind::Answer => {
                match Frame::unpack(header.count).buffer {
                    Some(buffer) => (usize::from(buffer), BUFFER as u64),
                    None => return Some(Body { bytes: payload, buffer_state: None }),
                }
            }
            _ => return Some(Body { bytes: payload, buffer_state: None }),
        };
        let bytes = self.segment.buffer_bytes(buffer, len)?;
        Some(Body { bytes, buffer_state: Some(self.segment.buffer_state(buffer)) })
    }

    /// Returns the exec id of the process to copy from; `None` if the kernel does not copy.
    fn exec_id(&self) -> Option<ExecId> {
        self.copies.then(|| self.segment.exec_id())
    }

    pub(crate) fn goes_in_pieces(&self) -> Option<bool> {
        self.pieces
    }

    pub(crate) fn note_pull(&mut self) {
        self.pieces = Some(true);
    }

    pub(crate) fn note_copied(&mut self) {
        self.pieces.get_or_insert(false);
    }

    /// Returns the final result of a copy. It is an error if the peer, or the context of the peer's
    /// operation `op`, closed meanwhile, because the memory may have been reused. After a refusal,
    /// no more copies are made.
    pub(crate) fn confirm(
        &mut self,
        copied: Result<(), CopyError>,
        op: Option<u64>,
    ) -> Result<(), CopyError> {
        if copied == Err(CopyError::Refused) && self.copies {
            // The kernel also refuses if the peer has just died.
            if self.liveness(Look::Closely) == Liveness::Alive {
                tracing::info!(
                    "the kernel refuses to copy between this process and process {}: long \
                     messages go through buffers",
                    self.segment.pid()
                );
            }
            self.copies = false;
        }
        let is_valid = self.is_open() && !op.is_some_and(|op| self.segment.is_void(op));
        if is_valid { copied } else { Err(CopyError::Failed(Errno::ECONNABORTED)) }
    }

    /// Returns the peer's memory; `None` if the kernel does not copy.
    pub(crate) fn memory(&self) -> Option<PeerMemory> {
        let exec_id = self.exec_id()?;
        Some(PeerMemory { own: Arc::clone(&self.own), peer: Arc::clone(&self.segment), exec_id })
    }

    /// Reads from the peer's memory; see [`cma::read`].
    pub(crate) fn read(&self, remote: &Remote, to: &Buffer) -> Result<(), CopyError> {
        cma::read(self.exec_id().ok_or(CopyError::Refused)?, remote, to)
    }

    /// Returns whether the peer copies from or to memory of this endpoint, which has closed.
    pub(crate) fn copies_our_memory(&self) -> bool {
        self.segment.copies_memory_of(&self.own)
    }
}
