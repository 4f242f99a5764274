// SPDX-License-Identifier: BSD-2-Clause
//! Memory of contexts, as resident pages: the buckets of an index are pages of zeros until an entry
//! is put there.

use matching::OffloadConfig;
use nic::config::DeviceConfig;
use nic::device::Context;

/// Number of contexts over which pages are averaged.
const CONTEXTS: usize = 200;

/// Bytes that an idle context with both queues may take.
const MOST: usize = 28 * 1024;

/// Resident bytes of this process.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// Bytes of an idle context.
fn bytes(entries: usize) -> usize {
    let offload = OffloadConfig { entries, depths: true, ..OffloadConfig::default() };
    let config = DeviceConfig { prq: offload, umq: offload, ..DeviceConfig::default() };
    let mut contexts = Vec::with_capacity(CONTEXTS);
    let before = resident();
    contexts.extend((0..CONTEXTS).map(|_| Box::new(Context::<u64, u64>::new(&config).unwrap())));
    (resident() - before) / CONTEXTS
}

/// Only one size, the largest: once such an index was freed, glibc takes memory for the next one
/// from its heap, where the zeros are written.
#[test]
fn an_idle_context_is_small_although_its_table_is_large() {
    let idle = bytes(65_536);
    assert!(idle <= MOST, "{idle} bytes");
}
