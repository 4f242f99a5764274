// SPDX-License-Identifier: BSD-2-Clause
//! Calls to the kernel: reading and writing a peer's memory, sleeping and waking, masking
//! signals.
#![allow(unsafe_code, reason = "system calls")]

use std::{sync::atomic::AtomicU32, time::Duration};

use ffi::{Buffer, Errno, memory};
use rustix::thread::futex;

use super::bytes::Remote;

/// Why the kernel did not copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyError {
    /// It never will (no permission, another process namespace): use buffers.
    Refused,
    /// The memory cannot be read or the process is gone.
    Failed(Errno),
}

/// Longest single copy, so that a signal or a dying peer is noticed between.
const STEP: usize = 64 << 20;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Out of the other process.
    Read,
    /// Into the other process.
    Write,
}

/// Reads `to.len()` bytes of a process's memory, from the start of `remote`.
///
/// # Errors
/// [`CopyError::Refused`] if nothing was copied and the kernel refuses.
pub(crate) fn read(pid: u32, remote: &Remote, to: &Buffer) -> Result<(), CopyError> {
    between(Direction::Read, pid, remote, 0, to)
}

/// Copies `here.len()` bytes between a process's memory, from an offset in `remote`
/// on, and ours.
///
/// # Errors
/// As [`read`].
pub(crate) fn between(
    direction: Direction,
    pid: u32,
    remote: &Remote,
    offset: usize,
    here: &Buffer,
) -> Result<(), CopyError> {
    let mut done = 0;
    while done < here.len() {
        let local = here.part(done, STEP);
        let there = part(remote, offset + done, local.len());
        // SAFETY: the application vouches for the buffer.
        done += unsafe { call(direction, pid, local.segments(), &there, done > 0) }?;
    }
    Ok(())
}

/// Reads `len` bytes of a process's memory into ours, from the start of `remote`.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_whole(pid: u32, remote: &Remote, len: usize) -> Result<Box<[u8]>, CopyError> {
    let mut bytes = vec![0_u8; len].into_boxed_slice();
    let mut done = 0;
    while done < len {
        let rest = &mut bytes[done..];
        let local = memory::Segment { addr: rest.as_mut_ptr() as usize, len: rest.len() };
        let there = part(remote, done, local.len);
        // SAFETY: a slice is valid for its length, and borrowed for the call.
        done += unsafe { call(Direction::Read, pid, &[local], &there, done > 0) }?;
    }
    Ok(bytes)
}

/// One call to the kernel; answers the bytes copied, 0 if it was interrupted. It cannot be
/// refused any more once some were copied.
///
/// # Safety
/// `local` is valid for reads or writes, as the direction asks.
unsafe fn call(
    direction: Direction,
    pid: u32,
    local: &[memory::Segment],
    there: &[memory::Segment],
    begun: bool,
) -> Result<usize, CopyError> {
    let copy = match direction {
        Direction::Read => libc::process_vm_readv,
        Direction::Write => libc::process_vm_writev,
    };
    // SAFETY: `memory::Segment` has the layout of an iovec; the kernel checks the remote side,
    // and the caller vouches for the local one.
    let copied = unsafe {
        copy(
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
            // Filters of system calls (seccomp) answer whatever their authors chose, EINVAL among it.
            Some(libc::EPERM | libc::EACCES | libc::ENOSYS | libc::ESRCH | libc::EINVAL)
                if !begun =>
            {
                Err(CopyError::Refused)
            }
            _ => Err(CopyError::Failed(Errno::EIO)),
        },
    }
}

/// The segments from an offset on, `len` bytes of them.
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

/// Sleeps until `bell` is no longer what it was, or for a while.
pub(crate) fn sleep(bell: &AtomicU32, was: u32, at_most: Duration) {
    let timeout = rustix::fs::Timespec {
        tv_sec: at_most.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: i64::from(at_most.subsec_nanos()) as _,
    };
    // Every result means the same: look again.
    let _ = futex::wait(bell, futex::Flags::empty(), was, Some(&timeout));
}

/// Wakes all who sleep at a bell.
#[cold]
pub(crate) fn wake(bell: &AtomicU32) {
    let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
}

/// Does something that starts a thread, which is to get no signals: the application
/// has handlers for its own.
pub(crate) fn without_signals<T>(work: impl FnOnce() -> T) -> T {
    // SAFETY: both sets are initialised by the calls that fill them, and live as long.
    unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        let masked = libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) == 0;
        let result = work();
        if masked {
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, std::ptr::null_mut());
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_remote_segments() {
        let segment = |addr, len| memory::Segment { addr, len };
        let remote = [segment(100, 10), segment(0, 0), segment(200, 10), segment(0, 0)];
        assert_eq!(part(&remote, 0, 20), [segment(100, 10), segment(200, 10)]);
        assert_eq!(part(&remote, 4, 8), [segment(104, 6), segment(200, 2)]);
        assert_eq!(part(&remote, 12, 100), [segment(202, 8)]);
    }
}
