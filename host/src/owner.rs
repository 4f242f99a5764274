// SPDX-License-Identifier: BSD-2-Clause
//! Owners of files: how a complete file gets its name, whether its owner is alive, and the removal
//! of files of dead owners.
//!
//! An owner holds a lock (`flock`) on its file while it lives; the kernel releases it however the
//! owner dies. A process that gets the lock knows that the owner is dead. A forked child also holds
//! the lock and may outlive the owner. So while the lock is held, the process that the
//! segment's header names is checked as well, unless the check is [brief](Look::Briefly) or that
//! process is not visible from here. An owner whose state cannot be determined, for lack of
//! descriptors, is not considered dead.
//!
//! Before a process removes the segment of a dead endpoint, it marks the segment as dead. Peers
//! that have it mapped notice the mark at their next operation, and not only at their next periodic
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
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::{
    directory::{self, Directory, is_short},
    live::{COUNTERS, DEAD, JOB, MAGIC, MAGIC_AT, NAMESPACE, OPEN, PID, STARTED, STATE, VERSION},
    names::{CLAIM, DOORBELL, LEFT, NEW, SEGMENT_NAME, claim_of, doorbell_of, name_of, prefix},
};

/// In the lower 32 bits, the number of this process's PID namespace, in which process ids are
/// valid. In the upper 32 bits, the number of its time namespace, in which start times are valid,
/// or 0 on older kernels, which have no time namespaces. The whole is 0 if the PID namespace is not
/// known.
pub static PROCESS_NAMESPACE: LazyLock<u64> = LazyLock::new(|| {
    let number = |kind| std::fs::metadata(format!("/proc/self/ns/{kind}")).map(|meta| meta.ino());
    number("pid").map_or(0, |pid| number("time").unwrap_or(0) << 32 | pid)
});

/// True if `/proc` numbers processes as this namespace does. After `unshare --pid` without a new
/// mount, `/proc` is still that of the parent namespace.
static PROC_IS_OURS: LazyLock<bool> = LazyLock::new(|| {
    std::fs::read_link("/proc/self")
        .is_ok_and(|number| number == Path::new(&std::process::id().to_string()))
});

/// How thoroughly to check an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Checks only whether any process holds the lock. This takes 3 us.
    Briefly,
    /// If a process holds the lock, checks the owner's process as well. This takes 10 us.
    Closely,
}

/// Locks a file if no other process holds the lock. Returns true if this open file holds it now.
#[must_use]
pub fn try_lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Returns true if the owner of the file with this name and inode is alive, or if that cannot be
/// determined. The file of a dead owner is removed. `process` is the owner's id and start time, if
/// the owner is visible from here. Only this process is checked if the file no longer exists.
#[must_use]
pub fn check_alive(name: &str, inode: u64, process: Option<(u32, u64)>, look: Look) -> bool {
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
        // The file was removed or replaced, so only the owner's process can be checked, if it is
        // visible. The owner need not be dead: a user may have removed the file.
        _ => process.is_none_or(|(pid, started)| process_lives(pid, started)),
    }
}

/// Removes the file of an owner that died; see [`remove`]. Returns true if it was removed.
#[must_use]
pub fn remove_if_dead(directory: &Directory, name: &str) -> bool {
    let Ok(file) = directory.file(name) else { return false };
    if !try_lock(&file) && !has_ended(&file) {
        return false;
    }
    tracing::info!("removing {name}, whose owner died");
    remove(directory, &file, name)
}

/// Returns true if the process that made a segment has ended, although a child of that process
/// holds the lock. Returns false if the process is not visible, and for files that are not
/// segments.
fn has_ended(file: &File) -> bool {
    let mut header = [0; NAMESPACE + 8];
    if file.read_exact_at(&mut header, 0).is_err() {
        return false;
    }
    let word = |at: usize| header[at..].first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
    let started = word(STARTED);
    word(MAGIC_AT) == MAGIC
        && is_visible(word(NAMESPACE))
        && !process_lives(word(PID) as u32, started)
}

