// SPDX-License-Identifier: BSD-2-Clause
//! The pool of table entries that the endpoints and shared receive contexts of a user on this host
//! share (`FI_TCAM_POOL=node`). There is one file for each number of entries and of engines
//! (`FI_TCAM_POOL_ENGINES`), among which the entries are divided. The file contains the words of a
//! [`Ledger`] for each engine. Endpoints and contexts are assigned to the engines in turn.
//!
//! ```text
//!  0      header: magic number | entries | engines | number of members that ever joined
//!  64     state
//!  4 K    members: 1024 cache lines: word | pid, port | inode | started | reserved, max
//!  68 K   the next engine, without a header, or the end
//! ```
//!
//! Every member holds a shared lock (`flock`) on the file. A process that gets the exclusive lock
//! knows that the pool has no members, and reinitialises the words or removes the file. Joining,
//! leaving and reclaiming from dead members are serialised by the file's record lock (`fcntl`).
//! Taking and returning entries needs no lock. An endpoint is alive while the owner of its segment
//! is, and a shared receive context while its process is (`owner.rs`).
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{
    fs::File,
    io,
    os::unix::fs::MetadataExt as _,
    sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering},
    time::{Duration, Instant},
};

use matching::pool::{EntryPool, Ledger, MAX_MEMBERS, PoolWords, Refusal, Share};
use memmap2::{MmapOptions, MmapRaw};
use parking_lot::Mutex;
use rustix::{
    fs::{FlockOperation, fcntl_lock, flock, ftruncate},
    io::{Errno, retry_on_intr},
};

use crate::{
    directory::{Directory, allocate},
    names::namespace,
    owner::Owner,
};

const MAGIC_AT: usize = 0;
const ENTRIES: usize = 8;
const ENGINES: usize = 16;
const JOINED: usize = 24;
const STATE: usize = 64;
const MEMBERS: usize = 4096;
const MEMBER: usize = 64;
/// Bytes of one engine.
const LENGTH: usize = MEMBERS + MAX_MEMBERS as usize * MEMBER;

/// Offsets of a member's words.
const WORD: usize = 0;
const PROCESS: usize = 8;
const INODE: usize = 16;
const STARTED: usize = 24;
const SHARE: usize = 32;

/// "tcampol" and the version of this layout.
const MAGIC: u64 = u64::from_be_bytes(*b"tcampol\x02");

/// Maximum number of members that one call of [`NodePool::look_around`] checks.
const MEMBERS_PER_LOOK: usize = 8;

/// Maximum time for which an exit waits for the locks.
const AT_EXIT: Duration = Duration::from_millis(200);

/// A record lock belongs to a process, and closing any descriptor of the file releases the lock. So
/// the threads of a process take turns, from before they open the file until they close or unlock
/// it.
static TURN: Mutex<()> = Mutex::new(());

/// Holds the record lock until it is dropped. Meanwhile no other process adds or removes members.
struct RecordLock<'a>(&'a File);

impl<'a> RecordLock<'a> {
    fn lock(file: &'a File, how: FlockOperation) -> io::Result<Self> {
        // Signals of the program may interrupt the call.
        retry_on_intr(|| fcntl_lock(file, how))?;
        Ok(Self(file))
    }
}

impl Drop for RecordLock<'_> {
    fn drop(&mut self) {
        let _ = fcntl_lock(self.0, FlockOperation::Unlock);
    }
}

/// The mapped file, and the engine in use.
#[derive(Debug)]
struct Map {
    bytes: MmapRaw,
    engine: usize,
}

impl Map {
    /// A word of the file header.
    fn header(&self, offset: usize) -> &AtomicU64 {
        self.word_at(offset)
    }

    /// A word of the engine.
    fn word(&self, offset: usize) -> &AtomicU64 {
        self.word_at(self.engine * LENGTH + offset)
    }

