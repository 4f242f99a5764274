// SPDX-License-Identifier: BSD-2-Clause
//! Who owns a segment, whether it lives, and what it left behind.
//!
//! Whoever gets the lock of a file knows that its owner is gone. A child that was forked
//! holds the lock, too, and may outlive the owner; so the process of the header is looked
//! for while the lock is held, where it can be seen. Of whom nothing can be learnt, for want
//! of descriptors, nobody says that it is dead.
#![allow(unsafe_code, reason = "a lock that only fcntl takes")]

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::AsRawFd as _,
        unix::fs::{FileExt as _, MetadataExt as _},
    },
    path::Path,
    sync::LazyLock,
};

use nic::live::{self, COUNTERS, IDENTITY, JOB, LEFT, MAGIC, PID, SEGMENTS, STARTED, VERSION};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

use super::segment::{PROCESSES, options, path_of, try_lock, user};

/// Number of this process's process namespace, in which processes are numbered, and above it
/// that of its time namespace, in which their starts are told (each has 32 bits); 0 if the
/// former is not known. Older kernels have no time namespaces.
pub(super) static PROCESS_NAMESPACE: LazyLock<u64> = LazyLock::new(|| {
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
pub(crate) enum Look {
    /// Whether anybody holds the lock: 2 us.
    Briefly,
    /// If so, whether the process is there as well: 10 us.
    Closely,
}

/// Names an endpoint for good: its port, its segment's file, its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) port: u16,
    pub(crate) inode: u64,
    pub(crate) pid: u32,
    pub(crate) started: u64,
}

impl Owner {
    /// Names this process, without an endpoint.
    pub(crate) fn of_process() -> Self {
        let pid = std::process::id();
        Self { port: 0, inode: 0, pid, started: own_start() }
    }

    /// Whether it lives still.
    pub(crate) fn lives(&self) -> bool {
        let path = path_of(user(), self.port);
        owner_lives(&path, self.inode, self.pid, self.started, Look::Closely)
    }
}

/// Whether the owner of a segment lives; if not, the file is removed.
pub(super) fn owner_lives(path: &Path, inode: u64, pid: u32, started: u64, look: Look) -> bool {
    match options().open(path) {
        Ok(file) if file.metadata().is_ok_and(|meta| meta.ino() == inode) => {
            let dead = try_lock(&file) || look == Look::Closely && has_ended(&file);
            if dead {
                remove(&file, path);
            }
            !dead
        }
        Err(error) if is_short(&error) => true,
        // The file is gone or cannot be opened: by somebody who found its owner
        // dead, or who cleans directories. The process itself tells.
        _ => process_lives(pid, started),
    }
}

/// Whether a file could not be opened for want of descriptors or memory here, which says
/// nothing of the file.
fn is_short(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
}

/// Removes the file of an owner that died; whether it has.
pub(super) fn remove_if_dead(path: &Path) -> bool {
    let Ok(file) = options().open(path) else { return false };
    if !try_lock(&file) && !has_ended(&file) {
        return false;
    }
    tracing::info!("removing {}, whose owner died", path.display());
    remove(&file, path)
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
pub(super) fn remove(file: &File, path: &Path) -> bool {
    // One at a time: the path may else be another file's by now. A creator that waits
    // for the other lock sees that its file is unlinked and starts over.
    take_turn(file)
        && file.metadata().is_ok_and(|meta| {
            std::fs::symlink_metadata(path).is_ok_and(|now| now.ino() == meta.ino())
                && (leave(file, path, meta.ino()) || std::fs::remove_file(path).is_ok())
        })
}

/// Leaves the file of an owner that died to who has the claim, if somebody has.
fn leave(file: &File, path: &Path, inode: u64) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).and_then(left_name);
    let Some(name) = name.filter(|_| is_claimed(file)) else { return false };
    std::fs::rename(path, path.with_file_name(format!("{name}-{inode}"))).is_ok()
}

/// The name of a segment, or its beginning, as of one that is left to somebody.
pub(super) fn left_name(name: &str) -> Option<String> {
    Some(format!("{LEFT}{}", name.strip_prefix(SEGMENTS)?))
}

/// Removes a file that was left to somebody who has ended since.
pub(super) fn remove_if_unclaimed(path: &Path) {
    if options().open(path).is_ok_and(|file| !is_claimed(&file)) {
        let _ = std::fs::remove_file(path);
    }
}

/// Whether `tcam run` wants the counters of a dead endpoint, and removes what it left.
fn is_claimed(file: &File) -> bool {
    let word = |at: usize| {
        let mut word = [0; 8];
        file.read_exact_at(&mut word, at as u64).ok().map(|()| u64::from_ne_bytes(word))
    };
    let shows = word(IDENTITY) == Some(MAGIC) && word(COUNTERS) == Some(VERSION);
    let job = word(JOB).filter(|&job| shows && job != 0);
    job.is_some_and(|job| connect_to(&live::claim_of(job)).is_ok())
}

fn connect_to(name: &str) -> rustix::io::Result<()> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)
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
pub(super) fn own_start() -> u64 {
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
