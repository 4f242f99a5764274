// SPDX-License-Identifier: BSD-2-Clause
//! The doorbell of an endpoint, with which senders wake threads that sleep until a message comes.
//!
//! ```text
//! owner    doorbell |= how it sleeps; fence; sleeps |= WAITED, once; nothing in the ring: sleep
//! sender   turn of the slot; sleeps != 0: fence; swap(doorbell, 0) != 0: wake it that way
//! ```
//! With both fences, the owner sees the turn, or the sender sees the doorbell. A fence for each
//! message takes time, so senders execute it only if the owner may sleep (`sleeps`). A sender may
//! have read `sleeps` just before the owner set it for the first time. The turn of such a sender is
//! visible once the time [`SETTLED`] has passed. Until then no sleep is longer than [`SETTLED`].
//!
//! The doorbell is a futex or, for a thread that sleeps on a file descriptor, an empty datagram to
//! a socket of the owner. The socket is in the private directory of the user ([`host::directory`]),
//! so that no other user can ring it or take its place. A spurious datagram only wakes the owner.
//! The socket is empty when the doorbell is armed: [`Doorbell::arm_socket`] empties it first.
//!
//! Rejected:
//! - an event descriptor: each sender would need a copy of it;
//! - a datagram to the endpoint's port: it is slower, and hosts without a loopback interface have
//!   no port;
//! - an abstract socket: every user of the host can ring it, and keep the owner awake.

use std::{
    os::fd::{AsFd as _, BorrowedFd, OwnedFd},
    path::Path,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use ffi::Result;
use parking_lot::Mutex;
use rustix::{
    fs::Timespec,
    fs::{Mode, chmod, unlink},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, bind, recv,
        sendto, socket_with,
    },
    thread::futex,
};

use host::names::doorbell_of;

use super::{
    protocol::{self, DoorbellFlags as _},
    segment::Segment,
};

/// Bit of the doorbell: threads sleep on the word of the doorbell, a futex.
const FUTEX: u32 = 1;
/// Bit of the doorbell: a thread sleeps on the socket.
const SOCKET: u32 = 2;
/// Bit of the doorbell: the device thread (automatic progress) sleeps on the socket, and no thread
/// of the application makes progress on the endpoint.
const DEVICE: u32 = 4;

/// Bit of `sleeps`: more threads poll endpoints than there are cores, so polls may sleep.
const CROWDED: u32 = 1;
/// Bit of `sleeps`: a thread has slept, or was about to, until a message comes.
const WAITED: u32 = 2;

/// Maximum number of datagrams that are taken from the socket at a time: more than its queue holds.
const MOST_RINGS: usize = 1024;

/// Maximum length of a sleep until every sender knows that the owner may sleep; see the module.
pub const SETTLED: Duration = Duration::from_millis(1);

/// The owner's end of the doorbell.
#[derive(Debug, Default)]
pub struct Doorbell {
    state: Mutex<Sleepers>,
    socket: OnceLock<OwnedFd>,
}

#[derive(Debug, Default)]
struct Sleepers {
    /// Number of threads that sleep on the word of the doorbell, or are about to.
    sleepers: u32,
    /// Time at which a thread announced a sleep for the first time.
    since: Option<Instant>,
}

impl Doorbell {
    /// Announces that senders must ring from now on. Returns the maximum length of the next sleep.
    fn announce(own: &Segment, state: &mut Sleepers) -> Duration {
        let since = *state.since.get_or_insert_with(|| {
            own.sleeps().fetch_or(WAITED, Ordering::SeqCst);
            Instant::now()
        });
        if since.elapsed() > SETTLED { Duration::MAX } else { SETTLED }
    }

    /// To be called before a sleep on the word. If the ring of messages is empty afterwards, call
    /// [`Doorbell::sleep`]; in any case call [`Doorbell::disarm`]. Returns the maximum length of
    /// the sleep.
    pub fn arm(&self, own: &Segment) -> Duration {
        let mut state = self.state.lock();
        state.sleepers += 1;
        protocol::arm(own.doorbell(), FUTEX);
        Self::announce(own, &mut state)
    }

    /// Sleeps until the doorbell rings, for at most `at_most`. Returns at once if it has rung.
    pub fn sleep(own: &Segment, at_most: Duration) {
        let word = own.doorbell().load(Ordering::Relaxed);
        if word & FUTEX != 0 {
            sleep_at(own.doorbell(), word, at_most);
        }
    }

    /// Ends what [`Doorbell::arm`] began, after the sleep.
    pub fn disarm(&self, own: &Segment) {
        let mut state = self.state.lock();
        state.sleepers -= 1;
        if state.sleepers == 0 {
            own.doorbell().fetch_and(!FUTEX, Ordering::Relaxed);
        }
    }

