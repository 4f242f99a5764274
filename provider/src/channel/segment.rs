// SPDX-License-Identifier: BSD-2-Clause
//! The shared segment of an endpoint: a file in `/dev/shm` that only its user
//! may open.
//!
//! ```text
//!  0      header: identity | started, process namespace | state | tail | head | bell |
//!         sleeps | intent | reach | cores
//!  2 K    counters for `tcam watch`
//!  4 K    peers: 4096 words, the address of each endpoint that sends here
//!  36 K   buffer states: 64 words, a line each
//!  40 K   ring: 1024 slots of 256 bytes
//!  296 K  buffers: 64 of 16 KiB
//!  1320 K end
//! ```
//!
//! The owner holds a lock on the file (`flock`) as long as it lives, however it
//! dies: who gets the lock knows that the owner is gone and removes the file ([`super::owner`]).
//! The pages are reserved when the file is made, so that a full `/dev/shm` is an
//! error then and not a `SIGBUS` later.
//!
//! Rejected: locks of POSIX (the first descriptor that is closed releases them, whoever
//! opened it) or process ids in the header alone (another process namespace has others).
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{
    fs::{File, OpenOptions},
    io,
    net::SocketAddrV4,
    os::{
        fd::AsRawFd as _,
        unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

use ffi::Errno;
use memmap2::{MmapOptions, MmapRaw};
pub(crate) use nic::live::PEERS;
use nic::live::{self, ADDRESS, IDENTITY, Live, MAGIC, OPEN, PID, SEGMENTS, STARTED, STATE};
use rustix::{
    fs::{FallocateFlags, FlockOperation, OFlags, fallocate, flock},
    io::{fcntl_dupfd_cloexec, retry_on_intr},
    process::{Resource, getrlimit},
};

use super::{
    bytes::SharedBytes,
    cores::{self, Cores},
    lines::LINE,
    owner::{Look, Owner, PROCESS_NAMESPACE, own_start, owner_lives, remove_if_dead},
    wire::{INLINE, PAYLOAD, SLOT},
};

/// Slots of a ring; a power of two.
pub(crate) const SLOTS: u64 = 1024;
/// Buffers of a segment.
pub(crate) const BUFFERS: usize = 64;
/// Bytes of a buffer.
pub(crate) const BUFFER: usize = 16 * 1024;

/// Number of the owner's process namespace; 0 if it does not know.
pub(super) const PROCESSES: usize = STARTED + 8;
const TAIL: usize = 4 * LINE;
const HEAD: usize = 6 * LINE;
const BELL: usize = 8 * LINE;
const BELL_NAME: usize = BELL + 8;
const SLEEPS: usize = 10 * LINE;
const INTENT: usize = 12 * LINE;
const REACH: usize = 14 * LINE;
/// The processors that the owner may run on.
pub(super) const CORES: usize = 16 * LINE;
const PEER_TABLE: usize = 4096;
const BUFFER_STATES: usize = PEER_TABLE + PEERS * 8;
const RING: usize = BUFFER_STATES + BUFFERS * LINE;
const BUFFER_AREA: usize = RING + SLOTS as usize * SLOT;
/// Length of a segment in bytes.
pub(crate) const LENGTH: usize = BUFFER_AREA + BUFFERS * BUFFER;
const _: () = assert!(LENGTH == live::SEGMENT);
const _: () = assert!(CORES + 8 * cores::WORDS <= live::COUNTERS);

pub(super) const DIRECTORY: &str = "/dev/shm";

const CLOSED: u32 = 2;

/// What is known of a segment's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// It holds its segment.
    Alive,
    /// It closed its endpoint.
    Closed,
    /// It died without closing.
    Dead,
}

/// A mapped segment, of this endpoint or of a peer.
#[derive(Debug)]
pub(crate) struct Segment {
    map: MmapRaw,
    path: PathBuf,
    inode: u64,
    /// The owner's file with its lock.
    lock: Option<File>,
}

// SAFETY: the mapping is shared with other processes anyway; every access goes
// through atomics or raw copies whose callers state why they do not overlap.
unsafe impl Sync for Segment {}

/// Number of the network namespace, in which ports are numbered: that in which this was
/// first asked for.
#[cfg(not(test))]
pub(super) fn namespace() -> u64 {
    static NAMESPACE: AtomicU64 = AtomicU64::new(0);
    let known = NAMESPACE.load(Ordering::Relaxed);
    if known != 0 {
        return known;
    }
    let number = std::fs::metadata("/proc/self/ns/net").map_or(0, |meta| meta.ino());
    NAMESPACE.store(number, Ordering::Relaxed);
    number
}

/// Has a process that a test starts find the segments of that test.
#[cfg(test)]
pub(super) const SPACE: &str = "TCAM_TEST_SPACE";

/// Tests use ports of their choice: those of other programs, and of the same tests run at the
/// same time, are elsewhere.
#[cfg(test)]
pub(super) fn namespace() -> u64 {
    let inherited = std::env::var(SPACE).ok().and_then(|space| space.parse().ok());
    inherited.unwrap_or_else(|| std::process::id().into())
}

/// `/dev/shm/tcam.<user>.<network namespace>.`
pub(super) fn prefix(user: u32) -> String {
    format!("{SEGMENTS}{user}.{}.", namespace())
}

pub(super) fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

pub(super) fn path_of(user: u32, port: u16) -> PathBuf {
    Path::new(DIRECTORY).join(format!("{}{port}", prefix(user)))
}

pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags((OFlags::NOFOLLOW | OFlags::CLOEXEC).bits().cast_signed());
    options
}

