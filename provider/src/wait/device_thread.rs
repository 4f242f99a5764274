// SPDX-License-Identifier: BSD-2-Clause
//! `FI_PROGRESS_AUTO`: a thread of each domain that matches and moves data while the application
//! computes, as a NIC does.
//!
//! ```text
//! make progress on all endpoints, again and again while there is progress
//! after SPIN without progress: arm all doorbells; if no message has come: sleep on epoll:
//!     the descriptors of the endpoints | an event descriptor for commands
//! ```
//!
//! A thread of the application that polls makes progress itself, which saves a wakeup for each
//! message. Meanwhile it clears the device's bit of the doorbell (see [`crate::ep_shared`]). Long
//! messages are copied without the endpoint's lock, so that the application can post meanwhile.

use std::{
    cell::Cell,
    os::fd::{AsFd as _, OwnedFd},
    sync::{Arc, Weak},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded, unbounded};
use ffi::{Errno, Result};
use host::signals;
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, epoll, eventfd};

use super::{
    pollable::{Pollable, Progress},
    set::sleep_on,
    triggers::Triggers,
};

/// Longest time of polling for another message before a sleep.
const SPIN: Duration = Duration::from_micros(20);
/// Polls between two reads of the clock.
const LOOKS: u32 = 16;
/// Longest wait for the thread to execute a command. It takes longer only if the process is not
/// scheduled.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for the thread when the process exits. If a signal handler calls `exit`, the thread
/// may wait for a lock that the interrupted thread holds.
const AT_EXIT: Duration = Duration::from_secs(1);

/// Time from a panic, which is a defect of the provider, to the next attempt. Without it, a panic
/// in each round would fill the log.
const AFTER_PANIC: Duration = Duration::from_millis(100);

enum Command {
    Add(Arc<dyn Pollable>),
    /// Answered when the thread no longer uses the endpoint.
    Remove(Arc<dyn Pollable>, Sender<()>),
    Stop,
}

/// The thread of a domain, as the domain owns it.
#[derive(Debug)]
pub(crate) struct DeviceThread {
    commands: Sender<Command>,
    event: Arc<OwnedFd>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// The process that has the thread: a forked child does not have it.
    pid: u32,
}

/// Threads to stop before the library is unloaded.
static RUNNING: Mutex<Vec<Weak<DeviceThread>>> = Mutex::new(Vec::new());

thread_local!(static IS_HERE: Cell<bool> = const { Cell::new(false) });

/// Returns whether the calling thread is the thread of a domain.
pub(crate) fn is_current() -> bool {
    IS_HERE.get()
}

/// Stops the threads of domains that are still open.
pub(crate) fn stop_all() {
    let running = std::mem::take(&mut *RUNNING.lock());
    for device in running.iter().filter_map(Weak::upgrade) {
        device.stop_within(AT_EXIT);
    }
}

impl DeviceThread {
    /// Starts the thread of a domain with these triggers.
    ///
    /// # Errors
    /// The thread or its descriptors cannot be created, which is logged.
    pub(crate) fn start(triggers: &Arc<Triggers>) -> Result<Arc<Self>> {
        let make = || -> std::io::Result<_> {
            let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            add(&epoll, &event)?;
            let (commands, receiver) = unbounded();
            let event = Arc::new(event);
            let mut worker = Worker {
                commands: receiver,
                event: Arc::clone(&event),
                epoll,
                ports: Vec::new(),
                triggers: Arc::clone(triggers),
            };
            let thread = signals::without_signals(|| {
                std::thread::Builder::new().name("tcam-device".to_owned()).spawn(move || {
                    IS_HERE.set(true);
                    while ffi::guard::thread(|| worker.run()).is_err() {
                        std::thread::sleep(AFTER_PANIC);
                    }
                })
            })?;
            Ok((commands, event, thread))
        };
        let (commands, event, thread) = make().inspect_err(|error| {
            tracing::error!("no thread for automatic progress: {error}");
        })?;
        let thread = Mutex::new(Some(thread));
        let device = Arc::new(Self { commands, event, thread, pid: std::process::id() });
        let mut running = RUNNING.lock();
        running.retain(|device| device.strong_count() > 0);
        running.push(Arc::downgrade(&device));
        Ok(device)
    }

    /// Sends a command to the thread, and wakes it.
    ///
    /// # Errors
    /// `EOPBADSTATE` if the thread has ended, or an error of the wakeup.
    fn tell(&self, command: Command) -> Result<()> {
        self.commands.send(command).map_err(|_| Errno::EOPBADSTATE)?;
        self.wake().map_err(std::io::Error::from)?;
        Ok(())
    }

