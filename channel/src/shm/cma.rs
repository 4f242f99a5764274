// SPDX-License-Identifier: BSD-2-Clause
//! Cross-memory attach (CMA): system calls that read and write a peer's memory, and a guard for
//! copies that serve a peer's read or write. Once the peer's `fi_close` has returned, such copies
//! must not access the peer's memory. A message is read without the guard:
//! [`crate::peer::Peer::confirm`] discards it if the peer has closed meanwhile. An operation is
//! *void* if its context has closed.
//!
//! ```text
//! copying endpoint                  closing endpoint
//! cma word = the peer's segment        state = closed, or void_before(age)
//! ---------- fence ----------       ---------- fence ----------
//! copies if the state is open       waits while cma word is its segment
//! and the operation is not void
//! cma word = 0
//! ```
#![allow(unsafe_code, reason = "system calls")]

use std::sync::{
    Arc,
    atomic::{Ordering, fence},
};

use ffi::{Buffer, Errno, memory};

use super::segment::Segment;
use crate::{
    bytes::Remote,
    contract::{CopyError, Direction},
    identity::ExecId,
};

/// The memory of a peer's process. Any thread may use it, without the lock of the endpoint.
#[derive(Clone, Debug)]
pub(crate) struct PeerMemory {
    pub(super) own: Arc<Segment>,
    pub(super) peer: Arc<Segment>,
    pub(super) exec_id: ExecId,
}

impl PeerMemory {
    /// See [`read`].
    pub(crate) fn read(&self, remote: &Remote, to: &Buffer) -> Result<(), CopyError> {
        read(self.exec_id, remote, to)
    }

    /// See [`read_whole`].
    pub(crate) fn read_whole(&self, remote: &Remote, len: usize) -> Result<Box<[u8]>, CopyError> {
        read_whole(self.exec_id, remote, len)
    }

    /// Copies between this memory and local memory, piece by piece. Each piece is an offset in
    /// `remote`, the memory of the peer's operation `op`, and a local buffer. An endpoint makes
    /// only one such copy at a time, because its segment has room to announce one.
    pub(crate) fn exchange<'a>(
        &self,
        direction: Direction,
        (remote, op): (&Remote, u64),
        pieces: impl IntoIterator<Item = (usize, &'a Buffer)>,
    ) -> Result<(), CopyError> {
        let guard = self.own.guard_cma(&self.peer, op);
        let _guard = guard.ok_or(CopyError::Failed(Errno::ECONNABORTED))?;
        pieces
            .into_iter()
            .try_for_each(|(at, here)| between(direction, self.exec_id, remote, at, here))
    }
}

/// Permission to copy from and to memory of a peer, until it is dropped.
#[derive(Debug)]
pub(crate) struct CmaGuard<'a>(&'a Segment);

impl Segment {
    /// Announces a copy from or to memory of a peer's process, for the peer's operation `op`.
    /// Returns `None` if the peer, or the context of the operation, has closed.
    pub(crate) fn guard_cma(&self, peer: &Self, op: u64) -> Option<CmaGuard<'_>> {
        self.cma_word().store(peer.inode(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let guard = CmaGuard(self);
        (peer.is_open() && !peer.is_void(op)).then_some(guard)
    }

    /// Returns whether the owner of this segment, a peer, copies from or to memory of `closed`.
    pub(crate) fn copies_memory_of(&self, closed: &Self) -> bool {
        fence(Ordering::SeqCst);
        self.cma_word().load(Ordering::Acquire) == closed.inode()
    }
}

impl Drop for CmaGuard<'_> {
    fn drop(&mut self) {
        self.0.cma_word().store(0, Ordering::Release);
    }
}

/// Maximum number of bytes per system call of [`read`] and [`between`]. Signals and the death of
/// the peer are noticed between two calls.
const STEP: usize = 64 << 20;

/// Reads `to.len()` bytes of a process's memory, from the start of `remote`. If it fails, the
/// contents of `to` are undefined.
///
/// # Errors
/// [`CopyError::Refused`] if nothing was copied because the kernel refuses or the process has
/// ended; `ECONNABORTED` if the memory no longer belongs to the exec id; `EIO` if it cannot be
/// read.
pub(crate) fn read(exec_id: ExecId, remote: &Remote, to: &Buffer) -> Result<(), CopyError> {
    let mut done = 0;
    while done < to.len() {
        let local = to.part(done, STEP);
        let there = part(remote, done, local.len());
        // SAFETY: the application vouches for the buffer.
        done += unsafe { read_with_word(exec_id, local.segments(), &there, done > 0) }?;
    }
    Ok(())
}

