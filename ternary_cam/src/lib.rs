// SPDX-License-Identifier: BSD-2-Clause
//! A bounded ternary match table, the central unit of a tag-matching NIC.
//!
//! A [`Table`] holds a bounded number of entries. Every entry has 64 match
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
//! A [`Cam`] gives the same results, but compares a key with every entry, as a NIC does. It is in
//! `cam.rs`, and short: read it first if the crate is new to you. A [`Table`] is faster because it
//! compares few entries.
//!
//! # How a table is laid out
//!
//! ```text
//! insert --> slot             one cache line, never moves, named by a handle   slot.rs
//!              |
//!              v
//!            recent entries   the 4 youngest or fewer, compared one by one    recent.rs
//!              | all 4, at the next insert
//!              v
//!            index            all other entries                               index.rs
//!              either
//!                small set    few entries of several kinds, in age order,     index/small_set.rs
//!                             compared 16 at a time
//!              or
//!                primary      every entry with a class, hashed; a search      index/primary.rs
//!                             probes once for each class
//!                secondary    base entries, hashed again for keys that        index/secondary.rs
//!                             the primary index does not serve
//!                scan         entries that no index serves, in age order,     index/scan.rs
//!                             compared 16 at a time
//! ```
//!
//! All structures below the slots hold slot numbers. The primary index links entries in their slots
//! (`index/buckets.rs`). Up to four secondary indexes link them outside of the slots
//! (`index/bucket_lists.rs`). The small set and the scan compare with a kernel (kernel.rs): avx512,
//! avx2 or scalar. `index.rs` inserts, removes and searches. `index/maintenance.rs` builds the
//! structures that searches request (`index/rebuild_requests.rs`), and drops unused ones.
//!
//! A [`Scanner`] lets queues outside of this crate compare words with the same instructions
//! (`kernel/words.rs`). A [`Cam`] uses the kernels of `kernel/fingerprints.rs`.
//!
//! **The age rule.** Every entry has a serial number (slot.rs). Older entries have lower numbers.
//! Entries in the index are older than the recent entries. The small set, the scan and each bucket
//! of an index keep their entries in age order. So each of them finds its oldest match first, and
//! of these matches the one with the lowest serial number wins.
//!
//! Terms used everywhere:
//!
//! - The *wildcards* of an entry or a key are its ignore bits and, if it names no source, the
//!   source. An entry or key without wildcards is *exact*. Entries, or keys, with the same
//!   wildcards are *of one kind*.
//! - A *pattern* is the set of fields that are compared, which are all fields except the wildcards.
//! - A *class* contains the entries with one pattern. In the tuple space search of Srinivasan, Suri
//!   and Varghese (SIGCOMM 1999) it is a tuple.
//! - *Base* entries name their source and ignore exactly the bits of the *base*. The first entry
//!   with a source that enters an empty index sets the base to its ignore bits
//!   (`index/classes.rs`).
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
