// SPDX-License-Identifier: BSD-2-Clause
//! Waits for a program, and ends it if a signal ends tcam or if it takes too long.
//!
//! SIGTERM and SIGHUP are passed on to the launcher, which ends its ranks. SIGINT is passed on only
//! if the terminal does not send Ctrl-C to the launcher. The terminal does so if tcam is in the
//! foreground and the launcher is in its process group. In each case tcam waits for the launcher,
//! because the ranks have written all their files only when the launcher has ended. After a second
//! SIGINT tcam does not wait.
//!
//! A program that takes too long is ended with all processes that it started. The launcher gets
//! SIGTERM and ends its ranks. Processes that outlive the launcher get SIGTERM, too. Processes that
//! remain after five seconds get SIGKILL. If the command is a script that ends by a signal, the
//! processes that it started may outlive it. They are ended in the same way.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use host::owner::{start_of, stat_of};
use rustix::process::{Pid, Signal, getpgid, getpgrp, kill_process};
use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator;
use signal_hook::low_level::signal_name;

use crate::error::Error;
use crate::file;

/// Exit code of tcam's own failures after the command line was read. timeout(1) has the same code.
pub(crate) const OWN_FAILURE: u8 = 125;
/// Time between two polls of a child.
const POLL: Duration = Duration::from_millis(20);
/// Time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// Lines of a failed program's output that are shown.
const TAIL: usize = 20;
/// Largest number of bytes of a failed program's output that are shown.
const TAIL_BYTES: u64 = 1 << 16;

/// How a program ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    /// The signal that asked tcam to end; `None` if none arrived.
    pub(crate) caught: Option<i32>,
    /// True if tcam ended the program because it took longer than its timeout.
    pub(crate) late: bool,
}

impl Ended {
    /// Returns 128 + signal if a signal asked tcam to end, else the exit code of the program.
    pub(crate) fn code(self) -> u8 {
        self.caught.map_or_else(|| exit_code(self.status), code_of)
    }
}

