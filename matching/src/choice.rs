// SPDX-License-Identifier: BSD-2-Clause
//! The choices of the engine `auto`, for reports.

use serde::{Deserialize, Serialize};

/// A choice of the engine `auto`: which engine, when and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The engine, as `FI_TCAM_HOST_ENGINE` names it.
    pub engine: String,
    /// Number of elements that went to the host before the choice.
    pub after: u64,
    /// The counts that led to the choice.
    pub why: String,
}
