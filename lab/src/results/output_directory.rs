// SPDX-License-Identifier: BSD-2-Clause
//! Prepares the directory that a command writes to: locks it, and makes a staging directory inside
//! it. The files of an earlier run are removed only when new files replace them.
//!
//! The lock is a hidden file that is locked with `flock`, so that the files of two commands do not
//! mix. The kernel releases that lock however the process ends, and other hosts see it on a shared
//! file system. The file contains the command that holds the lock. The command removes the file
//! when it releases the lock. A process that was killed leaves the file behind, unlocked.
//!
//! Rejected: a lock of the directory itself, which NFS refuses.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nic::origin::Origin;
use rustix::fs::OFlags;
use tempfile::TempDir;

use crate::error::Error;
use crate::file;
use crate::hint;

/// Lists the files of one kind that an earlier run left in a directory.
pub(crate) type ListFiles = fn(&Path) -> Result<Vec<PathBuf>, Error>;

/// A staging directory inside the final directory of the files. It is removed when this value is
/// dropped.
// Fields are dropped in order. `_remove_if_empty` must be last: the final directory can be removed
// only after the staging directory and the lock file.
#[derive(Debug)]
pub(crate) struct StagingDirectory {
    new: TempDir,
    directory: PathBuf,
    old: Vec<PathBuf>,
    _lock: DirectoryLock,
    _remove_if_empty: Option<RemoveIfEmpty>,
}

/// A directory that the command made. When this value is dropped, the directory is removed if it is
/// empty.
#[derive(Debug)]
struct RemoveIfEmpty(PathBuf);

impl Drop for RemoveIfEmpty {
    fn drop(&mut self) {
        // This fails, as intended, if a file was kept.
        let _ = fs::remove_dir(&self.0);
    }
}

impl StagingDirectory {
    /// Makes and locks the final directory, makes the staging directory, and finds the files of an
    /// earlier run. Removes none of them. Names staging directories of commands that were killed.
    /// Fails if another command holds the lock, or if reports cannot be written to a directory of
    /// this name ([`check_name`]).
    pub(crate) fn inside(directory: &Path, kinds: &[ListFiles]) -> Result<Self, Error> {
        check_name(directory)?;
        Self::inside_any(directory, kinds)
    }

    /// Does the same as [`Self::inside`], but does not check the name. The directory must get no
    /// reports.
    pub(crate) fn inside_any(directory: &Path, kinds: &[ListFiles]) -> Result<Self, Error> {
        let existed = directory.is_dir();
        let directory = make(directory)?;
        let made = (!existed).then(|| RemoveIfEmpty(directory.clone()));
        let lock = DirectoryLock::acquire(&directory)?;
        // They are not removed, because ranks on other hosts may still write to them.
        for left in hint::staging_in(&directory) {
            eprintln!(
                "tcam: {} was left by a tcam that was killed: if its ranks have ended and you do \
                 not need its files, remove it",
                hint::quoted(&left)
            );
        }
        let mut old = Vec::new();
        for kind in kinds {
            old.extend(kind(&directory)?);
        }
        let new = tempfile::Builder::new()
            .prefix(hint::STAGING)
            .tempdir_in(&directory)
            .map_err(Error::io(&directory))?;
        Ok(Self { new, directory, old, _lock: lock, _remove_if_empty: made })
    }

    /// Returns the staging directory, to which the run writes.
    pub(crate) fn path(&self) -> &Path {
        self.new.path()
    }

    /// Replaces the files of an earlier run by the files of this run and returns true, if a file of
    /// this run has one of these endings. Otherwise changes nothing and returns false.
    pub(crate) fn keep(&self, endings: &[&str]) -> Result<bool, Error> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.path()).map_err(Error::io(self.path()))? {
            let path = entry.map_err(Error::io(self.path()))?.path();
            // A file with the ending `new` is incomplete: its rank was killed while it wrote the
            // file.
            if path.extension() != Some(OsStr::new("new")) {
                files.push(path);
            }
        }
        let has =
            |ending: &&str| files.iter().any(|path| path.extension() == Some(OsStr::new(ending)));
        if !endings.iter().any(has) {
            return Ok(false);
        }
        self.old.iter().try_for_each(|path| file::remove(path))?;
        for path in files {
            let Some(name) = path.file_name() else { continue };
            fs::rename(&path, self.directory.join(name)).map_err(Error::io(&path))?;
        }
        Ok(true)
    }

    /// Returns the final directory of the files, as a full path.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Files that an earlier command left in a directory, with their times. If the current command does
