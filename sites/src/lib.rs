// SPDX-License-Identifier: BSD-2-Clause
//! `libtcam-sites.so`, which `tcam run --sites` preloads: notes the place in the program from which
//! each thread called MPI last, for the recorder of the provider.
//!
//! ```text
//! program:  call MPI_Irecv ---> trampoline of MPI_Irecv:  number of the name
//!                                  |
//!                                  v
//!                               enter: word of the thread = name, return address
//!                                  |   unless the return address is in a library of MPI
//!                                  v
//!                               MPI_Irecv of the next library, with all arguments
//! ```
//!
//! The *word* of a thread contains the number of the name in bits 63..48, and below it the return
//! address. With several callers ([`callers`]) it contains the number of a list of addresses instead,
//! and bit 47 is set, which no address of a program has.
//!
//! The provider looks up the functions of [`provider`].
#![deny(unsafe_code)]

mod callers;
mod names;
mod next;
mod provider;
mod trampolines;
mod word;
