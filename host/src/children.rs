// SPDX-License-Identifier: BSD-2-Clause
//! Descriptors that no child process keeps. A forked child inherits all descriptors of its parent,
//! so without this module it would hold the parent's port after the parent has ended.
//!
//! A `fork` handler closes the descriptors in a list before any other code runs in the child. The
//! child keeps a descriptor that another thread has opened but not yet entered into the list. A
//! child keeps all descriptors if it was made without the handlers of the C library (`clone(2)` by
//! hand), or if another thread held the list for longer than `PATIENCE`.
//!
//! The thread that forks holds the lock of the list over the fork, so the child finds a complete
//! list. The lock is that of the standard library, because unlocking it is one atomic operation,
//! also in a child whose other threads have vanished.
#![allow(unsafe_code, reason = "handlers of fork are C")]

use std::{
    cell::Cell,
    mem::ManuallyDrop,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd, RawFd},
    sync::{
        Mutex, MutexGuard, Once, PoisonError, TryLockError,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

/// A descriptor that belongs to this process alone.
#[derive(Debug)]
pub struct Unshared {
    fd: ManuallyDrop<OwnedFd>,
    pid: u32,
}

/// Number of a descriptor, and device and inode of its file. Device and inode show whether the
/// number is still that of the file. The program may have closed the descriptor although it did not
/// open it.
type Entry = (RawFd, u64, u64);

/// Number of forks between the process that loaded this library and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Returns the generation of this process. An object of another generation belongs to the parent:
/// its descriptors are closed here, and their numbers may be those of other files.
pub fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

static ENTRIES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Maximum time that a fork waits for another thread that changes the list, which takes
/// microseconds. The wait has an end because a signal handler may fork in the middle of such a
/// change.
const PATIENCE: Duration = Duration::from_millis(100);

thread_local! {
    /// The list, while this thread forks.
    static HELD: Cell<Option<MutexGuard<'static, Vec<Entry>>>> = const { Cell::new(None) };
}

fn entries() -> MutexGuard<'static, Vec<Entry>> {
    ENTRIES.lock().unwrap_or_else(PoisonError::into_inner)
}

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
            // SAFETY: the handlers are functions of this library, which forgets them when it is
            // unloaded. In the child they only make system calls and unlock the list.
            let _ =
                unsafe { libc::pthread_atfork(Some(before_fork), Some(in_parent), Some(in_child)) };
        });
        entries().extend(entry(fd.as_fd()));
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
        // The descriptor is closed before the list is released. If it were closed afterwards, the
        // child of a fork in between would keep it.
        let mut entries = entries();
        // If the program closed the descriptor, the number may be that of a file of its own.
        if let Some(at) = entries.iter().position(|entry| Some(*entry) == own) {
            entries.swap_remove(at);
            // SAFETY: `fd` is dropped once, here.
            unsafe { ManuallyDrop::drop(&mut self.fd) };
        }
    }
}

extern "C" fn before_fork() {
    let end = Instant::now() + PATIENCE;
    let entries = loop {
        match ENTRIES.try_lock() {
            Ok(entries) => break entries,
            Err(TryLockError::Poisoned(entries)) => break entries.into_inner(),
            Err(TryLockError::WouldBlock) if Instant::now() < end => std::thread::yield_now(),
            Err(TryLockError::WouldBlock) => return,
        }
    };
    // A thread that is ending may have no thread-local variables any more.
    let _ = HELD.try_with(|held| held.set(Some(entries)));
}

fn held() -> Option<MutexGuard<'static, Vec<Entry>>> {
    HELD.try_with(Cell::take).ok().flatten()
}

extern "C" fn in_parent() {
    drop(held());
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let Some(mut entries) = held() else { return };
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

    /// Forks, and checks that the child keeps no registered descriptor.
    fn fork_and_check() {
        let (mut read, write) = std::io::pipe().unwrap();
        let own = Unshared::new(write.into());
        let mut file = std::fs::File::from(own.fd.as_fd().try_clone_to_owned().unwrap());
        file.write_all(b"x").unwrap();
        drop(file);
        // The list is being changed when the fork begins.
        let (locked, is_locked) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || {
            let entries = entries();
            locked.send(()).unwrap();
            std::thread::sleep(PATIENCE / 10);
            drop(entries);
        });
        is_locked.recv().unwrap();
        // SAFETY: the child only waits and ends.
        let child = unsafe { libc::fork() };
        if child == 0 {
            std::thread::sleep(Duration::from_secs(5));
            // SAFETY: nothing of the parent's runs in the child.
            unsafe { libc::_exit(0) };
        }
        other.join().unwrap();
        drop(own);
        let mut all = String::new();
        // `read_to_string` returns as soon as no process holds the write end.
        let started = Instant::now();
        read.read_to_string(&mut all).unwrap();
        assert_eq!(all, "x");
        assert!(started.elapsed().as_secs() < 4, "the child keeps it");
        // SAFETY: the child is ours and was not waited for yet.
        unsafe { libc::kill(child, libc::SIGKILL) };
        // SAFETY: no other code waits for it.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
    }

    #[test]
    fn a_child_does_not_keep_it() {
        // The second fork shows that the first one released the list.
        fork_and_check();
        fork_and_check();
    }

    #[test]
    fn a_file_of_the_program_stays_open() {
        let own = Unshared::new(std::io::pipe().unwrap().0.into());
        let number = own.as_fd().as_raw_fd();
        let file = std::fs::File::open("/dev/null").unwrap();
        // SAFETY: the number is that of `own`, which the test replaces as a program might.
        assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), number) }, number);
        drop(own);
        // SAFETY: the kernel checks whether the number is an open descriptor.
        assert_eq!(unsafe { libc::close(number) }, 0);
    }
}
