// SPDX-License-Identifier: BSD-2-Clause
//! The kinds of storage for queues.

use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

/// The storage of an engine's queues (`FI_TCAM_HOST_STORAGE`).
#[derive(Display, EnumString, IntoStaticStr, VariantArray, VariantNames)]
#[strum(serialize_all = "kebab-case", parse_err_ty = UnknownStorage, parse_err_fn = unknown)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HostStorage {
    /// Arrays searched by the compare kernel of the table.
    #[default]
    Packed,
    /// Linked lists, as in the papers.
    Linked,
}

impl HostStorage {
    /// Every storage.
    pub const ALL: &[Self] = <Self as VariantArray>::VARIANTS;
    /// Names of all storages.
    pub const NAMES: &[&str] = <Self as VariantNames>::VARIANTS;

    /// Name, as in `FI_TCAM_HOST_STORAGE`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// A text that is not the name of a [`HostStorage`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a queue storage: expected one of {all}", all = HostStorage::NAMES.join(", "))]
pub struct UnknownStorage(String);

fn unknown(name: &str) -> UnknownStorage {
    UnknownStorage(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_parsed() {
        for &queue in HostStorage::ALL {
            assert_eq!(queue.name().parse(), Ok(queue));
        }
        assert_eq!(
            "array".parse::<HostStorage>().unwrap_err().to_string(),
            "`array` is not a queue storage: expected one of packed, linked"
        );
    }
}