/// Reads `len` bytes of a process's memory into new memory.
///
/// # Errors
/// Those of [`read`].
pub(crate) fn read_whole(
    exec_id: ExecId,
    remote: &Remote,
    len: usize,
) -> Result<Box<[u8]>, CopyError> {
    let mut bytes = vec![0_u8; len].into_boxed_slice();
    let mut done = 0;
    while done < len {
        let rest = &mut bytes[done..];
        let local = memory::Segment { addr: rest.as_mut_ptr() as usize, len: rest.len() };
        let there = part(remote, done, local.len);
        // SAFETY: a slice is valid for its length, and borrowed for the call.
        done += unsafe { read_with_word(exec_id, &[local], &there, done > 0) }?;
    }
    Ok(bytes)
}

/// Copies `here.len()` bytes between a process's memory, from an offset in `remote` on, and local
/// memory. The owner of the memory may not learn of a failure, so a first call checks the word of
/// the exec id, and a second one copies. An `exec` between these calls is not noticed.
///
/// # Errors
/// Those of [`read`].
pub(crate) fn between(
    direction: Direction,
    exec_id: ExecId,
    remote: &Remote,
    offset: usize,
    here: &Buffer,
) -> Result<(), CopyError> {
    let call = match direction {
        Direction::Read => libc::process_vm_readv,
        Direction::Write => libc::process_vm_writev,
    };
    let mut done = 0;
    while done < here.len() {
        let local = here.part(done, STEP);
        let there = part(remote, offset + done, local.len());
        // SAFETY: the call reads only the word, into a local variable.
        unsafe { read_with_word(exec_id, &[], &[], done > 0) }?;
        // SAFETY: the application vouches for the buffer.
        done += unsafe { transfer(call, exec_id.pid, local.segments(), &there, done > 0) }
            .map_err(|error| match error {
                CopyError::Failed(_) => CopyError::Failed(Errno::EIO),
                CopyError::Refused => error,
            })?;
    }
    Ok(())
}

/// Reads the word of an exec id and, with the same call, the wanted bytes. Returns the number of
/// wanted bytes that were copied; 0 if the call was interrupted. `begun`: a part was copied before,
/// so a refusal counts as a failure.
///
/// # Safety
/// `local` is valid for writes.
unsafe fn read_with_word(
    exec_id: ExecId,
    local: &[memory::Segment],
    there: &[memory::Segment],
    begun: bool,
) -> Result<usize, CopyError> {
    const WORD: usize = size_of::<u64>();
    let mut word = 0_u64;
    let here = memory::Segment { addr: (&raw mut word).addr(), len: WORD };
    let (locals, locals_used) = prepend(here, local);
    let at = memory::Segment { addr: exec_id.address as usize, len: WORD };
    let (remotes, remotes_used) = prepend(at, there);
    let (locals, remotes) = (&locals[..locals_used], &remotes[..remotes_used]);
    // SAFETY: `word` is ours, and the caller vouches for the rest.
    match unsafe { transfer(libc::process_vm_readv, exec_id.pid, locals, remotes, begun) } {
        Ok(0) => Ok(0),
        Ok(read @ WORD..) if word == exec_id.word => match read - WORD {
            // The word is readable, but the wanted memory is not.
            0 if !local.is_empty() => Err(CopyError::Failed(Errno::EIO)),
            read => Ok(read),
        },
        // The word differs, or its memory does not exist.
        Ok(_) | Err(CopyError::Failed(Errno::EFAULT)) => {
            Err(CopyError::Failed(Errno::ECONNABORTED))
        }
        Err(error) => Err(error),
    }
}

/// Returns `first` and the segments behind it, and their number. No operation has more segments
/// than fit.
fn prepend(
    first: memory::Segment,
    more: &[memory::Segment],
) -> ([memory::Segment; MAX_SEGMENTS], usize) {
    let mut all = [first; MAX_SEGMENTS];
    let more = &more[..more.len().min(MAX_SEGMENTS - 1)];
    all[1..=more.len()].copy_from_slice(more);
    (all, 1 + more.len())
}

/// Maximum number of segments of one copy: those of an operation, and the word before them.
const MAX_SEGMENTS: usize = memory::IOV_LIMIT + 1;

/// `process_vm_readv(2)` or `process_vm_writev(2)`.
type Transfer = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> libc::ssize_t;

