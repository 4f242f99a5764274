// SPDX-License-Identifier: BSD-2-Clause
//! Message buffers of the application: up to [`IOV_LIMIT`] segments of memory.

use std::{cell::RefCell, ptr, slice, sync::Arc};

use crate::{
    errno::{Errno, Result},
    sys,
};

/// Maximum number of segments of one buffer (`iov_limit`).
pub const IOV_LIMIT: usize = 4;

/// One contiguous part of a [`Buffer`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Segment {
    /// Address in this process.
    pub addr: usize,
    /// Length in bytes.
    pub len: usize,
}

/// Several segments, or one segment that is a copy.
#[derive(Clone, Debug, Default)]
struct SegmentList {
    segments: [Segment; IOV_LIMIT],
    count: usize,
    /// The memory of [`Buffer::copied`].
    owned: Option<Arc<[u8]>>,
}

thread_local! {
    /// Unused boxes of this thread, for its next buffers. A thread that ends as many operations as
    /// it starts allocates nothing in the long run.
    #[allow(clippy::vec_box, reason = "the boxes themselves are reused")]
    static SPARE: RefCell<Vec<Box<SegmentList>>> = const { RefCell::new(Vec::new()) };
}

/// Maximum number of unused boxes that a thread keeps.
const SPARES: usize = 1024;

/// A message buffer of the application: one segment, or up to [`IOV_LIMIT`].
///
/// Nearly all buffers have one segment, and every operation moves its buffer several times. To keep
/// the buffer small, several segments are in a box.
#[derive(Debug, Default)]
pub struct Buffer {
    /// Address of the first segment, length of all.
    whole: Segment,
    /// The segments, if there are several or if they are a copy.
    parts: Option<Box<SegmentList>>,
}

impl Clone for Buffer {
    #[inline(always)]
    fn clone(&self) -> Self {
        match &self.parts {
            None => Self { whole: self.whole, parts: None },
            Some(parts) => Self::with(parts.segments(), self.whole.len, parts.owned.as_ref()),
        }
    }

    #[inline(always)]
    fn clone_from(&mut self, source: &Self) {
        if self.parts.is_some() || source.parts.is_some() {
            *self = source.clone();
            return;
        }
        self.whole.addr = source.whole.addr;
        self.whole.len = source.whole.len;
    }
}

impl Drop for Buffer {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            recycle(parts);
        }
    }
}

impl SegmentList {
    /// Returns a box with these segments: an unused one of this thread, or a new one.
    #[cold]
    fn boxed(segments: &[Segment], owned: Option<Arc<[u8]>>) -> Box<Self> {
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop());
        let mut several = spare.ok().flatten().unwrap_or_default();
        several.segments[..segments.len()].copy_from_slice(segments);
        several.count = segments.len();
        several.owned = owned;
        several
    }

    fn segments(&self) -> &[Segment] {
        &self.segments[..self.count]
    }
}

#[cold]
fn recycle(mut parts: Box<SegmentList>) {
    parts.owned = None;
    // A thread that ends keeps no box.
    let _ = SPARE.try_with(|spare| {
        let mut spare = spare.borrow_mut();
        if spare.len() < SPARES {
            spare.push(parts);
        }
    });
}

impl Buffer {
    /// Creates a buffer with one segment. Returns `EFAULT` if the address is null and `len` is not
    /// 0.
    ///
    /// # Safety
    /// `addr..addr + len` stays valid for the operation, as `fi_msg(3)` requires.
    #[inline]
    pub(crate) unsafe fn contiguous(addr: *const libc::c_void, len: usize) -> Result<Self> {
        if addr.is_null() && len > 0 {
            return Err(Errno::EFAULT);
        }
        Ok(Self { whole: Segment { addr: addr as usize, len }, parts: None })
    }

    /// Creates a buffer of these segments, whose lengths add up to `len`.
    pub(super) fn of(segments: &[Segment], len: usize) -> Self {
        Self::with(segments, len, None)
    }

    /// Creates a buffer of these segments. `owned` is the copy that contains them, if they are a
    /// copy.
    fn with(segments: &[Segment], len: usize, owned: Option<&Arc<[u8]>>) -> Self {
        let addr = segments.first().map_or(0, |first| first.addr);
        let has_parts = segments.len() > 1 || owned.is_some();
        let parts = has_parts.then(|| SegmentList::boxed(segments, owned.cloned()));
        Self { whole: Segment { addr, len }, parts }
    }

