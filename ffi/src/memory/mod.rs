// SPDX-License-Identifier: BSD-2-Clause
//! Memory of the application, which its calls pass to the provider.
//!
//! Entry points make these values from the arguments of C. According to `fi_msg(3)` and `fi_cq(3)`
//! the memory of a buffer is valid until the operation completes, and that of an output until the
//! call returns. The safe methods are sound because the application keeps this promise.

mod buffer;
mod output;
mod remote;
pub mod socket;
mod window;

pub use buffer::{Buffer, IOV_LIMIT, Segment};
pub use output::Output;
pub(crate) use output::bytes_of;
pub use remote::{RemotePart, RemoteParts};
pub use window::RegionMemory;

/// Opaque context of an operation (`void *context`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct OpContext(pub usize);
