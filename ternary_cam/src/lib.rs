// SPDX-License-Identifier: BSD-2-Clause
//! A bounded ternary match table, the central unit of a tag-matching NIC.
//!
//! A [`Table`] holds up to a fixed number of entries. Every entry has 64 match
//! bits, 64 ignore bits and a source; a search returns the **oldest** entry that
//! matches its key. There is one definition of a match, and it is symmetric:
//!
//! ```text
//! (entry.bits ^ key.bits) & !(entry.ignore | key.ignore) == 0
//!     and (entry.source == key.source, or either is Source::ANY)
//! ```
//!
//! So one table serves both queues of a receive context: posted receives (ternary entries, exact
//! keys) and unexpected messages (exact entries, ternary keys).
//!
//! ```
//! use ternary_cam::{Entry, Kernel, Key, Source, Table};
//!
//! let mut table = Table::new(2, Kernel::best())?;
//! let any_source = Entry { bits: 7, ignore: 0, source: Source::ANY, token: 10 };
//! let directed = Entry { bits: 7, ignore: 0, source: Source::new(3), token: 11 };
//! table.insert(any_source).unwrap();
//! table.insert(directed).unwrap();
//! assert!(table.insert(directed).is_err(), "the table is full");
//!
//! let arrival = Key { bits: 7, ignore: 0, source: Source::new(3) };
//! let hit = table.first_match(&arrival).unwrap();
//! assert_eq!(hit.token, 10, "both match, the older one wins");
//! assert_eq!(table.remove(hit.handle), Some(any_source));
//! assert_eq!(table.first_match(&arrival).unwrap().token, 11);
//! # Ok::<(), ternary_cam::TableError>(())
//! ```
//!
//! A [`Cam`] gives the same results as a NIC computes them: it compares every entry, in some 250
//! lines (`cam.rs`). Read it first if the crate is new to you. A [`Table`] is faster, since it
//! compares few entries.
//!
//! # How a table is laid out
//!
//! ```text
//! insert --> slot             one cache line, never moves, named by a handle   slot.rs
//!              |
//!              v
//!            recent entries   the youngest 4, compared one by one             recent.rs
//!              | all of them when there are 4
//!              v
//!            index            all others                                      index.rs
//!              either
//!                small set    few, of several kinds: in age order,            index/small_set.rs
//!                             16 at a time
//!              or
//!                primary      every entry with a class, hashed; a search      index/primary.rs
//!                             probes once for each class
//!                secondary    base entries, hashed once more for keys that    index/secondary.rs
//!                             the primary index does not serve
//!                scan         what no index serves: in age order,             index/scan.rs
//!                             16 at a time
//! ```
//!
//! All structures below the slots hold slot numbers. The primary index links entries in their slots
//! (`index/buckets.rs`). Up to four secondary indexes link them outside of the slots
//! (`index/bucket_lists.rs`). The small set and the scan compare with a kernel (kernel.rs): avx512,
//! avx2 or scalar. `index.rs` inserts, removes and searches, and `index/maintenance.rs` builds and
//! drops structures on request (`index/rebuild_requests.rs`).
//!
//! A [`Scanner`] lets queues outside of this crate compare words with the same instructions
//! (`kernel/words.rs`). A [`Cam`] compares with `kernel/fingerprints.rs`.
//!
//! **The age rule.** Every entry has a serial number (slot.rs); the lower is the older. Entries in
//! the index are older than the recent entries. The small set and the scan keep their entries in
//! age order, and so does an index those of a bucket, so each finds its oldest match first. The
//! lowest number among these wins.
//!
//! Terms used everywhere:
//!
//! - The *wildcards* of an entry or a key are its ignore bits and whether it names no source. An
//!   entry or key without wildcards is *exact*; those with the same wildcards are *of one kind*.
//! - A *pattern* is the set of fields that wildcards leave to compare.
//! - A *class* is the entries with one pattern, a tuple of the tuple space search (Srinivasan, Suri
//!   and Varghese, SIGCOMM 1999).
//! - *Base* entries name their source and ignore the bits that the first entry of an empty table
//!   ignored (`index/classes.rs`).
//! - A queue is *uniform* if one pattern serves all its entries and keys (`index/uniform.rs`).
//!
//! Rejected designs, with their numbers, are in `DESIGNS.md`.

mod bits;
mod cam;
mod entry;
mod handle;
mod index;
mod kernel;
mod recent;
mod scanner;
mod slot;
mod table;
mod wildcards;

pub use cam::Cam;
pub use entry::{Entry, Key, Source};
pub use handle::{Full, Handle, Hit, TableError};
pub use kernel::{Compare, Kernel, Search, UnknownKernel};
pub use scanner::Scanner;
pub use table::Table;
