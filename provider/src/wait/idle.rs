// SPDX-License-Identifier: BSD-2-Clause
//! Decides what an endpoint does after a poll that found nothing.
//!
//! If there is a core for each poller, a poll spins: a message is seen 0.1 us after it was sent.
//! MPICH yields the core after each empty poll, which takes 0.3 us and more. A caller that does
//! nothing but poll is therefore kept in the poll for a moment. If there are more pollers than
//! cores they may run on ([`host::poller_count`]), the process with the message to send waits for
//! this core. After many empty polls, a poll then sleeps until a sender rings the doorbell
//! (`channel::shm::doorbell`) or something arrives from the network.
//!
//! `MPI_Wait` and a program that computes for 0.1 us between two calls of `MPI_Test` look the same
//! here, and other processes may wait for the result of that computation. So no caller is kept in
//! polls for long. Only the first few empty polls spin. If few pollers share a core, there are many
//! polls between two sleeps. A caller that does more than wait, or that waits for very long, does
//! not sleep while a core is idle.
//!
//! A poll must not sleep for long while another thread may wait for a lock that this thread holds
//! ([`super::callers`]).

use std::{
    cell::Cell,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use nic::params::types::IdlePolicy;

use crate::wait::callers::{Callers, Others};

/// Longest sleep of a thread that waits for room at a peer or for a free file descriptor. No
/// doorbell announces either of them.
pub(crate) const RETRY: Duration = Duration::from_micros(50);

/// The action after an empty poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Return to the caller.
    None,
    /// Poll again for a moment, [`SPINS`] times.
    Spin,
    /// Give the core to another thread or process.
    Yield,
    /// Sleep until a message comes, for at most this time.
    Sleep(Duration),
}

/// The caller of a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A blocking call, or one that tries again until a peer has room: it has nothing else to do.
    Waits,
    /// The application.
    Polls,
    /// The application, which may poll other endpoints as well. Their messages must not wait for a
    /// spin at this one, and a thread that finds messages there is not idle.
    PollsSeveral,
}

/// The state of empty polls in a row.
#[derive(Debug)]
pub(crate) struct Idle {
    policy: IdlePolicy,
    /// Whether there are more pollers than cores.
    outnumbered: bool,
    /// Pollers per core.
    pollers: u32,
    /// Empty polls between two sleeps, computed from `pollers` in advance, because each poll reads
    /// it.
    again: u32,
    /// Empty polls since the thread found something at any endpoint that it polls.
    empty: u32,
    /// Empty polls since the thread found something at this endpoint.
    empty_here: u32,
    /// Time at which the last empty poll returned.
    rested: Instant,
    /// Processor time of the polling thread when it was last read.
    cpu: Duration,
    /// Time of that read, if no sleep came since.
    watched: Instant,
    /// Sleeps since something was found.
    backoffs: u32,
    /// Length of the last sleep.
    backoff: Duration,
    /// Whether a poll of the application has slept, and nothing was found or started since.
    rests: bool,
    /// Number of waits with a sleep until the caller counts again as one that only waits; 0 if it
    /// counts as one. It is set to [`ACTS`] if the caller starts an operation after a sleep, before
    /// it has found anything.
    acts: u32,
    /// Whether the caller did nothing but wait when that was last measured.
    only_waits: bool,
    /// Function that returns whether the host has an idle processor; `None` if this thread may not
    /// run on all processors.
    ask: Option<fn() -> bool>,
    /// The last answer of `ask`; false once something is found, unless `acts` is set.
    room: bool,
    /// The last value of [`FOUND`].
    found: u32,
    /// Whether each poll also polls the network. Then it has no time to poll the ring repeatedly,
    /// or to read the clock.
    pub(crate) asks_elsewhere: bool,
    pub(crate) callers: Callers,
}

