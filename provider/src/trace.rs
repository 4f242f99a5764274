// SPDX-License-Identifier: BSD-2-Clause
//! `FI_TCAM_TRACE`: what is asked of the device, recorded (see `nic::trace`).

use std::{
    io,
    path::{Path, PathBuf},
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use ffi::{Errno, Result};
use matching::TagLayout;
use nic::{
    device::Device,
    params::Params,
    trace::{Header, Recorder, Stop, stamped},
};

use crate::{
    channel::tape::{Tape, WINDOW},
    engine::{Kept, RecvOp},
    init, report,
};

/// Records from one look at the clock to the next: reading it takes longer than
/// recording.
const CLOCK: u32 = 16;
/// Bytes of a unit of `FI_TCAM_TRACE_MAX`.
const MIB: u64 = 1 << 20;

/// The trace of one context. Its file is made with the first record.
#[derive(Debug)]
struct Trace {
    path: PathBuf,
    header: Header,
    max: u64,
    state: State,
    started: Instant,
    now: u64,
    records: u32,
}

#[derive(Debug)]
enum State {
    New,
    Recording(Tape),
    Stopped,
}

impl Recorder for Trace {
    #[inline]
    fn record(&mut self, words: [u64; 4]) {
        if self.records.is_multiple_of(CLOCK) {
            self.now = self.started.elapsed().as_nanos() as u64;
        }
        self.records = self.records.wrapping_add(1);
        match &mut self.state {
            State::Recording(tape) => {
                if let Err(stop) = tape.push(stamped(words, self.now)) {
                    self.stop(stop);
                }
            }
            State::New => self.begin(words),
            State::Stopped => {}
        }
    }
}

impl Trace {
    #[cold]
    fn begin(&mut self, words: [u64; 4]) {
        match Tape::create(&self.path, &self.header.to_bytes(), self.max) {
            Ok(tape) => {
                self.state = State::Recording(tape);
                self.record(words);
            }
            Err(error) => {
                self.state = State::Stopped;
                eprintln!("tcam: no trace, {}: {error}", self.path.display());
            }
        }
    }

    #[cold]
    fn stop(&mut self, stop: Stop) {
        self.state = State::Stopped;
        let why = match stop {
            Stop::Size => format!("FI_TCAM_TRACE_MAX={} MiB is reached", self.max / MIB),
            Stop::Disk => "the disk is full".to_owned(),
        };
        eprintln!(
            "tcam: the trace {} ends after {} records: {why}; the program goes on",
            self.path.display(),
            self.records
        );
    }
}

/// Has a device recorded, if that is wanted. `name` tells it from others of this process.
///
/// # Errors
/// The directory cannot be made: said on the error output, since the recording is
/// what the run is for.
pub(crate) fn start(
    device: &mut Device<RecvOp, Kept>,
    params: &Params,
    name: &str,
    address: &str,
) -> Result<()> {
    let directory = params.text("trace");
    if directory.is_empty() {
        return Ok(());
    }
    let directory = Path::new(directory).to_owned();
    if let Err(error) = std::fs::create_dir_all(&directory) {
        eprintln!("tcam: cannot record to FI_TCAM_TRACE={}: {error}", directory.display());
        return Err(errno(&error));
    }
    let max = params.number("trace_max") as u64 * MIB;
    let header = header(params, device.tagged.layout(), address);
    let name = match header.rank {
        Some(rank) => format!("{rank}.{}.{name}", header.pid),
        None => format!("p.{}.{name}", header.pid),
    };
    for (context, of) in [("tagged", &mut device.tagged), ("msg", &mut device.msg)] {
        of.set_recorder(Box::new(Trace {
            path: directory.join(format!("{name}.{context}.trace")),
            header: Header { context: context.to_owned(), ..header.clone() },
            max,
            state: State::New,
            started: Instant::now(),
            now: 0,
            records: 0,
        }));
    }
    Ok(())
}

fn errno(error: &io::Error) -> Errno {
    match error.kind() {
        io::ErrorKind::StorageFull => Errno::ENOSPC,
        io::ErrorKind::PermissionDenied => Errno::EACCES,
        _ => Errno::EINVAL,
    }
}

fn header(params: &Params, layout: TagLayout, address: &str) -> Header {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Header {
        context: String::new(),
        tcam: env!("CARGO_PKG_VERSION").to_owned(),
        libfabric: init::libfabric_version(),
        host: report::host(),
        pid: std::process::id(),
        rank: report::rank(),
        address: address.to_string(),
        program: std::env::current_exe().unwrap_or_default().display().to_string(),
        start_ns: since_1970.as_nanos() as u64,
        window: WINDOW as u32,
        layout: layout.name().to_owned(),
        config: params.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "a measurement: cargo test --release -p provider -- --ignored --nocapture cost_of_recording"]
    fn cost_of_recording() {
        const RECORDS: u64 = 10_000_000;
        let path = std::env::temp_dir().join(format!("tcam-cost-{}", std::process::id()));
        let mut trace = Trace {
            path: path.clone(),
            header: Header::default(),
            max: u64::MAX,
            state: State::New,
            started: Instant::now(),
            now: 0,
            records: 0,
        };
        for _ in 0..3 {
            let started = Instant::now();
            (0..RECORDS).for_each(|at| trace.record([5, at, 8, 1]));
            let ns = started.elapsed().as_nanos() as f64 / RECORDS as f64;
            println!("{ns:.1} ns a record");
        }
        std::fs::remove_file(path).unwrap();
    }
}