    fn word_at(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.bytes.len());
        // SAFETY: aligned and within the mapping, which lives as long as self.
        // Only atomics are ever referenced; other processes use them as such.
        unsafe { AtomicU64::from_ptr(self.bytes.as_mut_ptr().add(offset).cast()) }
    }

    fn field(&self, number: u16, offset: usize) -> &AtomicU64 {
        self.word(MEMBERS + usize::from(number % MAX_MEMBERS) * MEMBER + offset)
    }

    /// Returns the owner of a member number; `None` if the number is free.
    fn owner(&self, number: u16) -> Option<Owner> {
        let process = self.field(number, PROCESS).load(Ordering::Acquire);
        (process != 0).then(|| Owner {
            pid: (process >> 32) as u32,
            port: process as u16,
            inode: self.field(number, INODE).load(Ordering::Relaxed),
            started: self.field(number, STARTED).load(Ordering::Relaxed),
        })
    }

    fn share(&self, number: u16) -> Share {
        let share = self.field(number, SHARE).load(Ordering::Relaxed);
        Share { reserved: (share >> 32) as u32, max: share as u32 }
    }

    fn set_owner(&self, number: u16, owner: &Owner, share: Share) {
        let share = u64::from(share.reserved) << 32 | u64::from(share.max);
        self.field(number, SHARE).store(share, Ordering::Relaxed);
        self.field(number, INODE).store(owner.inode, Ordering::Relaxed);
        self.field(number, STARTED).store(owner.started, Ordering::Relaxed);
        let process = u64::from(owner.pid) << 32 | 1 << 16 | u64::from(owner.port);
        self.field(number, PROCESS).store(process, Ordering::Release);
    }

    fn clear_owner(&self, number: u16) {
        self.field(number, PROCESS).store(0, Ordering::Release);
    }
}

impl PoolWords for Map {
    type Word = AtomicU64;

    fn state(&self) -> &AtomicU64 {
        self.word(STATE)
    }

    fn member(&self, number: u16) -> &AtomicU64 {
        self.field(number, WORD)
    }
}

/// Prefix of the names of pools.
const NAME_PREFIX: &str = "pool.";

fn name_of(entries: u32, engines: u32) -> String {
    match engines {
        1 => format!("{NAME_PREFIX}{}.{entries}", namespace()),
        _ => format!("{NAME_PREFIX}{}.{entries}x{engines}", namespace()),
    }
}

/// Removes pools without members.
pub fn clean_up() {
    let Ok(directory) = Directory::open() else { return };
    for name in directory.names(NAME_PREFIX).into_iter().flatten() {
        let _turn = TURN.lock();
        if let Ok(file) = directory.file(&name) {
            remove_if_alone(&directory, &file, &name);
        }
    }
}

/// Removes a pool if it has no members.
fn remove_if_alone(directory: &Directory, file: &File, name: &str) {
    let alone = fcntl_lock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
        && flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
    // A process that waits for the lock sees that its file is unlinked and starts over.
    if alone && file.metadata().is_ok_and(|meta| meta.nlink() > 0) {
        let _ = directory.remove(name);
    }
}

/// Membership of an endpoint or of a shared receive context in the pool.
#[derive(Debug)]
pub struct NodePool {
    ledger: Ledger<Map>,
    /// Entries of the engine that the member joined.
    entries: u32,
    number: u16,
    share: Share,
    name: String,
    /// Holds the shared lock; `None` after leaving.
    file: Mutex<Option<File>>,
    /// The process that joined. A forked child is not a member.
    pid: u32,
    /// Member that the next check begins with.
    next: AtomicU16,
    /// True after the log message that the pool is damaged.
    has_logged_damage: AtomicBool,
}