/// A caller that polls again within this time does nothing but poll.
const TIGHT: Duration = Duration::from_micros(2);
/// Reads of the ring in one poll of such a caller, about 1.5 us.
pub(crate) const SPINS: u32 = 80;
/// Maximum number of empty polls in a row that spin. If no message has come by then, the caller may
/// have something else to do.
const SPINNING: u32 = 16;
/// Empty polls before a poll yields the core although there is a core for each poller: some 30 ms.
/// Other programs may need the core.
const PATIENCE: u32 = 20_000;
/// Empty polls before a sleep although there is a core for each poller. After such a long wait, the
/// time of a wakeup does not matter.
const LONG: u32 = 200_000;
/// Empty polls before a sleep if cores are short. A caller that waits long must leave the core to
/// processes that compute, but a message that comes at once should find the caller awake.
///
/// Measured on 2 cores, with a sleep after 20 / 100 / 300 / 1000 polls:
/// - FDS-like program on 32 ranks of MPICH: 0.14 / 0.20 / 0.30 / 0.47 s.
/// - Barrier on 64 ranks of MPICH: 7.4 / 7.9 / 5.4 / 5.4 ms; of Open MPI: 1.1 ms each.
///
/// A yield in addition to that of the MPI library only costs time.
const SHORT: u32 = 20;
/// Empty polls before a sleep of a caller that only waited before, with many pollers per core. The
/// process with the awaited message runs only after all other pollers of its core.
///
/// Barrier, allreduce and alltoall on MPICH:
/// - 64 ranks: 5.4 / 5.6 / 8.0 ms after 20 polls, 4.2 / 4.1 / 6.3 ms after 3.
/// - 32 ranks: 1.3 / 1.4 / 2.3 ms after 20 polls, 1.3 / 1.3 / 1.8 ms after 3.
/// - 16 ranks: 0.20 / 0.20 / 0.36 ms after 20 polls, but 0.30 / 0.30 / 0.44 ms after 2.
const SHORTEST: u32 = 3;
/// More pollers per core than this are many.
const MANY: u32 = 8;
/// Empty polls before a sleep if cores are short, but the host had an idle core when the thread
/// last asked. Asking takes 4 us.
const ROOMY: u32 = 1000;
/// Most processor time per poll of a caller that only waits, on average over the measured polls. A
/// caller that works between polls must not be put to sleep.
const POLL: Duration = Duration::from_micros(5);
/// Most processor time between two sleeps of a caller that only waits, if the polls do not take
/// longer.
const BETWEEN_SLEEPS: Duration = Duration::from_micros(100);
/// Empty polls between two sleeps. With 2, 3, ... pollers per core, it is 1/4, 1/9, ... of this,
/// but at least 1/100. MPI libraries yield after each poll, which costs some 3 us of the core if
/// another process uses it.
const AGAIN: u32 = 200;
/// Sleeps without a message, with fewer cores than pollers, after which a thread asks for an idle
/// core. A thread that only waits should not take a core from processes that come to compute. The
/// test program `fds_gather` on 32 ranks of MPICH and 2 cores takes 0.84 / 0.74 / 0.69 / 0.63 s if
/// threads ask after 1 / 4 / 16 sleeps / never (medians of 11).
const LATE: u32 = 16;
/// Number of waits with a sleep until a caller counts again as one that only waits, after it
/// started something although a sleep had found no message. The ranks of NWChem serve other ranks
/// between steps. On 4 ranks of Open MPI and 2 cores, NWChem takes 4.5 s if this number is 1. With
/// 64 it takes 3.5 s, as without sleeping.
const ACTS: u32 = 64;
/// Number of sleeps without a message after which a thread checks again whether it shares its core,
/// although there is one for each poller.
const ENOUGH: u32 = 256;
/// First sleep. Each further sleep without a message is twice as long, up to
/// `Idle::longest_backoff`.
pub(crate) const BACKOFF: Duration = Duration::from_millis(1);
/// Longest sleep of a poll while another thread may call the endpoint. The kernel adds 50 us.
const BRIEF_BACKOFF: Duration = Duration::from_micros(50);
/// Longest sleep. 256 ranks that wake every millisecond keep two cores busy.
pub(crate) const LONGEST_BACKOFF: Duration = Duration::from_millis(16);

/// Number of times that threads which poll several endpoints have found something.
static FOUND: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The endpoint that this thread polled last: the address of its [`Idle`].
    static POLLED: Cell<usize> = const { Cell::new(0) };
}

