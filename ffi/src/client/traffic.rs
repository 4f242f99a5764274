// SPDX-License-Identifier: BSD-2-Clause
//! What is sent over a provider below, and what comes.

use std::{ffi::c_void, mem, ptr};

use super::opened::Client;
use crate::{
    errno::{Errno, Result},
    flags,
    memory::Buffer,
    sys,
};

/// What happened since it was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block to send from is back.
    Sent(usize),
    /// The same, of a message that was not sent.
    Lost(usize, Errno),
    /// Bytes came into a block to receive into.
    Came {
        /// Which.
        block: usize,
        /// Where in it.
        at: usize,
        /// How many.
        len: usize,
    },
    /// Nothing more comes into a block: once what came is read, [`Client::post`].
    Full(usize),
    /// Something failed that is none of these.
    Failed(Errno),
}

/// Completions that are read at a time.
const BATCH: usize = 16;

impl Client {
    /// Whether a block to send from is free.
    #[must_use]
    pub fn has_staging(&self) -> bool {
        !self.lent.free.is_empty()
    }

    /// Blocks to send from that the provider has.
    #[must_use]
    pub fn staged(&self) -> usize {
        self.lent.staging - self.lent.free.len()
    }

    /// Whether memory of the application is sent from where it is.
    #[must_use]
    pub fn lends_memory(&self) -> bool {
        self.lends_memory
    }

    /// Longest message of [`Client::inject`].
    #[must_use]
    pub fn inject_size(&self) -> usize {
        self.inject_size
    }

    /// Sends bytes that are copied before this returns.
    ///
    /// # Errors
    /// `EAGAIN` if there is no room now.
    pub fn inject(&mut self, to: u64, bytes: &[u8]) -> Result<()> {
        // SAFETY: an open endpoint, and an address of its vector.
        let status = unsafe {
            let inject = (*(*self.ep.get()).msg).inject.ok_or(Errno::ENOSYS)?;
            inject(self.ep.get(), bytes.as_ptr().cast(), bytes.len(), to)
        };
        check(status)
    }

    /// Sends what `fill` writes into a block, and behind it the bytes of a buffer from where they are,
    /// if there is one; they stay so until [`Event::Sent`] tells of the block that is answered.
    ///
    /// # Errors
    /// `EAGAIN` if there is no room now.
    pub fn send(
        &mut self,
        to: u64,
        fill: impl FnOnce(&mut [u8]) -> usize,
        behind: Option<&Buffer>,
    ) -> Result<usize> {
        let Some(&block) = self.lent.free.last() else { return Err(Errno::EAGAIN) };
        let block = block as usize;
        let (at, room) = (self.staging.block(block), self.staging.block_len());
        // SAFETY: a block that nobody else has, of so many bytes.
        let len = fill(unsafe { std::slice::from_raw_parts_mut(at, room) }).min(room);
        let context = self.lent.context(block);
        let description = self.description(false);
        // SAFETY: an open endpoint and an address of its vector; the block is not touched before its
        // event, and the application vouches for its buffer.
        let status = unsafe {
            let ops = &*(*self.ep.get()).msg;
            match behind.filter(|_| self.lends_memory) {
                Some(behind) => {
                    let send = ops.sendv.ok_or(Errno::ENOSYS)?;
                    let there = behind.segments()[0];
                    let iov = [
                        sys::iovec { iov_base: at.cast(), iov_len: len },
                        sys::iovec { iov_base: there.addr as *mut c_void, iov_len: there.len },
                    ];
                    send(self.ep.get(), iov.as_ptr(), ptr::null_mut(), iov.len(), to, context)
                }
                None => {
                    let send = ops.send.ok_or(Errno::ENOSYS)?;
                    send(self.ep.get(), at.cast(), len, description, to, context)
                }
            }
        };
        check(status)?;
        self.lent.free.pop();
        Ok(block)
    }