pub(super) fn try_lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// The same file with a number that no standard stream has: where these are closed, as those of
/// daemons are, what the program prints would go into it.
pub(super) fn behind_streams(file: File) -> io::Result<File> {
    if file.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(file);
    }
    Ok(fcntl_dupfd_cloexec(&file, libc::STDERR_FILENO + 1)?.into())
}

/// Gives a new file its memory at once: a full `/dev/shm` would be a `SIGBUS` later.
/// Programs have signals of their own, which interrupt this.
pub(super) fn give_memory(file: &File, length: usize, what: &str) -> io::Result<()> {
    // Beyond it, the kernel ends the process (SIGXFSZ).
    if getrlimit(Resource::Fsize).current.is_some_and(|most| most < length as u64) {
        tracing::error!(
            "a {what} of {length} bytes is larger than files may be here: raise ulimit -f"
        );
        return Err(rustix::io::Errno::FBIG.into());
    }
    let reserve = || fallocate(file, FallocateFlags::empty(), 0, length as u64);
    let given = match retry_on_intr(reserve).map_err(io::Error::from) {
        // Not every file system can, of those that are no tmpfs.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            file.write_all_at(&vec![0; length], 0)
        }
        given => given,
    };
    given.inspect_err(|error| {
        tracing::error!(
            "{DIRECTORY} has no room for a {what} of {length} bytes ({error}): \
             enlarge it (mount -o remount,size=...) or remove what fills it"
        );
    })
}

/// Segments that this process owns.
static OWN: AtomicUsize = AtomicUsize::new(0);

/// Endpoints of this process.
pub(crate) fn own_count() -> usize {
    OWN.load(Ordering::Relaxed)
}

/// Whether a port of this host has a segment of this user.
pub(crate) fn is_there(port: u16) -> bool {
    path_of(user(), port).exists()
}

