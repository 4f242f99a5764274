// SPDX-License-Identifier: BSD-2-Clause
//! The network: messages go over another provider of the same libfabric ([`ffi::client`]).
//!
//! - [`pulse`]: a connection over TCP to each peer, on which both say who they are ([`hello`]), and
//!   by which each notices that the other is gone. It carries no messages.
//! - [`contact`], [`contacts`]: the peers that are known, by the number that each has here.
//! - [`frame`]: what goes before a header. [`traffic`]: what is sent and what has come.
//! - [`end`]: an endpoint's end of it; [`link`], [`inbox`]: what the endpoint sees.
//!
//! ```text
//!  sender                                            receiver
//!  connects to the port of the address  --- TCP -->  accepts
//!  Hello: key, identity, name below, --------------> knows the key? else Refused
//!         number and token for the peer
//!  <------------------------------------------------ Hello, the same the other way round
//!  frame: token, number, header, payload -- below -> block for several messages; copies out
//!  <------------------------------------------- Bye: so many frames were all; Seen
//! ```
//!
//! An address is one of this host's, with the port that the endpoint holds, whatever names the
//! provider below has: those travel in a Hello. A number and a token belong to one incarnation of an
//! endpoint, so that what an earlier one was sent never reaches a later one.
//!
//! A process that computes does not answer, and yet is not gone: its kernel holds the connection. One
//! that dies closes it. A host that is gone acknowledges nothing, which ends the connection after
//! `FI_TCAM_NET_TIMEOUT`.
//!
//! Memory of an endpoint: 1.6 MiB to receive into (2 MiB where the kernel does not fill it); 8 MiB to
//! send from, of which pages are used as needed; some 500 bytes and a descriptor for each peer that was
//! met.
//!
//! Rejected: names of the provider below as addresses (a first message could only be answered by who
//! knows the sender already, and providers differ in what they tell of it); heartbeats (a process that
//! computes has to answer, so each would need a thread); taking names out of the address vector below
//! (providers differ in what becomes of messages on their way; it grows by a name an incarnation).

mod contact;
mod contacts;
pub mod end;
pub mod frame;
pub mod hello;
pub(crate) mod inbox;
pub(crate) mod link;
mod pulse;
mod traffic;
