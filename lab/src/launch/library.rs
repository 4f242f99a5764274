// SPDX-License-Identifier: BSD-2-Clause
//! The place of the provider library.

use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::file;

/// Names of the library: as installed, and as cargo builds it. libfabric opens every file of
/// FI_PROVIDER_PATH that ends in `fi.so`.
const NAMES: [&str; 2] = ["libtcam-fi.so", "libtcam_fi.so"];

/// The provider library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Library {
    /// The file.
    pub(crate) file: PathBuf,
    /// Its directory, the value of FI_PROVIDER_PATH.
    pub(crate) directory: PathBuf,
}

impl Library {
    fn in_directory(directory: &Path) -> Option<Self> {
        let directory = directory.canonicalize().ok()?;
        let file = NAMES.iter().map(|name| directory.join(name)).find(|file| file.is_file())?;
        Some(Self { file, directory })
    }

    /// Finds the given library, or the one of this program, and checks that libfabric would load
    /// it.
    pub(crate) fn find_whole(given: Option<&Path>) -> Result<Self, Error> {
        let library = Self::find(given)?;
        let bytes =
            host::regular::read(&library.file, file::LONGEST).map_err(Error::io(&library.file))?;
        let holds = |text: &[u8]| bytes.windows(text.len()).any(|part| part == text);
        match bytes.starts_with(b"\x7fELF") && holds(b"fi_prov_ini") {
            true => Ok(library),
            false => Err(Error::NoProviderThere { path: library.file }),
        }
    }

    /// Finds the given library, or the one of this program.
    pub(crate) fn find(given: Option<&Path>) -> Result<Self, Error> {
        if let Some(path) = given {
            let directory = if path.is_dir() { Some(path) } else { path.parent() };
            return directory
                .filter(|_| path.exists())
                .and_then(|directory| {
                    let directory =
                        if directory.as_os_str().is_empty() { Path::new(".") } else { directory };
                    Self::in_directory(directory)
                })
                .ok_or_else(|| Error::NoLibrary { path: path.to_owned() });
        }
        let places = places();
        places.iter().find_map(|place| Self::in_directory(place)).ok_or_else(|| {
            let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
            Error::NoProvider { searched: places.join(", ") }
        })
    }
}

/// Returns the directories to search: that of the program, where cargo puts both;
/// `../lib/libfabric` from there, where `make install` puts it; and FI_PROVIDER_PATH.
fn places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    if let Some(directory) = program.ok().as_deref().and_then(Path::parent) {
        places.push(directory.to_owned());
        if let Some(prefix) = directory.parent() {
            places.push(prefix.join("lib/libfabric"));
        }
    }
    if let Some(list) = std::env::var_os("FI_PROVIDER_PATH") {
        places.extend(std::env::split_paths(&list));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_is_found_by_file_and_by_directory() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("libtcam-fi.so");
        assert!(Library::find(Some(directory.path())).is_err());
        assert!(Library::find(Some(&file)).is_err());
        std::fs::write(&file, "").unwrap();
        let by_file = Library::find(Some(&file)).unwrap();
        assert_eq!(by_file, Library::find(Some(directory.path())).unwrap());
        assert_eq!(by_file.file, file.canonicalize().unwrap());
        for (content, good) in [("", false), ("\x7fELF", false), ("\x7fELF fi_prov_ini", true)] {
            std::fs::write(&file, content).unwrap();
            assert_eq!(Library::find_whole(Some(&file)).is_ok(), good, "{content}");
        }
    }
}
