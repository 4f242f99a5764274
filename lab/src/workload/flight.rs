// SPDX-License-Identifier: BSD-2-Clause
//! Messages in flight, where a pattern takes that.

use super::stream::{Messages, Sources};

/// What is in flight where that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) messages: u32,
    /// Of each message.
    pub(crate) bytes: u64,
}

impl Flight {
    /// The messages, each with a tag of its own.
    pub(super) fn from(self, sources: Sources) -> Messages {
        Messages { len: self.bytes, ..Messages::point_to_point(0, sources, self.messages) }
    }
}