/// not replace a file, the file describes another experiment.
pub(crate) struct EarlierFiles(Vec<(PathBuf, SystemTime)>);

impl EarlierFiles {
    /// Finds the files in a directory that have one of these names with one of these endings.
    pub(crate) fn of(directory: &Path, names: &[&str], endings: &[&str]) -> Self {
        let path = |name: &str, ending: &str| directory.join(name).with_extension(ending);
        let paths = names.iter().flat_map(|name| endings.iter().map(move |end| path(name, end)));
        let at = |path: PathBuf| changed(&path).map(|at| (path, at));
        Self(paths.filter_map(at).collect())
    }

    /// Returns the names of the files that were not replaced.
    fn left(&self) -> Vec<String> {
        let left = self.0.iter().filter(|(path, at)| changed(path) == Some(*at));
        left.filter_map(|(path, _)| Some(path.file_name()?.to_str()?.to_owned())).collect()
    }

    /// Prints which files were not replaced, if there are any. `what` is their kind in the plural.
    pub(crate) fn note(&self, what: &str) {
        let left = self.left();
        if !left.is_empty() {
            eprintln!("{what} of an earlier command are still there: {}", left.join(", "));
        }
    }
}

/// Returns the time when a file was last written, or `None` if there is no such file.
fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|meta| meta.modified()).ok()
}

/// Makes a directory for reports of ranks. Returns its full path.
pub(crate) fn make_for_reports(directory: &Path) -> Result<PathBuf, Error> {
    check_name(directory)?;
    make(directory)
}

/// Fails if the full name of a directory for reports is not UTF-8 or contains a `%`, which the
/// provider would read as a pattern.
pub(crate) fn check_name(directory: &Path) -> Result<(), Error> {
    let full = std::path::absolute(directory).map_err(Error::io(directory))?;
    match full.to_str() {
        None => Err(Error::file(
            directory,
            "the name of a report directory must be UTF-8; without --report, the directory is in TMPDIR",
        )),
        Some(text) if text.contains('%') => Err(Error::file(
            directory,
            "a `%` in the name of a report directory would be read as a pattern; without \
             --report, the directory is in TMPDIR",
        )),
        Some(_) => Ok(()),
    }
}

/// Checks before the work that a directory can be made. Fails if something else has its name.
pub(crate) fn check(directory: &Path) -> Result<(), Error> {
    match directory.exists() && !directory.is_dir() {
        true => Err(Error::file(directory, "is no directory")),
        false => Ok(()),
    }
}

/// Makes a directory. Returns its full path.
pub(crate) fn make(directory: &Path) -> Result<PathBuf, Error> {
    check(directory)?;
    fs::create_dir_all(directory).map_err(Error::io(directory))?;
    directory.canonicalize().map_err(Error::io(directory))
}

/// Name of the lock file.
const NAME: &str = ".tcam-lock";
/// Largest part of the lock file that an error shows, in bytes. It has space for the command line
/// as [`Origin`] keeps it, the process and the host.
const SHOWN: u64 = 1500;

/// The lock of a directory, which a command holds while it writes to the directory. Dropping it
/// removes the lock file.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    path: PathBuf,
    _file: File,
}

impl DirectoryLock {
    /// Locks a directory. Fails if another command holds the lock. On a file system without locks,
    /// only writes the lock file.
    pub(crate) fn acquire(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(NAME);
        loop {
            let mut file = open(&path).map_err(Error::io(directory))?;
            if let Err(TryLockError::WouldBlock) = file.try_lock() {
                let by = holder(&file);
                let why = format!(
                    "{by} writes to it: wait until it has ended, or give another directory"
                );
                return Err(Error::file(directory, why));
            }
            // The previous command may have removed the file after it was opened here.
            let inode = |meta: fs::Metadata| meta.ino();
            let there = fs::symlink_metadata(&path).map(inode).ok();
            if there == file.metadata().map(inode).ok() {
                // If this fails, errors of other commands do not name this command, but the lock is
                // valid.
                let _ = file.set_len(0).and_then(|()| file.write_all(lock_text().as_bytes()));
                return Ok(Self { path, _file: file });
            }
        }
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Opens the lock file, or makes it. Does not follow a link and does not wait for a pipe.
fn open(path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).custom_flags(flags).open(path)
}

/// Returns a description of this command for the lock file: command line, process and host.
fn lock_text() -> String {
    let words: Vec<_> = std::env::args_os().skip(1).map(|it| hint::quoted(it.as_ref())).collect();
    let host = rustix::system::uname();
    let (pid, host) = (std::process::id(), host.nodename().to_string_lossy());
    let mut origin = Origin::default();
    origin.set_command(&words.join(" "));
    format!("`tcam {}` (process {pid} on {host})", origin.command)
}

/// Returns the description of the command that holds the lock, or a general term if the command has
/// not written it yet.
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
    use std::os::unix::ffi::OsStrExt;

