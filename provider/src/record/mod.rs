// SPDX-License-Identifier: BSD-2-Clause
//! What a run leaves behind: reports, traces, and the numbers of `fi_profile(3)`.

mod caller;
pub(crate) mod exit;
pub(crate) mod profile;
pub(crate) mod report;
mod summary;
pub(crate) mod trace;