    /// Ends a sleep of the thread. If the descriptor is full, an earlier write has ended the sleep.
    fn wake(&self) -> rustix::io::Result<usize> {
        rustix::io::write(&self.event, &1_u64.to_ne_bytes())
    }

    /// Has the thread start deferred work whose counter has reached its threshold in another
    /// thread.
    #[cold]
    pub(crate) fn run_triggers(&self) {
        if !is_current() {
            let _ = self.wake();
        }
    }

    /// Has the thread make progress on an endpoint from now on.
    ///
    /// # Errors
    /// No descriptors are left, or the thread has ended.
    pub(crate) fn add<P: Pollable + 'static>(&self, port: &Arc<P>) -> Result<()> {
        port.bells(&mut |_| Ok(()))?;
        self.tell(Command::Add(Arc::clone(port) as Arc<dyn Pollable>))
    }

    /// Has the thread make no more progress on an endpoint. Returns when it uses neither the
    /// endpoint nor the buffers of its receives, or after [`PATIENCE`].
    pub(crate) fn remove<P: Pollable + 'static>(&self, port: &Arc<P>) {
        let (done, is_done) = bounded(1);
        if self.is_here()
            && self.tell(Command::Remove(Arc::clone(port) as Arc<dyn Pollable>, done)).is_ok()
        {
            let _ = is_done.recv_timeout(PATIENCE);
        }
    }

    /// Returns whether the thread belongs to this process. A forked child does not have the thread
    /// of its parent.
    pub(crate) fn is_here(&self) -> bool {
        self.pid == std::process::id()
    }

    /// Ends the thread. Waits for its end, for at most [`PATIENCE`].
    pub(crate) fn stop(&self) {
        self.stop_within(PATIENCE);
    }

    fn stop_within(&self, patience: Duration) {
        if !self.is_here() {
            return;
        }
        let Some(thread) = self.thread.lock().take() else { return };
        if self.tell(Command::Stop).is_err() {
            return;
        }
        let end = Instant::now() + patience;
        while !thread.is_finished() && Instant::now() < end {
            std::thread::sleep(Duration::from_micros(100));
        }
        if thread.is_finished() {
            let _ = thread.join();
        }
    }
}

impl Drop for DeviceThread {
    fn drop(&mut self) {
        if self.is_here() {
            self.stop();
        } else {
            // A forked child must not use the handle of a thread that it does not have.
            std::mem::forget(self.thread.lock().take());
        }
    }
}

fn add(epoll: &OwnedFd, source: impl std::os::fd::AsFd) -> rustix::io::Result<()> {
    epoll::add(epoll, source, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
}

/// The state of the thread.
struct Worker {
    commands: Receiver<Command>,
    event: Arc<OwnedFd>,
    epoll: OwnedFd,
    ports: Vec<Arc<dyn Pollable>>,
    triggers: Arc<Triggers>,
}

impl Worker {
    fn run(&mut self) {
        let mut looks = 0_u32;
        let mut since = Instant::now();
        while self.obey() {
            let moved =
                self.ports.iter().filter(|port| port.progress_as_device() == Progress::Some);
            let moved = moved.count() > 0;
            self.triggers.run();
            if moved {
                (looks, since) = (0, Instant::now());
                continue;
            }
            looks += 1;
            if !looks.is_multiple_of(LOOKS) || since.elapsed() < SPIN {
                std::hint::spin_loop();
                continue;
            }
            self.sleep();
            (looks, since) = (0, Instant::now());
        }
    }

    /// Executes the commands of the domain. Returns false if the thread must end.
    fn obey(&mut self) -> bool {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Add(port)) => {
                    let _ = port.bells(&mut |bell| add(&self.epoll, bell));
                    self.ports.push(port);
                }
                Ok(Command::Remove(port, done)) => {
                    self.ports.retain(|other| !Arc::ptr_eq(other, &port));
                    let _ = port.bells(&mut |bell| epoll::delete(&self.epoll, bell));
                    drop(port);
                    let _ = done.send(());
                }
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => return false,
                Err(TryRecvError::Empty) => return true,
            }
        }
    }

    fn sleep(&self) {
        let _ = rustix::io::read(&self.event, &mut [0_u8; 8]);
        // Deferred work that becomes ripe after this ([`super::triggers`]) wakes the thread again.
        self.triggers.run();
        let longest = self.ports.iter().map(|port| port.arm_device()).min();
        let longest = longest.unwrap_or(Duration::MAX);
        if longest > Duration::ZERO && self.commands.is_empty() {
            sleep_on(&[self.epoll.as_fd()], longest);
        }
        for port in &self.ports {
            port.device_awake();
        }
    }
}