    /// Returns a buffer with a copy of the bytes. The copy lives as long as the result and all
    /// clones and parts of it, and is never written to.
    #[must_use]
    pub fn copied(&self) -> Self {
        let mut bytes = vec![0; self.len()];
        self.read_to(&mut bytes);
        let owned: Arc<[u8]> = bytes.into();
        let whole = Segment { addr: owned.as_ptr() as usize, len: owned.len() };
        Self::with(&[whole], whole.len, Some(&owned))
    }

    fn owned(&self) -> Option<&Arc<[u8]>> {
        self.parts.as_ref()?.owned.as_ref()
    }

    /// Returns true if the bytes are a copy ([`Buffer::copied`]).
    #[must_use]
    pub fn is_copied(&self) -> bool {
        self.owned().is_some()
    }

    /// Creates a buffer from an I/O vector. Returns `EINVAL` for more than [`IOV_LIMIT`] entries or
    /// if the sum of their lengths overflows, and `EFAULT` if the pointer to the entries or to the
    /// memory of an entry is null.
    ///
    /// # Safety
    /// `iov` holds `count` entries whose memory stays valid for the operation.
    pub(crate) unsafe fn vector(iov: *const libc::iovec, count: usize) -> Result<Self> {
        // SAFETY: the caller vouches for the entries.
        let buffer = unsafe { Self::ranges(iov, count) }?;
        if buffer.segments().iter().any(|segment| segment.addr == 0 && segment.len > 0) {
            return Err(Errno::EFAULT);
        }
        Ok(buffer)
    }

    /// Does the same as [`Buffer::vector`], but a range may begin at address 0, as a memory region
    /// of the whole address space does.
    ///
    /// # Safety
    /// As [`Buffer::vector`].
    pub(super) unsafe fn ranges(iov: *const libc::iovec, count: usize) -> Result<Self> {
        if count > IOV_LIMIT {
            return Err(Errno::EINVAL);
        }
        if count == 0 {
            return Ok(Self::default());
        }
        if iov.is_null() {
            return Err(Errno::EFAULT);
        }
        // SAFETY: the caller vouches for `count` entries, and null was refused.
        let entries = unsafe { slice::from_raw_parts(iov, count) };
        let mut segments = [Segment::default(); IOV_LIMIT];
        let mut len = 0_usize;
        for (segment, entry) in segments.iter_mut().zip(entries) {
            *segment = Segment { addr: entry.iov_base as usize, len: entry.iov_len };
            len = len.checked_add(entry.iov_len).ok_or(Errno::EINVAL)?;
        }
        Ok(Self::of(&segments[..count], len))
    }

