// SPDX-License-Identifier: BSD-2-Clause
//! Owners of files: whether they are alive, and the removal of files of dead owners.
//!
//! An owner holds a lock (`flock`) on its file while it lives; the kernel releases it however the
//! owner dies. A process that gets the lock knows that the owner is dead. A forked child also holds
//! the lock and may outlive the owner. So while the lock is held, the process named in the
//! segment's header is checked as well, if it is visible from here. An owner whose state cannot be
//! determined, for lack of descriptors, is not considered dead.
//!
//! Before a process removes the segment of a dead endpoint, it marks the segment as dead. Peers
//! that have it mapped see that with their next operation, and not only at their next periodic
//! check.
#![allow(unsafe_code, reason = "a lock that only fcntl takes")]

use std::{
    fs::File,
    io,
    os::{
        fd::AsRawFd as _,
        unix::fs::{FileExt as _, MetadataExt as _},
    },
    path::Path,
    sync::LazyLock,
};

use nic::live::{
    self, BELL, COUNTERS, DEAD, IDENTITY, JOB, LEFT, MAGIC, OPEN, PID, PROCESSES, SEGMENT_NAME,
    STARTED, STATE, VERSION,
};
use rustix::fs::{FlockOperation, flock};

use crate::directory::{Directory, is_short};

/// Number of this process's PID namespace, in which process ids are valid, and in the upper 32 bits
/// that of its time namespace, in which start times are valid. 0 if the former is not known. Older
/// kernels have no time namespaces.
pub static PROCESS_NAMESPACE: LazyLock<u64> = LazyLock::new(|| {
    let number = |kind| std::fs::metadata(format!("/proc/self/ns/{kind}")).map(|meta| meta.ino());
    number("pid").map_or(0, |pid| number("time").unwrap_or(0) << 32 | pid)
});

/// Whether `/proc` numbers processes as this namespace does. After `unshare --pid` without a new
/// mount, `/proc` is still that of the parent namespace.
static PROC_IS_OURS: LazyLock<bool> = LazyLock::new(|| {
    std::fs::read_link("/proc/self")
        .is_ok_and(|number| number == Path::new(&std::process::id().to_string()))
});

/// How thoroughly to check an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Checks whether any process holds the lock: 3 us.
    Briefly,
    /// If so, checks the process as well: 10 us.
    Closely,
}

/// Locks a file if no other process holds the lock. Returns true if this open file holds it now.
#[must_use]
pub fn try_lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Returns true if the owner of a file is alive; if not, the file is removed. `process` is the
/// owner's id and start time, if the owner is visible from here.
#[must_use]
pub fn lives(name: &str, inode: u64, process: Option<(u32, u64)>, look: Look) -> bool {
    let opened = Directory::open().and_then(|directory| Ok((directory.file(name)?, directory)));
    match opened {
        Ok((file, directory)) if file.metadata().is_ok_and(|meta| meta.ino() == inode) => {
            let dead = try_lock(&file) || look == Look::Closely && has_ended(&file);
            if dead {
                remove(&directory, &file, name);
            }
            !dead
        }
        Err(error) if is_short(&error) => true,
        // The directory was cleaned up. A process that finds an owner dead marks the file before it
        // is removed, so here only the process itself can be checked, if it is visible.
        _ => process.is_none_or(|(pid, started)| process_lives(pid, started)),
    }
}

/// Removes the file of an owner that died. Returns true if it was removed.
#[must_use]
pub fn remove_if_dead(directory: &Directory, name: &str) -> bool {
    let Ok(file) = directory.file(name) else { return false };
    if !try_lock(&file) && !has_ended(&file) {
        return false;
    }
    tracing::info!("removing {name}, whose owner died");
    remove(directory, &file, name)
}

/// Returns true if the process that made a segment has ended although the lock is held, by a child
/// of it. Returns false if the process is not visible, and for other files.
fn has_ended(file: &File) -> bool {
    let mut header = [0; PROCESSES + 8];
    if file.read_exact_at(&mut header, 0).is_err() {
        return false;
    }
    let word = |at: usize| header[at..].first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
    let namespace = word(PROCESSES);
    let started = word(STARTED);
    word(IDENTITY) == MAGIC
        && namespace != 0
        && namespace == *PROCESS_NAMESPACE
        && *PROC_IS_OURS
        // The owner could read its own start time, so `/proc` works.
        && started != 0
        && !process_lives(word(PID) as u32, started)
}

