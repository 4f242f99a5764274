// SPDX-License-Identifier: BSD-2-Clause
//! `fi_rma(3)`: nine calls that all become one [`Rma`].

use std::{ffi::c_void, sync::Arc};

use super::{Endpoint, OpFlags, Tables, on, submit, vector};
use crate::{
    errno::{Errno, Result},
    flags,
    memory::{Buffer, Context, IOV_LIMIT},
    object::context,
    ops::work::Op,
    sys,
};

/// Memory of a peer: a part of one of its regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RemotePart {
    /// Where, as the region counts.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// Key of the region.
    pub key: u64,
}

/// Parts of a peer's memory, in the order of the data.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteParts {
    parts: [RemotePart; IOV_LIMIT],
    count: usize,
}

impl RemoteParts {
    /// The parts.
    ///
    /// # Errors
    /// `EINVAL` for more than [`IOV_LIMIT`], or if their lengths exceed all memory.
    pub fn new(parts: impl IntoIterator<Item = RemotePart>) -> Result<Self> {
        let mut all = Self::default();
        let mut len = 0_u64;
        for part in parts {
            *all.parts.get_mut(all.count).ok_or(Errno::EINVAL)? = part;
            all.count += 1;
            len = len.checked_add(part.len).ok_or(Errno::EINVAL)?;
        }
        Ok(all)
    }

    /// Each part.
    #[must_use]
    pub fn as_slice(&self) -> &[RemotePart] {
        &self.parts[..self.count]
    }

    /// The part of `len` bytes from `offset` on, as far as there are so many.
    #[must_use]
    pub fn part(&self, mut offset: u64, mut len: u64) -> Self {
        let mut cut = Self::default();
        for part in self.as_slice() {
            let skip = offset.min(part.len);
            offset -= skip;
            let take = len.min(part.len - skip);
            if take > 0 {
                let addr = part.addr.wrapping_add(skip);
                cut.parts[cut.count] = RemotePart { addr, len: take, key: part.key };
                cut.count += 1;
                len -= take;
            }
        }
        cut
    }

    /// Length in bytes of all parts.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.as_slice().iter().map(|part| part.len).sum()
    }

    /// Whether there is no byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A read or a write in any of its forms.
#[derive(Clone, Debug)]
pub struct Rma {
    /// Whether it is a write.
    pub write: bool,
    /// Memory here.
    pub buffer: Buffer,
    /// The peer.
    pub peer: u64,
    /// Memory there.
    pub remote: RemoteParts,
    /// Remote CQ data.
    pub data: Option<u64>,
    /// Context of the operation.
    pub context: Context,
    /// Flags of the operation.
    pub flags: OpFlags,
}

impl<E: Endpoint> Tables<E> {
    pub(super) const RMA: sys::fi_ops_rma = sys::fi_ops_rma {
        size: size_of::<sys::fi_ops_rma>(),
        read: Some(read::<E>),
        readv: Some(readv::<E>),
        readmsg: Some(message::<E, false>),
        write: Some(write::<E>),
        writev: Some(writev::<E>),
        writemsg: Some(message::<E, true>),
        inject: Some(inject::<E>),
        writedata: Some(writedata::<E>),
        injectdata: Some(injectdata::<E>),
    };
}

/// The forms that name one part of the peer's memory, as long as the buffer.
macro_rules! forms {
    ($($name:ident($($arg:ident: $type:ty),*; $($data:ident)?; $($context:ident)?)
        $write:expr, $buffer:expr, $remote_data:expr, $made:expr, $flags:ident;)*) => {$(
        unsafe extern "C" fn $name<E: Endpoint>(
            ep: *mut sys::fid_ep,
            $($arg: $type,)*
            $($data: u64,)?
            peer: u64,
            addr: u64,
            key: u64,
            $($context: *mut c_void,)?
        ) -> isize {
            // SAFETY: the arguments of the call itself, as the man page describes them.
            unsafe {
                on(ep, |ep: &Arc<E>| {
                    let buffer = $buffer?;
                    let part = RemotePart { addr, len: buffer.len() as u64, key };
                    ep.rma(&Rma {
                        write: $write,
                        buffer,
                        peer,
                        remote: RemoteParts::new([part])?,
                        data: $remote_data,
                        context: $made,
                        flags: OpFlags::$flags,
                    })
                })
            }
        }
    )*};
}

/// No context: nothing is reported of an inject.
const NONE: Context = Context(0);

forms! {
    read(buf: *mut c_void, len: usize, _desc: *mut c_void;; op_context)
        false, Buffer::contiguous(buf, len), None, context(op_context), Default;
    readv(iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize;; op_context)
        false, vector(iov, count), None, context(op_context), Default;
    write(buf: *const c_void, len: usize, _desc: *mut c_void;; op_context)
        true, Buffer::contiguous(buf, len), None, context(op_context), Default;
    writev(iov: *const sys::iovec, _desc: *mut *mut c_void, count: usize;; op_context)
        true, vector(iov, count), None, context(op_context), Default;
    writedata(buf: *const c_void, len: usize, _desc: *mut c_void; data; op_context)
        true, Buffer::contiguous(buf, len), Some(data), context(op_context), Default;
    inject(buf: *const c_void, len: usize;;)
        true, Buffer::contiguous(buf, len), None, NONE, Inject;
    injectdata(buf: *const c_void, len: usize; data;)
        true, Buffer::contiguous(buf, len), Some(data), NONE, Inject;
}

/// What a `*msg` call asks for.
///
/// # Safety
/// `msg` and what it points to are as `fi_rma(3)` describes them.
pub(crate) unsafe fn of_msg(msg: &sys::fi_msg_rma, write: bool, op_flags: u64) -> Result<Rma> {
    if msg.rma_iov_count > IOV_LIMIT || msg.rma_iov.is_null() && msg.rma_iov_count > 0 {
        return Err(Errno::EINVAL);
    }
    // SAFETY: the caller vouches for the entries, whose pointer was checked.
    let (buffer, parts) = unsafe {
        let parts = (0..msg.rma_iov_count).map(|index| {
            let part = &*msg.rma_iov.add(index);
            RemotePart { addr: part.addr, len: part.len as u64, key: part.key }
        });
        (vector(msg.msg_iov, msg.iov_count)?, RemoteParts::new(parts)?)
    };
    Ok(Rma {
        write,
        buffer,
        peer: msg.addr,
        remote: parts,
        data: (write && op_flags & flags::REMOTE_CQ_DATA != 0).then_some(msg.data),
        context: context(msg.context),
        flags: OpFlags::Given(op_flags),
    })
}

/// `fi_readmsg` and `fi_writemsg`.
unsafe extern "C" fn message<E: Endpoint, const WRITE: bool>(
    ep: *mut sys::fid_ep,
    msg: *const sys::fi_msg_rma,
    op_flags: u64,
) -> isize {
    // SAFETY: the arguments of the call itself, as the man page describes them.
    unsafe {
        on(ep, |ep: &Arc<E>| {
            let msg = msg.as_ref().ok_or(Errno::EINVAL)?;
            submit(ep, &Op::Rma(of_msg(msg, WRITE, op_flags)?))
        })
    }
}