/// Returns the exit code as a shell reports it: 128 + signal for a program that a signal ended.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Returns the exit code for a signal, as a shell reports it.
pub(crate) fn code_of(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// True after a [`Signals`] was dropped, until the next one is made. A signal then ends tcam,
/// because signal-hook does not restore the default action itself.
static IDLE: LazyLock<Arc<AtomicBool>> = LazyLock::new(Arc::default);

/// Catches the signals that ask tcam to end, and SIGCHLD, from when this value is made until it is
/// dropped.
pub(crate) struct Signals {
    coming: iterator::Signals,
    caught: Option<i32>,
    /// True if SIGCHLD is blocked, so that the child must be polled for its end.
    polls: bool,
}

/// Returns true if a signal of this number has a name.
pub(crate) fn is_signal(number: i32) -> bool {
    signal_name(number).is_some()
}

/// Returns the name of a signal, such as SIGTERM.
pub(crate) fn name_of(signal: i32) -> String {
    signal_name(signal).map_or_else(|| format!("signal {signal}"), str::to_owned)
}

impl Signals {
    /// Begins to catch SIGINT, SIGTERM and SIGHUP, so that they do not end tcam at once. Those that
    /// tcam was started to ignore stay ignored.
    pub(crate) fn catch() -> Result<Self, Error> {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        // nohup(1) and shells that start something in the background want these signals ignored.
        let ignores = |&signal: &i32| has(&status, "SigIgn:", signal);
        let all = [SIGINT, SIGTERM, SIGHUP].into_iter();
        let wanted: Vec<_> = all.filter(|signal| !ignores(signal)).collect();
        let failed = |error| message!("signals cannot be waited for: {error}");
        IDLE.store(false, Ordering::SeqCst);
        for &signal in &wanted {
            let idle = Arc::clone(&IDLE);
            signal_hook::flag::register_conditional_default(signal, idle).map_err(failed)?;
        }
        // A daemon may have left SIGCHLD blocked for all processes that it starts.
        let polls = has(&status, "SigBlk:", SIGCHLD);
        let wanted = wanted.into_iter().chain([SIGCHLD]);
        let coming = iterator::Signals::new(wanted).map_err(failed)?;
        Ok(Self { coming, caught: None, polls })
    }

    /// Returns the signal that asked tcam to end, if one has arrived.
    pub(crate) fn caught(&mut self) -> Option<i32> {
        let come = self.coming.pending().find(|&signal| signal != SIGCHLD);
        self.caught = self.caught.or(come);
        self.caught
    }

    /// Starts a command with its output in a log, and waits for its end. Ends it after `timeout`.
    pub(crate) fn wait_logged(
        &mut self,
        command: &mut Command,
        name: &str,
        log: &Path,
        input: ProgramInput,
        timeout: Option<Duration>,
    ) -> Result<Ended, Error> {
        let output = file::begin(log)?;
        let errors = output.try_clone().map_err(Error::io(log))?;
        command.stdin(input.open()?).stdout(output).stderr(errors);
        self.wait(command, name, timeout)
    }

    /// Starts a command and waits for its end. Ends it after `timeout`. After a second SIGINT,
    /// sends SIGTERM to the command and fails with [`Error::Interrupted`] at once.
    pub(crate) fn wait(
        &mut self,
        command: &mut Command,
        name: &str,
        timeout: Option<Duration>,
    ) -> Result<Ended, Error> {
        let failed = |error| Error::Start { program: name.to_owned(), error };
        let mut child = command.spawn().map_err(failed)?;
        let pid = child.id().cast_signed();
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let mut ending: Option<Ending> = None;
        // Processes below the launcher when SIGTERM or SIGHUP was passed on. The signal ends a
        // script, but not the processes that the script started.
        let mut started = Vec::new();
        loop {
            // The child is polled before the wait for signals, because its SIGCHLD may have been
            // taken already.
            if let Some(status) = child.try_wait().map_err(failed)? {
                let late = ending.is_some();
                let kill = Instant::now() + GRACE;
                ending.unwrap_or(Ending { below: started, kill }).finish();
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
                    send(pid, Signal::TERM);
                    return Err(Error::Interrupted);
                }
                if let Some(signal) = Signal::from_named_raw(signal)
                    && (signal != Signal::INT || !at_terminal() || !is_in_own_group(pid))
                {
                    if signal != Signal::INT {
                        started.extend(below(&child));
                    }
                    send(pid, signal);
                }
                if signal == SIGINT {
                    eprintln!("tcam: waiting for {name} to end; Ctrl-C again ends tcam at once");
                }
            }
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        IDLE.store(true, Ordering::SeqCst);
    }
}

/// The input of a program whose output goes to a log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum ProgramInput {
    /// Standard input, if that is a file. The program reads the file from its beginning, because it
    /// may run several times. A pipe with bytes to read is an error. Otherwise there is no input.
    #[default]
    File,
    /// No input. Standard input may be that of a script that runs tcam.
    None,
}

impl ProgramInput {
    fn open(self) -> Result<Stdio, Error> {
        let path = Path::new("/dev/stdin");
        match fs::metadata(path) {
            _ if matches!(self, Self::None) => Ok(Stdio::null()),
            Ok(meta) if meta.file_type().is_fifo() && holds_bytes() => {
                fail!(
                    "standard input is a pipe, and each run must read it from its beginning: write \
                     the input into a file, and give it with < FILE"
                );
            }
            Ok(meta) if meta.is_file() => {
                File::open(path).map(Stdio::from).map_err(Error::io(path))
            }
            _ => Ok(Stdio::null()),
        }
    }
}

/// Returns true if standard input has bytes to read.
fn holds_bytes() -> bool {
    rustix::io::ioctl_fionread(std::io::stdin()).is_ok_and(|bytes| bytes > 0)
}

/// Returns true if a child is in the process group of tcam, so that it gets the same signals of the
/// terminal. timeout(1) leaves that group, because it makes a process group for itself.
fn is_in_own_group(pid: i32) -> bool {
    getpgid(Pid::from_raw(pid)) == Ok(getpgrp())
}

