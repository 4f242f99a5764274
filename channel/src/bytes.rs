// SPDX-License-Identifier: BSD-2-Clause
//! Access to payloads in place: [`SharedBytes`] reads them, and [`Room`] writes them.
//!
//! A payload that is read is in a slot of a ring, in a buffer of the sender's segment, or in the
//! receive buffer of a connection. A payload is written into a slot or a buffer in shared memory.
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{marker::PhantomData, ptr};

use ffi::{
    Buffer, memory,
    ops::ep::rma::{RemotePart, RemoteParts},
};

use crate::prefetch;

/// Segments of the sender's memory that a rendezvous or a request lists, in wire format.
pub type Remote = [memory::Segment; memory::IOV_LIMIT];

/// Bytes of a mapped segment, or bytes received from a peer. A misbehaving peer may change bytes of
/// a segment at any time, so a copy may contain any bytes. Methods that interpret bytes copy them
/// first and check the copy.
#[derive(Clone, Copy, Debug)]
pub struct SharedBytes<'a> {
    start: *const u8,
    len: usize,
    segment: PhantomData<&'a [u8]>,
}

impl<'a> From<&'a [u8]> for SharedBytes<'a> {
    /// Wraps bytes that no other process can access.
    fn from(bytes: &'a [u8]) -> Self {
        Self { start: bytes.as_ptr(), len: bytes.len(), segment: PhantomData }
    }
}

impl<'a> SharedBytes<'a> {
    /// # Safety
    /// `len` bytes from `start` on lie in a mapping that outlives the result.
    #[inline]
    pub(crate) unsafe fn new(start: *mut u8, len: usize) -> SharedBytes<'a> {
        Self { start: start.cast_const(), len, segment: PhantomData }
    }

    /// Returns the first `len` bytes, or all if there are fewer.
    #[inline]
    pub fn first(self, len: usize) -> Self {
        Self { len: len.min(self.len), ..self }
    }

    /// Returns the bytes after the first `len`.
    #[inline]
    pub fn skip(self, len: usize) -> Self {
        let len = len.min(self.len);
        // SAFETY: within the bytes, or one past their end.
        Self { start: unsafe { self.start.add(len) }, len: self.len - len, ..self }
    }

    /// Returns the length in bytes.
    #[inline]
    #[allow(clippy::len_without_is_empty, reason = "no caller needs it")]
    pub fn len(self) -> usize {
        self.len
    }

    /// Returns the word at the start of the bytes; `None` if there are fewer than 8.
    #[inline]
    pub fn word(self) -> Option<u64> {
        // SAFETY: there are enough bytes.
        (self.len >= size_of::<u64>()).then(|| unsafe { self.start.cast::<u64>().read_unaligned() })
    }

    /// Prefetches the first cache lines of the bytes, which are to be copied soon.
    #[inline]
    pub fn expect(self) {
        prefetch::expect_reads(self.start, self.len);
    }

    /// Copies as many bytes as fit into `to`.
    pub fn copy_to(self, to: &mut [u8]) {
        // SAFETY: the bytes outlive self, and a mutable slice does not overlap them.
        unsafe { ptr::copy_nonoverlapping(self.start, to.as_mut_ptr(), self.len.min(to.len())) };
    }

    /// Returns the `count` parts at the start of the payload of a request, which name memory of
    /// this process. Returns `None` if there are too few bytes, or if the count or a part is
    /// invalid.
    pub fn parts(self, count: u8) -> Option<RemoteParts> {
        let count = usize::from(count);
        if count > memory::IOV_LIMIT || self.len < count * size_of::<RemotePart>() {
            return None;
        }
        RemoteParts::new((0..count).map(|index| {
            // SAFETY: there are enough bytes, and a part consists of integers.
            unsafe { self.start.cast::<RemotePart>().add(index).read_unaligned() }
        }))
        .ok()
    }

    /// Copies the bytes into a buffer of the application. Returns the number of bytes that fit.
    #[inline]
    pub fn deliver(self, to: &Buffer) -> usize {
        // SAFETY: the bytes outlive self. Their sender has published them, and does not write them
        // again before this endpoint releases them. A misbehaving peer may write them during the
        // copy. That is a data race, which Rust does not define. The copy creates no reference to
        // the bytes and does not depend on their values, so the buffer then gets arbitrary bytes.
        unsafe { to.fill_from(self.start, self.len) }
    }

    /// Copies the bytes into new memory.
    pub fn keep(self) -> Box<[u8]> {
        let mut bytes = Vec::with_capacity(self.len);
        // SAFETY: the bytes outlive self, and the new memory has room for all of them. The copy
        // initialises it.
        unsafe {
            ptr::copy_nonoverlapping(self.start, bytes.as_mut_ptr(), self.len);
            bytes.set_len(self.len);
        }
        bytes.into_boxed_slice()
    }

    /// Returns the `count` segments of the sender's memory that a rendezvous or a request lists,
    /// for `len` bytes in all. Returns `None` if there are too few bytes, or if the count or the
    /// total length is wrong.
    pub fn remote(self, count: u32, len: u64) -> Option<Remote> {
        if self.len < size_of::<Remote>() {
            return None;
        }
        // SAFETY: there are enough bytes, and the segments consist of integers.
        let remote = unsafe { self.start.cast::<Remote>().read_unaligned() };
        let listed = remote.get(..count as usize)?;
        let total = listed.iter().try_fold(0_usize, |sum, part| sum.checked_add(part.len))?;
        (total as u64 == len).then(|| {
            let mut checked = Remote::default();
            checked[..listed.len()].copy_from_slice(listed);
            checked
        })
    }
}

