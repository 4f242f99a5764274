// SPDX-License-Identifier: BSD-2-Clause
//! The shared segment of an endpoint: a file in the directory of its user ([`host::directory`]),
//! which the peers on this host map.
//!
//! ```text
//!  0      header: magic, identity | started, process namespace | state, first | senders | tail |
//!         head | doorbell | sleeps, wants times | intent | cma word | cores | more intents
//!  2 K    counters for `tcam show --live`
//!  4 K    buffer states: 64 words, a line each
//!  8 K    ring: 1024 slots of 256 bytes
//!  264 K  buffers: 64 of 16 KiB
//!  1288 K senders: 65,536 words, the identity of each endpoint that sends here
//!  1800 K end, or the overflow area: 65,536 slots of 256 bytes
//!  17.8 M end
//! ```
//!
//! Only endpoints that count have an overflow area ([`super::overflow`]).
//!
//! The owner holds a lock on the file (`flock`) as long as it lives; the kernel releases the lock
//! however the owner dies. A process that gets the lock knows that the owner is dead, and removes
//! the file ([`host::owner`]). The pages are reserved when the file is made, so that a full
//! `/dev/shm` causes an error then and not a `SIGBUS` later. Of the list of senders, only the first
//! page is reserved; senders reserve the others when they need them ([`super::senders`]).
//!
//! Rejected: POSIX locks (the first descriptor of the process that is closed releases them), and
//! process ids in the header alone (they differ in another process namespace).
#![allow(unsafe_code, reason = "shared memory is raw memory")]

use std::{
    fs::File,
    io,
    net::SocketAddrV4,
    os::unix::fs::{FileExt as _, MetadataExt as _},
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

use ffi::Errno;
use host::{
    cores::{self, Cores},
    directory::{self, Directory, allocate, check_file_size},
    live::{
        self, ADDRESS, CLOSED, CORES, DEAD, ENDPOINT_IDENTITY, EXEC_ID, FIRST_VALID_AGE, Live,
        MAGIC, MAGIC_AT, NAMESPACE, OPEN, PEERS, PID, STARTED, STATE,
    },
    names::{NEW, name_of, namespace},
    owner::{self, Look, OwnEndpoint, Owner, PROCESS_NAMESPACE, remove_files, take_name},
};
use memmap2::{MmapOptions, MmapRaw};
use rustix::{
    fs::{FallocateFlags, fallocate, ftruncate},
    process::{Resource, getrlimit},
};

use super::overflow::{self, Overflow};
use crate::{
    address::pack,
    bytes::SharedBytes,
    contract::Liveness,
    identity::{ExecId, Identity},
    prefetch::LINE,
    wire::{INLINE, LONGEST, PAYLOAD, SLOT, is_before, parts_of},
};

/// Slots of a ring; a power of two.
pub(crate) const SLOTS: u64 = 1024;
/// Buffers of a segment.
pub(crate) const BUFFERS: usize = 64;
/// Number of threads of an endpoint that can claim a position at the same time.
pub(crate) const INTENTS: usize = 4;
/// Bytes of a buffer.
pub(crate) const BUFFER: usize = LONGEST;

pub(super) const SENDERS_NEXT: usize = 3 * LINE;
pub(super) const SENDERS_END: usize = SENDERS_NEXT + 8;
const ACCEPTED_OVERFLOW: usize = SENDERS_END + 8;
const TAIL: usize = 4 * LINE;
const HEAD: usize = 6 * LINE;
const DOORBELL: usize = 8 * LINE;
const SLEEPS: usize = 10 * LINE;
const WANTS_TIMES: usize = SLEEPS + 8;
const CMA_WORD: usize = 14 * LINE;
const INTENT_AT: [usize; INTENTS] = [12 * LINE, 20 * LINE, 24 * LINE, 28 * LINE];
const BUFFER_STATES: usize = live::PAGE;
pub(crate) const RING: usize = BUFFER_STATES + BUFFERS * LINE;
pub(crate) const BUFFER_AREA: usize = RING + SLOTS as usize * SLOT;
/// Offset of the list of senders.
pub(super) const SENDERS: usize = BUFFER_AREA + BUFFERS * BUFFER;
/// Bytes that are reserved when the file is made.
const RESERVED: usize = SENDERS + live::PAGE;
/// Length of a segment in bytes, without an overflow area.
pub(crate) const LENGTH: usize = SENDERS + PEERS * 8;
/// Length of a segment with an overflow area.
const EXTENDED: usize = LENGTH + overflow::LENGTH;
const _: () = assert!(RESERVED == live::SEGMENT);
const _: () = assert!(CMA_WORD < CORES && CORES + 8 * cores::WORDS <= INTENT_AT[1]);
const _: () = assert!(INTENT_AT[INTENTS - 1] < live::COUNTERS);
const _: () = {
    let mut thread = 0;
    while thread < INTENTS {
        check_offset(INTENT_AT[thread], 8);
        thread += 1;
    }
};
const _: () = assert!(overflow::CHUNK_BYTES == SLOTS as usize * SLOT, "a chunk is like the ring");

/// Checks the offset of an atomic of `len` bytes.
///
/// # Panics
/// The offset is not aligned, or the atomic is not within a segment.
#[inline]
const fn check_offset(offset: usize, len: usize) {
    assert!(offset.is_multiple_of(len) && offset <= LENGTH - len, "no word of a segment");
}

/// As many slots in the mapping of a segment as the ring has: the ring, or a chunk of the overflow
/// area.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    offset: usize,
}

