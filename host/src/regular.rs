// SPDX-License-Identifier: BSD-2-Clause
//! Files that users name.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

/// Opens a file to read it.
///
/// # Errors
/// That of the file, and `InvalidInput` for what is no file: to open a pipe is to wait for who
/// writes to it.
pub fn open(path: &Path) -> io::Result<BufReader<File>> {
    if !path.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
    }
    Ok(BufReader::new(File::open(path)?))
}