    /// To be called before a sleep on [`Doorbell::socket`]. Empties the socket. Returns the maximum
    /// length of the sleep. Look for messages once more before the sleep.
    pub fn arm_socket(&self, own: &Segment) -> Duration {
        self.empty();
        protocol::arm(own.doorbell(), SOCKET);
        Self::announce(own, &mut self.state.lock())
    }

    /// As [`Doorbell::arm_socket`], for the device thread.
    pub fn arm_device(&self, own: &Segment) -> Duration {
        self.empty();
        Self::hand_over(own);
        Self::announce(own, &mut self.state.lock())
    }

    /// From now on messages wake the device thread.
    pub fn hand_over(own: &Segment) {
        protocol::arm(own.doorbell(), DEVICE);
    }

    /// From now on messages do not wake the device thread.
    pub fn take_over(own: &Segment) {
        own.doorbell().fetch_and(!DEVICE, Ordering::Relaxed);
    }

    fn empty(&self) {
        if let Some(socket) = self.socket.get() {
            let is_emptied = |_: &usize| recv(socket, &mut [0_u8; 1], RecvFlags::DONTWAIT).is_err();
            // A peer that rings all the time, as no healthy peer does, must not keep the thread
            // here.
            let _ = (0..MOST_RINGS).find(is_emptied);
        }
    }

    /// Returns the socket that becomes readable when the doorbell rings. The first call creates it.
    ///
    /// # Errors
    /// No socket can be created.
    pub fn socket(&self, own: &Segment) -> Result<BorrowedFd<'_>> {
        let _once = self.state.lock();
        if self.socket.get().is_none() {
            let socket = socket_at(&doorbell_of(own.port())).map_err(std::io::Error::from)?;
            let _ = self.socket.set(socket);
        }
        self.socket.get().map(|socket| socket.as_fd()).ok_or(ffi::Errno::EOTHER)
    }

    /// Sets whether polls may sleep because polling threads outnumber cores.
    pub fn set_crowded(own: &Segment, crowded: bool) {
        if crowded {
            own.sleeps().fetch_or(CROWDED, Ordering::Relaxed);
        } else {
            own.sleeps().fetch_and(!CROWDED, Ordering::Relaxed);
        }
    }
}

/// Wakes the threads that sleep at an endpoint, if any. To be called after a slot of its ring was
/// filled.
#[inline]
pub fn ring(segment: &Segment) {
    if protocol::must_ring(segment.sleeps(), segment.doorbell()) {
        wake(segment);
    }
}

/// Disarms the doorbell of an endpoint, and wakes the threads that sleep at it.
#[cold]
pub fn wake(segment: &Segment) {
    let how = segment.doorbell().take();
    if how & FUTEX != 0 {
        wake_at(segment.doorbell());
    }
    // A thread that the futex wakes makes progress itself, so the device thread need not wake.
    if how & SOCKET != 0 || how & (DEVICE | FUTEX) == DEVICE {
        ring_socket(&doorbell_of(segment.port()));
    }
}

/// Sleeps until another thread calls [`wake_at`] for `word`, for at most `at_most`. Returns at once
/// if the word is not `was`.
fn sleep_at(word: &AtomicU32, was: u32, at_most: Duration) {
    let timeout = Timespec {
        tv_sec: at_most.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: i64::from(at_most.subsec_nanos()) as _,
    };
    // The caller looks for messages again in any case.
    let _ = futex::wait(word, futex::Flags::empty(), was, Some(&timeout));
}

/// Wakes all threads that sleep on a word.
#[cold]
fn wake_at(word: &AtomicU32) {
    let _ = futex::wake(word, futex::Flags::empty(), i32::MAX as u32);
}

/// Creates the socket of this endpoint at a path. An earlier endpoint at the same port may have
/// left a socket there, which is replaced.
fn socket_at(place: &Path) -> rustix::io::Result<OwnedFd> {
    let socket = unnamed_socket()?;
    let address = SocketAddrUnix::new(place)?;
    if bind(&socket, &address) == Err(Errno::ADDRINUSE) {
        unlink(place)?;
        bind(&socket, &address)?;
    }
    chmod(place, Mode::RUSR | Mode::WUSR)?;
    Ok(socket)
}

fn unnamed_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None)
}

