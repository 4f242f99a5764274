// SPDX-License-Identifier: BSD-2-Clause
//! UCX's hash, from the bench of `ternary_cam`.

#[path = "../../../ternary_cam/benches/streams/peers/slab.rs"]
mod slab;
#[path = "../../../ternary_cam/benches/streams/peers/ucx.rs"]
mod ucx;

pub(crate) use ucx::Ucx;
