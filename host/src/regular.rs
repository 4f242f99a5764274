// SPDX-License-Identifier: BSD-2-Clause
//! Files that users name.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// Opens a file to read it.
///
/// # Errors
/// That of the file, and `InvalidInput` for a path that is no regular file: opening a pipe would wait
/// for its writer.
pub fn open(path: &Path) -> io::Result<BufReader<File>> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(BufReader::new(File::open(path)?))
}
