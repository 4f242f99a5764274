// SPDX-License-Identifier: BSD-2-Clause
//! A bounded ternary match table, the unit a tag-matching NIC is built around.
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
//! so that one table serves both queues of a receive context: posted receives
//! (ternary entries, exact keys) and unexpected messages (exact entries, ternary
//! keys).
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
//! A [`Cam`] does the same as a NIC does it: it compares every entry, in some 250 lines
//! (`cam.rs`). Who reads this crate for the first time starts there. A [`Table`] is quicker, since
//! it compares few.
//!
//! # How a table is laid out
//!
//! ```text
//! insert --> slot          one cache line, stays put, a handle names it    slot.rs
//!              |
//!              v
//!            nursery       the youngest 4, compared one by one             nursery.rs
//!              | all of them when it is full
//!              v
//!            deep          all others                                      deep.rs
//!              either
//!                tray      few of several kinds: by age, 16 at a time      deep/tray.rs
//!              or
//!                home      every entry with a class, hashed; a search      deep/home.rs
//!                          probes once for each class
//!                side      base entries, hashed once more for keys that    deep/side.rs
//!                          home does not serve
//!                scan      what no index serves: by age, 16 at a time      deep/scan.rs
//! ```
//!
//! All below the slots hold numbers of slots. Home is an index (`deep/index.rs`), side are up to
//! four that link entries beside the slots (`deep/rings.rs`), tray and scan compare with a kernel
//! (kernel.rs): avx512, avx2 or scalar. Searches go by `deep/search.rs`, inserts by
//! `deep/insert.rs`, removals by `deep/remove.rs`; `deep/upkeep.rs` builds and drops what they
//! need, as they wish (`deep/wishes.rs`).
//!
//! A [`Scanner`] lets queues outside of this crate compare words with the same instructions
//! (`kernel/words.rs`). A [`Cam`] compares with `kernel/prints.rs`.
//!
//! **The age rule.** Every entry has a serial number (slot.rs); the lower is the older. Everything
//! deep is older than the nursery. Tray and scan keep their entries by age, and so does an index
//! those of a bucket: each finds its oldest match first. Of these the lowest number wins.
//!
//! Words used everywhere: the *wildcards* of an entry or a key are its ignore bits and whether it
//! names no source. What has none is *exact*; what has the same is *of one kind*. A *pattern* is
//! what wildcards leave to compare. A *class* is the entries with one pattern, a tuple of the tuple
//! space search (Srinivasan, Suri and Varghese, SIGCOMM 1999). *Base* entries name their source
//! and ignore what the first entry of an empty table did (`deep/classes.rs`). A queue is
//! *uniform* if one pattern serves all its entries and keys (`deep/uniform.rs`).
//!
//! Designs that were tried and lost, with their numbers, are in `DESIGNS.md`.

mod bits;
mod cam;
mod deep;
mod entry;
mod handle;
mod kernel;
mod nursery;
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
