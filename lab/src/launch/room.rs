// SPDX-License-Identifier: BSD-2-Clause
//! Checks whether ranks lacked space on the disk for their counts.

use std::path::Path;

use nic::draft;
use rustix::fs::statvfs;

use crate::text::numbers::{bytes, count};

/// Bytes that a rank takes: its draft and then its report, and the windows of two traces.
const OF_A_RANK: u64 = 2 * draft::LENGTH as u64;

/// Returns a note that a file system is full, if it lacks space for the files of this number of
/// ranks.
pub(crate) fn shortage(directory: &Path, ranks: u32) -> Option<String> {
    let about = statvfs(directory).ok()?;
    let free = about.f_bavail.saturating_mul(about.f_frsize);
    let no_files = about.f_files > 0 && about.f_favail < u64::from(ranks);
    if free >= OF_A_RANK.saturating_mul(u64::from(ranks)) && !no_files {
        return None;
    }
    let left = match no_files {
        true => format!("room for {} is left", count(about.f_favail, "file")),
        false => format!("{} are left", bytes(free)),
    };
    Some(format!(
        "{}: no space left on the device for what {} count ({left})",
        directory.display(),
        count(u64::from(ranks), "rank")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_shortage_is_reported_if_there_is_space() {
        assert_eq!(shortage(&std::env::temp_dir(), 1), None);
        assert_eq!(shortage(Path::new("/nowhere/of/this/name"), 1), None);
    }
}
