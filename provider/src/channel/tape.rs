// SPDX-License-Identifier: BSD-2-Clause
//! A file that is written a record at a time through a mapping: no system calls but
//! two for each [`CHUNK`], and a killed process leaves what it wrote.
//!
//! A chunk is filled with zeros before it is mapped, so that a full disk is an error
//! then and not a `SIGBUS` later. The last record of the last chunk is kept for the
//! reason why nothing follows.
//!
//! Rejected: `fallocate` instead of zeros (35 ns a record against 25: a page fault for
//! each 4 KiB, which `ext4` makes dear), chunks of 1 and 4 MiB (no cheaper), `write`
//! of a buffer (10 ns, but a killed process takes the buffer with it).
#![allow(unsafe_code, reason = "a shared mapping is raw memory")]

use std::{
    fs::File,
    io::{self, Write as _},
    os::unix::fs::FileExt as _,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use memmap2::{MmapOptions, MmapRaw};
use nic::trace::{HEADER, RECORD, Stop};

/// Bytes that are mapped at a time; a multiple of the page size.
const CHUNK: usize = 256 * 1024;
const WORDS: usize = RECORD / 8;
static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// See the module.
#[derive(Debug)]
pub(crate) struct Tape {
    file: File,
    /// The chunk that is being written.
    map: MmapRaw,
    /// Where it begins in the file.
    begin: u64,
    /// Bytes of it that are written.
    used: usize,
    /// Largest length of the file.
    max: u64,
}

impl Tape {
    /// A new file that begins with `header`, of [`HEADER`] bytes, and grows to `max`
    /// bytes at most, but for a first chunk.
    ///
    /// # Errors
    /// The file exists or cannot be made, or the disk is full.
    pub(crate) fn create(path: &Path, header: &[u8], max: u64) -> io::Result<Self> {
        let mut file = File::options().read(true).write(true).create_new(true).open(path)?;
        file.write_all(header)?;
        let begin = HEADER as u64;
        let map = chunk(&file, begin)?;
        Ok(Self { file, map, begin, used: 0, max })
    }

    /// Writes a record, of which word 0 is not 0.
    ///
    /// # Errors
    /// Why there is no room; that is in the file then, and the tape is done with.
    #[inline]
    pub(crate) fn push(&mut self, words: [u64; WORDS]) -> Result<(), Stop> {
        if self.used == CHUNK - RECORD {
            return self.push_last(words);
        }
        self.put(words);
        Ok(())
    }

    /// Writes the last record of a chunk if there is another.
    #[cold]
    fn push_last(&mut self, words: [u64; WORDS]) -> Result<(), Stop> {
        let begin = self.begin + CHUNK as u64;
        let next = match begin + CHUNK as u64 > self.max {
            true => Err(Stop::Size),
            false => chunk(&self.file, begin).map_err(|error| {
                tracing::debug!("a trace cannot grow: {error}");
                Stop::Disk
            }),
        };
        match next {
            Ok(map) => {
                self.put(words);
                (self.map, self.begin, self.used) = (map, begin, 0);
                Ok(())
            }
            Err(stop) => {
                if let [_, Some(words)] = nic::trace::Op::Stop(stop).records() {
                    self.put(words);
                }
                Err(stop)
            }
        }
    }

    #[inline]
    fn put(&mut self, words: [u64; WORDS]) {
        assert!(self.used < CHUNK, "the caller looks for room");
        // SAFETY: the chunk is mapped for writing as long as we live, `used` is a
        // multiple of RECORD below its length, so the record lies in it and its words
        // are aligned; nobody of ours reads them, others read the file.
        let record = unsafe { &*self.map.as_mut_ptr().add(self.used).cast::<[AtomicU64; WORDS]>() };
        for at in 1..WORDS {
            record[at].store(words[at].to_le(), Ordering::Relaxed);
        }
        // A reader of what a killed process left takes records that begin with 0 for
        // the end.
        record[0].store(words[0].to_le(), Ordering::Release);
        self.used += RECORD;
    }
}

/// Makes a chunk of a file and maps it.
fn chunk(file: &File, begin: u64) -> io::Result<MmapRaw> {
    file.write_all_at(&ZEROS, begin)?;
    MmapOptions::new().offset(begin).len(CHUNK).populate().map_raw(file)
}

impl Drop for Tape {
    fn drop(&mut self) {
        // Otherwise zeros follow, which readers know.
        let _ = self.file.set_len(self.begin + self.used as u64);
    }
}

#[cfg(test)]
mod tests {
    use nic::trace::{Header, Op, Reader, stamped};

    use super::*;

    fn path(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("tcam-tape-{}-{name}", std::process::id()))
    }

    fn ops(path: &Path) -> Vec<Op> {
        let bytes = std::fs::read(path).unwrap();
        std::fs::remove_file(path).unwrap();
        Reader::new(&bytes[..]).unwrap().map(|op| op.unwrap().1).collect()
    }

    fn record(number: u64) -> [u64; WORDS] {
        stamped(Op::Cancel(number).records()[1].unwrap(), number)
    }

    #[test]
    fn chunks_follow_each_other_and_the_end_is_cut_off() {
        let path = path("chunks");
        let mut tape = Tape::create(&path, &Header::default().to_bytes(), u64::MAX).unwrap();
        let count = 2 * CHUNK as u64 / RECORD as u64 + 5;
        (0..count).for_each(|number| tape.push(record(number)).unwrap());
        // As a killed process leaves it.
        let bytes = std::fs::read(&path).unwrap();
        assert_eq!(Reader::new(&bytes[..]).unwrap().count() as u64, count);
        drop(tape);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), HEADER as u64 + count * RECORD as u64);
        assert!(ops(&path).into_iter().eq((0..count).map(Op::Cancel)));
    }

    #[test]
    fn the_size_allowed_ends_it_and_says_so() {
        let path = path("size");
        let max = (HEADER + 2 * CHUNK) as u64;
        let mut tape = Tape::create(&path, &Header::default().to_bytes(), max).unwrap();
        let written = (0..).take_while(|&number| tape.push(record(number)).is_ok()).count();
        assert_eq!(written, 2 * CHUNK / RECORD - 1);
        drop(tape);
        assert_eq!(std::fs::metadata(&path).unwrap().len(), max);
        assert_eq!(ops(&path).last(), Some(&Op::Stop(Stop::Size)));
    }
}
