// SPDX-License-Identifier: BSD-2-Clause
//! Reads operations from bytes, runs them on a table and on a list that is correct by inspection,
//! and compares the results. The tests and the fuzz target share this file.

use ternary_cam::{Cam, Entry, Full, Handle, Hit, Kernel, Key, Source, Table, TableError};

/// A table under test.
pub(crate) trait Tested: Sized + std::fmt::Debug {
    fn new(capacity: usize, kernel: Kernel) -> Result<Self, TableError>;
    fn capacity(&self) -> usize;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool;
    fn is_full(&self) -> bool;
    fn insert(&mut self, entry: Entry) -> Result<Handle, Full>;
    fn first_match(&self, key: &Key) -> Option<Hit>;
    fn remove(&mut self, handle: Handle) -> Option<Entry>;
    fn get(&self, handle: Handle) -> Option<Entry>;
    fn depth(&self, handle: Handle) -> usize;
    fn iter(&mut self) -> impl Iterator<Item = (Handle, Entry)> + '_;
}

/// Implements [`Tested`] for a table type by its own functions of the same names.
macro_rules! tested {
    ($table:ident) => {
        impl Tested for $table {
            fn new(capacity: usize, kernel: Kernel) -> Result<Self, TableError> {
                $table::new(capacity, kernel)
            }

            fn capacity(&self) -> usize {
                $table::capacity(self)
            }

            fn len(&self) -> usize {
                $table::len(self)
            }

            fn is_empty(&self) -> bool {
                $table::is_empty(self)
            }

            fn is_full(&self) -> bool {
                $table::is_full(self)
            }

            fn insert(&mut self, entry: Entry) -> Result<Handle, Full> {
                $table::insert(self, entry)
            }

            fn first_match(&self, key: &Key) -> Option<Hit> {
                $table::first_match(self, key)
            }

            fn remove(&mut self, handle: Handle) -> Option<Entry> {
                $table::remove(self, handle)
            }

            fn get(&self, handle: Handle) -> Option<Entry> {
                $table::get(self, handle)
            }

            fn depth(&self, handle: Handle) -> usize {
                $table::depth(self, handle)
            }

            fn iter(&mut self) -> impl Iterator<Item = (Handle, Entry)> + '_ {
                $table::iter(self)
            }
        }
    };
}

tested!(Table);
tested!(Cam);

/// The list that a table must agree with: entries in age order.
type Naive = Vec<(Handle, Entry)>;

/// Capacities of a sequence: around the sizes of the recent entries, a vector and a block, and
/// large enough to use every structure.
const CAPACITIES: [usize; 16] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 63, 64, 65, 129, 300];

/// Returns the bytes one by one, and then zeros without end.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }
}

/// Selects whether entries (posted receives), keys (for unexpected messages) or both may have
/// wildcards.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Posted,
    Unexpected,
    Both,
}

/// Returns match bits: a context in bits 56 and 57, and a tag in the lowest three bits.
fn bits(byte: u8) -> u64 {
    u64::from(byte >> 6) << 56 | u64::from(byte & 7)
}

/// Returns ignore bits: no bits, those of an MPI, or arbitrary bits.
fn ignore(byte: u8) -> u64 {
    match byte {
        0..112 => 0,
        112..160 => 0xffff_ffff,
        160..192 => 0x00ff_ffff_0000_0000,
        192..208 => u64::MAX,
        _ => u64::from(byte).wrapping_mul(0x9e37_79b9_7f4a_7c15),
    }
}

fn source(byte: u8) -> Source {
    match byte % 8 {
        0 | 1 => Source::ANY,
        peer => Source::new(peer.into()),
    }
}

fn exact_source(byte: u8) -> Source {
    Source::new((byte % 8).into())
}

/// Runs the operations on both tables with this kernel; panics at the first wrong result.
pub(crate) fn run(data: &[u8], kernel: Kernel) {
    run_on::<Table>(data, kernel);
    run_on::<Cam>(data, kernel);
}

