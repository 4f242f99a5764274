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
//! # How it is laid out
//!
//! ```text
//! insert --> slot (slot.rs): one cache line, stays put, a handle names it
//!              |
//!              v
//!        nursery (nursery.rs): the youngest 4, compared one by one
//!              | when it is full
//!              v
//!        deep (deep.rs): all others
//!          tray (deep/tray.rs)    while they are few and of several kinds: by age, 16 at a
//!                                 time by a compare kernel (kernel/): avx512, avx2, scalar
//!        otherwise:
//!          classes (classes.rs)   a pattern (pattern.rs) each: exact, any-tag, ...; what is
//!                                 usual, if one pattern serves all entries and keys
//!          home index (index.rs)  hash of each entry under its class's pattern; for which keys:
//!                                 deep/home.rs; several classes of entries: deep/mixed.rs
//!          4 more indexes         hash of exact entries under another kind of key;
//!                                 built when searches ask for it (demand.rs)
//!          scan (scan.rs)         what no index serves, by age (age_log.rs), compared as in
//!                                 the tray; all entries when searches ask for it
//!          upkeep (deep/upkeep.rs) builds these, turns them and drops them
//! ```
//!
//! A [`Scanner`] (scanner.rs) lends the kernels to queues of others.
//!
//! **The age rule.** Every entry has a serial number (slot.rs); the lower is the
//! older. Everything deep is older than the nursery; the entries in a bucket of an index
//! are a ring that starts with its oldest; in the tray and the scan the lower position is
//! older. A search takes the oldest of the few it is offered.
//!
//! # Designs that lost
//!
//! Nanoseconds a pair on a shared Zen 4, in the streams of `benches/streams`, each beside
//! what was there at its time:
//!
//! | design | numbers | instead |
//! |---|---|---|
//! | every entry in age order, compared by AVX-512 from the oldest | reverse 29 at depth 1 to 16, 376 at 4096; standing 745 | the hash: 12 to 15 at every depth; the scan is kept for what cannot be hashed |
//! | one path for all patterns, indexes told apart at run time | reverse 30 | a path for exact keys and entries, the home index's links at a fixed place: 13 |
//! | the same, with calls instead of forced inlining | reverse 22 | inlined: 17 at that time |
//! | group compare without branches | reverse 17.6 | three branches, all predicted: 13.8 |
//! | as many buckets as twice the capacity | reverse 13.7, 1024 sources 16.8 | 16,384 for all: 13.1, 15.2 |
//! | 1,024 or 4,096 buckets (a constant) | random at 256 9.7, 10.7, at 1024 11.3, 11.1, but any tag at 256 26.5, 16.0 | 16,384: 10.9, 11.7, 13.0 |
//! | the next free slot fetched ahead | random at 64 9.6, at 5120 12.5, at 8192 13.6 | not: 9.3, 12.4, 13.8 |
//! | sources apart by another irrational number | up to 30 % of 4,096 consecutive tags and sources in a bucket with others; 1024 sources 13.3, with any tag 15.0 | by a bucket: none; 11.5, 14.5 |
//! | so, but this step changes with the hash, from memory | random 12.0 | a constant: 11.8 |
//! | a search and the removal of what it found in one | at 4 6.3 instead of 6.7, at 64 9.3 instead of 9.5, at 4096 12.2 instead of 12.1 | two calls, as the device makes them |
//! | sixteen consecutive tags in one line of buckets | reverse 13.2, 1024 sources 20.3 | tags spread by the golden ratio: 13.2, 15.6 |
//! | a kind of wildcards that all entries or all keys have on the path for several kinds | all any-source 13.2; unexpected, any source 15.0, any tag 16.7, both 15.1 | a path for what one pattern serves, be it exact or not: 11.4, 11.9, 14.0, 11.4 |
//! | that path for exact keys and entries as well, which then load their pattern | reverse 12.4 | exact ones known to be, in place: 11.2 |
//! | where several classes are live, the class of an entry by a hash of its wildcards, without a branch | 10 % + 10 % 20.0, four classes 21.3 | compared: 17.1, 20.2 |
//! | remembering the class of the last entry | 100 % any-source 21.0, 10 % + 10 % 21.2 | looking through the live ones: 22.2, 19.2 |
//! | the home index always exact, any-source keys in an index beside it | unexpected, any source 27 | the home index turned to the keys in use: 17 |
//! | only entries that ignore nothing are exact | receives as MPICH and Open MPI post them, which always ignore their protocol bits, 21 | exact means ignoring the base: 14 |
//! | a log of all entries by age, kept up by every insert and remove | reverse 12.4 | serial numbers; the log only while someone asks for search depths: 11.4 |
//! | no nursery: every entry in the home index at once | pairs at the tail 13 | 7 |
//! | past the nursery while few entries leave young | reverse 13.5, 10.7 at depth 1 | through it always: 11.5, 8.1 |
//! | links as four fields of 16 bits | stored one by one, loaded as one word, which the store buffer cannot forward: tail 15 | loaded one by one as well |
//! | links as one word, slot numbers as differences | 40 instructions more an insert and remove | the fields of a ring, which has no ends to tell apart |
//! | equal entries in rings, the oldest of each chained in a bucket | same key 23, four kinds of keys 66 | one ring a bucket: 11, 39; reverse 13.5 -> 11.3, and no branch on what the neighbours are |
//! | the table's state in a 32-bit word | the same, after a bit was set by a store of a byte: reverse 14.1 | a byte: 11.4 |
//! | all live classes probed without a branch, every entry in their buckets compared | four classes mixed 25 | a branch on the empty bucket: 20 |
//! | first the buckets of all live classes, then every entry in them | four classes mixed 21.9 | one class after the other: 17.7 |
//! | one class after the other, with a branch on the empty bucket | at 4096: four classes mixed 21.2, 10 % + 10 % 18.0, four classes standing, pairs at the tail 13.5 | no branch, bits of the hash in the bucket, one entry compared: 18.3, 16.9, 11.5 |
//! | so, but the buckets that may hold a match counted | four classes standing 13.0 | the last two of them kept: 11.8 |
//! | so, but a loop over the patterns | four classes standing 14.6 | unrolled: 13.0 |
//! | so, but patterns in any order, each with its source | drain of four classes 12.1 | in pairs: 11.7 |
//! | so, but a path for each set of live classes, by a jump table | exact and any source with any tag 16.5 instead of 17.9, but 10 % + 10 % 17.1 | paths for the first 2, 3 and 4 classes: 16.8 |
//! | where several classes are live, the class of an entry computed from its wildcards, without a branch | inserts of four classes 7.6, of 10 % + 10 % 7.4 | branches, each class with a path of its own, whose counter is at a fixed place: 6.4, 6.0 |
//! | one path for all these classes behind the branches | inserts of four classes 7.0 | 6.4 |
//! | the four entries of a nursery in a loop | inserts of four classes 7.3, of 10 % + 10 % 6.9 | branches of its own for each: 6.4, 6.0 |
//! | entries with wildcards inserted where exact ones are | all ignore bits differ 25.8 instead of 27.1, but unexpected 10 % + 10 % 29.2, four kinds of keys 35.1 | called: 28.3, 33.9 |
//! | each insert into a ring notes in the bucket that there are several | same key 11.2, unexpected 10 % + 10 % 33.6 | the second one: 10.7, 32.6 |
//! | source and bits of an entry with wildcards compared without a branch | four classes mixed 18.2; 20.7 with one entry compared | 17.7; 20.1 |
//! | the class of an entry looked up by a hash of its wildcards | all any-source 17.1, with fewer instructions | the live classes compared: 15.3; the hash waits for what a branch predicts |
//! | the index for a key looked up by such a hash | unexpected, any source 15.8 | the home index asked first: 13.4; the hash for the others |
//! | only the bucket of the right class probed, by an oracle | four classes 13.5 at 64, 17.8 at 5120 | 14.9, 19.2: it is not the probes |
//! | 65,536 buckets | random at 5120 14.3, four classes 20.2 | 16,384: 12.3, 19.0 |
//! | another summand for each class in the hash | four classes mixed 17.7, 10 % + 10 % 14.7 | 17.1, 14.2 |
//! | buckets of 16 bits, half the cache | four kinds of keys at 5120 37.4 instead of 38.5, same key 12.5 | 32 bits: 10.8 |
//! | the walk through a bucket where its first entry is compared | same key 12.0, four kinds of keys 28.2 | called where it is rare: 11.4, 27.1 |
//! | any entry of the nursery removed in one way | depth 4 7.5, pairs at the tail 7.5 | the youngest told apart from the others: 6.6, 6.8 |
//! | only the youngest told apart | first in, first out at 4 6.5 | the oldest as well: 5.6 |
//! | a class for every pattern while there is room | all ignore bits differ 47 | none where patterns do not come again: 38 |
//! | a bucket is a node of its ring, so that neither insert nor remove has a branch (links of 32 bits beside the slots) | reverse at 4096 13.2, random 15.0; same key 9.5 | the bucket names its oldest: 11.4, 13.3; 12.0 |
//! | an index for keys that name no source beside that for those that do | unexpected 10 % + 10 % 25 to 30, four kinds of keys 31 to 37 | one for both, unless it is long to walk: 21 to 26, 27 to 32 |
//! | so, but one comparison for both | any source 12.6 | a path each: 12.1 |
//! | where there are several indexes, the path for what is unusual | unexpected 10 % + 10 % 21 to 26, four kinds of keys 27 to 32 | that for what is usual, then the other indexes: 20 to 24, 26 to 31 |
//! | so, but entries added to the others where they are to the home index | any tag 15.2 | in a function of its own: 14.3 |
//! | so, but a note of each search with keys that are usual | any source 12.3, any tag 14.7 | one in 256 inserts: 12.1, 14.4 |
//! | instead of the other indexes chains through a log, where who leaves stays until a search passes it | unexpected 10 % + 10 % 17 to 20, four kinds of keys 22 to 26; but an insert and a take in turn among 1000, exact keys and any tag 76, among 4000, four kinds of keys 87 | 20 to 24, 26 to 31; 45, 76 |
//! | few entries of several kinds in the indexes | at 16: four kinds of keys 23.2, four classes 15.9, any tag 12.8; at 5: 40, 16.8, 47 | the tray: 11.4, 11.2, 11.6; 10.2, 10.1, 10.3 |
//! | the same, where an insert and a take at random come in turn | at 16: four kinds of keys 25.8, four classes 17.1, 10 % + 10 % 14.8 | the tray: 17.6 each |
//! | the same in the scan, as if none had a class | 18.3, 19.4, 18.9 | 64 fixed positions beside each other, of which the slot names one, and a search, an insert and a remove of their own |
//! | the tray in an allocation of its own | at 16 12.4 | inside the table: 11.5 |
//! | the tray of up to 64 entries whatever their kinds | at 64: four kinds of keys 18.1, all ignore bits differ 18.2, but four classes 18.1, any tag 18.0 | 32 of few kinds: 27, 27, 14.8, 11.4 |
//! | the kinds of keys noted at every search of it | at 16 12.1, at 32 14.7 | one between two ticks: 11.4, 13.4 |
//! | in the tray fingerprints of 16 bits (three words an entry; one, and four where keys have wildcards) | four classes at 16 15.1 (16.4), at 64 16.9 (17.6) | all bits: 11.4, 18.1; hashes cost more than the steps they save |
//! | up to 8 entries of the tray compared one by one | at 16 13.4 | up to 4: 11.4. None: at 5 12.6 instead of 10.3, for what was just stored must be loaded as a vector |
//! | the tray closed up at its end only | an insert and a take in turn at 16 18.3, AVX2 20.0 | when there are 16 holes: 17.6, 18.2 |
//! | four entries put into the tray as vectors, for which a search need not wait | in turn at 16 16.8, but batches at 5 10.8 | field by field: 17.6, 10.1 |
//! | the tray where entries are exact and keys of one kind | any tag at 24 13.5; scalar, any source at 16 14.5 | the home index, once 64 keys in a row were: 10.9; 10.3 |
//! | the tray chosen once in 64 inserts | four classes standing, pairs at the tail 11.7, misses 10.1 | when it first suits: 8.2, 6.4 |
//! | 64 entries of the scan compared for one answer | the same 36, whose masks the compiler put together in vectors | 16 and a branch: 25 |

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
mod scanner;
mod slot;
mod table;

pub use entry::{Entry, Key, Source};
pub use kernel::{Kernel, UnknownKernel};
pub use scanner::{Compare, Scanner, Search};
pub use table::{Full, Handle, Hit, Table, TableError};
