// SPDX-License-Identifier: BSD-2-Clause
//! What a poll that finds nothing does, and deadlines of waiting calls.
//!
//! With a core for every endpoint a poll spins: a message is seen 0.1 us after
//! it was sent. A caller that does nothing but poll (MPICH yields the core, 0.3 us
//! and more, after each poll that finds nothing) is kept a moment inside of it. With more endpoints than cores the one that has the message to
//! send is waiting for this core: a poll sleeps, once many found nothing, until a
//! sender rings (see `channel::link`).

use std::{
    ffi::c_int,
    time::{Duration, Instant},
};

/// What to do after a poll that found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pause {
    /// Return to the caller.
    None,
    /// Look again for a moment, [`SPINS`] times.
    Spin,
    /// Let another process run.
    Yield,
    /// Sleep until a message comes.
    Sleep,
}

/// How idle polls behave (`FI_TCAM_IDLE`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    /// Give the core away when endpoints outnumber cores.
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
    cores: usize,
    population: usize,
    empty: u32,
    /// When the last poll that found nothing returned.
    rested: Instant,
}

/// A caller that comes back this soon does nothing but poll.
const TIGHT: Duration = Duration::from_micros(2);
/// Looks at the ring in one poll of such a caller, about 1.5 us.
pub(crate) const SPINS: u32 = 80;
/// Empty polls before the core is given away though there is one for everyone:
/// some 30 ms, in case others need it.
const PATIENCE: u32 = 20_000;
/// Empty polls before a sleep though there is a core for everyone: what comes
/// after so long a wait is not hurt by a wake-up.
const LONG: u32 = 200_000;
/// Empty polls before a sleep when cores are short. MPI libraries yield between
/// polls themselves, and a message mostly comes within a few rounds of the ranks.
/// Measured at 64 ranks on 2 cores (barrier, Open MPI / MPICH): sleep after 20
/// polls 1.2 / 8.7 ms, after 1000 1.0 / 3.6 ms, never 5.2 / 3.8 ms; a yield of our
/// own on top of theirs only costs.
const SHORT: u32 = 1000;
/// Longest sleep: a bound on what a lost wake-up costs.
pub(crate) const NAP: Duration = Duration::from_millis(1);

impl Idle {
    pub(crate) fn new(policy: Policy) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self { policy, cores, population: 1, empty: 0, rested: Instant::now() }
    }

    /// Endpoints on this host, as far as known.
    pub(crate) fn set_population(&mut self, population: usize) {
        self.population = population;
    }

    /// Whether endpoints outnumber cores, so that polls may sleep.
    pub(crate) fn is_crowded(&self) -> bool {
        match self.policy {
            Policy::Auto => self.population > self.cores,
            Policy::Spin => false,
            Policy::Yield => true,
        }
    }

    /// A poll found something.
    #[inline]
    pub(crate) fn busy(&mut self) {
        self.empty = 0;
    }

    /// A poll found nothing.
    #[inline]
    pub(crate) fn pause(&mut self) -> Pause {
        self.empty = self.empty.saturating_add(1);
        if self.is_crowded() {
            return if self.empty < SHORT { Pause::None } else { Pause::Sleep };
        }
        let gives_way = self.policy != Policy::Spin;
        match self.empty {
            polls if gives_way && polls > LONG => Pause::Sleep,
            polls if gives_way && polls > PATIENCE && polls.is_multiple_of(64) => Pause::Yield,
            _ if self.rested.elapsed() < TIGHT => Pause::Spin,
            _ => Pause::None,
        }
    }

    /// The poll that found nothing returns.
    pub(crate) fn rested(&mut self) {
        self.rested = Instant::now();
    }

    /// Empty polls in a row; wraps never.
    pub(crate) fn empty_polls(&self) -> u32 {
        self.empty
    }
}

/// The end of a waiting call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// Milliseconds from now; negative is never.
    pub(crate) fn after(timeout: c_int) -> Self {
        Self(
            u64::try_from(timeout)
                .ok()
                .map(|timeout| Instant::now() + Duration::from_millis(timeout)),
        )
    }

    pub(crate) fn is_over(&self) -> bool {
        self.0.is_some_and(|end| Instant::now() >= end)
    }

    /// Time left, at most `most`.
    pub(crate) fn left(&self, most: Duration) -> Duration {
        self.0.map_or(most, |end| end.saturating_duration_since(Instant::now()).min(most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_a_crowded_host_polls_sleep_in_the_end_and_a_message_starts_over() {
        let mut idle = Idle::new(Policy::Auto);
        idle.set_population(usize::MAX);
        let pauses: Vec<_> = (0..SHORT + 1).map(|_| idle.pause()).collect();
        assert_eq!(pauses[0], Pause::None);
        assert_eq!(*pauses.last().unwrap(), Pause::Sleep);
        idle.busy();
        assert_eq!(idle.pause(), Pause::None);
    }

    #[test]
    fn with_a_core_for_everyone_polls_spin() {
        let spins = |pause| matches!(pause, Pause::None | Pause::Spin);
        let mut idle = Idle::new(Policy::Auto);
        assert!((0..1000).all(|_| spins(idle.pause())));
        assert!((0..PATIENCE).any(|_| idle.pause() == Pause::Yield));
        let mut idle = Idle::new(Policy::Spin);
        assert!((0..2 * LONG).all(|_| spins(idle.pause())));
    }
}
