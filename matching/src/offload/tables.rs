// SPDX-License-Identifier: BSD-2-Clause
//! The table of a queue: the index or the CAM, chosen when the queue is made.

use ternary_cam::{Cam, Entry, Full, Handle, Hit, Kernel, Key, Table, TableError};

/// What the table of a queue is (`FI_TCAM_TABLE`). Both find the same and count the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TableKind {
    /// An index of the entries: the quicker one.
    #[default]
    Index,
    /// Every entry compared, as a NIC does it.
    Cam,
}

impl TableKind {
    /// Every table.
    pub const ALL: [Self; 2] = [Self::Index, Self::Cam];

    /// Name, as in `FI_TCAM_TABLE`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Index => "index",
            Self::Cam => "cam",
        }
    }
}

impl std::fmt::Display for TableKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// Not the name of a [`TableKind`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no table: there are {all}", all = TableKind::ALL.map(TableKind::name).join(", "))]
pub struct UnknownTable(String);

impl std::str::FromStr for TableKind {
    type Err = UnknownTable;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|table| table.name() == name);
        found.ok_or_else(|| UnknownTable(name.to_owned()))
    }
}

/// The table of a queue. Where time counts, who uses it knows that it is the index
/// (`Offload::detour`) and does not ask.
pub(super) struct Tables {
    /// Without entries if there is a CAM.
    pub(super) index: Table,
    cam: Option<Box<Cam>>,
    /// Entries that the CAM holds.
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

impl std::fmt::Debug for Tables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.cam {
            None => self.index.fmt(f),
            Some(cam) => cam.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for table in TableKind::ALL {
            assert_eq!(table.name().parse(), Ok(table));
        }
        assert_eq!(
            "tcam".parse::<TableKind>().unwrap_err().to_string(),
            "`tcam` is no table: there are index, cam"
        );
    }
}
