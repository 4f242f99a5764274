// SPDX-License-Identifier: BSD-2-Clause
//! Parts of peers' memory, as RMA and atomic operations name them.

use super::buffer::IOV_LIMIT;
use crate::errno::{Errno, Result};

/// Memory of a peer: a part of one of its regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RemotePart {
    /// Address in the region: a virtual address, or an offset from the beginning of the region.
    pub addr: u64,
    /// Length in bytes.
    pub len: u64,
    /// Key of the region.
    pub key: u64,
}

/// Parts of a peer's memory, in the order of the data.
#[derive(Clone, Copy, Debug, Default)]
pub struct RemoteParts {
    parts: [RemotePart; IOV_LIMIT],
    count: usize,
}

impl RemoteParts {
    /// Collects the parts.
    ///
    /// # Errors
    /// `EINVAL` for more than [`IOV_LIMIT`] parts, or if the sum of their lengths overflows.
    pub fn new(parts: impl IntoIterator<Item = RemotePart>) -> Result<Self> {
        let mut all = Self::default();
        let mut len = 0_u64;
        for part in parts {
            *all.parts.get_mut(all.count).ok_or(Errno::EINVAL)? = part;
            all.count += 1;
            len = len.checked_add(part.len).ok_or(Errno::EINVAL)?;
        }
        Ok(all)
    }

    /// Returns the parts.
    #[must_use]
    pub fn as_slice(&self) -> &[RemotePart] {
        &self.parts[..self.count]
    }

    /// Returns, as parts, the bytes from `offset` on, at most `len` of them.
    #[must_use]
    pub fn part(&self, mut offset: u64, mut len: u64) -> Self {
        let mut cut = Self::default();
        for part in self.as_slice() {
            let skip = offset.min(part.len);
            offset -= skip;
            let take = len.min(part.len - skip);
            if take > 0 {
                let addr = part.addr.wrapping_add(skip);
                cut.parts[cut.count] = RemotePart { addr, len: take, key: part.key };
                cut.count += 1;
                len -= take;
            }
        }
        cut
    }

    /// Returns the length in bytes of all parts.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.as_slice().iter().map(|part| part.len).sum()
    }

    /// Returns true if all parts are empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