    /// Does the same as [`Buffer::vector`] for a vector of `fi_ioc`, whose elements have `size`
    /// bytes.
    ///
    /// # Safety
    /// As [`Buffer::vector`].
    pub(crate) unsafe fn elements(
        ioc: *const sys::fi_ioc,
        count: usize,
        size: usize,
    ) -> Result<Self> {
        if count > IOV_LIMIT {
            return Err(Errno::EINVAL);
        }
        let mut iov = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; IOV_LIMIT];
        if count > 0 && ioc.is_null() {
            return Err(Errno::EFAULT);
        }
        for (index, entry) in iov.iter_mut().take(count).enumerate() {
            // SAFETY: the caller vouches for `count` entries, and null was refused.
            let ioc = unsafe { &*ioc.add(index) };
            entry.iov_base = ioc.addr;
            entry.iov_len = ioc.count.checked_mul(size).ok_or(Errno::EINVAL)?;
        }
        // SAFETY: `iov` holds `count` entries, for whose memory the caller vouches.
        unsafe { Self::vector(iov.as_ptr(), count) }
    }

    /// Returns the length in bytes of all segments.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.whole.len
    }

    /// Returns true if the buffer has no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.whole.len == 0
    }

    /// Returns the address of the first segment; 0 for a buffer without memory.
    #[inline]
    #[must_use]
    pub fn addr(&self) -> usize {
        self.whole.addr
    }

    /// Returns true if the buffer has several segments.
    #[inline]
    #[must_use]
    pub fn is_scattered(&self) -> bool {
        self.parts.as_ref().is_some_and(|parts| parts.count > 1)
    }

    /// Returns the segments. There is always at least one, which may be empty.
    #[inline]
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        match &self.parts {
            None => slice::from_ref(&self.whole),
            Some(parts) => parts.segments(),
        }
    }

    /// Returns the part of up to `len` bytes from `offset` on.
    #[must_use]
    pub fn part(&self, mut offset: usize, len: usize) -> Self {
        let mut parts = [Segment::default(); IOV_LIMIT];
        let mut count = 0;
        let mut left = len;
        for segment in self.segments() {
            let skip = offset.min(segment.len);
            offset -= skip;
            let take = left.min(segment.len - skip);
            if take > 0 {
                parts[count] = Segment { addr: segment.addr + skip, len: take };
                count += 1;
                left -= take;
            }
        }
        if count == 0 {
            parts[0].addr = self.whole.addr;
        }
        Self::with(&parts[..count.max(1)], len - left, self.owned())
    }

    /// Copies `len` bytes from `source` into the buffer. Returns the number of bytes that fit; 0 if
    /// the buffer is a copy ([`Buffer::copied`]).
    ///
    /// # Safety
    /// `source` is valid for reads of `len` bytes. It may be shared memory to which a peer writes;
    /// the copied bytes are then unspecified.
    #[inline]
    pub unsafe fn fill_from(&self, source: *const u8, len: usize) -> usize {
        if self.is_copied() {
            return 0;
        }
        self.first_bytes(len, |addr, at, len| {
            // SAFETY: the application vouches for the segment, and the caller for the source. A
            // user buffer never overlaps memory of the provider.
            unsafe { copy(source.add(at), addr as *mut u8, len) };
        })
    }

    /// Copies a slice into the buffer. Returns the number of bytes that fit; 0 if the buffer is a
    /// copy ([`Buffer::copied`]).
    #[must_use]
    pub fn fill(&self, bytes: &[u8]) -> usize {
        // SAFETY: a slice is valid for its length.
        unsafe { self.fill_from(bytes.as_ptr(), bytes.len()) }
    }

    /// Copies the buffer's first bytes to `target`, as many as fit. Returns their number.
    pub fn read_to(&self, target: &mut [u8]) -> usize {
        // SAFETY: a slice is valid for its length, and memory of the provider overlaps no user
        // buffer.
        unsafe { self.copy_out(target.as_mut_ptr(), target.len()) }
    }

    /// Copies up to `len` of the buffer's first bytes to `target`. Returns their number.
    ///
    /// # Safety
    /// `target` is valid for writes of `len` bytes and overlaps no segment.
    #[inline]
    pub unsafe fn copy_out(&self, target: *mut u8, len: usize) -> usize {
        self.first_bytes(len, |addr, at, len| {
            // SAFETY: the application vouches for the segment, and the caller for the target.
            unsafe { copy(addr as *const u8, target.add(at), len) };
        })
    }

    /// Visits the first `len` bytes, or all bytes if there are fewer. Calls `each` for every
    /// contiguous part with its address, its offset in the buffer and its length. Returns the
    /// number of visited bytes.
    #[inline(always)]
    fn first_bytes(&self, len: usize, mut each: impl FnMut(usize, usize, usize)) -> usize {
        let Some(parts) = &self.parts else {
            let len = len.min(self.whole.len);
            each(self.whole.addr, 0, len);
            return len;
        };
        let mut done = 0;
        for segment in parts.segments() {
            let take = segment.len.min(len - done);
            each(segment.addr, done, take);
            done += take;
        }
        done
    }
}