impl Area {
    /// The ring.
    pub(crate) const RING: Self = Self { offset: RING };

    /// Returns the slot of a place.
    #[inline]
    pub(crate) fn slot(self, place: u64) -> SlotAt {
        SlotAt(self.offset + (place % SLOTS) as usize * SLOT)
    }
}

/// Offset of a slot in the mapping of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotAt(usize);

/// A mapped segment, of this endpoint or of a peer.
#[derive(Debug)]
pub struct Segment {
    map: MmapRaw,
    inode: u64,
    identity: Identity,
    /// The locked file; `None` in the segment of a peer.
    lock: Option<File>,
    /// Process id of the maker; 0 in the segment of a peer. It is kept here, because the process id
    /// in the header may be damaged.
    creator_pid: u32,
    counted: Option<OwnEndpoint>,
    /// The overflow area of a peer.
    overflow: Box<Overflow>,
    /// Whether a message to this peer waits for room.
    has_waiting: AtomicBool,
    /// Number of messages of this endpoint that had to wait for room at their receivers.
    waited: AtomicU64,
}

impl Segment {
    /// Makes the segment of an endpoint with this address.
    ///
    /// # Errors
    /// `EADDRINUSE` if a live endpoint has the port, `EACCES` if a file of another user is in the
    /// way, `ENOSPC` if `/dev/shm` is full.
    pub fn create(address: SocketAddrV4) -> Result<Self, Errno> {
        Self::create_context(address, 0)
    }

    /// Makes the segment of a context of a scalable endpoint.
    ///
    /// # Errors
    /// Those of [`Self::create`].
    pub fn create_context(address: SocketAddrV4, context: u8) -> Result<Self, Errno> {
        #[cfg(test)]
        host::names::apart();
        let new = format!("{NEW}{}.{}", namespace(), address.port());
        let file = directory::move_above_streams(take_name(&new)?)?;
        let made = Self::reserve(&file, address, context)
            .and_then(|segment| Ok(owner::publish(&new, address.port()).map(|()| segment)?));
        if made.is_err()
            && let Ok(directory) = Directory::open()
        {
            let _ = directory.remove(&new);
        }
        let mut segment = made?;
        segment.lock = Some(file);
        segment.creator_pid = std::process::id();
        segment.counted = Some(OwnEndpoint::new());
        Ok(segment)
    }