fn run_on<T: Tested>(data: &[u8], kernel: Kernel) {
    let mut data = Bytes(data);
    let capacity = CAPACITIES[usize::from(data.next()) % CAPACITIES.len()];
    let mut table = T::new(capacity, kernel).expect("an available kernel");
    let mut naive: Naive = Vec::new();
    let mut of = Use::Both;
    let mut most = capacity;
    let mut stale = None;
    let mut token = 0;
    while !data.0.is_empty() {
        let op = data.next();
        match op % 16 {
            0..7 if naive.len() > most => {
                let rank = usize::from(data.next()) % naive.len();
                stale = Some(take(&mut table, &mut naive, rank));
            }
            0..7 => {
                let (bits, source) = (bits(data.next()), data.next());
                let entry = match of {
                    Use::Unexpected => {
                        Entry { bits, ignore: 0, source: exact_source(source), token }
                    }
                    _ => Entry {
                        bits,
                        ignore: ignore(data.next()),
                        source: self::source(source),
                        token,
                    },
                };
                token += 1;
                match table.insert(entry) {
                    Ok(handle) => naive.push((handle, entry)),
                    Err(Full) => assert_eq!(naive.len(), capacity),
                }
            }
            7..13 => {
                let (bits, source) = (bits(data.next()), data.next());
                let key = match of {
                    Use::Posted => Key { bits, ignore: 0, source: exact_source(source) },
                    _ => Key { bits, ignore: ignore(data.next()), source: self::source(source) },
                };
                let expected = naive.iter().position(|(_, entry)| entry.matches(&key));
                let hit = table.first_match(&key);
                assert_eq!(hit.map(|hit| hit.handle), expected.map(|rank| naive[rank].0));
                assert_eq!(hit.map(|hit| hit.token), expected.map(|rank| naive[rank].1.token));
                if let Some(rank) = expected {
                    assert_eq!(table.depth(naive[rank].0), rank + 1);
                    if op % 16 != 12 {
                        stale = Some(take(&mut table, &mut naive, rank));
                    }
                }
            }
            13 if !naive.is_empty() => {
                let rank = usize::from(data.next()) % naive.len();
                stale = Some(take(&mut table, &mut naive, rank));
            }
            14 if op == 14 => {
                of = [Use::Posted, Use::Unexpected, Use::Both][usize::from(data.next()) % 3];
            }
            // Long and short queues use different structures.
            14 if op == 30 => most = [capacity, 2, 12, 24, 40][usize::from(data.next()) % 5],
            _ => check(&mut table, &naive, stale),
        }
        assert_eq!(table.len(), naive.len());
    }
    check(&mut table, &naive, stale);
}

/// Removes the entry of this rank and returns its handle, which is now stale.
fn take(table: &mut impl Tested, naive: &mut Naive, rank: usize) -> Handle {
    let (handle, entry) = naive.remove(rank);
    assert_eq!(table.remove(handle), Some(entry));
    handle
}

/// Checks all read operations.
fn check(table: &mut impl Tested, naive: &Naive, stale: Option<Handle>) {
    assert!(table.iter().eq(naive.iter().copied()));
    assert_eq!(table.is_empty(), naive.is_empty());
    assert_eq!(table.is_full(), naive.len() == table.capacity());
    for (rank, &(handle, entry)) in naive.iter().enumerate() {
        assert_eq!(table.get(handle), Some(entry));
        assert_eq!(table.depth(handle), rank + 1);
    }
    if let Some(handle) = stale {
        assert_eq!(table.get(handle), None);
        assert_eq!(table.depth(handle), 0);
    }
}

/// Returns every kernel that this processor supports, and prints which kernels it lacks.
#[allow(dead_code, reason = "the fuzz target runs the best kernel and the scalar one")]
pub(crate) fn kernels() -> impl Iterator<Item = Kernel> {
    ["avx512", "avx2", "scalar"]
        .map(|name| name.parse::<Kernel>().expect("the name of a kernel"))
        .into_iter()
        .filter(|kernel| {
            if !kernel.is_available() {
                eprintln!("SKIPPED: this processor has no {kernel}");
            }
            kernel.is_available()
        })
}
