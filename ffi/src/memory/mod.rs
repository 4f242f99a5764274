// SPDX-License-Identifier: BSD-2-Clause
//! Memory of the application, as its calls hand it to the provider.
//!
//! Every value here is made by an entry point from what C passed. `fi_msg(3)`
//! and `fi_cq(3)` make the application promise that the memory is valid until
//! the operation completes (or the call returns, for outputs); that promise is
//! what makes the safe methods sound.

mod buffer;
mod output;
pub mod socket;
mod window;

pub use buffer::{Buffer, IOV_LIMIT, Segment};
pub use output::Output;
pub(crate) use output::bytes_of;
pub use window::Window;

/// Opaque context of an operation (`void *context`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Context(pub usize);
