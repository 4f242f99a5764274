// SPDX-License-Identifier: BSD-2-Clause
//! Writes the report of an open endpoint into a file next to the final report, the *draft*:
//! `BASE.PID.N.draft` (see `nic::draft`). The draft remains if the process crashes, is killed or
//! calls `_exit`. It also remains if the disk has no room for the final report, because its own
//! space is reserved when the endpoint is opened.
//!
//! The file is mapped, and its descriptor is closed. Writing needs no system call, and the data
//! outlives the process. A program that closes unknown descriptors cannot make us write into its
//! own files. The file is written once before it is mapped, so that a full disk causes an error
//! then and not a `SIGBUS` later.
//!
//! Rejected: counters that live in the file, because every engine would have to know the file. With
//! drafts, a report may lack the events of the last [`INTERVAL`] before a crash, or all events
//! after the last poll.
#![allow(unsafe_code, reason = "a shared mapping is raw memory")]

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use memmap2::{MmapOptions, MmapRaw};
use nic::{
    draft::{EXTENSION, LENGTH, MAGIC, SLOT, place, put},
    report::Report,
};

/// Minimum time between two updates of a draft.
pub const INTERVAL: Duration = Duration::from_millis(10);

/// A draft. Dropping it removes the file, unless it is [kept](Draft::keep).
#[derive(Debug)]
pub struct Draft {
    map: MmapRaw,
    path: PathBuf,
    turn: u64,
    /// Memory in which the next slot is encoded.
    slot: Vec<u8>,
    pid: u32,
    is_kept: bool,
}

impl Draft {
    /// Creates the draft of the report `base.json`.
    ///
    /// # Errors
    /// The file cannot be made, or the disk has no room for it.
    pub fn create(base: &Path) -> io::Result<Self> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (number, pid) = (COUNT.fetch_add(1, Ordering::Relaxed), std::process::id());
        let mut path = base.as_os_str().to_owned();
        path.push(format!(".{pid}.{number}.{EXTENSION}"));
        let path = PathBuf::from(path);
        if let Some(directory) = path.parent().filter(|parent| *parent != Path::new("")) {
            std::fs::create_dir_all(directory)?;
        }
        // Remove the draft of an earlier process with this id, or a link by another user.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = File::options();
        options.read(true).write(true).create_new(true).custom_flags(libc::O_NOFOLLOW);
        let begun = options.open(&path).and_then(Self::begin);
        let map = begun.inspect_err(|_| drop(std::fs::remove_file(&path)))?;
        Ok(Self { map, path, turn: 0, slot: Vec::new(), pid, is_kept: false })
    }

    fn begin(mut file: File) -> io::Result<MmapRaw> {
        let mut bytes = MAGIC.to_vec();
        bytes.resize(LENGTH, 0);
        file.write_all(&bytes)?;
        MmapOptions::new().len(LENGTH).map_raw(&file)
    }

    /// Writes a report into the draft. If the report is too long, `nic::draft::put` drops some of
    /// its fields; if it is still too long, nothing is written. Does nothing in a forked child.
    pub fn put(&mut self, report: &mut Report) {
        // A forked child has the same mapping and must not write.
        if self.pid != std::process::id() {
            return;
        }
        let turn = self.turn + 1;
        if let Err(error) = put(report, turn, &mut self.slot) {
            return tracing::debug!("{}: {error}", self.path.display());
        }
        if self.slot.len() > SLOT {
            return tracing::debug!("{}: a report is longer than its slot", self.path.display());
        }
        // SAFETY: the file has LENGTH bytes, which are mapped as long as self lives, and both slots
        // of SLOT bytes lie within them; no reference into them exists here. Other processes that
        // map the file may read them meanwhile; the checksum shows them that the bytes are
        // inconsistent.
        unsafe {
            let to = self.map.as_mut_ptr().add(place(turn));
            to.copy_from_nonoverlapping(self.slot.as_ptr(), self.slot.len());
        }
        self.turn = turn;
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Drops the draft without removing the file.
    pub fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_kept && self.pid == std::process::id() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use nic::report::{FORMAT, VERSION};

    use super::*;

    #[test]
    fn a_draft_has_the_last_report_and_goes_unless_it_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let mut draft = Draft::create(&directory.path().join("3")).unwrap();
        let path = draft.path().to_owned();
        let read = || nic::draft::report(&std::fs::read(&path).unwrap());
        assert!(read().is_none());
        let mut report =
            Report { format: FORMAT.to_owned(), version: VERSION, ..Report::default() };
        for pid in 1..4 {
            report.pid = pid;
            draft.put(&mut report);
            assert_eq!(read().unwrap().unwrap().pid, pid);
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), LENGTH as u64);
        let other = Draft::create(&directory.path().join("3")).unwrap();
        assert_ne!(other.path(), path);
        drop(other);
        draft.keep();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_not_followed_and_nothing_is_left_where_there_is_no_room() {
        assert!(Draft::create(Path::new("/proc/none/0")).is_err());
        let directory = tempfile::tempdir().unwrap();
        let precious = directory.path().join("precious");
        std::fs::write(&precious, "precious").unwrap();
        for number in 0..20 {
            let name = format!("0.{}.{number}.{EXTENSION}", std::process::id());
            std::os::unix::fs::symlink(&precious, directory.path().join(name)).unwrap();
        }
        Draft::create(&directory.path().join("0")).unwrap().keep();
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    }
}
