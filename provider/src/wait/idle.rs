// SPDX-License-Identifier: BSD-2-Clause
//! What a poll that finds nothing does, and deadlines of waiting calls.
//!
//! With a core for everyone who polls a poll spins: a message is seen 0.1 us after it
//! was sent. A caller that does nothing but poll (MPICH yields the core, 0.3 us and more,
//! after each poll that finds nothing) is kept a moment inside of it. With more of them
//! than cores they may run on ([`host::census`]) the one that has the message to
//! send is waiting for this core: a poll sleeps, once many found nothing, until a sender
//! rings (`channel::shm::bell`).
//!
//! `MPI_Wait` and a program that computes for 0.1 us between two `MPI_Test` look the same
//! from here, and what such a program computes is what others wait for. So nobody is kept
//! inside of polls for long: only the first few spin; between two sleeps there are many polls
//! where few share a core; and who does something else than wait, or waits for very long, does
//! not sleep while a core has nothing to do.
//!
//! Nor may a poll sleep for long where another thread may wait for a lock that this one holds
//! ([`super::callers`]).

use std::{
    cell::Cell,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use crate::wait::callers::{Callers, Others};

/// Longest sleep of who waits for room at a peer, or for a descriptor, which rings no bell.
pub(crate) const RETRY: Duration = Duration::from_micros(50);

/// What to do after a poll that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Return to the caller.
    None,
    /// Look again for a moment, [`SPINS`] times.
    Spin,
    /// Let another process run.
    Yield,
    /// Sleep until a message comes, at most so long.
    Sleep(Duration),
}

/// Who polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A blocking call, or one that tries again until a peer has made room: nothing is to be
    /// done before.
    Waits,
    /// The application.
    Polls,
    /// The same, which may poll other endpoints as well: what they have must not wait for a
    /// spin, and who finds something there is not idle.
    PollsSeveral,
}

/// How idle polls behave (`FI_TCAM_IDLE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Give the core away when those who poll outnumber cores.
    Auto,
    /// Never give it away.
    Spin,
    /// Always give it away.
    Yield,
}

/// Polls in a row that found nothing.
#[derive(Debug)]
pub(crate) struct Idle {
    policy: Policy,
    /// Those who poll outnumber cores,
    outnumbered: bool,
    /// there are so many for each,
    pollers: u32,
    /// and so many empty polls between two sleeps: told rarely and asked for in each poll.
    again: u32,
    /// So many since the thread found something at any endpoint that it polls,
    empty: u32,
    /// and since it did at this one.
    empty_here: u32,
    /// When the last poll that found nothing returned.
    rested: Instant,
    /// Processor time of the polling thread when it was last looked at,
    cpu: Duration,
    /// and when that was, if no sleep came since.
    watched: Instant,
    /// Sleeps since something was found.
    naps: u32,
    /// Length of the last.
    nap: Duration,
    /// The last was that of a caller who may just wait, and nothing was found or started since.
    rests: bool,
    /// Waits to sleep through until the caller is taken for one that just waits: it has started
    /// something without having found anything.
    acts: u32,
    /// The caller has lately done nothing but wait.
    waits: bool,
    /// Whether the host has a processor with nothing to do; none to ask where those that this
    /// thread may run on are not all of them.
    ask: Option<fn() -> bool>,
    /// It had when last asked.
    room: bool,
    /// What [`FOUND`] was.
    found: u32,
    /// Each poll asks more than the ring: it has no time to look there again and again, nor at the clock.
    pub(crate) asks_elsewhere: bool,
    pub(crate) callers: Callers,
}

