// SPDX-License-Identifier: BSD-2-Clause
//! Numbers, tables and progress bars, and how they are printed.

#[macro_use]
pub(crate) mod output;

pub(crate) mod html;
pub(crate) mod numbers;
pub(crate) mod progress;
pub(crate) mod sheet;

pub(crate) use self::numbers::{bytes, count, entries, percent, share, total, whole};
pub(crate) use self::sheet::{Sheet, WIDTH, cut, folded};