impl Segment {
    /// Makes the segment of an endpoint with this address.
    ///
    /// # Errors
    /// `EADDRINUSE` if a live endpoint has the port, `ENOSPC` if `/dev/shm` is full.
    pub(crate) fn create(address: SocketAddrV4) -> Result<Self, Errno> {
        let path = path_of(user(), address.port());
        let file = loop {
            match options().create_new(true).open(&path) {
                Ok(file) => {
                    retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))
                        .map_err(io::Error::from)?;
                    if file.metadata()?.nlink() > 0 {
                        break behind_streams(file)?;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if !remove_if_dead(&path) && path.exists() {
                        return Err(Errno::EADDRINUSE);
                    }
                }
                Err(error) => {
                    tracing::error!(
                        "cannot make {} ({error}): {DIRECTORY} must be a tmpfs that users may \
                         write to",
                        path.display()
                    );
                    return Err(error.into());
                }
            }
        };
        let segment = Self::reserve(&file, &path, address);
        if segment.is_err() {
            let _ = std::fs::remove_file(&path);
        }
        let mut segment = segment?;
        segment.lock = Some(file);
        OWN.fetch_add(1, Ordering::Relaxed);
        Ok(segment)
    }

    fn reserve(file: &File, path: &Path, address: SocketAddrV4) -> Result<Self, Errno> {
        give_memory(file, LENGTH, "segment")?;
        let segment = Self::map(file, path)?;
        segment.word32(PID).store(std::process::id(), Ordering::Relaxed);
        segment.word(ADDRESS).store(pack(address), Ordering::Relaxed);
        segment.word(STARTED).store(own_start(), Ordering::Relaxed);
        segment.word(PROCESSES).store(*PROCESS_NAMESPACE, Ordering::Relaxed);
        segment.show_cores(&Cores::of_thread());
        segment.word(IDENTITY).store(MAGIC, Ordering::Relaxed);
        segment.word32(STATE).store(OPEN, Ordering::Release);
        Ok(segment)
    }

    fn map(file: &File, path: &Path) -> Result<Self, Errno> {
        let map = MmapOptions::new().len(LENGTH).map_raw(file).map_err(|error| {
            if error.kind() != io::ErrorKind::WouldBlock {
                return error.into();
            }
            // Callers would try again for ever.
            tracing::error!(
                "no more memory may be locked, as the program wants of all that it maps \
                 (mlockall): raise ulimit -l"
            );
            Errno::ENOMEM
        })?;
        let inode = file.metadata()?.ino();
        Ok(Self { map, path: path.to_owned(), inode, lock: None })
    }

    /// Opens the segment of the endpoint that holds a port of this host.
    ///
    /// # Errors
    /// `ECONNREFUSED` nobody has it, `EACCES` another user has it, `EPROTO` it
    /// is damaged or of another version of tcam.
    pub(crate) fn open(port: u16) -> Result<Self, Errno> {
        let path = path_of(user(), port);
        let file = match options().open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Self::explain_absence(port));
            }
            Err(error) => return Err(error.into()),
        };
        let meta = file.metadata()?;
        if meta.uid() != user() || meta.mode() & 0o077 != 0 {
            tracing::warn!("{} belongs to another user or is open to others", path.display());
            return Err(Errno::EACCES);
        }
        // A file shorter than the mapping would be a SIGBUS later.
        if meta.len() != LENGTH as u64 {
            tracing::warn!("{} has a wrong length", path.display());
            return Err(Errno::EPROTO);
        }
        let segment = Self::map(&file, &path)?;
        match segment.word32(STATE).load(Ordering::Acquire) {
            OPEN => {}
            CLOSED => return Err(Errno::ECONNREFUSED),
            _ => return Err(Errno::EPROTO),
        }
        if segment.word(IDENTITY).load(Ordering::Relaxed) != MAGIC {
            tracing::warn!("{} is damaged or of another version of tcam", path.display());
            return Err(Errno::EPROTO);
        }
        Ok(segment)
    }

    fn explain_absence(port: u16) -> Errno {
        let suffix = format!(".{port}");
        let foreign =
            std::fs::read_dir(DIRECTORY).ok().into_iter().flatten().flatten().any(|entry| {
                let name = entry.file_name();
                let name = name.to_string_lossy();
                name.starts_with("tcam.") && name.ends_with(&suffix)
            });
        if foreign {
            tracing::warn!(
                "the endpoint at port {port} is another user's or in another network namespace"
            );
            Errno::EACCES
        } else {
            tracing::warn!("no endpoint on this host has port {port}");
            Errno::ECONNREFUSED
        }
    }

    /// Whether its owner has not closed it. One that dies closes nothing.
    pub(crate) fn is_open(&self) -> bool {
        self.word32(STATE).load(Ordering::Acquire) == OPEN
    }

    /// Whether the owner of this (opened) segment still lives.
    pub(crate) fn liveness(&self, look: Look) -> Liveness {
        let is_closed = || self.word32(STATE).load(Ordering::Acquire) == CLOSED;
        if is_closed() {
            return Liveness::Closed;
        }
        let started = self.word(STARTED).load(Ordering::Relaxed);
        match owner_lives(&self.path, self.inode, self.pid(), started, look) {
            true => Liveness::Alive,
            // It may have closed while we looked.
            false if is_closed() => Liveness::Closed,
            false => Liveness::Dead,
        }
    }

    /// Whether this process made the segment: a child that was forked has it,
    /// too, and must leave it alone.
    pub(crate) fn is_ours(&self) -> bool {
        self.lock.is_some() && self.pid() == std::process::id()
    }

    /// Tells peers that the endpoint is closed.
    pub(crate) fn close(&self) {
        self.word32(STATE).store(CLOSED, Ordering::Release);
    }

    /// Removes the file of an own segment whose process exits without closing:
    /// peers that still map it see it closed.
    pub(crate) fn abandon(&self) {
        if self.is_ours() {
            self.close();
            let _ = std::fs::remove_file(&self.path);
        }
    }

    /// Names the endpoint whose segment this is.
    pub(crate) fn owner(&self) -> Owner {
        Owner {
            port: unpack(self.word(ADDRESS).load(Ordering::Relaxed)).port(),
            inode: self.inode,
            pid: self.pid(),
            started: self.word(STARTED).load(Ordering::Relaxed),
        }
    }

    /// Tells the segment from all others there are.
    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// Process id of the owner, in its process namespace.
    pub(crate) fn pid(&self) -> u32 {
        self.word32(PID).load(Ordering::Relaxed)
    }

    /// Whether the owner's process id means the owner here: in another process namespace it
    /// is that of another process, or of this one.
    pub(crate) fn is_of_our_processes(&self) -> bool {
        let namespace = self.word(PROCESSES).load(Ordering::Relaxed);
        namespace != 0 && namespace == *PROCESS_NAMESPACE
    }

    /// Shows what the endpoint counted to who looks ([`nic::live`]).
    pub(crate) fn show(&self, live: &Live) {
        let word = |number: usize| self.word(live::COUNTERS + 8 * number);
        let turn = word(1).load(Ordering::Relaxed) & !1;
        word(1).store(turn + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        for (value, number) in live.to_words().into_iter().zip(2..) {
            word(number).store(value, Ordering::Relaxed);
        }
        word(0).store(live::VERSION, Ordering::Relaxed);
        word(1).store(turn.wrapping_add(2), Ordering::Release);
    }

    /// Tells which processors the owner may run on ([`super::census`]).
    pub(crate) fn show_cores(&self, cores: &Cores) {
        for (index, &word) in cores.words().iter().enumerate() {
            self.word(CORES + 8 * index).store(word, Ordering::Relaxed);
        }
    }

    /// The segment whose owner's memory the owner of this one copies from or to
    /// ([`super::reach`]).
    pub(super) fn reach_word(&self) -> &AtomicU64 {
        self.word(REACH)
    }

    /// Next position of the ring that a sender may claim.
    pub(crate) fn tail(&self) -> &AtomicU64 {
        self.word(TAIL)
    }

    /// First position that the owner has not consumed, as last published.
    pub(crate) fn head(&self) -> &AtomicU64 {
        self.word(HEAD)
    }

    /// How the owner sleeps, if it does (see [`super::bell`]).
    pub(crate) fn bell(&self) -> &AtomicU32 {
        self.word32(BELL)
    }

    /// Name of the socket that the owner sleeps on.
    pub(crate) fn bell_name(&self) -> &AtomicU64 {
        self.word(BELL_NAME)
    }

    /// Not zero if the owner may sleep at all.
    pub(crate) fn sleeps(&self) -> &AtomicU32 {
        self.word32(SLEEPS)
    }

    /// The position the owner is about to claim elsewhere (see [`super::ring`]).
    pub(crate) fn intent(&self) -> &AtomicU64 {
        self.word(INTENT)
    }

    /// Address of the peer with a number; zero if there is none.
    pub(crate) fn peer(&self, number: u16) -> &AtomicU64 {
        self.word(PEER_TABLE + usize::from(number) % PEERS * 8)
    }

    /// The address that a peer entered under its number.
    pub(crate) fn listed(&self, number: u16) -> Option<SocketAddrV4> {
        let word = self.peer(number).load(Ordering::Acquire);
        (word != 0 && usize::from(number) < PEERS).then(|| unpack(word))
    }

    /// Zero if the buffer is free.
    pub(crate) fn buffer_state(&self, buffer: usize) -> &AtomicU32 {
        self.word32(BUFFER_STATES + buffer % BUFFERS * LINE)
    }

    /// First byte of a buffer of [`BUFFER`] bytes.
    pub(crate) fn buffer(&self, buffer: usize) -> *mut u8 {
        // SAFETY: within the mapping for every number.
        unsafe { self.base().add(BUFFER_AREA + buffer % BUFFERS * BUFFER) }
    }

    /// The first `len` bytes of a buffer; none if there is no such buffer.
    pub(crate) fn buffer_bytes(&self, buffer: usize, len: u64) -> Option<SharedBytes<'_>> {
        // SAFETY: within the mapping, which the result borrows.
        (buffer < BUFFERS && len <= BUFFER as u64)
            .then(|| unsafe { SharedBytes::new(self.buffer(buffer), len as usize) })
    }

    /// The payload of the slot at a position.
    #[inline]
    pub(crate) fn payload(&self, position: u64) -> SharedBytes<'_> {
        // SAFETY: within the slot, whose mapping the result borrows.
        unsafe { SharedBytes::new(self.slot(position).add(PAYLOAD), INLINE) }
    }

    /// First byte of the slot at a position of the ring.
    #[inline]
    pub(crate) fn slot(&self, position: u64) -> *mut u8 {
        // SAFETY: within the mapping for every position.
        unsafe { self.base().add(RING + (position % SLOTS) as usize * SLOT) }
    }

    /// Writes a word anywhere, as any process of this user may.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn scribble(&self, offset: usize, value: u64) {
        self.word(offset % LENGTH / 8 * 8).store(value, Ordering::Release);
    }

    fn base(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    #[inline]
    fn word(&self, offset: usize) -> &AtomicU64 {
        debug_assert!(offset.is_multiple_of(8) && offset + 8 <= LENGTH);
        // SAFETY: aligned and within the mapping, which lives as long as self.
        // Only atomics are ever referenced; other processes use them as such.
        unsafe { AtomicU64::from_ptr(self.base().add(offset).cast()) }
    }

    #[inline]
    fn word32(&self, offset: usize) -> &AtomicU32 {
        debug_assert!(offset.is_multiple_of(4) && offset + 4 <= LENGTH);
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(self.base().add(offset).cast()) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        if self.lock.is_some() {
            OWN.fetch_sub(1, Ordering::Relaxed);
        }
        self.abandon();
    }
}

/// An address as one word that is never zero.
pub(crate) fn pack(address: SocketAddrV4) -> u64 {
    1 << 63 | u64::from(address.ip().to_bits()) << 16 | u64::from(address.port())
}

/// The address of a word that [`pack`] made.
pub(crate) fn unpack(word: u64) -> SocketAddrV4 {
    SocketAddrV4::new(((word >> 16) as u32).into(), word as u16)
}

/// A pointer to a slot's words as atomics.
///
/// # Safety
/// `slot` came from [`Segment::slot`] of a mapping that outlives the result.
#[inline]
pub(crate) unsafe fn slot_word<'a>(slot: *mut u8, index: usize) -> &'a AtomicU64 {
    debug_assert!(index < SLOT / 8);
    // SAFETY: slots are aligned to their size and `index` is within one.
    unsafe { AtomicU64::from_ptr(slot.cast::<u64>().add(index)) }
}

#[cfg(test)]
#[path = "segment_tests.rs"]
mod tests;
