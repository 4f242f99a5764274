// SPDX-License-Identifier: BSD-2-Clause
//! Reads files that users name, or put into a directory that tcam reads. Only regular files are
//! read.

use std::fs::File;
use std::io::{self, BufReader, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

/// Opens a regular file for reading. With `O_NONBLOCK`, opening a pipe without a writer returns at
/// once. The type is checked on the opened file.
///
/// # Errors
/// The errors of opening the file, and `InvalidInput` if it is not a regular file.
pub fn open(path: &Path) -> io::Result<BufReader<File>> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC).bits().cast_signed();
    let irregular = || io::Error::new(io::ErrorKind::InvalidInput, "not a regular file");
    match File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) if file.metadata()?.is_file() => Ok(BufReader::new(file)),
        Ok(_) => Err(irregular()),
        // The path is a socket.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => Err(irregular()),
        Err(error) => Err(error),
    }
}

/// Reads a whole regular file of up to `most` bytes.
///
/// # Errors
/// Like [`open`], and `FileTooLarge` for a longer file.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?.into_inner();
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= most {
        bytes.reserve_exact(length as usize + 1);
        (&file).take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    }
    if length.max(bytes.len() as u64) > most {
        let why = format!("longer than {most} bytes, the maximum for such a file");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

/// Reads a whole regular text file of up to `most` bytes.
///
/// # Errors
/// Like [`read`], and `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let text = String::from_utf8(read(path, most)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not text in UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn pipes_sockets_and_devices_are_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        mknodat(CWD, place("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        symlink("/dev/zero", place("zeros")).unwrap();
        symlink("pipe", place("link")).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(place("socket")).unwrap();
        for name in ["pipe", "zeros", "link", "socket", "."] {
            let error = open(&place(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{name}: {error}");
        }
        assert_eq!(open(&place("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("x");
        std::fs::write(&path, "abc").unwrap();
        symlink("x", directory.path().join("link")).unwrap();
        assert_eq!(read(&directory.path().join("link"), 3).unwrap(), b"abc");
        let error = read(&path, 2).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
        assert!(error.to_string().contains("2 bytes"));
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path, 2).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
