// SPDX-License-Identifier: BSD-2-Clause
//! Descriptors that no child process keeps. A forked child inherits all descriptors of its parent,
//! so it would hold the parent's port after the parent has ended.
//!
//! A `fork` handler closes them in the child before any other code runs there. The child keeps a
//! descriptor that another thread was entering at that moment. Children made without the handlers
//! of the C library (`clone(2)` by hand) keep all of them.
#![allow(unsafe_code, reason = "handlers of fork are C")]

use std::{
    mem::ManuallyDrop,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd},
    sync::{
        Once,
        atomic::{AtomicU32, Ordering},
    },
};

use parking_lot::Mutex;

/// A descriptor that belongs to this process alone.
#[derive(Debug)]
pub struct Unshared {
    fd: ManuallyDrop<OwnedFd>,
    pid: u32,
}

/// Number, device and inode. The program may have closed a descriptor that it did not open, and
/// another file may have its number.
type Entry = (RawFd, u64, u64);

/// Number of forks between the process that loaded this library and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The generation of this process. An object of another generation belongs to the parent: its
/// descriptors are closed here, and their numbers may be those of other files.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

static ENTRIES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

fn entry(fd: BorrowedFd<'_>) -> Option<Entry> {
    let stat = rustix::fs::fstat(fd).ok()?;
    Some((fd.as_raw_fd(), stat.st_dev, stat.st_ino))
}

impl Unshared {
    /// Registers a descriptor to be closed in children.
    #[must_use]
    pub fn new(fd: OwnedFd) -> Self {
        static REGISTERED: Once = Once::new();
        REGISTERED.call_once(|| {
            // SAFETY: the handler is a function of this library, which forgets it when it is
            // unloaded. It makes system calls and locks nothing that it would have to wait for.
            let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        });
        ENTRIES.lock().extend(entry(fd.as_fd()));
        Self { fd: ManuallyDrop::new(fd), pid: std::process::id() }
    }

    /// Duplicates a descriptor and registers the copy.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn copy(fd: BorrowedFd<'_>) -> std::io::Result<Self> {
        Ok(Self::new(fd.try_clone_to_owned()?))
    }
}

impl AsFd for Unshared {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Unshared {
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        let own = entry(self.fd.as_fd());
        ENTRIES.lock().retain(|entry| Some(*entry) != own);
        // SAFETY: it is dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.fd) };
    }
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let Some(mut entries) = ENTRIES.try_lock() else { return };
    for &(number, device, inode) in entries.iter() {
        // SAFETY: the kernel checks whether the number is an open descriptor.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        if entry(fd) == Some((number, device, inode)) {
            // SAFETY: the check above shows that it is the registered file, which nothing in the
            // child uses.
            unsafe { libc::close(number) };
        }
    }
    // The memory is not freed: another thread of the parent may have held the allocator's lock.
    entries.truncate(0);
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_child_does_not_keep_it() {
        let (mut read, write) = std::io::pipe().unwrap();
        let own = Unshared::new(write.into());
        // SAFETY: the child only waits and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            std::thread::sleep(std::time::Duration::from_secs(5));
            // SAFETY: nothing of the parent's runs in the child.
            unsafe { libc::_exit(0) };
        }
        let mut file = std::fs::File::from(own.fd.as_fd().try_clone_to_owned().unwrap());
        file.write_all(b"x").unwrap();
        drop((own, file));
        let mut all = String::new();
        // The read ends as soon as no process holds the write end.
        let started = std::time::Instant::now();
        read.read_to_string(&mut all).unwrap();
        assert_eq!(all, "x");
        assert!(started.elapsed().as_secs() < 4, "the child keeps it");
        // SAFETY: the child is ours and was not waited for yet.
        unsafe { libc::kill(child, libc::SIGKILL) };
        // SAFETY: no other code waits for it.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
}
