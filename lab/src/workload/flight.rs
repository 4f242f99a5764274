// SPDX-License-Identifier: BSD-2-Clause
//! Messages in flight, for patterns that have such an option.

use super::stream::{Messages, Sources};

/// Number and size of messages in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) messages: u32,
    /// Bytes of each message.
    pub(crate) bytes: u64,
}

impl Flight {
    /// Returns the messages, each with a separate tag.
    pub(super) fn from(self, sources: Sources) -> Messages {
        Messages { len: self.bytes, ..Messages::point_to_point(0, sources, self.messages) }
    }
}