/// Returns the number of polls before the first sleep over which the processor time is measured.
/// Reading it takes 0.7 us, which is too much for a short wait.
fn watched(patience: u32) -> u32 {
    (patience / 2).max(2)
}

/// Returns the processor time that this thread has used.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

impl Idle {
    pub(crate) fn new(policy: IdlePolicy) -> Self {
        Self {
            policy,
            outnumbered: false,
            pollers: 1,
            again: AGAIN,
            empty: 0,
            empty_here: 0,
            rested: Instant::now(),
            cpu: Duration::ZERO,
            watched: Instant::now(),
            backoffs: 0,
            backoff: BACKOFF,
            rests: false,
            acts: 0,
            only_waits: false,
            ask: None,
            room: false,
            found: 0,
            asks_elsewhere: false,
            callers: Callers::default(),
        }
    }

    /// Sets the number of threads that poll endpoints, as far as known, and of cores for them.
    /// `ask` returns whether the host has an idle core; `None` if this thread may not run on all
    /// cores.
    pub(crate) fn set_population(
        &mut self,
        population: usize,
        cores: usize,
        ask: Option<fn() -> bool>,
    ) {
        let pollers = population / cores.max(1);
        self.outnumbered = population > cores.max(1);
        self.pollers = pollers.try_into().unwrap_or(u32::MAX);
        self.again = AGAIN / self.pollers.clamp(1, 10).pow(2);
        self.ask = ask;
    }

    /// Returns whether there are more pollers than cores, so that polls may sleep.
    pub(crate) fn is_crowded(&self) -> bool {
        match self.policy {
            IdlePolicy::Auto => self.outnumbered,
            IdlePolicy::Spin => false,
            IdlePolicy::Yield => true,
        }
    }

    /// Notes that the caller starts an operation.
    #[inline(always)]
    pub(crate) fn note_call(&mut self) {
        self.callers.start();
    }

    /// Notes that the caller has started an operation that goes to a peer.
    #[inline]
    pub(crate) fn note_operation(&mut self) {
        if std::mem::take(&mut self.rests) {
            self.acts = ACTS;
        }
    }

