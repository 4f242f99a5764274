// SPDX-License-Identifier: BSD-2-Clause
//! The table of a queue: the index or the CAM, chosen when the queue is made.

use strum::{Display, EnumString, VariantNames};
use ternary_cam::{Cam, Entry, Full, Handle, Hit, Kernel, Key, Table, TableError};

/// The kind of a queue's table (`FI_TCAM_TABLE`). Both kinds give the same matches and counts.
#[derive(Display, EnumString, VariantNames)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownTable, parse_err_fn = unknown)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableKind {
    /// An index of the entries, which is faster.
    #[default]
    Index,
    /// Compares every entry, as a NIC does.
    Cam,
}

impl TableKind {
    /// Names of all kinds.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;
}

/// A text that is not the name of a [`TableKind`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a table: expected one of {all}", all = TableKind::NAMES.join(", "))]
pub struct UnknownTable(String);

fn unknown(name: &str) -> UnknownTable {
    UnknownTable(name.to_owned())
}

/// The table of a queue. If `Offload::indirect_table` is false, the table is the index, and fast
/// paths use `index` directly.
#[derive(Debug)]
pub(super) struct Tables {
    /// Has no entries if there is a CAM.
    pub(super) index: Table,
    cam: Option<Box<Cam>>,
    /// Number of entries in the CAM.
    in_cam: usize,
}

impl Tables {
    pub(super) fn new(
        kind: TableKind,
        capacity: usize,
        kernel: Kernel,
    ) -> Result<Self, TableError> {
        let (entries, cam) = match kind {
            TableKind::Index => (capacity, None),
            TableKind::Cam => (0, Some(Box::new(Cam::new(capacity, kernel)?))),
        };
        Ok(Self { index: Table::new(entries, kernel)?, cam, in_cam: 0 })
    }

    pub(super) fn is_cam(&self) -> bool {
        self.cam.is_some()
    }

    pub(super) fn capacity(&self) -> usize {
        self.cam.as_ref().map_or(self.index.capacity(), |cam| cam.capacity())
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.index.len() + self.in_cam
    }

    pub(super) fn is_full(&self) -> bool {
        self.cam.as_ref().map_or_else(|| self.index.is_full(), |cam| cam.is_full())
    }

    pub(super) fn insert(&mut self, entry: Entry) -> Result<Handle, Full> {
        let Some(cam) = &mut self.cam else { return self.index.insert(entry) };
        let inserted = cam.insert(entry);
        self.in_cam = cam.len();
        inserted
    }

    pub(super) fn first_match(&self, key: &Key) -> Option<Hit> {
        match &self.cam {
            None => self.index.first_match(key),
            Some(cam) => cam.first_match(key),
        }
    }

    pub(super) fn remove(&mut self, handle: Handle) {
        match &mut self.cam {
            None => self.index.remove(handle),
            Some(cam) => {
                let removed = cam.remove(handle);
                self.in_cam = cam.len();
                removed
            }
        };
    }

    #[inline]
    pub(super) fn depth(&self, handle: Handle) -> usize {
        match &self.cam {
            None => self.index.depth(handle),
            Some(cam) => cam.depth(handle),
        }
    }

    pub(super) fn iter(&mut self) -> impl Iterator<Item = (Handle, Entry)> + '_ {
        self.index.iter().chain(self.cam.iter_mut().flat_map(|cam| cam.iter()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for name in TableKind::NAMES {
            assert_eq!(name.parse::<TableKind>().unwrap().to_string(), *name);
        }
        assert_eq!(
            "tcam".parse::<TableKind>().unwrap_err().to_string(),
            "`tcam` is not a table: expected one of index, cam"
        );
    }
}
