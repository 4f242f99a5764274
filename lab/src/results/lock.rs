// SPDX-License-Identifier: BSD-2-Clause
//! The lock of a directory that a command writes to, so that the files of two commands do not mix.
//!
//! A hidden file is locked with `flock`. The kernel releases that lock however the process ends,
//! and other hosts see it on a shared file system. The file contains the command that holds the
//! lock, and is removed with it. A process that was killed leaves the file behind, unlocked.
//!
//! Rejected: a lock of the directory itself, which NFS refuses.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nic::origin::Origin;
use rustix::fs::OFlags;

use crate::error::Error;
use crate::hint;

/// Name of the file.
const NAME: &str = ".tcam-lock";
/// Largest part of the file that is shown, in bytes: the command line that [`Origin`] keeps,
/// process and host.
const SHOWN: u64 = 1500;

/// Held while a command writes to a directory.
#[derive(Debug)]
pub(crate) struct Lock {
    path: PathBuf,
    _file: File,
}

impl Lock {
    /// Locks a directory. On a file system without locks it only writes the file.
    pub(crate) fn of(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(NAME);
        loop {
            let mut file = open(&path).map_err(Error::io(directory))?;
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                return Err(Error::InUse { path: directory.to_owned(), by: holder(&file) });
            }
            // The previous command may have removed the file after it was opened here.
            let inode = |meta: fs::Metadata| meta.ino();
            let there = fs::symlink_metadata(&path).map(inode).ok();
            if there == file.metadata().map(inode).ok() {
                // If this fails, the command is not shown, but the lock holds.
                let _ = file.set_len(0).and_then(|()| file.write_all(told().as_bytes()));
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the file. Does not follow a link and does not wait for a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path)
}

/// Returns a description of this command.
fn told() -> String {
    let words: Vec<_> = std::env::args_os().skip(1).map(|it| hint::quoted(it.as_ref())).collect();
    let host = rustix::system::uname();
    let (pid, host) = (std::process::id(), host.nodename().to_string_lossy());
    let mut origin = Origin::default();
    origin.set_command(&words.join(" "));
    format!("`tcam {}` (process {pid} on {host})", origin.command)
}

/// Returns the command that holds the lock of a file, as far as it has written that.
fn holder(file: &File) -> String {
    let mut text = Vec::new();
    let _ = file.take(SHOWN).read_to_end(&mut text);
    match String::from_utf8_lossy(&text).trim() {
        "" => "another command of tcam".to_owned(),
        text => nic::plain::plain(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_command_at_a_time_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        // A file that a killed command left.
        fs::write(place.join(NAME), "`tcam sweep` (process 1 on a)").unwrap();
        let lock = Lock::of(place).unwrap();
        let error = Lock::of(place).unwrap_err().to_string();
        let own = format!("(process {} on ", std::process::id());
        assert!(error.contains(": `tcam ") && error.contains(&own), "{error}");
        drop(lock);
        assert_eq!(fs::read_dir(place).unwrap().count(), 0);
        drop(Lock::of(place).unwrap());
        std::os::unix::fs::symlink("precious", place.join(NAME)).unwrap();
        assert!(Lock::of(place).is_err() && !place.join("precious").exists());
    }
}