/// Removes the file of a dead owner. Returns false if it was removed already.
pub fn remove(directory: &Directory, file: &File, name: &str) -> bool {
    // Serialised by a second lock, because the name could otherwise belong to another file by now.
    // A creator that waits for the first lock sees that its file is unlinked and starts over.
    take_turn(file)
        && file.metadata().is_ok_and(|meta| {
            directory.inode(name) == Some(meta.ino()) && {
                say_dead(file);
                if let Some(endpoint) = name.strip_prefix(SEGMENT_NAME) {
                    let _ = directory.remove(&format!("{BELL}{endpoint}"));
                }
                leave(directory, file, name, meta.ino()) || directory.remove(name).is_ok()
            }
        })
}

/// Marks a segment as that of a dead owner, unless the owner closed it.
fn say_dead(file: &File) {
    let mut state = [0; 4];
    let is_segment = word(file, IDENTITY) == Some(MAGIC);
    if is_segment
        && file.read_exact_at(&mut state, STATE as u64).is_ok()
        && u32::from_ne_bytes(state) == OPEN
    {
        let _ = file.write_all_at(&DEAD.to_ne_bytes(), STATE as u64);
    }
}

/// Leaves the file of a dead owner to the process that has the claim, if there is one.
fn leave(directory: &Directory, file: &File, name: &str, inode: u64) -> bool {
    let Some(left) = left_name(name).filter(|_| is_claimed(directory, file)) else { return false };
    directory.rename(name, &format!("{left}-{inode}")).is_ok()
}

/// The name, or prefix of a name, under which a segment is left to a claimant.
#[must_use]
pub fn left_name(name: &str) -> Option<String> {
    Some(format!("{LEFT}{}", name.strip_prefix(SEGMENT_NAME)?))
}

/// Removes a file that was left to a claimant that has ended since.
pub fn remove_if_unclaimed(directory: &Directory, name: &str) {
    if directory.file(name).is_ok_and(|file| !is_claimed(directory, &file)) {
        let _ = directory.remove(name);
    }
}

/// Returns true if a running `tcam run` claims the segment, whose counters it reads and which it
/// then removes.
fn is_claimed(directory: &Directory, file: &File) -> bool {
    let shows = word(file, IDENTITY) == Some(MAGIC) && word(file, COUNTERS) == Some(VERSION);
    let job = word(file, JOB).filter(|&job| shows && job != 0);
    let claim = job.and_then(|job| directory.file(&live::claim_of(job)).ok());
    // Several processes may ask at the same time.
    claim.is_some_and(|claim| flock(&claim, FlockOperation::NonBlockingLockShared).is_err())
}

fn word(file: &File, at: usize) -> Option<u64> {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, at as u64).ok().map(|()| u64::from_ne_bytes(word))
}

/// Takes a lock that belongs to this open file, unlike the owner's. Returns false if another file
/// has it.
fn take_turn(file: &File) -> bool {
    let whole = libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 0,
        l_pid: 0,
    };
    // SAFETY: the descriptor is open, and the kernel only reads the lock.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const whole) == 0 }
}

/// When this process started, in clock ticks since boot. Together with the process id, this
/// identifies the process uniquely. 0 if unknown.
#[must_use]
pub fn own_start() -> u64 {
    let stat = PROC_IS_OURS.then(|| stat_of(std::process::id()).ok()).flatten();
    stat.and_then(|stat| live::start_of(&stat)).unwrap_or_default()
}

/// Returns true if the process with this id and start time exists and is not a zombie, or if that
/// cannot be determined.
fn process_lives(pid: u32, started: u64) -> bool {
    match stat_of(pid) {
        Ok(stat) => live::start_of(&stat) == Some(started),
        Err(error) => is_short(&error),
    }
}

fn stat_of(pid: u32) -> io::Result<String> {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
}
