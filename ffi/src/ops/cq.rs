// SPDX-License-Identifier: BSD-2-Clause
//! `fi_cq(3)`.

use std::{
    ffi::{c_char, c_int, c_void},
    sync::Arc,
};

use crate::{
    errno::{Errno, Result},
    flags, guard,
    memory::Context,
    object::{self, Bindable},
    ops::{WaitObj, eq::error_text, fid, table},
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

impl Format {
    fn size(self) -> usize {
        match self {
            Self::Context => size_of::<sys::fi_cq_entry>(),
            Self::Msg => size_of::<sys::fi_cq_msg_entry>(),
            Self::Data => size_of::<sys::fi_cq_data_entry>(),
            Self::Tagged => size_of::<sys::fi_cq_tagged_entry>(),
        }
    }
}

/// `struct fi_cq_attr`.
#[derive(Clone, Debug, Default)]
pub struct Attr {
    /// Entries, 0 for the default.
    pub size: usize,
    /// `FI_AFFINITY` and others.
    pub flags: u64,
    /// Format of the entries.
    pub format: Format,
    /// How `fi_cq_sread` waits.
    pub wait_obj: WaitObj,
    /// Whether `fi_cq_sread` takes a threshold (`FI_CQ_COND_THRESHOLD`).
    pub threshold: bool,
}

impl Attr {
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

/// A completion, with all that any format shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Context of the operation.
    pub context: Context,
    /// `FI_SEND`, `FI_RECV`, `FI_TAGGED`, ...
    pub flags: u64,
    /// Bytes received.
    pub len: usize,
    /// Where a multi-receive buffer took the message.
    pub buf: usize,
    /// Remote CQ data.
    pub data: u64,
    /// Match bits.
    pub tag: u64,
    /// Sender, or `FI_ADDR_NOTAVAIL`.
    pub source: u64,
}

/// An operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failure {
    /// As for a completion; `len` is what was received.
    pub completion: Completion,
    /// Bytes that did not fit the buffer.
    pub overflow: usize,
    /// What went wrong.
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
    /// Entries that still fit.
    #[must_use]
    pub fn room(&self) -> usize {
        self.room - self.written
    }

    /// Entries written.
    #[must_use]
    pub fn written(&self) -> usize {
        self.written
    }

    /// Writes a completion in the queue's format.
    ///
    /// # Panics
    /// If there is no room.
    #[inline]
    pub fn push(&mut self, completion: &Completion) {
        assert!(self.written < self.room, "no room for a completion");
        let op_context = completion.context.0 as *mut c_void;
        let Completion { flags, len, data, tag, .. } = *completion;
        let buf = completion.buf as *mut c_void;
        // SAFETY: C gave room for `room` entries of this format, aligned as
        // their structure is, and for as many sources if it wants them.
        unsafe {
            match self.format {
                Format::Context => {
                    self.next.cast::<sys::fi_cq_entry>().write(sys::fi_cq_entry { op_context });
                }
                Format::Msg => self
                    .next
                    .cast::<sys::fi_cq_msg_entry>()
                    .write(sys::fi_cq_msg_entry { op_context, flags, len }),
                Format::Data => self
                    .next
                    .cast::<sys::fi_cq_data_entry>()
                    .write(sys::fi_cq_data_entry { op_context, flags, len, buf, data }),
                Format::Tagged => self
                    .next
                    .cast::<sys::fi_cq_tagged_entry>()
                    .write(sys::fi_cq_tagged_entry { op_context, flags, len, buf, data, tag }),
            }
            if !self.sources.is_null() {
                self.sources.add(self.written).write(completion.source);
            }
            self.next = self.next.add(self.format.size());
        }
        self.written += 1;
    }
}

/// A completion queue.
pub trait CompletionQueue: Bindable<Raw = sys::fid_cq> {
    /// Format of the entries.
    fn format(&self) -> Format;

    /// Whether the application was written for this version of the API or a later one, which
    /// says how long its `struct fi_cq_err_entry` is.
    fn api_at_least(&self, major: u32, minor: u32) -> bool;

    /// Makes progress and reads completions.
    ///
    /// # Errors
    /// `EAGAIN` nothing to read, `EAVAIL` an error is first.
    fn read(&self, entries: &mut Entries) -> Result<()>;

    /// As [`CompletionQueue::read`], but waits (milliseconds, negative: for
    /// ever) until `threshold` entries can be read.
    ///
    /// # Errors
    /// Also `EAGAIN` when the time is over and after a signal.
    fn wait_read(&self, entries: &mut Entries, threshold: usize, timeout: c_int) -> Result<()>;

    /// The error that is first.
    ///
    /// # Errors
    /// `EAGAIN` there is none.
    fn read_error(&self, flags: u64) -> Result<Failure>;

    /// Wakes whoever waits.
    ///
    /// # Errors
    /// `ENOSYS` for queues without a wait object.
    fn signal(&self) -> Result<()>;

    /// Whether `cond` of `fi_cq_sread` is a threshold.
    fn takes_threshold(&self) -> bool;
}

struct Tables<C>(std::marker::PhantomData<C>);

