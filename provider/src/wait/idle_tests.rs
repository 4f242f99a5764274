// SPDX-License-Identifier: BSD-2-Clause
//! Tests of when polls sleep, and for how long.

use super::*;

/// Polls until the next sleep. Returns the number of these polls and the length of the sleep;
/// `None` if none of `most` polls sleeps.
fn next_sleep(idle: &mut Idle, most: u32) -> Option<(u32, Duration)> {
    (1..=most).find_map(|polls| match idle.pause(Caller::Polls) {
        Pause::Sleep(backoff) => Some((polls, backoff)),
        _ => None,
    })
}

#[test]
fn on_a_crowded_host_polls_sleep_after_a_while_and_a_message_resets_that() {
    let mut idle = Idle::new(IdlePolicy::Auto);
    for (population, polls, longest) in
        [(2, SHORT, BACKOFF), (usize::MAX, SHORTEST, LONGEST_BACKOFF)]
    {
        idle.set_population(population, 1, None);
        let pauses: Vec<_> = (0..polls).map(|_| idle.pause(Caller::Polls)).collect();
        assert_eq!(pauses[0], Pause::None);
        assert_eq!(pauses[polls as usize - 1], Pause::Sleep(BACKOFF));
        let again = if population == 2 { AGAIN / 4 } else { AGAIN / 100 };
        assert!((0..10).all(|_| next_sleep(&mut idle, LONG).unwrap().0 == again));
        assert_eq!(next_sleep(&mut idle, LONG), Some((again, longest)));
        idle.note_found(false);
        assert_eq!(idle.pause(Caller::Polls), Pause::None);
        idle.note_found(false);
    }
}

#[test]
fn a_caller_that_works_between_polls_is_not_put_to_sleep() {
    let work = |time| {
        let start = cpu_time();
        while cpu_time() - start < time {}
    };
    for population in [1, usize::MAX] {
        let mut idle = Idle::new(IdlePolicy::Yield);
        idle.set_population(population, 1, None);
        for (polls, time) in [(1, 4 * POLL), (2, 30 * POLL), (3, 30 * POLL)] {
            // The caller waits first.
            assert!((0..10 * SHORT).any(|_| idle.pause(Caller::Polls) != Pause::None));
            idle.note_found(false);
            let pauses = (0..10 * SHORT).flat_map(|_| {
                work(time);
                (0..polls).map(|_| idle.pause(Caller::Polls)).collect::<Vec<_>>()
            });
            let sleeps = pauses.filter(|&pause| pause != Pause::None).count();
            assert!(sleeps <= 2, "{population} {polls} {time:?}: {sleeps}");
        }
    }
}

#[test]
fn a_caller_that_waits_for_very_long_polls_on_while_a_core_is_idle() {
    let mut idle = Idle::new(IdlePolicy::Auto);
    idle.set_population(2, 1, Some(|| true));
    assert!((0..LATE).all(|_| next_sleep(&mut idle, SHORT.max(AGAIN)).is_some()));
    assert_eq!(next_sleep(&mut idle, LONG), None);
    idle.note_found(false);
    assert_eq!(next_sleep(&mut idle, LONG), Some((SHORT, BACKOFF)));
    // A caller that waits for room has nothing else to do.
    idle.note_found(false);
    let sleeps = (0..LONG).filter(|_| idle.pause(Caller::Waits) != Pause::None);
    assert!(sleeps.count() > LATE as usize);
}

/// Between two polls, the caller computes something that other processes wait for.
#[test]
fn a_caller_that_starts_something_after_a_sleep_in_vain_does_not_only_wait() {
    let mut idle = Idle::new(IdlePolicy::Auto);
    idle.set_population(2, 1, Some(|| true));
    idle.note_operation();
    assert_eq!(next_sleep(&mut idle, LONG), Some((SHORT, BACKOFF)));
    idle.note_operation();
    assert_eq!(next_sleep(&mut idle, LONG), None);
    idle.note_found(false);
    assert_eq!(next_sleep(&mut idle, LONG), None, "nor after a message");
    idle.set_population(2, 1, Some(|| false));
    idle.note_found(false);
    assert_eq!(next_sleep(&mut idle, ROOMY), Some((ROOMY, BACKOFF)));
    assert_eq!(next_sleep(&mut idle, LONG), Some((AGAIN / 4, BACKOFF)));
    for _ in 2..ACTS {
        idle.note_found(false);
        assert_eq!(next_sleep(&mut idle, LONG), Some((AGAIN / 4, BACKOFF)));
    }
    idle.set_population(8, 1, None);
    idle.note_found(false);
    assert_eq!(
        next_sleep(&mut idle, LONG),
        Some((SHORT, BACKOFF)),
        "as early as a caller that waits"
    );
    idle.set_population(2, 1, None);
    idle.note_found(false);
    assert_eq!(next_sleep(&mut idle, LONG), Some((SHORT, BACKOFF)), "it waited");
}

