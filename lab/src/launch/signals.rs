// SPDX-License-Identifier: BSD-2-Clause
//! Signals while a program runs: a signal that ends tcam ends the program, too.
//!
//! SIGTERM and SIGHUP are passed on to the launcher, which ends its ranks. Ctrl-C reaches the
//! launcher directly. In both cases tcam waits for the launcher, because only then the ranks have
//! written all files.

use std::fs::{self, File};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator;
use signal_hook::low_level::signal_name;

use super::ending::Ended;
use super::process_tree::Ending;
use crate::error::Error;

/// The signals that have arrived since this was made.
pub(crate) struct Signals {
    coming: iterator::Signals,
    caught: Option<i32>,
    /// True if the end of a child is not signalled, so that it must be polled.
    polls: bool,
}

/// Time between two polls of a child.
const POLL: Duration = Duration::from_millis(20);

/// Returns true if a signal of this number has a name.
pub(crate) fn is_signal(number: i32) -> bool {
    signal_name(number).is_some()
}

/// Returns the name of a signal, such as SIGTERM.
pub(crate) fn name_of(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

impl Signals {
    /// Catches signals, so that they do not end tcam at once.
    pub(crate) fn catch() -> Result<Self, Error> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        // nohup(1) and shells that start something in the background want these signals ignored.
        let ignores = |&signal: &i32| has(&status, "SigIgn:", signal);
        let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| !ignores(signal));
        // A daemon may have left SIGCHLD blocked for all processes that it starts.
        let polls = has(&status, "SigBlk:", SIGCHLD);
        let coming = iterator::Signals::new(wanted.chain([SIGCHLD]))
            .map_err(|error| Error::Signals { error })?;
        Ok(Self { coming, caught: None, polls })
    }

    /// Returns the signal that asked tcam to end, if one has arrived.
    pub(crate) fn caught(&mut self) -> Option<i32> {
        let come = self.coming.pending().find(|&signal| signal != SIGCHLD);
        self.caught = self.caught.or(come);
        self.caught
    }

    /// Starts a command and waits for its end. Ends it after `timeout`.
    pub(crate) fn wait(
        &mut self,
        command: &mut Command,
        name: &str,
        timeout: Option<Duration>,
    ) -> Result<Ended, Error> {
        let failed = |error| Error::Start { program: name.to_owned(), error };
        let mut child = command.spawn().map_err(failed)?;
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut ending: Option<Ending> = None;
        loop {
            // Checked before the signals, because the end of the child is one of them.
            if let Some(status) = child.try_wait().map_err(failed)? {
                let late = ending.is_some();
                if let Some(ending) = ending {
                    ending.finish();
                }
                return Ok(Ended { status, caught: self.caught(), late });
            }
            match &mut ending {
                Some(ending) => ending.go_on(&mut child),
                None if deadline.is_some_and(|deadline| Instant::now() >= deadline) => {
                    ending = Some(Ending::begin(&child));
                }
                None => {}
            }
            let come = if self.polls || deadline.is_some() {
                sleep(POLL);
                self.coming.pending()
            } else {
                self.coming.wait()
            };
            for signal in come.filter(|&signal| signal != SIGCHLD) {
                let again = self.caught.replace(signal) == Some(SIGINT) && signal == SIGINT;
                if again {
                    pass_on(&child, SIGTERM);
                    return Err(Error::Interrupted);
                }
                if signal != SIGINT || !at_terminal() {
                    pass_on(&child, signal);
                }
                if signal == SIGINT {
                    eprintln!("tcam: waiting for {name} to end; Ctrl-C again ends tcam at once");
                }
            }
        }
    }
}

/// Sends a signal to a child that was not waited for yet.
fn pass_on(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        // It may just have ended.
        let _ = kill_process(pid, signal);
    }
}

/// Returns true if Ctrl-C at the terminal is sent to this process and its children.
fn at_terminal() -> bool {
    File::open("/dev/tty").is_ok_and(|tty| tcgetpgrp(tty) == Ok(getpgrp()))
}

/// Returns true if a set of signals in `/proc/PID/status` has this signal.
fn has(status: &str, set: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix(set));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::super::ending::code_of;
    use super::*;

    #[test]
    fn ignored_and_blocked_signals_are_known() {
        let status = "Name:\ttcam\nSigBlk:\t0000000000010000\nSigIgn:\t0000000000001001\n";
        let ignores = |signal| has(status, "SigIgn:", signal);
        assert!(ignores(SIGHUP) && !ignores(SIGINT) && !ignores(SIGTERM) && !ignores(SIGCHLD));
        assert!(has(status, "SigBlk:", SIGCHLD) && !has(status, "SigBlk:", SIGHUP));
        assert!(!has("", "SigIgn:", SIGHUP));
    }

    #[test]
    fn codes_and_names_are_those_of_the_shell() {
        assert_eq!([SIGHUP, SIGINT, SIGTERM].map(code_of), [129, 130, 143]);
        assert_eq!(name_of(SIGTERM), "SIGTERM");
        assert_eq!(name_of(64), "signal 64");
    }
}
