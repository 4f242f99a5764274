// SPDX-License-Identifier: BSD-2-Clause
//! A peer on this host: its segment, and this endpoint's number in its list of senders.

use std::{
    fs::File,
    sync::{Arc, atomic::AtomicU32},
};

use ffi::{Buffer, Errno};
use host::owner::Look;

use super::{
    copy::{self, CopyError, Direction},
    exec_id::ExecId,
    ring,
    segment::{BUFFER, Liveness, Segment},
    tx_ring::TxRing,
};
use crate::{
    bytes::{Remote, SharedBytes},
    contract::Settings,
    identity::Identity,
    wire::{Frame, Header, Kind},
};

/// A peer that can be sent to.
#[derive(Debug)]
pub struct Link {
    segment: Arc<Segment>,
    /// This endpoint's number in the peer's list of senders.
    number: u16,
    /// Whether slots have checksums.
    checks: bool,
    /// Whether the kernel copies from this peer and to it. False if copies are off, if the kernel
    /// refused one, or if the peer's process id is not valid here.
    copies: bool,
    /// Whether long reads and writes go in pieces instead of being copied.
    pieces: bool,
}

impl Link {
    /// Opens the endpoint that holds `port` now, and enters this endpoint into its list of senders.
    ///
    /// # Errors
    /// Those of [`Segment::open`]; `ENOSPC` if there is no room for the list.
    pub(crate) fn open(own: &Segment, port: u16, settings: Settings) -> Result<Self, Errno> {
        Self::enter(own, Segment::open(port)?, settings)
    }

    /// Opens one endpoint, and no later one at the same port.
    ///
    /// # Errors
    /// Those of [`Link::open`]; `ECONNREFUSED` if the endpoint is gone.
    pub(crate) fn open_only(
        own: &Segment,
        peer: Identity,
        settings: Settings,
    ) -> Result<Self, Errno> {
        Self::enter(own, Segment::open_only(peer)?, settings)
    }

    fn enter(
        own: &Segment,
        (segment, file): (Segment, File),
        settings: Settings,
    ) -> Result<Self, Errno> {
        let number = segment.enter(&file, own.identity())?;
        let copies = settings.copies && segment.is_of_our_processes();
        let (segment, Settings { checks, .. }) = (Arc::new(segment), settings);
        Ok(Self { segment, number, checks, copies, pieces: !settings.copies })
    }

    /// The sending end of the peer's ring, for one thread at a time.
    pub(super) fn tx_ring(&self, thread: usize) -> TxRing {
        TxRing::new(&self.segment, self.number, thread, self.checks)
    }

    /// The identity of the peer.
    pub(crate) fn identity(&self) -> Identity {
        self.segment.identity()
    }

    /// Returns whether the peer is alive, closed or dead.
    pub(crate) fn liveness(&self, look: Look) -> Liveness {
        self.segment.liveness(look)
    }

    /// Returns whether the peer's ring takes another slot.
    pub(crate) fn has_room(&self) -> bool {
        ring::has_room(&self.segment)
    }

    /// Returns whether the peer has not closed its endpoint.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        self.segment.is_open()
    }

    /// The payload of a slot of the peer: in the slot, or in one of the peer's buffers. Returns
    /// `None` if there is no such buffer.
    #[inline]
    pub(crate) fn body<'a>(
        &'a self,
        header: &Header,
        payload: SharedBytes<'a>,
    ) -> Option<(SharedBytes<'a>, Option<&'a AtomicU32>)> {
        let (buffer, len) = match header.kind {
            Kind::Buffered | Kind::Chunk => (header.count as usize, header.len),
            Kind::Write | Kind::Read | Kind::Atomic | Kind::Answer => {
                match Frame::unpack(header.count).buffer {
                    Some(buffer) => (usize::from(buffer), BUFFER as u64),
                    None => return Some((payload, None)),
                }
            }
            _ => return Some((payload, None)),
        };
        let bytes = self.segment.buffer_bytes(buffer, len)?;
        Some((bytes, Some(self.segment.buffer_state(buffer))))
    }

    /// The exec id of the process to copy from; `None` if the kernel does not copy.
    pub(crate) fn exec_id(&self) -> Option<ExecId> {
        self.copies.then(|| self.segment.exec_id())
    }

    pub(crate) fn goes_in_pieces(&self) -> bool {
        self.pieces
    }

    pub(crate) fn note_pull(&mut self) {
        self.pieces = true;
    }

    /// The result of a copy, after the copy. It fails if the peer, or the context of the peer's
    /// operation `op`, closed meanwhile: the memory may have been reused.
    pub(crate) fn confirm(
        &mut self,
        copied: Result<(), CopyError>,
        op: Option<u64>,
    ) -> Result<(), CopyError> {
        if copied == Err(CopyError::Refused) && self.copies {
            tracing::info!("the kernel refuses to copy between processes, using buffers");
            self.copies = false;
        }
        let is_valid = self.is_open() && !op.is_some_and(|op| self.segment.is_void(op));
        if is_valid { copied } else { Err(CopyError::Failed(Errno::ECONNABORTED)) }
    }

    /// Copies between memory of the peer's process and local memory, piece by piece. Each piece has
    /// an offset in the peer's memory, which belongs to the peer's operation `op`.
    pub(crate) fn exchange<'a>(
        &self,
        own: &Segment,
        direction: Direction,
        (remote, op): (&Remote, u64),
        pieces: impl IntoIterator<Item = (usize, &'a Buffer)>,
    ) -> Result<(), CopyError> {
        let exec_id = self.exec_id().ok_or(CopyError::Refused)?;
        exchange(own, (&self.segment, exec_id), direction, (remote, op), pieces)
    }

    /// Does the work of [`Link::exchange`] without the lock of the endpoint. Returns `None` if the
    /// kernel does not copy.
    pub(crate) fn exchanger(&self, own: &Arc<Segment>) -> Option<Exchanger> {
        let (own, peer) = (Arc::clone(own), Arc::clone(&self.segment));
        Some(Exchanger { own, peer, exec_id: self.exec_id()? })
    }

    /// Returns whether the peer copies from or to memory of this endpoint, which has closed.
    pub(crate) fn reaches(&self, own: &Segment) -> bool {
        self.segment.reaches(own)
    }
}

/// See [`Link::exchanger`].
#[derive(Debug)]
pub(crate) struct Exchanger {
    own: Arc<Segment>,
    peer: Arc<Segment>,
    exec_id: ExecId,
}

impl Exchanger {
    /// As [`Link::exchange`], for one copy at a time: an endpoint announces one.
    pub(crate) fn exchange<'a>(
        &self,
        direction: Direction,
        what: (&Remote, u64),
        pieces: impl IntoIterator<Item = (usize, &'a Buffer)>,
    ) -> Result<(), CopyError> {
        exchange(&self.own, (&self.peer, self.exec_id), direction, what, pieces)
    }
}

fn exchange<'a>(
    own: &Segment,
    (peer, exec_id): (&Segment, ExecId),
    direction: Direction,
    (remote, op): (&Remote, u64),
    pieces: impl IntoIterator<Item = (usize, &'a Buffer)>,
) -> Result<(), CopyError> {
    let guard = own.guard_cma(peer, op);
    let _guard = guard.ok_or(CopyError::Failed(Errno::ECONNABORTED))?;
    pieces
        .into_iter()
        .try_for_each(|(at, here)| copy::between(direction, exec_id, remote, at, here))
}