impl NodePool {
    /// Makes an endpoint or a shared receive context a member of one engine of the pool of
    /// `entries`. Creates the pool if it does not exist.
    ///
    /// # Errors
    /// `EACCES` if another user's file is in the way, `EPROTO` if the file is damaged, `ENOSPC` if
    /// `/dev/shm` is full or the engine has no room for another member, `EINVAL` if more entries
    /// would be reserved than exist.
    pub fn join(entries: u32, engines: u32, share: Share, owner: &Owner) -> io::Result<Self> {
        let name = name_of(entries, engines);
        loop {
            let _turn = TURN.lock();
            let directory = Directory::make()?;
            let file = match directory.file_or_new(&name) {
                // The directory was removed with its last file.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.inspect_err(|error| {
                    tracing::error!("cannot open the pool {name}: {error}");
                })?,
            };
            let lock = RecordLock::lock(&file, FlockOperation::LockExclusive)?;
            if file.metadata()?.nlink() == 0 {
                continue;
            }
            let joined = Self::join_file(&file, [entries, engines], &name, share, owner);
            if joined.is_err() {
                remove_if_alone(&directory, &file, &name);
            }
            drop(lock);
            let (ledger, number) = joined?;
            return Ok(Self {
                ledger,
                entries: entries / engines,
                number,
                share,
                name,
                file: Mutex::new(Some(file)),
                pid: std::process::id(),
                next: AtomicU16::new(0),
                has_logged_damage: AtomicBool::new(false),
            });
        }
    }

    fn join_file(
        file: &File,
        [entries, engines]: [u32; 2],
        name: &str,
        share: Share,
        owner: &Owner,
    ) -> io::Result<(Ledger<Map>, u16)> {
        let damaged = |_| -> io::Error {
            tracing::error!("the pool {name} is damaged or of another version of tcam");
            Errno::PROTO.into()
        };
        let length = LENGTH * engines as usize;
        let fresh = flock(file, FlockOperation::NonBlockingLockExclusive).is_ok();
        if fresh {
            // Discard the contents of a pool without members.
            ftruncate(file, 0).map_err(io::Error::from)?;
            allocate(file, length, "pool")?;
        }
        // An access beyond the end of a shorter file would raise SIGBUS.
        if file.metadata()?.len() != length as u64 {
            return Err(damaged(Refusal::Damaged));
        }
        let mut map = Map { bytes: MmapOptions::new().len(length).map_raw(file)?, engine: 0 };
        if fresh {
            map.header(ENTRIES).store(u64::from(entries), Ordering::Relaxed);
            map.header(ENGINES).store(u64::from(engines), Ordering::Relaxed);
            map.header(MAGIC_AT).store(MAGIC, Ordering::Relaxed);
        }
        flock(file, FlockOperation::NonBlockingLockShared).map_err(io::Error::from)?;
        let header = [MAGIC_AT, ENTRIES, ENGINES].map(|at| map.header(at).load(Ordering::Relaxed));
        if header != [MAGIC, entries.into(), engines.into()] {
            return Err(damaged(Refusal::Damaged));
        }
        let joined = map.header(JOINED).fetch_add(1, Ordering::Relaxed);
        map.engine = (joined % u64::from(engines)) as usize;
        let entries = entries / engines;
        let ledger = Ledger::new(map, entries);
        for number in 0..MAX_MEMBERS {
            reclaim_if_dead(&ledger, entries, number).map_err(damaged)?;
        }
        let map = ledger.words();
        let (taken, free): (Vec<u16>, Vec<u16>) =
            (0..MAX_MEMBERS).partition(|&number| map.owner(number).is_some());
        let reserved = taken.iter().map(|&number| u64::from(map.share(number).reserved));
        let reserved = reserved.sum::<u64>() + u64::from(share.reserved);
        if reserved > u64::from(entries) {
            let members = taken.len() + 1;
            tracing::error!(
                "FI_TCAM_POOL_RESERVED, FI_TCAM_POOL_BUFFERS: {members} endpoints would reserve \
                 {reserved} entries of an engine of {entries}"
            );
            return Err(Errno::INVAL.into());
        }
        let Some(&number) = free.first() else {
            tracing::error!(
                "cannot join the pool {name}: it has {MAX_MEMBERS} endpoints, the maximum"
            );
            return Err(Errno::NOSPC.into());
        };
        map.set_owner(number, owner, share);
        ledger.join(number, share).map_err(damaged)?;
        Ok((ledger, number))
    }

    /// Reclaims the entries of dead members. Each call checks up to `MEMBERS_PER_LOOK` members.
    pub fn look_around(&self) {
        let map = self.ledger.words();
        let first = self.next.load(Ordering::Relaxed);
        let members = (0..MAX_MEMBERS).map(|step| (first + step) % MAX_MEMBERS);
        let members = members.filter(|&number| number != self.number);
        for number in members.filter(|&number| map.owner(number).is_some()).take(MEMBERS_PER_LOOK) {
            self.next.store((number + 1) % MAX_MEMBERS, Ordering::Relaxed);
            if map.owner(number).is_some_and(|owner| !owner.check_alive())
                && let Some(file) = &*self.file.lock()
                && let Some(_turn) = TURN.try_lock()
                && let Ok(_lock) = RecordLock::lock(file, FlockOperation::NonBlockingLockExclusive)
                && reclaim_if_dead(&self.ledger, self.entries, number).is_err()
            {
                self.log_damage();
            }
        }
    }

    /// Leaves the pool if the process exits, unless other members keep the locks for long. This
    /// thread may hold them itself, if a signal handler calls `exit`. Other members reclaim the
    /// entries of a member that has not left once its process has ended.
    pub fn leave_at_exit(&self) {
        if self.pid != std::process::id() {
            return;
        }
        let end = Instant::now() + AT_EXIT;
        let Some(_turn) = TURN.try_lock_until(end) else { return };
        let file = self.file.try_lock_until(end).and_then(|mut file| file.take());
        let Some(file) = file else { return };
        loop {
            match RecordLock::lock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(_lock) => return self.leave(&file),
                Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(1)),
                Err(_) => return,
            }
        }
    }

    /// Gives all entries back to the pool and leaves it. The last member removes the file. The
    /// caller holds the record lock.
    fn leave(&self, file: &File) {
        if self.ledger.leave(self.number, self.share).is_err() {
            self.log_damage();
        }
        self.ledger.words().clear_owner(self.number);
        if let Ok(directory) = Directory::open() {
            remove_if_alone(&directory, file, &self.name);
        }
    }

    #[cold]
    fn log_damage(&self) {
        if !self.has_logged_damage.swap(true, Ordering::Relaxed) {
            tracing::error!(
                "the pool {} is damaged and gives no more entries: all elements spill",
                self.name
            );
        }
    }

    fn check(&self, done: Result<(), Refusal>) -> Result<(), Refusal> {
        if done == Err(Refusal::Damaged) {
            self.log_damage();
        }
        done
    }
}