/// Returns true if processes of this namespace have the same ids here.
fn is_visible(namespace: u64) -> bool {
    namespace != 0 && namespace == *PROCESS_NAMESPACE
}

/// Marks the file of a dead owner as dead, and removes it, or renames it for a process that claims
/// it. Removes the doorbell of a segment as well. Returns false if another process has removed the
/// file, or does so now.
pub fn remove(directory: &Directory, file: &File, name: &str) -> bool {
    // A second lock serialises removals. Without it, the name could belong to another file by now.
    // A creator that waits for the first lock sees that its file is unlinked, and starts over.
    take_turn(file)
        && file.metadata().is_ok_and(|meta| {
            directory.inode(name) == Some(meta.ino()) && {
                mark_dead(file);
                if let Some(endpoint) = name.strip_prefix(SEGMENT_NAME) {
                    let _ = directory.remove(&format!("{DOORBELL}{endpoint}"));
                }
                leave_to_claimant(directory, file, name, meta.ino())
                    || directory.remove(name).is_ok()
            }
        })
}

/// Marks a segment as that of a dead owner, unless the owner closed it.
fn mark_dead(file: &File) {
    let mut state = [0; 4];
    let is_segment = word(file, MAGIC_AT) == Some(MAGIC);
    if is_segment
        && file.read_exact_at(&mut state, STATE as u64).is_ok()
        && u32::from_ne_bytes(state) == OPEN
    {
        let _ = file.write_all_at(&DEAD.to_ne_bytes(), STATE as u64);
    }
}

/// Leaves the file of a dead owner to the process that has claimed it, under another name. Returns
/// false if there is no such process.
fn leave_to_claimant(directory: &Directory, file: &File, name: &str, inode: u64) -> bool {
    let Some(left) = left_name(name).filter(|_| is_claimed(directory, file)) else { return false };
    directory.rename(name, &format!("{left}-{inode}")).is_ok()
}

/// Returns the prefix of the name under which a segment is left to a claimant; `None` if `name` is
/// not that of a segment. The suffix is a hyphen and the inode.
#[must_use]
pub fn left_name(name: &str) -> Option<String> {
    Some(format!("{LEFT}{}", name.strip_prefix(SEGMENT_NAME)?))
}

/// Removes a file that was left to a claimant, if the claimant has ended.
pub fn remove_if_unclaimed(directory: &Directory, name: &str) {
    if directory.file(name).is_ok_and(|file| !is_claimed(directory, &file)) {
        let _ = directory.remove(name);
    }
}

/// Returns true if a running `tcam run` claims the segment. That process reads the counters of the
/// segment, and then removes it.
fn is_claimed(directory: &Directory, file: &File) -> bool {
    let shows = word(file, MAGIC_AT) == Some(MAGIC) && word(file, COUNTERS) == Some(VERSION);
    let job = word(file, JOB).filter(|&job| shows && job != 0);
    let claim = job.and_then(|job| directory.file(&claim_of(job)).ok());
    // The attempt is to take a shared lock, because several processes may check at the same time.
    claim.is_some_and(|claim| flock(&claim, FlockOperation::NonBlockingLockShared).is_err())
}

fn word(file: &File, at: usize) -> Option<u64> {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, at as u64).ok().map(|()| u64::from_ne_bytes(word))
}

/// Takes the lock that serialises removals of this file; the owner's lock is another one. Returns
/// false if another open file has the lock.
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

/// Returns the time at which this process started, in clock ticks since boot; 0 if it is unknown.
/// Together with the process id, this time identifies the process uniquely.
#[must_use]
pub fn own_start() -> u64 {
    let stat = PROC_IS_OURS.then(|| stat_of(std::process::id()).ok()).flatten();
    stat.and_then(|stat| start_of(&stat)).unwrap_or_default()
}

