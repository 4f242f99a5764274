// SPDX-License-Identifier: BSD-2-Clause
//! The choices of the engine `auto`, for reports.

use serde::{Deserialize, Serialize};

/// An engine that `auto` chose, with time and reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The engine, as `FI_TCAM_HOST_ENGINE` names it.
    pub engine: String,
    /// Number of elements that had gone to the host before the choice.
    pub after: u64,
    /// The counts that led to the choice.
    pub why: String,
}
