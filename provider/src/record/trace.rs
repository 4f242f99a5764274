// SPDX-License-Identifier: BSD-2-Clause
//! Records the operations of a device, such as posts and arrivals, in trace files (`FI_TCAM_TRACE`;
//! see `nic::trace`).

use std::{
    collections::{HashMap, HashSet},
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use ffi::{Errno, Result};
use host::{
    clock,
    trace_file::{TraceFile, WINDOW},
};
use matching::{Key, Source, TagLayout};
use nic::{
    device::Device,
    params::Params,
    trace::{
        Address, Encoder, Header, Op, OpWord, Recorder, Sink, Stop, Thread, later_record,
        put_error, put_peer, put_poll, put_thread, put_time, step_record,
    },
};

use rustix::time::{ClockId, clock_gettime};

use crate::{
    device::carried::{Kept, RecvOp},
    job,
    params::libfabric_version,
    peer_numbers::PeerNumbers,
    record::{
        caller::LastCaller,
        message,
        sites::{CallSites, Look, NoSites, Recorded, RecordedSites},
    },
};

/// If sends are recorded, one in this many of the operations of one kind in a row may read the
/// processor time. An operation of another kind may always read it, because the program may have
/// computed or waited before.
const RUN: u32 = 16;
/// Minimum length of a computation or a wait that is recorded.
const PAUSE: Duration = Duration::from_micros(10);
/// Bytes per unit of `FI_TCAM_TRACE_MAX`.
const MIB: u64 = 1 << 20;

/// Value of [`Trace::last`] without a record.
const NONE: u32 = 0;

/// The trace of one matching context: tagged or untagged messages. Its file is created with the
/// first operation.
#[derive(Debug)]
struct Trace<S> {
    path: PathBuf,
    /// Boxed, so that the fields that each operation uses are close together.
    header: Box<Header>,
    max: u64,
    state: TraceState,
    /// Start of the recording. All times here are in nanoseconds of [`clock`].
    started: u64,
    /// Time of the last record. Times never decrease.
    now: u64,
    /// The last time that was read from the clock.
    seen: u64,
    /// Time at which the message of the next arrival came, as its sender claims; 0 if it is
    /// unknown.
    came: u64,
    /// Largest error of that time in nanoseconds.
    error: u32,
    /// True if messages arrived, or were taken, since the last poll.
    has_events: bool,
    caller: LastCaller,
    /// Set if sends are recorded.
    pauses: Option<Pauses>,
    /// [`NoSites`], unless the places of calls are recorded.
    sites: S,
    encoder: Encoder,
    /// The record of the last operation, if it was short and its key was known; otherwise [`NONE`].
    last: u32,
    peers: Arc<PeerNumbers>,
    /// Peers whose addresses were written.
    named: HashSet<u32>,
    /// Errors of the times of peers' messages, as written.
    errors: HashMap<u32, u32>,
}

/// Decides when the processor time of the thread is read, if sends are recorded
/// (`FI_TCAM_TRACE_SENDS`). A read takes longer than one of the clock.
#[derive(Debug, Default)]
struct Pauses {
    /// The kind of the last operation.
    kind: Option<u32>,
    /// How many more operations of this kind may follow without a read.
    more: u32,
    /// Time of the last read.
    looked: Option<Instant>,
}

impl Pauses {
    /// Returns whether the processor time is to be read before an operation of this kind: if
    /// another thread calls (`is_other`), or if the last read was at least [`PAUSE`] ago. Of the
    /// operations of one kind in a row, only every [`RUN`]th one is checked.
    fn is_due(&mut self, kind: Option<u32>, is_other: bool) -> bool {
        if !is_other && self.kind == kind && self.more > 0 {
            self.more -= 1;
            return false;
        }
        (self.kind, self.more) = (kind, RUN - 1);
        is_other || self.looked.is_none_or(|then| then.elapsed() >= PAUSE)
    }

    /// Notes the time of this read. Returns the processor time of the calling thread in
    /// nanoseconds.
    fn look(&mut self) -> u64 {
        self.looked = Some(Instant::now());
        let time = clock_gettime(ClockId::ThreadCPUTime);
        // 584 years fit.
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}

#[derive(Debug)]
enum TraceState {
    New,
    Recording(TraceFile),
    Stopped,
}

impl<S: CallSites> Recorder for Trace<S> {
    #[inline]
    fn short(&mut self, head: OpWord, bits: u64, ignore: u64, source: Source) {
        let key = Key { bits, ignore, source };
        let now = self.time(head.is_arrival());
        let is_plain = self.pauses.is_none() && self.caller.is_same() && self.error == 0;
        if !is_plain || !self.try_put_known(now, head, &key) {
            self.record_short(now, head, bits, ignore, source);
        }
    }

    #[cold]
    fn record(&mut self, op: &Op) {
        if matches!(op, Op::Cancel(_) | Op::Drop(_)) {
            // They are rare, and often come long after other operations.
            self.idle();
        }
        let now = self.time(matches!(op, Op::Arrive(_)));
        self.has_events |= matches!(op, Op::Arrive(_));
        let has_site = matches!(op, Op::Post(_) | Op::PostAnyway(_) | Op::Held(_) | Op::Send(_));
        self.prepare(now, None, has_site);
        self.last = NONE;
        match op {
            Op::Arrive(envelope) => {
                self.name_peer(Source::new(envelope.source));
                self.put_error(Source::new(envelope.source));
            }
            Op::Send(sent) => self.name_peer(Source::new(sent.peer)),
            Op::Post(posted) | Op::PostAnyway(posted) | Op::Held(posted) => {
                self.name_peer(posted.key.source);
            }
            _ => {}
        }
        self.put(|encoder, file| encoder.op(file, op));
    }

    #[inline]
    fn came(&mut self, ns: u64, error_ns: u32) {
        (self.came, self.error) = (ns, error_ns);
    }

    fn took(&mut self) {
        self.has_events = true;
    }

    fn polled(&mut self) {
        if self.has_events && self.pauses.is_some() {
            self.has_events = false;
            self.last = NONE;
            self.seen = clock::now();
            let time = self.seen.saturating_sub(self.started);
            self.put(|_, file| put_poll(file, time));
        }
    }

    fn idle(&mut self) {
        if let Some(pauses) = &mut self.pauses {
            pauses.more = 0;
        }
    }

    fn close(&mut self) {
        self.end();
    }
}

impl<S> Drop for Trace<S> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<S> Trace<S> {
    /// Marks the file as complete.
    fn end(&mut self) {
        // A forked child has the same file, and must not write to it.
        if self.header.pid == std::process::id()
            && let TraceState::Recording(file) =
                std::mem::replace(&mut self.state, TraceState::Stopped)
        {
            file.close();
        }
        self.last = NONE;
    }
}

impl<S: CallSites> Trace<S> {
    fn new(
        path: PathBuf,
        header: Header,
        max: u64,
        peers: Arc<PeerNumbers>,
        pauses: Option<Pauses>,
        sites: S,
    ) -> Self {
        let (started, encoder) = (header.start_clock_ns, Encoder::default());
        Self {
            path,
            header: Box::new(header),
            max,
            state: TraceState::New,
            started,
            now: started,
            seen: started,
            came: 0,
            error: 0,
            has_events: false,
            caller: LastCaller::default(),
            pauses,
            sites,
            encoder,
            last: NONE,
            peers,
            named: HashSet::new(),
            errors: HashMap::new(),
        }
    }

    /// Returns the time of the operation that is recorded now: the time at which the message of an
    /// arrival came, if that is known, and otherwise the time of the clock. The time that a sender
    /// wrote is not trusted, so it is at most that of the clock. Forgets the time of a message that
    /// was dropped before it was matched, which another operation follows.
    #[inline(always)]
    fn time(&mut self, is_arrival: bool) -> u64 {
        let mut came = std::mem::take(&mut self.came);
        if !is_arrival {
            (came, self.error) = (0, 0);
        }
        // Of the messages that waited together, only the first reads the clock.
        if came == 0 || came > self.seen {
            self.seen = clock::now();
        }
        let time = if came == 0 { self.seen } else { came.min(self.seen) };
        time.max(self.now)
    }

    #[inline(never)]
    fn record_short(&mut self, now: u64, head: OpWord, bits: u64, ignore: u64, source: Source) {
        self.has_events |= head.is_arrival();
        let key = Key { bits, ignore, source };
        self.prepare(now, Some(head.kind()), head.has_site());
        self.put_error(source);
        if !self.try_put_known(now, head, &key) {
            self.last = NONE;
            self.name_peer(source);
            self.put(|encoder, file| encoder.short(file, head, key));
        }
    }

    /// Writes the record of an operation whose key the encoder knows, preceded by the step of the
    /// time, and by its site if another one was recorded. If the record equals the last one, writes
    /// only that the last one is repeated. Returns false if the key or the site is unknown, the step is
    /// too long, the window of the file (`host::trace_file`) is full, or no file is open.
    #[inline(always)]
    fn try_put_known(&mut self, now: u64, head: OpWord, key: &Key) -> bool {
        let TraceState::Recording(file) = &mut self.state else { return false };
        let Some(word) = self.encoder.known(head, key) else { return false };
        let look = if head.has_site() { self.sites.look() } else { Look::Same };
        let step = now - self.now;
        let is_put = match look {
            Look::Same if step == 0 && word == self.last => file.try_repeat(),
            Look::Same if step == 0 => file.try_put([word]),
            Look::Same if word == self.last => {
                later_record(step).is_some_and(|record| file.try_put([record]))
            }
            Look::Same => step_record(step).is_some_and(|step| file.try_put([step, word])),
            Look::Recent(_, site) if step == 0 => file.try_put([site, word]),
            Look::Recent(_, site) => {
                step_record(step).is_some_and(|step| file.try_put([site, step, word]))
            }
            Look::Other => false,
        };
        if let (true, Look::Recent(place, _)) = (is_put, look) {
            self.sites.note(place);
        }
        if is_put {
            (self.now, self.last) = (now, word);
        }
        is_put
    }

    /// Writes the address of the peer that an operation names, before the first such operation.
    fn name_peer(&mut self, source: Source) {
        let Some(number) = source.get().filter(|number| !self.named.contains(number)) else {
            return;
        };
        self.named.insert(number);
        let address = self.peers.address(number);
        let address = Address { ip: (*address.ip()).into(), port: address.port() };
        self.put(|_, file| put_peer(file, number, address));
    }

    /// Writes the error of the time of this peer's message, if it is larger than the written one or
    /// less than half of it. The written error is an eighth larger, so that few records follow.
    fn put_error(&mut self, source: Source) {
        let error = std::mem::take(&mut self.error);
        let Some(number) = source.get().filter(|_| error > 0) else { return };
        let written = self.errors.entry(number).or_default();
        if error > *written || error < *written / 2 {
            *written = error.saturating_add(error / 8);
            let error = *written;
            self.last = NONE;
            self.put(|_, file| put_error(file, number, error));
        }
    }

    fn put(&mut self, put: impl FnOnce(&mut Encoder, &mut TraceFile) -> Recorded) {
        if let TraceState::Recording(file) = &mut self.state
            && let Err(stop) = put(&mut self.encoder, file)
        {
            self.stop(stop);
        }
    }

    /// Prepares the record of an operation of this kind: records its time, the processor time, if
    /// it is due, and the calling thread and the site, if they have changed.
    fn prepare(&mut self, now: u64, kind: Option<u32>, has_site: bool) {
        if matches!(self.state, TraceState::New) {
            self.begin();
        }
        if now != self.now {
            let (step, since) = (step_record(now - self.now), now - self.started);
            self.put(|_, file| match step {
                Some(step) => file.put([step]),
                None => put_time(file, since),
            });
            (self.now, self.last) = (now, NONE);
        }
        let is_other = !self.caller.is_same() && self.caller.has_changed();
        let is_due = self.pauses.as_mut().is_some_and(|pauses| pauses.is_due(kind, is_other));
        if is_other || is_due {
            self.last = NONE;
            let cpu_ns = self.pauses.as_mut().filter(|_| is_due).map(Pauses::look);
            let thread = Thread { cpu_ns, ..self.caller.thread() };
            self.put(|_, file| put_thread(file, thread));
        }
        if has_site && !matches!(self.sites.look(), Look::Same) {
            self.last = NONE;
            if let TraceState::Recording(file) = &mut self.state
                && let Err(stop) = self.sites.put(file)
            {
                self.stop(stop);
            }
        }
    }

    #[cold]
    fn begin(&mut self) {
        self.state = match TraceFile::create(&self.path, &self.header.to_bytes(), self.max) {
            Ok(file) => TraceState::Recording(file),
            Err(error) => {
                message::print(format_args!(
                    "tcam: cannot create the trace {}: {error}; the program goes on without it",
                    self.path.display()
                ));
                TraceState::Stopped
            }
        };
    }

    #[cold]
    fn stop(&mut self, stop: Stop) {
        self.state = TraceState::Stopped;
        let why = match stop {
            Stop::Size => format!(
                "FI_TCAM_TRACE_MAX={} MiB is reached, or ulimit -f if that is lower",
                self.max / MIB
            ),
            Stop::Disk => "the disk is full".to_owned(),
        };
        message::print(format_args!(
            "tcam: the trace {} ends after {:.1} s: {why}; the program goes on",
            self.path.display(),
            Duration::from_nanos(clock::now() - self.started).as_secs_f64()
        ));
    }
}

/// Records the operations of a device from now on, if that is requested. `name` distinguishes the
/// device from other devices of this process.
///
/// # Errors
/// The directory cannot be created. Then the reason is printed to the error output, because the
/// recording is the purpose of the run.
pub(crate) fn start(
    device: &mut Device<RecvOp, Kept>,
    params: &Params,
    peers: &Arc<PeerNumbers>,
    name: &str,
    address: &str,
) -> Result<()> {
    if !is_wanted(params) {
        return Ok(());
    }
    let directory = Path::new(&params.trace).to_owned();
    if let Err(error) = std::fs::create_dir_all(&directory) {
        message::print(format_args!(
            "tcam: cannot record to FI_TCAM_TRACE={}: {error}",
            directory.display()
        ));
        return Err(errno(&error));
    }
    let max = params.trace_max * MIB;
    let mut header = header(params, device.tagged.layout(), address);
    let sites = (params.trace_sites > 0).then(ffi::sites::Sites::find).flatten();
    header.sites = sites.is_some();
    if params.trace_sites > 0 && !header.sites && header.rank.is_none_or(|rank| rank == 0) {
        message::print(format_args!(
            "tcam: no call sites are recorded, because libtcam-sites.so is not loaded: `tcam run \
             --sites` puts it into LD_PRELOAD, and a script or launcher that sets LD_PRELOAD must \
             append to it"
        ));
    }
    let name = match header.rank {
        Some(rank) => format!("{rank}.{}.{name}", header.pid),
        None => format!("p.{}.{name}", header.pid),
    };
    for (context, of) in [("tagged", &mut device.tagged), ("msg", &mut device.msg)] {
        let path = directory.join(format!("{name}.{context}.trace"));
        let header = Header { context: context.to_owned(), ..header.clone() };
        let pauses = records_sends(params).then(Pauses::default);
        let peers = Arc::clone(peers);
        of.set_recorder(match sites {
            Some(sites) => {
                let sites = RecordedSites::new(sites);
                Box::new(Trace::new(path, header, max, peers, pauses, sites))
            }
            None => Box::new(Trace::new(path, header, max, peers, pauses, NoSites)),
        });
    }
    Ok(())
}

/// Returns whether operations are recorded.
pub(crate) fn is_wanted(params: &Params) -> bool {
    !params.trace.is_empty()
}

/// Returns whether sends are recorded.
pub(crate) fn records_sends(params: &Params) -> bool {
    params.trace_sends.is_on() && is_wanted(params)
}

fn errno(error: &io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::StorageFull => Errno::ENOSPC,
        io::ErrorKind::PermissionDenied => Errno::EACCES,
        _ => Errno::EINVAL,
    }
}

fn header(params: &Params, layout: TagLayout, address: &str) -> Header {
    // One right after the other, because they name the same moment.
    let (start_clock_ns, since_1970) = (clock::now(), SystemTime::now());
    let since_1970 = since_1970.duration_since(UNIX_EPOCH).unwrap_or_default();
    Header {
        context: String::new(),
        tcam: env!("CARGO_PKG_VERSION").to_owned(),
        libfabric: libfabric_version(),
        host: job::host(),
        pid: std::process::id(),
        rank: job::rank(),
        address: address.to_string(),
        program: std::env::current_exe().unwrap_or_default().display().to_string(),
        origin: job::origin(Instant::now()),
        start_ns: since_1970.as_nanos() as u64,
        start_clock_ns,
        window: WINDOW as u32,
        sites: false,
        layout: layout.name().to_owned(),
        config: params.recorded(),
    }
}

#[cfg(test)]
#[path = "trace_tests.rs"]
mod tests;
