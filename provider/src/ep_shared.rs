// SPDX-License-Identifier: BSD-2-Clause
//! The state that an endpoint shares with the queues and threads that make progress on it or sleep
//! on it: its engine behind a lock, and its doorbell.

use std::{
    net::SocketAddrV4,
    ops::{Deref, DerefMut},
    os::fd::BorrowedFd,
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use channel::{
    net::Net,
    shm::{
        doorbell::{self, Doorbell},
        ring,
        segment::Segment,
    },
};
use ffi::{
    Errno, Result,
    serial::{Serial, SerialGuard},
};
use host::{children::Unshared, owner::own_count};
use matching::Overflow;
use nic::{params::Params, report::WrittenAt};
use parking_lot::Mutex;

use crate::{
    address,
    engine::Engine,
    network,
    record::exit::AtExit,
    rx_fast_path::RxFastPath,
    tx_fast_path::TxFastPath,
    wait::{
        callers,
        idle::{Caller, LONGEST_BACKOFF, Pause, RETRY, SPINS},
        pollable::{Pollable, Progress, count},
        set::sleep_on,
    },
};

/// State that an endpoint shares with its queues and with threads.
#[derive(Debug)]
pub(crate) struct EpShared {
    pub(crate) address: SocketAddrV4,
    /// The secret in the endpoint's name, or 0.
    secret: u64,
    /// Holds the port number; see [`EpShared::release_port`].
    socket: Mutex<Option<Unshared>>,
    /// The segment of this endpoint in shared memory. It consists of atomics, so it needs no lock.
    pub(crate) own: Arc<Segment>,
    /// `None` once the endpoint is closed or has failed.
    engine: Serial<Option<Engine>>,
    /// The engine of an endpoint that has failed, until the endpoint is closed.
    failed: OnceLock<Mutex<Option<Box<Engine>>>>,
    /// The rx fast path. It is set when the endpoint is enabled, if [`RxFastPath::of`] allows it.
    pub(crate) rx_fast_path: OnceLock<RxFastPath>,
    /// The tx fast path. It is set when the endpoint (in a scalable endpoint, its transmit context)
    /// is enabled, if [`TxFastPath::of`] allows it.
    pub(crate) tx_fast_path: OnceLock<TxFastPath>,
    pub(crate) bell: Doorbell,
    /// The network. The engine owns it.
    net: Option<Weak<Net>>,
    /// Whether the device thread makes progress (`FI_PROGRESS_AUTO`).
    auto: bool,
    /// Whether a thread of the application may sleep on this endpoint while another one starts an
    /// operation.
    has_waiters: bool,
}

impl EpShared {
    /// Creates the shared state of a new endpoint.
    pub(crate) fn new(held: Held, engine: Engine, locked: bool, auto: bool) -> Self {
        let Held { socket, address, secret, own, net } = held;
        Self {
            address,
            secret,
            own,
            engine: Serial::new(Some(engine), locked),
            failed: OnceLock::new(),
            rx_fast_path: OnceLock::new(),
            tx_fast_path: OnceLock::new(),
            bell: Doorbell::default(),
            net: net.as_ref().map(Arc::downgrade),
            auto,
            has_waiters: locked && !auto,
            socket: Mutex::new(Some(socket)),
        }
    }

    /// Returns the name of the endpoint, which peers list under `address`.
    pub(crate) fn name_at(&self, address: SocketAddrV4) -> Vec<u8> {
        address::to_name(address, self.secret).to_vec()
    }

    /// Releases the port. This must precede the close of the segment, because a peer that finds a
    /// held port without a segment reports that the segment may be in another `/dev/shm`.
    pub(crate) fn release_port(&self) {
        *self.socket.lock() = None;
    }
}

/// Maximum number of ports that are tried if the application requests no port. A port may be free
/// although its segment exists: an endpoint that is being closed releases its port first.
const PORTS: usize = 16;

/// A held port, with the segment and the network of its future endpoint.
pub(crate) struct Held {
    socket: Unshared,
    pub(crate) address: SocketAddrV4,
    /// The secret in the name of the endpoint, or 0.
    pub(crate) secret: u64,
    pub(crate) own: Arc<Segment>,
    pub(crate) net: Option<Arc<Net>>,
}

/// Holds a port, creates its segment, and opens the network if endpoints use one. `context` is the
/// index in a scalable endpoint with several contexts, and 0 otherwise. `secret` is `None`, or for
/// a later context the secret of the first one.
pub(crate) fn hold(
    wanted: SocketAddrV4,
    context: u8,
    secret: Option<u64>,
    params: &Params,
) -> Result<Held> {
    let has_net = network::is_wanted(params);
    let how = if has_net { address::Hold::Listening } else { address::Hold::Quietly };
    let secret = match secret {
        Some(secret) => secret,
        None if has_net => network::own_secret(params)?,
        None => 0,
    };
    let mut tries = if wanted.port() == 0 { PORTS } else { 1 };
    loop {
        tries -= 1;
        let (socket, address) = address::hold_port(wanted, how)?;
        match Segment::create_context(address, context) {
            Err(Errno::EADDRINUSE) if tries > 0 => {}
            made => {
                let mut own = made?;
                // Flow control holds up senders on purpose.
                if params.takes_counts() && params.overflow != Overflow::FlowControl {
                    own.accept_overflow();
                }
                let own = Arc::new(own);
                let listener = has_net.then(|| socket.try_clone()).transpose()?;
                let open = |listener| {
                    let settings = network::settings(params, secret);
                    Net::new(&settings, listener, own.identity(), address)
                };
                let net = listener.map(open).transpose()?;
                let socket = Unshared::new(socket);
                return Ok(Held { socket, address, secret, own, net });
            }
        }
    }
}

/// Exclusive use of an endpoint's engine, which is `None` once the endpoint is closed or has failed.
/// If a panic ends the use, the endpoint fails.
pub(crate) struct EngineGuard<'a> {
    engine: SerialGuard<'a, Option<Engine>>,
    of: &'a EpShared,
}