/// A caller that comes back this soon does nothing but poll.
const TIGHT: Duration = Duration::from_micros(2);
/// Looks at the ring in one poll of such a caller, about 1.5 us,
pub(crate) const SPINS: u32 = 80;
/// and how many polls in a row that found nothing look so often: what is waited for comes
/// soon, or the caller may have something else to do.
const SPINNING: u32 = 16;
/// Empty polls before the core is given away though there is one for everyone:
/// some 30 ms, in case others need it.
const PATIENCE: u32 = 20_000;
/// Empty polls before a sleep though there is a core for everyone: what comes
/// after so long a wait is not hurt by a wake-up.
const LONG: u32 = 200_000;
/// Empty polls before a sleep when cores are short. Who waits long must leave the
/// core to who computes; a message that comes at once should find us awake.
/// Measured on 2 cores, sleep after 20 / 100 / 300 / 1000 polls: FDS-like program on
/// 32 ranks of MPICH 0.14 / 0.20 / 0.30 / 0.47 s; barrier on 64 ranks of MPICH 7.4 /
/// 7.9 / 5.4 / 5.4 ms, of Open MPI 1.1 ms each. A yield of our own on top of the MPI
/// library's only costs.
const SHORT: u32 = 20;
/// The same of a caller that only waited before, with many for each core: the one whose
/// message is waited for has its turn only after all others. Barrier, allreduce, alltoall
/// on 64 ranks of MPICH after 20 polls 5.4 / 5.6 / 8.0 ms, after 3 4.2 / 4.1 / 6.3, on 32 ranks
/// 1.3 / 1.4 / 2.3 and 1.3 / 1.3 / 1.8; but on 16 ranks after 20 0.20 / 0.20 / 0.36, after 2
/// 0.30 / 0.30 / 0.44.
const SHORTEST: u32 = 3;
/// Pollers a core that are many.
const MANY: u32 = 8;
/// Empty polls before a sleep when cores are short, but one had nothing to do when last
/// asked. To ask takes 4 us.
const ROOMY: u32 = 1000;
/// Processor time a poll of a caller that only waits takes at most, on average
/// over those that are watched. One that works between polls must not be put to sleep.
const POLL: Duration = Duration::from_micros(5);
/// The same for all that happens between two sleeps, if the polls do not take longer.
const BETWEEN_SLEEPS: Duration = Duration::from_micros(100);
/// Empty polls between two sleeps; with two, three ... threads for each core a fourth, a
/// ninth ... of them. MPI libraries yield after each, for which some 3 us of the core are gone
/// where another uses it.
const AGAIN: u32 = 200;
/// Sleeps in vain, with fewer cores than pollers, after which one asks for a core. That one
/// which only waits has it keeps it from those who come to compute (`fds_gather`, 32 ranks of
/// MPICH on 2 cores, after 1 / 4 / 16 sleeps / never: 0.84 / 0.74 / 0.69 / 0.63 s, medians
/// of 11).
const LATE: u32 = 16;
/// Waits that a caller sleeps through before it is taken for one that just waits, if it once
/// did something else after a sleep in vain. NWChem, whose ranks serve others between steps, on 4
/// ranks of Open MPI and 2 cores after 1 / 64: 4.5 / 3.5 s, as without sleeping.
const ACTS: u32 = 64;
/// Sleeps in vain after which a thread that shared its core, though there is one for everyone,
/// sees again whether it does.
const ENOUGH: u32 = 256;
/// First sleep; each further one without a message is twice as long.
pub(crate) const NAP: Duration = Duration::from_millis(1);
/// Longest sleep of a poll while another thread is about, to which the kernel adds 50 us.
const BRIEF_NAP: Duration = Duration::from_micros(50);
/// Longest sleep of all. 256 ranks that wake every millisecond keep two cores busy.
pub(crate) const LONGEST_NAP: Duration = Duration::from_millis(16);

/// How often threads that poll several endpoints found something.
static FOUND: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Which of several endpoints this thread polled last: the address of its [`Idle`].
    static POLLED: Cell<usize> = const { Cell::new(0) };
}

/// Polls before the first sleep of which the processor time is looked at: asking for it
/// takes 0.7 us, which a wait that soon ends is spared.
fn watched(patience: u32) -> u32 {
    (patience / 2).max(2)
}

/// Processor time this thread has used.
fn cpu_time() -> Duration {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}

