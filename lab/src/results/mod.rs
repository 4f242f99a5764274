// SPDX-License-Identifier: BSD-2-Clause
//! Results of a run on the disk: reports, their sum, and the sum as text and JSON.

pub(crate) mod columns;
pub(crate) mod counters;
pub(crate) mod fresh;
pub(crate) mod json;
pub(crate) mod origin;
pub(crate) mod ranks;
pub(crate) mod reports;
pub(crate) mod runs;
pub(crate) mod summary;
pub(crate) mod summary_text;