impl Deref for EngineGuard<'_> {
    type Target = Option<Engine>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.engine
    }
}

impl DerefMut for EngineGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.engine
    }
}

impl Drop for EngineGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.of.fail(&mut self.engine);
        }
    }
}

/// A use of an endpoint's state without its engine. Dropped only if a panic ends the use; then the
/// endpoint fails.
struct UnlockedUse<'a>(&'a EpShared);

impl Drop for UnlockedUse<'_> {
    fn drop(&mut self) {
        self.0.fail(&mut self.0.engine.lock());
    }
}

/// After a panic in a call, parts of the engine may be missing or contradict each other. So the
/// endpoint *fails*: every later call on it, except `fi_close`, returns `FI_EOTHER`.
impl EpShared {
    /// Waits for exclusive use of the engine.
    #[inline]
    pub(crate) fn lock(&self) -> EngineGuard<'_> {
        EngineGuard { engine: self.engine.lock(), of: self }
    }

    /// Takes exclusive use of the engine; returns `None` if a thread uses it.
    #[inline]
    fn try_lock(&self) -> Option<EngineGuard<'_>> {
        Some(EngineGuard { engine: self.engine.try_lock()?, of: self })
    }

    /// Calls `work`, which uses state of the endpoint without its engine. If `work` panics, the
    /// endpoint fails.
    #[inline(always)]
    pub(crate) fn without_engine<T>(&self, work: impl FnOnce() -> T) -> T {
        let using = UnlockedUse(self);
        let done = work();
        std::mem::forget(using);
        done
    }

    /// Lets the endpoint fail. Peers see it as closed, and threads that wait for it wake up.
    #[cold]
    fn fail(&self, engine: &mut Option<Engine>) {
        let Some(failed) = engine.take() else { return };
        tracing::error!(
            "{}: later calls on the endpoint fail after an internal error",
            self.address
        );
        let mut failed = Box::new(failed);
        let queues = [&failed.completions.tx, &failed.completions.rx].map(|it| it.cq.clone());
        let counters = failed.completions.counters.all().map(|(_, counter)| counter.clone());
        let _ = self.failed.set(Mutex::new(Some(failed)));
        if let Some(sends) = self.tx_fast_path.get() {
            sends.stop();
        }
        self.own.close();
        queues.iter().flatten().for_each(|queue| queue.endpoints.ring());
        counters.iter().for_each(|counter| count(counter.as_ref(), true));
    }

    /// Returns whether the endpoint has failed.
    #[inline]
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.get().is_some()
    }

    /// Removes and returns the engine of an endpoint that has failed; `None` if it has not failed.
    pub(crate) fn take_failed(&self) -> Option<Box<Engine>> {
        self.failed.get()?.lock().take()
    }

    /// Returns the error of calls on an endpoint without an engine: `EOTHER` if it has failed, and
    /// `EOPBADSTATE` if it is closed.
    #[cold]
    pub(crate) fn why_unusable(&self) -> Errno {
        if self.has_failed() { Errno::EOTHER } else { Errno::EOPBADSTATE }
    }

    #[cold]
    fn progress_without_engine(&self) -> Progress {
        if self.has_failed() { Progress::Failed } else { Progress::None }
    }
}