    fn reserve(file: &File, address: SocketAddrV4, context: u8) -> Result<Self, Errno> {
        check_file_size(LENGTH, "segment")?;
        allocate(file, RESERVED, "segment")?;
        let again = fallocate(file, FallocateFlags::KEEP_SIZE, 0, live::PAGE as u64);
        if again == Err(rustix::io::Errno::OPNOTSUPP) {
            // Senders could not reserve the other pages of their list either.
            allocate(file, LENGTH, "segment")?;
        }
        ftruncate(file, LENGTH as u64).map_err(io::Error::from)?;
        let identity = Identity::new(address.port(), context)?;
        let segment = Self::map(file, identity)?;
        segment.word(ENDPOINT_IDENTITY).store(identity.word(), Ordering::Relaxed);
        let exec_id = ExecId::own()?;
        segment.word32(PID).store(exec_id.pid, Ordering::Relaxed);
        segment.word(EXEC_ID).store(exec_id.address, Ordering::Relaxed);
        segment.word(EXEC_ID + 8).store(exec_id.word, Ordering::Relaxed);
        segment.word(ADDRESS).store(pack(address), Ordering::Relaxed);
        segment.word(STARTED).store(owner::own_start(), Ordering::Relaxed);
        segment.word(NAMESPACE).store(*PROCESS_NAMESPACE, Ordering::Relaxed);
        segment.show_cores(&Cores::of_thread());
        segment.word(MAGIC_AT).store(MAGIC, Ordering::Relaxed);
        segment.word32(STATE).store(OPEN, Ordering::Release);
        Ok(segment)
    }

    fn map(file: &File, identity: Identity) -> Result<Self, Errno> {
        let map = MmapOptions::new().len(LENGTH).map_raw(file).map_err(|error| {
            if error.kind() != io::ErrorKind::WouldBlock {
                return error.into();
            }
            // After EAGAIN, callers would try again for ever.
            tracing::error!(
                "cannot map a segment: the program locks all memory that it maps (mlockall), and \
                 may lock no more (raise ulimit -l)"
            );
            Errno::ENOMEM
        })?;
        let inode = file.metadata()?.ino();
        Ok(Self {
            map,
            inode,
            identity,
            lock: None,
            creator_pid: 0,
            counted: None,
            overflow: Box::default(),
            has_waiting: AtomicBool::new(false),
            waited: AtomicU64::new(0),
        })
    }