/// Values whose bytes may be sent to a peer.
///
/// # Safety
/// The type has no padding, which would be bytes of other memory of this process.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers have no padding.
unsafe impl Plain for u8 {}
// SAFETY: integers have no padding.
unsafe impl Plain for u64 {}
// SAFETY: the fields fill the structure.
unsafe impl Plain for memory::Segment {}
const _: () = assert!(size_of::<memory::Segment>() == 2 * size_of::<usize>());
// SAFETY: the fields fill the structure.
unsafe impl Plain for RemotePart {}
const _: () = assert!(size_of::<RemotePart>() == 3 * size_of::<u64>());

/// Room in a slot of a peer's ring, or in a buffer of this endpoint's segment. It is filled from
/// its start; bytes that do not fit are dropped.
#[derive(Debug)]
pub(crate) struct Room<'a> {
    start: *mut u8,
    len: usize,
    segment: PhantomData<&'a mut [u8]>,
}

impl Room<'_> {
    /// # Safety
    /// `len` bytes from `start` on lie in a mapping that outlives the result, and this endpoint is
    /// their only writer until then.
    #[inline(always)]
    pub(crate) unsafe fn new(start: *mut u8, len: usize) -> Self {
        Self { start, len, segment: PhantomData }
    }

    /// Prefetches the first `len` bytes for writing.
    pub(crate) fn expect(&self, len: usize) {
        prefetch::expect_writes(self.start, len.min(self.len));
    }

    /// Appends values as bytes.
    #[inline(always)]
    pub(crate) fn put<T: Plain>(&mut self, values: &[T]) {
        let len = size_of_val(values).min(self.len);
        // SAFETY: `len` initialised bytes of the values, and of room that no other reference
        // overlaps.
        unsafe { ptr::copy_nonoverlapping(values.as_ptr().cast(), self.start, len) };
        self.skip(len);
    }

    /// Appends the bytes of a buffer of the application.
    #[inline(always)]
    pub(crate) fn put_buffer(&mut self, buffer: &Buffer) {
        let len = buffer.len().min(self.len);
        // SAFETY: the room has at least `len` bytes.
        unsafe { buffer.copy_out(self.start, len) };
        self.skip(len);
    }

    #[inline(always)]
    fn skip(&mut self, len: usize) {
        self.start = self.start.wrapping_add(len);
        self.len = self.len.wrapping_sub(len);
    }
}