/// Makes one system call. Returns the number of copied bytes; 0 if the call was interrupted.
/// `begun`: see [`read_with_word`].
///
/// # Safety
/// `local` is valid for what the call does to it.
unsafe fn transfer(
    call: Transfer,
    pid: u32,
    local: &[memory::Segment],
    there: &[memory::Segment],
    begun: bool,
) -> Result<usize, CopyError> {
    // SAFETY: `memory::Segment` has the layout of an iovec; the kernel checks the remote side,
    // and the caller vouches for the local one.
    let copied = unsafe {
        call(
            pid.cast_signed(),
            local.as_ptr().cast(),
            local.len() as libc::c_ulong,
            there.as_ptr().cast(),
            there.len() as libc::c_ulong,
            0,
        )
    };
    match usize::try_from(copied) {
        Ok(0) => Err(CopyError::Failed(Errno::EIO)),
        Ok(copied) => Ok(copied),
        Err(_) => match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => Ok(0),
            Some(libc::EFAULT) => Err(CopyError::Failed(Errno::EFAULT)),
            // Filters of system calls (seccomp) return arbitrary errors, including EINVAL.
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS | libc::ESRCH | libc::EINVAL)
                if !begun =>
            {
                Err(CopyError::Refused)
            }
            _ => Err(CopyError::Failed(Errno::EIO)),
        },
    }
}

/// Returns the segments of up to `len` bytes of `remote`, from an offset on.
fn part(remote: &Remote, mut offset: usize, len: usize) -> Vec<memory::Segment> {
    let mut left = len;
    let mut parts = Vec::with_capacity(remote.len());
    for segment in remote {
        let skip = offset.min(segment.len);
        offset -= skip;
        let take = left.min(segment.len - skip);
        if take > 0 {
            parts.push(memory::Segment { addr: segment.addr.wrapping_add(skip), len: take });
            left -= take;
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;
    use crate::wire::number;

    #[test]
    fn a_read_from_another_exec_id_fails() {
        let own = ExecId::own().unwrap();
        let source: Vec<u8> = (0..100).collect();
        let mut remote = [segment(0, 0); memory::IOV_LIMIT];
        remote[0] = segment(source.as_ptr().addr(), 60);
        remote[1] = segment(source[60..].as_ptr().addr(), 40);
        assert_eq!(&*read_whole(own, &remote, 100).unwrap(), &*source);
        let other = Err(CopyError::Failed(Errno::ECONNABORTED));
        assert_eq!(read_whole(ExecId { word: own.word ^ 1, ..own }, &remote, 100), other);
        assert_eq!(read_whole(ExecId { address: 8, ..own }, &remote, 100), other);
        // The word is readable, but the memory is not.
        remote[0].addr = 8;
        let failed = Err(CopyError::Failed(Errno::EIO));
        assert_eq!(read_whole(own, &remote, 100), failed);
    }

    fn segment(addr: usize, len: usize) -> memory::Segment {
        memory::Segment { addr, len }
    }

    #[test]
    fn parts_of_remote_segments() {
        let remote = [segment(100, 10), segment(0, 0), segment(200, 10), segment(0, 0)];
        assert_eq!(part(&remote, 0, 20), [segment(100, 10), segment(200, 10)]);
        assert_eq!(part(&remote, 4, 8), [segment(104, 6), segment(200, 2)]);
        assert_eq!(part(&remote, 12, 100), [segment(202, 8)]);
    }

    #[test]
    fn memory_of_a_closed_endpoint_is_not_copied() {
        let make = |port| Segment::create(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap();
        let (own, other) = (make(83), make(84));
        let peer = Segment::open(84).unwrap().0;
        let seen = Segment::open(83).unwrap().0;
        assert!(!seen.copies_memory_of(&other));
        let of_age = |age| number(age, 3);
        drop(own.guard_cma(&peer, of_age(6)).unwrap());
        other.void_before(7);
        assert!(own.guard_cma(&peer, of_age(6)).is_none());
        let guard = own.guard_cma(&peer, of_age(7)).unwrap();
        assert!(seen.copies_memory_of(&other) && !seen.copies_memory_of(&own));
        other.close();
        assert!(seen.copies_memory_of(&other));
        drop(guard);
        assert!(!seen.copies_memory_of(&other) && own.guard_cma(&peer, of_age(7)).is_none());
        assert!(!seen.copies_memory_of(&other));
    }
}