/// Returns true if Ctrl-C at the terminal is sent to this process and its children.
fn at_terminal() -> bool {
    File::open("/dev/tty").is_ok_and(|tty| tcgetpgrp(tty) == Ok(getpgrp()))
}

/// Returns true if a set of signals in `/proc/PID/status`, such as `SigIgn:`, contains this signal.
fn has(status: &str, set: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix(set));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

/// Returns the last lines of a log: at most [`TAIL`] lines of its last [`TAIL_BYTES`] bytes. A log
/// may be larger than the memory.
pub(crate) fn tail(log: &Path) -> Result<String, Error> {
    let mut text = Vec::new();
    let read = File::open(log).and_then(|mut file| {
        let len = file.metadata()?.len();
        file.seek(SeekFrom::Start(len.saturating_sub(TAIL_BYTES)))?;
        file.take(TAIL_BYTES).read_to_end(&mut text)
    });
    read.map_err(Error::io(log))?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL)..].join("\n"))
}

/// A program that is being ended.
#[derive(Debug)]
struct Ending {
    /// Descendants of the program when tcam began to end it, or passed a signal on to it.
    below: Vec<Process>,
    /// Time at which the remaining processes get SIGKILL.
    kill: Instant,
}

/// A process, identified by its number and its start. Another process may reuse the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    started: u64,
}

impl Ending {
    fn begin(child: &Child) -> Self {
        let below = below(child);
        send(child.id().cast_signed(), Signal::TERM);
        Self { below, kill: Instant::now() + GRACE }
    }

    /// Kills the launcher if the time for SIGKILL has come. The caller must not have waited for the
    /// launcher yet.
    fn go_on(&mut self, child: &mut Child) {
        if Instant::now() >= self.kill {
            self.below.extend(below(child));
            // The process may just have ended.
            let _ = child.kill();
        }
    }

    /// Sends SIGTERM to the processes that outlive the launcher, and waits for their end. At the
    /// time for SIGKILL, sends SIGKILL to those that remain.
    fn finish(mut self) {
        self.below.retain(Process::lives);
        self.below.iter().for_each(|of| send(of.pid, Signal::TERM));
        while !self.below.is_empty() && Instant::now() < self.kill {
            sleep(POLL);
            self.below.retain(Process::lives);
        }
        self.below.iter().for_each(|of| send(of.pid, Signal::KILL));
    }
}

impl Process {
    fn lives(&self) -> bool {
        let found = process(&Path::new("/proc").join(self.pid.to_string()));
        found.is_some_and(|(process, _)| process == *self)
    }
}

/// Sends a signal to a process. If the process is a child, the caller must not have waited for it
/// yet, because afterwards another process may have its number.
fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        // The process may just have ended.
        let _ = kill_process(pid, signal);
    }
}

/// Returns the process of a directory in `/proc`, and the number of its parent. Returns `None` for
/// a zombie, and for a directory of no process.
fn process(directory: &Path) -> Option<(Process, i32)> {
    let pid: i32 = directory.file_name()?.to_str()?.parse().ok()?;
    let stat = stat_of(pid.cast_unsigned()).ok()?;
    // The name before the last parenthesis may contain any characters.
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let parent = words.nth(1)?.parse().ok()?;
    Some((Process { pid, started: start_of(&stat)? }, parent))
}

/// Returns all descendants of a child that are not zombies.
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

    #[test]
    fn the_tail_is_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let lines: Vec<_> = (0..50).map(|line| line.to_string()).collect();
        fs::write(&log, lines.join("\n")).unwrap();
        assert!(tail(&log).unwrap().starts_with("30\n"));
        fs::write(&log, "x".repeat(3 << 16) + "\nlast\n").unwrap();
        let end = tail(&log).unwrap();
        assert!(end.ends_with("x\nlast") && end.len() < 1 << 16, "{}", end.len());
        fs::write(&log, "").unwrap();
        assert_eq!(tail(&log).unwrap(), "");
    }

    #[test]
    fn processes_that_outlive_their_launcher_are_ended_too() {
        let script = r"sleep 100 & sh -c 'printf \\377 >/proc/$$/comm; sleep 100; :' & echo; wait";
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
        // A process that still ran would keep the pipe open.
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
