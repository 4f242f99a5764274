// SPDX-License-Identifier: BSD-2-Clause
//! Receives that name their source (`FI_DIRECTED_RECV` and related capabilities).

use ffi::{Errno, Result, flags};

/// Which receives name a source, and whether they must.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Directed {
    pub(crate) tagged: bool,
    msg: bool,
    pub(crate) exact: bool,
}

impl Directed {
    /// Creates the rules for these capabilities. `FI_EXACT_DIRECTED_RECV` alone applies to every
    /// receive.
    pub(crate) fn of(caps: u64) -> Self {
        let exact = caps & flags::EXACT_DIRECTED_RECV != 0;
        let tagged_only = caps & flags::TAGGED_DIRECTED_RECV != 0;
        let msg = caps & flags::DIRECTED_RECV != 0 || exact && !tagged_only;
        Self { tagged: msg || tagged_only, msg, exact }
    }

    /// Returns whether a receive names its source.
    #[inline]
    pub(crate) fn is_named(self, address: u64, tagged: bool) -> Result<bool> {
        let directed = if tagged { self.tagged } else { self.msg };
        if directed && self.exact && address == flags::ADDR_UNSPEC {
            return Err(Errno::EINVAL);
        }
        Ok(directed && address != flags::ADDR_UNSPEC)
    }
}
