// SPDX-License-Identifier: BSD-2-Clause
//! Channels: how messages get from endpoint to endpoint.
//!
//! - `shm` ([`segment`], [`ring`], [`pool`], [`link`]): one segment an endpoint
//!   in `/dev/shm`. Small messages travel in the slots of the receiver's ring,
//!   larger ones through buffers of the sender's own segment ([`bytes`] are what is
//!   read there).
//! - [`outbox`]: the sending end, which chooses between slot and buffer.
//! - [`identity`], [`senders`]: who an endpoint is, and who sends to it.
//! - [`census`], [`cores`]: how many endpoints there are, and how many of them want the processors
//!   that we may run on. Whether the owner of a segment lives is a question of [`host`].
//! - [`protocol`]: the steps of rings, of lists of senders and of bells, which loom checks.
//! - [`bell`]: senders wake who sleeps until a message comes.
//! - [`fills`]: messages of a medium length take whichever way is quicker, through buffers or
//!   by kernel copy.
//! - kernel copy ([`copy`]): long messages are read out of the sender's memory
//!   with `process_vm_readv` once they are matched; long reads are written into the
//!   reader's with `process_vm_writev`. [`image`] tells whose memory that is.
//!   An endpoint that closes waits for copies of its memory ([`reach`]).
//! - [`node_pool`] carries no messages: it is the pool of table entries that
//!   endpoints share (`FI_TCAM_POOL=node`). Neither do [`tape`] and [`draft`], the
//!   files of a trace (`FI_TCAM_TRACE`) and of a report while its endpoint is open, nor
//!   [`shared_av`], the addresses of a named vector.
//!
//! Memory is a constant an endpoint (1.3 MiB), and 8 bytes a peer beyond 512.
//!
//! ```text
//!  sender                                          receiver
//!  [ segment ]                                     [ segment ]
//!    buffers --- 3. copy out, free the buffer ---->  user memory
//!    ^ 1. copy in                                    ring
//!    `------- 2. slot: header, buffer number ------> [slot][slot][slot]..
//! ```

pub(crate) mod bell;
pub(crate) mod bytes;
pub(crate) mod census;
pub(crate) mod copy;
pub(crate) mod cores;
pub(crate) mod draft;
mod fills;
pub(crate) mod identity;
pub(crate) mod image;
mod lines;
pub(crate) mod link;
mod memory;
mod names;
pub(crate) mod node_pool;
pub(crate) mod outbox;
pub(crate) mod owner;
mod pool;
mod protocol;
pub(crate) mod publish;
mod reach;
pub(crate) mod ring;
pub(crate) mod segment;
pub(crate) mod senders;
pub(crate) mod shared_av;
pub(crate) mod tape;
pub(crate) mod wire;
