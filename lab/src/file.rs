// SPDX-License-Identifier: BSD-2-Clause
//! Writes files at paths that users name, in directories to which other users may write. A link at
//! the place of a file, even one that appears while tcam runs, is replaced and not followed; links
//! in `/dev` and `/proc` are followed. A new file is complete before it replaces another one,
//! unless the directory admits no temporary file ([`To::Over`]).

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use host::regular;
use rustix::fs::OFlags;
use tempfile::NamedTempFile;

use crate::error::Error;

/// Size limit of a file that is read as a whole, in bytes. The limit is high, because programs and
/// profiles may be large.
pub(crate) const LONGEST: u64 = 4 << 30;

/// A file that is being written. If it is dropped without `keep`, the temporary file is removed.
#[derive(Debug)]
pub(crate) struct NewFile {
    to: To,
    path: Box<Path>,
}

#[derive(Debug)]
enum To {
    /// A temporary file in the same directory, which is renamed when it is complete.
    Beside(NamedTempFile),
    /// An existing file in a directory in which no other file can be made. The file is written in
    /// place, over its old content.
    Over(File),
    /// A device, a pipe or standard output, which is written in place.
    Straight(File),
}

impl NewFile {
    /// Opens a file for writing. The new file replaces the file at `path` only in
    /// [`NewFile::keep`]. [`To::Over`] and [`To::Straight`] are written in place instead, and
    /// [`To::Over`] loses its old content here.
    pub(crate) fn create(path: &Path) -> Result<Self, Error> {
        let to = open(path).map_err(Error::io(path))?;
        if let To::Over(file) = &to {
            file.set_len(0).map_err(Error::io(path))?;
        }
        Ok(Self { to, path: path.into() })
    }

    fn file(&mut self) -> &mut File {
        match &mut self.to {
            To::Beside(file) => file.as_file_mut(),
            To::Over(file) | To::Straight(file) => file,
        }
    }

    /// Puts the file in its place.
    pub(crate) fn keep(self) -> Result<(), Error> {
        match self.to {
            To::Beside(file) => file
                .persist(&self.path)
                .map(drop)
                .map_err(|error| Error::io(self.path)(error.error)),
            To::Over(_) | To::Straight(_) => Ok(()),
        }
    }

    /// Puts the file in its place if nothing is there yet; otherwise fails with
    /// [`Error::NoReportThere`].
    pub(crate) fn keep_first(self) -> Result<(), Error> {
        match self.to {
            To::Beside(file) => match file.persist_noclobber(&self.path) {
                Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
                    Err(Error::NoReportThere { path: self.path.into() })
                }
                kept => kept.map(drop).map_err(|error| Error::io(self.path)(error.error)),
            },
            To::Over(_) | To::Straight(_) => Err(Error::NoReportThere { path: self.path.into() }),
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

fn open(path: &Path) -> io::Result<To> {
    let there = fs::symlink_metadata(path).ok();
    if there.as_ref().is_some_and(|there| !there.is_file() && !there.is_symlink())
        || there.as_ref().is_some_and(fs::Metadata::is_symlink) && names_a_descriptor(path)
    {
        return File::options().write(true).open(path).map(To::Straight);
    }
    let mut options = File::options();
    options.write(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let is_file = there.is_some_and(|there| there.is_file());
    if is_file {
        // A file that may not be written to may not be replaced either.
        options.open(path)?;
    }
    let directory = match path.parent() {
        Some(directory) if directory != Path::new("") => directory,
        _ => Path::new("."),
    };
    let mut why = None;
    let beside =
        tempfile::Builder::new().prefix(".tcam-").suffix(".new").make_in(directory, |path| {
            let file = File::options().write(true).create_new(true).mode(0o666).open(path);
            file.inspect_err(|error| why = error.raw_os_error())
        });
    match beside {
        // No other file can be made in the directory, so the file is written in place.
        Err(error) if is_file && error.kind() == ErrorKind::PermissionDenied => {
            options.open(path).map(To::Over)
        }
        // tempfile adds the path of the temporary file to its error, so the error of the system is
        // returned instead.
        Err(error) => Err(why.map_or(error, io::Error::from_raw_os_error)),
        Ok(file) => Ok(To::Beside(file)),
    }
}

/// Returns true for a path directly in `/dev`, or anywhere below `/proc`. The directory is resolved
/// first, so `/dev/fd/3` is below `/proc`.
fn names_a_descriptor(path: &Path) -> bool {
    let directory = path.parent().and_then(|directory| directory.canonicalize().ok());
    directory.is_some_and(|of| of == Path::new("/dev") || of.starts_with("/proc"))
}

fn written(path: &Path, content: impl AsRef<[u8]>) -> Result<NewFile, Error> {
    let mut file = NewFile::create(path)?;
    file.write_all(content.as_ref()).map_err(Error::io(path))?;
    Ok(file)
}

/// Writes a file, and replaces what was there.
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    written(path, content)?.keep()
}

/// Writes a file if nothing is there yet; otherwise fails with [`Error::NoReportThere`].
pub(crate) fn write_first(path: &Path, content: impl AsRef<[u8]>) -> Result<(), Error> {
    if fs::symlink_metadata(path).is_ok() {
        return Err(Error::NoReportThere { path: path.into() });
    }
    written(path, content)?.keep_first()
}

/// Fails if a file at `path` is not empty and does not begin with `start`, so that files of other
/// programs are not replaced.
pub(crate) fn spare_others(path: &Path, start: &str) -> Result<(), Error> {
    // A pipe or a device cannot be replaced, and opening it could block.
    if !path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0) {
        return Ok(());
    }
    let mut there = vec![0; start.len()];
    match regular::open(path).and_then(|mut file| file.read_exact(&mut there)) {
        Ok(()) if there == start.as_bytes() => Ok(()),
        _ => Err(Error::file(path, "another file is there: give another name, or remove it")),
    }
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io(path)(error)),
        _ => Ok(()),
    }
}