/// Empty polls in a row after which a thread counts as a poller.
const POLLS: u32 = 256;

impl EpShared {
    /// Makes progress, and then makes the copies that are due, without the lock.
    #[inline]
    fn progress_unlocked<'a>(&'a self, mut engine: EngineGuard<'a>) -> Progress {
        let Some(state) = &mut *engine else { return self.progress_without_engine() };
        let progress = state.progress();
        if state.rx.copies.is_empty() { progress } else { self.copy_unlocked(engine, progress) }
    }

    /// Makes the copies that are due and that no other thread has begun, without the lock. Returns
    /// `Progress::Some` if it made a copy, and otherwise `progress`.
    #[cold]
    fn copy_unlocked<'a>(
        &'a self,
        mut engine: EngineGuard<'a>,
        mut progress: Progress,
    ) -> Progress {
        while let Some(copy) = engine.as_mut().and_then(|it| it.rx.copies.begin()) {
            drop(engine);
            let copied = self.without_engine(|| copy.make());
            engine = self.lock();
            // The engine should still be there: the thread that closes the endpoint waits for the
            // copy.
            let Some(state) = &mut *engine else { break };
            state.copied(copy, copied);
            progress = Progress::Some;
        }
        progress
    }

    /// Makes progress in a thread of the application although there is a device thread. Meanwhile
    /// messages do not wake the device thread, if it sleeps.
    fn progress_instead_of_device<'a>(&'a self, mut engine: EngineGuard<'a>) -> Progress {
        let Some(state) = &mut *engine else { return self.progress_without_engine() };
        self.take_over(state);
        let progress = self.progress_unlocked(engine);
        if let Some(state) = &mut *self.lock() {
            self.hand_over(state);
        }
        progress
    }

    /// Stops messages from waking the device thread, while a thread of the application makes
    /// progress on the endpoint.
    fn take_over(&self, engine: &Engine) {
        if engine.device_sleeps {
            Doorbell::take_over(&self.own);
        }
    }

    /// Undoes [`EpShared::take_over`], and wakes the device thread if there is work left.
    fn hand_over(&self, engine: &mut Engine) {
        if engine.device_sleeps {
            Doorbell::hand_over(&self.own);
            if engine.has_pending_work() || engine.inbound.has_any() {
                doorbell::wake(&self.own);
            }
        }
    }

    /// Wakes the sleeping device thread, or waiting threads, if copies are due, or if answers or
    /// parts of operations wait for room at a peer.
    #[inline]
    pub(crate) fn wake(&self, engine: &Engine) {
        if (engine.device_sleeps || self.has_waiters) && engine.has_pending_work() {
            doorbell::wake(&self.own);
        }
    }

    /// Calls `work` with the engine, and returns its result. Then makes the copies that `work` has
    /// queued, if several threads may use the endpoint and no device thread makes them. Otherwise
    /// the next progress makes them.
    ///
    /// # Errors
    /// Those of `work` and of [`Self::why_unusable`].
    pub(crate) fn with_engine<T>(&self, work: impl FnOnce(&mut Engine) -> Result<T>) -> Result<T> {
        let mut guard = self.lock();
        let engine = guard.as_mut().ok_or_else(|| self.why_unusable())?;
        let done = work(engine);
        self.wake(engine);
        if self.has_waiters {
            self.copy_unlocked(guard, Progress::None);
        }
        done
    }

    /// Returns whether messages may have come that the engine has not handled. Over the network,
    /// only a poll of the engine finds that out.
    #[inline]
    pub(crate) fn may_have_arrivals(&self) -> bool {
        self.net.is_some() || ring::has_arrivals(&self.own)
    }

    /// Handles all messages that have come. The errors are those of [`Self::with_engine`].
    #[cold]
    pub(crate) fn receive_arrived(&self) -> Result<()> {
        self.with_engine(|engine| {
            engine.receive_arrived();
            Ok(())
        })
    }

    /// Sleeps on the descriptors of the network and of the doorbell, for at most `at_most`. Does
    /// not sleep if `ready` returns true.
    fn sleep_on_bells(
        &self,
        net: &Net,
        bell: BorrowedFd<'_>,
        at_most: Duration,
        ready: &dyn Fn() -> bool,
    ) {
        // The sleep is limited, because another thread that sleeps here may take the wakeup that is
        // meant for this one.
        let longest = self.arm_bells().min(at_most).min(LONGEST_BACKOFF);
        if longest > Duration::ZERO && !ready() {
            sleep_on(&[net.doorbell(), bell], longest);
        }
    }

    /// Returns the network, if it is open.
    fn network(&self) -> Option<Arc<Net>> {
        self.net.as_ref()?.upgrade()
    }

    fn longest_sleep(&self) -> Duration {
        self.lock().as_mut().map_or(Duration::MAX, Engine::longest_sleep)
    }
}

