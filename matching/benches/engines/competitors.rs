// SPDX-License-Identifier: BSD-2-Clause
//! UCX's hash, from the bench of `ternary_cam`.

#[path = "../../../ternary_cam/benches/streams/competitors/slab.rs"]
mod slab;
#[path = "../../../ternary_cam/benches/streams/competitors/ucx.rs"]
mod ucx;

pub(crate) use ucx::Ucx;
