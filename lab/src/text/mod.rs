// SPDX-License-Identifier: BSD-2-Clause
//! Numbers, tables and progress bars, and how they are printed.

#[macro_use]
pub(crate) mod output;

pub(crate) mod html;
pub(crate) mod numbers;
pub(crate) mod progress;
pub(crate) mod sheet;
