// SPDX-License-Identifier: BSD-2-Clause
//! The transport over shared memory. Each endpoint has one segment, a file in `/dev/shm`.
//!
//! - [`segment`]: the layout of a segment; [`senders`]: its list of senders.
//! - [`tx`]: the sending end, which has a tx ring to each peer and chooses between slot and buffer
//!   ([`buffers`]). [`peer`]: a peer. [`ring`]: the ring of slots, and the receiving end.
//!   [`overflow`]: slots for the messages of senders that find the ring full.
//! - [`eager_policy`]: messages of medium length go through buffers or by kernel copy, whichever is
//!   faster.
//! - [`cma`]: kernel copies. The receiver of a long message, and the target of a long write, read
//!   the data from the sender's memory with `process_vm_readv`. The target of a long read writes
//!   the data into the reader's memory with `process_vm_writev`. An endpoint that closes waits for
//!   copies from and to its memory.
//! - [`doorbell`]: how senders wake threads that sleep until a message comes.
//! - [`protocol`]: the lock-free steps of rings, lists of senders and doorbells. Loom checks them.
//!
//! An endpoint takes 1.3 MiB, and 8 bytes for each sender beyond 512, in pages of 4 KiB. If it
//! counts, it also takes 256 KiB for each 1,024 messages of its longest backlog beyond the ring.
//!
//! ```text
//!  sender                                          receiver
//!  [ segment ]                                     [ segment ]
//!    buffers --- 3. copy out, free the buffer ---->  user memory
//!    ^ 1. copy in                                    ring
//!    `------- 2. slot: header, buffer number ------> [slot][slot][slot]..
//! ```

pub(crate) mod buffers;
pub(crate) mod cma;
pub mod doorbell;
mod eager_policy;
mod overflow;
pub(crate) mod peer;
pub(crate) mod protocol;
pub mod ring;
pub mod segment;
mod senders;
pub mod tx;