    /// Opens the segment of the endpoint that holds a port of this host. Returns the segment and
    /// its file.
    ///
    /// # Errors
    /// `ECONNREFUSED` if no endpoint holds the port, or if it has closed or is marked as dead.
    /// `EACCES` if a file of another user is in the way. `EPROTO` if the segment is damaged or of
    /// another version of tcam.
    pub(crate) fn open(port: u16) -> Result<(Self, File), Errno> {
        let name = name_of(port);
        let opened = Directory::open().and_then(|directory| directory.file(&name));
        let file = match opened {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Errno::ECONNREFUSED);
            }
            opened => opened?,
        };
        // An access beyond the end of a shorter file would raise SIGBUS.
        let len = file.metadata()?.len();
        if ![LENGTH, EXTENDED].contains(&(len as usize)) {
            tracing::warn!(
                "{name} has a wrong length: it is damaged or of another version of tcam"
            );
            return Err(Errno::EPROTO);
        }
        let mut words = [0; 8];
        file.read_exact_at(&mut words, ENDPOINT_IDENTITY as u64)?;
        let identity = Identity::of_word(u64::from_ne_bytes(words));
        let Some(identity) = identity.filter(|identity| identity.port() == port) else {
            tracing::warn!("{name} is damaged or of another version of tcam");
            return Err(Errno::EPROTO);
        };
        let segment = Self::map(&file, identity)?;
        match segment.word32(STATE).load(Ordering::Acquire) {
            OPEN => {}
            CLOSED | DEAD => return Err(Errno::ECONNREFUSED),
            _ => return Err(Errno::EPROTO),
        }
        if segment.word(MAGIC_AT).load(Ordering::Relaxed) != MAGIC {
            tracing::warn!("{name} is damaged or of another version of tcam");
            return Err(Errno::EPROTO);
        }
        Ok((segment, file))
    }

    /// Opens the segment of one endpoint, and not that of a later one at its port.
    ///
    /// # Errors
    /// Those of [`Segment::open`]; `ECONNREFUSED` if a later endpoint holds the port.
    pub fn open_only(who: Identity) -> Result<(Self, File), Errno> {
        let (segment, file) = Self::open(who.port())?;
        if segment.identity == who { Ok((segment, file)) } else { Err(Errno::ECONNREFUSED) }
    }

    /// Accepts up to 65,536 short messages that find the ring full. To be called for an own segment
    /// if the endpoint counts. If that is not possible, senders wait for room in the ring.
    pub fn accept_overflow(&mut self) {
        if let Err(why) = self.extend() {
            tracing::info!("senders to port {} wait if its ring is full: {why}", self.port());
        }
    }

    fn extend(&mut self) -> io::Result<()> {
        let Some(file) = &self.lock else { return Ok(()) };
        if getrlimit(Resource::Fsize).current.is_some_and(|most| most < EXTENDED as u64) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        if overflow::locks_memory() {
            return Err(io::Error::other("this process locks memory"));
        }
        // Fails where the file system cannot reserve memory.
        fallocate(file, FallocateFlags::KEEP_SIZE, 0, live::PAGE as u64)?;
        ftruncate(file, EXTENDED as u64)?;
        self.map = MmapOptions::new().len(EXTENDED).map_raw(file)?;
        self.word(ACCEPTED_OVERFLOW).store(overflow::SLOTS, Ordering::Release);
        Ok(())
    }

    /// Reserves a slot of the peer's overflow area for this sender. Returns false if the peer does
    /// not accept overflow, if the area is full, or if something is short.
    #[cold]
    pub(crate) fn reserve_overflow(&self, index: u64) -> bool {
        let file = || {
            let name = name_of(self.port());
            let file = Directory::open().and_then(|directory| directory.file(&name)).ok()?;
            let found = file.metadata().ok()?;
            // An access beyond the end of a shorter file would raise SIGBUS.
            (found.ino() == self.inode && found.len() == EXTENDED as u64).then_some(file)
        };
        index < self.word(ACCEPTED_OVERFLOW).load(Ordering::Acquire)
            && self.overflow.reserve(index, LENGTH, file)
    }

    /// Returns the first byte of a slot of the peer's overflow area; `None` unless
    /// [`Self::reserve_overflow`] has returned true for its index.
    pub(crate) fn overflow_slot(&self, index: u64) -> Option<*mut u8> {
        self.overflow.slot(index)
    }

    /// Returns the chunk of the own overflow area with the slot of an index; `None` if the endpoint
    /// does not accept overflow.
    pub(crate) fn overflow_area(&self, index: u64) -> Option<Area> {
        let offset = LENGTH + overflow::chunk_of(index) * overflow::CHUNK_BYTES;
        (self.map.len() == EXTENDED).then_some(Area { offset })
    }

    /// Notes that a message to this peer waits for room. `own` is the segment of its sender. Counts
    /// the message unless it waited before.
    #[cold]
    pub(crate) fn note_waiting(&self, own: &Self) {
        if !self.has_waiting.swap(true, Ordering::Relaxed) {
            own.waited.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes that no message to this peer waits for room.
    pub(crate) fn end_waiting(&self) {
        self.has_waiting.store(false, Ordering::Relaxed);
    }

    /// Returns the number of messages of this endpoint that had to wait for room at a receiver.
    pub(crate) fn waited(&self) -> u64 {
        self.waited.load(Ordering::Relaxed)
    }

    /// Returns the identity of the endpoint, which no other endpoint at its port ever has.
    #[inline]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns the locked file of an own segment; `None` for the segment of a peer.
    pub(crate) fn file(&self) -> Option<&File> {
        self.lock.as_ref()
    }

    /// Returns whether the segment is open. If its owner dies, it stays open until a process
    /// notices the death and marks it.
    pub fn is_open(&self) -> bool {
        self.fixed_word32::<STATE>().load(Ordering::Acquire) == OPEN
    }

    /// Makes void all operations of the owner that began before the one with the age `first`. Peers
    /// no longer access the memory of a void operation.
    pub fn void_before(&self, first: u64) {
        self.word(FIRST_VALID_AGE).store(first, Ordering::Release);
        // The fence of an endpoint that closes; see [`super::cma`].
        fence(Ordering::SeqCst);
    }

    /// Returns whether the operation of the owner with this number is void.
    #[inline]
    pub(crate) fn is_void(&self, number: u64) -> bool {
        let (age, _) = parts_of(number);
        is_before(age, self.word(FIRST_VALID_AGE).load(Ordering::Acquire))
    }

    /// Returns whether the owner of this segment, a peer, is alive, closed or dead. If the owner is
    /// dead, its files are removed.
    pub fn liveness(&self, look: Look) -> Liveness {
        let state = || self.word32(STATE).load(Ordering::Acquire);
        match state() {
            CLOSED => return Liveness::Closed,
            DEAD => return Liveness::Dead,
            _ => {}
        }
        let started = self.word(STARTED).load(Ordering::Relaxed);
        let process = self.is_of_our_processes().then(|| (self.pid(), started));
        match owner::check_alive(&name_of(self.port()), self.inode, process, look) {
            true => Liveness::Alive,
            // The owner may have closed meanwhile.
            false if state() == CLOSED => Liveness::Closed,
            false => Liveness::Dead,
        }
    }

    /// Returns whether this process made the segment. A forked child inherits it, and must leave it
    /// alone.
    pub fn is_ours(&self) -> bool {
        self.creator_pid == std::process::id()
    }

    /// Marks the endpoint as closed, for peers.
    pub fn close(&self) {
        self.word32(STATE).store(CLOSED, Ordering::Release);
    }

    /// Closes an own segment and removes its files. To be called when the process exits; `drop`
    /// calls it too. Peers that still map the segment see that it is closed. Does nothing for other
    /// segments.
    pub fn close_and_remove(&self) {
        if self.is_ours() {
            self.close();
            // A process that has taken the lock considers this owner dead, and removes the file.
            // Afterwards the name may belong to the next endpoint.
            if self.file().is_some_and(owner::try_lock) {
                remove_files(self.port(), self.inode);
            }
        }
    }

    /// Describes the endpoint that owns the segment.
    pub fn owner(&self) -> Owner {
        Owner {
            port: self.port(),
            inode: self.inode,
            pid: self.pid(),
            started: self.word(STARTED).load(Ordering::Relaxed),
        }
    }

    /// Returns the port of the endpoint.
    pub fn port(&self) -> u16 {
        self.identity.port()
    }

    /// Returns the inode, which distinguishes the segment from all others.
    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// Returns the exec id of the owner.
    pub(crate) fn exec_id(&self) -> ExecId {
        let word = |at| self.word(at).load(Ordering::Relaxed);
        ExecId { pid: self.pid(), address: word(EXEC_ID), word: word(EXEC_ID + 8) }
    }

    /// Returns the process id of the owner in the owner's process namespace.
    pub(crate) fn pid(&self) -> u32 {
        self.word32(PID).load(Ordering::Relaxed)
    }

    /// Returns whether the owner's process id is valid here. In another process namespace, that id
    /// names another process.
    pub(crate) fn is_of_our_processes(&self) -> bool {
        let namespace = self.word(NAMESPACE).load(Ordering::Relaxed);
        namespace != 0 && namespace == *PROCESS_NAMESPACE
    }

    /// Publishes the counters of the endpoint ([`host::live`]).
    pub fn show(&self, live: &Live) {
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

    /// Publishes the processors that the owner may run on ([`host::poller_count`]).
    pub fn show_cores(&self, cores: &Cores) {
        for (index, &word) in cores.0.iter().enumerate() {
            self.word(CORES + 8 * index).store(word, Ordering::Relaxed);
        }
    }

    /// The word that announces a copy ([`super::cma`]): the inode of the segment whose owner's
    /// memory this endpoint copies from or to; 0 if it does not copy.
    pub(super) fn cma_word(&self) -> &AtomicU64 {
        self.fixed_word::<CMA_WORD>()
    }

    /// Next position of the ring that a sender may claim.
    pub(crate) fn tail(&self) -> &AtomicU64 {
        self.fixed_word::<TAIL>()
    }

    /// First position that the owner has not consumed, as last published.
    pub(crate) fn head(&self) -> &AtomicU64 {
        self.fixed_word::<HEAD>()
    }

    /// How the owner sleeps; 0 if it does not (see [`super::doorbell`]).
    pub(crate) fn doorbell(&self) -> &AtomicU32 {
        self.fixed_word32::<DOORBELL>()
    }

    /// Not zero if the owner may sleep at all.
    pub(crate) fn sleeps(&self) -> &AtomicU32 {
        self.fixed_word32::<SLEEPS>()
    }

    /// Asks senders to write the time of each send into its slot
    /// ([`Flags::TIMED`](crate::wire::Flags::TIMED)). To be called before peers connect.
    pub fn ask_for_times(&self) {
        self.word(WANTS_TIMES).store(1, Ordering::Relaxed);
    }

    /// Returns whether the owner asks for the times of sends.
    pub(crate) fn wants_times(&self) -> bool {
        self.word(WANTS_TIMES).load(Ordering::Relaxed) != 0
    }

    /// The word with the position of another ring that a thread of the owner is about to claim, or
    /// has claimed last (see [`super::ring`]).
    #[inline]
    pub(crate) fn intent(&self, thread: usize) -> &AtomicU64 {
        // SAFETY: each of the offsets is checked above, when this file is compiled.
        unsafe { AtomicU64::from_ptr(self.base().add(INTENT_AT[thread % INTENTS]).cast()) }
    }

    /// The state of a buffer: zero if it is free.
    pub(crate) fn buffer_state(&self, buffer: usize) -> &AtomicU32 {
        self.word32(BUFFER_STATES + buffer % BUFFERS * LINE)
    }

    /// Returns the first byte of a buffer of [`BUFFER`] bytes.
    pub(crate) fn buffer(&self, buffer: usize) -> *mut u8 {
        // SAFETY: within the mapping for every number.
        unsafe { self.base().add(BUFFER_AREA + buffer % BUFFERS * BUFFER) }
    }

    /// Returns the first `len` bytes of a buffer; `None` if the buffer does not exist or is
    /// shorter.
    pub(crate) fn buffer_bytes(&self, buffer: usize, len: u64) -> Option<SharedBytes<'_>> {
        // SAFETY: within the mapping, which the result borrows.
        (buffer < BUFFERS && len <= BUFFER as u64)
            .then(|| unsafe { SharedBytes::new(self.buffer(buffer), len as usize) })
    }

    /// Returns the payload of a slot of this segment.
    #[inline]
    pub(crate) fn payload(&self, slot: SlotAt) -> SharedBytes<'_> {
        // SAFETY: within the slot, whose mapping the result borrows.
        unsafe { SharedBytes::new(self.slot_at(slot).add(PAYLOAD), INLINE) }
    }

    /// Returns the first byte of a slot of this segment.
    #[inline]
    pub(crate) fn slot_at(&self, slot: SlotAt) -> *mut u8 {
        // SAFETY: the area of the slot is in the mapping, and the slot is in the area.
        unsafe { self.base().add(slot.0) }
    }

    /// Returns the first byte of the slot at a position of the ring.
    #[inline]
    pub(crate) fn slot(&self, position: u64) -> *mut u8 {
        // SAFETY: within the mapping for every position.
        unsafe { self.base().add(RING + (position % SLOTS) as usize * SLOT) }
    }

    /// Writes a word anywhere, as any process of this user can.
    #[cfg(any(test, feature = "testing"))]
    pub(crate) fn scribble(&self, offset: usize, value: u64) {
        self.word(offset % LENGTH / 8 * 8).store(value, Ordering::Release);
    }

    fn base(&self) -> *mut u8 {
        self.map.as_mut_ptr()
    }

    /// Returns a word of the message path, whose offset is checked when this file is compiled. A
    /// check in the code, although removed later, would keep the compiler from inlining callers.
    #[inline]
    fn fixed_word<const OFFSET: usize>(&self) -> &AtomicU64 {
        const { check_offset(OFFSET, 8) };
        // SAFETY: as in `word`.
        unsafe { AtomicU64::from_ptr(self.base().add(OFFSET).cast()) }
    }

    /// Returns half a word of the message path; see [`Self::fixed_word`].
    #[inline]
    fn fixed_word32<const OFFSET: usize>(&self) -> &AtomicU32 {
        const { check_offset(OFFSET, 4) };
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(self.base().add(OFFSET).cast()) }
    }

    /// Returns a word. Checks its offset.
    #[inline]
    pub(super) fn word(&self, offset: usize) -> &AtomicU64 {
        check_offset(offset, 8);
        // SAFETY: aligned and within the mapping, which lives as long as self.
        // Only atomics are ever referenced; other processes use them as such.
        unsafe { AtomicU64::from_ptr(self.base().add(offset).cast()) }
    }

    #[inline]
    fn word32(&self, offset: usize) -> &AtomicU32 {
        check_offset(offset, 4);
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(self.base().add(offset).cast()) }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        self.close_and_remove();
    }
}

/// Returns a word of a slot as an atomic.
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
