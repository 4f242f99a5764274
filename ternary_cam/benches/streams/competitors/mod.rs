// SPDX-License-Identifier: BSD-2-Clause
//! The competitors of the table: the queue structures of today's MPIs, the CAM of this crate, and a
//! full scan.

mod cam;
mod full_scan;
mod list;
mod per_peer;
mod slab;
mod ucx;

pub(crate) use full_scan::FullScan;
pub(crate) use list::List;
pub(crate) use per_peer::PerPeer;
pub(crate) use ucx::Ucx;
