// SPDX-License-Identifier: BSD-2-Clause
//! The files that are mapped into this process, and their build ids.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// Longest list of program headers, and longest note, that is read.
const LONGEST: usize = 1 << 16;
/// Type of a program header of notes.
const PT_NOTE: u32 = 4;
/// Type of the note with the build id.
const NT_GNU_BUILD_ID: u32 = 3;

/// A mapped part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Address behind its end.
    end: u64,
    /// Offset of its begin in the file.
    offset: u64,
    /// Path, or a name such as `[vdso]`; empty for memory without a file.
    name: String,
}

/// The mappings of this process that can be executed.
#[derive(Clone, Debug, Default)]
pub struct Mappings(BTreeMap<u64, Mapping>);

impl Mappings {
    /// Reads the mappings.
    ///
    /// # Errors
    /// `/proc` is not mounted.
    pub fn read() -> io::Result<Self> {
        Ok(Self::parse(&String::from_utf8_lossy(&fs::read("/proc/self/maps")?)))
    }

    fn parse(text: &str) -> Self {
        let mapping = |line: &str| {
            let (words, mut rest) = (&mut [""; 5], line);
            for word in &mut *words {
                (*word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            }
            // Another module may be mapped later where data is now.
            if !words[1].contains('x') {
                return None;
            }
            let (start, end) = words[0].split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            let name = rest.trim_start().to_owned();
            Some((number(start)?, Mapping { end: number(end)?, offset: number(words[2])?, name }))
        };
        Self(text.lines().filter_map(mapping).collect())
    }

    /// Returns the name of the mapping of an address, and the offset of the address in the file.
    #[must_use]
    pub fn at(&self, address: u64) -> Option<(&str, u64)> {
        let (start, mapping) = self.0.range(..=address).next_back()?;
        (address < mapping.end).then(|| (mapping.name.as_str(), address - start + mapping.offset))
    }
}

/// Returns the build id of an ELF file in hexadecimal digits; empty if the file has no id or
/// cannot be read.
#[must_use]
pub fn build_id(path: &Path) -> String {
    let file = crate::regular::open(path).ok().map(io::BufReader::into_inner);
    let id = file.and_then(|file| {
        read_id(|at, length| {
            let mut bytes = vec![0; length.min(LONGEST)];
            file.read_exact_at(&mut bytes, at).ok()?;
            Some(bytes)
        })
    });
    id.unwrap_or_default().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Reads the build id of a 64-bit file in the byte order of this machine. `read` returns the bytes
/// at an offset.
fn read_id(read: impl Fn(u64, usize) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let header = read(0, 64)?;
    if !header.starts_with(b"\x7fELF\x02") {
        return None;
    }
    let (table, size, count) = (word(&header, 32)?, half(&header, 54)?, half(&header, 56)?);
    let table = read(table, usize::from(size) * usize::from(count))?;
    table.chunks_exact(usize::from(size).max(1)).find_map(|entry| {
        let (at, length) = (word(entry, 8)?, word(entry, 32)?);
        if four(entry, 0)? != PT_NOTE {
            return None;
        }
        let (notes, mut at) = (read(at, usize::try_from(length).ok()?)?, 0);
        while let (Some(name), Some(text)) = (four(&notes, at), four(&notes, at + 4)) {
            let (name, text) = (name as usize, text as usize);
            let begin = at + 12 + name.next_multiple_of(4);
            let bytes = notes.get(begin..begin + text);
            if four(&notes, at + 8)? == NT_GNU_BUILD_ID && notes[at + 12..].starts_with(b"GNU\0") {
                return bytes.map(<[u8]>::to_vec);
            }
            at = begin + text.next_multiple_of(4);
        }
        None
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn four(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_of_files_at_offsets() {
        let text = "7f10-7f30 r-xp 00002000 00:1f 77   /opt/my app/lib.so\n\
                    7f30-7f40 rw-p 00000000 00:00 0 \n\
                    7f50-7f60 r-xp 00000000 00:00 0                [vdso]\nx\n";
        let mappings = Mappings::parse(text);
        assert_eq!(mappings.at(0x7f18), Some(("/opt/my app/lib.so", 0x2008)));
        assert_eq!(mappings.at(0x7f30), None);
        assert_eq!(mappings.at(0x7f55), Some(("[vdso]", 5)));
        assert_eq!([0x7f0f, 0x7f40, 0x7f60].map(|at| mappings.at(at)), [None; 3]);
        let here = addresses_are_of_files_at_offsets as fn() as *const ();
        let mappings = Mappings::read().unwrap();
        let (name, _) = mappings.at(here.addr() as u64).unwrap();
        assert_eq!(Path::new(name), std::env::current_exe().unwrap().canonicalize().unwrap());
    }

    #[test]
    fn build_ids_are_those_of_readelf() {
        let own = std::env::current_exe().unwrap();
        let told = std::process::Command::new("readelf").arg("-n").arg(&own).output().unwrap();
        let told = String::from_utf8_lossy(&told.stdout).into_owned();
        let id = told.lines().find_map(|line| line.trim().strip_prefix("Build ID: "));
        assert_eq!(build_id(&own), id.unwrap_or_default());
        assert_eq!(build_id(Path::new("/proc/self/maps")), "");
        assert_eq!(build_id(Path::new("/")), "");
    }

    #[test]
    fn damaged_files_have_no_id() {
        let own = fs::read(std::env::current_exe().unwrap()).unwrap();
        let read = |bytes: &[u8]| {
            read_id(|at, length| {
                let at = usize::try_from(at).ok()?;
                bytes.get(at..at.checked_add(length)?).map(<[u8]>::to_vec)
            })
        };
        let whole = read(&own);
        for at in 0..2048 {
            let mut bytes = own[..4096].to_vec();
            bytes[at] ^= 0xff;
            let found = read(&bytes);
            assert!(found.is_none() || found == whole || at >= 64, "{at}");
        }
    }
}