/// Returns true if the process with this id and start time exists and is not a zombie, or if that
/// cannot be determined. It cannot if `started` is 0, because that process could not read its
/// start time, or if `/proc` is of another namespace.
fn process_lives(pid: u32, started: u64) -> bool {
    if started == 0 || !*PROC_IS_OURS {
        return true;
    }
    match stat_of(pid) {
        Ok(stat) => start_of(&stat) == Some(started),
        Err(error) => is_short(&error),
    }
}

/// Returns the text of `/proc/PID/stat`.
///
/// # Errors
/// There is no such process, or it cannot be read for lack of descriptors or memory.
pub fn stat_of(pid: u32) -> io::Result<String> {
    // The name of a process may contain any bytes.
    Ok(String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat"))?).into_owned())
}

/// Returns the time at which a process started, from the text of `/proc/PID/stat`; `None` for a
/// zombie. A process of which only the first thread has ended is not a zombie.
#[must_use]
pub fn start_of(stat: &str) -> Option<u64> {
    // proc_pid_stat(5): the state follows the name, which may hold anything but
    // ends at the last parenthesis; the start time is field 22.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let threads: u32 = fields.nth(16)?.parse().ok()?;
    let started = fields.nth(1)?.parse().ok()?;
    (!matches!(state, "Z" | "X") || threads > 1).then_some(started)
}

/// Identifies an endpoint or a process uniquely, also after its port and process id are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Port of the endpoint; 0 for a process without an endpoint.
    pub port: u16,
    /// Inode of the endpoint's segment; without an endpoint, [`PROCESS_NAMESPACE`].
    pub inode: u64,
    /// Process id.
    pub pid: u32,
    /// The time at which the process started, in clock ticks since boot.
    pub started: u64,
}

impl Owner {
    /// Identifies this process, without an endpoint.
    #[must_use]
    pub fn of_process() -> Self {
        let pid = std::process::id();
        Self { port: 0, inode: *PROCESS_NAMESPACE, pid, started: own_start() }
    }

    /// Returns true if the owner is still alive, or if that cannot be determined.
    #[must_use]
    pub fn check_alive(&self) -> bool {
        if self.port == 0 {
            return !is_visible(self.inode) || process_lives(self.pid, self.started);
        }
        check_alive(&name_of(self.port), self.inode, Some((self.pid, self.started)), Look::Closely)
    }
}

/// Number of endpoints of this process.
static OWN: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of endpoints of this process.
pub fn own_count() -> usize {
    OWN.load(Ordering::Relaxed)
}

/// Counts as one endpoint in [`own_count`], until it is dropped.
#[derive(Debug)]
pub struct OwnEndpoint(());

