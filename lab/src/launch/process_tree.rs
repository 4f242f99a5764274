// SPDX-License-Identifier: BSD-2-Clause
//! Ends a program that takes too long, with all processes that it started. The launcher gets
//! SIGTERM and ends its ranks. Processes that outlive it get SIGTERM, too. Processes that remain
//! after some seconds get SIGKILL.

use std::fs;
use std::path::Path;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use host::owner::start_of;
use rustix::process::{Pid, Signal, kill_process};

/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// A program that is being ended.
#[derive(Debug)]
pub(crate) struct Ending {
    /// Processes that it had started.
    below: Vec<Process>,
    kill: Instant,
}

/// A process. Its number may be reused by another process, which starts later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    started: u64,
}

impl Ending {
    pub(crate) fn begin(child: &Child) -> Self {
        let below = below(child);
        signal(child.id().cast_signed(), Signal::TERM);
        Self { below, kill: Instant::now() + GRACE }
    }

    /// Kills the launcher when the time has come. The caller has not waited for it yet.
    pub(crate) fn go_on(&mut self, child: &mut Child) {
        if Instant::now() >= self.kill {
            self.below.extend(below(child));
            // It may just have ended.
            let _ = child.kill();
        }
    }

    /// Ends processes that outlive the launcher.
    pub(crate) fn finish(mut self) {
        self.below.retain(Process::lives);
        self.below.iter().for_each(|of| signal(of.pid, Signal::TERM));
        while !self.below.is_empty() && Instant::now() < self.kill {
            sleep(POLL);
            self.below.retain(Process::lives);
        }
        self.below.iter().for_each(|of| signal(of.pid, Signal::KILL));
    }
}

impl Process {
    fn lives(&self) -> bool {
        let found = process(&Path::new("/proc").join(self.pid.to_string()));
        found.is_some_and(|(process, _)| process == *self)
    }
}

fn signal(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // It may just have ended.
        let _ = kill_process(pid, signal);
    }
}

/// Returns the process of a directory in `/proc`, and its parent, unless it is a zombie.
fn process(directory: &Path) -> Option<(Process, i32)> {
    let pid = directory.file_name()?.to_str()?.parse().ok()?;
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    // The name before the last parenthesis may contain any characters.
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let parent = words.nth(1)?.parse().ok()?;
    Some((Process { pid, started: start_of(&stat)? }, parent))
}

/// Returns all descendants of a process.
fn below(child: &Child) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all: Vec<_> = entries.filter_map(|entry| process(&entry.path())).collect();
    let mut found = Vec::new();
    let mut parents = vec![child.id().cast_signed()];
    while let Some(above) = parents.pop() {
        for (process, _) in all.iter().filter(|(_, parent)| *parent == above) {
            found.push(*process);
            parents.push(process.pid);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn processes_that_outlive_their_launcher_are_ended_too() {
        let script = "sleep 100 & sh -c 'sleep 100; :' & echo; wait";
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        out.read_exact(&mut [0]).unwrap();
        while below(&child).len() < 3 {
            sleep(POLL);
        }
        let all = below(&child);
        let ending = Ending::begin(&child);
        child.wait().unwrap();
        ending.finish();
        // A process that still held the pipe would keep it open.
        assert_eq!(out.read(&mut [0]).unwrap(), 0);
        assert!(!all.iter().any(Process::lives), "{all:?}");
    }

    #[test]
    fn a_launcher_that_does_not_end_is_killed() {
        let script = "trap '' TERM; echo; sleep 100; sleep 100";
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
        let mut ending = Ending::begin(&child);
        ending.go_on(&mut child);
        assert!(child.try_wait().unwrap().is_none(), "the launcher gets time to end");
        ending.kill = Instant::now();
        ending.go_on(&mut child);
        assert!(!child.wait().unwrap().success());
        ending.finish();
    }
}
