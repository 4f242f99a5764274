// SPDX-License-Identifier: BSD-2-Clause
//! `fi_cq(3)`: completion queues.

use std::{
    ffi::{c_char, c_int, c_void},
    ptr,
    sync::Arc,
};

use crate::{
    errno::{Errno, Result},
    flags,
    memory::OpContext,
    object::Object,
    ops::{WaitObj, entry_points, eq::error_text, fid, table},
    sys,
};

/// Formats of an entry (`enum fi_cq_format`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// `struct fi_cq_entry`.
    #[default]
    Context,
    /// `struct fi_cq_msg_entry`.
    Msg,
    /// `struct fi_cq_data_entry`.
    Data,
    /// `struct fi_cq_tagged_entry`.
    Tagged,
}

/// `struct fi_cq_attr`.
#[derive(Clone, Debug, Default)]
pub struct CqAttr {
    /// Number of entries, 0 for the default.
    pub size: usize,
    /// `FI_AFFINITY` and others.
    pub flags: u64,
    /// Format of the entries.
    pub format: Format,
    /// How `fi_cq_sread` waits.
    pub wait_obj: WaitObj,
    /// True if the condition of `fi_cq_sread` is a threshold (`FI_CQ_COND_THRESHOLD`).
    pub threshold: bool,
}

impl CqAttr {
    pub(crate) fn read(raw: &sys::fi_cq_attr) -> Result<Self> {
        Ok(Self {
            size: raw.size,
            flags: raw.flags,
            format: match raw.format {
                sys::FI_CQ_FORMAT_UNSPEC | sys::FI_CQ_FORMAT_CONTEXT => Format::Context,
                sys::FI_CQ_FORMAT_MSG => Format::Msg,
                sys::FI_CQ_FORMAT_DATA => Format::Data,
                sys::FI_CQ_FORMAT_TAGGED => Format::Tagged,
                _ => return Err(Errno::ENOSYS),
            },
            wait_obj: WaitObj::read(raw.wait_obj),
            threshold: raw.wait_cond == sys::FI_CQ_COND_THRESHOLD,
        })
    }
}

/// A completion, with the fields of every format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Context of the operation.
    pub context: OpContext,
    /// `FI_SEND`, `FI_RECV`, `FI_TAGGED`, ...
    pub flags: u64,
    /// Bytes received.
    pub len: usize,
    /// Address of the message in a multi-receive buffer.
    pub buf: usize,
    /// Remote CQ data.
    pub data: u64,
    /// Match bits.
    pub tag: u64,
    /// Sender, or `FI_ADDR_NOTAVAIL`.
    pub source: u64,
}

/// A failed operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The completion; `len` is the number of received bytes.
    pub completion: Completion,
    /// Number of bytes that did not fit the buffer.
    pub overflow: usize,
    /// The error.
    pub errno: Errno,
}

/// The application's array of entries.
#[derive(Debug)]
pub struct Entries {
    format: Format,
    next: *mut u8,
    sources: *mut u64,
    room: usize,
    written: usize,
}

impl Entries {
    /// Creates an array without room.
    #[cfg(feature = "testing")]
    #[must_use]
    pub fn none() -> Self {
        let (next, sources) = (ptr::null_mut(), ptr::null_mut());
        Self { format: Format::default(), next, sources, room: 0, written: 0 }
    }

    /// Returns the number of entries that still fit.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room - self.written
    }

    /// Returns the number of entries written.
    #[must_use]
    pub fn written(&self) -> usize {
        self.written
    }

    /// Writes a completion in the queue's format.
    ///
    /// # Panics
    /// If no entry fits.
    #[inline]
    pub fn push(&mut self, completion: &Completion) {
        assert!(self.written < self.room, "no room for a completion");
        let op_context = completion.context.0 as *mut c_void;
        let Completion { flags, len, data, tag, .. } = *completion;
        let buf = completion.buf as *mut c_void;
        // SAFETY: C passed room for `room` aligned entries of this format and, unless `sources` is
        // null, for as many sources.
        unsafe {
            self.next = match self.format {
                Format::Context => put(self.next, sys::fi_cq_entry { op_context }),
                Format::Msg => put(self.next, sys::fi_cq_msg_entry { op_context, flags, len }),
                Format::Data => {
                    put(self.next, sys::fi_cq_data_entry { op_context, flags, len, buf, data })
                }
                Format::Tagged => {
                    let entry = sys::fi_cq_tagged_entry { op_context, flags, len, buf, data, tag };
                    put(self.next, entry)
                }
            };
            if !self.sources.is_null() {
                self.sources.add(self.written).write(completion.source);
            }
        }
        self.written += 1;
    }
}

/// Writes an entry. Returns the address of the next one.
///
/// # Safety
/// `to` is valid for a write of a `T`.
#[inline]
unsafe fn put<T>(to: *mut u8, entry: T) -> *mut u8 {
    let to: *mut T = to.cast();
    // SAFETY: the caller vouches for the address, and the next one is at most directly behind the
    // array.
    unsafe {
        to.write(entry);
        to.add(1).cast()
    }
}

/// A completion queue.
pub trait CompletionQueue: Object<Raw = sys::fid_cq> {
    /// Format of the entries.
    fn format(&self) -> Format;

    /// Returns true if the application uses this version of the API or a later one. The version
    /// defines the length of `struct fi_cq_err_entry`.
    fn api_at_least(&self, major: u32, minor: u32) -> bool;

