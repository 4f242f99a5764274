// SPDX-License-Identifier: BSD-2-Clause
//! Measures the memory of contexts as resident pages.

use matching::{Key, OffloadConfig, Source};
use nic::config::DeviceConfig;
use nic::device::Context;
use nic::message::{Envelope, Receive};

/// `(contexts, receives, messages, bytes)`: each context has this many receives and unexpected
/// messages, and may then take this many bytes. A simulation of 65,536 ranks has as
/// many contexts as the last row.
const MOST: [(usize, u64, u64, usize); 4] = [
    (1000, 0, 0, 5 << 10),
    (1000, 26, 0, 21 << 10),
    (1000, 200, 0, 88 << 10),
    (65_536, 1, 1, 25 << 10),
];

/// Resident bytes of this process, from its page tables, because other counters in `/proc` lag
/// behind.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = text.lines().find(|line| line.starts_with("Rss:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 1024
}

/// Creates contexts with this many receives and unexpected messages each.
fn contexts(count: usize, receives: u64, messages: u64) -> Vec<Context<u64, u64>> {
    // The largest table: its size must not matter.
    let offload = OffloadConfig { entries: 65_536, depths: true, ..OffloadConfig::default() };
    let config = DeviceConfig { prq: offload, umq: offload, ..DeviceConfig::default() };
    let new = |_| {
        let mut context = Context::new(&config).unwrap();
        for tag in 0..receives {
            let key = Key { bits: tag, ignore: 0, source: Source::new(tag as u32 % 4) };
            let mut receive = Receive { key, len: 8, multi: None, non_contiguous: false, data: 0 };
            let _ = context.post(&mut receive);
        }
        for tag in 0..messages {
            let envelope = Envelope { source: 9, bits: tag, len: 8 };
            assert!(context.arrive(&envelope).is_none());
            context.keep(envelope, 0);
        }
        context
    };
    (0..count).map(new).collect()
}

#[test]
fn memory_depends_on_the_entries_and_not_on_the_size_of_the_table() {
    // After a program has freed a mapped block, glibc takes blocks of this size from the heap, and
    // writes their zeros if they were used before.
    drop(std::hint::black_box(vec![1_u8; 1 << 20]));
    drop(contexts(1, 1, 1));
    for (count, receives, messages, most) in MOST {
        let before = resident();
        let contexts = contexts(count, receives, messages);
        let bytes = (resident() - before) / count;
        assert!(bytes <= most, "{bytes} bytes with {receives} receives and {messages} messages");
        // The contexts are not freed, because the next ones would reuse their memory.
        std::mem::forget(contexts);
    }
}
