// SPDX-License-Identifier: BSD-2-Clause
//! The endpoints that a queue or counter polls when it is read, and the sleep of threads that wait
//! for it.
//!
//! Two events end a sleep. One is a message to one of the endpoints: over shared memory, the sender
//! rings the endpoint's doorbell ([`channel::shm::doorbell`]); over the network, a descriptor
//! becomes readable. The other is a report of this process to the queue or counter, for which
//! [`WaitSet::ring`] is called. A thread arms both before it checks once more and sleeps.
//!
//! ```text
//! one endpoint     sleep on its doorbell, and on the network if it has one;
//!                  `ring` also rings that doorbell
//! several, or      epoll descriptor: the descriptors of the endpoints | an event
//! FI_WAIT_FD       descriptor for `ring` | a timer for periodic work, such as checks of peers
//! ```

use std::{
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use channel::shm::doorbell::SETTLED;
use ffi::{Errno, Result, object::Control, ops::WaitObj, serial::Serial};
use host::owner::own_count;
use parking_lot::Mutex;
use rustix::{
    event::{EventfdFlags, PollFd, PollFlags, epoll, eventfd, poll},
    fs::Timespec,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create,
        timerfd_settime,
    },
};

use super::{
    idle::{BACKOFF, Caller, Pause, RETRY},
    pollable::{Pollable, Progress},
    triggers::Triggers,
};

/// Spinning polls before a sleep, about 15 us.
const SPINS: u32 = 10;

/// The endpoints that a queue or counter polls when it is read, that look up their peers in an
/// address vector, or that belong to a domain.
#[derive(Debug)]
pub(crate) struct WaitSet {
    endpoints: Serial<Vec<Arc<dyn Pollable>>>,
    wait_obj: WaitObj,
    /// Whether a thread sleeps or is about to, so that reports must ring.
    armed: AtomicBool,
    sleepers: Mutex<Sleepers>,
    descriptors: OnceLock<Descriptors>,
}

/// The number of threads that sleep here, and the endpoint whose doorbell they use if it is the
/// only one.
#[derive(Debug, Default)]
struct Sleepers {
    count: u32,
    endpoint: Option<Arc<dyn Pollable>>,
}

#[derive(Debug)]
struct Descriptors {
    epoll: OwnedFd,
    event: OwnedFd,
    timer: OwnedFd,
}

impl Descriptors {
    fn new(endpoints: &[Arc<dyn Pollable>]) -> Result<Self> {
        let make = || -> rustix::io::Result<Self> {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
            let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
            for source in [&event, &timer] {
                epoll::add(&epoll, source, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
            }
            Ok(Self { epoll, event, timer })
        };
        let descriptors = make().map_err(std::io::Error::from)?;
        endpoints.iter().try_for_each(|endpoint| descriptors.add(&**endpoint))?;
        Ok(descriptors)
    }

    /// Adds the descriptors of an endpoint. Does nothing if a device thread makes progress on the
    /// endpoint: that thread sleeps on the descriptors, and its reports call [`WaitSet::ring`].
    fn add(&self, endpoint: &dyn Pollable) -> Result<()> {
        if endpoint.is_auto() {
            return Ok(());
        }
        let data = epoll::EventData::new_u64(0);
        endpoint.bells(&mut |bell| epoll::add(&self.epoll, bell, data, epoll::EventFlags::IN))
    }

    fn remove(&self, endpoint: &dyn Pollable) {
        if !endpoint.is_auto() {
            let _ = endpoint.bells(&mut |bell| epoll::delete(&self.epoll, bell));
        }
    }

    fn ring(&self) {
        let _ = rustix::io::write(&self.event, &1_u64.to_ne_bytes());
    }

    fn set_timer(&self, to: Duration) {
        let zero = Timespec::default();
        let to = Itimerspec { it_interval: zero, it_value: timespec(to) };
        let _ = timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &to);
    }