    /// Makes progress, and reads as many completions as fit.
    ///
    /// # Errors
    /// `EAGAIN` if there is no completion, `EAVAIL` if an error comes first.
    fn read(&self, entries: &mut Entries) -> Result<()>;

    /// Waits until the queue contains `threshold` completions, as many as fit, or an error. Then
    /// reads as many completions as fit. After `timeout` (milliseconds, negative: no limit), reads
    /// those that are there.
    ///
    /// # Errors
    /// Those of [`CompletionQueue::read`], `EAGAIN` also after a signal, and `ENOSYS` for queues
    /// with `FI_WAIT_NONE`.
    fn wait_read(&self, entries: &mut Entries, threshold: usize, timeout: c_int) -> Result<()>;

    /// Returns the first error, and removes it unless the flags contain `FI_PEEK`.
    ///
    /// # Errors
    /// `EAGAIN` if there is no error, or if completions must be read before it.
    fn read_error(&self, flags: u64) -> Result<Failure>;

    /// Wakes a waiting thread, or the next one that waits.
    ///
    /// # Errors
    /// `ENOSYS` for queues with `FI_WAIT_NONE`.
    fn signal(&self) -> Result<()>;

    /// Returns true if `cond` of `fi_cq_sread` is a threshold.
    fn takes_threshold(&self) -> bool;
}

entry_points! {
    ops<C: CompletionQueue> = sys::fi_ops_cq, ends at strerror;
    cq = get(fid: *mut sys::fid_cq);

    unsafe fn read(buf: *mut c_void, count: usize) -> isize {
        read_entries(&**cq, buf, count, ptr::null_mut(), C::read)
    }

    unsafe fn readfrom(buf: *mut c_void, count: usize, sources: *mut u64) -> isize {
        read_entries(&**cq, buf, count, sources, C::read)
    }

    unsafe fn sread(buf: *mut c_void, count: usize, cond: *const c_void, timeout: c_int) -> isize {
        read_entries(&**cq, buf, count, ptr::null_mut(), waiting(cond, timeout))
    }

    unsafe fn sreadfrom(
        buf: *mut c_void, count: usize, sources: *mut u64, cond: *const c_void, timeout: c_int,
    ) -> isize {
        read_entries(&**cq, buf, count, sources, waiting(cond, timeout))
    }

    unsafe fn readerr(to: *mut sys::fi_cq_err_entry, flags: u64) -> isize {
        if to.is_null() {
            return Err(Errno::EINVAL);
        }
        let failure = cq.read_error(flags)?;
        let completion = failure.completion;
        // The structure of the oldest API has all these fields except `err_data_size`, which came
        // with API 1.5, and `src_addr`, which came with 1.20.
        (*to).op_context = completion.context.0 as *mut c_void;
        (*to).flags = completion.flags;
        (*to).len = completion.len;
        (*to).buf = completion.buf as *mut c_void;
        (*to).data = completion.data;
        (*to).tag = completion.tag;
        (*to).olen = failure.overflow;
        (*to).err = failure.errno.get();
        (*to).prov_errno = failure.errno.get();
        if cq.api_at_least(1, 5) {
            (*to).err_data_size = 0;
        }
        if cq.api_at_least(1, 20) {
            to.byte_add(SRC_ADDR_OFFSET).cast::<u64>().write(flags::ADDR_UNSPEC);
        }
        Ok(1_usize)
    }

    unsafe fn signal() -> c_int {
        cq.signal()
    }

    unsafe fn strerror(
        prov_errno: c_int, _err_data: *const c_void, buf: *mut c_char, len: usize,
    ) -> *const c_char {
        Ok(error_text(prov_errno, buf, len))
    }
}

pub(crate) fn create<C: CompletionQueue>(cq: Arc<C>, context: *mut c_void) -> *mut sys::fid_cq {
    fid::create(sys::fid_cq { ops: table!(ops::<C>()), ..Default::default() }, cq, context)
}

/// # Safety
/// `buf` is null or has room for `count` entries of the queue's format, and `sources` is null or
/// has room for as many addresses.
#[inline]
unsafe fn read_entries<C: CompletionQueue>(
    cq: &C,
    buf: *mut c_void,
    count: usize,
    sources: *mut u64,
    read: impl FnOnce(&C, &mut Entries) -> Result<()>,
) -> Result<usize> {
    if buf.is_null() && count > 0 {
        return Err(Errno::EINVAL);
    }
    let next = buf.cast();
    let mut entries = Entries { format: cq.format(), next, sources, room: count, written: 0 };
    read(cq, &mut entries)?;
    Ok(entries.written)
}

/// Returns a read that waits. With `FI_CQ_COND_THRESHOLD`, `cond` is the threshold itself
/// (`fi_cq(3)`); otherwise the threshold is 1.
fn waiting<C: CompletionQueue>(
    cond: *const c_void,
    timeout: c_int,
) -> impl FnOnce(&C, &mut Entries) -> Result<()> {
    move |cq, entries| {
        let threshold = if cq.takes_threshold() { (cond as usize).max(1) } else { 1 };
        cq.wait_read(entries, threshold, timeout)
    }
}

/// Offset of `src_addr`, the last field of `struct fi_cq_err_entry`, in 1.20.
const SRC_ADDR_OFFSET: usize = 80;
const _: () = assert!(
    std::mem::offset_of!(sys::fi_cq_err_entry, err_data_size) + size_of::<usize>()
        == SRC_ADDR_OFFSET
);
