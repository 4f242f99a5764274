// SPDX-License-Identifier: BSD-2-Clause
//! Formats numbers, tables and pages, and prints text and progress bars.

#[macro_use]
pub(crate) mod output;

pub(crate) mod html;
pub(crate) mod numbers;
pub(crate) mod progress;
pub(crate) mod sheet;

pub(crate) use self::numbers::{bytes, count, entries, percent, share, total, whole, whole_share};
pub(crate) use self::sheet::{Sheet, WIDTH, cut, folded};