impl Pollable for EpShared {
    #[inline]
    fn progress(&self) -> Progress {
        if !self.auto {
            return self.progress_unlocked(self.lock());
        }
        match self.try_lock() {
            Some(engine) => self.progress_instead_of_device(engine),
            None => Progress::None,
        }
    }

    fn try_progress(&self) {
        if !self.auto
            && let Some(mut engine) = self.try_lock()
        {
            if let Some(state) = &mut *engine {
                state.look_around();
            }
            self.progress_unlocked(engine);
        }
    }

    fn pause(&self, caller: Caller) -> Pause {
        let mut guard = self.lock();
        let Some(engine) = &mut *guard else { return Pause::None };
        let caller = if engine.peers.wants_room { Caller::Waits } else { caller };
        // If each poll includes the network, there is no time to poll shared memory repeatedly.
        engine.idle.asks_elsewhere =
            engine.peers.transports.has_net() && engine.peers.transports.schedule.is_every_poll();
        let pause = engine.idle.pause(caller);
        let gives_way = matches!(pause, Pause::Yield | Pause::Sleep(_));
        if gives_way || engine.checks.is_look_due() {
            if gives_way || engine.idle.empty_polls() >= POLLS {
                callers::note_poller();
            }
            engine.look_around();
        }
        if pause != Pause::Spin {
            engine.idle.note_return(caller);
            // The thread yields instead of sleeping if work waits for room at a peer. It also
            // yields if the process has other endpoints, because a message may already wait at the
            // one that it polls next.
            let yields = gives_way && (engine.waits_for_room() || own_count() > 1);
            return if yields { Pause::Yield } else { pause };
        }
        self.take_over(engine);
        let came = (0..SPINS).any(|_| {
            std::hint::spin_loop();
            engine.inbound.has_local()
        });
        engine.idle.note_return(caller);
        if came {
            // Without a device thread, the caller handles the message. With one, the message is
            // handled here, because `progress` only tries to get the lock.
            if self.auto {
                self.progress_instead_of_device(guard);
            }
            return Pause::Spin;
        }
        engine.peers.transports.schedule.advance_by(SPINS);
        self.hand_over(engine);
        Pause::None
    }