#[test]
fn a_thread_that_may_delay_another_sleeps_briefly_or_not_at_all() {
    let mut idle = Idle::new(IdlePolicy::Yield);
    let mut in_another_thread = |work: fn(&mut Idle)| {
        std::thread::scope(|scope| {
            scope.spawn(|| work(&mut idle));
        });
        let at_most = AGAIN + SHORT;
        (next_sleep(&mut idle, at_most), next_sleep(&mut idle, at_most))
    };
    let is_brief = |sleep: Option<(u32, Duration)>| sleep.unwrap().1 == BRIEF_BACKOFF;
    let (first, second) = in_another_thread(|_| {});
    assert!(first.unwrap().1 == BACKOFF && second.unwrap().1 == BACKOFF, "no other thread");
    let (first, second) = in_another_thread(|idle| _ = idle.pause(Caller::Polls));
    assert!(is_brief(first) && is_brief(second), "another one polls");
    assert_eq!(in_another_thread(Idle::note_call), (None, None), "another one starts something");
    // A caller that waits for room starts nothing before there is some.
    assert!((0..AGAIN).any(|_| idle.pause(Caller::Waits) == Pause::Sleep(BRIEF_BACKOFF)));
}

#[test]
fn a_thread_that_shares_its_core_with_other_programs_sleeps_after_a_long_wait() {
    let mut idle = Idle::new(IdlePolicy::Auto);
    idle.watched = Instant::now();
    assert!(!idle.has_core(Duration::ZERO, false));
    assert!(idle.has_core(Duration::from_secs(1), false));
    idle.backoffs = 1;
    assert!(!idle.has_core(Duration::from_secs(1), false));
    idle.backoffs = ENOUGH;
    assert!(idle.has_core(Duration::ZERO, false));
}

#[test]
fn a_thread_that_finds_messages_elsewhere_is_not_idle() {
    let [mut busy, mut quiet] = [Idle::new(IdlePolicy::Yield), Idle::new(IdlePolicy::Yield)];
    for _ in 0..10 * SHORT {
        busy.note_found(true);
        assert_eq!(quiet.pause(Caller::PollsSeveral), Pause::None);
    }
    assert!((0..SHORT).any(|_| quiet.pause(Caller::PollsSeveral) != Pause::None));
}

#[test]
fn with_a_core_for_each_poller_polls_spin() {
    let spins = |pause| matches!(pause, Pause::None | Pause::Spin);
    let mut idle = Idle::new(IdlePolicy::Auto);
    assert!((0..1000).all(|_| spins(idle.pause(Caller::Polls))));
    assert!((0..PATIENCE).any(|_| idle.pause(Caller::Polls) == Pause::Yield));
    idle.note_found(false);
    for spun in [true, false] {
        for _ in 0..SPINNING {
            idle.rested = Instant::now() + LONGEST_BACKOFF;
            assert_eq!(idle.pause(Caller::Polls) == Pause::Spin, spun);
        }
    }
    idle.rested = Instant::now() + LONGEST_BACKOFF;
    assert_eq!(idle.pause(Caller::Waits), Pause::Spin);
    let mut idle = Idle::new(IdlePolicy::Spin);
    assert!((0..2 * LONG).all(|_| spins(idle.pause(Caller::Polls))));
    let mut other = Idle::new(IdlePolicy::Spin);
    for _ in 0..3 {
        for turn in [&mut idle, &mut other] {
            turn.note_return(Caller::PollsSeveral);
            assert_eq!(turn.pause(Caller::PollsSeveral), Pause::None);
        }
    }
    other.note_return(Caller::PollsSeveral);
    assert_eq!(other.pause(Caller::PollsSeveral), Pause::Spin, "once more");
}