    /// Has a block receive several messages.
    ///
    /// # Errors
    /// What the provider answers.
    pub fn post(&mut self, block: usize) -> Result<()> {
        let iov = sys::iovec {
            iov_base: self.receives.block(block).cast(),
            iov_len: self.receives.block_len(),
        };
        let mut description = self.description(true);
        let message = sys::fi_msg {
            msg_iov: &raw const iov,
            desc: &raw mut description,
            iov_count: 1,
            addr: flags::ADDR_UNSPEC,
            context: self.lent.context(self.lent.staging + block),
            data: 0,
        };
        // SAFETY: an open endpoint; the block is not read before events tell of bytes in it.
        let status = unsafe {
            let receive = (*(*self.ep.get()).msg).recvmsg.ok_or(Errno::ENOSYS)?;
            receive(self.ep.get(), &raw const message, flags::MULTI_RECV)
        };
        check(status)
    }

    /// Makes progress, and tells what happened; whether there may be more.
    pub fn read(&mut self, mut tell: impl FnMut(Event)) -> bool {
        let mut entries = [const { mem::MaybeUninit::<sys::fi_cq_data_entry>::uninit() }; BATCH];
        // SAFETY: an open queue, and room for as many entries of its format as is said.
        let status = unsafe {
            let Some(read) = (*(*self.cq.get()).ops).read else { return false };
            read(self.cq.get(), entries.as_mut_ptr().cast(), BATCH)
        };
        if let Ok(count @ 1..) = usize::try_from(status) {
            for entry in &entries[..count.min(BATCH)] {
                // SAFETY: the queue has written so many.
                let entry = unsafe { entry.assume_init() };
                self.tell(&entry, &mut tell);
            }
            return count == BATCH;
        }
        if Errno::new(status as i32) == Errno::EAVAIL {
            self.tell_error(&mut tell);
            return true;
        }
        false
    }

    fn tell(&mut self, entry: &sys::fi_cq_data_entry, tell: &mut impl FnMut(Event)) {
        let Some(index) = self.lent.index(entry.op_context) else { return };
        let Some(block) = index.checked_sub(self.lent.staging) else {
            self.lent.free.push(index as u32);
            tell(Event::Sent(index));
            return;
        };
        if entry.flags & flags::RECV != 0 && !entry.buf.is_null() {
            match self.receives.offset_in(block, entry.buf.cast()) {
                Some(at) => tell(Event::Came { block, at, len: entry.len }),
                None => tell(Event::Failed(Errno::EFAULT)),
            }
        }
        if entry.flags & flags::MULTI_RECV != 0 {
            tell(Event::Full(block));
        }
    }

    fn tell_error(&mut self, tell: &mut impl FnMut(Event)) {
        /// Longer than the entry of any version.
        #[repr(C)]
        struct Entry(sys::fi_cq_err_entry, [u64; 8]);
        let mut entry = Entry(sys::fi_cq_err_entry::default(), [0; 8]);
        // SAFETY: an open queue, and room for an entry.
        let status = unsafe {
            let Some(read) = (*(*self.cq.get()).ops).readerr else { return };
            read(self.cq.get(), (&raw mut entry).cast(), 0)
        };
        if status <= 0 {
            return;
        }
        let Entry(entry, _) = entry;
        let errno = Errno::new(entry.err);
        let Some(index) = self.lent.index(entry.op_context) else {
            tell(Event::Failed(errno));
            return;
        };
        match index.checked_sub(self.lent.staging) {
            None => {
                self.lent.free.push(index as u32);
                tell(Event::Lost(index, errno));
            }
            Some(block) => {
                tell(Event::Failed(errno));
                if entry.flags & flags::MULTI_RECV != 0 || errno == Errno::ECANCELED {
                    tell(Event::Full(block));
                }
            }
        }
    }
}

fn check(status: isize) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(Errno::new(status as i32)) }
}