/// Sends an empty datagram to the socket at a path. If the queue of this socket is full, its owner
/// is awake, so the error has no effect.
fn ring_socket(place: &Path) {
    static SENDER: OnceLock<OwnedFd> = OnceLock::new();
    let sender = match SENDER.get() {
        Some(sender) => sender,
        None => match unnamed_socket() {
            Ok(socket) => SENDER.get_or_init(|| socket),
            // If no descriptor is left, this ring is lost, and the owner wakes at its timeout.
            Err(_) => return,
        },
    };
    if let Ok(address) = SocketAddrUnix::new(place) {
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let send = |from: &OwnedFd| sendto(from, &[], flags, &address);
        // Datagrams that other owners have not read yet may fill the send buffer of `sender`. A
        // datagram outlives the socket that sent it.
        if send(sender) == Err(Errno::AGAIN)
            && let Ok(other) = unnamed_socket()
        {
            let _ = send(&other);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddrV4};

    use super::*;

    fn segment(port: u16) -> Segment {
        Segment::create(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).unwrap()
    }

    fn is_readable(socket: BorrowedFd<'_>) -> bool {
        let mut fds = [rustix::event::PollFd::new(&socket, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&rustix::fs::Timespec::default())).unwrap() == 1
    }

    #[test]
    fn a_socket_is_rung_once_for_each_time_it_was_armed() {
        let (own, doorbell) = (segment(111), Doorbell::default());
        let socket = doorbell.socket(&own).unwrap();
        ring(&own);
        assert!(!is_readable(socket), "no thread sleeps");
        assert_eq!(doorbell.arm_socket(&own), SETTLED);
        assert!(!is_readable(socket));
        ring(&own);
        assert!(is_readable(socket));
        assert_eq!(own.doorbell().load(Ordering::Relaxed), 0);
        doorbell.arm_socket(&own);
        assert!(!is_readable(socket), "emptied");
    }

    #[test]
    fn the_last_thread_to_wake_disarms_the_doorbell() {
        let (own, doorbell) = (segment(112), Doorbell::default());
        doorbell.arm(&own);
        doorbell.arm(&own);
        doorbell.disarm(&own);
        assert_eq!(own.doorbell().load(Ordering::Relaxed), FUTEX);
        doorbell.disarm(&own);
        assert_eq!(own.doorbell().load(Ordering::Relaxed), 0);
        std::thread::sleep(2 * SETTLED);
        assert_eq!(doorbell.arm(&own), Duration::MAX);
    }

    #[test]
    fn no_ring_is_lost_between_looking_and_sleeping() {
        const ROUNDS: u64 = 20_000;
        let (own, doorbell) = (segment(113), Doorbell::default());
        doorbell.arm(&own);
        doorbell.disarm(&own);
        std::thread::sleep(2 * SETTLED);
        // The tail stands for the ring: it is the number of messages.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..=ROUNDS {
                    own.tail().store(round, Ordering::Release);
                    ring(&own);
                    while own.head().load(Ordering::Acquire) < round {
                        std::thread::yield_now();
                    }
                }
            });
            let mut longest = Duration::ZERO;
            for round in 1..=ROUNDS {
                let started = Instant::now();
                while own.tail().load(Ordering::Acquire) < round {
                    doorbell.arm(&own);
                    if own.tail().load(Ordering::Acquire) < round {
                        Doorbell::sleep(&own, Duration::from_secs(5));
                    }
                    doorbell.disarm(&own);
                }
                longest = longest.max(started.elapsed());
                own.head().store(round, Ordering::Release);
            }
            assert!(longest < Duration::from_secs(4), "slept {longest:?}");
        });
    }

    #[test]
    fn the_socket_of_an_earlier_endpoint_is_replaced() {
        let own = segment(114);
        let place = doorbell_of(114);
        let left = socket_at(&place).unwrap();
        let doorbell = Doorbell::default();
        let socket = doorbell.socket(&own).unwrap();
        drop(left);
        doorbell.arm_socket(&own);
        ring(&own);
        assert!(is_readable(socket));
        drop(own);
        assert!(!place.exists());
        ring_socket(&place);
    }

    #[test]
    fn endless_rings_do_not_hold_the_owner() {
        let (own, doorbell) = (segment(115), Doorbell::default());
        doorbell.socket(&own).unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    ring_socket(&doorbell_of(115));
                }
            });
            (0..100).for_each(|_| doorbell.empty());
            done.store(true, Ordering::Relaxed);
        });
    }

    #[test]
    fn many_owners_that_have_not_read_yet_are_rung() {
        let directory = std::env::temp_dir().join(format!("tcam-rings-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        // The send buffer of a socket has room for about 280 empty datagrams.
        let places = (0..400).map(|number| directory.join(number.to_string()));
        let sockets: Vec<_> = places.map(|place| (socket_at(&place).unwrap(), place)).collect();
        sockets.iter().for_each(|(_, place)| ring_socket(place));
        assert!(sockets.iter().all(|(socket, _)| is_readable(socket.as_fd())));
        std::fs::remove_dir_all(directory).unwrap();
    }
}
