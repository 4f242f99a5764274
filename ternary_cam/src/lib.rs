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

mod age_log;
mod classes;
mod deep;
mod demand;
mod entry;
mod index;
mod kernel;
mod nursery;
mod pattern;
mod scan;
mod slot;
mod table;

pub use entry::{Entry, Key, Source};
pub use kernel::{Kernel, UnknownKernel};
pub use table::{Full, Handle, Hit, Table, TableError};
