// SPDX-License-Identifier: BSD-2-Clause
//! Whether ranks may have had no room on the disk for what they counted.

use std::path::Path;

use nic::draft;
use rustix::fs::statvfs;

use crate::text::numbers::{bytes, count};

/// Room that a rank takes: its draft and then its report, and the windows of two traces.
const OF_A_RANK: u64 = 2 * draft::LENGTH as u64;

/// Says that a file system is full, where it has no room for what so many ranks would write.
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
    fn where_there_is_room_nothing_is_said() {
        assert_eq!(shortage(&std::env::temp_dir(), 1), None);
        assert_eq!(shortage(Path::new("/nowhere/of/this/name"), 1), None);
    }
}
