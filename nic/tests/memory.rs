// SPDX-License-Identifier: BSD-2-Clause
//! Measures the memory of contexts as resident pages. Most buckets of an index are in pages of
//! zeros that are never written, and such pages take no memory.

use matching::{Key, OffloadConfig, Source};
use nic::config::DeviceConfig;
use nic::device::Context;
use nic::message::Receive;

/// Number of contexts over which pages are averaged.
const CONTEXTS: usize = 1000;

/// `(receives, bytes)`: the number of receives in a context, and the bytes that it may then take.
const MOST: [(usize, usize); 3] = [(0, 5 << 10), (26, 21 << 10), (200, 88 << 10)];

/// Resident bytes of this process, from its page tables, because other counters in `/proc` lag
/// behind.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = text.lines().find(|line| line.starts_with("Rss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Bytes of a context with this many receives.
fn bytes(receives: usize) -> usize {
    // The largest table: its size must not matter.
    let offload = OffloadConfig { entries: 65_536, depths: true, ..OffloadConfig::default() };
    let config = DeviceConfig { prq: offload, umq: offload, ..DeviceConfig::default() };
    let mut contexts = Vec::with_capacity(CONTEXTS);
    let before = resident();
    contexts.extend((0..CONTEXTS).map(|_| Box::new(Context::<u64, u64>::new(&config).unwrap())));
    for context in &mut contexts {
        for tag in 0..receives as u64 {
            let key = Key { bits: tag, ignore: 0, source: Source::new(tag as u32 % 4) };
            let mut receive = Receive { key, len: 8, multi: None, non_contiguous: false, data: 0 };
            let _ = context.post(&mut receive);
        }
    }
    let bytes = (resident() - before) / CONTEXTS;
    // The contexts are not freed: the next ones would reuse their memory, which is not zero, and
    // would have to clear it.
    contexts.into_iter().for_each(std::mem::forget);
    bytes
}

#[test]
fn memory_depends_on_the_receives_and_not_on_the_size_of_the_table() {
    for (receives, most) in MOST {
        let bytes = bytes(receives);
        assert!(bytes <= most, "{bytes} bytes with {receives} receives");
    }
}