    fn empty(&self) {
        for source in [&self.event, &self.timer] {
            let _ = rustix::io::read(source, &mut [0_u8; 8]);
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: duration.as_secs().try_into().unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

fn is<P: Pollable>(one: &Arc<dyn Pollable>, other: &Arc<P>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

/// Sleeps until one of the descriptors is readable, for at most `at_most`.
pub(crate) fn sleep_on(descriptors: &[BorrowedFd<'_>], at_most: Duration) {
    let mut polled: Vec<_> =
        descriptors.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)).collect();
    // The caller looks again in any case.
    let _ = poll(&mut polled, Some(&timespec(at_most)));
}

impl WaitSet {
    /// Creates the set of an object that no thread waits for, such as a domain.
    pub(crate) fn new(locked: bool) -> Self {
        Self {
            endpoints: Serial::new(Vec::new(), locked),
            wait_obj: WaitObj::None,
            armed: AtomicBool::new(false),
            sleepers: Mutex::default(),
            descriptors: OnceLock::new(),
        }
    }

    /// Creates the set of a queue or counter with this wait object.
    ///
    /// # Errors
    /// `ENOSYS` for wait objects that are not supported, or no descriptors are left.
    pub(crate) fn with_wait(locked: bool, wait_obj: WaitObj) -> Result<Self> {
        let set = Self { wait_obj, ..Self::new(locked) };
        match wait_obj {
            WaitObj::Other(wait_obj) => {
                tracing::info!("wait object {wait_obj} is not supported");
                Err(Errno::ENOSYS)
            }
            WaitObj::Fd => {
                set.descriptors(&[])?;
                Ok(set)
            }
            WaitObj::None | WaitObj::Unspec | WaitObj::Yield => Ok(set),
        }
    }

    /// Returns the descriptors, which are created when they are first needed.
    ///
    /// # Errors
    /// No descriptors are left.
    fn descriptors(&self, endpoints: &[Arc<dyn Pollable>]) -> Result<&Descriptors> {
        if self.descriptors.get().is_none() {
            let _ = self.descriptors.set(Descriptors::new(endpoints)?);
        }
        self.descriptors.get().ok_or(Errno::EOTHER)
    }

    /// Handles `fi_control` of a queue or counter: returns its wait object, or its descriptor.
    ///
    /// # Errors
    /// `ENOSYS` for other commands, and for a descriptor that does not exist.
    pub(crate) fn control(&self, command: Control<'_>) -> Result<()> {
        match (command, self.wait_obj, self.descriptors.get()) {
            (Control::GetWaitObj(to), wait_obj, _) => *to = wait_obj.raw(),
            (Control::GetWait(to), WaitObj::Fd, Some(descriptors)) => {
                *to = descriptors.epoll.as_raw_fd();
            }
            _ => return Err(Errno::ENOSYS),
        }
        Ok(())
    }

    /// Adds an endpoint.
    ///
    /// # Errors
    /// No descriptors are left.
    pub(crate) fn add<P: Pollable + 'static>(&self, endpoint: &Arc<P>) -> Result<()> {
        let mut endpoints = self.endpoints.lock();
        if !endpoints.iter().any(|other| is(other, endpoint)) {
            if let Some(descriptors) = self.descriptors.get() {
                descriptors.add(&**endpoint)?;
            }
            endpoints.push(Arc::clone(endpoint) as Arc<dyn Pollable>);
        }
        drop(endpoints);
        // A sleeping thread has not armed the doorbell of this endpoint, so it must wake.
        self.ring();
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.endpoints.lock().is_empty()
    }

    pub(crate) fn remove<P: Pollable>(&self, endpoint: &Arc<P>) {
        let mut endpoints = self.endpoints.lock();
        let before = endpoints.len();
        endpoints.retain(|other| !is(other, endpoint));
        if let (true, Some(descriptors)) = (endpoints.len() < before, self.descriptors.get()) {
            descriptors.remove(&**endpoint);
        }
        drop(endpoints);
        self.ring();
    }

    /// Sets the number of processes of every endpoint. Each endpoint calls `count` under its lock,
    /// so that an older count does not replace a newer one.
    pub(crate) fn set_processes(&self, count: impl Fn() -> u32) {
        for endpoint in &*self.endpoints.lock() {
            endpoint.set_processes(&count);
        }
    }

    /// Checks, at every endpoint, the senders whose names were just inserted into an address vector.
    pub(crate) fn check_names(&self) {
        self.endpoints.lock().iter().for_each(|endpoint| endpoint.check_names());
    }

    /// Makes the copies that are due on every endpoint. Waits until no other thread copies for a
    /// peer's read or write of local memory.
    pub(crate) fn finish_copies(&self) {
        for endpoint in &*self.endpoints.lock() {
            endpoint.finish_copies();
        }
    }

    /// Makes progress on every endpoint.
    #[inline]
    pub(crate) fn progress(&self) -> Progress {
        let mut progress = Progress::None;
        for endpoint in &*self.endpoints.lock() {
            progress = progress.max(endpoint.progress());
        }
        progress
    }

    /// Makes progress for a caller that does not pause after an empty poll. If no progress was
    /// made, also does the periodic work of the endpoints.
    pub(crate) fn progress_and_look(&self) -> Progress {
        let progress = self.progress();
        if progress == Progress::None {
            self.endpoints.lock().iter().for_each(|endpoint| endpoint.look_around());
        }
        progress
    }

    /// Makes progress on all endpoints but `one` and those that other threads use.
    pub(crate) fn progress_others<P: Pollable>(&self, one: &Arc<P>) {
        for endpoint in self.endpoints.lock().iter().filter(|endpoint| !is(endpoint, one)) {
            endpoint.try_progress();
        }
    }

    /// Handles an empty poll: polls a moment longer, yields the core or sleeps, if that helps. Does
    /// not sleep if `ready` returns true, because another thread has reported something. Returns
    /// whether another poll may find something.
    pub(crate) fn pause(&self, ready: impl Fn() -> bool) -> bool {
        let endpoints = self.endpoints.lock();
        let several = own_count() > 1;
        let caller = if several { Caller::PollsSeveral } else { Caller::Polls };
        let mut pause = Pause::None;
        for endpoint in &*endpoints {
            pause = endpoint.pause(caller);
        }
        match (pause, endpoints.as_slice()) {
            (Pause::None, _) => return false,
            (Pause::Spin, _) => return true,
            (Pause::Sleep(backoff), [endpoint]) => {
                // Other threads may use the queue while this thread sleeps.
                let endpoint = Arc::clone(endpoint);
                drop(endpoints);
                self.begin_sleep(Some(&endpoint));
                self.armed.store(true, Ordering::SeqCst);
                endpoint.sleep(backoff, &ready);
                self.end_sleep();
            }
            // Several endpoints have no common doorbell to sleep on.
            _ => {
                drop(endpoints);
                std::thread::yield_now();
            }
        }
        true
    }

    /// Wakes sleeping threads, after something was reported.
    #[inline]
    pub(crate) fn ring(&self) {
        // A thread that arms the set checks for reports afterwards. A lock, or sequentially
        // consistent operations, order its check and this report.
        if self.armed.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.armed.store(false, Ordering::SeqCst);
        if let Some(endpoint) = &self.sleepers.lock().endpoint {
            endpoint.wake();
        }
        if let Some(descriptors) = self.descriptors.get() {
            descriptors.ring();
        }
    }

    /// Sleeps until another check is worthwhile, for at most `at_most`. Does not sleep if `ready`
    /// returns true.
    pub(crate) fn sleep(&self, at_most: Duration, ready: impl Fn() -> bool) {
        let bound = self.endpoints.lock();
        if Self::spin(&bound) {
            return;
        }
        if self.wait_obj == WaitObj::Yield {
            bound.iter().for_each(|endpoint| endpoint.look_around());
            drop(bound);
            std::thread::yield_now();
            return;
        }
        let descriptors = match bound.as_slice() {
            [_] if self.wait_obj != WaitObj::Fd => None,
            _ => Some(self.descriptors(&bound)),
        };
        let endpoints = bound.clone();
        // Other threads may use the queue, and bind it, while this thread sleeps.
        drop(bound);
        // Another thread may bind an endpoint before this thread has armed the set. That bind wakes
        // no thread.
        let ready = || self.endpoints.lock().len() != endpoints.len() || ready();
        let sleepers = self.begin_sleep(endpoints.first().filter(|_| descriptors.is_none()));
        match (descriptors, endpoints.as_slice()) {
            (None, [endpoint]) => {
                self.armed.store(true, Ordering::SeqCst);
                endpoint.sleep(at_most, &ready);
            }
            (Some(Ok(descriptors)), endpoints) => {
                // A wakeup of one thread may be meant for another sleeping thread.
                let at_most = if sleepers > 1 { at_most.min(BACKOFF) } else { at_most };
                let longest = self.arm(descriptors, endpoints).min(at_most);
                if longest > Duration::ZERO && !ready() {
                    sleep_on(&[descriptors.epoll.as_fd()], longest);
                }
            }
            _ => std::thread::sleep(at_most.min(RETRY)),
        }
        self.end_sleep();
        for endpoint in &endpoints {
            endpoint.look_around();
        }
    }

    /// Begins a sleep on the doorbell of `endpoint` or, if it is `None`, on the descriptors.
    /// Returns the number of sleeping threads.
    fn begin_sleep(&self, endpoint: Option<&Arc<dyn Pollable>>) -> u32 {
        let mut sleepers = self.sleepers.lock();
        sleepers.count += 1;
        sleepers.endpoint = endpoint.cloned();
        sleepers.count
    }

    /// Ends a sleep.
    fn end_sleep(&self) {
        let mut sleepers = self.sleepers.lock();
        sleepers.count -= 1;
        if sleepers.count == 0 {
            sleepers.endpoint = None;
        }
    }

    /// Polls for a message a moment longer. Returns whether one came.
    fn spin(endpoints: &[Arc<dyn Pollable>]) -> bool {
        let [endpoint] = endpoints else { return false };
        for _ in 0..SPINS {
            match endpoint.pause(Caller::Waits) {
                Pause::Spin => return true,
                Pause::None => {}
                Pause::Yield | Pause::Sleep(_) => break,
            }
        }
        false
    }

    /// Arms the descriptors: from now on, a message or a report makes one of them readable. Returns
    /// the longest sleep.
    fn arm(&self, descriptors: &Descriptors, endpoints: &[Arc<dyn Pollable>]) -> Duration {
        descriptors.empty();
        self.armed.store(true, Ordering::SeqCst);
        // The device thread makes progress on the other endpoints, and its reports call `ring`.
        let endpoints = endpoints.iter().filter(|endpoint| !endpoint.is_auto());
        endpoints.map(|endpoint| endpoint.arm_bells()).min().unwrap_or(Duration::MAX)
    }

    /// Prepares for a sleep on the descriptor (`fi_trywait`) of at most `at_most`.
    ///
    /// # Errors
    /// `EAGAIN` if `ready` returns true, if there is work to do first, or if senders may not know
    /// yet that threads of this process sleep ([`SETTLED`]). `EINVAL` without a descriptor.
    /// `EOTHER` if an endpoint has failed.
    pub(crate) fn try_wait(
        &self,
        triggers: &Triggers,
        at_most: Duration,
        ready: impl Fn() -> bool,
    ) -> Result<()> {
        let (WaitObj::Fd, Some(descriptors)) = (self.wait_obj, self.descriptors.get()) else {
            return Err(Errno::EINVAL);
        };
        if self.progress() == Progress::Failed {
            return Err(Errno::EOTHER);
        }
        for endpoint in &*self.endpoints.lock() {
            endpoint.look_around();
        }
        triggers.run();
        let longest = self.arm(descriptors, &self.endpoints.lock());
        if longest <= SETTLED || ready() {
            return Err(Errno::EAGAIN);
        }
        let longest = longest.min(at_most);
        if longest < Duration::MAX {
            descriptors.set_timer(longest);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_after_the_last_check_wakes_a_sleep_on_the_descriptor() {
        let set = WaitSet::with_wait(true, WaitObj::Fd).unwrap();
        let look = || {
            // Another thread reports something a moment later.
            set.ring();
            false
        };
        set.try_wait(&Triggers::default(), Duration::MAX, look).unwrap();
        let epoll = &set.descriptors.get().unwrap().epoll;
        let mut polled = [PollFd::new(epoll, PollFlags::IN)];
        assert_eq!(poll(&mut polled, Some(&Timespec::default())).unwrap(), 1);
    }
}