/// Reclaims the entries of a member if it is dead. The caller holds the record lock.
fn reclaim_if_dead(ledger: &Ledger<Map>, entries: u32, number: u16) -> Result<(), Refusal> {
    let map = ledger.words();
    let Some(owner) = map.owner(number).filter(|owner| !owner.check_alive()) else { return Ok(()) };
    tracing::info!("reclaiming the pool entries of process {}, which died", owner.pid);
    let share = map.share(number);
    if share.reserved > entries {
        return Err(Refusal::Damaged);
    }
    ledger.leave(number, share)?;
    map.clear_owner(number);
    Ok(())
}

impl EntryPool for NodePool {
    fn take(&self) -> Result<(), Refusal> {
        self.check(self.ledger.take(self.number, self.share))
    }

    fn give_back(&self) {
        let _ = self.check(self.ledger.give_back(self.number, self.share));
    }

    fn is_half_taken(&self) -> bool {
        self.ledger.is_half_taken()
    }
}

impl Drop for NodePool {
    /// Leaves the pool, except in a forked child.
    fn drop(&mut self) {
        if self.pid != std::process::id() {
            return;
        }
        let _turn = TURN.lock();
        let Some(file) = self.file.get_mut().take() else { return };
        if let Ok(_lock) = RecordLock::lock(&file, FlockOperation::LockExclusive) {
            self.leave(&file);
        }
    }
}

#[cfg(test)]
#[path = "node_pool_tests.rs"]
mod tests;