/// Replaces a file by an empty one that other processes may read while it grows.
pub(crate) fn begin(path: &Path) -> Result<File, Error> {
    remove(path)?;
    File::create_new(path).map_err(Error::io(path))
}

/// Checks, before the work starts, that a file can be written. An existing file keeps its content.
/// Pipes and devices are not checked.
pub(crate) fn check(path: &Path) -> Result<(), Error> {
    match fs::metadata(path) {
        // Opening a pipe would wait for a reader, and closing the pipe would end the reader's
        // input.
        Ok(there) if !there.is_file() && !there.is_dir() => Ok(()),
        _ => open(path).map(drop).map_err(Error::io(path)),
    }
}

/// Known endings of file names. An output of another format, or a directory, must not have them.
const FILES: [&str; 14] = [
    "csv", "eps", "gif", "html", "jpeg", "jpg", "json", "md", "parquet", "pdf", "png", "ps", "svg",
    "txt",
];

/// Checks, before the work starts, that a page of HTML can be written.
pub(crate) fn check_page(path: &Path) -> Result<(), Error> {
    check_kind(path, &["html"], "a page of HTML is written: give a name such as x.html")?;
    check(path)
}

/// Refuses a name with a known ending that is not one of `fits`, and `-`, which stands for standard
/// output elsewhere. An existing directory is accepted.
pub(crate) fn check_kind(out: &Path, fits: &[&str], expected: &'static str) -> Result<(), Error> {
    let ending = out.extension().map(|end| end.to_string_lossy().to_lowercase());
    match ending {
        _ if out.as_os_str() == "-" => Err(Error::file(out, expected)),
        Some(end) if FILES.contains(&&*end) && !fits.contains(&&*end) && !out.is_dir() => {
            Err(Error::file(out, expected))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn an_unwritable_file_is_an_error_before_the_work() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("old.csv");
        check(&path).unwrap();
        assert!(!path.exists());
        fs::write(&path, "old").unwrap();
        check(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        let error = check(&directory.path().join("none/x.csv")).unwrap_err().to_string();
        assert!(error.contains("none/x.csv: No such file"), "{error}");
    }

    #[test]
    fn links_are_replaced_and_their_targets_stay() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::write(place("precious"), "precious").unwrap();
        for name in ["write", "begin", "check", "first"] {
            symlink("precious", place(name)).unwrap();
        }
        symlink("nowhere", place("dangling")).unwrap();
        write(&place("write"), "new").unwrap();
        begin(&place("begin")).unwrap();
        check(&place("check")).unwrap();
        check(&place("dangling")).unwrap();
        let error = write_first(&place("first"), "new").unwrap_err().to_string();
        assert!(error.contains("first: is there and no report of tcam"), "{error}");
        assert_eq!(fs::read_to_string(place("precious")).unwrap(), "precious");
        assert_eq!(fs::read_to_string(place("write")).unwrap(), "new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 6);
    }

    #[test]
    fn a_file_that_is_not_kept_leaves_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        write(&path, "old").unwrap();
        drop(NewFile::create(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        fs::write(directory.path().join("y"), "").unwrap();
        let usual = fs::metadata(directory.path().join("y")).unwrap().permissions().mode();
        assert_eq!(mode, usual);
    }

    #[test]
    fn devices_are_written_to() {
        write(Path::new("/dev/null"), "x").unwrap();
        check(Path::new("/dev/null")).unwrap();
        assert!(names_a_descriptor(Path::new("/dev/stdout")));
        assert!(names_a_descriptor(Path::new("/proc/self/fd/1")));
        assert!(!names_a_descriptor(Path::new("/dev/shm/x")));
    }

    #[test]
    fn names_of_files_of_other_kinds_are_refused() {
        let refused = |out: &Path, fits: &[&str]| check_kind(out, fits, "expected").is_err();
        for name in ["x.pdf", "x.PNG", "a.b/p.svg", "-"] {
            assert!(refused(Path::new(name), &["html"]), "{name}");
        }
        for name in ["x.html", "pictures", "run.2", "a.png/x", "/dev/stdout"] {
            assert!(!refused(Path::new(name), &["html"]), "{name}");
        }
        assert!(refused(Path::new("x.html"), &[]));
        let directory = tempfile::tempdir().unwrap();
        let odd = directory.path().join("a.png");
        std::fs::create_dir(&odd).unwrap();
        assert!(!refused(&odd, &[]));
    }
}
