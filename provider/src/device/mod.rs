// SPDX-License-Identifier: BSD-2-Clause
//! The device of an endpoint: the model in `nic`, and what this provider gives it to carry.
//!
//! ```text
//! matcher  shared               an endpoint's own device, or that of a shared context, with locks
//! make                          a device from the parameters
//! receive  directed  flow       how receives are posted
//! tag_layout  clusters          what match bits mean, which source is in which cluster
//! clock  pace                   time that is measured, time that is modelled
//! carried                       what goes through the device
//! ```

pub(crate) mod carried;
mod clock;
pub(crate) mod clusters;
pub(crate) mod directed;
pub(crate) mod flow;
pub(crate) mod make;
pub(crate) mod matcher;
mod pace;
pub(crate) mod receive;
pub(crate) mod shared;
mod tag_layout;