/// Does the same as [`ptr::copy_nonoverlapping`]. It copies 4 to 16 bytes as two overlapping words,
/// because a call of `memcpy` would take longer.
///
/// # Safety
/// As [`ptr::copy_nonoverlapping`].
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    /// # Safety
    /// As [`ptr::copy_nonoverlapping`], and `len` is between one and two words of this type.
    #[inline(always)]
    unsafe fn both_ends<Word: Copy>(from: *const u8, to: *mut u8, len: usize) {
        let last = len - size_of::<Word>();
        // SAFETY: each word lies within the `len` bytes.
        unsafe {
            let words = [0, last].map(|at| from.add(at).cast::<Word>().read_unaligned());
            to.cast::<Word>().write_unaligned(words[0]);
            to.add(last).cast::<Word>().write_unaligned(words[1]);
        }
    }
    // SAFETY: the caller vouches for the memory.
    unsafe {
        match len {
            8..=16 => both_ends::<u64>(from, to, len),
            4..8 => both_ends::<u32>(from, to, len),
            _ => ptr::copy_nonoverlapping(from, to, len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(parts: &mut [&mut [u8]]) -> Buffer {
        let iov: Vec<_> = parts
            .iter_mut()
            .map(|part| libc::iovec { iov_base: part.as_mut_ptr().cast(), iov_len: part.len() })
            .collect();
        // SAFETY: the slices outlive the buffer in these tests.
        unsafe { Buffer::vector(iov.as_ptr(), iov.len()) }.unwrap()
    }

    #[test]
    fn fills_across_segments_and_takes_parts() {
        let (mut a, mut b) = ([0_u8; 3], [0_u8; 4]);
        let buffer = buffer(&mut [&mut a, &mut b]);
        assert_eq!(buffer.len(), 7);
        assert_eq!(buffer.fill(b"hello"), 5);
        let part = buffer.part(2, 3);
        assert_eq!(part.segments().len(), 2);
        let mut out = [0_u8; 3];
        // SAFETY: three bytes of room.
        assert_eq!(unsafe { part.copy_out(out.as_mut_ptr(), 3) }, 3);
        assert_eq!(&out, b"llo");
        assert_eq!(buffer.fill(b"0123456789"), 7);
        assert_eq!((&a, &b), (b"012", b"3456"));
    }

    #[test]
    fn every_length_is_copied_and_no_byte_beside_it() {
        let bytes: [u8; 40] = std::array::from_fn(|at| at as u8 + 1);
        for (start, len) in (0..3).flat_map(|start| (0..=20).map(move |len| (start, len))) {
            let expected: [u8; 40] = std::array::from_fn(|at| {
                if (start..start + len).contains(&at) { bytes[at - start] } else { 0 }
            });
            let mut memory = [0_u8; 40];
            assert_eq!(buffer(&mut [&mut memory[start..start + len]]).fill(&bytes), len);
            assert_eq!(memory, expected);
            let (mut from, mut out) = (bytes, [0_u8; 40]);
            let room = &mut out[start..start + len];
            assert_eq!(buffer(&mut [&mut from]).read_to(room), len);
            assert_eq!(out, expected);
        }
    }

    #[test]
    fn clone_from_replaces_any_buffer() {
        let (mut a, mut b) = ([0_u8; 3], [0_u8; 4]);
        let all = [Buffer::default(), buffer(&mut [&mut a]), buffer(&mut [&mut a, &mut b])];
        for old in &all {
            for new in &all {
                let mut place = old.clone();
                place.clone_from(new);
                assert_eq!((place.len(), place.segments()), (new.len(), new.segments()));
            }
        }
    }

    #[test]
    fn boxes_of_segments_are_reused() {
        let (mut a, mut b) = ([0_u8; 3], [0_u8; 4]);
        let first = buffer(&mut [&mut a, &mut b]);
        let copy = first.clone();
        let at = first.segments().as_ptr();
        assert_ne!(copy.segments().as_ptr(), at);
        drop(first);
        assert_eq!(copy.part(1, 5).segments().as_ptr(), at);
        assert_eq!((copy.len(), copy.segments().len()), (7, 2));
    }

    #[test]
    fn a_copy_lives_as_long_as_its_clones_and_parts() {
        let (mut a, mut b) = ([1_u8; 3], [2_u8; 4]);
        let buffer = buffer(&mut [&mut a, &mut b]);
        let copy = buffer.copied();
        assert!(copy.is_copied() && !copy.is_scattered() && !buffer.is_copied());
        assert_eq!(copy.segments().len(), 1);
        let part = copy.clone().part(2, 3);
        drop(copy);
        let mut out = [0_u8; 3];
        assert_eq!((part.fill(b"ab"), part.read_to(&mut out), out), (0, 3, [1, 2, 2]));
        drop(part);
        assert!(!buffer.part(0, 4).is_copied(), "a reused box owns no copy");
    }

    #[test]
    fn refuses_null_and_too_many_segments() {
        // SAFETY: refused before any access.
        unsafe {
            assert_eq!(Buffer::contiguous(ptr::null(), 1).unwrap_err(), Errno::EFAULT);
            assert!(Buffer::contiguous(ptr::null(), 0).is_ok());
            assert_eq!(Buffer::vector(ptr::null(), 5).unwrap_err(), Errno::EINVAL);
        }
    }
}