impl Idle {
    pub(crate) fn new(policy: Policy) -> Self {
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
            naps: 0,
            nap: NAP,
            rests: false,
            acts: 0,
            waits: false,
            ask: None,
            room: false,
            found: 0,
            asks_elsewhere: false,
            callers: Callers::default(),
        }
    }

    /// Threads that poll endpoints, as far as known, and cores for them; and how to `ask` for
    /// a core that nobody uses, if any on the host will do.
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

    /// Whether those who poll outnumber cores, so that polls may sleep.
    pub(crate) fn is_crowded(&self) -> bool {
        match self.policy {
            Policy::Auto => self.outnumbered,
            Policy::Spin => false,
            Policy::Yield => true,
        }
    }

    /// The caller starts an operation.
    #[inline(always)]
    pub(crate) fn starts(&mut self) {
        self.callers.start();
    }

    /// The caller has started an operation that goes to a peer.
    #[inline]
    pub(crate) fn acted(&mut self) {
        if std::mem::take(&mut self.rests) {
            self.acts = ACTS;
        }
    }

    /// A poll found something. `several`: there are other endpoints, which the same thread may
    /// poll.
    #[inline]
    pub(crate) fn busy(&mut self, several: bool) {
        if std::mem::take(&mut self.rests) {
            self.acts = if self.callers.take_acts() { ACTS } else { self.acts.saturating_sub(1) };
        }
        self.room &= self.acts > 0;
        (self.empty, self.empty_here, self.naps) = (0, 0, 0);
        if several && self.comes_from_another() {
            FOUND.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Whether this thread polled another endpoint since it last polled this one.
    fn comes_from_another(&self) -> bool {
        let this = std::ptr::from_ref(self).addr();
        POLLED.replace(this) != this
    }

    /// A poll found nothing.
    #[inline]
    pub(crate) fn pause(&mut self, caller: Caller) -> Pause {
        self.callers.poll();
        let polls_others = caller == Caller::PollsSeveral && self.comes_from_another();
        if polls_others {
            let found = FOUND.load(Ordering::Relaxed);
            if found != std::mem::replace(&mut self.found, found) {
                (self.empty, self.naps, self.rests) = (0, 0, false);
            }
        }
        self.empty = self.empty.saturating_add(1);
        self.empty_here = self.empty_here.wrapping_add(1);
        let crowded = self.is_crowded();
        if self.policy != Policy::Spin {
            let patience = self.patience(crowded);
            if self.empty >= patience {
                return self.sleep(patience, crowded, caller);
            }
            if self.naps == 0 && self.empty == patience - watched(patience) + 1 {
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

    /// Empty polls before a sleep.
    fn patience(&self, crowded: bool) -> u32 {
        match (crowded, self.naps) {
            (true, _) if self.room => ROOMY,
            (true, 0) if self.acts == 0 && self.waits && self.pollers > MANY => SHORTEST,
            (true, 0) if self.acts == 0 => SHORT,
            (false, 0) => LONG,
            (true, 0) => SHORT.max(self.again),
            _ => self.again,
        }
    }

    /// Sleeps, unless another thread needs what this one may hold, the caller has been working
    /// between its polls, or nobody else has a use for the core.
    #[cold]
    fn sleep(&mut self, patience: u32, crowded: bool, caller: Caller) -> Pause {
        let others = self.callers.others();
        if others == Others::Active && caller != Caller::Waits {
            self.empty = 0;
            return Pause::None;
        }
        let now = cpu_time();
        let used = now.saturating_sub(std::mem::replace(&mut self.cpu, now));
        let most = match self.naps {
            0 => POLL * watched(patience),
            _ => (POLL * patience).max(BETWEEN_SLEEPS),
        };
        self.waits = used <= most;
        self.empty = 0;
        if !self.waits {
            self.naps = 0;
            return Pause::None;
        }
        if caller != Caller::Waits && self.has_core(used, crowded) {
            return Pause::None;
        }
        // What was started beside the calls of this thread, since the last sleep.
        if self.callers.take_acts() && self.rests {
            self.acts = ACTS;
        }
        self.nap = if self.naps == 0 { NAP } else { (self.nap * 2).min(self.longest_nap()) };
        (self.naps, self.rests) = (self.naps.saturating_add(1), caller != Caller::Waits);
        Pause::Sleep(if others == Others::Away { self.nap } else { BRIEF_NAP })
    }

    /// Whether this thread may as well poll on: it had a core for itself while it was watched
    /// and `used` so much time of it, or the host has one for it.
    fn has_core(&mut self, used: Duration, crowded: bool) -> bool {
        if !crowded {
            let has_one = match self.naps {
                0 => used > self.watched.elapsed() * 7 / 8,
                naps => naps >= ENOUGH,
            };
            if has_one {
                self.naps = 0;
            }
            return has_one;
        }
        // With many pollers not each of them after each of its sleeps.
        let turns = (self.pollers / 4).max(1);
        let is_late = self.naps >= LATE && self.naps.is_multiple_of(turns);
        let asks = self.policy == Policy::Auto && (self.room || self.acts > 0 || is_late);
        self.room = asks && self.ask.is_some_and(|ask| ask());
        self.room
    }

    /// Longest sleep: the more endpoints share a core, the longer, so that waking
    /// them takes a bounded share of it. With few it stays short: a caller that
    /// tests a request a number of times and goes on must not be held up.
    fn longest_nap(&self) -> Duration {
        (NAP * self.pollers.min(256) / 16).clamp(NAP, LONGEST_NAP)
    }

    /// The poll that found nothing returns. When only matters if the next may spin; the clock
    /// takes longer than all else in such a poll.
    #[inline]
    pub(crate) fn rested(&mut self, caller: Caller) {
        let may_spin = self.empty_here < SPINNING || caller == Caller::Waits;
        if may_spin && !self.asks_elsewhere && !self.is_crowded() {
            self.rested = Instant::now();
        }
    }

    /// Empty polls in a row, of this endpoint.
    pub(crate) fn empty_polls(&self) -> u32 {
        self.empty_here
    }
}

#[cfg(test)]
#[path = "idle_tests.rs"]
mod tests;
