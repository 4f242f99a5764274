// SPDX-License-Identifier: BSD-2-Clause
//! Pictures of the capacity curve, and the parts that all pictures share.

pub(crate) mod canvas;
pub(crate) mod capacity;
pub(crate) mod channels;
pub(crate) mod chart;
pub(crate) mod need;
pub(crate) mod panel;
pub(crate) mod picture;
pub(crate) mod signs;