impl OwnEndpoint {
    /// Counts one more endpoint.
    #[must_use]
    #[allow(clippy::new_without_default, reason = "it counts")]
    pub fn new() -> Self {
        OWN.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for OwnEndpoint {
    fn drop(&mut self) {
        OWN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Attempts to take a segment name that other processes remove at the same time.
const TRIES: usize = 100;
/// Number of waits for a name to become free. A process that has found the owner of the name dead
/// may be about to remove the file.
const WAITS: u32 = 50;
/// Length of each wait.
const WAIT: Duration = Duration::from_millis(1);

/// Calls `take` until the name is free. Removes the file of a dead process with this name.
fn take_free<T>(name: &str, mut take: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let mut waits = 0..WAITS;
    for _ in 0..TRIES {
        match take() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let directory = Directory::open()?;
                if !remove_if_dead(&directory, name) && directory.inode(name).is_some() {
                    waits.next().ok_or(Errno::ADDRINUSE)?;
                    std::thread::sleep(WAIT);
                }
            }
            taken => return taken,
        }
    }
    Err(Errno::ADDRINUSE.into())
}

/// Makes and locks a file. The file of a dead process with the same name is removed.
///
/// # Errors
/// `EADDRINUSE` if the owner of the name is alive; otherwise like [`directory::create_locked`].
pub fn take_name(name: &str) -> io::Result<File> {
    take_free(name, || directory::create_locked(name))
}

/// Gives a segment its final name. Peers find it complete, or not at all. The segment of a dead
/// process with that name is removed.
///
/// # Errors
/// `EADDRINUSE` if the owner of the name is alive; otherwise if the directory cannot be changed.
pub fn publish(new: &str, port: u16) -> io::Result<()> {
    let (directory, name) = (Directory::open()?, name_of(port));
    take_free(&name, || directory.rename_new(new, &name))
}

/// Removes the files of an endpoint of this process, unless a later endpoint has its port.
pub fn remove_files(port: u16, inode: u64) {
    let Ok(directory) = Directory::open() else { return };
    let name = name_of(port);
    let found = directory.inode(&name);
    // If the segment was removed from outside, no later endpoint has bound the doorbell yet.
    if found.is_none_or(|found| found == inode) {
        let _ = std::fs::remove_file(doorbell_of(port));
    }
    if found == Some(inode) {
        let _ = directory.remove(&name);
    }
}

/// Returns true if this user has a segment for a port on this host. Its owner may be dead.
#[must_use]
pub fn has_segment(port: u16) -> bool {
    Directory::open().is_ok_and(|directory| directory.inode(&name_of(port)).is_some())
}

/// Removes the files of dead owners, in any network namespace. Returns the number of live endpoints
/// in the network namespace of this process.
pub fn clean_up() -> usize {
    let Ok(directory) = Directory::open() else { return 0 };
    let names = |prefix| directory.names(prefix).into_iter().flatten();
    names(LEFT).for_each(|name| remove_if_unclaimed(&directory, &name));
    for name in names(CLAIM).chain(names(NEW)) {
        let _ = remove_if_dead(&directory, &name);
    }
    let own = prefix();
    let living = names(SEGMENT_NAME).filter(|name| !remove_if_dead(&directory, name));
    let living = living.filter(|name| name.starts_with(&own)).count();
    names(DOORBELL).for_each(|name| remove_if_deserted(&directory, &name));
    living
}

/// Removes a doorbell if its port has no segment. An endpoint that opens at the port first needs
/// the name of a new segment. This process takes that name meanwhile, so that it does not remove
/// the doorbell of a later endpoint.
fn remove_if_deserted(directory: &Directory, doorbell: &str) {
    let is_deserted = || {
        let segment = doorbell.replacen(DOORBELL, SEGMENT_NAME, 1);
        directory.inode(&segment).is_none()
    };
    let new = doorbell.replacen(DOORBELL, NEW, 1);
    if is_deserted()
        && let Ok(_held) = directory::create_locked(&new)
    {
        if is_deserted() {
            let _ = directory.remove(doorbell);
        }
        let _ = directory.remove(&new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_field_22_and_a_zombie_has_none() {
        let stat = |state, threads: u32| {
            let field = |n| format!("{} ", if n == 20 { threads } else { n });
            format!("12 (a) b) {state} {}", (4..40).map(field).collect::<String>())
        };
        assert_eq!(
            (start_of(&stat("S", 1)), start_of(&stat("Z", 1)), start_of("")),
            (Some(22), None, None)
        );
        // The first thread ended; others still run.
        assert_eq!(start_of(&stat("Z", 2)), Some(22));
    }

    #[test]
    fn an_owner_without_a_file_or_a_start_time_lives() {
        let alive = |started| check_alive("none", 1, Some((1, started)), Look::Closely);
        assert!(alive(0));
        assert!(!alive(u64::MAX));
    }

    #[test]
    fn a_process_whose_name_is_not_utf_8_lives() {
        let thread = std::thread::spawn(|| {
            rustix::thread::set_name(c"gr\xc3").unwrap();
            // `/proc` shows a thread as it shows a process.
            let number = rustix::thread::gettid().as_raw_pid().cast_unsigned();
            let started = start_of(&stat_of(number).unwrap()).unwrap();
            assert!(process_lives(number, started));
        });
        thread.join().unwrap();
    }
}