impl<C: CompletionQueue> Tables<C> {
    const OPS: sys::fi_ops_cq = {
        let mut ops = NULL;
        ops.size = std::mem::offset_of!(sys::fi_ops_cq, strerror) + size_of::<usize>();
        ops.read = Some(read::<C>);
        ops.readfrom = Some(readfrom::<C>);
        ops.readerr = Some(readerr::<C>);
        ops.sread = Some(sread::<C>);
        ops.sreadfrom = Some(sreadfrom::<C>);
        ops.signal = Some(signal::<C>);
        ops.strerror = Some(strerror);
        ops
    };
}

// SAFETY: a table of `Option<fn>` and a size may be all zero.
const NULL: sys::fi_ops_cq = unsafe { std::mem::zeroed() };

pub(crate) fn create<C: CompletionQueue>(cq: Arc<C>, context: *mut c_void) -> *mut sys::fid_cq {
    fid::create(sys::fid_cq { ops: table!(Tables::<C>::OPS), ..Default::default() }, cq, context)
}

/// # Safety
/// The pointers are those C called the queue's table with.
#[inline]
unsafe fn read_entries<C: CompletionQueue>(
    cq: *mut sys::fid_cq,
    buf: *mut c_void,
    count: usize,
    sources: *mut u64,
    read: impl FnOnce(&C, &mut Entries) -> Result<()>,
) -> isize {
    guard::call(|| {
        // SAFETY: the caller vouches for the pointer.
        let cq = unsafe { object::get::<_, C>(cq) }?;
        if buf.is_null() && count > 0 {
            return Err(Errno::EINVAL);
        }
        let next = buf.cast();
        let mut entries = Entries { format: cq.format(), next, sources, room: count, written: 0 };
        read(cq, &mut entries)?;
        Ok(entries.written)
    })
}

unsafe extern "C" fn read<C: CompletionQueue>(
    cq: *mut sys::fid_cq,
    buf: *mut c_void,
    count: usize,
) -> isize {
    // SAFETY: the arguments of the call itself.
    unsafe { read_entries::<C>(cq, buf, count, std::ptr::null_mut(), C::read) }
}

unsafe extern "C" fn readfrom<C: CompletionQueue>(
    cq: *mut sys::fid_cq,
    buf: *mut c_void,
    count: usize,
    sources: *mut u64,
) -> isize {
    // SAFETY: the arguments of the call itself.
    unsafe { read_entries::<C>(cq, buf, count, sources, C::read) }
}

unsafe extern "C" fn sread<C: CompletionQueue>(
    cq: *mut sys::fid_cq,
    buf: *mut c_void,
    count: usize,
    cond: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: the arguments of the call itself.
    unsafe { sreadfrom::<C>(cq, buf, count, std::ptr::null_mut(), cond, timeout) }
}

unsafe extern "C" fn sreadfrom<C: CompletionQueue>(
    cq: *mut sys::fid_cq,
    buf: *mut c_void,
    count: usize,
    sources: *mut u64,
    cond: *const c_void,
    timeout: c_int,
) -> isize {
    // SAFETY: the arguments of the call itself. fi_cq(3): with
    // FI_CQ_COND_THRESHOLD `cond` is the threshold, passed as a pointer value.
    unsafe {
        read_entries::<C>(cq, buf, count, sources, |cq, entries| {
            let threshold = if cq.takes_threshold() { (cond as usize).max(1) } else { 1 };
            cq.wait_read(entries, threshold, timeout)
        })
    }
}

unsafe extern "C" fn readerr<C: CompletionQueue>(
    cq: *mut sys::fid_cq,
    to: *mut sys::fi_cq_err_entry,
    read_flags: u64,
) -> isize {
    guard::call(|| {
        if to.is_null() {
            return Err(Errno::EINVAL);
        }
        // SAFETY: reached through the queue's table; every field written below exists in the
        // first layout, but `err_data_size` from API 1.5 and `src_addr` from 1.20 on.
        unsafe {
            let cq = object::get::<_, C>(cq)?;
            let failure = cq.read_error(read_flags)?;
            let completion = failure.completion;
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
        }
        Ok(1)
    })
}

/// Where 1.20 put `src_addr` into `struct fi_cq_err_entry`: behind all else.
const SRC_ADDR_OFFSET: usize = 80;
const _: () = assert!(
    std::mem::offset_of!(sys::fi_cq_err_entry, err_data_size) + size_of::<usize>()
        == SRC_ADDR_OFFSET
);

unsafe extern "C" fn signal<C: CompletionQueue>(cq: *mut sys::fid_cq) -> c_int {
    // SAFETY: reached through the queue's table.
    guard::call(|| unsafe { object::get::<_, C>(cq) }?.signal().map(|()| 0))
}

unsafe extern "C" fn strerror(
    _: *mut sys::fid_cq,
    prov_errno: c_int,
    _: *const c_void,
    buf: *mut c_char,
    len: usize,
) -> *const c_char {
    // SAFETY: C gives room of `len` bytes.
    unsafe { error_text(prov_errno, buf, len) }
}
