// SPDX-License-Identifier: BSD-2-Clause
//! Descriptors that no child keeps. One that is forked has all that its parent has, and a port that
//! it holds without knowing stays held when the parent has ended.
//!
//! A handler of `fork` closes them in the child, before anything else runs there. What another
//! thread was about to enter in that moment the child keeps. Children that are made without the
//! handlers of the C library (`clone(2)` by hand) keep all.
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

/// A descriptor of this process alone.
#[derive(Debug)]
pub struct Unshared {
    fd: ManuallyDrop<OwnedFd>,
    pid: u32,
}

/// Number, device and inode: the program may have closed a descriptor that it did not know, and
/// have something else under its number.
type Entry = (RawFd, u64, u64);

/// How many forks lead to this process from the one that loaded this library.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// The generation of this process. What an object of another generation holds is its parent's: its
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
    /// Has it closed in children.
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

    /// A copy of one.
    ///
    /// # Errors
    /// No descriptors are left.
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
        // SAFETY: the kernel knows whether the number is one of a descriptor.
        let fd = unsafe { BorrowedFd::borrow_raw(number) };
        if entry(fd) == Some((number, device, inode)) {
            // SAFETY: as just seen it is the one that was entered, which nothing in the child uses.
            unsafe { libc::close(number) };
        }
    }
    // Its memory stays: what frees it may be in the middle of another thread's work.
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
        // It ends as soon as nobody could write.
        let started = std::time::Instant::now();
        read.read_to_string(&mut all).unwrap();
        assert_eq!(all, "x");
        assert!(started.elapsed().as_secs() < 4, "the child keeps it");
        // SAFETY: the child is ours and was not waited for.
        unsafe { libc::kill(child, libc::SIGKILL) };
        // SAFETY: nobody else waits for it.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }
}