    fn look_around(&self) {
        if let Some(engine) = &mut *self.lock() {
            engine.look_around();
        }
    }

    fn sleep(&self, at_most: Duration, ready: &dyn Fn() -> bool) {
        // If there is a device thread, that thread waits for the network.
        let net = self.network().filter(|_| !self.auto);
        if let Some(net) = &net
            && let Ok(bell) = self.bell.socket(&self.own)
        {
            return self.sleep_on_bells(net, bell, at_most, ready);
        }
        let at_most = if net.is_some() { at_most.min(RETRY) } else { at_most };
        let longest = self.bell.arm(&self.own).min(self.longest_sleep()).min(at_most);
        if longest > Duration::ZERO && !ready() {
            Doorbell::sleep(&self.own, longest);
        }
        self.bell.disarm(&self.own);
        // The doorbell has woken this thread, but not the device thread. So this thread handles the
        // message.
        if self.auto {
            self.progress_instead_of_device(self.lock());
        }
    }

    fn wake(&self) {
        doorbell::wake(&self.own);
    }

    fn is_auto(&self) -> bool {
        self.auto
    }

    fn bells(&self, look: &mut dyn FnMut(BorrowedFd<'_>) -> rustix::io::Result<()>) -> Result<()> {
        let mut look = |bell: BorrowedFd<'_>| look(bell).map_err(std::io::Error::from);
        look(self.bell.socket(&self.own)?)?;
        match self.network() {
            Some(net) => Ok(look(net.doorbell())?),
            None => Ok(()),
        }
    }

    fn arm_bells(&self) -> Duration {
        self.bell.arm_socket(&self.own).min(self.longest_sleep())
    }

    fn finish_copies(&self) {
        // Copies that are due are made here, because perhaps no other thread will make them.
        self.copy_unlocked(self.lock(), Progress::None);
        while self.lock().as_ref().is_some_and(|engine| engine.rx.copies.holds_arrivals()) {
            std::thread::yield_now();
        }
    }

    fn set_processes(&self, count: &dyn Fn() -> u32) {
        if let Some(engine) = &mut *self.lock() {
            engine.set_processes(count());
        }
    }

    fn check_names(&self) {
        if let Some(engine) = &mut *self.engine.lock() {
            engine.check_names();
        }
    }

    fn progress_as_device(&self) -> Progress {
        self.progress_unlocked(self.lock())
    }

    fn arm_device(&self) -> Duration {
        let mut engine = self.lock();
        let Some(engine) = &mut *engine else { return Duration::MAX };
        engine.device_sleeps = true;
        let longest = self.bell.arm_device(&self.own);
        longest.min(engine.longest_sleep())
    }

    fn device_awake(&self) {
        if let Some(engine) = &mut *self.lock() {
            engine.device_sleeps = false;
            Doorbell::take_over(&self.own);
            engine.look_around();
        }
    }
}

impl AtExit for EpShared {
    fn at_exit(&self) {
        if !self.own.is_ours() {
            return;
        }
        match self.engine.lock_at_exit().as_deref_mut() {
            // Another thread may be in the middle of a post, or this one, if a signal handler calls
            // `exit`.
            Some(Some(engine)) if engine.rx.device.is_free_at_exit() => {
                engine.write_report(self.address, WrittenAt::Exit);
                engine.rx.device.lock().end_recording();
                engine.peers.transports.send_bye();
                if let Some(pool) = &engine.node_pool {
                    pool.leave_at_exit();
                }
            }
            Some(None) => {}
            _ => tracing::error!(
                "{}: the process exits in the middle of a call: its last counts are not reported",
                self.address
            ),
        }
        self.release_port();
        self.own.close_and_remove();
    }
}
