// SPDX-License-Identifier: BSD-2-Clause
//! The device of an endpoint: the model of a matching NIC in the crate `nic`, and the data that it
//! carries for this provider.
//!
//! ```text
//! matcher  shared               an endpoint's own device, or that of a shared context, with locks
//! make                          a device from the parameters
//! receive  flow                 posted receives
//! tag_layout  clusters          meaning of match bits, clusters of sources
//! pace                          modelled time
//! carried                       data of receives and messages
//! ```

pub(crate) mod carried;
pub(crate) mod clusters;
pub(crate) mod flow;
pub(crate) mod make;
pub(crate) mod matcher;
mod pace;
pub(crate) mod receive;
pub(crate) mod shared;
mod tag_layout;
