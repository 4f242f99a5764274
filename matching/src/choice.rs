// SPDX-License-Identifier: BSD-2-Clause
//! What a report tells of the engine `auto`.

use serde::{Deserialize, Serialize};

/// An engine that `auto` chose, when and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Choice {
    /// The engine, as `FI_TCAM_HOST_ENGINE` names it.
    pub engine: String,
    /// Elements that had gone to the host before.
    pub after: u64,
    /// What was counted.
    pub why: String,
}
