// SPDX-License-Identifier: BSD-2-Clause
//! Calls to the kernel that read and write a peer's memory.
#![allow(unsafe_code, reason = "system calls")]

use ffi::{Buffer, Errno, memory};

use super::image::Image;
use crate::bytes::Remote;

/// Why the kernel did not copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyError {
    /// It never will (no permission, another process namespace): use buffers.
    Refused,
    /// The memory cannot be read or the process is gone.
    Failed(Errno),
}

/// Longest single copy, so that a signal or a dying peer is noticed between.
const STEP: usize = 64 << 20;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Out of the other process.
    Read,
    /// Into the other process.
    Write,
}

/// Reads `to.len()` bytes of a process's memory, from the start of `remote`. Where it fails, anything
/// may be in `to`.
///
/// # Errors
/// [`CopyError::Refused`] if nothing was copied and the kernel refuses; `ECONNABORTED` if the memory
/// is no longer that of the image.
pub(crate) fn read(image: Image, remote: &Remote, to: &Buffer) -> Result<(), CopyError> {
    let mut done = 0;
    while done < to.len() {
        let local = to.part(done, STEP);
        let there = part(remote, done, local.len());
        // SAFETY: the application vouches for the buffer.
        done += unsafe { read_with_word(image, local.segments(), &there, done > 0) }?;
    }
    Ok(())
}

/// The same into memory of ours.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_whole(
    image: Image,
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
        done += unsafe { read_with_word(image, &[local], &there, done > 0) }?;
    }
    Ok(bytes)
}

/// Copies `here.len()` bytes between a process's memory, from an offset in `remote` on, and ours,
/// where nobody learns of a failure: the word of the image is read before anything else is. An
/// `exec` in the moment between the two calls is not seen.
///
/// # Errors
/// As [`read`].
pub(crate) fn between(
    direction: Direction,
    image: Image,
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
        // SAFETY: there is nothing but the word, which is read into memory of its own.
        unsafe { read_with_word(image, &[], &[], done > 0) }?;
        // SAFETY: the application vouches for the buffer.
        done += unsafe { transfer(call, image.pid, local.segments(), &there, done > 0) }.map_err(
            |error| match error {
                CopyError::Failed(_) => CopyError::Failed(Errno::EIO),
                CopyError::Refused => error,
            },
        )?;
    }
    Ok(())
}

/// Reads the word of an image and, with the same call, what is wanted; answers the bytes copied of
/// this, 0 if it was interrupted. It cannot be refused any more once some were copied.
///
/// # Safety
/// `local` is valid for writes.
unsafe fn read_with_word(
    image: Image,
    local: &[memory::Segment],
    there: &[memory::Segment],
    begun: bool,
) -> Result<usize, CopyError> {
    const WORD: usize = size_of::<u64>();
    let mut word = 0_u64;
    let here = memory::Segment { addr: (&raw mut word).addr(), len: WORD };
    let (locals, locals_used) = behind(here, local);
    let at = memory::Segment { addr: image.at as usize, len: WORD };
    let (remotes, remotes_used) = behind(at, there);
    let (locals, remotes) = (&locals[..locals_used], &remotes[..remotes_used]);
    // SAFETY: `word` is ours, and the caller vouches for the rest.
    match unsafe { transfer(libc::process_vm_readv, image.pid, locals, remotes, begun) } {
        Ok(0) => Ok(0),
        Ok(read @ WORD..) if word == image.word => match read - WORD {
            // The word can be read and what is wanted cannot, or is not there.
            0 if !local.is_empty() => Err(CopyError::Failed(Errno::EIO)),
            read => Ok(read),
        },
        // The word is another, or not even the memory is there.
        Ok(_) | Err(CopyError::Failed(Errno::EFAULT)) => {
            Err(CopyError::Failed(Errno::ECONNABORTED))
        }
        Err(error) => Err(error),
    }
}

/// A segment and those behind it, and their number. No operation has more than there is room for.
fn behind(first: memory::Segment, more: &[memory::Segment]) -> ([memory::Segment; PARTS], usize) {
    let mut all = [first; PARTS];
    let more = &more[..more.len().min(PARTS - 1)];
    all[1..=more.len()].copy_from_slice(more);
    (all, 1 + more.len())
}

/// Parts of one copy: those of an operation, and the word before them.
const PARTS: usize = memory::IOV_LIMIT + 1;

/// `process_vm_readv(2)` or `process_vm_writev(2)`.
type Transfer = unsafe extern "C" fn(
    libc::pid_t,
    *const libc::iovec,
    libc::c_ulong,
    *const libc::iovec,
    libc::c_ulong,
    libc::c_ulong,
) -> libc::ssize_t;

/// One call to the kernel; answers the bytes copied, 0 if it was interrupted.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_of_another_image_is_nothing() {
        let own = Image::own().unwrap();
        let source: Vec<u8> = (0..100).collect();
        let mut remote = [segment(0, 0); memory::IOV_LIMIT];
        remote[0] = segment(source.as_ptr().addr(), 60);
        remote[1] = segment(source[60..].as_ptr().addr(), 40);
        assert_eq!(&*read_whole(own, &remote, 100).unwrap(), &*source);
        let other = Err(CopyError::Failed(Errno::ECONNABORTED));
        assert_eq!(read_whole(Image { word: own.word ^ 1, ..own }, &remote, 100), other);
        assert_eq!(read_whole(Image { at: 8, ..own }, &remote, 100), other);
        // The word is there, and the memory is not.
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
}
