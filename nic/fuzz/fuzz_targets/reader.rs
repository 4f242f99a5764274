// SPDX-License-Identifier: BSD-2-Clause
//! Fuzz target that reads any bytes as a trace. If the bytes are no trace, the reader must return
//! an error. If they are one, the trace is replayed on a small table, and its counts must add up.
//!
//! With cargo-fuzz: `cd nic && cargo +nightly fuzz run reader`.
//! Without: `tests/nightly/fuzz.sh nic reader SECONDS` builds and runs the same program.
#![no_main]

use libfuzzer_sys::fuzz_target;
use matching::{HostEngine, HostStorage, Overflow, TableKind, TagLayout};
use nic::config::DeviceConfig;
use nic::params::Params;
use nic::replay::Replay;
use nic::report::ContextCounters;
use nic::trace::{End, HEADER, Header, Reader, STATE, Stop, state};

/// Picks one element by a byte.
fn pick<T: Copy>(all: &[T], byte: u8) -> T {
    all[usize::from(byte) % all.len()]
}

/// A small device, chosen by some bytes.
fn device(bytes: [u8; 6]) -> DeviceConfig {
    let [entries, engine, storage, overflow, layout, refuse] = bytes;
    let entries = entries % 16;
    let params = Params::from_lookup(|name| {
        Some(match name {
            "prq_entries" | "umq_entries" => entries.to_string(),
            "host_engine" => pick(HostEngine::NAMES, engine).to_owned(),
            // There is no such file: every source is in the default cluster.
            "clusters" => "unread".to_owned(),
            "host_storage" => pick(HostStorage::NAMES, storage).to_owned(),
            "table" => pick(TableKind::NAMES, storage / 2).to_owned(),
            "overflow" => pick(Overflow::NAMES, overflow).to_owned(),
            "refuse" => pick(&["none", "any-source", "non-contiguous"], refuse).to_owned(),
            "theta" => "4".to_owned(),
            "host_entry_ns" => "1".to_owned(),
            _ => return None,
        })
    });
    let layout = pick(TagLayout::ALL, layout);
    let mut config = DeviceConfig::from_params(&params.expect("these are allowed"), layout);
    (config.prq.depths, config.umq.depths) = (true, true);
    config
}

fn play(bytes: &[u8], config: &DeviceConfig, curves: bool) -> Option<ContextCounters> {
    let mut replay = Replay::new(config).expect("a small table");
    if curves {
        replay.keep_curves();
    }
    for timed in Reader::new(bytes).ok()? {
        replay.play(&timed.ok()?.1);
    }
    if let Some([prq, umq]) = replay.context().curves() {
        let counters = replay.counters();
        for entries in [0, 1, 1000] {
            prq.counters(&counters.prq, entries).check().expect("the curve of the PRQ adds up");
            umq.counters(&counters.umq, entries).check().expect("the curve of the UMQ adds up");
        }
    }
    Some(replay.counters())
}

fuzz_target!(|data: &[u8]| {
    // The data as a whole file, header included.
    play(data, &device([0; 6]), false);
    // The rest as records after a valid header.
    let Some((&window, rest)) = data.split_first() else { return };
    let Some((first, records)) = rest.split_first_chunk() else { return };
    let config = device(*first);
    let (laps, window) = (u64::from(window >> 4 & 3), pick(&[0, 128, 1024], window));
    let mut trace = Header { window, ..Header::default() }.to_bytes();
    assert_eq!(trace.len(), HEADER);
    let ends = [End::Open, End::Stopped(Stop::Size), End::Stopped(Stop::Disk), End::Closed(0), End::Closed(3)];
    let end = pick(&ends, first[5]);
    trace[HEADER - STATE..].copy_from_slice(state(laps, end).map(u32::to_le_bytes).as_flattened());
    trace.extend_from_slice(records);
    let curves = first[0] & 0x80 != 0 && first[3].is_multiple_of(Overflow::ALL.len() as u8);
    if let Some(counters) = play(&trace, &config, curves) {
        counters.check().expect("the counts add up");
    }
});