    use nic::trace::Header;

    use super::*;
    use crate::results::reports;
    use crate::results::reports::tests::sample;
    use crate::traces::files;

    const KINDS: [ListFiles; 2] = [reports::old, files::old];

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn old_files_are_removed_when_new_ones_exist() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        fs::write(place.join("0.json"), sample(0, 4, 2).to_json().unwrap()).unwrap();
        fs::write(place.join("0.trace"), Header::default().to_bytes()).unwrap();
        fs::write(place.join("notes.txt"), "not ours").unwrap();
        let before = names(place);

        let staging = StagingDirectory::inside(place, &KINDS).unwrap();
        assert!(!staging.keep(&["trace"]).unwrap());
        fs::write(staging.path().join("1.json"), "").unwrap();
        assert!(!staging.keep(&["trace"]).unwrap());
        drop(staging);
        assert_eq!(names(place), before);

        let staging = StagingDirectory::inside(place, &KINDS).unwrap();
        fs::write(staging.path().join("1.json"), "").unwrap();
        fs::write(staging.path().join("1.trace"), "").unwrap();
        assert!(staging.keep(&["trace"]).unwrap());
        drop(staging);
        assert_eq!(names(place), ["1.json", "1.trace", "notes.txt"]);
    }

    #[test]
    fn a_directory_that_stays_empty_goes() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("reports");
        drop(StagingDirectory::inside(&place, &KINDS).unwrap());
        assert!(!place.exists());
        let staging = StagingDirectory::inside(&place, &KINDS).unwrap();
        fs::write(staging.path().join("0.json"), "").unwrap();
        assert!(staging.keep(&["json"]).unwrap());
        drop(staging);
        assert_eq!(names(&place), ["0.json"]);
    }

    #[test]
    fn files_that_are_not_replaced_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        for name in ["map.svg", "map.png", "other.svg"] {
            let file = fs::File::create(place.join(name)).unwrap();
            file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        let earlier = EarlierFiles::of(place, &["map", "curve"], &["svg", "png"]);
        fs::write(place.join("map.svg"), "new").unwrap();
        fs::write(place.join("curve.svg"), "new").unwrap();
        assert_eq!(earlier.left(), ["map.png"]);
    }

    #[test]
    fn unfit_names_of_report_directories_are_refused_first() {
        let directory = tempfile::tempdir().unwrap();
        let odd = directory.path().join("50%r");
        assert!(make_for_reports(&odd).unwrap_err().to_string().contains("pattern"));
        assert!(!odd.exists());
        let odd = directory.path().join(OsStr::from_bytes(b"caf\xe9"));
        assert!(make_for_reports(&odd).unwrap_err().to_string().contains("UTF-8"));
        assert!(!odd.exists());
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        assert!(make(&file).unwrap_err().to_string().ends_with("file: is no directory"));
        fs::write(directory.path().join("other.trace"), b"GPS").unwrap();
        assert!(StagingDirectory::inside(directory.path(), &KINDS).is_err());
        assert_eq!(names(directory.path()), ["file", "other.trace"]);
    }

    #[test]
    fn one_command_at_a_time_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        // A file that a killed command left.
        fs::write(place.join(NAME), "`tcam sweep` (process 1 on a)").unwrap();
        let lock = DirectoryLock::acquire(place).unwrap();
        let error = DirectoryLock::acquire(place).unwrap_err().to_string();
        let own = format!("(process {} on ", std::process::id());
        assert!(error.contains(": `tcam ") && error.contains(&own), "{error}");
        drop(lock);
        assert_eq!(fs::read_dir(place).unwrap().count(), 0);
        drop(DirectoryLock::acquire(place).unwrap());
        std::os::unix::fs::symlink("precious", place.join(NAME)).unwrap();
        assert!(DirectoryLock::acquire(place).is_err() && !place.join("precious").exists());
    }
}
