// SPDX-License-Identifier: BSD-2-Clause
//! Who owns a file, whether it lives, and how what the dead left goes.
//!
//! An owner holds a lock on its file (`flock`) as long as it lives, however it dies. Whoever gets
//! the lock knows that the owner is gone. A child that was forked holds the lock, too, and may
//! outlive the owner; so the process of a segment's header is looked for while the lock is held,
//! where it can be seen. Of whom nothing can be learnt, for want of descriptors, nobody says that
//! it is dead.
//!
//! Who removes the segment of a dead endpoint first says in it that its owner is dead: peers that
//! have it mapped see that with their next operation, and not only when they look around.
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

/// Number of this process's process namespace, in which processes are numbered, and above it
/// that of its time namespace, in which their starts are told (each has 32 bits); 0 if the
/// former is not known. Older kernels have no time namespaces.
pub static PROCESS_NAMESPACE: LazyLock<u64> = LazyLock::new(|| {
    let number = |kind| std::fs::metadata(format!("/proc/self/ns/{kind}")).map(|meta| meta.ino());
    number("pid").map_or(0, |pid| number("time").unwrap_or(0) << 32 | pid)
});

/// Whether `/proc` numbers processes as this namespace does. That of another stays mounted
/// where somebody made a namespace and no more (`unshare --pid`).
static PROC_IS_OURS: LazyLock<bool> = LazyLock::new(|| {
    std::fs::read_link("/proc/self")
        .is_ok_and(|number| number == Path::new(&std::process::id().to_string()))
});

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Whether anybody holds the lock: 3 us.
    Briefly,
    /// If so, whether the process is there as well: 10 us.
    Closely,
}

/// Whether nobody holds a file locked; if so, this open file does from now on.
#[must_use]
pub fn try_lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Whether the owner of a file lives; if not, the file is removed. `process` is its number and
/// when it started, if it can be seen from here.
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
        // Somebody cleaned the directory: who finds an owner dead says so in the file before it
        // goes. The process itself tells, where it can be seen.
        _ => process.is_none_or(|(pid, started)| process_lives(pid, started)),
    }
}

/// Removes the file of an owner that died; whether it has.
#[must_use]
pub fn remove_if_dead(directory: &Directory, name: &str) -> bool {
    let Ok(file) = directory.file(name) else { return false };
    if !try_lock(&file) && !has_ended(&file) {
        return false;
    }
    tracing::info!("removing {name}, whose owner died");
    remove(directory, &file, name)
}

/// Whether the process that made a segment is gone though somebody holds the lock: a
/// child of it. False where its process cannot be seen, and for other files.
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
        // It could look itself up, too.
        && started != 0
        && !process_lives(word(PID) as u32, started)
}

/// Removes the file of an owner that is gone; false if it is removed already.
pub fn remove(directory: &Directory, file: &File, name: &str) -> bool {
    // One at a time: the name may else be another file's by now. A creator that waits
    // for the other lock sees that its file is unlinked and starts over.
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

/// Says in a segment that its owner died, unless that closed it.
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

/// Leaves the file of an owner that died to who has the claim, if somebody has.
fn leave(directory: &Directory, file: &File, name: &str, inode: u64) -> bool {
    let Some(left) = left_name(name).filter(|_| is_claimed(directory, file)) else { return false };
    directory.rename(name, &format!("{left}-{inode}")).is_ok()
}

/// The name of a segment, or its beginning, as of one that is left to somebody.
#[must_use]
pub fn left_name(name: &str) -> Option<String> {
    Some(format!("{LEFT}{}", name.strip_prefix(SEGMENT_NAME)?))
}

/// Removes a file that was left to somebody who has ended since.
pub fn remove_if_unclaimed(directory: &Directory, name: &str) {
    if directory.file(name).is_ok_and(|file| !is_claimed(directory, &file)) {
        let _ = directory.remove(name);
    }
}

/// Whether `tcam run` wants the counters of a dead endpoint, and removes what it left.
fn is_claimed(directory: &Directory, file: &File) -> bool {
    let shows = word(file, IDENTITY) == Some(MAGIC) && word(file, COUNTERS) == Some(VERSION);
    let job = word(file, JOB).filter(|&job| shows && job != 0);
    let claim = job.and_then(|job| directory.file(&live::claim_of(job)).ok());
    // Several may ask at a time.
    claim.is_some_and(|claim| flock(&claim, FlockOperation::NonBlockingLockShared).is_err())
}

fn word(file: &File, at: usize) -> Option<u64> {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, at as u64).ok().map(|()| u64::from_ne_bytes(word))
}

/// Takes a lock that this open file alone has, unlike the owner's; false if another has.
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

/// When this process started, in clock ticks since boot: with its number that names it for
/// good. 0 if it cannot be told.
#[must_use]
pub fn own_start() -> u64 {
    let stat = PROC_IS_OURS.then(|| stat_of(std::process::id()).ok()).flatten();
    stat.and_then(|stat| live::start_of(&stat)).unwrap_or_default()
}

/// Whether the process with a number that started then is there, and is no zombie; true if
/// it cannot be told.
fn process_lives(pid: u32, started: u64) -> bool {
    match stat_of(pid) {
        Ok(stat) => live::start_of(&stat) == Some(started),
        Err(error) => is_short(&error),
    }
}

fn stat_of(pid: u32) -> io::Result<String> {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
}
