// SPDX-License-Identifier: BSD-2-Clause
//! The files that a run writes, in a staging directory. The files of an earlier run are removed
//! only when new files replace them.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tempfile::TempDir;

use super::lock::Lock;
use crate::error::Error;
use crate::file;

/// Lists the files of one kind that an earlier run left in a directory.
pub(crate) type Old = fn(&Path) -> Result<Vec<PathBuf>, Error>;

/// A staging directory inside the directory of the files. It is removed when this value is dropped.
// Fields are dropped in order. The outer directory is empty only after the inner one and the lock
// are gone.
#[derive(Debug)]
pub(crate) struct Fresh {
    new: TempDir,
    directory: PathBuf,
    old: Vec<PathBuf>,
    _lock: Lock,
    _made: Option<Made>,
}

/// A directory that did not exist before. It is removed if it is empty.
#[derive(Debug)]
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        // This fails, as intended, if a file was kept.
        let _ = fs::remove_dir(&self.0);
    }
}

impl Fresh {
    /// Makes both directories, and finds the files of an earlier run. The directory may contain
    /// reports, so its name is checked. Nothing is removed yet.
    pub(crate) fn inside(directory: &Path, kinds: &[Old]) -> Result<Self, Error> {
        check_name(directory)?;
        Self::in_any(directory, kinds)
    }

    /// Like [`Self::inside`], for a directory that will contain no reports.
    pub(crate) fn in_any(directory: &Path, kinds: &[Old]) -> Result<Self, Error> {
        let existed = directory.is_dir();
        let directory = make(directory)?;
        let made = (!existed).then(|| Made(directory.clone()));
        let lock = Lock::of(&directory)?;
        let mut old = Vec::new();
        for kind in kinds {
            old.extend(kind(&directory)?);
        }
        let new = tempfile::Builder::new()
            .prefix(".new-")
            .tempdir_in(&directory)
            .map_err(Error::io(&directory))?;
        Ok(Self { new, directory, old, _lock: lock, _made: made })
    }

    /// Returns the directory that the run writes to.
    pub(crate) fn path(&self) -> &Path {
        self.new.path()
    }

    /// Replaces the files of an earlier run by those of this run, if a file of this run has one of
    /// these endings. Returns true if there is one.
    pub(crate) fn keep(&self, endings: &[&str]) -> Result<bool, Error> {
        let mut files = Vec::new();
        for entry in fs::read_dir(self.path()).map_err(Error::io(self.path()))? {
            let path = entry.map_err(Error::io(self.path()))?.path();
            // A file that a rank was writing when it was killed.
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

    /// Returns the directory of the files.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }
}

/// Files that an earlier command may have left in a directory. Those that are not replaced describe
/// another experiment.
pub(crate) struct Earlier(Vec<(PathBuf, SystemTime)>);

impl Earlier {
    /// Finds files of these names in a directory.
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

    /// Prints which files were not replaced.
    pub(crate) fn note(&self, what: &str) {
        let left = self.left();
        if !left.is_empty() {
            eprintln!("there are earlier {what} beside these: {}", left.join(", "));
        }
    }
}

/// Returns when a file was last written.
fn changed(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|meta| meta.modified()).ok()
}

/// Makes a directory for reports of ranks. Returns its full path.
pub(crate) fn make_for_reports(directory: &Path) -> Result<PathBuf, Error> {
    check_name(directory)?;
    make(directory)
}

/// Refuses the name of a directory that reports cannot be written to.
pub(crate) fn check_name(directory: &Path) -> Result<(), Error> {
    let full = std::path::absolute(directory).map_err(Error::io(directory))?;
    match full.to_str() {
        None => Err(Error::NoText { path: directory.to_owned() }),
        Some(text) if text.contains('%') => Err(Error::file(
            directory,
            "a `%` in the name of a report directory would be read as a pattern; without --report \
             that is TMPDIR's",
        )),
        Some(_) => Ok(()),
    }
}

/// Makes a directory. Returns its full path.
pub(crate) fn make(directory: &Path) -> Result<PathBuf, Error> {
    if directory.exists() && !directory.is_dir() {
        return Err(Error::file(directory, "is no directory"));
    }
    fs::create_dir_all(directory).map_err(Error::io(directory))?;
    directory.canonicalize().map_err(Error::io(directory))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::results::reports;
    use crate::results::reports::tests::sample;
    use crate::traces::files;
    use nic::trace::Header;

    const KINDS: [Old; 2] = [reports::old, files::old];

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
        fs::write(place.join("0.txt"), "for people").unwrap();
        fs::write(place.join("0.trace"), Header::default().to_bytes()).unwrap();
        fs::write(place.join("notes.txt"), "not ours").unwrap();
        let before = names(place);

        let fresh = Fresh::inside(place, &KINDS).unwrap();
        assert!(!fresh.keep(&["trace"]).unwrap());
        fs::write(fresh.path().join("1.json"), "").unwrap();
        assert!(!fresh.keep(&["trace"]).unwrap());
        drop(fresh);
        assert_eq!(names(place), before);

        let fresh = Fresh::inside(place, &KINDS).unwrap();
        fs::write(fresh.path().join("1.json"), "").unwrap();
        fs::write(fresh.path().join("1.trace"), "").unwrap();
        assert!(fresh.keep(&["trace"]).unwrap());
        drop(fresh);
        assert_eq!(names(place), ["1.json", "1.trace", "notes.txt"]);
    }

    #[test]
    fn a_directory_that_stays_empty_goes() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("reports");
        drop(Fresh::inside(&place, &KINDS).unwrap());
        assert!(!place.exists());
        let fresh = Fresh::inside(&place, &KINDS).unwrap();
        fs::write(fresh.path().join("0.json"), "").unwrap();
        assert!(fresh.keep(&["json"]).unwrap());
        drop(fresh);
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
        let earlier = Earlier::of(place, &["map", "curve"], &["svg", "png"]);
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
        assert!(Fresh::inside(directory.path(), &KINDS).is_err());
        assert_eq!(names(directory.path()), ["file", "other.trace"]);
    }
}