    /// Notes that a poll found something. `several`: the process has other endpoints, which the
    /// same thread may poll.
    #[inline]
    pub(crate) fn note_found(&mut self, several: bool) {
        if std::mem::take(&mut self.rests) {
            self.acts = if self.callers.take_acts() { ACTS } else { self.acts.saturating_sub(1) };
        }
        self.room &= self.acts > 0;
        (self.empty, self.empty_here, self.backoffs) = (0, 0, 0);
        if several && self.comes_from_another() {
            FOUND.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns whether this thread polled another endpoint since it last polled this one. Notes
    /// that it polls this one.
    fn comes_from_another(&self) -> bool {
        let this = std::ptr::from_ref(self).addr();
        POLLED.replace(this) != this
    }

    /// Counts an empty poll. Returns what to do after it.
    #[inline]
    pub(crate) fn pause(&mut self, caller: Caller) -> Pause {
        self.callers.poll();
        let polls_others = caller == Caller::PollsSeveral && self.comes_from_another();
        if polls_others {
            let found = FOUND.load(Ordering::Relaxed);
            if found != std::mem::replace(&mut self.found, found) {
                (self.empty, self.backoffs, self.rests) = (0, 0, false);
            }
        }
        self.empty = self.empty.saturating_add(1);
        self.empty_here = self.empty_here.wrapping_add(1);
        let crowded = self.is_crowded();
        if self.policy != IdlePolicy::Spin {
            let patience = self.patience(crowded);
            if self.empty >= patience {
                return self.decide_sleep(patience, crowded, caller);
            }
            if self.backoffs == 0 && self.empty == patience - watched(patience) + 1 {
                self.cpu = cpu_time();
                self.watched = Instant::now();
            }
            if !crowded && self.empty > PATIENCE && self.empty.is_multiple_of(64) {
                return Pause::Yield;
            }
        }
        let spins = !crowded
            && !polls_others
            && !self.asks_elsewhere
            && (self.empty_here <= SPINNING || caller == Caller::Waits)
            && self.rested.elapsed() < TIGHT;
        if spins { Pause::Spin } else { Pause::None }
    }

    /// Returns the number of empty polls before a sleep.
    fn patience(&self, crowded: bool) -> u32 {
        match (crowded, self.backoffs) {
            (true, _) if self.room => ROOMY,
            (true, 0) if self.acts == 0 && self.only_waits && self.pollers > MANY => SHORTEST,
            (true, 0) if self.acts == 0 => SHORT,
            (false, 0) => LONG,
            (true, 0) => SHORT.max(self.again),
            _ => self.again,
        }
    }

    /// Returns [`Pause::Sleep`]. Returns [`Pause::None`] instead if another thread needs a lock
    /// that this one may hold, if the caller worked between its polls, or if there is a core for
    /// this thread.
    #[cold]
    fn decide_sleep(&mut self, patience: u32, crowded: bool, caller: Caller) -> Pause {
        let others = self.callers.others();
        if others == Others::Active && caller != Caller::Waits {
            self.empty = 0;
            return Pause::None;
        }
        let now = cpu_time();
        let used = now.saturating_sub(std::mem::replace(&mut self.cpu, now));
        let most = match self.backoffs {
            0 => POLL * watched(patience),
            _ => (POLL * patience).max(BETWEEN_SLEEPS),
        };
        self.only_waits = used <= most;
        self.empty = 0;
        if !self.only_waits {
            self.backoffs = 0;
            return Pause::None;
        }
        if caller != Caller::Waits && self.has_core(used, crowded) {
            return Pause::None;
        }
        // Other threads may have started operations since the last sleep.
        if self.callers.take_acts() && self.rests {
            self.acts = ACTS;
        }
        self.backoff = if self.backoffs == 0 {
            BACKOFF
        } else {
            (self.backoff * 2).min(self.longest_backoff())
        };
        (self.backoffs, self.rests) = (self.backoffs.saturating_add(1), caller != Caller::Waits);
        Pause::Sleep(if others == Others::Away { self.backoff } else { BRIEF_BACKOFF })
    }

    /// Returns whether this thread may go on polling. `used` is its processor time since it was
    /// last read. If there is a core for each poller, the thread may go on if it `used` a core
    /// nearly all of that time, or if it is time to measure this again ([`ENOUGH`]). If cores are
    /// short (`crowded`), it may go on if the host has an idle core.
    fn has_core(&mut self, used: Duration, crowded: bool) -> bool {
        if !crowded {
            let has_one = match self.backoffs {
                0 => used > self.watched.elapsed() * 7 / 8,
                backoffs => backoffs >= ENOUGH,
            };
            if has_one {
                self.backoffs = 0;
            }
            return has_one;
        }
        // With many pollers per core, a poller does not ask after each of its sleeps.
        let turns = (self.pollers / 4).max(1);
        let is_late = self.backoffs >= LATE && self.backoffs.is_multiple_of(turns);
        let asks = self.policy == IdlePolicy::Auto && (self.room || self.acts > 0 || is_late);
        self.room = asks && self.ask.is_some_and(|ask| ask());
        self.room
    }

    /// Returns the longest sleep. It grows with the number of pollers per core, so that wakeups
    /// take a bounded share of the core. With few pollers it stays short: a caller that tests a
    /// request a number of times and goes on must not be delayed.
    fn longest_backoff(&self) -> Duration {
        (BACKOFF * self.pollers.min(256) / 16).clamp(BACKOFF, LONGEST_BACKOFF)
    }

    /// Notes that an empty poll returns. Notes the time only if the next poll may spin, because
    /// reading the clock takes longer than the rest of such a poll.
    #[inline]
    pub(crate) fn note_return(&mut self, caller: Caller) {
        let may_spin = self.empty_here < SPINNING || caller == Caller::Waits;
        if may_spin && !self.asks_elsewhere && !self.is_crowded() {
            self.rested = Instant::now();
        }
    }

    /// Returns the number of empty polls of this endpoint in a row.
    pub(crate) fn empty_polls(&self) -> u32 {
        self.empty_here
    }
}

#[cfg(test)]
#[path = "idle_tests.rs"]
mod tests;
