// SPDX-License-Identifier: BSD-2-Clause
//! Tests that operations allocate nothing after the table was full once, although they build and
//! drop structures.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use ternary_cam::{Cam, Entry, Kernel, Key, Source, Table};

struct Counting;

thread_local! {
    /// Allocations of this thread: threads of the test harness allocate at any time.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is forwarded to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Defines the test `$test` of the table type `$table`.
macro_rules! nothing_allocates_once_full {
    ($test:ident, $table:ident) => {
        #[test]
        fn $test() {
            let mut table = $table::new(256, Kernel::best()).unwrap();
            let mut seen = 0_u64;
            let any = Entry { bits: 0, ignore: 0, source: Source::ANY, token: 0 };
            let entries: Vec<_> = std::iter::from_fn(|| table.insert(any).ok()).collect();
            for entry in entries {
                assert_eq!(table.remove(entry), Some(any));
            }
            let before = ALLOCATIONS.get();
            for phase in 0..6_u32 {
                // The phases have no wildcards, wildcards in entries, in keys, and in both.
                let (entry_wild, key_wild) = (phase % 4 == 1 || phase % 4 == 3, phase % 4 >= 2);
                let wild = |on: bool, i: u32| match (on, i % 3) {
                    (false, _) | (_, 0) => (0, Source::new(1)),
                    (_, 1) => (u64::from(i % 40) << 8, Source::new(1)),
                    _ => (0xff, Source::ANY),
                };
                for round in 0..if cfg!(miri) { 50 } else { 8_000_u32 } {
                    for i in 0..4 {
                        let (ignore, source) = wild(entry_wild, round + i);
                        let _ = table.insert(Entry {
                            bits: (round % 50).into(),
                            ignore,
                            source,
                            token: i,
                        });
                    }
                    for i in 0..4 {
                        let (ignore, source) = wild(key_wild, round + i);
                        let key = Key { bits: (round % 50).into(), ignore, source };
                        if let Some(hit) = table.first_match(&key) {
                            seen += table.depth(hit.handle) as u64;
                            table.remove(hit.handle);
                        }
                    }
                    if round % 512 == 0 {
                        seen += table.iter().map(|(_, entry)| u64::from(entry.token)).sum::<u64>();
                    }
                }
            }
            assert_eq!(ALLOCATIONS.get() - before, 0);
            assert!(seen > 0);
        }
    };
}

nothing_allocates_once_full!(index, Table);
nothing_allocates_once_full!(cam, Cam);
